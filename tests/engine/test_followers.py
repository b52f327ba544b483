"""Somebody who watches everything."""

import asyncio

import pytest

from afoot.core.facts import Finished, Opened, Released
from afoot.core.ports import Run
from afoot.engine import followers
from afoot.engine.engine import Submission
from afoot.engine.followers import Watcher
from tests.engine.fake_engine import engine_of, over


async def short(run: Run) -> str:
    """Takes a second."""
    await asyncio.sleep(1)
    return "done"


async def test_a_watcher_sees_every_fact_of_every_call_once_and_in_order() -> None:
    """H2: no gap, no repeat."""
    async with engine_of(short) as engine:
        with Watcher(engine.watchers, lambda: None) as watcher:
            lives = [engine.submit(Submission("tool")) for _ in range(3)]
            await asyncio.sleep(0.5)
            first = watcher.take()
            for live in lives:
                await over(engine, live)
            second = watcher.take()
    for live in lives:
        mine = [entry for entry in first + second if entry.call == live.call.id]
        assert [entry.seq for entry in mine] == [1, 2, 3, 4]
        assert isinstance(mine[0].fact, Opened) and isinstance(mine[-1].fact, Released)
    assert not any(isinstance(entry.fact, Finished) for entry in first)


async def test_a_watcher_that_lags_keeps_the_newest_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: it delays nobody, and fills no memory."""
    monkeypatch.setattr(followers, "MAX_QUEUED_FACTS", 10)
    async with engine_of(short) as engine:
        with Watcher(engine.watchers, lambda: None) as watcher:
            for _ in range(4):
                await over(engine, engine.submit(Submission("tool")))
            kept = watcher.take()
            assert len(kept) == 10 and isinstance(kept[-1].fact, Released)
        assert engine.watchers == []
