"""Calls that outlive their caller, and requests that join them instead of starting a second (X3, D2)."""

import asyncio
from typing import Any

import pytest

from afoot.core.facts import Started
from afoot.serve.gateway_state import GatewayState
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import facts
from tests.serve.fake_gateway import Client, Message, asks, faked, nap, only, site_of
from tests.serve.raw_transports import Pipe, Web, call, hello, older, request
from tests.serve.task_client import ABLE, Asker, walk

KEY = "dev.afoot/idempotency"


def keyed(id: int = 1, key: str = "k", **rest: Any) -> Message:
    """A call with a key."""
    return call(id, **{KEY: key, "progressToken": f"t{id}"}, **rest)


def words(message: Message) -> str:
    """The text of a result."""
    return str(message["result"]["content"][0]["text"])


def texts(messages: list[Message]) -> str:
    """The text of the result that came last."""
    return words(messages[-1])


async def lost(gateway: GatewayState, message: Message, after_s: float = 1) -> Web:
    """A client that called, and went away."""
    web = Web(gateway)
    exchange = web.post(message)
    await asyncio.sleep(after_s)
    exchange.leave()
    await exchange.done()
    return web


@faked
async def test_a_lost_caller_ends_a_call_unless_that_detaches() -> None:
    """X1, X3: on 2026-07-28 a disconnect is a cancel, but for a tool that says otherwise."""
    async with site_of(nap) as gateway:
        await lost(gateway, call())
        assert only(gateway).call.cancel is not None
    async with site_of(nap, on_disconnect="detach") as gateway:
        await lost(gateway, call())
        live = only(gateway)
        await asyncio.sleep(20)
    assert live.call.end is not None and live.call.end.outcome == "ok"


@faked
async def test_the_result_of_a_detached_call_is_found_by_wait_and_by_task() -> None:
    """X3: by its id, which the first frame has said."""
    async with site_of(nap, on_disconnect="detach") as gateway:
        await lost(gateway, call())
        call_id = only(gateway).call.id
        wait = {"name": "afoot_wait", "arguments": {"call": call_id}}
        client = Asker(gateway)
        waited = await client.send({**call(), "params": {**call(capabilities=ABLE)["params"], **wait}})
        assert words(waited) == "slept"
        assert (await client.get(call_id))["status"] == "completed"


@faked
async def test_the_progress_of_a_detached_call_is_watched_by_another_client() -> None:
    """X3, H3: after the first was lost."""
    async with site_of(walk, on_disconnect="detach") as gateway:
        await lost(gateway, call(), 2.5)
        client, task = Asker(gateway), only(gateway).call.id
        seen: list[float] = []
        for _ in range(3):
            seen.append((await client.get(task))["_meta"]["dev.afoot/progress"]["progress"])
            await asyncio.sleep(1)
    assert seen == [2, 3, 4]


@faked
async def test_the_end_of_a_bridge_leaves_a_detached_call_alone() -> None:
    """X3: the process has gone, and with it its requests, in both eras."""
    async with site_of(nap, on_disconnect="detach") as gateway:
        client = Client(gateway, dies=True)
        await client.ask(hello())
        client.put(older(1))
        await asyncio.sleep(1)
        client.session.close("the bridge has gone")
        await asyncio.sleep(1)
        assert only(gateway).call.cancel is None


@pytest.mark.parametrize("options", [{}, {"on_disconnect": "detach"}])
@faked
async def test_the_same_key_joins_the_call_that_runs(options: dict[str, Any]) -> None:
    """X3, D2: one call, two followers, and both get the result."""
    async with site_of(walk, **options) as gateway:
        web = Web(gateway)
        first = web.post(keyed(1))
        await asyncio.sleep(3.5)
        second = web.post(keyed(2))
        await asyncio.sleep(0)
        live = only(gateway)
        both = [(await exchange.done()).messages for exchange in (first, second)]
    assert [texts(one) for one in both] == ["there", "there"] and len(facts(live, Started)) == 1
    numbers = [one["params"]["progress"] for one in both[1] if one.get("method")]
    assert numbers[0] == 3 and numbers[-1] == 10


@faked
async def test_two_requests_with_one_key_at_the_same_moment_are_one_call() -> None:
    """D2: whoever comes first opens it."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        exchanges = [web.post(keyed(n)) for n in range(1, 6)]
        await asyncio.sleep(1)
        assert len(gateway.engine.calls()) == 1
        assert {texts((await one.done()).messages) for one in exchanges} == {"slept"}


@faked
async def test_a_request_that_joined_keeps_the_call_alive_when_the_first_leaves() -> None:
    """X1, X3: only the last one to leave cancels."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        first = web.post(keyed(1))
        await asyncio.sleep(1)
        second = web.post(keyed(2))
        await asyncio.sleep(1)
        first.leave()
        await first.done()
        assert only(gateway).call.cancel is None
        assert texts((await second.done()).messages) == "slept"


