"""Tools that take their time: as tasks, for callers that go away, and over the death of their gateway."""

import asyncio
from typing import Any

import afoot
from afoot import Context
from tests.e2e.tools import MARKS, mark

SIDE = {"type": "object", "properties": {"side": {"type": "string"}}, "required": ["side"]}


@afoot.tool(task="optional", on_disconnect="detach")
async def march(steps: int, tag: str, step_s: float = 0.1, ctx: Context | None = None) -> str:
    """Say each step."""
    mark(tag, "started")
    for done in range(1, steps + 1):
        await asyncio.sleep(step_s)
        if ctx is not None:
            ctx.report(done, steps, f"step {done}")
    mark(tag, "done")
    return f"marched {steps}"


@afoot.tool(on_disconnect="detach")
async def march_on(tag: str, ctx: Context) -> str:
    """Say each step, until the test has had enough."""
    mark(tag, "started")
    done = 0
    while not (MARKS / f"{tag}-enough").exists():
        await asyncio.sleep(0.1)
        done += 1
        ctx.report(done, 1000, f"step {done}")
    mark(tag, "done")
    return f"marched {done}"


@afoot.tool(task="optional")
async def march_and_ask(ctx: Context) -> dict[str, Any]:
    """Walk a little, then ask for the way."""
    await asyncio.sleep(0.5)
    reply = await ctx.ask("Left or right?", SIDE, key="way")
    return {"action": reply.action, "content": reply.content}


@afoot.tool(task="optional", idempotent=True)
async def steady(steps: int, tag: str, ctx: Context) -> str:
    """Remember every step, and go on from the last if the gateway died."""
    done = int(ctx.resumed_from or 0)
    mark(tag, f"from {done}")
    while done < steps:
        await asyncio.sleep(0.1)
        done += 1
        ctx.report(done, steps, f"step {done}")
        ctx.checkpoint(done)
    return f"steady to {done}"


@afoot.tool(task="optional")
async def stroll(tag: str, ctx: Context) -> str:
    """Walk until somebody says stop."""
    mark(tag, "started")
    try:
        while True:
            ctx.alive()
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        mark(tag, "cancelled")
        raise
