"""A connection of the handshake era: its calls, its cancels, and the questions that are nested requests."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.call import State
from afoot.core.facts import Answer, CancelRequested, Limits
from afoot.core.ports import Run
from afoot.serve.mcp.client_requests_2025 import MAX_TRIES
from afoot.wire.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Fault
from tests.engine.fake_engine import facts, form
from tests.serve.fake_gateway import Client, Message, Tape, asks, faked, nap, only, question, said, site_of
from tests.serve.raw_transports import cancelled, hello, older, request

EVERYTHING: Message = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
TYPED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def nested(tape: Tape, method: str = "elicitation/create") -> list[Message]:
    """The requests that came on this stream."""
    return [sent for _, sent in tape.of(method)]


def withdrawn(tape: Tape) -> list[Message]:
    """What was taken back."""
    return [sent["params"] for _, sent in tape.of("notifications/cancelled")]


@faked
async def test_a_session_begins_with_a_welcome_and_lists_what_there_is() -> None:
    """C8: nothing of 2026-07-28 in it."""
    async with site_of(nap) as gateway:
        client = Client(gateway)
        welcome = (await client.ask(hello(**EVERYTHING))).result
        assert (welcome["protocolVersion"], welcome["serverInfo"]["name"]) == ("2025-11-25", "afoot")
        assert client.session.capabilities.can("sample") and client.session.capabilities.can("url")
        assert (await client.ask(request("ping"))).result == {}
        assert list((await client.ask(request("tools/list"))).result) == ["tools"]
        for method, key in (("prompts/list", "prompts"), ("resources/templates/list", "resourceTemplates")):
            assert (await client.ask(request(method))).result == {key: []}


@faked
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/dance", {}, METHOD_NOT_FOUND),
        ("tools/list", {"cursor": "2"}, INVALID_PARAMS),
        ("logging/setLevel", {"level": "loud"}, INVALID_PARAMS),
        ("tools/call", {"name": "tol"}, INVALID_PARAMS),
        ("tools/call", {"name": "tool", "_meta": {"progressToken": 1.5}}, INVALID_PARAMS),
    ],
)
async def test_a_request_that_is_wrong_is_told(method: str, params: object, code: int) -> None:
    """E4, E5: the protocol's error, and nothing runs."""
    async with site_of(nap) as gateway:
        with pytest.raises(Fault) as fault:
            await Client(gateway).ask(request(method, params))
        assert fault.value.code == code and gateway.engine.calls() == []


@faked
async def test_a_question_is_a_nested_request_on_the_same_stream() -> None:
    """Q1: straight on, without a round; the answer counts as the caller's."""
    async with site_of(asks) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older(5))
        await asyncio.sleep(1)
        [asked] = nested(tape)
        assert asked["params"]["message"] == "sure?" and "mode" not in asked["params"]
        client.answer(asked, action="accept", content={"a": 1})
        await client.done()
    assert "accept" in tape.result["content"][0]["text"] and "resultType" not in tape.result
    assert "by session:1" in tape.result["content"][0]["text"] and withdrawn(tape) == []


@faked
async def test_who_answers_first_wins_and_the_callers_form_is_withdrawn() -> None:
    """A5, Q4: the operator was faster; the caller's late answer is counted and changes nothing."""
    async with site_of(asks) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        [asked] = nested(tape)
        [open_id] = only(gateway).call.open
        gateway.engine.answer(open_id, Answer("decline", by="operator"))
        client.answer(asked, action="accept", content={})
        await client.done()
        client.answer(asked, action="accept", content={})
        assert gateway.counters == {"answers too late": 1, "answers to nothing": 1}
    assert "decline  by operator" in tape.result["content"][0]["text"]


@faked
async def test_a_form_is_withdrawn_with_the_name_of_who_answered() -> None:
    """A5: `notifications/cancelled` for our own request, before anything else of the call."""

    async def tool(run: Run) -> str:
        answer = await run.ask(form("sure"))
        await asyncio.sleep(1)
        return said(answer)

    async with site_of(tool) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        gateway.engine.answer(next(iter(only(gateway).call.open)), Answer("decline", by="operator"))
        await client.done()
    [asked] = nested(tape)
    assert withdrawn(tape) == [{"requestId": asked["id"], "reason": "answered by operator"}]


@faked
@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_a_form_is_withdrawn_when_its_call_ends(how: str) -> None:
    """Q4: no form stays open at the client for a call that is over."""
    async with site_of(asks, limits=Limits(answer_s=30)) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older(5))
        await asyncio.sleep(10)
        if how == "cancel":
            client.tell(cancelled(5))
        await client.done()
        client.answer(nested(tape)[0], action="accept")
        assert gateway.counters == {"answers to nothing": 1}
    assert [params["requestId"] for params in withdrawn(tape)] == [nested(tape)[0]["id"]]
    assert (tape.ended[0][1] is None) is (how == "cancel")


@faked
async def test_an_answer_that_does_not_fit_is_asked_for_again_a_few_times() -> None:
    """Q2: then it counts as no answer."""

    async def tool(run: Run) -> str:
        return said(await run.ask(form("name", TYPED)))

    async with site_of(tool) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        for wrong in range(MAX_TRIES + 1):
            tape = client.put(older(wrong))
            for _ in range(wrong):
                await asyncio.sleep(1)
                client.answer(nested(tape)[-1], action="accept", content={"name": 1})
            await asyncio.sleep(1)
            if wrong < MAX_TRIES:
                client.answer(nested(tape)[-1], action="accept", content={"name": "Ada"})
            await client.done()
            assert len(nested(tape)) == min(wrong + 1, MAX_TRIES)
            assert tape.result["content"][0]["text"].startswith("accept" if wrong < MAX_TRIES else "cancel")


