"""Calls of a gateway that died, by what their callers can still find: queued again, run again, or ended."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.config.tables import LOCAL_SERVER
from afoot.core.facts import Answer, Asked, Entry, Fact, Finished, Opened, Reported, Started
from afoot.core.ports import Batch, Report, Run, RunnerStart
from afoot.engine.admission import Slots
from afoot.engine.approval.question import is_own_approval
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import Claim, LiveCall
from afoot.engine.questions import questions_open_at
from afoot.engine.recovery import load_call, recover
from afoot.errors import RunnerDied
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, content, engine_of, facts, form, over

FINDABLE = [
    pytest.param({"caller": "session:1"}, {}, id="a session"),
    pytest.param({"caller": "operator"}, {}, id="the operator"),
    pytest.param({"claim": Claim(key="k")}, {}, id="a key"),
    pytest.param({"claim": Claim(task=True)}, {}, id="a task"),
    pytest.param({}, {"on_disconnect": "detach"}, id="detached"),
]


async def step(run: Run) -> str:
    """Works in three steps, remembers each, and begins where the attempt before stopped."""
    done = int(bytes(run.resumed_from) or b"0")
    first = done
    while done < 3:
        await asyncio.sleep(1)
        done += 1
        run.content(Report(checkpoint=Raw(str(done).encode())))
    return f"from {first} attempt {run.attempt}"


async def died(body: Any = step, after_s: float = 1.5, want: Any = None, **options: Any) -> MemoryJournal:
    """The journal of a gateway that was killed so long after a call."""
    journal = MemoryJournal()
    async with engine_of(body, **options) as engine:
        live = engine.submit(Submission("tool", **(want or {})))
        await asyncio.sleep(after_s)
        journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    return journal


def catalog(body: Any = step, **options: Any) -> tuple[Bench, Catalog]:
    """What the next gateway offers."""
    bench, found = Bench(), Catalog()
    bench.add(body, **options)
    found.put(bench)
    return bench, found


async def settled(journal: MemoryJournal, body: Any = step, slots: int = 0, **options: Any) -> LiveCall:
    """What becomes of the one call."""
    [call] = await journal.unfinished()
    async with Engine(journal, catalog(body, **options)[1], Slots(slots)) as engine:
        await recover(engine)
        await asyncio.sleep(10)
        return await load_call(engine, call)


def words(live: LiveCall) -> str:
    """The text of its result."""
    assert live.call.end and live.call.end.result, live.call.end
    return bytes(live.call.end.result.content).decode()


@pytest.mark.parametrize(("want", "options"), FINDABLE)
@pytest.mark.parametrize("slots", [0, 1])
async def test_a_safe_call_is_run_again_from_its_checkpoint(want: Any, options: Any, slots: int) -> None:
    """H4, U4: for whoever can find it again; the history says why there is a second attempt."""
    journal = await died(want=want, idempotent=True, **options)
    live = await settled(journal, slots=slots, idempotent=True, **options)
    assert "from 1 attempt 2" in words(live)
    assert [fact.why for fact in facts(live, Started)] == ["", "the gateway died"]
    assert len(facts(live, Reported)) == 3


@pytest.mark.parametrize(("want", "options"), FINDABLE)
async def test_a_call_that_is_not_safe_is_not_run_again(want: Any, options: Any) -> None:
    """U4: uncertain, whoever looks for it."""
    live = await settled(await died(want=want, **options), **options)
    assert live.call.end and live.call.end.outcome == "uncertain" and live.call.attempt == 1


@pytest.mark.parametrize(("want", "options"), FINDABLE)
async def test_a_call_that_had_not_begun_is_queued_again(want: Any, options: Any) -> None:
    """U4, H4: whatever it does, as nothing was done."""
    journal = await died(want=want, after_s=0.1, starts=True, **options)
    entries = await journal.facts((await journal.unfinished())[0])
    queued = MemoryJournal()
    queued.write(Batch(entries=[one for one in entries if isinstance(one.fact, Opened)]))
    live = await settled(queued, **options)
    assert "from 0 attempt 1" in words(live)


@pytest.mark.parametrize("begun", [False, True])
async def test_a_plain_request_was_left_by_its_caller(begun: bool) -> None:
    """X1, D2: its connection broke, so nobody waits; whoever wants it calls again."""
    journal = MemoryJournal()
    opened = Opened(1.0, "tool", "bench", "local", Raw(b"{}"), idempotent=True, digest="digest of tool")
    told: list[Fact] = [opened]
    told += [Started(2.0)] if begun else []
    journal.write(Batch(entries=[Entry("c", seq, fact) for seq, fact in enumerate(told, 1)]))
    live = await settled(journal, idempotent=True)
    assert live.call.end and live.call.end.outcome == ("uncertain" if begun else "lost")


async def test_attempts_are_bounded_over_restarts_too() -> None:
    """U4: a call that kills its gateway each time is given up."""
    journal = await died(want={"caller": "session:1"}, after_s=0.5, idempotent=True)
    for _ in range(2):
        [call] = await journal.unfinished()
        after = MemoryJournal()
        async with Engine(journal, catalog(idempotent=True)[1]) as engine:
            await recover(engine)
            await asyncio.sleep(0.5)
            after.write(Batch(entries=await engine.journal.facts(call)))
        journal = after
    live = await settled(journal, idempotent=True)
    assert live.call.attempt == 3 and live.call.end and live.call.end.outcome == "uncertain"


async def test_what_it_runs_on_is_started_again_first() -> None:
    """C1, U4: as long as that takes, up to its limit; the silence before does not count."""
    journal = await died(want={"caller": "session:1"}, idempotent=True)
    [call] = await journal.unfinished()
    bench, found = catalog(idempotent=True, starts=True)
    bench.starting = lambda tool, caller: RunnerStart("starting it", lambda: asyncio.sleep(40))
    async with Engine(journal, found) as engine:
        await asyncio.sleep(100)
        await recover(engine)
        live = await over(engine, engine[call])
    assert "from 1 attempt 2" in words(live)


async def answers(run: Run) -> str:
    """Asks twice, and says what it was told."""
    told = [bytes((await run.ask(form(key))).content).decode() for key in ("first", "second")]
    return f"{told} attempt {run.attempt}"


async def test_answers_of_before_reach_the_tool_that_runs_again() -> None:
    """H4, Q1 h: nobody is asked twice, though all had been answered when the gateway died."""

    async def slow(run: Run) -> str:
        told = await answers(run)
        await asyncio.sleep(5)
        return told

    journal = MemoryJournal()
    async with engine_of(slow, idempotent=True) as engine:
        live = engine.submit(Submission("tool"))
        for number in (1, 2):
            await asyncio.sleep(1)
            engine.answer(f"{live.call.id}.{number}", Answer("accept", Raw(b'{"n":%d}' % number)))
        await asyncio.sleep(1)
        journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    after = await settled(journal, slow, idempotent=True)
    assert '{"n":1}' in words(after).replace("\\\\", "").replace('\\"', '"') and "attempt 2" in words(after)


RUN = Answer("accept", Raw(b'{"decision":"run"}'), "operator")


@pytest.mark.parametrize("answer_s", [1, 30], ids=["answered first", "back first"])
async def test_an_approval_waits_for_its_answer_and_for_a_tool_that_comes_back_later(answer_s: float) -> None:
    """H4, A1: as a page's does, which is there again only when its tab is; then it runs, once."""
    journal = await died(approval="ask", after_s=1, want={"can_ask": True})
    [call] = await journal.unfinished()
    async with Engine(journal, Catalog()) as engine:
        await recover(engine)
        live = engine[call]
        assert [is_own_approval(one) for one in live.call.open.values()] == [True]
        engine.clock.at(engine.clock.now() + answer_s, lambda: engine.answer(f"{call}.1", RUN))
        await asyncio.sleep(20)
        assert live.call.started is None and live.call.end is None
        bench = Bench()
        bench.add(step, approval="ask")
        engine.catalog.put(bench)
        await over(engine, live)
    assert "from 0 attempt 1" in words(live) and len(facts(live, Asked)) == 1
    assert live.call.approved == "user"


