"""Tools that report every 0.4 s under an idle limit of 1 s: on the loop, in a thread, in a child process.

And one whose C code keeps the interpreter's lock, so that nothing else can run.
"""

import asyncio
import ctypes
import time

import afoot
from afoot import Context

STEP_S = 0.4


@afoot.tool(idle=1.0)
async def step_on_loop(n: int, ctx: Context) -> str:
    """Reports from the loop."""
    for done in range(1, n + 1):
        await asyncio.sleep(STEP_S)
        ctx.report(done, n)
    return "done"


@afoot.tool(idle=1.0)
def step_in_thread(n: int, ctx: Context) -> str:
    """Reports from a thread."""
    for done in range(1, n + 1):
        time.sleep(STEP_S)
        ctx.report(done, n)
    return "done"


@afoot.tool(idle=1.0, isolate=True)
def step_in_child(n: int, ctx: Context) -> str:
    """Reports from a child process."""
    for done in range(1, n + 1):
        time.sleep(STEP_S)
        ctx.report(done, n)
    return "done"


@afoot.tool
def keep_lock(seconds: float) -> str:
    """Waits in C code that keeps the interpreter's lock."""
    ctypes.PyDLL(None).usleep(int(1e6 * seconds))
    return "kept"
