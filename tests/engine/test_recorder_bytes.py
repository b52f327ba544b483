"""Bounds in bytes: the ring of an outage, a write with much behind it, backlogs and queues of watchers."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.fact_size import fact_bytes
from afoot.core.facts import Entry, Finished, Logged, Reported
from afoot.core.ports import Report, Run
from afoot.engine import live_call, recorder
from afoot.engine.engine import Submission
from afoot.engine.followers import MAX_QUEUED_BYTES, Watcher
from afoot.engine.recovery import load_call
from tests.engine.fake_engine import Journalist, content, engine_of, over, text

SIZE = 100_000


async def large(run: Run) -> object:
    """A tool with a large result."""
    return text("x" * SIZE)


async def test_the_ring_of_an_outage_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8: the oldest results are left out of it, and the history says so; their callers had them whole."""
    monkeypatch.setattr(recorder, "MAX_RING_BYTES", 5 * SIZE)
    journal = Journalist()
    async with engine_of(large, journal=journal) as engine:
        journal.failing = True
        lives = [await over(engine, engine.submit(Submission("tool"))) for _ in range(20)]
        assert all(live.call.end and fact_bytes(live.call.end) > SIZE for live in lives)
        kept = sum(fact_bytes(entry.fact) for entry in engine.recorder._ring.entries)
        assert kept <= 5 * SIZE
        journal.failing = False
        await asyncio.sleep(recorder.RETRY_S)
        first, last = [(await load_call(engine, live.call.id)).call.end for live in (lives[0], lives[-1])]
    assert first and first.result and first.result.is_error
    assert b"bytes were not kept: the history could not be written" in bytes(first.result.content)
    assert last and last.result and len(last.result.content) > SIZE


async def test_large_results_are_written_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8: encoding all of one loop pass at once would take as much memory again."""
    monkeypatch.setattr(recorder, "PIECE_BYTES", SIZE)
    journal = Journalist()
    async with engine_of(large, journal=journal) as engine:
        lives = [engine.submit(Submission("tool")) for _ in range(5)]
        for live in lives:
            await over(engine, live)
        await engine.recorder.recorded()
        assert journal.batches >= 5
        for live in lives:
            assert [entry.seq for entry in await journal.facts(live.call.id)] == [1, 2, 3, 4]


async def test_too_much_behind_a_slow_write_waits_in_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8: it is bounded there; the facts of each call are seen in order all the same."""
    monkeypatch.setattr(recorder, "MAX_RING_BYTES", 3 * SIZE)
    journal = Journalist()
    journal.delay_s = 1.5
    async with engine_of(large, journal=journal) as engine:
        first = engine.submit(Submission("tool"))
        await asyncio.sleep(0.1)
        lives = [engine.submit(Submission("tool")) for _ in range(10)]
        await asyncio.sleep(0.2)
        assert engine.recorder.degraded == f"over {3 * SIZE} bytes wait for a write"
        assert [entry.seq for entry in first.backlog] == [1, 2, 3, 4]
        journal.delay_s = 0.0
        await asyncio.sleep(5)
        assert engine.recorder.degraded is None
        for live in (first, *lives):
            assert [entry.seq for entry in await journal.facts(live.call.id)] == [1, 2, 3, 4]


async def test_the_backlog_of_a_call_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8: a tool that saves large checkpoints keeps the newest of them in memory, and not a thousand."""
    monkeypatch.setattr(live_call, "BACKLOG_BYTES", 3 * SIZE)

    async def body(run: Run) -> str:
        for _ in range(20):
            run.content(Report(checkpoint=content("x" * SIZE)))
            await asyncio.sleep(1)
        return "done"

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
        kept = [entry.fact for entry in live.backlog]
        assert sum(isinstance(fact, Reported) for fact in kept) <= 3
        assert any(isinstance(fact, Finished) for fact in kept)


async def test_a_watcher_that_lags_keeps_a_bound_in_bytes() -> None:
    """H8: results of all calls pass through it."""
    watcher = Watcher([], lambda: None)
    for number in range(40):
        watcher.on_fact(Entry("c", number, Reported(1.0, partial=Raw(b'"' + b"x" * 1_000_000 + b'"'))))
    kept = watcher.take()
    assert kept[-1].seq == 39 and 1 <= len(kept) <= MAX_QUEUED_BYTES // 1_000_000


async def test_a_tool_that_logs_too_much_leaves_a_marked_gap() -> None:
    """H8, G3: lines are left out beyond a rate, and counted where they would stand."""

    async def body(run: Run) -> str:
        for number in range(5_000):
            run.log(f"line {number}", "info", "")
        await asyncio.sleep(10)
        run.log("the last", "info", "")
        return "done"

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
        entries = await engine.journal.facts(live.call.id)
        lines = [entry.fact.text for entry in entries if isinstance(entry.fact, Logged)]
    kept = len(lines) - 2
    assert kept < 1_000
    assert lines[-2:] == [f"{5_000 - kept} lines were left out: the tool logs too many", "the last"]
