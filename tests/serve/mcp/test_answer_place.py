"""A caller that cannot be asked is told at once where a person can answer: by a notification or a handle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from afoot.core.facts import Answer
from afoot.core.ports import Run
from afoot.serve.gateway_state import GatewayState
from afoot.wire.results import Capabilities
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import (
    Client,
    Message,
    asks,
    begin,
    call_request,
    faked,
    only,
    said,
    site_of,
    wanted,
)
from tests.serve.mcp.handle_requests import BRIEF, MUTE, tool_request, wait, words
from tests.serve.mcp.test_approval import asking, by_operator
from tests.serve.raw_transports import hello, older

CONSOLE = "http://127.0.0.1:23668"
ROOTS = Capabilities(roots={})


@asynccontextmanager
async def asker(body: Any = asks, **options: Any) -> AsyncIterator[GatewayState]:
    """A gateway with a console, and a tool that asks."""
    async with site_of(body, **options) as gateway:
        gateway.engine.policy.console = CONSOLE
        yield gateway


def place(gateway: GatewayState) -> str:
    """The place as a text names it."""
    return f"in the console at {CONSOLE}/ or with `afoot answer {only(gateway).call.id[-8:]}`"


def answer(gateway: GatewayState) -> None:
    """The operator says yes."""
    gateway.engine.answer(next(iter(only(gateway).call.open)), Answer("accept", by="operator"))


@faked
async def test_a_caller_with_a_token_is_told_by_progress_at_once() -> None:
    """Q5: not after 15 s, and again with each sign of life; no secret is in it."""
    async with asker() as gateway:
        task = begin(gateway, wanted(token="t", capabilities=MUTE))
        await asyncio.sleep(20)
        where = place(gateway)
        answer(gateway)
        tape = await task
        assert [(at, where in text) for at, text in tape.notices] == [(0, True), (15, True)]
        assert tape.progress[0]["_meta"]["dev.afoot/progress"]["waiting_on"] == "person"
        assert gateway.token not in str(tape.frames)


@faked
async def test_a_caller_without_a_token_is_told_by_a_log_message() -> None:
    """Q5: in the handshake era, whose clients get logs unless they say otherwise."""
    async with asker() as gateway:
        client = Client(gateway)
        await client.ask(hello())
        tape = client.put(older())
        await asyncio.sleep(1)
        [(at, sent)] = tape.of("notifications/message")
        assert at < 0.1 and sent["params"]["level"] == "warning" and place(gateway) in sent["params"]["data"]
        answer(gateway)
        await client.done()


@faked
@pytest.mark.parametrize("able", [MUTE, ROOTS])
async def test_a_model_that_can_wait_is_told_at_once_by_a_handle(able: Capabilities) -> None:
    """Q5, H5: no round hides it. The wait then lasts until the person has answered."""
    async with asker() as gateway:
        tape = await call_request(gateway, wanted(capabilities=able, budget=BRIEF))
        assert tape.ended[0][0] < 0.1 and place(gateway) in words(tape) and "Tell the user" in words(tape)
        assert tape.result["structuredContent"] == {"afoot_call": only(gateway).call.id, "text": words(tape)}
        waiting = begin(gateway, wait(only(gateway).call.id))
        await asyncio.sleep(2)
        assert not waiting.done()
        answer(gateway)
        assert words(await waiting) == "accept {} by operator"


@faked
async def test_an_approval_is_told_of_in_the_same_way() -> None:
    """Q5, A5: an operator is there, and decides after the model was told."""
    async with asking() as gateway:
        gateway.engine.policy.console = CONSOLE
        tape = await call_request(gateway, wanted(capabilities=MUTE, budget=BRIEF))
        assert f"waiting for approval, which a person can give {place(gateway)}: Run bench/tool" in words(
            tape
        )
        by_operator(gateway, "run")
        assert (
            words(await call_request(gateway, wait(tape.result["structuredContent"]["afoot_call"]))) == "done"
        )


@faked
async def test_a_second_question_ends_no_request() -> None:
    """Q5: a model that knows of the console is not sent back at every question."""

    async def tool(run: Run) -> str:
        await run.ask(form("first"))
        return said(await run.ask(form("second")))

    async with asker(tool) as gateway:
        await call_request(gateway, wanted(capabilities=MUTE, budget=BRIEF))
        listed = words(await call_request(gateway, tool_request("afoot_calls"), caller="local"))
        assert "not listed" in listed
        waiting = begin(gateway, wait(only(gateway).call.id))
        for _ in range(2):
            await asyncio.sleep(1)
            answer(gateway)
        assert words(await waiting) == "accept {} by operator"


@faked
async def test_where_there_is_no_console_the_caller_is_told_so() -> None:
    """Q5: as with `afoot serve --stdio`."""
    async with asker() as gateway:
        gateway.engine.policy.console = None
        task = begin(gateway, wanted(token="t", capabilities=MUTE))
        await asyncio.sleep(1)
        answer(gateway)
        assert "nobody can give here, as this gateway has no console" in (await task).notices[0][1]


@faked
async def test_a_caller_that_can_be_asked_is_told_of_no_other_place() -> None:
    """Q5, Q1: its person has the form."""
    async with asker() as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        tape = client.put(older(progressToken="t"))
        await asyncio.sleep(20)
        assert CONSOLE not in str(tape.frames)
        [(_, asked)] = tape.of("elicitation/create")
        yes: Message = {"action": "accept", "content": {}}
        client.answer(asked, **yes)
        await client.done()
