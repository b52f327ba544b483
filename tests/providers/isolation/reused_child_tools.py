"""A file of tools for child processes that leave something of themselves in the process they ran in."""

import asyncio
import os
import resource
import time
from pathlib import Path

import afoot
from afoot import Context

isolated = afoot.tool(isolate=True)
kept: list[asyncio.Task[None]] = []


@isolated
async def where() -> int:
    """The process it runs in; on a loop that stays there."""
    await asyncio.sleep(0)
    return os.getpid()


@isolated
def insists(ctx: Context) -> int:
    """Does not look whether it should stop, and gives a result when it is interrupted."""
    ctx.report(1)
    try:
        while True:
            time.sleep(0.005)
    except SystemExit:
        return os.getpid()


@isolated
def waits(mark: str, ctx: Context) -> str:
    """Until there is such a file."""
    ctx.report(1)
    while not Path(mark).exists():
        time.sleep(0.005)
    return "done"


async def _goes_on(file: str) -> None:
    while True:
        os.utime(file)
        await asyncio.sleep(0.001)


@isolated
async def leaves_a_task(file: str) -> int:
    """Work that goes on though nobody waits for it."""
    kept.append(asyncio.create_task(_goes_on(file)))
    return os.getpid()


@isolated
def place() -> list[object]:
    """Where a call begins."""
    mask = os.umask(0)
    os.umask(mask)
    return [os.getcwd(), mask, os.getpid()]


@isolated
def moves(folder: str) -> list[object]:
    """Works in another folder, and lets nobody else read what it writes."""
    os.chdir(folder)
    os.umask(0o077)
    return [os.getcwd(), os.getpid()]


@isolated
def gives_up(what: str) -> int:
    """Something that the system would have let it have: all of it, or what it need not have given up."""
    number = getattr(resource, what)
    hard = resource.getrlimit(number)[1]
    resource.setrlimit(number, (64, 64) if what == "RLIMIT_NOFILE" else (1_000_000_000_000, hard))
    return os.getpid()
