"""Tools to try: `afoot serve examples/tools.py`, then `afoot call count n=20`."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Literal

import afoot
from afoot import Context, Partial


@afoot.tool(read_only=True)
async def count(n: int = 10, every_s: float = 0.5, ctx: Context | None = None) -> dict[str, int]:
    """Count slowly, and report each number.

    Args:
        n: how far to count
        every_s: seconds between two numbers
    """
    for number in range(1, n + 1):
        await asyncio.sleep(every_s)
        if ctx:
            ctx.report(number, n, f"counted to {number}")
    return {"counted": n}


@afoot.tool
async def book(city: str, ctx: Context | None = None) -> str:
    """Book a trip. Ask for the class first; no clock runs while the question is open."""
    if ctx is None:
        return f"booked {city}, second class"
    answer = await ctx.ask(f"Which class to {city}?", Literal["first", "second"])
    return f"booked {city}, {answer.content} class" if answer else "nothing was booked"


@afoot.tool(read_only=True)
async def story(ctx: Context | None = None) -> AsyncIterator[Partial]:
    """Tell a story line by line. The caller keeps the lines told so far if the call is cancelled."""
    for line in ("A caller called.", "A tool set out.", "It reported, and lived."):
        await asyncio.sleep(0.5)
        yield Partial(f"{line}\n")


@afoot.tool(idle=5)
def thumbnails(files: int = 8, ctx: Context | None = None) -> str:
    """Shrink pictures. A plain function runs in a thread, and `track` reports each item.

    Args:
        files: how many pictures there are
    """
    for _ in ctx.track(range(files), message="shrinking") if ctx else range(files):
        time.sleep(0.2)
    return f"{files} thumbnails"
