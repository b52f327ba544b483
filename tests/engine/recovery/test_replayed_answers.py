"""What a tool that is run again was answered before: in order, once each, and without a limit of its own."""

import asyncio

import pytest
from msgspec import Raw, json

from afoot.core.facts import Answer, Answered, Asked
from afoot.core.ports import Batch, Run
from afoot.core.redaction import REDACTED_JSON
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.engine.questions import questions_open_at
from afoot.engine.recovery import recover
from afoot.errors import RunnerDied
from afoot.store.memory import MemoryJournal
from tests.engine.approval.reviewers import asked
from tests.engine.fake_engine import Bench, engine_of, facts, form, offering, over


def item(name: object) -> Answer:
    """The answer to a question for the next item."""
    return Answer("accept", Raw(json.encode({"item": name})))


def named(answer: Answer) -> str:
    """The item in such an answer."""
    return str(json.decode(answer.content)["item"])


async def collects(run: Run) -> str:
    """Asks for three things by the same key."""
    told = [named(await run.ask(form("item"))) for _ in range(3)]
    return f"{' '.join(told)} attempt {run.attempt}"


def collecting() -> Bench:
    """A tool that does so, and may be run again."""
    bench = Bench()
    bench.add(collects, idempotent=True)
    return bench


async def given(engine: Engine, live: LiveCall, *names: object) -> None:
    """Answer what is open, one after the other."""
    for name in names:
        engine.answer(await asked(live), item(name))
        await asyncio.sleep(1)


async def died(live: LiveCall, engine: Engine) -> MemoryJournal:
    """What a gateway leaves that is killed now."""
    journal = MemoryJournal()
    journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    return journal


def words(live: LiveCall) -> str:
    """The text of its result."""
    assert live.call.end and live.call.end.result, live.call.end
    return str(json.decode(live.call.end.result.content)[0]["text"])


async def test_answers_to_the_same_key_come_again_in_their_order() -> None:
    """Q1 h, H4: over two gateways that died; what was answered is never asked again."""
    async with offering(collecting()) as engine:
        live = engine.submit(Submission("tool"))
        await given(engine, live, "apple")
        journal = await died(live, engine)
    for names in (["pear"], ["plum"]):
        async with offering(collecting(), journal=journal) as engine:
            await recover(engine)
            live = engine[live.call.id]
            await given(engine, live, *names)
            journal = await died(live, engine)
            if live.call.end is None:
                assert len(live.call.open) == 1
    assert words(live) == "apple pear plum attempt 3"


async def test_who_saw_one_question_of_a_gateway_that_died_answers_that_one_alone() -> None:
    """Q1 c, A5: brought once more it is none to the next question of the same key."""
    async with offering(collecting()) as engine:
        live = engine.submit(Submission("tool"))
        await asked(live)
        journal = await died(live, engine)
    async with offering(collecting(), journal=journal) as engine:
        await recover(engine)
        live = engine[live.call.id]
        assert [one.id for one in questions_open_at(live, 1)] == list(live.call.open)
        await given(engine, live, "apple")
        assert len(live.call.open) == 1 and questions_open_at(live, 1) == []
        assert [one.id for one in questions_open_at(live, 3)] == list(live.call.open)


async def test_a_secret_that_was_not_kept_is_asked_for_again_in_its_place() -> None:
    """S4, Q1 h: what came after it is not taken for it."""
    async with offering(collecting()) as engine:
        live = engine.submit(Submission("tool"))
        await given(engine, live, REDACTED_JSON, "pear")
        journal = await died(live, engine)
    async with offering(collecting(), journal=journal) as engine:
        await recover(engine)
        live = engine[live.call.id]
        await given(engine, live, "plum", "apple")
        await over(engine, live)
    assert words(live) == "apple pear plum attempt 2"


async def test_the_next_attempt_in_the_same_gateway_has_them_in_order_too() -> None:
    """Q1 h, U4: a server died, and what it had asked last is asked again."""

    async def body(run: Run) -> str:
        if run.attempt == 1:
            for _ in range(2):
                await run.ask(form("item"))
            raise RunnerDied("server files was killed")
        return await collects(run)

    async with engine_of(body, idempotent=True) as engine:
        live = engine.submit(Submission("tool"))
        await given(engine, live, "apple", "pear", "plum")
        await over(engine, live)
    assert words(live) == "apple pear plum attempt 2"
    assert len(facts(live, Asked)) == len(facts(live, Answered)) == 5


@pytest.mark.parametrize("too_many", [False, True])
async def test_the_limit_of_questions_holds_for_each_attempt(too_many: bool) -> None:
    """G3, H4: what is asked once more by the record does not use it up."""

    async def body(run: Run) -> str:
        await collects(run)
        if run.attempt > 1:
            for _ in range(too_many):
                await run.ask(form("more"))
            return "done"
        raise RunnerDied("server files was killed")

    async with engine_of(body, idempotent=True) as engine:
        engine.questions.max_questions = 3
        live = engine.submit(Submission("tool"))
        await given(engine, live, "apple", "pear", "plum")
        await over(engine, live)
    assert live.call.end and live.call.end.outcome == ("failed" if too_many else "ok")


async def test_what_nobody_answered_is_asked_again_and_no_other_answer_is_taken_for_it() -> None:
    """Q1 h, A5: the yes to a third thing is none to the second, which somebody had closed."""

    async def body(run: Run) -> str:
        told = [(await run.ask(form("item"))) for _ in range(3)]
        if run.attempt == 1:
            raise RunnerDied("server files was killed")
        return " ".join(map(named, told))

    async with engine_of(body, idempotent=True) as engine:
        live = engine.submit(Submission("tool"))
        await given(engine, live, "apple")
        engine.answer(await asked(live), Answer("cancel", by="operator"))
        await asyncio.sleep(1)
        await given(engine, live, "plum")
        assert live.call.attempt == 2 and list(live.call.open) == [f"{live.call.id}.5"]
        await given(engine, live, "pear")
        await over(engine, live)
    assert words(live) == "apple pear plum"


async def test_parallel_questions_of_one_key_keep_their_answers() -> None:
    """Q1 h, A5: of two, the second was answered before what asked died."""

    async def body(run: Run) -> str:
        both = [asyncio.ensure_future(run.ask(form("item"))) for _ in range(2)]
        if run.attempt == 1:
            await both[1]
            both[0].cancel()
            raise RunnerDied("server files was killed")
        return " ".join([named(await one) for one in both])

    async with engine_of(body, idempotent=True) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.answer(f"{live.call.id}.2", item("pear"))
        await asyncio.sleep(1)
        assert list(live.call.open) == [f"{live.call.id}.3"]
        await given(engine, live, "apple")
        await over(engine, live)
    assert words(live) == "apple pear"


async def test_a_secret_is_asked_for_once_in_a_gateway() -> None:
    """S4, Q1 h: the next attempt is told it again, though it came further in a gateway before."""
    async with offering(collecting()) as engine:
        live = engine.submit(Submission("tool"))
        await given(engine, live, REDACTED_JSON, "pear")
        journal = await died(live, engine)

    async def body(run: Run) -> str:
        if run.attempt == 2:
            await run.ask(form("item"))
            raise RunnerDied("server files was killed")
        return await collects(run)

    bench = Bench()
    bench.add(body, idempotent=True)
    async with offering(bench, journal=journal) as engine:
        await recover(engine)
        live = engine[live.call.id]
        await given(engine, live, "plum", "apple")
        await over(engine, live)
    assert words(live) == "apple pear plum attempt 3"
