"""What a tool that is run again was answered before: in order, once each, and without a limit of its own."""

import asyncio

import pytest
from msgspec import Raw, json

from afoot.core.facts import Answer, Answered, Asked
from afoot.core.ports import Batch, Run
from afoot.core.redact import MARK
from afoot.engine.engine import Engine, Submission
from afoot.engine.live import Live
from afoot.engine.recovery import recover
from afoot.errors import RunnerDied
from afoot.store.memory import MemoryJournal
from tests.engine.double import Bench, engine_of, facts, form, offering, over
from tests.engine.reviewing import asked


def item(name: object) -> Answer:
    """The answer to a question for the next item."""
    return Answer("accept", Raw(json.encode({"item": name})))


async def collects(run: Run) -> str:
    """Asks for three things by the same key."""
    told = [json.decode((await run.ask(form("item"))).content)["item"] for _ in range(3)]
    return f"{' '.join(told)} attempt {run.attempt}"


def collecting() -> Bench:
    """A tool that does so, and may be run again."""
    bench = Bench()
    bench.add(collects, idempotent=True)
    return bench


async def given(engine: Engine, live: Live, *names: object) -> None:
    """Answer what is open, one after the other."""
    for name in names:
        engine.answer(await asked(live), item(name))
        await asyncio.sleep(1)


async def died(live: Live, engine: Engine) -> MemoryJournal:
    """What a gateway leaves that is killed now."""
    journal = MemoryJournal()
    journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    return journal


def words(live: Live) -> str:
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


async def test_a_secret_that_was_not_kept_is_asked_for_again_in_its_place() -> None:
    """S4, Q1 h: what came after it is not taken for it."""
    async with offering(collecting()) as engine:
        live = engine.submit(Submission("tool"))
        await given(engine, live, MARK, "pear")
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
        engine.max_questions = 3
        live = engine.submit(Submission("tool"))
        await given(engine, live, "apple", "pear", "plum")
        await over(engine, live)
    assert live.call.end and live.call.end.outcome == ("failed" if too_many else "ok")