async def test_a_tool_that_comes_back_as_another_ends_its_call() -> None:
    """A4, U4: what was asked about is not what would run."""
    journal = await died(approval="ask", after_s=1, want={"can_ask": True})
    [call] = await journal.unfinished()
    async with Engine(journal, Catalog()) as engine:
        await recover(engine)
        live = engine[call]
        bench = Bench()
        bench.add(step, approval="ask", digest="another")
        engine.catalog.put(bench)
        await over(engine, live)
    assert live.call.end and live.call.end.outcome == "lost"


@pytest.mark.parametrize(
    ("how", "outcome"), [("cancel", "cancelled"), ("silence", "timed_out"), ("answer", "failed")]
)
async def test_a_tool_that_never_comes_back_ends_its_call_too(how: str, outcome: str) -> None:
    """C1, C6: by its clocks, or by whoever stops it."""
    journal = await died(approval="ask", after_s=1, want={"can_ask": True})
    [call] = await journal.unfinished()
    async with Engine(journal, Catalog()) as engine:
        await recover(engine)
        live = engine[call]
        await asyncio.sleep(1)
        if how == "cancel":
            engine.cancel(live, "operator", "enough")
        elif how == "answer":
            engine.answer(f"{call}.1", RUN)
        await over(engine, live)
    assert live.call.end and live.call.end.outcome == outcome
    assert [type(fact) for fact in facts(live, Finished)] == [Finished]


