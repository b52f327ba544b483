"""The recorder: facts are recorded, then seen; and a journal that is away never stops a call."""

import asyncio
import logging

import pytest

from afoot.core.facts import Answer, Finished
from afoot.core.ports import CallQuery, Report, Run
from afoot.engine import recorder
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call
from afoot.errors import Refused
from tests.engine.fake_engine import (
    Body,
    Journalist,
    engine_of,
    form,
    kinds,
    over,
    seqs,
    since,
    took,
    watched,
)


def tool(seconds: float, contents: int = 0) -> Body:
    """A tool that takes so long and says so much."""

    async def body(run: Run) -> str:
        for n in range(contents):
            run.content(Report(n, message="content"))
            run.report(n, None, "said")
        await asyncio.sleep(seconds)
        return "done"

    return body


async def test_facts_of_one_pass_are_one_write() -> None:
    """H1: fifty calls that open together cost one commit."""
    journal = Journalist()
    async with engine_of(tool(1), journal=journal) as engine:
        lives = [engine.submit(Submission("tool")) for _ in range(50)]
        await asyncio.sleep(0.5)
        assert journal.batches == 1
        for live in lives:
            await over(engine, live)
        assert journal.batches <= 3


async def test_a_fact_is_seen_only_once_it_is_recorded() -> None:
    """H1: nothing acknowledged is lost when the process is killed."""
    journal = Journalist()
    journal.delay_s = 1.0
    async with engine_of(tool(0), journal=journal) as engine:
        live = engine.submit(Submission("tool"))
        items = await watched(engine, live, 20)
        assert await kinds(journal, live.call.id) == ["Opened", "Started", "Finished", "Released"]
        assert [type(item).__name__ for item in items] == await kinds(journal, live.call.id)
    assert not live.unrecorded and engine.recorder.degraded is None


async def test_with_write_ahead_a_tool_runs_only_once_that_is_recorded() -> None:
    """H1: durable = full."""
    journal = Journalist()
    journal.delay_s = 1.0
    began: list[float] = []

    async def body(run: Run) -> str:
        began.append(asyncio.get_running_loop().time())
        return "done"

    async with engine_of(body, journal=journal) as engine:
        engine.write_ahead = True
        await over(engine, engine.submit(Submission("tool")))
    assert began == [1.0]


async def degraded(engine: Engine, live: LiveCall) -> None:
    """What holds for a call that ran while the journal was away."""
    await over(engine, live)
    assert live.call.end and live.call.end.outcome == "ok"
    assert live.unrecorded


async def test_a_journal_that_fails_costs_the_history_and_not_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """H1: calls go on, facts wait in memory, and whoever looks is told."""
    journal = Journalist()
    async with engine_of(tool(1), journal=journal) as engine:
        journal.failing = True
        live = engine.submit(Submission("tool"))
        await degraded(engine, live)
        assert took(live) == 1.0
        assert engine.recorder.degraded == "the disk is full"
        assert engine.recorder.unrecorded == 4
        assert await kinds(journal, live.call.id) == []
        journal.failing = False
        await asyncio.sleep(1.1)
        assert (engine.recorder.degraded, engine.recorder.unrecorded) == (None, 0)
        assert await kinds(journal, live.call.id) == ["Opened", "Started", "Finished", "Released"]
    assert "history is degraded" in caplog.text and "4 facts were written from memory" in caplog.text


async def test_the_log_says_once_that_the_history_is_away(caplog: pytest.LogCaptureFixture) -> None:
    """H1: a minute of failing is one line, not sixty."""
    journal = Journalist()
    with caplog.at_level(logging.ERROR):
        async with engine_of(tool(1), journal=journal) as engine:
            journal.failing = True
            await over(engine, engine.submit(Submission("tool")))
            await asyncio.sleep(60)
            journal.failing = False
            await asyncio.sleep(2)
    assert caplog.text.count("history is degraded") == 1


async def test_a_slow_write_lets_the_calls_go_on_after_two_seconds() -> None:
    """H1: degraded by slowness; the write that was under way still counts."""
    journal = Journalist()
    async with engine_of(tool(1), journal=journal) as engine:
        journal.delay_s = 20.0
        live = engine.submit(Submission("tool"))
        await degraded(engine, live)
        assert engine.recorder.degraded and "over 2 s" in engine.recorder.degraded
        journal.delay_s = 0
        await asyncio.sleep(30)
        assert engine.recorder.degraded is None
        assert await kinds(journal, live.call.id) == ["Opened", "Started", "Finished", "Released"]


async def test_nobody_waits_for_a_history_that_is_away() -> None:
    """H1, P3: neither behind a write that hangs, nor while what waited in memory is written."""
    journal = Journalist()
    journal.delay_s = 100.0
    async with engine_of(tool(0), journal=journal) as engine:
        await over(engine, engine.submit(Submission("tool")))
        for later_s in (1, 150):  # then the history is being brought back
            await asyncio.sleep(later_s)
            async with asyncio.timeout(1):
                await engine.recorder.recorded()
            assert engine.recorder.degraded
        await asyncio.sleep(100)
        assert engine.recorder.degraded is None


async def test_who_waits_behind_a_write_is_told_when_it_is_done() -> None:
    """H1: once, and not before; though no other fact comes."""
    journal = Journalist()
    async with engine_of(tool(10), journal=journal) as engine:
        journal.delay_s = 1.0
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(0.5)
        await engine.recorder.recorded()
        assert since(live, engine.clock.now()) == 2.0  # the write under way, then its own
        assert engine.recorder.degraded is None


