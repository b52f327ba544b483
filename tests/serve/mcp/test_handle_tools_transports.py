"""Calls that were handed over, in the handshake era and on a pipe."""

import asyncio
from typing import Any

import pytest

from afoot.core.facts import Limits
from afoot.core.ports import Run
from afoot.serve.gateway_state import GatewayState
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, Client, Message, faked, nap, only, said, site_of
from tests.serve.mcp.handle_requests import words
from tests.serve.raw_transports import Pipe, call, cancelled, hello, modern, older, request


async def shaken(gateway: GatewayState, **capabilities: object) -> Client:
    """A client of the handshake era that waits four seconds for an answer."""
    client = Client(gateway)
    await client.ask(hello(**capabilities))
    return client


HURRIED = {"caller_limits": {"test": 4}}


def older_wait(call_id: str, id: int, **meta: Any) -> Message:
    """A wait of the handshake era."""
    return request("tools/call", {"name": "afoot_wait", "arguments": {"call": call_id}, "_meta": meta}, id)


@faked
async def test_in_the_handshake_era_a_call_outlasts_its_caller_by_a_handle() -> None:
    """H5: by the name that the client gave when it shook hands."""
    async with site_of(nap, settings=HURRIED) as gateway:
        client = await shaken(gateway)
        first = await client.ask(older(1))
        call_id = first.result["structuredContent"]["afoot_call"]
        assert first.ended[0][0] == 3 and "resultType" not in first.result
        tapes = [await client.ask(older_wait(call_id, n)) for n in (2, 3, 4)]
    assert [tape.ended[0][0] for tape in tapes] == [6, 9, 10] and words(tapes[-1]) == "slept"


@faked
async def test_in_the_handshake_era_the_tools_are_listed_for_that_client() -> None:
    """H5: and no other."""
    async with site_of(nap, settings=HURRIED) as gateway:
        listed = (await (await shaken(gateway)).ask(request("tools/list"))).result["tools"]
        stranger = await Client(gateway).ask(request("tools/list"))
        meant = request("tools/list", {"_meta": {"dev.afoot/budget": {"wait_s": 9}}})
        assert [tool.get("name") for tool in listed[1:]] == ["afoot_wait", "afoot_calls", "afoot_cancel"]
        assert len(stranger.result["tools"]) == 1
        assert len((await Client(gateway).ask(meant)).result["tools"]) == 4


@faked
async def test_in_the_handshake_era_no_handle_is_given_while_a_form_is_open() -> None:
    """H5: neither to the call itself nor to a wait; the form is not taken back from the person."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(5)
        return said(await run.ask(form("sure")))

    async with site_of(tool, settings=HURRIED) as gateway:
        client = await shaken(gateway, elicitation={})
        call_id = (await client.ask(older(1))).result["structuredContent"]["afoot_call"]
        waiting = client.put(older_wait(call_id, 2))
        await asyncio.sleep(20)
        [(_, asked)] = waiting.of("elicitation/create")
        assert not waiting.ended and not waiting.of("notifications/cancelled")
        client.answer(asked, **YES)
        await client.done()
    assert words(waiting) == "accept {} by session:1" and waiting.ended[0][0] == 23


@faked
@pytest.mark.parametrize(("name", "handed_at"), [("codex-mcp-client", 23), ("other", 21)])
async def test_after_a_form_the_rest_of_the_limit_counts(name: str, handed_at: float) -> None:
    """H5: the limit of some clients stands still while a form is open; any other has a moment left."""

    async def tool(run: Run) -> str:
        await run.ask(form("sure"))
        await asyncio.sleep(60)
        return "done"

    async with site_of(tool, settings={"caller_limits": {name: 4}}, limits=Limits(None, 300)) as gateway:
        client = Client(gateway)
        greeting = hello(elicitation={})
        greeting["params"]["clientInfo"]["name"] = name
        await client.ask(greeting)
        tape = client.put(older(1))
        await asyncio.sleep(20)
        [(_, asked)] = tape.of("elicitation/create")
        client.answer(asked, **YES)
        await client.done()
    assert tape.ended[0][0] == handed_at and "afoot_call" in tape.result["structuredContent"]


@faked
async def test_in_the_handshake_era_a_cancel_of_a_wait_stops_no_call() -> None:
    """H5, X1: though one of the call itself does."""
    async with site_of(nap, settings=HURRIED) as gateway:
        client = await shaken(gateway)
        first = await client.ask(older(1))
        call_id = first.result["structuredContent"]["afoot_call"]
        second = client.put(older_wait(call_id, 2))
        await asyncio.sleep(1)
        client.tell(cancelled(2))
        client.tell(cancelled(1))  # it was answered: there is nothing to cancel
        await client.done()
        assert only(gateway).call.cancel is None and second.ended[0][1] is None


@faked
async def test_on_a_pipe_a_cancel_of_a_wait_stops_no_call() -> None:
    """H5, X1: nor does one that comes before it is known for what it waits."""
    async with site_of(nap) as gateway:
        pipe = Pipe(gateway)
        pipe.put(call(1, capabilities={}, **{"dev.afoot/budget": {"wait_s": 4}}))
        await asyncio.sleep(3.5)
        call_id = pipe.said[-1]["result"]["structuredContent"]["afoot_call"]
        params = {"name": "afoot_wait", "arguments": {"call": call_id}}
        before = len(pipe.said)
        pipe.put(modern("tools/call", params, 2, capabilities={}), cancelled(2))
        await asyncio.sleep(1)
        assert only(gateway).call.cancel is None and len(pipe.said) == before
        await asyncio.sleep(10)
        pipe.put(modern("tools/call", params, 3, capabilities={}), cancelled(3))
        await asyncio.sleep(1)
        assert [found["id"] for found in pipe.said[before:]] in ([], [3])  # it may have been quicker
        await pipe.close()
