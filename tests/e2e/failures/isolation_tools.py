"""Isolated tools for a real gateway: some that behave, and the three that must hurt nobody."""

import asyncio
import os
import subprocess
import time

import afoot
from afoot import Context
from tests.e2e.tools import RAISED, raise_soon


@afoot.tool
async def steady(n: int, ctx: Context) -> str:
    """Reports from the gateway's own loop."""
    for number in range(1, n + 1):
        await asyncio.sleep(0.02)
        ctx.report(number, n)
    return "done"


@afoot.tool(isolate=True)
def compute(n: int, ctx: Context) -> int:
    """Reports from a child."""
    for number in range(1, n + 1):
        ctx.report(number, n, f"step {number}")
    return os.getpid()


@afoot.tool(isolate=True, cpu=0.3, ceiling=60)
def endless() -> None:
    """Loops."""
    while True:
        pass


@afoot.tool(isolate=True, memory=400_000_000)
def greedy() -> int:
    """Wants 10 GB."""
    return len(bytearray(10_000_000_000))


@afoot.tool(isolate=True, processes=10)
def forks() -> None:
    """Starts 50 processes that hide in sessions of their own."""
    for _ in range(50):
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(600)


@afoot.tool(isolate=True)
def family(tag: str, ctx: Context) -> None:
    """Has a process below it, and one below that which nobody is the parent of; waits for ever."""
    subprocess.Popen(["sleep", "600"], env={**os.environ, "E2E_TAG": tag})
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.execve("/bin/sleep", ["sleep", "600"], {"E2E_TAG": tag})
        os._exit(0)
    ctx.report(1, None, "started")
    time.sleep(600)


@afoot.tool(isolate=True)
def throw_isolated(what: str) -> None:
    """Raises it in a child process."""
    raise RAISED[what]("on purpose")


@afoot.tool(isolate=True)
async def throw_in_isolated_task(what: str) -> None:
    """Raises it in a task, in a child process."""
    await asyncio.gather(raise_soon(what))
