"""Tools for the innermost of several gateways."""

import asyncio
from collections.abc import AsyncIterator

import afoot
from afoot import Context, Partial


@afoot.tool
async def bake(ctx: Context) -> AsyncIterator[Partial | str]:
    """Reports with data, hands out two parts, and then the whole."""
    ctx.report(1, 3, "mixing", data={"phase": "dough"})
    yield Partial("a crumb")
    await asyncio.sleep(0.1)
    ctx.report(2, 3, "baking", data={"phase": "oven"})
    yield Partial("a slice")
    yield "a loaf"


@afoot.tool
async def knit(rows: int, step_s: float, ctx: Context) -> str:
    """Reports a row at a time."""
    for row in range(1, rows + 1):
        await asyncio.sleep(step_s)
        ctx.report(row, rows, f"row {row}")
    return f"knitted {rows}"


@afoot.tool(task="required")
async def ferment(days: int, ctx: Context) -> str:
    """Runs only as a task: reports a day at a time, and asks before the last one."""
    for day in range(1, days + 1):
        await asyncio.sleep(0.7)
        ctx.report(day, days, f"day {day}")
    return "sour" if await ctx.ask("taste it?", bool) else "sweet"


@afoot.tool(concurrency=1)
async def weave(rows: int, ctx: Context) -> str:
    """Reports a row at a time, and can do one at a time only."""
    for row in range(1, rows + 1):
        await asyncio.sleep(0.5)
        ctx.report(row, rows, f"row {row}")
    return f"wove {rows}"


@afoot.tool
async def wander(ctx: Context) -> str:
    """Says what it does, and never how far it is."""
    for step in range(4):
        ctx.report(message=f"step {step}")
        await asyncio.sleep(0.1)
    return "there"


@afoot.tool(idle=0.5)
async def crumble(ctx: Context) -> AsyncIterator[Partial | str]:
    """Hands out a part, and then is silent for too long."""
    ctx.report(1, 3, "mixing")
    yield Partial("a crumb")
    await asyncio.sleep(30)
    yield "never"


@afoot.tool
async def guild(n: int, ctx: Context) -> str:
    """Has others knit, all at once."""
    await asyncio.gather(*(ctx.call("knit", {"rows": 2, "step_s": 0.1}) for _ in range(n)))
    return f"{n} have knitted"
