"""A call below asks: the clocks above stand still, and whoever can answer is asked."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.facts import Answer, Answered, Limits, Question
from afoot.core.notices import notice
from afoot.core.ports import Batch, Run
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import recover
from afoot.errors import AlreadyAnswered, ToolError
from afoot.store.memory import MemoryJournal
from tests.engine.child_calls.nested_tools import after, calling, child, counting, forest, root
from tests.engine.fake_engine import Bench, Body, facts, form, over, took

YES = Answer("accept", Raw(b'{"n":1}'))


def asking(to: str = "", schema: object = None) -> Body:
    """A tool that asks, and says what it was told."""

    async def body(run: Run) -> str:
        asked = form("n", schema)
        said = await run.ask(Question("", "n", "form", asked.message, asked.body, to))
        return f"{said.action} {bytes(said.content).decode()} by {said.by}"

    return body


def tree(**options: Any) -> Any:
    """A root that calls a middle that calls a child that asks."""
    return forest(root=calling("middle"), middle=calling("child"), child=asking(**options))


def opened(live: LiveCall) -> tuple[str, str, str]:
    """The id, kind and message of the one question that is open."""
    [one] = live.call.open.values()
    return one.id, one.kind, one.message


async def test_a_question_below_stops_every_clock_above() -> None:
    """P8, C6: neither idle limit nor ceiling runs, of any of them; after the answer they go on."""
    async with tree() as engine:
        live = root(engine)
        await asyncio.sleep(500)
        assert [one.call.on_clock(engine.clock.now()) for one in engine.calls()] == [0.0, 0.0, 0.0]
        engine.answer(f"{child(engine).call.id}.1", YES)
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, took(live), live.call.spent_s) == ("ok", 500.0, 0.0)


async def test_a_caller_that_can_answer_is_asked_by_its_own_call() -> None:
    """P8, Q3: the same question, word for word, all the way up; the answer goes to who asked."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with tree(schema=schema) as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(1)
        below = child(engine)
        mirror = next(iter(live.call.open.values()))
        assert (mirror.kind, mirror.message, mirror.body) == (
            "form",
            "sure?",
            below.call.open[f"{below.call.id}.1"].body,
        )
        engine.answer(mirror.id, YES)
        await over(engine, live)
        assert below.call.end and below.call.end.result
        assert b'accept {\\"n\\":1} by caller' in bytes(below.call.end.result.content)
    assert [fact.answer.action for fact in facts(live, Answered)] == ["accept"]


async def test_a_caller_that_cannot_answer_only_waits() -> None:
    """P8: its call says on whom it waits, and asks nobody; the operator may answer it there all the same."""
    async with tree() as engine:
        live = root(engine)
        await asyncio.sleep(20)
        name, kind, message = opened(live)
        assert (kind, message) == ("below", "sure?")
        assert notice(live.call, engine.clock.now()).message == "waiting for an answer: sure?"
        engine.answer(name, Answer("decline", by="operator"))
        await over(engine, live)
        assert not engine.calls()


async def test_what_is_asked_of_the_operator_is_not_asked_of_the_caller() -> None:
    """P8, A5: though it could answer."""
    async with tree(to="operator") as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(1)
        assert opened(live)[1] == "below"


async def test_the_first_answer_counts_wherever_it_is_given() -> None:
    """A5, Q4: the others see that it was answered, and by whom."""
    async with forest(root=calling("child"), child=(asking())) as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(1)
        name = opened(live)[0]
        engine.answer(f"{child(engine).call.id}.1", Answer("decline", by="operator"))
        assert not live.call.open and live.call.answers[name].answer == Answer("decline", by="operator")
        with pytest.raises(AlreadyAnswered, match="decline, by operator"):
            engine.answer(name, YES)
        await over(engine, live)


async def test_an_answer_that_does_not_fit_leaves_every_question_open() -> None:
    """Q2: it is checked where it was asked."""
    schema = {"type": "object", "properties": {"n": {"type": "string"}}}
    async with tree(schema=schema) as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(1)
        with pytest.raises(ToolError, match="content.n"):
            engine.answer(opened(live)[0], YES)
        assert all(len(one.call.open) == 1 for one in engine.calls())


