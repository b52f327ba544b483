"""Calls that are kept no longer go by themselves, while others run."""

import asyncio
from contextlib import suppress

import pytest
from msgspec import Raw

from afoot.config.settings import Settings
from afoot.config.tables import RetentionSettings
from afoot.core.ports import CallQuery, PurgeRule, Run
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import Claim
from afoot.engine.retention import DAY_S, LOOK_S, LiveCallIds, Retention, purge
from afoot.errors import StoreError
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Journalist, engine_of, kinds, over, works


async def ids(engine: Engine) -> list[str]:
    """The calls of the history, oldest first."""
    return [row.id for row in await engine.journal.find(CallQuery())][::-1]


async def called(engine: Engine, times: int) -> list[str]:
    """Calls that are over, a second between them."""
    found = list[str]()
    for _ in range(times):
        found.append((await over(engine, engine.submit(Submission("tool", Raw(b"{}"))))).call.id)
        await asyncio.sleep(1)
    return found


async def test_calls_go_by_their_age() -> None:
    """H6: those that ended longer ago than is set."""
    async with (
        engine_of(works) as engine,
        Retention(engine, lambda: Settings(retain=RetentionSettings(days=1.0))),
    ):
        old = await called(engine, 3)
        await asyncio.sleep(DAY_S / 2)
        new = await called(engine, 2)
        assert await ids(engine) == [*old, *new]
        await asyncio.sleep(DAY_S / 2 + LOOK_S)
        assert await ids(engine) == new


async def test_so_many_of_the_newest_stay_and_settings_may_change() -> None:
    """H6: what is set counts from the next look on."""
    retain = RetentionSettings()
    async with engine_of(works) as engine, Retention(engine, lambda: Settings(retain=retain)):
        made = await called(engine, 5)
        await asyncio.sleep(2 * LOOK_S)
        assert await ids(engine) == made
        retain = RetentionSettings(calls=2)
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
        found = list(
            Retention(engine, lambda: Settings(retain=RetentionSettings(days=1e-9, calls=1, bytes=1))).rules()
        )
        assert [one.spare for one in found] == [{live.call.id}] * 3
        assert await engine.journal.purge(PurgeRule(keep=0, spare=found[0].spare)) == 0


async def test_a_call_that_begins_while_a_purge_goes_on_is_spared_too() -> None:
    """H6: what lives is asked at each step; nothing may be written to a call that has gone."""

    async def stubborn(run: Run) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        await asyncio.sleep(2)
        return ""

    async with engine_of(stubborn) as engine:
        [rule] = Retention(engine, lambda: Settings(retain=RetentionSettings(calls=1, bytes=0))).rules()
        live = engine.submit(Submission("tool", ceiling_s=10))
        later = engine.submit(Submission("tool", ceiling_s=10))
        await asyncio.sleep(11)
        assert live.call.end is not None and live.call.id in engine
        assert await purge(engine.journal, rule) == 0
        await over(engine, later)
        assert await purge(engine.journal, rule) == 1
        assert await ids(engine) == [later.call.id]


async def test_a_call_of_which_facts_wait_in_memory_is_spared() -> None:
    """H6, H1: written once it has gone, they would be a call without a beginning."""

    async def stubborn(run: Run) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        await asyncio.sleep(2)
        return ""

    journal = Journalist()
    async with engine_of(stubborn, journal=journal) as engine:
        live = engine.submit(Submission("tool", ceiling_s=10))
        await asyncio.sleep(11)
        journal.failing = True
        await over(engine, live)
        assert (await kinds(journal, live.call.id))[-1] == "Finished" and engine.recorder.unrecorded
        rule = PurgeRule(keep=0, spare=LiveCallIds(engine))
        assert await purge(journal, rule) == 0
        assert engine.recorder.waiting() is engine.recorder.waiting(), "thousands are looked for in it"
        journal.failing = False
        await asyncio.sleep(2)
        assert engine.recorder.unrecorded == 0 and await purge(journal, rule) == 1
        assert await journal.since(0) == []


@pytest.mark.parametrize("claim", [Claim(task=True), Claim(key="k")], ids=["a task", "a key"])
@pytest.mark.parametrize(
    "retain", [RetentionSettings(days=0.01), RetentionSettings(calls=1)], ids=["by age", "by count"]
)
async def test_what_a_caller_may_still_ask_for_is_spared(claim: Claim, retain: RetentionSettings) -> None:
    """H6, H3, D2: until task_ttl_s after its end; else a key would have it run a second time."""
    settings = Settings(retain=retain, task_ttl_s=3600)
    async with engine_of(works) as engine, Retention(engine, lambda: settings):
        kept = (await over(engine, engine.submit(Submission("tool", claim=claim)))).call.id
        await called(engine, 2)
        await asyncio.sleep(1800)
        newest = await called(engine, 1)
        await asyncio.sleep(LOOK_S)
        assert await ids(engine) == [kept, *newest]
        await asyncio.sleep(1800)
        assert kept not in await ids(engine)


class Failing(MemoryJournal):
    """A journal from which nothing can be taken."""

    async def purge(self, rule: PurgeRule) -> int:
        """Refuse."""
        raise StoreError("the disk is full")


async def test_a_history_that_cannot_be_changed_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """H6: a bad day ends nothing."""
    journal = Failing()
    retain = Settings(retain=RetentionSettings(calls=1))
    async with engine_of(works, journal=journal) as engine, Retention(engine, lambda: retain):
        await called(engine, 2)
        await asyncio.sleep(2 * LOOK_S + 1)
    said = [one.message for one in caplog.records if "stay for now" in one.message]
    assert said == ["calls that are to go stay for now: the disk is full"] * 2


async def test_a_history_that_grows_fast_is_looked_at_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8: before, it could grow by any size for a minute."""
    journal = Journalist()
    monkeypatch.setattr(type(journal), "written_bytes", 0)
    looks = list[float]()
    async with engine_of(works, journal=journal) as engine:
        retention = Retention(engine, lambda: Settings(retain=RetentionSettings(bytes=1_600_000)))

        async def look() -> int:
            looks.append(asyncio.get_running_loop().time())
            return 0

        monkeypatch.setattr(retention, "purge", look)
        async with retention:
            await asyncio.sleep(10)
            monkeypatch.setattr(type(journal), "written_bytes", 100_000)
            await asyncio.sleep(2)
            assert len(looks) == 1
            await asyncio.sleep(LOOK_S + 1)
            assert len(looks) == 2
