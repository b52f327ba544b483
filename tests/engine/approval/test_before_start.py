"""Approval before a start: who is asked, what the answers do, and how it is told."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.call import State
from afoot.core.facts import Answer, Answered, Asked, Limits, Started
from afoot.core.notices import notice, waiting_on
from afoot.core.ports import Batch, Run
from afoot.engine.engine import Submission
from afoot.engine.recovery import recover
from afoot.errors import AlreadyAnswered, ToolError
from afoot.store.memory import MemoryJournal
from tests.engine.approval.reviewers import ASKS, asked, asking, says, settled, told
from tests.engine.fake_engine import Bench, engine_of, facts, form, offering, over, works


async def test_run_runs_and_the_call_says_that_its_caller_approved() -> None:
    """A2, A3: asked before the start, with the call's own arguments."""
    async with asking() as engine:
        live = engine.submit(ASKS)
        question = live.call.questions[await asked(live)]
        assert 'Run bench/tool({"path": "/"})?' == question.message and question.to == "caller"
        assert live.call.state is State.QUEUED and live.call.approved == "none"
        await settled(engine, live, says("run"))
    assert told(live) == ("ok", "") and live.call.approved == "caller"
    order = [type(entry.fact) for entry in live.backlog]
    assert order.index(Asked) < order.index(Answered) < order.index(Started)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (says("skip"), "skip"),
        (Answer("decline", by="session:1"), "skip"),
        (says("reject", instead="use the bin"), "The user says what to do instead: use the bin"),
        (says("reject"), "rejected"),
    ],
)
async def test_a_no_is_refused_and_runs_nothing(answer: Answer, said: str) -> None:
    """A2, A3, A5: skip, decline and reject; the text goes to the model."""
    async with asking() as engine:
        live = await settled(engine, engine.submit(ASKS), answer)
    outcome, message = told(live)
    assert outcome == "refused" and said in message
    assert facts(live, Started) == [] and live.call.approved == "none"


async def test_a_cancel_is_no_answer_and_goes_to_the_operator() -> None:
    """A5: who then decides; the operator's own cancel is a no."""
    async with asking() as engine:
        live = engine.submit(ASKS)
        engine.answer(await asked(live), Answer("cancel", by="session:1"))
        second = await asked(live)
        assert live.call.questions[second].to == "operator"
        engine.answer(second, says("run", "operator"))
        assert told(await over(engine, live))[0] == "ok"
        assert (
            told(await settled(engine, engine.submit(ASKS), Answer("cancel", by="operator")))[0] == "refused"
        )


async def test_a_cancel_with_no_operator_there_is_refused() -> None:
    """A1, A5: at once."""
    async with asking() as engine:
        engine.policy.seen = 0.0
        live = await settled(engine, engine.submit(ASKS), Answer("cancel", by="session:1"))
    assert told(live)[0] == "refused" and "no operator was seen" in told(live)[1]


