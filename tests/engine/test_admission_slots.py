"""How many calls run at once, who waits, and what a full queue says."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.call import State
from afoot.core.ports import Run, Tool
from afoot.engine.admission import Slots
from afoot.engine.engine import Engine, Submission
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, engine_of, over, took


async def ten(run: Run) -> str:
    """Takes ten seconds."""
    await asyncio.sleep(10)
    return "done"


async def test_a_tool_runs_at_most_so_many_calls_at_once_in_the_order_they_came() -> None:
    """C8: waiting is a visible state, and the next starts when a slot is free."""
    async with engine_of(ten, concurrency=2) as engine:
        lives = [engine.submit(Submission("tool")) for _ in range(5)]
        assert [live.call.state for live in lives] == [State.RUNNING] * 2 + [State.QUEUED] * 3
        for live in lives:
            await over(engine, live)
    assert [took(live) for live in lives] == [10.0, 10.0, 20.0, 20.0, 30.0]


async def test_a_server_has_a_limit_over_all_its_tools() -> None:
    """C8: a limit per server."""
    bench = Bench()
    bench.add(ten, "one")
    bench.add(ten, "two")
    async with Engine(MemoryJournal(), slots=Slots(per_server=1)) as engine:
        engine.catalog.put(bench)
        one, two = engine.submit(Submission("one")), engine.submit(Submission("two"))
        assert (one.call.state, two.call.state) == (State.RUNNING, State.QUEUED)
        await over(engine, two)
    assert took(two) == 20.0


async def test_the_slots_of_all_servers_add_up_where_each_has_a_limit() -> None:
    """C8, V6: the console says of how many; a server without a limit can run any number."""

    def offer(server: str, concurrency: int = 0, server_concurrency: int = 0) -> Tool:
        return Tool(
            "tool", server, Raw(b"{}"), concurrency=concurrency, server_concurrency=server_concurrency
        )

    bounded = offer("web", server_concurrency=8)
    both = [offer("files", concurrency=3), offer("files", concurrency=2)]
    assert Slots().most_at_once([bounded, *both]) == 13
    assert Slots().most_at_once([bounded, *both, offer("files")]) is None, "one of its tools has no limit"
    assert Slots(per_server=4).most_at_once([bounded, *both, offer("files")]) == 12
    assert Slots().most_at_once([]) is None
    slots = Slots()
    slots.on_workers = {"files": 2}
    assert slots.most_at_once([*both, offer("files")]) == 2


async def test_a_tool_that_waits_does_not_hold_up_another() -> None:
    """C8: the line is one, the limits are each tool's own."""
    bench = Bench()
    bench.add(ten, "narrow", concurrency=1)
    bench.add(ten, "wide", concurrency=5)
    async with Engine(MemoryJournal()) as engine:
        engine.catalog.put(bench)
        lives = [engine.submit(Submission(name)) for name in ("narrow", "narrow", "wide")]
        assert [live.call.state for live in lives] == [State.RUNNING, State.QUEUED, State.RUNNING]


async def test_a_full_queue_is_an_answer() -> None:
    """C8: over the bound a call fails at once, unavailable and retryable, without having run."""
    async with engine_of(ten, concurrency=1, queue=2) as engine:
        lives = [engine.submit(Submission("tool")) for _ in range(4)]
        await asyncio.sleep(0)
        end = lives[3].call.end
        assert end and end.failure and end.failure.side_effects == "none"
        assert (end.outcome, end.failure.category, end.failure.retryable) == ("failed", "unavailable", True)
        assert "queue of tool tool is full (2 calls)" in end.failure.message
        assert [live.call.state for live in lives[:3]] == [State.RUNNING, State.QUEUED, State.QUEUED]