async def test_a_child_that_nobody_answers_ends_first_and_its_parent_goes_on() -> None:
    """C6, P8: the answer limit is the child's; those above have a grace more."""
    errors = list[BaseException]()

    async def body(run: Run) -> str:
        await after(run, "child", errors)
        await asyncio.sleep(20)
        return "went on"

    for can_ask in (True, False):
        async with forest(root=body, child=asking()) as engine:
            live = await over(engine, root(engine, can_ask=can_ask))
        assert live.call.end and (live.call.end.outcome, took(live)) == ("ok", 620.0)
        assert isinstance(errors[-1], ToolError) and errors[-1].code == "answer_limit"


async def test_a_child_that_is_to_stop_asks_nobody_any_more() -> None:
    """Q4: its parent waits no longer than it does, however long the child takes to stop."""

    async def stubborn(run: Run) -> str:
        try:
            await run.ask(form("n"))
        finally:
            await asyncio.sleep(3)
        return "done"

    async with forest(root=calling("child"), child=stubborn) as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(10)
        engine.cancel(child(engine), "operator", "enough")
        assert not live.call.open
        await over(engine, live)
    assert live.call.end and live.call.end.failure and live.call.end.failure.category == "cancelled"


async def test_a_call_that_is_cancelled_while_one_below_asks_ends() -> None:
    """X1: all of them, at once, and nothing stays open."""
    async with tree() as engine:
        live, seen = root(engine, can_ask=True), list[LiveCall]()
        await asyncio.sleep(10)
        seen += engine.calls()
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
        await asyncio.sleep(0.001)
        assert not engine.calls()
    assert [one.call.end and one.call.end.outcome for one in seen] == ["cancelled"] * 3
    assert not any(one.call.open or one.timer or one.waiters for one in seen)


async def test_two_children_may_ask_at_the_same_time() -> None:
    """C6: the clocks above stand until both are answered."""
    async with forest(root=calling("child", "child", at_once=True), child=asking()) as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(100)
        first, second = live.call.open
        engine.answer(first, YES)
        await asyncio.sleep(100)
        assert live.call.on_clock(engine.clock.now()) == 0.0 and list(live.call.open) == [second]
        engine.answer(second, YES)
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, took(live)) == ("ok", 200.0)


def two(**options: Any) -> Bench:
    """A safe root over a safe child that asks."""
    bench = Bench()
    bench.add(calling("child"), "root", **options)
    bench.add(asking(), "child", **options)
    return bench


async def test_after_a_crash_the_root_runs_again_and_calls_its_children_anew() -> None:
    """H4, Q1 h: what the dead child asked is closed, and asked once, by the new one."""
    journal, catalog = MemoryJournal(), Catalog()
    catalog.put(two(idempotent=True))
    async with Engine(MemoryJournal(), catalog) as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(1)
        for one in engine.calls():
            journal.write(Batch(entries=await engine.journal.facts(one.call.id)))
    async with Engine(journal, catalog) as engine:
        await recover(engine)
        await asyncio.sleep(1)
        again, below = engine[live.call.id], child(engine)
        assert [one.call.attempt for one in (again, below)] == [2, 1]
        assert len(engine.calls()) == 2 and len(again.call.open) == 1
        engine.answer(f"{below.call.id}.1", YES)
        await over(engine, again)
        assert again.call.end and again.call.end.outcome == "ok"


async def test_a_limit_above_that_is_shorter_still_holds() -> None:
    """C6: the answer limit of the root is its own."""
    bodies = calling("child"), {"limits": Limits(answer_s=50.0, grace_s=5.0)}
    async with forest(root=bodies, child=asking()) as engine:
        live = await over(engine, root(engine))
        await asyncio.sleep(0.001)
        assert not engine.calls()
    assert live.call.end and live.call.end.failure
    assert (live.call.end.failure.clock, took(live)) == ("answer", 55.0)


async def test_a_child_of_a_call_that_reports_may_ask() -> None:
    """P8: siblings work on meanwhile, and are heard; the parent's clock stands all the same."""
    bodies = calling("child", "count", at_once=True)
    async with forest(root=bodies, child=asking(), count=counting(4, 20.0)) as engine:
        live = root(engine)
        await asyncio.sleep(70)
        assert live.call.readings == 3 and live.call.on_clock(engine.clock.now()) == 0.0
        engine.answer(f"{child(engine).call.id}.1", YES)
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, live.call.spent_s) == ("ok", 10.0)
