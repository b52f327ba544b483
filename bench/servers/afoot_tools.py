"""The bench's four tools for afoot: `afoot serve bench/servers/afoot_tools.py`."""

import asyncio
import time

import afoot
from afoot import Context

BURST = 100
"""Reports between two yields: the same for every server, so that each can send while the tool runs."""


@afoot.tool
async def noop() -> str:
    """Do nothing."""
    return "ok"


@afoot.tool
async def ticks(n: int, ctx: Context | None = None) -> int:
    """Report n times."""
    assert ctx is not None
    for i in range(1, n + 1):
        ctx.report(i, n, "tick")
        if i % BURST == 0:
            await asyncio.sleep(0)
    return n


@afoot.tool
async def cost(n: int, ctx: Context | None = None) -> float:
    """Return the seconds of the tool's time per report, without the yields between bursts."""
    assert ctx is not None
    spent = 0.0
    for start in range(0, n, BURST):
        began = time.perf_counter()
        for i in range(start + 1, start + BURST + 1):
            ctx.report(i, n, "tick")
        spent += time.perf_counter() - began
        await asyncio.sleep(0)
    return spent / n


@afoot.tool
async def wait(seconds: float, ctx: Context | None = None) -> str:
    """Report once, to say that it runs, and sleep."""
    assert ctx is not None
    ctx.report(1, 2, "waiting")
    await asyncio.sleep(seconds)
    return "ok"
