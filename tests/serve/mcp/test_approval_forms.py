"""The forms of an approval at the caller: one field, a second form after reject, hosts without a person."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from tests.serve.fake_gateway import Client, begin, call_request, faked, only, replies, wanted
from tests.serve.mcp.test_approval import KEY, MUTE, asking, by_operator, nested, says, told
from tests.serve.raw_transports import hello, older

INSTEAD = "afoot_instead"
REJECT = {"action": "accept", "content": {"decision": "reject"}}
WORDS: dict[str, Any] = {"action": "accept", "content": {"instead": "use the bin"}}
DECLINE = {"action": "decline"}


def fields(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields of a form."""
    found: dict[str, dict[str, Any]] = params["requestedSchema"]["properties"]
    return found


@faked
async def test_a_modern_caller_is_asked_what_to_do_instead_in_a_round_after_its_reject() -> None:
    """A8, A2: the first form has one field and no default, the second one field that must be filled."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted())
        asked = first.result["inputRequests"]
        assert list(asked) == [KEY] and list(fields(asked[KEY]["params"])) == ["decision"]
        assert "default" not in fields(asked[KEY]["params"])["decision"]
        second = await call_request(gateway, wanted(state=first.state, answers=says("reject")))
        asked = second.result["inputRequests"]
        assert list(asked) == [INSTEAD] and list(fields(asked[INSTEAD]["params"])) == ["instead"]
        assert asked[INSTEAD]["params"]["requestedSchema"]["required"] == ["instead"]
        last = await call_request(gateway, wanted(state=second.state, answers=replies(**{INSTEAD: WORDS})))
        assert told(last).endswith("The user says what to do instead: use the bin")
        assert last.result["structuredContent"] == {"afoot_error": "rejected", "text": told(last)}


@faked
async def test_an_older_caller_is_asked_what_to_do_instead_after_its_reject() -> None:
    """A8, A2: by a second nested request."""
    async with asking() as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        client.answer(nested(tape)[0], **REJECT)
        await asyncio.sleep(1)
        first, second = nested(tape)
        assert list(fields(first["params"])) == ["decision"] and list(fields(second["params"])) == ["instead"]
        client.answer(second, **WORDS)
        await client.done()
        assert "instead: use the bin" in told(tape) and tape.result["isError"]


@faked
@pytest.mark.parametrize("how", [DECLINE, {"action": "cancel"}, None])
async def test_a_reject_stands_whatever_becomes_of_the_second_form(how: dict[str, str] | None) -> None:
    """A8: declined, cancelled, or left alone for two minutes: it is rejected, and has not timed out."""
    async with asking() as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        client.answer(nested(tape)[0], **REJECT)
        await asyncio.sleep(1)
        if how is not None:
            client.answer(nested(tape)[1], **how)
        await client.done()
        assert told(tape) == "tool was not run: the user rejected it"
        assert tape.result["_meta"]["dev.afoot/error"]["code"] == "rejected"
        assert tape.ended[0][0] <= (122 if how is None else 2)


@faked
@pytest.mark.parametrize("decision", ["run", "skip"])
async def test_nothing_more_is_asked_after_any_other_decision(decision: str) -> None:
    """A8: a second form comes only after reject."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted())
        last = await call_request(gateway, wanted(state=first.state, answers=says(decision)))
        assert last.result["resultType"] == "complete"


@faked
async def test_the_operator_rejects_and_says_what_to_do_instead_in_one_step() -> None:
    """A2, A8: console, side panel and terminal ask for both at once; without words nobody is asked again."""
    async with asking() as gateway:
        task = begin(gateway, wanted(capabilities=MUTE))
        await asyncio.sleep(1)
        by_operator(gateway, "reject")
        assert told(await task) == "tool was not run: the user rejected it"


