"""Ends and cancels: who is told what and when, what is kept, and what is late."""

import asyncio

import pytest

from afoot.core.call import State
from afoot.core.facts import CancelRequested, Finished, Released, Reported
from afoot.core.ports import Report, Run
from afoot.engine.engine import Submission
from afoot.errors import Refused, UnknownName
from tests.engine.fake_engine import (
    called,
    engine_of,
    facts,
    over,
    partial_report,
    released,
    since,
    took,
)


async def hang(run: Run) -> str:
    """Waits until it is cancelled."""
    await asyncio.sleep(10_000)
    return "never"


async def test_a_timeout_really_ends_the_work() -> None:
    """C7: the task is cancelled at the limit, and the slot is free at once if it obeys."""
    ended: list[float] = []

    async def body(run: Run) -> str:
        try:
            return await hang(run)
        finally:
            ended.append(asyncio.get_running_loop().time())

    live = await called(body)
    assert ended == [30.0]
    assert released(live) == (30.0, "stopped")


async def test_the_slot_of_a_tool_that_does_not_stop_is_held_for_its_grace() -> None:
    """C7: the caller is told at the limit, the slot is free after the grace."""

    async def body(run: Run) -> str:
        await asyncio.sleep(0)
        return await deaf(run)

    async with engine_of(body, concurrency=1) as engine:
        first, second = engine.submit(Submission("tool")), engine.submit(Submission("tool"))
        await over(engine, first)
        assert (took(first), released(first)) == (30.0, (35.0, "grace"))
        assert second.call.started is not None and since(second, second.call.started) == 35.0
        engine.cancel(second, "operator", "enough")


async def deaf(run: Run) -> str:
    """Works for 100 s without a word, whatever anybody says."""
    sleep = asyncio.ensure_future(asyncio.sleep(100))
    while not sleep.done():
        try:
            await asyncio.shield(sleep)
        except asyncio.CancelledError:
            continue
    return "late but done"


async def test_late_reports_and_a_late_result_are_kept_and_marked_late() -> None:
    """C7: the caller's answer stands, the history has what came after it."""

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            run.report(7, 10, "cleaning up")
            await asyncio.sleep(2)
        return "late but done"

    live = await called(body)
    assert live.call.end and live.call.end.outcome == "timed_out"
    report, result = facts(live, Reported)
    assert report.late and (report.progress, report.message) == (7, "cleaning up")
    assert result.late and b"late but done" in bytes(result.partial)
    assert live.call.latest is None and live.call.partials == []


async def test_a_result_that_comes_after_the_grace_is_kept_too() -> None:
    """C7: late results are kept in the history, however late."""
    async with engine_of(deaf) as engine:
        live = engine.submit(Submission("tool"))
        await over(engine, live)
        await asyncio.sleep(100)
        entries = await engine.journal.facts(live.call.id)
    last = entries[-1].fact
    assert isinstance(last, Reported) and last.late and b"late but done" in bytes(last.partial)


async def test_a_late_result_right_after_a_late_report_is_not_dropped() -> None:
    """C7: only plain late reports are thinned out."""

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            for n in range(100):
                run.report(n, None, None)
            run.content(partial_report("half of it"))
        return "done"

    late = facts(await called(body), Reported)
    assert [fact.progress for fact in late[:-2]] == [0]  # a runaway tool fills no history
    assert b"half of it" in bytes(late[-2].partial) and b"done" in bytes(late[-1].partial)


async def test_a_cancel_waits_for_the_tool_so_that_its_partial_result_counts() -> None:
    """X1, X2: the reason reaches the tool, and what it returns then is recorded."""
    heard: list[str | None] = []

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            heard.append(run.cancelled)
            run.report(3, 10, "cleaned up")
            await asyncio.sleep(2)
        return "the first three"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(10)
        engine.cancel(live, "operator", "enough")
        assert live.call.state is State.CANCELLING
        await over(engine, live)
    end = live.call.end
    assert heard == ["enough"] and end and end.result and end.failure
    assert (end.outcome, end.failure.category, took(live)) == ("cancelled", "cancelled", 12.0)
    assert b"the first three" in bytes(end.result.content)
    assert end.failure.last and end.failure.last.message == "cleaned up"
    assert facts(live, CancelRequested)[0].reason == "enough"


