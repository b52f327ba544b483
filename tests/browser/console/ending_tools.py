"""Tools that end in every way there is, or run on for nobody."""

import asyncio
import os
import signal
import time
from pathlib import Path

import afoot
from afoot import Context


@afoot.tool(isolate=True, cpu=0.5)
def turn_for_ever() -> str:
    """Use up its processor time."""
    while True:
        pass


@afoot.tool(isolate=True, memory=200_000_000)
def hoard() -> str:
    """Use up its memory."""
    held = bytearray(4_000_000_000)
    return str(len(held))


@afoot.tool(isolate=True)
def vanish() -> str:
    """Be killed by somebody, in the midst of it."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@afoot.tool(isolate=True, read_only=True)
def look_and_vanish() -> str:
    """Be killed by somebody, every time, while it only reads."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@afoot.tool(isolate=True, idempotent=True)
def stumble_once(mark: str, ctx: Context) -> str:
    """Be killed the first time; the second, use some processor time until somebody has looked."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    while not Path(f"{mark}-enough").exists():
        time.sleep(0.05)
        ctx.alive()
    return "up again"


@afoot.tool(destructive=True)
async def demolish(house: str) -> str:
    """Never run in these tests: somebody says no."""
    return f"demolished {house}"


@afoot.tool(task="optional", on_disconnect="detach", ceiling=600)
async def wander(steps: int, ctx: Context) -> str:
    """Walk on, whoever listens."""
    for step in range(steps):
        ctx.report(step, steps, f"step {step}")
        await asyncio.sleep(0.1)
    return "home"
