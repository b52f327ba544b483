"""The gateway's own tools for a soak. Each leaves marks, by its tag, of what it has really done.

A mark is `begun`, then `done`, `raised` or `stopped`, with the process that left it. `census` and `collect`
are no load: the driver asks them for the tasks of the gateway's loop, and to collect garbage.
"""

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable

import afoot
from afoot import Context, Partial
from tests.chaos.tools import NAME, mark

HANG_S = 20.0
DEAF_S = 2.5  # longer than the grace of the soak's settings
FLOOD = 3000
LARGE_BYTES = 100_000


def _raise(error: BaseException) -> str:
    raise error


def _end_process() -> str:
    os._exit(3)


def _segfault() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "survived"


RAISED: tuple[Callable[[], BaseException], ...] = (
    lambda: ValueError("no"),
    lambda: SystemExit(3),
    lambda: KeyboardInterrupt(),
    lambda: GeneratorExit(),
    lambda: asyncio.CancelledError("of its own"),
    lambda: MemoryError(),
    lambda: RecursionError("deep"),
    lambda: afoot.ToolError("not today"),
)


async def walk(tag: str, ctx: Context, steps: int, step_s: float) -> str:
    """Report each step; a cancel is marked."""
    mark(tag, "begun")
    try:
        for step in range(1, steps + 1):
            ctx.report(step, steps, f"step {step}")
            await asyncio.sleep(step_s)
    except asyncio.CancelledError:
        mark(tag, "stopped")
        raise
    mark(tag, "done")
    return tag


def trudge(tag: str, steps: int, step_s: float, report: Callable[[int], object]) -> str:
    """As `walk`, without a loop."""
    mark(tag, "begun")
    for step in range(1, steps + 1):
        report(step)
        time.sleep(step_s)
    mark(tag, "done")
    return tag


@afoot.tool
async def steady(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Reports each step, and may not be repeated."""
    return await walk(tag, ctx, steps, step_s)


@afoot.tool(idempotent=True)
async def steady_safe(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Reports each step, and may be repeated."""
    return await walk(tag, ctx, steps, step_s)


@afoot.tool(concurrency=2)
async def narrow(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Two at a time."""
    return await walk(tag, ctx, steps, step_s)


@afoot.tool(on_disconnect="detach")
async def lasting(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Runs on for a caller that left."""
    return await walk(tag, ctx, steps, step_s)


@afoot.tool(idempotent=True, task="optional")
async def errand(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """May be a task."""
    return await walk(tag, ctx, steps, step_s)


@afoot.tool(approval="ask")
async def risky(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Needs approval."""
    return await walk(tag, ctx, steps, step_s)


@afoot.tool
def threaded(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Runs in a thread."""
    return trudge(tag, steps, step_s, lambda step: ctx.report(step, steps))


@afoot.tool(isolate=True)
def boxed(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Runs in a child process."""
    return trudge(tag, steps, step_s, lambda step: ctx.report(step, steps))


@afoot.tool(isolate=True, idempotent=True)
def boxed_safe(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Runs in a child process, and may be repeated."""
    return trudge(tag, steps, step_s, lambda step: ctx.report(step, steps))


@afoot.tool(isolate=True)
def boxed_dies(tag: str, steps: int = 5, step_s: float = 0.02) -> str:
    """Ends its own child process."""
    mark(tag, "begun")
    time.sleep(step_s)
    return (_end_process, _segfault)[steps % 2]()


@afoot.tool
async def pieces(
    tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02
) -> AsyncIterator[Partial | str]:
    """Yields partial results, and reports with data and checkpoints."""
    mark(tag, "begun")
    for step in range(1, steps + 1):
        yield Partial(f"piece {step}")
        ctx.report(step, steps, data={"step": step})
        ctx.checkpoint(step)
        await asyncio.sleep(step_s)
    mark(tag, "done")
    yield tag


@afoot.tool
async def asks(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Asks once between its steps."""
    mark(tag, "begun")
    ctx.report(1, 3, "before")
    told = await ctx.ask("Who?", NAME, key="who")
    ctx.report(2, 3, "after")
    await asyncio.sleep(step_s)
    mark(tag, "done")
    return f"{tag} {told.action}"


@afoot.tool(idempotent=True)
async def asks_safe(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Asks, and may be repeated."""
    return await asks(tag, ctx, steps, step_s)


@afoot.tool
async def parent(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Calls two other tools."""
    mark(tag, "begun")
    wanted = {"steps": steps, "step_s": step_s}
    await asyncio.gather(
        ctx.call("steady", {"tag": f"{tag}-first", **wanted}),
        ctx.call("threaded", {"tag": f"{tag}-second", **wanted}, weight=2.0),
    )
    mark(tag, "done")
    return tag


@afoot.tool
async def flood(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Reports, prints and logs as fast as it can."""
    mark(tag, "begun")
    for number in range(FLOOD):
        ctx.report(number, FLOOD, "x" * 200)
        if number % 10 == 0:
            print(f"line {number} {'y' * 100}")
            print(f"error {number}", file=sys.stderr)
            ctx.log(f"log {number}")
            await asyncio.sleep(0)
    mark(tag, "done")
    return tag


@afoot.tool
def large(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Returns a large result."""
    mark(tag, "begun")
    ctx.report(1, 2)
    mark(tag, "done")
    return tag + "z" * (LARGE_BYTES * steps)


@afoot.tool
async def raises(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Raises all kinds of errors."""
    mark(tag, "begun")
    await asyncio.sleep(step_s)
    mark(tag, "raised")
    return _raise(RAISED[steps % len(RAISED)]())


@afoot.tool
def thread_raises(tag: str, steps: int = 5, step_s: float = 0.02) -> str:
    """Raises all kinds of errors in a thread."""
    mark(tag, "begun")
    mark(tag, "raised")
    return _raise(RAISED[steps % len(RAISED)]())


@afoot.tool(idle=1.0)
async def hangs(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Says nothing until it is stopped."""
    mark(tag, "begun")
    await asyncio.sleep(HANG_S)
    mark(tag, "done")
    return tag


@afoot.tool(idle=1.0)
def thread_hangs(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Says nothing in a thread until it is stopped."""
    mark(tag, "begun")
    end = time.monotonic() + HANG_S
    while ctx.cancelled is None and time.monotonic() < end:
        time.sleep(0.05)
    mark(tag, "stopped")
    return tag


@afoot.tool(idle=1.0)
async def deaf(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Does not stop when it is told to, but later."""
    mark(tag, "begun")
    end = time.monotonic() + DEAF_S
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            mark(tag, "stopped")
    mark(tag, "done")
    return tag


@afoot.tool(own_loop=True)
async def blocks(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Blocks its own loop."""
    return trudge(tag, steps, step_s, lambda step: ctx.report(step, steps))


@afoot.tool(idempotent=True)
async def census() -> dict[str, int]:
    """Count the tasks of the loop of the gateway."""
    return {"tasks": len(asyncio.all_tasks())}


@afoot.tool(idempotent=True)
def collect() -> dict[str, int]:
    """Collect garbage, and count the objects that are left."""
    gc.collect()
    return {"objects": len(gc.get_objects())}
