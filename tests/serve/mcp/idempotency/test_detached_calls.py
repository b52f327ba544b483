"""Calls that run for nobody, and tools by their other names: whoever means the same gets the same call."""

import asyncio
from typing import Any

import pytest

from afoot.core.ports import Run
from afoot.serve.caller_presence import is_detached, requests_of
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, Client, Message, faked, nap, only, site_of
from tests.serve.mcp.idempotency.test_idempotency import DETACHED, KEY, keyed, lost, texts, words
from tests.serve.raw_transports import Pipe, Web, call, hello, older, request
from tests.serve.task_client import ABLE, Asker

ALIAS = "bench/tool"


def renamed(message: Message, name: str = ALIAS) -> Message:
    """The same, with the tool under another name."""
    return {**message, "params": {**message["params"], "name": name}}


def call_of(answer: Message) -> Any:
    """The call that a request was answered by."""
    return answer["result"]["_meta"]["dev.afoot/call"]


@pytest.mark.parametrize("dies", [False, True])
@faked
async def test_the_call_of_a_session_that_was_ended_runs_for_nobody(dies: bool) -> None:
    """X3, A5: the same caller joins it in its next session; nobody is asked who has gone."""
    async with site_of(nap, **DETACHED) as gateway:
        for _ in range(3):
            client = Client(gateway, dies=dies)
            await client.ask(hello(elicitation={}))
            client.put(older(1))
            await asyncio.sleep(1)
            assert requests_of(only(gateway)).attached == 1 and requests_of(only(gateway)).can_ask
            client.session.close("the session was ended")
            await client.done()
            assert requests_of(only(gateway)).attached == 0 and not requests_of(only(gateway)).can_ask


@faked
async def test_the_call_of_a_pipe_that_was_closed_runs_for_nobody() -> None:
    """X3: in the era without sessions."""
    async with site_of(nap, **DETACHED) as gateway:
        pipe = Pipe(gateway)
        pipe.put(call())
        await asyncio.sleep(1)
        await pipe.close()
        assert (
            requests_of(only(gateway)).attached == 0
            and not requests_of(only(gateway)).can_ask
            and only(gateway).call.cancel is None
        )


async def ask_then_nap(run: Run) -> str:
    """A tool that asks, and takes its time then."""
    await run.ask(form("sure"))
    await asyncio.sleep(20)
    return "done"


@faked
async def test_a_call_that_had_rounds_is_joined_as_often_as_it_is_lost() -> None:
    """X3, Q1: whoever joins it belongs to its newest round."""
    async with site_of(ask_then_nap, **DETACHED) as gateway:
        web = Web(gateway)
        asked = (await web.ask(call())).messages[-1]["result"]
        again = call(2, requestState=asked["requestState"], inputResponses={"sure": YES})
        for message in (again, call(3), call(4)):
            exchange = web.post(message)
            await asyncio.sleep(1)
            assert requests_of(only(gateway)).attached == 1
            exchange.leave()
            await exchange.done()
            assert requests_of(only(gateway)).attached == 0
        assert texts((await web.ask(call(5))).messages) == "done"


@pytest.mark.parametrize("can", [{}, {"elicitation": {}}])
@faked
async def test_a_call_that_was_handed_over_is_joined_whatever_its_caller_can(can: Message) -> None:
    """X3, H5: also when whoever waited for it has gone; it is one call, and both are told its id."""
    async with site_of(nap, **DETACHED) as gateway:
        client = Client(gateway)
        await client.ask(hello(**can))
        handle = (await client.ask(older(1, **{"dev.afoot/budget": {"wait_s": 2}}))).result
        known = handle["structuredContent"]["afoot_call"]
        tape = client.put(request("tools/call", {"name": "afoot_wait", "arguments": {"call": known}}, 2))
        await asyncio.sleep(1)
        tape.leave()
        await asyncio.sleep(1)
        joined = (await client.ask(older(3))).result
    assert words({"result": joined}) == "slept" and joined["_meta"]["dev.afoot/call"] == known


@faked
async def test_a_caller_that_is_to_come_back_from_a_round_is_not_lost() -> None:
    """X3, H5: its call is nobody else's and not shown as detached, until it does not come."""
    asked = call(capabilities={"roots": {}}, **{"dev.afoot/budget": {"wait_s": 2}})
    async with site_of(nap, **DETACHED) as gateway:
        web = Web(gateway)
        for _ in range(2):
            parted = (await web.ask(asked)).messages[-1]["result"]
            assert parted["resultType"] == "input_required" and "inputRequests" not in parted
        lives = gateway.engine.calls()
        assert len(lives) == 2 and not any(is_detached(live, gateway.engine.clock.now()) for live in lives)
        await asyncio.sleep(5)
        assert all(is_detached(live, gateway.engine.clock.now()) for live in lives)
        exchange = web.post(call(2))
        await asyncio.sleep(0.1)
        assert [requests_of(live).attached for live in gateway.engine.calls()] == [1, 0]
        await exchange.done()


