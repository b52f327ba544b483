"""Tools for the tests from end to end: they leave marks in a folder, so that a test sees what happened."""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final, Literal, cast

import afoot
from afoot import Context, ToolError

MARKS: Final = Path(os.environ.get("E2E_MARKS", "."))
NAME: Final = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
AGE: Final = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
LONG_S: Final = 25.0  # longer than any test waits
_kept: list[object] = []  # tasks that outlive their call


def mark(tag: str, text: str) -> None:
    """Leave a line for the test that chose this tag."""
    with (MARKS / tag).open("a") as file:
        file.write(text + "\n")


async def until_cancelled(tag: str, ctx: Context) -> str:
    """Wait for a cancel, and note its reason."""
    try:
        await asyncio.sleep(LONG_S)
    except asyncio.CancelledError:
        mark(tag, f"cancelled: {ctx.cancelled}")
        raise
    return "lingered"


@afoot.tool(read_only=True)
async def add(a: int, b: int) -> dict[str, int]:
    """Adds."""
    return {"sum": a + b}


@afoot.tool
async def count_up(n: int, step_s: float = 0.06, ctx: Context | None = None) -> str:
    """Reports 1 to n, with a message each."""
    for done in range(1, n + 1):
        if ctx:
            ctx.report(done, n, f"step {done}")
        await asyncio.sleep(step_s)
    return f"counted to {n}"


@afoot.tool
async def linger(tag: str, ctx: Context) -> str:
    """Runs until it is cancelled, and notes why."""
    mark(tag, "started")
    ctx.report(1, 10, "lingering")
    return await until_cancelled(tag, ctx)


@afoot.tool(read_only=True)
async def look_around(tag: str) -> str:
    """Runs long, and changes nothing."""
    mark(tag, "started")
    await asyncio.sleep(LONG_S)
    return "looked"


@afoot.tool
def linger_in_a_thread(tag: str, ctx: Context) -> str:
    """Runs in a thread until it is cancelled, and notes why."""
    mark(tag, "started")
    ctx.report(1, 10, "lingering")
    until = time.monotonic() + LONG_S
    while time.monotonic() < until:
        if ctx.cancelled:
            mark(tag, f"cancelled: {ctx.cancelled}")
            return "stopped"
        time.sleep(0.01)
    return "lingered"


@afoot.tool
def ignore_everything(tag: str) -> str:
    """Runs in a thread, and does not look whether it should stop."""
    mark(tag, "started")
    time.sleep(LONG_S)
    return "ignored"


@afoot.tool
async def nap(tag: str = "naps", sleep_s: float = 0.1) -> str:
    """Sleeps in silence, and notes that it ended."""
    mark(tag, "started")
    await asyncio.sleep(sleep_s)
    mark(tag, "ended")
    return "slept"


@afoot.tool(idle=0.6, ceiling=2.0)
async def paced(pauses: list[float], ctx: Context) -> str:
    """Reports after each pause; silent for over 0.6 s or longer than 2 s, it is ended."""
    for number, pause in enumerate(pauses, 1):
        await asyncio.sleep(pause)
        ctx.report(number, len(pauses), f"pause {number}")
    return "done"


@afoot.tool
async def ask_name(tag: str, ctx: Context) -> dict[str, Any]:
    """Asks for a name."""
    mark(tag, "ran")
    reply = await ctx.ask("What is your name?", NAME, key="name")
    mark(tag, f"answered {reply.action}")
    return {"action": reply.action, "content": reply.content}


@afoot.tool
def ask_name_in_a_thread(tag: str, ctx: Context) -> dict[str, Any]:
    """Asks for a name, in sync code."""
    mark(tag, "ran")
    reply = ctx.ask("What is your name?", NAME, key="name")
    return {"action": reply.action, "content": reply.content}


@afoot.tool(idempotent=True)
async def ask_safely(tag: str, ctx: Context) -> dict[str, Any]:
    """Asks twice, and may be run again."""
    mark(tag, "ran")
    name = await ctx.ask("What is your name?", NAME, key="name")
    mark(tag, f"name {name.content}")
    age = await ctx.ask("How old are you?", AGE, key="age")
    return {"name": name.content, "age": age.content}


@afoot.tool(idempotent=True)
async def ask_safely_then_linger(tag: str, ctx: Context) -> str:
    """Asks for a name, then runs until it is cancelled; it may be run again."""
    return await ask_then_linger(tag, ctx)


@afoot.tool
async def ask_two_at_once(tag: str, ctx: Context) -> dict[str, Any]:
    """Asks for a name and an age in one go."""
    mark(tag, "ran")
    name, age = await asyncio.gather(
        ctx.ask("What is your name?", NAME, key="name"), ctx.ask("How old are you?", AGE, key="age")
    )
    return {"name": name.content, "age": age.content}


@afoot.tool
async def ask_two_in_turn(tag: str, ctx: Context) -> dict[str, Any]:
    """Asks for a name, then for an age, and reports around it."""
    mark(tag, "ran")
    ctx.report(1, 3, "asking")
    name = await ctx.ask("What is your name?", NAME, key="name")
    ctx.report(2, 3, "asking again")
    age = await ctx.ask("How old are you?", AGE, key="age")
    ctx.report(3, 3, "asked")
    return {"name": name.content, "age": age.content}


@afoot.tool
async def ask_then_linger(tag: str, ctx: Context) -> str:
    """Asks for a name, then runs until it is cancelled."""
    mark(tag, "ran")
    await ctx.ask("What is your name?", NAME, key="name")
    mark(tag, "answered")
    return await until_cancelled(tag, ctx)


@afoot.tool
async def ask_then_nap(tag: str, ctx: Context) -> str:
    """Asks for a name, then sleeps a little."""
    mark(tag, "ran")
    await ctx.ask("What is your name?", NAME, key="name")
    await asyncio.sleep(0.2)
    return "good night"