@faked
async def test_a_key_finds_a_call_that_is_over_until_its_time_is_over_too() -> None:
    """D2: within task_ttl_s; then it is a new call."""
    async with site_of(nap, settings={"task_ttl_s": 60}) as gateway:
        web = Web(gateway)
        first = (await web.ask(keyed(1))).messages[-1]
        again = (await web.ask(keyed(2))).messages[-1]
        assert words(again) == "slept"
        assert again["result"]["_meta"]["dev.afoot/call"] == first["result"]["_meta"]["dev.afoot/call"]
        await asyncio.sleep(61)
        anew = (await web.ask(keyed(3))).messages[-1]
    assert anew["result"]["_meta"]["dev.afoot/call"] != first["result"]["_meta"]["dev.afoot/call"]


@faked
async def test_a_key_is_found_again_after_a_restart() -> None:
    """D2: it stands in the history."""
    journal = MemoryJournal()
    async with site_of(nap, journal=journal) as gateway:
        first = (await Web(gateway).ask(keyed(1))).messages[-1]
    async with site_of(nap, journal=journal) as gateway:
        await asyncio.sleep(1)
        again = (await Web(gateway).ask(keyed(2))).messages[-1]
    assert again["result"]["_meta"]["dev.afoot/call"] == first["result"]["_meta"]["dev.afoot/call"]


@faked
async def test_a_key_of_another_call_is_refused() -> None:
    """D2: other arguments under the same key are a mistake, and are told so."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        first = web.post(keyed(1, arguments={"a": 1, "b": 2}))
        await asyncio.sleep(1)
        same = web.post(keyed(2, arguments={"b": 2, "a": 1}))
        error = (await web.ask(keyed(3, arguments={"a": 2}))).messages[0]["error"]
        assert error["code"] == -32602 and KEY in error["message"]
        assert texts((await first.done()).messages) == texts((await same.done()).messages) == "slept"


@faked
async def test_a_key_means_nothing_for_another_caller() -> None:
    """S3: each has its own."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        web.post(keyed(1))
        await asyncio.sleep(1)
        pipe = Pipe(gateway)
        pipe.put(keyed(1))
        await asyncio.sleep(1)
        assert [live.call.opened.caller for live in gateway.engine.calls()] == ["local", "stdio"]
        await pipe.close()


@faked
async def test_a_key_joins_in_the_handshake_era_too() -> None:
    """D2: as a task, if that was asked for."""
    async with site_of(nap) as gateway:
        client = Client(gateway)
        await client.ask(hello())
        first = client.put(older(1, **{KEY: "k"}))
        await asyncio.sleep(1)
        params: Message = {"name": "tool", "task": {}, "_meta": {KEY: "k"}}
        task = (await client.ask(request("tools/call", params, 2))).result["task"]["taskId"]
        assert task == only(gateway).call.id
        await client.done()
    assert first.result["content"][0]["text"] == "slept"


@faked
async def test_a_call_that_asks_asks_whoever_joins() -> None:
    """Q1, X3: what the first was asked, and did not answer."""
    async with site_of(asks) as gateway:
        web = Web(gateway)
        first = (await web.ask(keyed(1))).messages[-1]["result"]
        again = (await web.ask(keyed(2))).messages[-1]["result"]
    assert first["resultType"] == again["resultType"] == "input_required"
    assert first["inputRequests"] == again["inputRequests"]


DETACHED = {"on_disconnect": "detach", "join": "same-arguments"}


@faked
async def test_the_same_arguments_join_a_call_that_runs_for_nobody() -> None:
    """X3: opt-in, and only of the same caller; one that has its caller is nobody else's."""
    async with site_of(nap, **DETACHED) as gateway:
        web = await lost(gateway, call(arguments={"a": 1, "b": 2}))
        other = web.post(call(2, arguments={"a": 2}))
        again = web.post(call(3, arguments={"b": 2, "a": 1}))
        await asyncio.sleep(1)
        assert len(gateway.engine.calls()) == 2
        attached = web.post(call(4, arguments={"a": 1, "b": 2}))
        await asyncio.sleep(1)
        assert len(gateway.engine.calls()) == 3
        assert {texts((await one.done()).messages) for one in (other, again, attached)} == {"slept"}


@faked
async def test_without_the_setting_the_same_arguments_are_a_second_call() -> None:
    """X3: many a tool may well be called twice."""
    async with site_of(nap, on_disconnect="detach") as gateway:
        web = await lost(gateway, call())
        web.post(call(2))
        await asyncio.sleep(1)
        assert len(gateway.engine.calls()) == 2


@faked
async def test_a_tool_that_detaches_says_how_it_is_stopped_and_what_stops_it_is_there() -> None:
    """X3: in its description, and afoot_cancel is listed beside it."""
    async with site_of(nap, on_disconnect="detach") as gateway:
        listed = (await Asker(gateway).send(call() | {"method": "tools/list"}))["result"]["tools"]
    assert "afoot_cancel" in listed[0]["description"]
    assert [tool["name"] for tool in listed[1:]] == ["afoot_wait", "afoot_calls", "afoot_cancel"]
