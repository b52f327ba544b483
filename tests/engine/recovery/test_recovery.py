"""Calls of a gateway that died: what becomes of each, and what is told of it."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from afoot.core.facts import (
    Answer,
    Answered,
    Entry,
    Fact,
    Finished,
    Interrupted,
    Opened,
    Reading,
    Released,
    Sample,
    Started,
)
from afoot.core.ports import Batch, CallQuery, Run
from afoot.engine.admission import Slots
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call, recover
from afoot.errors import StoreError, UnknownName
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, engine_of, facts, form, over, seqs


async def asks(run: Run) -> str:
    """Asks twice, and says what it was told."""
    first = await run.ask(form("first"))
    second = await run.ask(form("second"))
    return f"{bytes(first.content).decode()} {bytes(second.content).decode()} attempt {run.attempt}"


async def died(*, answer: bool = False, **options: Any) -> tuple[MemoryJournal, str]:
    """A journal in the state in which a gateway left it when it was killed during a call."""
    journal = MemoryJournal()
    async with engine_of(asks, **options) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        if answer:
            engine.answer(f"{live.call.id}.1", Answer("accept", Raw(b'{"n":1}')))
            await asyncio.sleep(1)
        journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    return journal, live.call.id


def bench(**options: Any) -> Catalog:
    """What the next gateway offers."""
    provider, catalog = Bench(), Catalog()
    provider.add(asks, **options)
    catalog.put(provider)
    return catalog


def outcome(live: LiveCall) -> tuple[str, str, bool]:
    """How it ended, by which code, and whether it may be tried again."""
    assert live.call.end and live.call.end.failure
    return live.call.end.outcome, live.call.end.failure.code, live.call.end.failure.retryable


@pytest.mark.parametrize(
    ("read_only", "started", "told"),
    [
        (False, True, ("uncertain", "uncertain", False)),
        (True, True, ("lost", "lost", True)),
        (False, False, ("lost", "lost", True)),
    ],
)
@pytest.mark.parametrize("per_server", [0, 3])
async def test_a_call_that_ran_when_its_gateway_died_is_lost_or_uncertain(
    read_only: bool, started: bool, told: tuple[str, str, bool], per_server: int
) -> None:
    """U4, Q1 h: whether its effects may have happened is said; it had no slot to give back."""
    journal = MemoryJournal()
    opened = Opened(1.0, "tool", "bench", "local", Raw(b"{}"), read_only=read_only)
    begun: list[Fact] = [opened, Started(2.0)] if started else [opened]
    journal.write(Batch(entries=[Entry("c1", seq, fact) for seq, fact in enumerate(begun, 1)]))
    async with Engine(journal, bench(), Slots(per_server)) as engine:
        await recover(engine)
        await asyncio.sleep(0.1)
        live = await load_call(engine, "c1")
        assert outcome(live) == told and isinstance(live.backlog[-1].fact, Released)
        assert seqs(list(live.backlog)) == list(range(1, len(begun) + 4))
        assert isinstance(live.backlog[len(begun)].fact, Interrupted), "before anything else happened with it"
        assert await journal.unfinished() == [] and engine.calls() == []


async def test_a_call_that_died_with_its_gateway_tells_how_far_it_had_come() -> None:
    """E2, H4: readings are no facts, but their samples are remembered."""
    journal = MemoryJournal()
    begun: list[Fact] = [Opened(1.0, "tool", "bench", "local", Raw(b"{}")), Started(2.0)]
    entries = [Entry("c1", seq, fact) for seq, fact in enumerate(begun, 1)]
    journal.write(Batch(entries, [Sample("c1", 7, Reading(3.0, 7, 9, "page 7"))]))
    async with Engine(journal, bench(), Slots(0)) as engine:
        await recover(engine)
        await engine.recorder.recorded()
    assert (row := (await journal.find(CallQuery()))[0]) and (row.progress, row.total) == (7, 9)
    interrupted, end = [entry.fact for entry in (await journal.facts("c1"))[2:4]]
    assert isinstance(interrupted, Interrupted) and interrupted.spent_s == 1.0, "up to its last sign"
    assert isinstance(end, Finished) and end.failure and end.failure.last == Reading(3.0, 7, 9, "page 7")


async def test_a_parked_call_that_is_safe_waits_on_and_runs_again_with_its_answers() -> None:
    """Q1 h, Q4: the open question is open again, and what was answered is not asked twice."""
    journal, call = await died(answer=True, idempotent=True)
    async with Engine(journal, bench(idempotent=True)) as engine:
        await recover(engine)
        live = engine[call]
        assert [question.key for question in live.call.open.values()] == ["second"]
        await asyncio.sleep(100)
        engine.answer(f"{call}.2", Answer("accept", Raw(json.encode({"n": 2}))))
        await over(engine, live)
    assert live.call.end and live.call.end.result and live.call.attempt == 2
    told = json.decode(live.call.end.result.content)[0]["text"]
    assert told == '{"n":1} {"n":2} attempt 2'
    assert len(facts(live, Answered)) == 4  # asked and answered once more, by the record


async def test_a_parked_call_that_nobody_answers_ends_at_its_answer_limit() -> None:
    """C6, Q1 b: the limit counts from the question, also over a restart; there is no slot to give back."""
    journal, call = await died(idempotent=True, concurrency=1)
    async with Engine(journal, bench(idempotent=True, concurrency=1)) as engine:
        await recover(engine)
        live = await over(engine, engine[call])
    assert outcome(live)[:2] == ("timed_out", "answer_limit")


@pytest.mark.parametrize("options", [{}, {"idempotent": True}], ids=["not safe", "another tool now"])
async def test_a_parked_call_that_cannot_run_again_ends(options: dict[str, bool]) -> None:
    """U4: not safe to repeat, or its tool is gone."""
    journal, call = await died(**options)
    async with Engine(journal, bench(**options) if not options else Catalog()) as engine:
        await recover(engine)
        await asyncio.sleep(0.1)
        live = await load_call(engine, call)
    assert outcome(live)[0] == "uncertain"


async def test_a_cancelled_parked_call_ends_at_once() -> None:
    """X1: nothing runs, so nothing is waited for."""
    journal, call = await died(idempotent=True)
    async with Engine(journal, bench(idempotent=True)) as engine:
        await recover(engine)
        live = engine[call]
        engine.cancel(live, "operator", "enough")
        assert live.call.end and live.call.end.outcome == "cancelled"


async def test_a_finished_call_is_remembered_from_the_journal() -> None:
    """H1, T4: its history stays."""

    async def body(run: Run) -> str:
        return "done"

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
        again = await load_call(engine, live.call.id)
        assert again is not live and again.call.end == live.call.end
        with pytest.raises(UnknownName, match="unknown call 'nothing'"):
            await load_call(engine, "nothing")


class Damaged(MemoryJournal):
    """A journal with a call that cannot be read."""

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        """Refuse one of them."""
        if call == "bad":
            raise StoreError("a fact in it cannot be read")
        return await super().facts(call, after)


async def test_a_call_that_cannot_be_read_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """H4: the gateway starts, says so, and settles the rest, also what was below that call."""
    journal = Damaged()
    opened = Opened(1.0, "tool", "bench", "local", Raw(b"{}"))
    for name, first in {
        "bad": opened, "below": replace(opened, parent="bad"), "strange": Started(1.0), "good": opened
    }.items():  # fmt: skip
        journal.write(Batch([Entry(name, 1, first)]))
        journal._live.setdefault(name, 1.0)
    async with Engine(journal, bench()) as engine:
        await recover(engine)
        await engine.recorder.recorded()
        for name in ("good", "below"):
            assert (await load_call(engine, name)).call.end is not None
    said = [one.getMessage() for one in caplog.records if "cannot be read" in one.getMessage()]
    assert [line.split()[1] for line in said] == ["bad", "strange"]


async def test_a_finished_call_is_left_alone() -> None:
    """H1: recovery writes nothing to it."""
    journal = MemoryJournal()

    async def body(run: Run) -> str:
        return "done"

    async with engine_of(body, journal=journal) as engine:
        await over(engine, engine.submit(Submission("tool")))
    before = journal.position
    async with Engine(journal, bench()) as engine:
        await recover(engine)
    assert journal.position == before
