"""Approval on both eras of the wire: a round or a nested request, who else may answer, and signs of life."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.facts import Answer, Limits, Started
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.serve.gateway_state import GatewayState
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from afoot.wire.results import Capabilities
from tests.engine.fake_engine import Bench, facts, works
from tests.serve.fake_gateway import (
    Client,
    Message,
    Tape,
    begin,
    call_request,
    faked,
    only,
    replies,
    site_of,
    wanted,
)
from tests.serve.raw_transports import hello, older

KEY = "afoot_approval"
MUTE = Capabilities()


@asynccontextmanager
async def asking(
    policy: ApprovalPolicy | None = None, *, seen: bool = True, **options: Any
) -> AsyncIterator[GatewayState]:
    """A site whose tool is destructive; an operator is there if one was seen."""
    async with site_of(works, destructive=True, **options) as gateway:
        gateway.engine.policy = policy or ApprovalPolicy()
        gateway.engine.policy.seen = gateway.engine.clock.now() if seen else 0.0
        yield gateway


def says(decision: str, **more: object) -> dict[str, Raw]:
    """A retry's answer."""
    return replies(**{KEY: {"action": "accept", "content": {"decision": decision, **more}}})


def by_operator(gateway: GatewayState, decision: str) -> None:
    """The operator decides."""
    content = Raw(f'{{"decision": "{decision}"}}'.encode())
    gateway.engine.answer(next(reversed(only(gateway).call.open)), Answer("accept", content, "operator"))


def told(tape: Tape) -> str:
    """The text of a result."""
    return str(tape.result["content"][0]["text"])


@faked
async def test_a_modern_caller_is_asked_in_a_round_and_its_retry_runs_it() -> None:
    """A5, A2, Q1: a form with the tool, its arguments and the choices; the tool runs once, after it."""
    async with asking(seen=False) as gateway:
        first = await call_request(gateway, wanted(arguments=Raw(b'{"path": "/"}')))
        asked = first.result["inputRequests"][KEY]
        assert asked["method"] == "elicitation/create" and asked["params"]["mode"] == "form"
        assert asked["params"]["message"] == 'Run bench/tool({"path": "/"})?'
        decision = asked["params"]["requestedSchema"]["properties"]["decision"]
        assert decision["enum"] == [
            "run",
            "skip",
            "reject",
        ]  # the caller has no name to which always could belong
        live = only(gateway)
        assert live.call.started is None
        await asyncio.sleep(1)  # a person reads
        answered = wanted(arguments=Raw(b'{"path": "/"}'), state=first.state, answers=says("run"))
        assert told(await call_request(gateway, answered)) == "done"
        assert len(facts(live, Started)) == 1 and live.call.approved == "caller"


@faked
@pytest.mark.parametrize(
    ("answers", "text"),
    [
        (says("skip"), "the user chose to skip it"),
        (says("reject", instead="use the bin"), "The user says what to do instead: use the bin"),
        (replies(**{KEY: {"action": "decline"}}), "the user chose to skip it"),
    ],
)
async def test_a_no_in_a_round_reaches_the_model(answers: dict[str, Raw], text: str) -> None:
    """A2, A5: as an error result with the reviewer's words; nothing ran."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted())
        await asyncio.sleep(1)  # as a person needs
        last = await call_request(gateway, wanted(state=first.state, answers=answers))
        assert last.result["isError"] and text in told(last)
        assert last.result["_meta"]["dev.afoot/error"]["category"] == "refused"


@faked
async def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    """A2, Q1 d: and then it runs."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted())
        again = await call_request(gateway, wanted(state=first.state, answers=says("perhaps")))
        assert KEY in again.result["inputRequests"]
        await asyncio.sleep(1)  # a person reads
        assert told(await call_request(gateway, wanted(state=again.state, answers=says("run")))) == "done"


def change(gateway: GatewayState) -> None:
    """The tool has another definition from now on."""
    bench = Bench()
    bench.add(works, destructive=True, digest="another")
    gateway.engine.catalog.put(bench)


