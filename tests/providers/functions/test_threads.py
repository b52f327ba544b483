"""Threads and loops of their own."""

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from msgspec import Raw

from afoot.errors import ToolError
from afoot.providers.functions.context import Context
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.functions.tool import FunctionProvider, tool
from tests.providers.fake_run import ScriptedRun, call, decoded, text_of, until

colour: ContextVar[str] = ContextVar("colour", default="none")


class Blocking:
    """A sync tool that does not look at its context: it ends when the test says so."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.value: Any = "late"

    def __call__(self, ctx: Context) -> Any:
        ctx.report(1)
        self.go_on.wait(10)
        ctx.report(2)
        return self.value

    def provider(self, **settings: Any) -> FunctionProvider:
        def block(ctx: Context) -> Any:
            return self(ctx)

        return FunctionProvider([block], settings=FunctionSettings(**settings))


async def cancel(provider: FunctionProvider, run: ScriptedRun) -> "asyncio.Task[Any]":
    """Start a call and cancel it as soon as it runs."""
    task = asyncio.ensure_future(provider.prepare("block", Raw(b"{}"))(run))
    await until(lambda: run.readings)
    run.cancelled = "enough"
    task.cancel()
    return task


async def test_a_sync_tool_has_a_daemon_thread_of_its_own_with_the_callers_variables() -> None:
    """G4: named by the call, never the default executor."""

    def where() -> list[Any]:
        thread = threading.current_thread()
        return [thread.name, thread.daemon, colour.get()]

    colour.set("red")
    result = await call(where, run=ScriptedRun("c7"))
    assert decoded(result.structured) == {"result": ["afoot-tool-c7", True, "red"]}


async def test_a_cancelled_sync_tool_is_left_at_once_and_counted_until_it_ends() -> None:
    """C7, G4: the thread is told, and what it says later is kept."""
    tool_, run = Blocking(), ScriptedRun()
    provider = tool_.provider()
    with pytest.raises(asyncio.CancelledError):
        await (await cancel(provider, run))
    assert (provider.threads.running, provider.threads.stuck["block"]) == (1, 1)
    tool_.go_on.set()
    await until(lambda: not provider.threads.running)
    assert provider.threads.stuck == {}
    assert run.readings[-1][0] == 2
    assert decoded(run.contents[-1].partial) == [{"type": "text", "text": "late"}]


async def test_with_too_many_stuck_threads_a_tool_is_unavailable() -> None:
    """G4: eight by default; other tools go on."""
    tool_ = Blocking()
    provider = tool_.provider()
    for n in range(8):
        with pytest.raises(asyncio.CancelledError):
            await (await cancel(provider, ScriptedRun(f"c{n}")))
    with pytest.raises(ToolError, match="8 cancelled calls are still running") as caught:
        await provider.prepare("block", Raw(b"{}"))(ScriptedRun())
    assert (caught.value.category, caught.value.retryable) == ("unavailable", True)
    tool_.go_on.set()
    await until(lambda: not provider.threads.running)
    assert text_of(await provider.prepare("block", Raw(b"{}"))(ScriptedRun())) == "late"


async def test_a_cancelled_call_may_wait_for_its_thread() -> None:
    """X2: with `cancel_waits` what it returns counts; a second cancel ends the waiting."""
    tool_, run = Blocking(), ScriptedRun()
    provider = tool_.provider(cancel_waits=True)
    task = await cancel(provider, run)
    await asyncio.sleep(0)
    tool_.go_on.set()
    assert text_of(await task) == "late"
    tool_.go_on.clear()
    task = await cancel(provider, ScriptedRun("c2"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    tool_.go_on.set()
    await until(lambda: not provider.threads.running)


async def test_what_a_thread_raises_after_its_call_is_in_the_history() -> None:
    """C7, E3: nothing is swallowed."""
    run, go_on = ScriptedRun(), threading.Event()

    def block(ctx: Context) -> None:
        ctx.report()
        go_on.wait(10)
        raise ValueError("too late")

    provider = FunctionProvider([block])
    with pytest.raises(asyncio.CancelledError):
        await (await cancel(provider, run))
    go_on.set()
    await until(lambda: run.logs)
    assert run.logs == [("ended late: ValueError: too late", "error", "afoot")]


async def test_exceptions_of_every_kind_come_out_of_a_thread() -> None:
    """E3: also those that futures do not like."""

    def stops() -> None:
        raise StopIteration("odd")

    def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError):
        await call(stops)
    with pytest.raises(ToolError, match=r"exit\(3\)"):
        await call(leaves)


async def test_a_tool_with_its_own_loop_keeps_it_between_calls() -> None:
    """G4: one loop a tool, so that what it keeps goes on working."""
    loops: list[object] = []

    @tool(own_loop=True)
    async def mine(ctx: Context) -> str:
        loops.append(asyncio.get_running_loop())
        ctx.report(1)
        return threading.current_thread().name

    provider = FunctionProvider([mine])
    for n in range(2):
        run = ScriptedRun(f"c{n}")
        assert text_of(await provider.prepare("mine", Raw(b"{}"))(run)) == "afoot-loop-mine"
        assert run.readings == [(1, None, None)]
    assert loops[0] is loops[1] is not asyncio.get_running_loop()
    provider.close()


async def test_a_cancel_reaches_a_tool_on_its_own_loop_and_is_waited_for() -> None:
    """X1, X2: its clean-up is heard, and it may still return something."""

    @tool(own_loop=True)
    async def stubborn(ctx: Context) -> str:
        ctx.report(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ctx.report(message="cleaned")
        return f"so far; {ctx.cancelled}"

    provider, run = FunctionProvider([stubborn]), ScriptedRun()
    task = asyncio.ensure_future(provider.prepare("stubborn", Raw(b"{}"))(run))
    await until(lambda: run.readings)
    run.cancelled = "enough"
    task.cancel()
    assert text_of(await task) == "so far; enough"
    assert run.readings[-1][2] == "cleaned"
    provider.close()
