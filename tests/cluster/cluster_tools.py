"""Tools for the tests of clusters, and how to wait for what other gateways see."""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import afoot
from afoot import Context, Gateway
from afoot.core.call import Call
from afoot.engine.live_call import LiveCall

WAIT_S = 15.0
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@afoot.tool
async def steps(n: int, ctx: Context) -> str:
    """Report, with data at the end, and wait to be cancelled."""
    for number in range(1, n + 1):
        ctx.report(number, n, f"step {number}", data={"at": number} if number == n else None)
        await asyncio.sleep(0.01)
    await asyncio.sleep(60)
    return "never"


@afoot.tool
async def ask(ctx: Context) -> str:
    """Ask for a name."""
    given = await ctx.ask("who?", NAME)
    return f"hello {given.content['name']}"


@afoot.tool
async def crash() -> str:
    """Raise an error that nobody expected."""
    raise ZeroDivisionError("oh no")


@afoot.tool
def in_thread(n: int, ctx: Context) -> dict[str, int]:
    """Count in a thread, and keep a checkpoint."""
    for number in ctx.track(range(n)):
        ctx.checkpoint(number)
    return {"pid": os.getpid(), "counted": n}


@afoot.tool
async def quick() -> str:
    """Say hello."""
    return "hello"


@afoot.tool(worker="gpu")
async def on_gpu(seconds: float) -> int:
    """Tell which process runs it."""
    await asyncio.sleep(seconds)
    return os.getpid()


def leave_mark(file: str) -> bool:
    """Add a mark: the file tells how often a tool ran; True for the first."""
    with Path(file).open("a") as marks:
        marks.write("x")
        return marks.tell() == 1


async def mark(file: str, seconds: float) -> str:
    """Leave a mark; the first run takes a while."""
    if leave_mark(file):
        await asyncio.sleep(seconds)
    return "done"


@afoot.tool(idempotent=True)
async def safe(file: str, seconds: float) -> str:
    """Leave a mark; it may be repeated."""
    return await mark(file, seconds)


@afoot.tool
async def unsafe(file: str, seconds: float) -> str:
    """Leave a mark; it may not be repeated."""
    return await mark(file, seconds)


@afoot.tool(approval="ask")
async def careful(file: str, seconds: float) -> str:
    """Leave a mark, after somebody approved it."""
    return await mark(file, seconds)


@afoot.tool
async def count_slowly(n: int, ctx: Context) -> int:
    """Report every number as data, twenty a second."""
    for number in range(n):
        ctx.report(number, n, data={"at": number})
        await asyncio.sleep(0.05)
    return n


@afoot.tool
async def ask_later(seconds: float, ctx: Context) -> str:
    """Ask for a name after a while."""
    await asyncio.sleep(seconds)
    given = await ctx.ask("who?", NAME)
    return f"hello {given.content['name']}"


@afoot.tool
async def ask_impatiently(file: str, ctx: Context) -> str:
    """Ask, and go on without an answer."""
    with suppress(TimeoutError):
        await asyncio.wait_for(ctx.ask("who?", NAME), 0.5)
    leave_mark(file)
    await asyncio.sleep(3.0)
    return "went on"


@afoot.tool
async def log_in(password: str, ctx: Context) -> str:
    """Ask for a code, wait, and log both secrets."""
    code = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}}
    given = await ctx.ask("the code?", code)
    for _ in range(30):
        ctx.log(f"logs in with {password} and {given.content['pin']}")
        await asyncio.sleep(0.1)
    return "done"


@afoot.tool
async def call_unsafe(file: str, seconds: float, ctx: Context) -> str:
    """Call another function on a worker, and wait for it."""
    return f"below: {await ctx.call('unsafe', {'file': file, 'seconds': seconds})}"


def add_line(file: str, line: str) -> None:
    """Add a line in one step, whichever process does it."""
    with Path(file).open("a") as lines:
        lines.write(f"{line}\n")


async def be_in_turn(file: str, who: str, seconds: float) -> str:
    """Mark when a tool begins and when it is over."""
    add_line(file, f"+{who}")
    try:
        await asyncio.sleep(seconds)
    finally:
        add_line(file, f"-{who}")
    return who


@afoot.tool(concurrency=1)
async def narrow(file: str, who: str, seconds: float) -> str:
    """Run alone."""
    return await be_in_turn(file, who, seconds)


@afoot.tool(concurrency=2, queue=3, idempotent=True)
async def cramped(file: str, who: str, seconds: float) -> str:
    """Run twice at once; few may wait."""
    return await be_in_turn(file, who, seconds)


@afoot.tool(concurrency=1)
async def alone(file: str, seconds: float, lock: str) -> str:
    """Leave a mark, and tell whether it runs alone. The system unlocks what a killed process had locked."""
    place = os.open(lock, os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return await mark(file, seconds)
    except BlockingIOError:
        add_line(f"{lock}.overlap", f"{file} {time.time():.3f}")
        raise
    finally:
        os.close(place)


async def until(found: Callable[[], Any], what: str) -> Any:
    """Wait until something is true, and give it."""
    try:
        async with asyncio.timeout(WAIT_S):
            while not (seen := found()):  # noqa: ASYNC110 - nothing tells of the state of another gateway
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"did not happen within {WAIT_S:g} s: {what}") from None
    return seen


def mirror(gateway: Gateway, call: str) -> LiveCall | None:
    """A call of another gateway, as this one sees it."""
    return gateway.engine[call] if call in gateway.engine else None


async def seen_by(gateway: Gateway, call: str, when: Callable[[Call], Any]) -> Call:
    """A call of another gateway, as soon as this one sees it so."""
    live = await until(
        lambda: (one := mirror(gateway, call)) is not None and when(one.call) and one, f"{call} to be seen"
    )
    assert isinstance(live, LiveCall)
    return live.call
