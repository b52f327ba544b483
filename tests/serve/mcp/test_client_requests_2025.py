"""Clients of the handshake era are asked in the middle of a request that starts no call."""

import asyncio

import pytest
from msgspec.structs import replace

from afoot.core.facts import Question
from afoot.serve.resources import AskCaller
from afoot.wire.jsonrpc import Fault
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, Message, Tape, faked, now, said
from tests.serve.fake_resource_servers import PROMPT, Rack, Rounds, asks, get, opened, site_with
from tests.serve.raw_transports import Web, request


async def asked(tape: Tape) -> Message:
    """What the client is asked next."""
    await asyncio.sleep(1)
    found: Message = tape.frames[-1][1]
    return found


@faked
async def test_an_older_client_is_asked_meanwhile() -> None:
    """U5: a server of 2026-07-28 asks; the client gets nested requests, and then one result."""
    asker = Rounds(asks("who", state="one"), asks("r", state="two", method="roots/list"), asks(state="three"))
    async with site_with(Rack("a", asker, prompts=["p"])) as gateway:
        client = await opened(gateway, elicitation={}, roots={})
        tape = client.put(
            request("prompts/get", {"name": "p", "requestState": "mine", "inputResponses": {"x": 1}})
        )
        question = await asked(tape)
        assert question["method"] == "elicitation/create" and "mode" not in question["params"]
        client.answer(question, action="accept", content={"name": "A"})
        client.answer(await asked(tape), roots=[])
        await client.done()
        assert tape.result == PROMPT
    assert [one.get("requestState") for one in asker.seen] == [None, "one", "two", "three"]
    given = [one.get("inputResponses") for one in asker.seen]
    assert given == [
        None,
        {"who": {"action": "accept", "content": {"name": "A"}}},
        {"r": {"roots": []}},
        None,
    ]


@faked
async def test_an_older_client_that_cannot_be_asked_is_told_so() -> None:
    """Q3: an error that says what it lacks."""
    async with site_with(Rack("a", lambda *_: asks("who"), prompts=["p"])) as gateway:
        client = await opened(gateway)
        with pytest.raises(Fault, match="server a asks .* did not offer at initialize: elicitation"):
            await client.ask(request("prompts/get", {"name": "p"}))


@faked
@pytest.mark.parametrize(("method", "goes_on"), [("elicitation/create", True), ("roots/list", False)])
async def test_a_question_that_an_older_client_refuses(method: str, goes_on: bool) -> None:
    """Q3: a person who was not asked has not answered; a list that is not there is an error."""
    asker = Rounds(asks("k", method=method))
    async with site_with(Rack("a", asker, prompts=["p"])) as gateway:
        client = await opened(gateway, elicitation={}, roots={})
        tape = client.put(request("prompts/get", {"name": "p"}))
        question = await asked(tape)
        client.tell({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no"}})
        await client.done()
        if goes_on:
            assert asker.seen[-1]["inputResponses"] == {"k": {"action": "cancel"}} and tape.result == PROMPT
        else:
            assert "the client did not answer roots/list: no" in tape.last["error"]["message"]


@faked
async def test_a_server_that_never_stops_asking_is_stopped() -> None:
    """Q1 g: after ten rounds, with an error that says so."""
    async with site_with(Rack("a", lambda *_: asks(), prompts=["p"])) as gateway:
        client = await opened(gateway)
        with pytest.raises(Fault, match="server a asked 10 times"):
            await client.ask(request("prompts/get", {"name": "p"}))


@faked
async def test_the_clock_stands_still_while_a_person_is_asked() -> None:
    """C6: the ceiling is for the server; the person has the answer limit."""
    asker = Rounds(asks("who"))
    rack = Rack("a", asker, prompts=["p"])
    rack.delay_s = 3
    async with site_with(rack, ceiling_s=7, answer_s=60) as gateway:
        client = await opened(gateway, elicitation={})
        tape = client.put(request("prompts/get", {"name": "p"}))
        await asyncio.sleep(50)
        client.answer(tape.frames[-1][1], **YES)
        await client.done()
        assert tape.result == PROMPT and now() == 53
        asker = Rounds(asks("who"))
        rack._answering = asker
        tape = client.put(request("prompts/get", {"name": "p"}, 2))
        await client.done()
        assert now() == 53 + 3 + 60 and "within 60 s (answer_s)" in tape.last["error"]["message"]
        assert tape.frames[-1][1]["method"] == "notifications/cancelled", "the question is withdrawn"


class Older(Rack):
    """A server of the handshake era, which asks in the middle of what it is asked."""

    asking: Question = form("who")

    async def request(
        self, method: str, params: Message, caller: str = "", ask: AskCaller | None = None
    ) -> Message:
        """Ask, wait a second, and tell what was said."""
        if ask is None:
            raise Fault(-32601, "there is nobody to ask")
        answer = await ask(self.asking)
        await asyncio.sleep(1)
        return {"said": said(answer)}


@faked
async def test_an_older_server_asks_an_older_client() -> None:
    """Q3: in the middle of its request, while the clock stands still; a person has the answer limit."""
    async with site_with(Older("a", prompts=["p"]), ceiling_s=5, answer_s=60) as gateway:
        client = await opened(gateway, elicitation={})
        tape = client.put(request("prompts/get", {"name": "p"}))
        await asyncio.sleep(50)
        client.answer(tape.frames[-1][1], **YES)
        await client.done()
        assert tape.result["said"].startswith("accept {} by") and now() == 51
        tape = client.put(request("prompts/get", {"name": "p"}, 2))
        await client.done()
        assert now() == 51 + 60 and "answer_s" in tape.last["error"]["message"]
        with pytest.raises(Fault, match="did not offer"):
            await (await opened(gateway)).ask(request("prompts/get", {"name": "p"}))


@faked
async def test_an_older_server_cannot_ask_where_nobody_may_answer() -> None:
    """Q3: a caller of 2026-07-28 has no call that could wait; and nobody answers for another's."""
    server = Older("a", prompts=["p"])
    async with site_with(server) as gateway:
        error = (await Web(gateway).ask(get("p"))).messages[0]["error"]
        assert error == {"code": -32601, "message": "there is nobody to ask"}
        server.asking = replace(form("who"), to="operator")
        found = (
            await (await opened(gateway, elicitation={})).ask(request("prompts/get", {"name": "p"}))
        ).result
        assert found["said"].startswith("decline")