@faked
async def test_a_retry_says_yes_to_the_definition_that_its_form_was_about_and_to_no_other() -> None:
    """A7, Q1 d: the tool has changed between the rounds; the retry is asked about what it is now."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted())
        change(gateway)
        await asyncio.sleep(1)  # a person reads
        again = await call_request(gateway, wanted(state=first.state, answers=says("run")))
        assert KEY in again.result["inputRequests"] and only(gateway).call.started is None
        await asyncio.sleep(1)  # a person reads
        assert told(await call_request(gateway, wanted(state=again.state, answers=says("run")))) == "done"


@faked
async def test_an_older_callers_form_about_a_changed_tool_is_withdrawn_and_it_is_asked_anew() -> None:
    """A7: a nested request can be taken back; an answer to it changes nothing."""
    async with asking() as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        [(_, asked)] = tape.of("elicitation/create")
        change(gateway)
        await asyncio.sleep(1)
        [(_, withdrawn)] = tape.of("notifications/cancelled")
        assert withdrawn["params"] == {"requestId": asked["id"], "reason": "its tool has changed"}
        client.answer(asked, action="accept", content={"decision": "run"})
        await asyncio.sleep(1)
        _, (_, again) = tape.of("elicitation/create")
        assert only(gateway).call.started is None
        client.answer(again, action="accept", content={"decision": "run"})
        await client.done()
        assert told(tape) == "done"


@faked
async def test_answers_that_come_before_the_question_approve_nothing() -> None:
    """A6, Q1 e: a caller cannot wave its own call through."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted(answers=says("run")))
        assert KEY in first.result["inputRequests"] and only(gateway).call.started is None


@faked
async def test_an_approval_is_for_those_arguments() -> None:
    """A6: the same state with other arguments is refused, and runs nothing."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted(arguments=Raw(b'{"path": "/tmp/a"}')))
        with pytest.raises(Fault) as fault:
            await call_request(
                gateway, wanted(arguments=Raw(b'{"path": "/"}'), state=first.state, answers=says("run"))
            )
        assert fault.value.code == INVALID_PARAMS and only(gateway).call.started is None


@faked
async def test_a_late_retry_is_no_answer_and_follows_the_call() -> None:
    """A5: the operator was faster; a form already returned cannot be withdrawn."""
    async with asking(limits=Limits()) as gateway:
        first = await call_request(gateway, wanted())
        by_operator(gateway, "skip")
        last = await call_request(gateway, wanted(state=first.state, answers=says("run")))
        assert last.result["isError"] and "skip" in told(last)


@faked
async def test_a_cancelled_form_goes_to_the_operator_and_the_request_waits() -> None:
    """A5, C6, T5: with signs of life that say on whom it waits."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted())
        cancelled = replies(**{KEY: {"action": "cancel"}})
        task = begin(gateway, wanted(token="t", state=first.state, answers=cancelled))
        await asyncio.sleep(50)
        assert only(gateway).call.questions[next(iter(only(gateway).call.open))].to == "operator"
        by_operator(gateway, "run")
        tape = await task
        assert told(tape) == "done" and tape.notices
        assert all(text.startswith("waiting for approval: Run bench/tool(") for _, text in tape.notices)
        assert tape.progress[0]["_meta"]["dev.afoot/progress"]["waiting_on"] == "person"


@faked
async def test_a_caller_that_cannot_be_asked_waits_for_the_operator() -> None:
    """A1, A5, C6, T5: a notice every 15 s, no total; then it runs."""
    async with asking() as gateway:
        task = begin(gateway, wanted(token="t", capabilities=MUTE))
        await asyncio.sleep(50)
        by_operator(gateway, "run")
        tape = await task
        assert [at for at, _ in tape.notices] == [15, 30, 45] and told(tape) == "done"
        assert {total for _, total in tape.numbers} == {None}