async def test_the_operator_and_not_the_model_is_told_which_setting_lets_a_tool_run_unasked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A1, A8: in the log and in the history; the model is told where a person can approve."""
    async with asking() as engine:
        engine.policy.seen = 0.0
        engine.policy.console = "http://127.0.0.1:23668"
        live = await over(engine, engine.submit(Submission("tool")))
    assert live.call.end is not None and live.call.end.failure is not None
    key = 'approval = "auto" in [tools."bench/tool"]'
    assert key in live.call.end.failure.hint and key in caplog.text
    text = told(live)[1]
    assert "http://127.0.0.1:23668/" in text and "`afoot watch`" in text
    assert not any(word in text for word in ("auto", "approval =", "unanswerable", "ask_by", "[tools"))


async def test_nobody_who_can_answer_is_refused_at_once() -> None:
    """A1, A3: no caller to ask, no operator seen."""
    async with asking() as engine:
        engine.policy.seen = engine.clock.now() - 61
        live = await over(engine, engine.submit(Submission("tool")))
    outcome, message = told(live)
    assert outcome == "refused" and "this client cannot be asked" in message
    assert live.call.approved == "none" and not live.call.questions


async def test_where_it_may_wait_it_waits_up_to_the_answer_limit() -> None:
    """A1, C6: no other clock runs meanwhile."""
    limits = Limits(idle_s=5, ceiling_s=10, queue_s=7, answer_s=600)
    async with asking(limits=limits) as engine:
        engine.policy.waits = True
        engine.policy.seen = 0.0
        live = await over(engine, engine.submit(Submission("tool")))
    assert live.call.end and live.call.end.failure
    assert (live.call.end.outcome, live.call.end.failure.clock) == ("timed_out", "answer")
    assert live.call.end.at - live.call.opened.at == pytest.approx(600)


async def test_time_to_think_is_off_the_clock() -> None:
    """C6: after nine minutes of thought the tool has all of its time, and the queue all of its."""
    async with asking(limits=Limits(idle_s=5, ceiling_s=10, queue_s=7)) as engine:
        live = engine.submit(ASKS)
        name = await asked(live)
        await asyncio.sleep(540)
        assert waiting_on(live.call) == "person"
        assert (
            notice(live.call, engine.clock.now()).message
            == 'waiting for approval: Run bench/tool({"path": "/"})?'
        )
        engine.answer(name, says("run"))
        assert told(await over(engine, live))[0] == "ok"


async def test_the_first_answer_wins() -> None:
    """A5: the second is refused, and names the first."""
    async with asking() as engine:
        engine.policy.ask_by = "both"
        live = engine.submit(ASKS)
        name = await asked(live)
        assert live.call.questions[name].to == ""
        engine.answer(name, says("run", "operator"))
        with pytest.raises(AlreadyAnswered, match="accept, by operator"):
            engine.answer(name, says("skip"))
        assert told(await over(engine, live))[0] == "ok"


async def test_an_answer_that_does_not_fit_leaves_it_open() -> None:
    """A2, Q2: nothing runs on nonsense."""
    async with asking() as engine:
        live = engine.submit(ASKS)
        name = await asked(live)
        with pytest.raises(ToolError, match="decision"):
            engine.answer(name, says("perhaps"))
        assert name in live.call.open and live.call.started is None
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    assert told(live)[0] == "cancelled"


async def test_an_answer_given_before_it_was_asked_approves_nothing() -> None:
    """A6, Q1 e: an approval is for a call that is known."""
    async with asking() as engine:
        keys = ("approval", "afoot_approval", "")
        early = Submission(
            "tool", ASKS.arguments, "session:1", answers=dict.fromkeys(keys, says("run")), can_ask=True
        )
        live = engine.submit(early)
        assert await asked(live) and live.call.started is None


async def test_an_approval_answers_no_question_of_the_tools_own() -> None:
    """A6: nor does the tool's own answer approve anything."""

    async def nosy(run: Run) -> str:
        return (await run.ask(form("approval"))).by

    async with engine_of(nosy, destructive=True) as engine:
        live = engine.submit(ASKS)
        engine.answer(await asked(live), says("run"))
        await asyncio.sleep(1)
        assert live.call.open and live.call.approved == "caller"


@pytest.mark.parametrize("decision", ["run", "skip", "always"])
async def test_an_approval_that_is_open_when_the_gateway_dies_is_open_again(decision: str) -> None:
    """H4, A6: nothing ran, so nothing is uncertain; the answer is for that very call."""
    journal = MemoryJournal()
    async with asking(journal=journal) as engine:
        live = engine.submit(ASKS)
        name = await asked(live)
        await engine.recorder.recorded()
        kept = MemoryJournal()
        kept.write(Batch(await journal.facts(live.call.id)))  # as a gateway that died left it
    async with asking(journal=kept) as later:
        await recover(later)
        again = later[live.call.id]
        assert await asked(again) == name
        later.answer(name, says(decision))
        await over(later, again)
        assert told(again)[0] == ("refused" if decision == "skip" else "ok")
        assert len(later.policy.entries) == (decision == "always")


async def test_a_call_below_asks_the_caller_of_the_call_above() -> None:
    """A5, P8: for its own start, with its own arguments; the call above was approved by nobody."""

    async def above(run: Run) -> str:
        await run.call("tool", Raw(b'{"path": "/below"}'), 1.0)
        return "both"

    bench = Bench()
    bench.add(works, destructive=True)
    bench.add(above, "above")
    async with offering(bench) as engine:
        live = engine.submit(Submission("above", Raw(b"{}"), "session:1", can_ask=True))
        question = live.call.questions[await asked(live)]
        assert question.kind == "approval" and "/below" in question.message
        engine.answer(question.id, says("run"))
        await over(engine, live)
    assert told(live)[0] == "ok" and live.call.approved == "auto"
