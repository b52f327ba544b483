"""Tools for the tests of approval: one destroys something, the other has it destroyed."""

import os
from pathlib import Path
from typing import Final

import afoot
from afoot import Context

MARKS: Final = Path(os.environ.get("E2E_MARKS", "."))


def mark(tag: str, text: str) -> None:
    """Leave a line for the test that chose this tag."""
    with (MARKS / tag).open("a") as file:
        file.write(text + "\n")


@afoot.tool(destructive=True)
async def wipe(tag: str, what: str = "everything") -> str:
    """Destroys something, if it is let."""
    mark(tag, f"wiped {what}")
    return f"wiped {what}"


@afoot.tool
async def wipe_below(tag: str, ctx: Context) -> str:
    """Has something destroyed by another tool."""
    mark(tag, "ran")
    result = await ctx.call("wipe", {"tag": tag})
    return f"below: {result}"