@faked
async def test_where_nobody_can_answer_the_caller_is_told_at_once_and_not_what_to_set() -> None:
    """A1, A8, F7: no elicitation, no operator. The setting is for the operator, not for a model."""
    async with asking(seen=False) as gateway:
        tape = await call_request(gateway, wanted(capabilities=MUTE))
        assert tape.result["isError"] and "`afoot watch`" in told(tape) and tape.ended[0][0] < 1
        assert "auto" not in str(tape.last) and "unanswerable =" not in str(tape.last)
        assert tape.result["structuredContent"] == {"afoot_error": "unanswerable", "text": told(tape)}


@faked
async def test_by_both_the_caller_is_asked_and_the_operator_may_answer() -> None:
    """A5: `ask_by = "both"`; the caller's retry then follows."""
    async with asking() as gateway:
        gateway.engine.policy.ask_by = "both"
        first = await call_request(gateway, wanted())
        assert KEY in first.result["inputRequests"]
        by_operator(gateway, "run")
        assert told(await call_request(gateway, wanted(state=first.state))) == "done"


@faked
async def test_by_operator_the_caller_is_not_asked_and_cannot_answer() -> None:
    """A5: `ask_by = "operator"`, though the caller could."""
    async with asking() as gateway:
        gateway.engine.policy.ask_by = "operator"
        task = begin(gateway, wanted())
        await asyncio.sleep(1)
        live = only(gateway)
        state = gateway.seal_request_state(live, wanted(), "local", 1)
        sly = begin(gateway, wanted(id=2, state=state, answers=says("run")))
        await asyncio.sleep(1)
        assert live.call.open and live.call.started is None
        by_operator(gateway, "skip")
        assert "skip" in told(await task) and "skip" in told(await sly)


@faked
async def test_always_holds_for_that_caller() -> None:
    """A2, A5: another is asked."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted(), caller="stdio")
        await asyncio.sleep(1)  # a person reads
        await call_request(gateway, wanted(state=first.state, answers=says("always")), caller="stdio")
        assert told(await call_request(gateway, wanted(), caller="stdio")) == "done"
        assert KEY in (await call_request(gateway, wanted(), caller="connect:1")).result["inputRequests"]


def nested(tape: Tape) -> list[Message]:
    """The forms that came on this stream."""
    return [sent for _, sent in tape.of("elicitation/create")]


@faked
@pytest.mark.parametrize("decision", ["run", "skip"])
async def test_an_older_caller_is_asked_by_a_nested_request(decision: str) -> None:
    """A5, Q1: and its answer decides."""
    async with asking(seen=False) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        [asked] = nested(tape)
        assert asked["params"]["message"].startswith("Run bench/tool(")
        client.answer(asked, action="accept", content={"decision": decision})
        await client.done()
        assert told(tape) == "done" if decision == "run" else "skip" in told(tape)


@faked
async def test_an_older_callers_form_is_withdrawn_when_the_operator_is_faster() -> None:
    """A5: `notifications/cancelled`; what it answers after that changes nothing."""
    async with asking() as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        [asked] = nested(tape)
        by_operator(gateway, "reject")
        await client.done()
        client.answer(asked, action="accept", content={"decision": "run"})
        [(_, withdrawn)] = tape.of("notifications/cancelled")
        assert withdrawn["params"] == {"requestId": asked["id"], "reason": "answered by operator"}
        assert tape.result["isError"] and "rejected" in told(tape)


@faked
async def test_an_older_caller_that_cancels_its_form_leaves_it_to_the_operator() -> None:
    """A5, C6: who is asked by a question of their own."""
    async with asking() as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older(progressToken="t"))
        await asyncio.sleep(1)
        client.answer(nested(tape)[0], action="cancel")
        await asyncio.sleep(40)
        assert len(nested(tape)) == 1
        by_operator(gateway, "run")
        await client.done()
        assert (
            told(tape) == "done" and [text[:20] for _, text in tape.notices] == ["waiting for approval"] * 2
        )
