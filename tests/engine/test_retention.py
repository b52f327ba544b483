"""Calls that are kept no longer go by themselves, while others run."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.ports import Purge, Query, Run
from afoot.engine.engine import Engine, Submission
from afoot.engine.retention import DAY_S, LOOK_S, Retention, rules
from afoot.errors import StoreError
from afoot.store.memory import MemoryJournal
from afoot.tables import Retain
from tests.engine.double import engine_of, over


async def works(run: Run) -> str:
    """A tool that does something."""
    return "done"


async def ids(engine: Engine) -> list[str]:
    """The calls of the history, oldest first."""
    return [row.id for row in await engine.journal.find(Query())][::-1]


async def called(engine: Engine, times: int) -> list[str]:
    """Calls that are over, a second between them."""
    found = list[str]()
    for _ in range(times):
        found.append((await over(engine, engine.submit(Submission("tool", Raw(b"{}"))))).call.id)
        await asyncio.sleep(1)
    return found


async def test_calls_go_by_their_age() -> None:
    """H6: those that ended longer ago than is set."""
    async with engine_of(works) as engine, Retention(engine, lambda: Retain(days=1.0)):
        old = await called(engine, 3)
        await asyncio.sleep(DAY_S / 2)
        new = await called(engine, 2)
        assert await ids(engine) == [*old, *new]
        await asyncio.sleep(DAY_S / 2 + LOOK_S)
        assert await ids(engine) == new


async def test_so_many_of_the_newest_stay_and_settings_may_change() -> None:
    """H6: what is set counts from the next look on."""
    retain = Retain()
    async with engine_of(works) as engine, Retention(engine, lambda: retain):
        made = await called(engine, 5)
        await asyncio.sleep(2 * LOOK_S)
        assert await ids(engine) == made
        retain = Retain(calls=2)
        await asyncio.sleep(LOOK_S)
        assert await ids(engine) == made[-2:]


async def test_a_call_that_lives_is_spared() -> None:
    """H6: also one whose end was told and whose tool runs on."""

    async def stubborn(run: Run) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(1000)
        return ""

    async with engine_of(stubborn) as engine:
        live = engine.submit(Submission("tool", ceiling_s=10))
        await asyncio.sleep(11)
        assert live.call.end is not None and live.call.id in engine
        found = list(rules(Retain(days=1e-9, calls=1, bytes=1), engine))
        assert [one.spare for one in found] == [{live.call.id}] * 3
        assert await engine.journal.purge(Purge(keep=0, spare=found[0].spare)) == 0


class Failing(MemoryJournal):
    """A journal from which nothing can be taken."""

    async def purge(self, rule: Purge) -> int:
        """Refuse."""
        raise StoreError("the disk is full")


async def test_a_history_that_cannot_be_changed_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """H6: a bad day ends nothing."""
    journal = Failing()
    async with engine_of(works, journal=journal) as engine, Retention(engine, lambda: Retain(calls=1)):
        await called(engine, 2)
        await asyncio.sleep(2 * LOOK_S + 1)
    said = [one.message for one in caplog.records if "stay for now" in one.message]
    assert said == ["calls that are to go stay for now: the disk is full"] * 2