@faked
async def test_a_key_is_the_same_call_by_every_name_of_its_tool() -> None:
    """D2, U3: also as server/name, and after a restart; nothing runs twice."""
    journal = MemoryJournal()
    found = list[Any]()
    for name in (ALIAS, "tool"):
        async with site_of(nap, journal=journal) as gateway:
            web = Web(gateway)
            posted = [web.post(renamed(keyed(1), one)) for one in (name, ALIAS, "tool")]
            found += [call_of((await one.done()).messages[-1]) for one in posted]
    assert len(found) == 6 and len(set(found)) == 1


@faked
async def test_what_is_declared_of_a_tool_holds_by_every_name_of_it() -> None:
    """H3, X3, U3: that it is a task, and that the same arguments join."""
    async with site_of(nap, task="optional") as gateway:
        made = await Asker(gateway).send(renamed(call(capabilities=ABLE)))
        assert made["result"]["resultType"] == "task"
    async with site_of(nap, task="required") as gateway:
        refused = await Asker(gateway, {}).send(renamed(call(capabilities={})))
        assert refused["error"]["code"] == -32021
    async with site_of(nap, **DETACHED) as gateway:
        web = await lost(gateway, call())
        assert texts((await web.ask(renamed(call(2)))).messages) == "slept"
        assert gateway.engine.calls() == []


@faked
async def test_a_key_finds_its_call_though_the_tool_is_gone() -> None:
    """D2: its result is there, as when a tab was closed; what was never asked for has no tool."""
    async with site_of(nap) as gateway:
        first = (await Web(gateway).ask(keyed(1))).messages[-1]
        gateway.engine.catalog.remove("bench")
        again = (await Web(gateway).ask(keyed(3))).messages[-1]
        assert words(again) == "slept" and call_of(again) == call_of(first)
        other = (await Web(gateway).ask(keyed(4, arguments={"a": 1}))).messages[-1]["error"]
        assert other["code"] == -32602 and KEY in other["message"]
        new = (await Web(gateway).ask(keyed(5, "new"))).messages[-1]["error"]
        assert new["message"].startswith("params.name: ")
        with_server = (await Web(gateway).ask(renamed(keyed(6)))).messages[-1]
        assert call_of(with_server) == call_of(first)
        elsewhere = (await Web(gateway).ask(renamed(keyed(7), "elsewhere/tool"))).messages[-1]["error"]
        assert KEY in elsewhere["message"]


@pytest.mark.parametrize(
    ("options", "key", "joins"),
    [({"join": "same-arguments"}, {}, False), (DETACHED, {}, True), ({}, {KEY: "k"}, True)],
)
@faked
async def test_whoever_comes_and_leaves_ends_no_task(options: Message, key: Message, joins: bool) -> None:
    """X3, H3: it is its caller's still, who can be asked as before; without detaching nobody joins it."""
    async with site_of(nap, task="optional", **options) as gateway:
        made = (await Asker(gateway).start(**key))["result"]
        assert made["resultType"] == "task"
        exchange = Web(gateway).post(call(2, capabilities={}, **key))
        await asyncio.sleep(1)
        live = gateway.engine.calls()[0]
        assert requests_of(live).attached == joins and len(gateway.engine.calls()) == 2 - joins
        exchange.leave()
        await exchange.done()
        assert live.call.id == made["taskId"] and live.call.cancel is None and requests_of(live).can_ask
        await asyncio.sleep(20)
        assert live.call.end is not None and live.call.end.outcome == "ok"


@faked
async def test_two_programs_without_a_token_join_no_call_of_each_other() -> None:
    """S3, D2: they are one caller, `local`; by their names they are not one client."""
    info = "io.modelcontextprotocol/clientInfo"
    first, other = ({"name": name, "version": "1"} for name in ("first", "other"))
    async with site_of(nap, **DETACHED) as gateway:
        await lost(gateway, call(1, **{info: first}))
        left = only(gateway).call.id
        another = asyncio.create_task(Web(gateway).ask(call(2, **{info: other})))
        await asyncio.sleep(1)
        assert len(gateway.engine.calls()) == 2
        again = (await Web(gateway).ask(call(3, **{info: first}))).messages[-1]
        assert call_of(again) == left
        assert call_of((await another).messages[-1]) != left