@pytest.mark.parametrize(
    ("said", "outcome", "why"),
    [
        (b'{"decision":"run"}', "failed", "tool tool is not served here any more"),
        (b'{"decision":"skip"}', "refused", "the user chose to skip it"),
    ],
)
async def test_a_function_that_is_served_no_more_ends_its_call_with_the_answer(
    said: bytes, outcome: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U4, A1: only this gateway could bring it back, so there is nothing to wait for."""
    monkeypatch.setattr(Bench, "name", LOCAL_SERVER)
    journal = await died(approval="ask", after_s=1, want={"can_ask": True})
    [call] = await journal.unfinished()
    async with Engine(journal, Catalog()) as engine:
        await recover(engine)
        live = engine[call]
        await asyncio.sleep(20)
        assert live.call.open and live.call.end is None
        engine.answer(f"{call}.1", Answer("accept", Raw(said), "operator"))
        answered = engine.clock.now()
        await over(engine, live)
        assert engine.clock.now() < answered + 1
    assert live.call.end and live.call.end.failure
    assert live.call.end.outcome == outcome and why in live.call.end.failure.message


async def test_partial_results_of_before_are_still_there() -> None:
    """P11, H4: an attempt that died leaves what it gave."""

    async def part(run: Run) -> str:
        run.content(Report(partial=content(f"part of {run.attempt}")))
        await asyncio.sleep(5)
        return "whole"

    journal = await died(part, want={"caller": "session:1"}, idempotent=True)
    live = await settled(journal, part, idempotent=True)
    assert [b"part of" in bytes(one) for one in live.call.partials] == [True, True]


async def test_what_a_dead_attempt_had_asked_is_known_to_the_next_gateway() -> None:
    """Q1 h, H4: its caller may bring the answer before the question is asked again."""

    async def asks(run: Run) -> str:
        if run.attempt == 1:
            asking = asyncio.ensure_future(run.ask(form("who")))
            await asyncio.sleep(1)
            asking.cancel()
            raise RunnerDied("its child process was killed")
        await asyncio.sleep(60)
        return "done"

    journal = await died(asks, 3, {"caller": "session:1"}, idempotent=True)
    live = await settled(journal, asks, idempotent=True)
    assert [question.key for question in questions_open_at(live, 1)] == ["who"] and not live.call.open


@pytest.mark.parametrize(("can_ask", "kind"), [(True, "form"), (False, "below")])
async def test_whether_its_caller_can_be_asked_survives_a_crash(can_ask: bool, kind: str) -> None:
    """Q1, H4: a child of the second attempt asks the caller of the first, or only the operator."""

    async def parent(run: Run) -> str:
        if run.attempt > 1:
            await run.call("child", Raw(b"{}"), 1.0)
        await asyncio.sleep(5)
        return "done"

    async def child(run: Run) -> str:
        await run.ask(form("sure"))
        return "asked"

    want = {"can_ask": can_ask, "caller": "session:1"}
    journal = await died(parent, want=want, idempotent=True)
    [call] = await journal.unfinished()
    bench, tools = catalog(parent, idempotent=True)
    bench.add(child, "child")
    tools.put(bench)
    async with Engine(journal, tools) as engine:
        await recover(engine)
        await asyncio.sleep(1)
        live = engine[call]
        assert [one.kind for one in live.call.open.values()] == [kind]
        engine.cancel(live, "operator", "enough")


def test_a_history_from_before_says_that_the_caller_cannot_be_asked() -> None:
    """D2: `can_ask` is new in `Opened`, and is left out where it is not so."""
    opened = Opened(1.0, "tool", "bench", "local", Raw(b"{}"))
    assert b"can_ask" not in json.encode(opened)
    assert json.decode(json.encode(opened), type=Opened).can_ask is False
    asked = json.decode(
        b'{"type":"opened","at":1.0,"tool":"t","server":"s","caller":"c","arguments":{},"can_ask":true}',
        type=Opened,
    )
    assert asked.can_ask