@afoot.tool
async def ask_on_and_on(tag: str, ctx: Context) -> str:
    """Asks twelve times."""
    for number in range(1, 13):
        await ctx.ask(f"Shall I go on, {number}?", key=f"q{number}")
        mark(tag, str(number))
    return "asked"


@afoot.tool
async def ask_model(ctx: Context) -> str:
    """Asks the caller's model."""
    message = {"role": "user", "content": {"type": "text", "text": "the capital of France?"}}
    answer = await ctx.sample({"messages": [message], "maxTokens": 10})
    return f"the model said {answer['content']['text']}"


@afoot.tool
async def list_folders(ctx: Context) -> list[str]:
    """Lists the caller's folders."""
    return [root["uri"] for root in await ctx.roots()]


@afoot.tool(requires={"sampling": {}})
async def needs_model() -> str:
    """Is offered only to callers that have a model."""
    return "has one"


@afoot.tool
async def fail(how: Literal["explained", "crash"], ctx: Context) -> str:
    """Fails in one of two ways, half way through."""
    ctx.report(5, 10, "half way")
    if how == "explained":
        raise ToolError.rate_limited("too many requests", retry_after=7.0)
    raise KeyError("a secret detail")


@afoot.tool
async def flood(n: int, tag: str, size: int, linger_on: bool = False, ctx: Context | None = None) -> str:
    """Makes n reports as fast as it can, notes how long that took, and may linger on."""
    began = time.perf_counter()
    for done in range(1, n + 1):
        if ctx:
            ctx.report(done, n, "x" * size)
        if not done % 100:
            await asyncio.sleep(0)  # others want the loop too
    mark(tag, f"{time.perf_counter() - began}")
    if linger_on and ctx:
        return await until_cancelled(tag, ctx)
    return f"reported {n}"


@afoot.tool
async def big(size: int, reports: bool = False, ctx: Context | None = None) -> str:
    """Answers with so many characters."""
    if reports and ctx:
        ctx.report(1, 2, "making it")
        await asyncio.sleep(0.1)
    return "x" * size


@afoot.tool
async def block(sleep_s: float) -> str:
    """Blocks the loop, as an async tool must not."""
    time.sleep(sleep_s)  # noqa: ASYNC251
    return "blocked"


@afoot.tool
async def report_nonsense(ctx: Context) -> str:
    """Reports numbers that are none, and numbers that fall."""
    for number in (5, float("nan"), 3, float("inf"), -1, "seven", 8, None, 7):
        ctx.report(cast(float, number), 10, f"said {number}")
        await asyncio.sleep(0.06)
    return "reported"


@afoot.tool
async def report_after_the_end(tag: str, ctx: Context) -> str:
    """Returns, and reports on after that."""

    async def on() -> None:
        for number in range(2, 6):
            await asyncio.sleep(0.05)
            ctx.report(number, 10, "late")
        mark(tag, "reported late")

    ctx.report(1, 10, "in time")
    _kept.append(asyncio.create_task(on()))
    await asyncio.sleep(0.01)
    return "returned"


@afoot.tool
async def return_rubbish() -> Any:
    """Returns what has no JSON."""
    return {"lock": object()}


@afoot.tool
async def chatter() -> str:
    """Prints to both streams, by Python and past it."""
    print("printed")
    print("printed to stderr", file=sys.stderr)
    os.write(1, b"written to descriptor 1\n")
    sys.stdout.flush()
    return "chattered"


@afoot.tool
def end_forked(number: str) -> bool:
    """Fork a process that would sleep, and end it by a signal."""
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    assert process.pid is not None
    os.kill(process.pid, signal.Signals[number])
    process.join(5)
    code = process.exitcode
    process.kill()
    return code is not None


@afoot.tool
async def leave() -> None:
    """Calls sys.exit."""
    sys.exit(3)


@afoot.tool
def leave_from_a_thread() -> None:
    """Calls sys.exit in a thread."""
    sys.exit(3)


RAISED: Final = {
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
    "GeneratorExit": GeneratorExit,
    "BaseException": BaseException,
    "CancelledError": asyncio.CancelledError,
}


async def raise_soon(what: str) -> None:
    """Raises it in a task of its own, say."""
    await asyncio.sleep(0.01)
    raise RAISED[what]("on purpose")


@afoot.tool
async def throw(what: str) -> None:
    """Raises what no tool should."""
    await raise_soon(what)


@afoot.tool
async def throw_in_task(what: str) -> None:
    """Raises it in a task that the tool started."""
    await asyncio.gather(raise_soon(what))


@afoot.tool(own_loop=True)
async def throw_in_task_of_own_loop(what: str) -> None:
    """Raises it in a task on a loop of its own."""
    await asyncio.gather(raise_soon(what))


@afoot.tool
def throw_in_thread(what: str) -> None:
    """Raises it in a thread."""
    raise RAISED[what]("on purpose")


@afoot.tool
async def never_stop(tag: str) -> str:
    """Swallows every cancel."""
    mark(tag, "started")
    while True:
        try:
            await asyncio.sleep(LONG_S)
        except asyncio.CancelledError:
            mark(tag, "cancelled")


@afoot.tool
async def never_stop_in_thread(tag: str) -> str:
    """Starts a thread of its own that does not end."""
    threading.Thread(target=time.sleep, args=(LONG_S,)).start()
    return await never_stop(tag)


@afoot.tool
async def never_stop_in_executor(tag: str) -> str:
    """Waits for a thread of the loop's own pool that does not end."""
    mark(tag, "started")
    await asyncio.to_thread(time.sleep, LONG_S)
    return "slept"
