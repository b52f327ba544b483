"""The watchdog."""

import asyncio
import ctypes
import re
import threading
import time
from collections.abc import Callable

import pytest
from msgspec import Raw

from afoot.providers.functions.context import Context
from afoot.providers.functions.tool import FunctionProvider, tool
from afoot.providers.functions.watchdog import Watchdog
from tests.providers.fake_run import ScriptedRun, text_of, until


def hold(seconds: float) -> None:
    """Block whoever calls."""
    time.sleep(seconds)


async def run(provider: FunctionProvider, name: str, run: ScriptedRun | None = None) -> str:
    return text_of(await provider.prepare(name, Raw(b"{}"))(run or ScriptedRun()))


async def test_a_tool_that_blocks_the_loop_is_found_and_gets_one_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """G4: tool and stack are logged and recorded, and next time it blocks only itself."""

    @tool
    async def blocks() -> str:
        hold(0.35)
        return threading.current_thread().name

    @tool
    async def waits() -> str:
        await asyncio.sleep(0.35)
        return threading.current_thread().name

    with Watchdog(limit_s=0.15) as dog:
        provider, first = FunctionProvider([blocks, waits], watchdog=dog), ScriptedRun()
        here = threading.current_thread().name
        assert await asyncio.gather(run(provider, "blocks", first), run(provider, "waits")) == [here, here]
        assert dog.blocks == {"blocks": 1}
        assert await run(provider, "blocks") == "afoot-loop-blocks"
        assert dog.blocks == {"blocks": 1}
        assert await run(provider, "waits") == here
    assert "tool blocks blocks the loop" in caplog.text
    assert "hold(0.35)" in caplog.text
    await until(lambda: first.logs)
    assert "from now on it has a loop of its own" in first.logs[0][0]
    provider.close()


async def test_a_tool_that_keeps_the_interpreters_lock_is_found_too() -> None:
    """G4: though the watchdog could not run meanwhile."""
    text = "a" * 24

    @tool
    async def computes() -> str:
        began = time.monotonic()
        pattern = re.compile(r"(a+)+$")
        while time.monotonic() - began < 0.5:
            pattern.match(text + "b")
        return "done"

    with Watchdog(limit_s=0.15) as dog:
        await asyncio.sleep(0.1)  # it keeps watch already
        provider = FunctionProvider([computes], watchdog=dog)
        while not dog.blocks:  # one that gets little of a busy processor looks like a machine that slept
            await run(provider, "computes")
            await asyncio.sleep(0.1)
        assert dog.blocks == {"computes": 1}


def compute_with_lock() -> None:
    """Compute in C code that never gives up the interpreter's lock."""
    sum(range(30_000_000))


def wait_with_lock() -> None:
    """Wait in C code that never gives up the interpreter's lock."""
    ctypes.PyDLL(None).usleep(500_000)


@pytest.mark.parametrize("keep_lock", [compute_with_lock, wait_with_lock])
@pytest.mark.parametrize("own_loop", [False, True], ids=["thread", "own loop"])
async def test_a_tool_in_another_thread_that_keeps_the_lock_is_named(
    caplog: pytest.LogCaptureFixture, keep_lock: Callable[[], None], own_loop: bool
) -> None:
    """G4: in the log and in the history of its call, with the advice to isolate it."""

    @tool(name="keeps")
    def keeps_in_thread() -> str:
        keep_lock()
        return "done"

    @tool(name="keeps", own_loop=True)
    async def keeps_on_loop() -> str:
        keep_lock()
        return "done"

    with Watchdog(limit_s=0.15) as dog:
        provider = FunctionProvider([keeps_on_loop if own_loop else keeps_in_thread], watchdog=dog)
        runs: list[ScriptedRun] = []
        while not dog.locks:  # on a busy machine the watchdog cannot tell why it did not run
            runs.append(ScriptedRun())
            await run(provider, "keeps", runs[-1])
            await asyncio.sleep(0.1)
        await until(lambda: runs[-1].logs)
        assert dog.blocks == {}
    assert "tool keeps kept the interpreter's lock" in caplog.text and "isolate=True" in caplog.text
    assert "isolate=True" in runs[-1].logs[0][0]
    provider.close()


async def test_a_tool_that_wakes_the_watchdog_and_keeps_the_lock_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G4: also the first call after a long pause, which leaves the watchdog no time to look."""
    monkeypatch.setattr("afoot.providers.functions.watchdog._SLEEP_AFTER_S", 0.05)

    @tool
    def keeps() -> str:
        wait_with_lock()
        return "done"

    with Watchdog(limit_s=0.15) as dog:
        provider = FunctionProvider([keeps], watchdog=dog)
        for _ in range(20):
            await until(lambda: dog.is_asleep)
            await run(provider, "keeps")
            await asyncio.sleep(0.1)
            if dog.locks:
                break
        assert dog.locks == {"keeps": 1}


async def test_calls_that_wait_while_another_keeps_the_lock_are_not_named() -> None:
    """G4: the one that computes is."""

    @tool
    def waits() -> str:
        time.sleep(0.5)
        return "done"

    @tool
    def keeps() -> str:
        compute_with_lock()
        return "done"

    with Watchdog(limit_s=0.15) as dog:
        provider = FunctionProvider([waits, keeps], watchdog=dog)
        innocent: list[ScriptedRun] = []
        while not dog.locks:
            innocent.append(ScriptedRun())
            await asyncio.gather(run(provider, "waits", innocent[-1]), run(provider, "keeps"))
            await asyncio.sleep(0.1)
        assert set(dog.locks) == {"keeps"}
        assert not any(one.logs for one in innocent)


async def test_who_else_blocks_the_loop_is_not_held_against_a_tool() -> None:
    """G4: only the tool whose frame is there is moved."""

    @tool
    async def innocent(ctx: Context) -> str:
        ctx.report()
        await asyncio.sleep(0.5)
        return threading.current_thread().name

    with Watchdog(limit_s=0.15) as dog:
        provider, first = FunctionProvider([innocent], watchdog=dog), ScriptedRun()
        task = asyncio.create_task(run(provider, "innocent", first))
        await until(lambda: first.readings)
        hold(0.35)
        await task
        assert dog.blocks == {"": 1}
        assert await run(provider, "innocent") == threading.current_thread().name


async def test_a_busy_loop_that_comes_round_is_not_blocked() -> None:
    """G4: many short steps are no block."""

    @tool
    async def busy() -> str:
        until_then = time.monotonic() + 0.4
        for _ in iter(lambda: time.monotonic() < until_then, False):
            await asyncio.sleep(0)
        return "done"

    with Watchdog(limit_s=0.15) as dog:
        await run(FunctionProvider([busy], watchdog=dog), "busy")
        assert dog.blocks == {}


async def test_it_sleeps_without_tools_and_wakes_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """G4: it costs nothing when nothing runs."""
    monkeypatch.setattr("afoot.providers.functions.watchdog._SLEEP_AFTER_S", 0.05)

    @tool
    async def blocks() -> str:
        hold(0.35)
        return "done"

    with Watchdog(limit_s=0.15) as dog:
        await until(lambda: dog.is_asleep)
        await run(FunctionProvider([blocks], watchdog=dog), "blocks")
        assert dog.blocks == {"blocks": 1}


async def test_its_thread_ends_with_it() -> None:
    """G4: started and stopped explicitly."""

    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "afoot-watchdog"]

    await until(lambda: not threads())
    with Watchdog():
        assert len(threads()) == 1
    await until(lambda: not threads())
