"""Tools that make a tree of calls, which report, log, ask and fail."""

import asyncio
import logging

import afoot
from afoot import Context


@afoot.tool
async def branch(width: int, ctx: Context) -> str:
    """Call a leaf so many times, at once."""
    ctx.report(message="begins")
    await asyncio.gather(*(ctx.call("leaf", {"name": f"leaf {n}"}) for n in range(width)))
    return "all of them"


@afoot.tool
async def leaf(name: str, ctx: Context) -> str:
    """Report and log."""
    ctx.report(1, 2, f"{name} is half done")
    logging.getLogger("leaves").warning("%s is dry", name)
    ctx.report(2, 2, f"{name} is done")
    return name


@afoot.tool
async def sing(lines: int, ctx: Context) -> str:
    """Report much faster than the history keeps readings."""
    for line in range(lines):
        ctx.report(line + 1, lines, f"line {line + 1}")
        await asyncio.sleep(0)
    return "sung"


@afoot.tool
async def heap(size: int, ctx: Context) -> str:
    """Return a long text."""
    return "x" * size


@afoot.tool(destructive=True)
async def demolish(house: str, ctx: Context) -> str:
    """Ask first, and again."""
    return f"{house}: {(await ctx.ask('Sure?', {'type': 'object', 'properties': {}})).action}"


@afoot.tool
async def wait_and_talk(ctx: Context) -> str:
    """Say three things at once, and run until it is cancelled."""
    for words in ("one", "two", "the last word"):
        ctx.report(message=words)
    return await doze(ctx)


@afoot.tool
async def doze(ctx: Context) -> str:
    """Run until it is cancelled."""
    while True:
        await asyncio.sleep(0.05)
        ctx.alive()
