"""What a caller may use, and what it is told when it has used it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw

from afoot.config.settings import Settings
from afoot.config.tables import QuotaSettings
from afoot.core.call import State
from afoot.core.facts import Finished
from afoot.core.ports import Run
from afoot.engine import quota
from afoot.engine.engine import Engine, Submission
from afoot.errors import OverQuota
from tests.engine.fake_engine import Bench, Body, facts, offering, over, works


async def rests(run: Run) -> str:
    """A tool that takes ten seconds."""
    await asyncio.sleep(10)
    return "done"


@asynccontextmanager
async def bound(body: Body = works, who: str = "*", **limits: Any) -> AsyncIterator[Engine]:
    """An engine whose callers have a quota."""
    bench = Bench()
    bench.add(body)
    async with offering(bench) as engine:
        engine.apply_settings(Settings(quota={who: QuotaSettings(**limits)}))
        engine.catalog.renew()
        yield engine


def call(caller: str = "local") -> Submission:
    """A call of this caller."""
    return Submission("tool", Raw(b"{}"), caller)


def refused(engine: Engine, caller: str = "local") -> OverQuota:
    """The refusal that this caller gets."""
    with pytest.raises(OverQuota) as caught:
        engine.submit(call(caller))
    return caught.value


async def test_so_many_calls_in_a_while_and_then_it_is_told_when() -> None:
    """G2: the oldest makes room; each caller has its own."""
    async with bound(calls=2, per_s=10) as engine:
        await over(engine, engine.submit(call()))
        await asyncio.sleep(4)
        await over(engine, engine.submit(call()))
        await asyncio.sleep(1)
        error = refused(engine)
        assert error.retry_after == pytest.approx(5.0)
        assert str(error) == "local is over its quota: 2 calls in 10 s; try again in 5 s"
        await over(engine, engine.submit(call("session:1")))
        await asyncio.sleep(error.retry_after or 0)
        await over(engine, engine.submit(call()))
        assert refused(engine).retry_after == pytest.approx(4.0)


async def test_what_was_refused_is_counted_and_uses_nothing() -> None:
    """G2: whoever asks too often does not wait the longer for it."""
    async with bound(calls=1, per_s=10) as engine:
        await over(engine, engine.submit(call()))
        for _ in range(3):
            refused(engine)
        assert engine.quota is not None and engine.quota.used["local"].refused == 3
        assert engine.calls() == []
        await asyncio.sleep(10)
        await over(engine, engine.submit(call()))


async def test_so_many_calls_at_once() -> None:
    """G2: one more is refused, until one has ended."""
    async with bound(rests, concurrent=2) as engine:
        first, _ = engine.submit(call()), engine.submit(call())
        error = refused(engine)
        assert error.retry_after == 1.0 and "2 calls at once" in str(error)
        engine.submit(call("other"))
        engine.cancel(first, "caller", "enough")
        await over(engine, first)
        engine.submit(call())


async def test_more_at_once_may_wait_in_the_queue_instead() -> None:
    """G2, C8: a limit per caller; waiting is a visible state."""
    async with bound(rests, concurrency=1) as engine:
        first, second = engine.submit(call()), engine.submit(call())
        other = engine.submit(call("other"))
        await asyncio.sleep(1)
        assert (first.call.state, second.call.state, other.call.state) == (
            State.RUNNING, State.QUEUED, State.RUNNING
        )  # fmt: skip
        await over(engine, first)
        await over(engine, second)
        assert second.call.end is not None and second.call.end.outcome == "ok"
        assert second.call.end.at - first.call.opened.at == pytest.approx(20.0)


async def test_processor_time_counts_when_it_is_known() -> None:
    """G2, G1: what calls in processes of their own have used."""

    async def burns(run: Run) -> str:
        run.spent(3.0)
        return "done"

    async with bound(burns, cpu_s=5.0, per_s=60) as engine:
        live = await over(engine, engine.submit(call()))
        assert facts(live, Finished)[0].cpu_s == 3.0
        await asyncio.sleep(10)
        await over(engine, engine.submit(call()))
        error = refused(engine)
        assert error.retry_after == pytest.approx(50.0)
        assert "5 s of processor time in 60 s" in str(error)
        await asyncio.sleep(51)
        await over(engine, engine.submit(call()))


async def test_what_a_call_calls_is_paid_for() -> None:
    """G2, P8: a tree is one call of its caller."""
    bench = Bench()

    async def above(run: Run) -> str:
        for _ in range(5):
            await run.call("tool", Raw(b"{}"), 1.0)
        return "done"

    bench.add(works)
    bench.add(above, "above")
    async with offering(bench) as engine:
        engine.apply_settings(Settings(quota={"*": QuotaSettings(calls=1, concurrent=1)}))
        engine.catalog.renew()
        live = await over(engine, engine.submit(Submission("above", Raw(b"{}"))))
        assert live.call.end is not None and live.call.end.outcome == "ok"
        refused(engine)


@pytest.mark.parametrize(
    ("caller", "limit"), [("local", 1), ("session:1", 2), ("connect:1", 3), ("operator", None)]
)
async def test_the_name_goes_before_patterns_and_the_operator_is_free(caller: str, limit: int | None) -> None:
    """G2: the first pattern that fits; only its own name binds the operator."""
    tables = {
        "session:*": QuotaSettings(calls=2),
        "*": QuotaSettings(calls=3),
        "local": QuotaSettings(calls=1),
    }
    bench = Bench()
    bench.add(works)
    async with offering(bench) as engine:
        engine.apply_settings(Settings(quota=tables))
        for _ in range(limit or 5):
            await over(engine, engine.submit(call(caller)))
        if limit is not None:
            refused(engine, caller)


async def test_other_settings_forget_nothing_that_was_used() -> None:
    """G2: a reload is no way round; without quotas all may."""
    async with bound(calls=2, per_s=10) as engine:
        await over(engine, engine.submit(call()))
        engine.apply_settings(Settings(quota={"*": QuotaSettings(calls=1, per_s=10, cpu_s=1.0)}))
        refused(engine)
        watchers = len(engine.watchers)
        engine.apply_settings(Settings())
        await over(engine, engine.submit(call()))
        assert len(engine.watchers) == watchers - 1 and engine.quota is None


async def test_calls_that_a_caller_puts_below_its_own_count_as_any() -> None:
    """G2, C8, P8: what it says of its calls is no way round its limits."""
    async with bound(rests, concurrent=2, concurrency=1) as engine:
        first = engine.submit(call())
        second = engine.submit(Submission("tool", parent=first.call.id))
        assert second.parent is first and second.call.state is State.QUEUED
        with pytest.raises(OverQuota):
            engine.submit(Submission("tool", parent=first.call.id))


async def test_limits_that_come_and_go_lose_no_slot() -> None:
    """C8: a call gives back what it took, whatever the limits are by then; who waits for nothing goes on."""
    bench = Bench()
    bench.add(rests, concurrency=5)
    tables = {"*": QuotaSettings(concurrency=1)}
    async with offering(bench) as engine:
        before = engine.submit(call())
        await asyncio.sleep(5)
        engine.apply_settings(Settings(quota=tables))
        first, second, third = (engine.submit(call()) for _ in range(3))
        await asyncio.sleep(1)
        assert [one.call.state for one in (first, second, third)] == [
            State.RUNNING, State.QUEUED, State.QUEUED
        ]  # fmt: skip
        await over(engine, before)
        engine.apply_settings(Settings())
        await asyncio.sleep(0.1)
        assert second.call.state is third.call.state is State.RUNNING
        for one in (first, second, third):
            assert (await over(engine, one)).call.end is not None
        assert not engine.slots.holders
        engine.apply_settings(Settings(quota=tables))
        again = engine.submit(call())
        assert again.call.state is State.RUNNING


async def test_what_was_refused_last_is_remembered() -> None:
    """G2: when, and over what; the words are for people, also where it takes long."""
    async with bound(calls=1, per_s=1_000_000) as engine:
        await over(engine, engine.submit(call()))
        await asyncio.sleep(0.5)
        assert str(refused(engine)).endswith("1 calls in 1000000 s; try again in 1000000 s")
        assert engine.quota is not None
        used = engine.quota.used["local"]
        assert used.last is not None and used.refused == 1
        assert (used.last.at, used.last.limit) == (engine.clock.now(), "1 calls in 1000000 s")


async def test_how_many_were_refused_only_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    """G2, V3: whoever is forgotten meanwhile, and whatever becomes of the quotas."""
    monkeypatch.setattr(quota, "MAX_CALLERS", 2)
    tables = {"*": QuotaSettings(calls=1, per_s=10)}
    async with bound(calls=1, per_s=10) as engine:
        for caller in ("token:a", "token:b", "token:c"):
            await over(engine, engine.submit(call(caller)))
            refused(engine, caller)
        assert engine.quota is not None and set(engine.quota.used) == {"token:b", "token:c"}
        assert engine.quota_refusals.total() == 3
        engine.apply_settings(Settings())
        assert engine.quota is None and engine.quota_refusals.total() == 3
        engine.apply_settings(Settings(quota=tables))
        await over(engine, engine.submit(call()))
        refused(engine)
        assert engine.quota_refusals.total() == 4


async def test_nobody_puts_calls_below_those_of_others() -> None:
    """S3, P8: neither while they run, nor in what is kept."""
    async with bound(rests, calls=9) as engine:
        theirs = engine.submit(call("token:ada"))
        mine = engine.submit(Submission("tool", caller="token:eve", parent=theirs.call.id))
        assert mine.parent is None and mine.call.opened.parent is None
        far = engine.submit(Submission("tool", caller="token:eve", parent="of another gateway"))
        assert far.call.opened.parent == "of another gateway"


class Unread(deque[tuple[float, float]]):
    """What was spent, which nobody may go through."""

    def __iter__(self) -> Iterator[tuple[float, float]]:
        raise AssertionError("it is gone through for a call")


async def test_how_much_was_spent_is_not_summed_up_for_every_call() -> None:
    """G2: a caller with a long while behind it holds up nobody; what is forgotten is not counted."""
    async with bound(cpu_s=5.0, per_s=60) as engine:
        assert engine.quota is not None
        used = engine.quota.used["local"] = quota.QuotaUsage(cpu=Unread())
        for _ in range(40):
            used.spend(engine.clock.now(), 0.1)
            await over(engine, engine.submit(call()))
        assert used.cpu_s == pytest.approx(4.0)
        await asyncio.sleep(61)
        await over(engine, engine.submit(call()))
        assert (used.cpu_s, len(used.cpu)) == (0.0, 0)


def test_refusals_are_counted_by_caller_and_of_many_callers_together() -> None:
    """G2, V3: callers without end make no metrics without end."""
    counted = quota.RefusalCounts()
    for number in range(quota.MAX_NAMED_CALLERS + 5):
        counted.add(f"session:{number}")
    counted.add("session:0")
    assert (counted["session:0"], counted[quota.OTHER]) == (2, 5)
    assert len(counted) == quota.MAX_NAMED_CALLERS + 1 and counted.total() == quota.MAX_NAMED_CALLERS + 6
