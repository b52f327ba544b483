"""The time of day jumps: while calls run, while the machine sleeps, and between two gateways."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from afoot.config.settings import Settings
from afoot.core.facts import (
    NOTHING,
    Admitted,
    Asked,
    Entry,
    Fact,
    Limits,
    Opened,
    Question,
    Reported,
    Started,
)
from afoot.core.ports import Batch, Run
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call, recover
from afoot.engine.retention import Retention
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, called, engine_of, form, over, since, took

HOURS = 6 * 3600.0
JUMPS = [pytest.param(HOURS, id="forward"), pytest.param(-HOURS, id="back")]
Jump = Callable[[float], None]


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Jump:
    """Sets the time of day on or back, as a person, a server of time or a sleep of the machine does."""
    real, ahead = time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: real() + ahead[0])

    def set_by(seconds: float) -> None:
        ahead[0] += seconds

    return set_by


async def walk(run: Run) -> str:
    """Reports every ten seconds, for a hundred."""
    for done in range(1, 11):
        await asyncio.sleep(10)
        run.report(done, 10, None)
    return "walked"


async def sit(run: Run) -> str:
    """Does nothing for a very long time."""
    await asyncio.sleep(1e6)
    return "sat"


async def ask(run: Run) -> str:
    """Asks, and waits."""
    await run.ask(form("sure"))
    return "answered"


def why(live: LiveCall) -> tuple[str, str]:
    """How a call ended, and by which clock."""
    assert live.call.end is not None
    failure = live.call.end.failure
    return live.call.end.outcome, failure.clock if failure and failure.clock else ""


@pytest.mark.parametrize("by", JUMPS)
@pytest.mark.parametrize(
    ("body", "limits", "end"),
    [
        (walk, Limits(idle_s=30, ceiling_s=300), (("ok", ""), 100.0)),
        (sit, Limits(idle_s=30, ceiling_s=300), (("timed_out", "idle"), 30.0)),
        (walk, Limits(idle_s=30, ceiling_s=45), (("timed_out", "ceiling"), 45.0)),
        (ask, Limits(answer_s=600), (("timed_out", "answer"), 600.0)),
    ],
    ids=["reports", "silence", "the ceiling", "a question"],
)
async def test_a_jump_ends_no_call_early_and_none_late(
    jump: Jump, by: float, body: Any, limits: Limits, end: object
) -> None:
    """C1, C6: limits are lengths, and no clock on the wall counts for them."""
    asyncio.get_running_loop().call_later(5, jump, by)
    live = await called(body, limits=limits)
    assert (why(live), took(live)) == end


@pytest.mark.parametrize("by", JUMPS)
async def test_calls_keep_their_order_over_a_jump(jump: Jump, by: float) -> None:
    """S3, H1: ids are never given twice, and those of one gateway lie in the order of their calls."""
    async with engine_of(walk) as engine:
        ids = []
        for turn in range(40):
            jump(by / 20 if turn % 3 else -by / 20)
            ids.append(engine.submit(Submission("tool")).call.id)
            await asyncio.sleep(0.01)
        assert ids == sorted(set(ids))


async def test_after_a_sleep_of_the_machine_the_history_has_the_time_of_day(jump: Jump) -> None:
    """H1: once no call lives; one that does must not notice."""
    async with engine_of(ask, limits=Limits(answer_s=60)) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(10)
        jump(HOURS)
        Retention(engine, Settings).follow_wall_clock()
        assert since(live, engine.clock.now()) == 10
        await over(engine, live)
        assert (why(live), took(live)) == (("timed_out", "answer"), 60)
        jump(60)  # as long as the call took, which the real clock has not seen
        Retention(engine, Settings).follow_wall_clock()
        later = engine.submit(Submission("tool"))
        assert later.call.opened.at - live.call.opened.at >= HOURS
        before = engine.clock.now()
        jump(-HOURS)
        engine.cancel(later, "operator", "enough")
        await over(engine, later)
        Retention(engine, Settings).follow_wall_clock()
        assert engine.clock.now() >= before  # it never goes back


# Between two gateways


def catalog(body: Any, **options: Any) -> Catalog:
    """What a gateway offers."""
    bench, found = Bench(), Catalog()
    bench.add(body, **options)
    found.put(bench)
    return found


async def begun(*facts: Fact) -> MemoryJournal:
    """The journal of a gateway that was killed."""
    journal = MemoryJournal()
    journal.write(Batch([Entry("c1", seq, fact) for seq, fact in enumerate(facts, 1)]))
    return journal


async def settled(journal: MemoryJournal, offered: Catalog) -> tuple[LiveCall, float]:
    """What becomes of the call at the next gateway, and after how many seconds."""
    async with Engine(journal, offered) as engine:
        began = engine.clock.now()
        await recover(engine)
        if "c1" in engine:
            await over(engine, engine["c1"])
        live = await load_call(engine, "c1")
        assert live.call.end is not None
        return live, round(live.call.end.at - began, 3)


def opened(at: float, limits: Limits) -> Opened:
    """A call that may be run again, of somebody who can come back."""
    return Opened(at, "tool", "bench", "operator", Raw(b"{}"), limits, True, True, digest="digest of tool")


AWAY = [*JUMPS, pytest.param(1.0, id="at once")]


@pytest.mark.parametrize("by", AWAY)
async def test_a_call_that_runs_again_has_its_time_and_no_more(by: float) -> None:
    """C1, H4: neither a clock that was set back nor the absence of a gateway is time of the call."""
    died, limits = time.time() - by, Limits(idle_s=None, ceiling_s=100)
    journal = await begun(opened(died - 41, limits), Started(died - 40), Reported(died - 10, 1, 3.0))
    live, after_s = await settled(journal, catalog(sit, limits=limits, idempotent=True))
    assert (why(live), after_s) == (("timed_out", "ceiling"), 70.0)  # that it ran for 30 is known
    assert live.call.attempt == 2


@pytest.mark.parametrize("by", AWAY)
async def test_a_second_death_is_no_time_of_the_call_either(by: float) -> None:
    """C1, H4: what was counted at the first stands in the history."""
    died, limits = time.time() - by, Limits(idle_s=None, ceiling_s=100)
    again = Started(died - 10, 2, why="the gateway died", spent_s=30.0)
    journal = await begun(opened(died - 9e5, limits), Started(died - 9e5), again, Reported(died, 2, 3.0))
    live, after_s = await settled(journal, catalog(sit, limits=limits, idempotent=True))
    assert (why(live), after_s) == (("timed_out", "ceiling"), 60.0)


@pytest.mark.parametrize("by", AWAY)
async def test_a_call_that_had_not_begun_waits_for_its_slot_anew(by: float) -> None:
    """C8, H4: in the queue of the next gateway, with that queue's whole time."""
    died = time.time() - by
    limits = Limits(queue_s=60, start_s=60, idle_s=None, ceiling_s=1e5)
    journal = await begun(opened(died, limits), Admitted(died, "starting it"))
    async with Engine(journal, catalog(sit, limits=limits, idempotent=True, concurrency=1)) as engine:
        first = engine.submit(Submission("tool"))
        await recover(engine)
        live = await over(engine, engine["c1"])
        waited_s = round(engine.clock.now() - first.call.opened.at)
        assert (why(live), waited_s) == (("failed", "queue"), 60)


async def test_a_question_waits_no_longer_because_a_clock_was_set_back() -> None:
    """C6, H4: at most for its limit from now on."""
    limits = Limits(answer_s=600)
    later = time.time() + HOURS
    asked = Asked(later, Question("c1.1", "sure", "form", "sure?", NOTHING))
    journal = await begun(opened(later, limits), Started(later), asked)
    live, after_s = await settled(journal, catalog(ask, limits=limits, idempotent=True))
    assert (why(live), after_s) == (("timed_out", "answer"), 600.0)
