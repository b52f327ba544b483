"""A gateway died: what was changed until the next one, and what is due while a call waits to begin again."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from afoot.config.tables import ToolSettings
from afoot.core.call import APPROVAL, INSTEAD, State
from afoot.core.facts import Amended, Answer, Answered, Asked, Entry, Fact, Limits, Opened, Question, Started
from afoot.core.ports import Batch, Run, RunnerStart
from afoot.engine.catalog import EffectiveSettings
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call, recover
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, engine_of, facts, form, offering, over

OPENED = Opened(
    1.0, "tool", "bench", "session:1", Raw(b'{"path": "/"}'), idempotent=True, digest="digest of tool"
)
RUN = Answer("accept", Raw(b'{"decision":"run"}'), "operator")


async def works(run: Run) -> str:
    """A tool that does something."""
    return f"attempt {run.attempt}"


def left(*told: Fact) -> MemoryJournal:
    """The history of a gateway that was killed with one call."""
    journal = MemoryJournal()
    journal.write(Batch(entries=[Entry("c", seq, fact) for seq, fact in enumerate(told, 1)]))
    return journal


def offered(body: Any = works, **options: Any) -> Bench:
    """What the next gateway has."""
    bench = Bench()
    bench.add(body, **options)
    return bench


async def settled(engine: Engine) -> tuple[str, int]:
    """How the call ends, and at which attempt."""
    await recover(engine)
    await asyncio.sleep(1)
    call = (await load_call(engine, "c")).call
    assert call.end is not None
    return call.end.outcome, call.attempt


async def test_a_tool_of_another_server_is_not_the_same_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """U4, A6: though it has the same name and definition, as a second instance of a server has."""
    for told, outcome in (((OPENED,), ("lost", 0)), ((OPENED, Started(2.0)), ("uncertain", 1))):
        with monkeypatch.context() as patch:
            patch.setattr(Bench, "name", "another")
            async with offering(offered(idempotent=True), journal=left(*told)) as engine:
                assert await settled(engine) == outcome


class Other(Bench):
    """A server that has come since, with a tool of the same name."""

    name = "other"


@pytest.mark.parametrize("asked", [False, True])
async def test_a_tool_is_the_same_under_the_name_that_it_has_now(asked: bool) -> None:
    """U3, U4: a server that came since has one of that name, too; nothing runs there."""
    told: list[Fact] = [replace(OPENED, approval="ask" if asked else "auto")]
    told += [Asked(2.0, Question("c.1", APPROVAL, "approval"))] if asked else [Started(2.0)]
    other = Other()
    other.add(works, approval="ask" if asked else "auto", idempotent=True)
    options = {"approval": "ask"} if asked else {}
    async with offering(offered(idempotent=True, **options), journal=left(*told)) as engine:
        engine.catalog.put(other)
        assert set(engine.catalog.known) == {"bench__tool", "other__tool"}
        await recover(engine)
        live = engine["c"]
        if asked:
            engine.answer("c.1", RUN)
        await over(engine, live)
    assert live.call.end and live.call.end.outcome == "ok" and live.tool.name == "bench__tool"
    assert other.prepared == []


@pytest.mark.parametrize(("is_safe", "outcome"), [(True, ("ok", 2)), (False, ("uncertain", 1))])
async def test_what_may_not_be_repeated_any_more_is_not(is_safe: bool, outcome: tuple[str, int]) -> None:
    """U4: somebody may have seen that it was declared so by mistake, and that is why the gateway stopped."""
    terms = EffectiveSettings({"tool": ToolSettings(idempotent=is_safe)})
    async with offering(offered(idempotent=True), journal=left(OPENED, Started(2.0)), terms=terms) as engine:
        assert await settled(engine) == outcome
        end = (await load_call(engine, "c")).call.end
    assert end and (end.failure is None) == is_safe
    assert end.failure is None or not end.failure.retryable, "nor is its caller told to"


@pytest.mark.parametrize(("ask_by", "to"), [("", ""), ("both", ""), ("caller", "caller"), ("operator",) * 2])
async def test_an_approval_that_was_not_asked_for_yet_is_waited_for(ask_by: str, to: str) -> None:
    """H4, A1: nobody had the time to come back yet, so that nobody is there is no reason to refuse it."""
    opened = Opened(1.0, "tool", "bench", "session:1", Raw(b"{}"), digest="digest of tool", approval="ask")
    async with offering(offered(approval="ask"), journal=left(opened)) as engine:
        engine.policy.ask_by = ask_by
        await recover(engine)
        await asyncio.sleep(100)
        live = engine["c"]
        assert [question.to for question in live.call.open.values()] == [to]
        engine.answer("c.1", RUN)
        await over(engine, live)
    assert live.call.end and live.call.end.outcome == "ok" and live.call.approved == "user"


async def test_what_had_begun_needs_no_second_yes() -> None:
    """A6, H4: what allowed the arguments that a hook made may have gone with the connection."""
    told = replace(OPENED, approval="allowlist"), Amended(1.5, Raw(b'{"path": "/tmp"}'), "hook"), Started(2.0)
    async with offering(offered(approval="ask", idempotent=True), journal=left(*told)) as engine:
        assert await settled(engine) == ("ok", 2)
        assert not facts(await load_call(engine, "c"), Asked)


async def asks(run: Run) -> str:
    """Waits for an answer, or works for long."""
    if run.caller == "session:1":
        await run.ask(form("who"))
    else:
        await asyncio.sleep(50)
    return f"attempt {run.attempt}"


async def parked(**options: Any) -> tuple[MemoryJournal, str]:
    """A gateway that was killed while a call waited for an answer."""
    journal = MemoryJournal()
    async with engine_of(asks, idempotent=True, **options) as engine:
        live = engine.submit(Submission("tool", caller="session:1", ceiling_s=20))
        await asyncio.sleep(1)
        journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    return journal, live.call.id


async def answered(engine: Engine, call: str) -> LiveCall:
    """The call at its end, answered now."""
    live = engine[call]
    engine.answer(f"{call}.1", Answer("accept", Raw(b"{}")))
    return await over(engine, live)


async def test_a_call_that_waits_for_its_slot_again_is_not_silent() -> None:
    """C1, H4: another has it by now; neither silence nor the ceiling counts until it runs."""
    journal, call = await parked(concurrency=1)
    async with offering(offered(asks, idempotent=True, concurrency=1), journal=journal) as engine:
        await recover(engine)
        engine.submit(Submission("tool"))
        live = await answered(engine, call)
    assert live.call.end and live.call.end.outcome == "ok" and live.call.attempt == 2
    assert live.call.spent_s < 2


async def test_a_call_that_waits_for_what_it_runs_on_is_not_silent() -> None:
    """C1, H4: a server may take long to come up after the answer."""
    journal, call = await parked(starts=True)
    bench = offered(asks, idempotent=True, starts=True)
    bench.starting = lambda tool, caller: RunnerStart("starting it", lambda: asyncio.sleep(50))
    async with offering(bench, journal=journal) as engine:
        await recover(engine)
        live = await answered(engine, call)
    assert live.call.end and live.call.end.outcome == "ok" and live.call.attempt == 2


async def stays(run: Run) -> str:
    """A tool that does not end."""
    while True:
        await asyncio.sleep(10)
        run.alive()


@pytest.mark.parametrize("clock", ["queue", "start"])
async def test_a_call_that_cannot_begin_again_is_told_so_as_at_its_first_start(clock: str) -> None:
    """C1, H4: what it waits for has its own limit, and names it; its tool is not said to be silent."""
    options: dict[str, Any] = {"concurrency": 1} if clock == "queue" else {"starts": True}
    journal, call = await parked(**options)
    bench = offered(stays, idempotent=True, **options)
    bench.starting = lambda tool, caller: RunnerStart("starting it", lambda: asyncio.sleep(1000))
    async with offering(bench, journal=journal) as engine:
        await recover(engine)
        if clock == "queue":
            engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        began = engine.clock.now()
        live = await answered(engine, call)
    end = live.call.end
    assert end and (end.outcome, end.at - began) == ("failed", pytest.approx(60))
    failure = end.failure
    assert failure and (failure.category, failure.clock, failure.retryable) == ("unavailable", clock, True)
    assert f"{clock}_limit_s" in failure.message and failure.side_effects == "possible"


async def test_how_far_it_has_come_until_it_begins_again_can_be_seen() -> None:
    """H4, C1: it is queued, then what it runs on is started; neither is said to run."""
    journal, call = await parked(starts=True)
    bench = offered(asks, idempotent=True, starts=True)
    bench.starting = lambda tool, caller: RunnerStart("starting it", lambda: asyncio.sleep(50))
    async with offering(bench, journal=journal) as engine:
        await recover(engine)
        engine.answer(f"{call}.1", Answer("accept", Raw(b"{}")))
        live = engine[call]
        assert live.call.state is State.QUEUED and live.call.admitted is None
        await asyncio.sleep(1)
        assert live.call.admitted and live.call.admitted.what == "starting it"
        await over(engine, live)
    assert live.call.end and live.call.end.outcome == "ok"


REJECTED = (
    replace(OPENED, approval="ask", can_ask=True, limits=Limits(answer_s=1e10)),
    Asked(2.0, Question("c.1", APPROVAL, "approval", "Run it?")),
    Answered(3.0, "c.1", Answer("accept", Raw(b'{"decision":"reject"}'), "session:1")),
    Asked(4.0, Question("c.2", INSTEAD, "form", "What instead?", to="caller")),
)
WORDS = Answer("accept", Raw(b'{"instead":"use the bin"}'), "session:1")


async def test_a_rejected_call_waits_through_a_crash_for_the_words_about_what_to_do_instead() -> None:
    """A8, H4: the question that was open is open again, and its answer reaches the model."""
    async with offering(offered(idempotent=True), journal=left(*REJECTED)) as engine:
        await recover(engine)
        await asyncio.sleep(1)
        live = engine["c"]
        assert list(live.call.open) == ["c.2"]
        engine.answer("c.2", WORDS)
        ended = (await over(engine, live)).call.end
    assert ended is not None and ended.failure is not None and ended.outcome == "refused"
    assert ended.failure.message.endswith("The user says what to do instead: use the bin")


async def test_a_rejected_call_whose_tool_is_gone_keeps_its_words() -> None:
    """A8, H4: both answers were given when the gateway died, and its tool is not served any more."""
    local = replace(REJECTED[0], server="local")
    journal = left(local, *REJECTED[1:], Answered(5.0, "c.2", WORDS))
    async with offering(Bench(), journal=journal) as engine:
        outcome, _ = await settled(engine)
        failure = (await load_call(engine, "c")).call.end
    assert outcome == "refused" and failure is not None and failure.failure is not None
    assert "use the bin" in failure.failure.message