async def test_waiting_too_long_for_a_slot_ends_as_unavailable_and_retryable() -> None:
    """C1, C8: the queue has a limit of its own, off the idle clock."""

    async def busy(run: Run) -> str:
        for _ in range(20):
            await asyncio.sleep(10)
            run.alive()
        return "done"

    async with engine_of(busy, concurrency=1) as engine:
        engine.submit(Submission("tool"))
        waiting = engine.submit(Submission("tool"))
        await over(engine, waiting)
    end = waiting.call.end
    assert end and end.failure and took(waiting) == 60.0
    assert (end.outcome, end.failure.category, end.failure.retryable) == ("failed", "unavailable", True)
    assert (end.failure.clock, waiting.call.started) == ("queue", None)
    assert "60 s" in end.failure.message and "queue_limit_s" in end.failure.message


async def test_calls_that_gave_up_waiting_leave_their_place_in_the_queue() -> None:
    """C8: a queue full of the dead would refuse the living."""
    async with engine_of(ten, concurrency=1, queue=1) as engine:
        engine.submit(Submission("tool"))
        for _ in range(3):
            waiting = engine.submit(Submission("tool"))
            assert waiting.call.state is State.QUEUED
            engine.cancel(waiting, "caller", "never mind")


async def test_a_slot_comes_back_however_a_call_ends() -> None:
    """C8: crash, cancel and timeout give it back, and nothing is given twice."""

    async def body(run: Run) -> str:
        if run.attempt and asyncio.get_running_loop().time() < 1:
            raise ValueError("boom")
        await asyncio.sleep(100)
        return "done"

    async with engine_of(body, concurrency=1) as engine:
        crashed = await over(engine, engine.submit(Submission("tool")))
        await asyncio.sleep(2)
        late = await over(engine, engine.submit(Submission("tool")))
        cancelled = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(cancelled, "caller", "enough")
        await over(engine, cancelled)
        lives = [engine.submit(Submission("tool")) for _ in range(2)]
        assert [live.call.state for live in lives] == [State.RUNNING, State.QUEUED]
    outcomes = [live.call.end.outcome for live in (crashed, late, cancelled) if live.call.end]
    assert outcomes == ["failed", "timed_out", "cancelled"]


@pytest.mark.parametrize("number", [2, 50])
async def test_calls_in_parallel_never_mix(number: int) -> None:
    """C8: every reading, fact and result is its own call's."""

    async def body(run: Run) -> str:
        for n in range(5):
            await asyncio.sleep(1)
            run.report(n, None, run.id)
            run.log(run.id, "info", "")
        return run.id

    async with engine_of(body, concurrency=7) as engine:
        lives = [engine.submit(Submission("tool")) for _ in range(number)]
        for live in lives:
            await over(engine, live)
            assert live.call.latest and live.call.latest.message == live.call.id
            assert live.call.end and live.call.end.result
            assert live.call.id.encode() in bytes(live.call.end.result.content)
            assert {entry.call for entry in live.backlog} == {live.call.id}
            assert [entry.seq for entry in live.backlog] == list(range(1, live.call.seq + 1))


async def test_callers_take_turns() -> None:
    """C8: one with many calls in line does not keep another waiting for all of them; each keeps its order."""
    async with engine_of(ten, concurrency=2) as engine:
        many = [engine.submit(Submission("tool", caller="many")) for _ in range(6)]
        single = [engine.submit(Submission("tool", caller="single")) for _ in range(2)]
        for live in (*many, *single):
            await over(engine, live)
    assert [took(live) for live in single] == [20.0, 30.0]
    assert [took(live) for live in many] == [10.0, 10.0, 20.0, 30.0, 40.0, 40.0]


async def test_callers_take_turns_at_the_only_slot() -> None:
    """C8: also where nobody has a slot when the next is given: it goes to who had no turn for longest."""
    async with engine_of(ten, concurrency=1) as engine:
        many = [engine.submit(Submission("tool", caller="many")) for _ in range(3)]
        other = [engine.submit(Submission("tool", caller="other")) for _ in range(2)]
        single = engine.submit(Submission("tool", caller="single"))
        for live in (*many, *other, single):
            await over(engine, live)
    assert [took(live) for live in many] == [10.0, 20.0, 50.0]
    assert [took(live) for live in other] == [30.0, 60.0] and took(single) == 40.0
