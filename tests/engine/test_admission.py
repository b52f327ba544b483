"""What lies between a call's opening and its start: hooks, a slot, and what it runs on; on the fake clock."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.call import Call, State
from afoot.core.facts import Admitted, Amended, Finished
from afoot.core.notices import notice
from afoot.core.ports import Run, RunnerStart, Tool
from afoot.engine.engine import Submission
from afoot.engine.live_call import LiveCall
from afoot.errors import RunnerDied, ToolError
from tests.engine.fake_engine import Bench, facts, kinds, offering, over, since, took

Said = Callable[[Call], Awaitable[Raw | None]]


class Hook:
    """One who has a say before calls start."""

    def __init__(self, said: Said) -> None:
        self._said = said

    async def before(self, call: Call, tool: Tool) -> Raw | None:
        return await self._said(call)


async def silent(run: Run) -> str:
    """Says nothing for twenty seconds."""
    await asyncio.sleep(20)
    return "done"


def bench(start_s: float = 0.0, error: Exception | None = None, **options: Any) -> Bench:
    """A server that takes so long to start, and may fail."""
    made = Bench()
    made.add(silent, starts=start_s > 0 or error is not None, **options)

    async def done() -> None:
        await asyncio.sleep(start_s)
        if error is not None:
            raise error

    if start_s or error is not None:
        made.starting = lambda tool, caller: RunnerStart(f"starting server files for {caller}", done)
    return made


def told(live: LiveCall) -> tuple[str, str, str]:
    """How it ended, and why: outcome, category, code."""
    assert live.call.end is not None
    failure = live.call.end.failure
    return (live.call.end.outcome, failure.category, failure.code) if failure else ("ok", "", "")


async def test_what_a_tool_runs_on_is_started_first_and_that_is_visible() -> None:
    """C1: starting a server is part of queued, and the engine says what it waits for."""
    async with offering(bench(start_s=25)) as engine:
        live = engine.submit(Submission("tool", caller="me"))
        await asyncio.sleep(10)
        assert live.call.state is State.QUEUED and live.call.admitted is not None
        assert notice(live.call, engine.clock.now()).message == "starting server files for me, 10 s"
        await over(engine, live)
        names = ["Opened", "Admitted", "Started", "Finished", "Released"]
        assert await kinds(engine.journal, live.call.id) == names
    assert told(live) == ("ok", "", "") and took(live) == 45.0


async def test_a_start_has_a_limit_of_its_own_that_its_text_names() -> None:
    """C1: start_limit_s, ending as unavailable and retryable; what was being started is given up."""
    async with offering(bench(start_s=1000)) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
    end = live.call.end
    assert end and end.failure and (took(live), live.call.started) == (60.0, None)
    assert told(live) == ("failed", "unavailable", "start_limit")
    assert (end.failure.clock, end.failure.retryable, end.failure.side_effects) == ("start", True, "none")
    assert "60 s" in end.failure.message and "start_limit_s" in end.failure.message
    assert len(facts(live, Finished)) == 1


async def test_the_limit_of_a_start_counts_from_the_slot_and_the_clocks_from_the_start() -> None:
    """C1, C8: 45 s in the queue and 25 s of starting are each within its limit, and off the idle clock."""
    async with offering(bench(start_s=25, concurrency=1)) as engine:
        first, second = engine.submit(Submission("tool")), engine.submit(Submission("tool"))
        await over(engine, first)
        await over(engine, second)
    assert since(second, facts(second, Admitted)[0].at) == 45.0
    assert (told(second)[0], took(second), second.call.spent_s) == ("ok", 90.0, 20.0)


async def test_a_start_that_fails_ends_the_call_with_what_it_said() -> None:
    """U4: nothing ran."""
    error = ToolError.unavailable("server files exited with 1", code="start_failed")
    async with offering(bench(error=error)) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
    assert told(live) == ("failed", "unavailable", "start_failed") and live.call.started is None


async def test_a_server_that_dies_while_it_starts_is_no_crash_of_the_tool() -> None:
    """U4, E3: the caller is told that it could not be started."""
    async with offering(bench(error=RunnerDied("server files was killed", began=False))) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
    assert told(live)[:2] == ("failed", "unavailable") and live.call.started is None
    assert live.call.end and live.call.end.failure
    assert "server files was killed" in live.call.end.failure.message and not live.call.end.failure.trace


async def test_where_everything_is_up_nothing_is_admitted_apart() -> None:
    """C1: a server that runs costs no fact."""
    made = bench()
    made.add(silent, starts=True)
    async with offering(made) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
    assert not facts(live, Admitted) and told(live)[0] == "ok"


async def test_a_call_can_be_cancelled_while_its_server_starts() -> None:
    """X1: the start is given up at once, and the slot is free."""
    async with offering(bench(start_s=50, concurrency=1)) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(10)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
        assert (told(live)[0], took(live), live.call.started) == ("cancelled", 10.0, None)
        assert not engine.slots.holders


async def test_a_hook_may_change_the_arguments_and_the_history_says_so() -> None:
    """K1, H1: the tool gets what the hook made of them; what the caller sent stays on record."""

    async def said(call: Call) -> Raw | None:
        return Raw(b'{"n":2}')

    made = bench()
    async with offering(made) as engine:
        engine.hooks = Hook(said)
        live = await over(engine, engine.submit(Submission("tool", Raw(b'{"n":1}'))))
    assert made.prepared == [b'{"n":1}', b'{"n":2}']
    [amended] = facts(live, Amended)
    assert (bytes(amended.arguments), amended.by) == (b'{"n":2}', "hook")
    assert bytes(live.call.arguments) == b'{"n":2}' and bytes(live.call.opened.arguments) == b'{"n":1}'


async def test_a_hook_that_says_nothing_leaves_no_trace() -> None:
    """K1: the call runs as it was asked for."""

    async def said(call: Call) -> Raw | None:
        return None

    async with offering(bench()) as engine:
        engine.hooks = Hook(said)
        live = await over(engine, engine.submit(Submission("tool")))
    assert not facts(live, Amended) and told(live)[0] == "ok"


async def test_a_hook_that_refuses_ends_the_call_as_refused() -> None:
    """K1: nothing ran, and the caller is told why."""

    async def said(call: Call) -> Raw | None:
        raise ToolError.refused("not on Sundays")

    async with offering(bench()) as engine:
        engine.hooks = Hook(said)
        live = await over(engine, engine.submit(Submission("tool")))
    assert told(live) == ("refused", "refused", "refused") and live.call.started is None
    assert live.call.end and live.call.end.failure and live.call.end.failure.message == "not on Sundays"


@pytest.mark.parametrize(("word", "message"), [(b"broken", "arguments.broken"), (b"crash", "crashed")])
async def test_what_a_hook_makes_of_the_arguments_is_checked_again(word: bytes, message: str) -> None:
    """E4, K1: what does not fit never reaches the tool, and is not put down to the caller."""

    async def said(call: Call) -> Raw | None:
        return Raw(b'{"%s":1}' % word)

    async with offering(bench()) as engine:
        engine.hooks = Hook(said)
        live = await over(engine, engine.submit(Submission("tool")))
    end = live.call.end
    assert end and end.failure and (end.outcome, live.call.started) == ("failed", None)
    assert message in end.failure.message
    assert "hook" in end.failure.message or end.failure.trace


async def test_a_hook_that_crashes_ends_the_call_with_a_clean_line() -> None:
    """E3: the trace is for the history."""

    async def said(call: Call) -> Raw | None:
        raise ValueError("boom")

    async with offering(bench()) as engine:
        engine.hooks = Hook(said)
        live = await over(engine, engine.submit(Submission("tool")))
    assert live.call.end and live.call.end.failure and live.call.end.outcome == "failed"
    assert "ValueError: boom" in live.call.end.failure.trace


async def test_the_time_of_hooks_counts_as_time_in_the_queue() -> None:
    """C1, K1: a hook that never answers ends the call at the queue's limit, and is itself ended."""
    ended = list[str]()

    async def said(call: Call) -> Raw | None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(call.id)
        return None

    async with offering(bench()) as engine:
        engine.hooks = Hook(said)
        live = await over(engine, engine.submit(Submission("tool")))
        assert ended == [live.call.id]
    assert (told(live), took(live)) == (("failed", "unavailable", "queue_limit"), 60.0)


