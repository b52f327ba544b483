"""A tool whose definition changes before it runs: it is judged, and asked about, as what will really run."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.call import State
from afoot.core.facts import Answer, Asked, Entry, Limits, Opened, Redefined, Started
from afoot.core.ports import Batch, Run, RunnerStart
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.engine.approval.question import why_asked
from afoot.engine.engine import Engine, Submission
from afoot.engine.questions import questions_open_at
from afoot.engine.recovery import recover
from afoot.errors import AlreadyAnswered, RunnerDied
from afoot.store.memory import MemoryJournal
from tests.engine.approval.reviewers import ASKS, asked, says, settled, told
from tests.engine.fake_engine import Bench, facts, offering, over, works

NEWER = "another digest"


async def newer(run: Run) -> str:
    """The tool as its server has it now."""
    return "done as the newer one"


@asynccontextmanager
async def reviewed(bench: Bench, **options: Any) -> AsyncIterator[Engine]:
    """An engine with an operator who is there."""
    async with offering(bench, **options) as engine:
        engine.policy = ApprovalPolicy()
        engine.policy.seen = engine.clock.now()
        yield engine


def change_at_start(bench: Bench, engine: Engine, **options: Any) -> None:
    """The server of the tool is down, and has another definition of it once it is up."""

    def starting(tool: str, caller: str) -> RunnerStart | None:
        return RunnerStart("starting server files", up) if bench.tools()[0].digest != NEWER else None

    async def up() -> None:
        change(bench, engine, **options)

    bench.starting = starting


def change(bench: Bench, engine: Engine, **options: Any) -> None:
    """The tool has another definition from now on."""
    bench.add(newer, digest=NEWER, starts=True, **options)
    engine.catalog.put(bench)


async def test_a_tool_that_became_destructive_while_its_server_was_down_is_asked_about() -> None:
    """A7: the definition that was remembered needed no approval; the one that will run does."""
    bench = Bench()
    bench.add(works, starts=True)
    async with reviewed(bench) as engine:
        change_at_start(bench, engine, destructive=True)
        live = engine.submit(ASKS)
        question = live.call.questions[await asked(live)]
        assert live.call.state is State.QUEUED and live.call.approved == "none"
        assert why_asked(question) == "its definition has changed since it was called"
        await settled(engine, live, says("run"))
        assert live.call.end and live.call.end.result
        assert b"the newer one" in bytes(live.call.end.result.content)
        assert live.call.approved == "caller" and bench.prepared[-1] == b'{"path": "/"}'
    order = [type(entry.fact) for entry in live.backlog]
    assert order.index(Redefined) < order.index(Asked) < order.index(Started)


async def test_a_tool_that_was_allowed_as_something_else_is_asked_about() -> None:
    """A4, A7: the allowlist holds for the definition that was approved; a no runs nothing."""
    bench = Bench()
    bench.add(works, starts=True, destructive=True)
    async with reviewed(bench) as engine:
        always = says("always", by="operator", for_="ever")
        assert told(await settled(engine, engine.submit(ASKS), always))[0] == "ok"
        assert told(await over(engine, engine.submit(ASKS)))[0] == "ok"
        change_at_start(bench, engine, destructive=True)
        live = engine.submit(ASKS)
        assert live.call.opened.approval == "allowlist"
        await settled(engine, live, says("skip"))
    assert told(live)[0] == "refused" and not facts(live, Started)


async def test_a_tool_that_changed_and_needs_no_approval_runs_as_what_it_is_now() -> None:
    """A7: nobody is asked, and the history says that it is another one."""
    bench = Bench()
    bench.add(works, starts=True, read_only=True)
    async with reviewed(bench) as engine:
        change_at_start(bench, engine)
        live = await over(engine, engine.submit(ASKS))
    assert live.call.end and live.call.end.result and not live.call.questions
    assert b"the newer one" in bytes(live.call.end.result.content)
    (fact,) = facts(live, Redefined)
    assert (fact.digest, fact.attempt, fact.approval) == (NEWER, 0, "auto") and not live.call.is_safe


async def test_arguments_that_do_not_fit_any_more_run_nothing() -> None:
    """A7, E4: they are checked against the schema that counts now."""
    bench = Bench()
    bench.add(works, starts=True)
    async with reviewed(bench) as engine:
        change_at_start(bench, engine)
        live = engine.submit(Submission("tool", Raw(b'{"path": "/"}')))
        live.arguments = Raw(b'{"broken": 1}')
        await over(engine, live)
    assert live.call.end and live.call.end.failure
    assert live.call.end.failure.category == "validation" and not facts(live, Started)


async def test_others_have_the_slot_while_a_changed_tool_is_asked_about() -> None:
    """A7, C8: a person may take minutes, and a slot is for calls that run."""
    bench = Bench()
    bench.add(works, starts=True, concurrency=1)
    bench.add(works, "other", concurrency=1)
    async with reviewed(bench, slots=1) as engine:
        change_at_start(bench, engine, destructive=True, concurrency=1)
        live = engine.submit(ASKS)
        name = await asked(live)
        assert told(await over(engine, engine.submit(Submission("other"))))[0] == "ok"
        engine.answer(name, says("run"))
        assert told(await over(engine, live))[0] == "ok" and not engine.slots.holders


async def test_a_changed_definition_is_asked_about_in_place_of_the_open_approval() -> None:
    """A7: nobody can say yes to what the tool was; the caller is asked once more, not the operator."""
    bench = Bench()
    bench.add(works, destructive=True)
    async with reviewed(bench) as engine:
        live = engine.submit(ASKS)
        first = await asked(live)
        change(bench, engine, destructive=True)
        with pytest.raises(AlreadyAnswered, match="cancel, by engine"):
            engine.answer(first, says("run"))
        second = await asked(live)
        assert second != first and live.call.questions[second].to == "caller"
        assert live.call.started is None
        engine.answer(second, says("run"))
        await over(engine, live)
    assert live.call.end and live.call.end.result
    assert b"the newer one" in bytes(live.call.end.result.content)


async def test_an_open_approval_is_over_if_the_changed_tool_needs_none() -> None:
    """A7, A3: it runs as what it is, and says that nobody was asked about that."""
    bench = Bench()
    bench.add(works, destructive=True)
    async with reviewed(bench) as engine:
        live = engine.submit(ASKS)
        await asked(live)
        change(bench, engine)
        await over(engine, live)
    assert told(live)[0] == "ok" and live.call.approved == "auto" and not live.call.open


async def test_a_change_of_other_tools_leaves_an_open_approval_alone() -> None:
    """A7: also of the settings, or of the order in which servers come."""
    bench = Bench()
    bench.add(works, destructive=True)
    async with reviewed(bench) as engine:
        live = engine.submit(ASKS)
        first = await asked(live)
        bench.add(works, "other", digest="x", destructive=True)
        engine.catalog.put(bench)
        assert list(live.call.open) == [first] and not facts(live, Redefined)
        await settled(engine, live, says("run"))
    assert told(live)[0] == "ok"


async def test_a_yes_to_the_definition_before_is_no_answer_to_the_next_question() -> None:
    """A6, A7, Q1: a caller that sends its first retry once more has not seen the second question."""
    bench = Bench()
    bench.add(dies_once, read_only=True, destructive=True, starts=True)
    async with reviewed(bench) as engine:
        change_at_second_start(bench, engine, destructive=True)
        live = engine.submit(ASKS)
        first = await asked(live)
        engine.answer(first, says("run"))
        second = await asked(live)
        assert live.call.attempt == 1 and second != first
        assert questions_open_at(live, 1) == []
        assert [one.id for one in questions_open_at(live, 2)] == [second]
        engine.cancel(live, "caller", "enough")


async def dies_once(run: Run) -> str:
    """A tool whose server dies under it."""
    raise RunnerDied("server files was killed")


def change_at_second_start(bench: Bench, engine: Engine, **options: Any) -> None:
    """The server has another definition of the tool when it is back."""

    def starting(tool: str, caller: str) -> RunnerStart | None:
        return RunnerStart("starting server files", up) if engine.calls()[-1].call.attempt else None

    async def up() -> None:
        change(bench, engine, **options)

    bench.starting = starting


async def test_an_attempt_as_another_tool_is_asked_about() -> None:
    """A7, U4: a read-only call may be repeated, but its server is back with a destructive tool."""
    bench = Bench()
    bench.add(dies_once, read_only=True, starts=True)
    async with reviewed(bench) as engine:
        change_at_second_start(bench, engine, destructive=True)
        live = engine.submit(ASKS)
        question = live.call.questions[await asked(live)]
        assert "the attempt before, which may have run" in why_asked(question)
        assert [fact.attempt for fact in facts(live, Started)] == [1]
        await settled(engine, live, says("run"))
        assert told(live)[0] == "ok" and live.call.attempt == 2
        assert not live.call.is_harmless and not live.call.is_safe


@pytest.mark.parametrize("answer", [says("skip"), Answer("decline", by="session:1")])
async def test_a_no_to_the_next_attempt_is_a_refusal(answer: Answer) -> None:
    """A2, A7: the first attempt was read-only, so nothing has happened."""
    bench = Bench()
    bench.add(dies_once, read_only=True, starts=True)
    async with reviewed(bench) as engine:
        change_at_second_start(bench, engine, destructive=True)
        live = await settled(engine, engine.submit(ASKS), answer)
    assert told(live)[0] == "refused" and live.call.end and live.call.end.failure
    assert live.call.end.failure.side_effects == "none"
    assert [fact.attempt for fact in facts(live, Started)] == [1]


async def test_an_attempt_as_a_tool_that_is_not_safe_any_more_is_not_made() -> None:
    """A7, U4: nobody needs to be asked about it, and so nobody has allowed to run it twice."""
    bench = Bench()
    bench.add(dies_once, read_only=True, starts=True)
    async with reviewed(bench) as engine:
        change_at_second_start(bench, engine)
        live = await over(engine, engine.submit(ASKS))
    outcome, message = told(live)
    assert outcome == "lost" and "server files was killed; its tool has changed since" in message
    assert [fact.attempt for fact in facts(live, Started)] == [1]


async def test_time_to_think_about_a_changed_tool_is_off_the_clocks() -> None:
    """C6, A7: those of the start, and those of an attempt that has begun."""
    limits = Limits(idle_s=5, ceiling_s=10, start_s=7)
    for changes in (change_at_start, change_at_second_start):
        bench = Bench()
        bench.add(dies_once, read_only=True, starts=True, limits=limits)
        async with reviewed(bench) as engine:
            changes(bench, engine, destructive=True, limits=limits)
            live = engine.submit(ASKS)
            name = await asked(live)
            await asyncio.sleep(500)
            engine.answer(name, says("run"))
            assert told(await over(engine, live))[0] == "ok"


@pytest.mark.parametrize("answer", ["run", "skip"])
async def test_a_call_of_a_dead_gateway_is_asked_about_if_its_tool_came_back_as_another(answer: str) -> None:
    """A7, H4: what the gateway remembers of the tool is what it was; its server is started for the call."""
    bench = Bench()
    bench.add(works, starts=True, idempotent=True)
    async with reviewed(bench, journal=left_by_a_dead_gateway()) as engine:
        change_at_start(bench, engine, destructive=True)
        await recover(engine)
        live = engine["c"]
        engine.answer(await asked(live), says(answer, "operator"))
        await over(engine, live)
    assert told(live)[0] == ("ok" if answer == "run" else "refused")
    assert live.call.attempt == (2 if answer == "run" else 1)


async def test_a_call_of_a_dead_gateway_is_not_repeated_as_a_tool_that_is_not_safe() -> None:
    """A7, U4, H4: it ran as something that could be repeated; what it is now cannot."""
    bench = Bench()
    bench.add(works, starts=True, idempotent=True)
    async with reviewed(bench, journal=left_by_a_dead_gateway()) as engine:
        change_at_start(bench, engine)
        await recover(engine)
        live = await over(engine, engine["c"])
    assert told(live)[0] == "uncertain" and "its tool has changed since" in told(live)[1]
    assert live.call.attempt == 1


def left_by_a_dead_gateway() -> MemoryJournal:
    """The history of a call that ran, and may be repeated."""
    at = time.time() - 60
    opened = Opened(at, "tool", "bench", "operator", Raw(b"{}"), idempotent=True, digest="digest of tool")
    journal = MemoryJournal()
    journal.write(Batch([Entry("c", 1, opened), Entry("c", 2, Started(at + 1))]))
    return journal