async def test_a_cancel_that_the_tool_ignores_ends_with_the_grace() -> None:
    """X1: the caller waits for the grace and no longer."""
    async with engine_of(deaf) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, took(live)) == ("cancelled", 6.0)
    assert released(live) == (6.0, "grace")


async def test_a_cancel_in_the_same_breath_as_the_call_ends_it_at_once() -> None:
    """X1: the tool was never entered, so there is nothing to wait for."""
    async with engine_of(hang) as engine:
        live = engine.submit(Submission("tool"))
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, took(live)) == ("cancelled", 0.0)


async def test_a_cancel_of_a_call_that_has_just_begun_has_its_grace_and_no_more() -> None:
    """X1: the timer of the grace survives the first look at the clocks."""
    async with engine_of(deaf) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(0.01)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, took(live)) == ("cancelled", 5.01)


async def test_a_second_cancel_changes_nothing() -> None:
    """X1: the first reason stands, and a finished call cannot be cancelled."""
    async with engine_of(hang) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(live, "caller", "first")
        engine.cancel(live, "operator", "second")
        await over(engine, live)
        engine.cancel(live, "operator", "third")
    assert [fact.reason for fact in facts(live, CancelRequested)] == ["first"]


async def test_cancelling_a_call_that_waits_in_the_queue_ends_it_at_once() -> None:
    """X1, C8: it never ran, and its place is free."""
    async with engine_of(hang, concurrency=1, queue=1) as engine:
        engine.submit(Submission("tool"))
        waiting = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(waiting, "caller", "enough")
        await asyncio.sleep(0)
        assert waiting.call.end and waiting.call.end.outcome == "cancelled"
        assert waiting.call.end.failure and waiting.call.end.failure.side_effects == "none"
        third = engine.submit(Submission("tool"))
        assert third.call.state is State.QUEUED


async def test_leaving_the_engine_ends_every_call_with_a_reason() -> None:
    """X1: shutdown cancels; a tool that does not stop is given up after its grace."""
    async with engine_of(deaf, concurrency=1) as engine:
        running, waiting = engine.submit(Submission("tool")), engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        began = engine.clock.now()
    for live in (running, waiting):
        assert live.call.end and live.call.end.outcome == "cancelled" and live.call.end.failure
        assert "shutting down" in live.call.end.failure.message
    assert engine.clock.now() - began == pytest.approx(5.0, abs=0.1)
    with pytest.raises(Refused, match="shutting down"):
        engine.submit(Submission("tool"))


async def test_nothing_is_seen_after_the_release() -> None:
    """T4: a call that is over leaves the live index at once, its history stays."""
    async with engine_of(hang) as engine:
        live = engine.submit(Submission("tool", idle_s=1))
        assert live.call.id in engine and engine.calls() == [live]
        await over(engine, live)
        assert live.call.id not in engine and engine.calls() == []
        with pytest.raises(UnknownName):
            engine[live.call.id]
        recorded = [type(entry.fact) for entry in await engine.journal.facts(live.call.id)]
    assert recorded[-2:] == [Finished, Released]


async def test_a_report_of_numbers_alone_after_the_end_never_reaches_a_reading() -> None:
    """P4: nothing after the end."""

    async def body(run: Run) -> str:
        run.report(1, 2, None)
        loop = asyncio.get_running_loop()
        loop.call_later(5, run.report, 2, 2, "too late")
        loop.call_later(5, run.content, Report(message="much too late"))
        return "done"

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
        await asyncio.sleep(10)
    assert live.call.latest and (live.call.latest.progress, live.call.readings) == (1, 1)
