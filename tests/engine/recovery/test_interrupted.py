"""A call of a dead gateway that the next one finds: `Interrupted` comes first, and the state is of facts."""

import asyncio
import time
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.call import APPROVAL, Call, State, evolve, fold
from afoot.core.facts import (
    Admitted,
    Asked,
    CancelRequested,
    Entry,
    Fact,
    Hindered,
    Interrupted,
    Opened,
    Question,
    Reading,
    Reported,
    Sample,
    Started,
)
from afoot.core.ports import Batch, Run, RunnerStart
from afoot.core.rules import decide
from afoot.engine.engine import Engine
from afoot.engine.recovery import recover
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, form, offering, over

T = float(int(time.time()) - 60)  # a minute ago; whole, so that differences are exact
OPENED = Opened(T + 1, "tool", "bench", "operator", Raw(b"{}"), idempotent=True, digest="digest of tool")
FORM = Asked(T + 5, Question("c.1", "who", "form", "Who?"))
READINGS = ("latest", "readings", "cpu_s")  # no facts tell of these

LEFT = [
    pytest.param([], State.QUEUED, 0.0, id="queued"),
    pytest.param([Admitted(T + 2, "starting it")], State.QUEUED, 0.0, id="being started"),
    pytest.param([Started(T + 2), Reported(T + 4, data=Raw(b"1"))], State.QUEUED, 2.0, id="running"),
    pytest.param([Started(T + 2), Hindered(T + 3, "its tab is hidden")], State.QUEUED, 0.0, id="hindered"),
    pytest.param([Started(T + 2), FORM], State.QUEUED, 3.0, id="waiting for an answer"),
    pytest.param(
        [Started(T + 2), Started(T + 3, 2), Reported(T + 4, 2)], State.QUEUED, 2.0, id="second attempt"
    ),
    pytest.param(
        [Started(T + 2), CancelRequested(T + 4, "caller", "enough")], State.CANCELLING, 0.0, id="cancelling"
    ),
]


async def works(run: Run) -> str:
    """A tool that takes its time."""
    await asyncio.sleep(5)
    return f"attempt {run.attempt}"


async def asks(run: Run) -> str:
    """A tool that asks before it works."""
    await run.ask(form("who"))
    return await works(run)


def left(*told: Fact, samples: list[Sample] | None = None) -> MemoryJournal:
    """The history of a gateway that was killed with one call."""
    journal = MemoryJournal()
    journal.write(Batch([Entry("c", seq, fact) for seq, fact in enumerate(told, 1)], samples or []))
    return journal


def next_gateway(journal: MemoryJournal, body: Any = works, **options: Any) -> Any:
    """The engine of the gateway that finds it; its one slot is taken."""
    bench = Bench()
    bench.add(body, idempotent=True, starts=True, **options)
    bench.starting = lambda tool, caller: RunnerStart("starting it again", lambda: asyncio.sleep(20))
    return offering(bench, journal=journal)


async def recorded(engine: Engine) -> list[Fact]:
    """The facts that the journal has of the call."""
    await engine.recorder.recorded()
    return [entry.fact for entry in await engine.journal.facts("c")]


def assert_same(call: Call, folded: Call) -> None:
    """Field by field; readings are no facts."""
    for name in Call.__struct_fields__:
        if name not in READINGS:
            assert getattr(folded, name) == getattr(call, name), name


@pytest.mark.parametrize(("told", "state", "spent_s"), LEFT)
async def test_interrupted_comes_first_and_says_how_long_the_call_had_run(
    told: list[Fact], state: State, spent_s: float
) -> None:
    """C1, H4, U4: whatever the call did when its gateway died."""
    async with next_gateway(left(OPENED, *told)) as engine:
        found = engine.clock.now()
        await recover(engine)
        facts = await recorded(engine)
        before = len(told) + 1
        assert facts[before] == Interrupted(found, spent_s)
        assert fold("c", facts[: before + 1]).state is state


@pytest.mark.parametrize(("told", "state", "spent_s"), LEFT)
async def test_the_live_call_is_the_fold_of_its_facts_at_every_moment_after_a_crash(
    told: list[Fact], state: State, spent_s: float
) -> None:
    """H1: nothing but facts has changed it, and all of them replay through the rules."""
    async with next_gateway(left(OPENED, *told), asks if FORM in told else works) as engine:
        await recover(engine)
        live = engine["c"]
        for _ in range(4):
            await asyncio.sleep(7)
            assert_same(live.call, fold("c", await recorded(engine)))
        if live.call.end is None and not live.call.open:
            await over(engine, live)
        again = Call("c", OPENED)
        for fact in (await recorded(engine))[1:]:
            assert decide(again, fact) == (fact,)
            evolve(again, fact)
        assert_same(live.call, again)


async def test_a_second_crash_is_a_second_fact() -> None:
    """U4, C1: each gateway that finds the call writes one; a call in the queue has its whole limit again."""
    journal = left(OPENED, Interrupted(T + 3))
    async with next_gateway(journal) as engine:
        await recover(engine)
        facts = await recorded(engine)
        assert [type(fact) for fact in facts[:3]] == [Opened, Interrupted, Interrupted]
        live = await over(engine, engine["c"])
    assert live.call.end and live.call.end.outcome == "ok"


async def test_the_last_reading_is_a_sign_of_life() -> None:
    """C1: a reading is no fact, but its sample counts for the seconds that the call had run."""
    journal = left(OPENED, Started(T + 2), samples=[Sample("c", 7, Reading(T + 9.5, 7, 9))])
    async with next_gateway(journal) as engine:
        await recover(engine)
        [interrupted] = [fact for fact in await recorded(engine) if isinstance(fact, Interrupted)]
        assert interrupted.spent_s == 7.5
        live = engine["c"]
        assert (live.call.readings, live.call.latest) == (7, Reading(T + 9.5, 7, 9))


async def test_a_call_that_waits_for_approval_has_the_fact_too() -> None:
    """H4, A1: a clock that was set back meanwhile gives nobody more time, and the facts say so."""
    opened = Opened(T + 1, "tool", "bench", "operator", Raw(b"{}"), digest="digest of tool", approval="ask")
    async with next_gateway(left(opened), approval="ask") as engine:
        ahead = engine.clock.now() + 5000
    journal = left(opened, Asked(ahead, Question("c.1", APPROVAL, "approval")))
    async with next_gateway(journal, approval="ask") as engine:
        await recover(engine)
        live = engine["c"]
        assert live.call.asked_at["c.1"] <= engine.clock.now()
        assert_same(live.call, fold("c", await recorded(engine)))