async def test_a_call_can_be_cancelled_while_a_hook_thinks() -> None:
    """X1: the hook is ended, and the call is told to have been cancelled."""

    async def said(call: Call) -> Raw | None:
        await asyncio.sleep(1000)
        return None

    async with offering(bench()) as engine:
        engine.hooks = Hook(said)
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(5)
        engine.cancel(live, "operator", "enough")
        await over(engine, live)
    assert (told(live)[0], took(live)) == ("cancelled", 5.0)


async def test_hooks_come_before_the_slot_and_the_slot_before_the_start() -> None:
    """C8: a call that a hook holds up takes no slot, and one without a slot starts no server."""
    starts, made = list[float](), bench(concurrency=1)
    made.add(silent, starts=True, concurrency=1)

    async def said(call: Call) -> Raw | None:
        await asyncio.sleep(5)
        return Raw(b"{}")

    async def done() -> None:
        starts.append(asyncio.get_running_loop().time())

    async with offering(made) as engine:
        began = asyncio.get_running_loop().time()
        made.starting = lambda tool, caller: RunnerStart("starting", done)
        engine.hooks = Hook(said)
        lives = [engine.submit(Submission("tool")) for _ in range(2)]
        await asyncio.sleep(1)
        assert not engine.slots.holders
        for live in lives:
            await over(engine, live)
        names = ["Opened", "Amended", "Admitted", "Started", "Finished", "Released"]
        assert await kinds(engine.journal, lives[1].call.id) == names
    assert [at - began for at in starts] == [5.0, 25.0]
