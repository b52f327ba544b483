"""A server of the `mcp` SDK on stdio, to stand behind a gateway; it leaves marks in the folder E2E_MARKS."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel

LONG_S = 25.0  # longer than any test waits


class Colour(BaseModel):
    """What `paint` asks for."""

    colour: str


server = MCPServer("shop")


def mark(tag: str, text: str) -> None:
    """Leave a line for the test that chose this tag."""
    with (Path(os.environ["E2E_MARKS"]) / tag).open("a") as file:
        file.write(text + "\n")


def marks(tag: str) -> list[str]:
    """The lines that were left so far."""
    return (Path(os.environ["E2E_MARKS"]) / tag).read_text().splitlines()


@server.tool()
async def wrap(n: int, ctx: Context) -> str:
    """Wraps n presents, one after the other."""
    for done in range(1, n + 1):
        await ctx.report_progress(done, n, f"present {done}")
        await asyncio.sleep(0.06)
    return f"wrapped {n}"


@server.tool()
async def dawdle(tag: str, ctx: Context) -> str:
    """Takes its time, until it is told to stop."""
    mark(tag, "started")
    await ctx.report_progress(1, 10, "dawdling")
    try:
        await asyncio.sleep(LONG_S)
    except asyncio.CancelledError:
        mark(tag, "cancelled: ")
        raise
    return "done"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def look(tag: str, ctx: Context) -> str:
    """Looks at five shelves; the first time it stays at the third."""
    return await _five(tag, ctx)


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
async def smash(tag: str, ctx: Context) -> str:
    """Smashes five shelves; the first time it stays at the third."""
    return await _five(tag, ctx)


async def _five(tag: str, ctx: Context) -> str:
    mark(tag, f"ran {os.getpid()}")
    is_first = len(marks(tag)) == 1
    for done in range(1, 6):
        await ctx.report_progress(done, 5, f"shelf {done}")
        await asyncio.sleep(LONG_S if is_first and done == 3 else 0.06)
    return "five shelves"


async def which() -> Elicit[Colour]:
    """Ask for the colour."""
    return Elicit("Which colour?", Colour)


@server.tool()
async def paint(answer: Annotated[Colour, Resolve(which)]) -> str:
    """Paints in the colour that it asks for."""
    return f"painted {answer.colour}"


if __name__ == "__main__":
    server.run()