@faked
async def test_a_decline_that_a_modern_host_made_by_itself_goes_to_the_operator() -> None:
    """A8: the retry came within 50 ms; operator and caller are told why it is asked again."""
    async with asking() as gateway:
        gateway.engine.policy.console = "http://127.0.0.1:1"
        first = await call_request(gateway, wanted())
        await asyncio.sleep(0.049)
        declined = wanted(state=first.state, answers=replies(**{KEY: DECLINE}), token="t")
        task = begin(gateway, declined)
        await asyncio.sleep(1)
        live = only(gateway)
        [asked] = live.call.open.values()
        assert asked.to == "operator" and b"the client answered within 50 ms" in bytes(asked.body)
        by_operator(gateway, "run")
        tape = await task
        assert told(tape) == "done" and "the console at http://127.0.0.1:1/" in tape.notices[0][1]
        assert next(iter(live.call.answers.values())).answer.surface == "host"


@faked
async def test_a_decline_that_an_older_host_made_by_itself_is_no_persons_word() -> None:
    """A8: no operator is there either, and the text says what happened."""
    async with asking(seen=False) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older(), streaming=True)
        await asyncio.sleep(0.04)
        client.answer(nested(tape)[0], **DECLINE)
        await client.done()
        assert "the client answered within 50 ms, without asking a person" in told(tape)
        assert tape.result["_meta"]["dev.afoot/error"]["code"] == "unanswerable"
        assert "user" not in told(tape)


@faked
@pytest.mark.parametrize(("caller", "after_s"), [("local", 0.049), ("stdio", 0.001), ("connect:1", 0.001)])
async def test_a_yes_that_a_modern_client_gave_by_itself_goes_to_the_operator(
    caller: str, after_s: float
) -> None:
    """A8, S6: a caller without a name cannot approve its own call faster than a person could."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted(), caller=caller)
        await asyncio.sleep(after_s)
        hasty = wanted(state=first.state, answers=says("run"))
        task = asyncio.create_task(call_request(gateway, hasty, caller=caller))
        await asyncio.sleep(1)
        live = only(gateway)
        [asked] = live.call.open.values()
        assert live.call.started is None and asked.to == "operator"
        assert b"the client answered within 50 ms, without asking a person" in bytes(asked.body)
        by_operator(gateway, "run")
        assert told(await task) == "done" and live.call.approved == "user"


@faked
async def test_a_yes_that_an_older_client_gave_by_itself_runs_nothing() -> None:
    """A8, S6: nobody else is there either, so the call is refused, and the text says why."""
    async with asking(seen=False) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older(), streaming=True)
        await asyncio.sleep(0.04)
        client.answer(nested(tape)[0], action="accept", content={"decision": "run"})
        await client.done()
        assert "the client answered within 50 ms, without asking a person" in told(tape)
        assert tape.result["_meta"]["dev.afoot/error"]["code"] == "unanswerable"


@faked
async def test_the_program_of_a_caller_with_a_name_may_say_yes_at_once() -> None:
    """A5, S6: the operator gave it a token; the call is recorded as approved by the caller."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted(), caller="token:ada")
        live = only(gateway)
        hasty = wanted(state=first.state, answers=says("run"))
        assert told(await call_request(gateway, hasty, caller="token:ada")) == "done"
        assert live.call.approved == "caller"


@faked
async def test_an_empty_yes_runs_nothing() -> None:
    """A8: a form that is sent off unread has no decision in it, so it is asked again."""
    async with asking() as gateway:
        first = await call_request(gateway, wanted())
        empty = replies(**{KEY: {"action": "accept", "content": {}}})
        again = await call_request(gateway, wanted(state=first.state, answers=empty))
        assert KEY in again.result["inputRequests"] and only(gateway).call.started is None


@faked
async def test_what_to_do_instead_cannot_be_said_before_it_is_asked() -> None:
    """A6, A8: an answer that came with the call is no answer."""
    async with asking() as gateway:
        early: dict[str, Raw] = replies(**{INSTEAD: WORDS})
        first = await call_request(gateway, wanted(answers=early))
        second = await call_request(gateway, wanted(state=first.state, answers=says("reject")))
        assert list(second.result["inputRequests"]) == [INSTEAD]