async def test_a_slow_write_that_fails_in_the_end_is_written_again_in_order() -> None:
    """H1: nothing is lost, nothing changes places."""
    journal = Journalist()
    async with engine_of(tool(1), journal=journal) as engine:
        journal.delay_s, journal.failing = 10.0, True
        live = engine.submit(Submission("tool"))
        await degraded(engine, live)
        journal.delay_s = 0
        await asyncio.sleep(10)
        journal.failing = False
        await asyncio.sleep(5)
        assert await kinds(journal, live.call.id) == ["Opened", "Started", "Finished", "Released"]
        assert seqs([entry for _, entry in await journal.since(0)]) == [1, 2, 3, 4]


async def test_a_call_whose_journal_came_back_is_recorded_to_its_end() -> None:
    """H1: facts before, during and after are contiguous."""
    journal = Journalist()

    async def body(run: Run) -> str:
        await run.ask(form("first"))
        await run.ask(form("second"))
        return "done"

    async with engine_of(body, journal=journal) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        journal.failing = True
        engine.answer(f"{live.call.id}.1", Answer("decline"))
        await asyncio.sleep(5)
        journal.failing = False
        await asyncio.sleep(5)
        engine.answer(f"{live.call.id}.2", Answer("decline"))
        await over(engine, live)
        assert seqs(await journal.facts(live.call.id)) == list(range(1, live.call.seq + 1))


async def test_the_ring_is_bounded_and_gives_up_whole_calls(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """H1: the oldest calls go first, and the gap is said."""
    monkeypatch.setattr(recorder, "MAX_RING_FACTS", 100)
    journal = Journalist()
    async with engine_of(tool(0, contents=36), journal=journal) as engine:
        journal.failing = True
        lives = [await over(engine, engine.submit(Submission("tool"))) for _ in range(5)]
        assert engine.recorder.unrecorded == 80
        journal.failing = False
        await asyncio.sleep(2)
        kept = [len(await journal.facts(live.call.id)) for live in lives]
        listed = {row.id for row in await journal.find(CallQuery())}
        assert not engine.recorder._forgotten
    assert kept == [0, 0, 0, 40, 40]
    assert listed == {live.call.id for live in lives[3:]}, "no line in the list for a call without facts"
    assert "the history has a gap: 3 calls" in caplog.text


async def test_a_call_that_fell_out_of_the_ring_leaves_no_fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: facts are contiguous in every store, so a call without a beginning has none at all."""
    monkeypatch.setattr(recorder, "MAX_RING_FACTS", 20)
    journal = Journalist()
    journal.failing = True
    async with engine_of(tool(10, contents=30), journal=journal) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(5)
        journal.failing = False
        await over(engine, live)
        await asyncio.sleep(5)
        assert await journal.facts(live.call.id) == []
        assert await journal.find(CallQuery()) == [] == await journal.samples(live.call.id)
        assert not engine.recorder._forgotten
    assert live.call.end and live.call.end.outcome == "ok"


async def test_the_end_of_a_call_that_had_begun_outlives_a_full_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """H1, U4: else the next gateway would take it for one that still runs, or run it a second time."""
    monkeypatch.setattr(recorder, "MAX_RING_FACTS", 20)
    journal = Journalist()
    async with engine_of(tool(10, contents=30), journal=journal) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        journal.failing = True
        await over(engine, live)
        for _ in range(10):
            await over(engine, engine.submit(Submission("tool")))
        journal.failing = False
        await asyncio.sleep(5)
        assert await journal.unfinished() == []
        assert (await kinds(journal, live.call.id))[-1] == "Finished"
        assert live.call.id in {row.id for row in await journal.find(CallQuery())}
        assert not engine.recorder._forgotten
        assert (await load_call(engine, live.call.id)).call.end == live.call.end


async def test_where_history_is_required_new_calls_are_refused() -> None:
    """H1: history = required."""
    journal = Journalist()
    async with engine_of(tool(1), journal=journal) as engine:
        engine.require_history = True
        journal.failing = True
        live = engine.submit(Submission("tool"))
        await over(engine, live)
        with pytest.raises(Refused, match="the disk is full") as caught:
            engine.submit(Submission("tool"))
        assert caught.value.retry_after == 5.0
        journal.failing = False
        await asyncio.sleep(2)
        await over(engine, engine.submit(Submission("tool")))


async def test_leaving_writes_what_waited_in_memory() -> None:
    """H1: a journal that came back just before the end gets everything."""
    journal = Journalist()
    async with engine_of(tool(1), journal=journal) as engine:
        journal.failing = True
        live = await over(engine, engine.submit(Submission("tool")))
        journal.failing = False
    assert await kinds(journal, live.call.id) == ["Opened", "Started", "Finished", "Released"]


async def test_leaving_waits_for_a_write_under_way() -> None:
    """H1: the last facts are recorded before the engine is gone."""
    journal = Journalist()
    async with engine_of(tool(100), journal=journal) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        journal.delay_s = 1.0
    assert await kinds(journal, live.call.id) == [
        "Opened",
        "Started",
        "CancelRequested",
        "Finished",
        "Released",
    ]
    assert isinstance((await journal.facts(live.call.id))[-2].fact, Finished)


class Broken(Journalist):
    """A journal with a bug."""

    def write(self, batch: object) -> None:
        raise ZeroDivisionError("a bug")


async def test_a_bug_in_the_journal_hangs_no_call(caplog: pytest.LogCaptureFixture) -> None:
    """P3, H1: whatever the journal raises, the caller gets its answer."""
    async with engine_of(tool(1), journal=Broken()) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
    assert live.unrecorded and "a bug" in caplog.text