@faked
async def test_an_error_in_place_of_an_answer_is_no_answer() -> None:
    """Q2: a client that could not ask says so; the tool is told cancel."""
    async with site_of(asks) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older())
        await asyncio.sleep(1)
        error = {"code": -1, "message": "no"}
        client.tell({"jsonrpc": "2.0", "id": nested(tape)[0]["id"], "error": error})
        await client.done()
    assert tape.result["content"][0]["text"] == "cancel  by session:1"


@faked
async def test_a_client_is_asked_only_for_what_it_can() -> None:
    """Q1: models and roots are declined for one that has none; forms wait for the operator."""

    async def tool(run: Run) -> str:
        found = await asyncio.gather(*[run.ask(question(kind)) for kind in ("sample", "roots", "form")])
        return "; ".join(map(said, found))

    async with site_of(tool) as gateway:
        client = Client(gateway)
        await client.ask(hello())
        tape = client.put(older())
        await asyncio.sleep(1)
        [asked] = only(gateway).call.open.values()
        assert asked.kind == "form" and tape.frames == []
        gateway.engine.answer(asked.id, Answer("accept", Raw(b"{}"), "operator"))
        await client.done()
    assert tape.result["content"][0]["text"].count("decline  by engine") == 2


@faked
async def test_a_model_and_roots_are_lent_by_who_has_them() -> None:
    """Q1: each by its own method."""

    async def tool(run: Run) -> str:
        found = await asyncio.gather(run.ask(question("sample")), run.ask(question("roots")))
        return "; ".join(map(said, found))

    async with site_of(tool) as gateway:
        client = Client(gateway)
        await client.ask(hello(**EVERYTHING))
        tape = client.put(older())
        await asyncio.sleep(1)
        client.answer(nested(tape, "sampling/createMessage")[0], role="assistant")
        client.answer(nested(tape, "roots/list")[0], roots=[])
        await client.done()
    assert (
        '"assistant"' in tape.result["content"][0]["text"] and '"roots"' in tape.result["content"][0]["text"]
    )


@faked
async def test_a_cancel_ends_the_call_and_nothing_follows() -> None:
    """X1, X3: with the caller's reason; an unknown id is ignored."""
    async with site_of(nap) as gateway:
        client = Client(gateway)
        tape = client.put(older(5, progressToken="t"))
        await asyncio.sleep(1)
        live = only(gateway)
        client.tell(cancelled(6))
        client.tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
        assert live.call.state is State.RUNNING
        client.tell(cancelled(5, "enough"))
        await client.done()
        [wish] = facts(live, CancelRequested)
    assert (wish.by, wish.reason, tape.frames, tape.ended) == ("caller", "enough", [], [(1, None)])


@faked
@pytest.mark.parametrize("dies", [False, True])
async def test_a_lost_stream_is_no_cancel_unless_the_transport_is_the_caller(dies: bool) -> None:
    """X3: over HTTP the call runs on and can still be cancelled by its id; the end of a pipe ends it."""
    async with site_of(nap) as gateway:
        client = Client(gateway, dies=dies)
        tape = client.put(older(5))
        await asyncio.sleep(1)
        live = only(gateway)
        tape.leave()
        await client.done()
        assert (live.call.cancel is not None) is dies
        if not dies:
            client.tell(cancelled(5))
        assert live.call.cancel is not None and live.call.cancel.by == ("disconnect" if dies else "caller")


@faked
async def test_an_id_that_is_in_use_is_refused_and_a_token_in_use_goes_without_progress() -> None:
    """C8, T1, T4: nobody could tell the two apart; once the first is over both may be used again."""

    async def tool(run: Run) -> str:
        run.report(1, 2, None)
        await asyncio.sleep(1)
        return "done"

    async with site_of(tool) as gateway:
        client = Client(gateway)
        first = client.put(older(5, progressToken="t"))
        await asyncio.sleep(0.1)
        with pytest.raises(Fault, match="id: 5") as refused:
            await client.ask(older(5))
        second = await client.ask(older(6, progressToken="t"))
        third = await client.ask(older(5, progressToken="t"))
        await client.done()
        assert (refused.value.code, gateway.counters) == (INVALID_REQUEST, {"tokens used twice": 1})
    assert [len(tape.progress) for tape in (first, second, third)] == [1, 0, 1]


@faked
async def test_logs_are_sent_from_the_level_that_was_set() -> None:
    """C8: info and above until another is set."""

    async def tool(run: Run) -> str:
        for level in ("debug", "info", "error"):
            run.log(level, level, "")
        return "done"

    async with site_of(tool) as gateway:
        client = Client(gateway)
        assert len((await client.ask(older())).frames) == 2
        assert (await client.ask(request("logging/setLevel", {"level": "error"}))).result == {}
        assert len((await client.ask(older())).frames) == 1


@faked
async def test_while_a_form_is_open_the_notice_says_on_whom_it_waits() -> None:
    """C6: the client can be told, as its request is still attached."""
    async with site_of(asks) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older(5, progressToken="t"))
        await asyncio.sleep(31)
        client.answer(nested(tape)[0], action="decline")
        await client.done()
    assert tape.notices == [(15, "waiting for an answer: sure?"), (30, "waiting for an answer: sure?")]
