"""Requests that start no call, and listeners that are told of changes and of the end."""

import asyncio

import pytest

from afoot.serve.gateway_state import GatewayState
from afoot.wire import jsonrpc
from tests.engine.fake_engine import Bench
from tests.serve.fake_gateway import Message, faked, nap, site_of
from tests.serve.raw_transports import PREFIX, Exchange, Web, modern


def change(gateway: GatewayState, name: str = "new") -> None:
    """Offer one more tool."""
    bench = Bench()
    bench.name = name
    bench.add(nap, name)
    gateway.engine.catalog.put(bench)


def listen(id: int | str = 7, **wanted: bool) -> Message:
    """A `subscriptions/listen`."""
    return modern("subscriptions/listen", {"notifications": wanted}, id)


def methods(exchange: Exchange) -> list[str]:
    """What came, in short."""
    return [str(sent.get("method", "result")).rpartition("/")[2] for sent in exchange.messages]


@faked
async def test_who_we_are_and_what_there_is() -> None:
    """C8: discovery and lists say how long they hold, and who said so."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        found = (await web.ask(modern("server/discover"))).messages[0]["result"]
        assert found["supportedVersions"] == ["2026-07-28"] and found["capabilities"]["tools"]["listChanged"]
        for method, key in (
            ("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ):  # fmt: skip
            result = (await web.ask(modern(method))).messages[0]["result"]
            assert len(result[key]) == (key == "tools") and result["resultType"] == "complete"
            assert result["ttlMs"] >= 0 and result["cacheScope"] and result["_meta"][f"{PREFIX}serverInfo"]


@faked
@pytest.mark.parametrize("id", [7, "seven"])
async def test_a_listener_is_acknowledged_told_and_let_go(id: int | str) -> None:
    """C8: under its own id from the first frame to the last, which comes when the gateway closes."""
    async with site_of(nap) as gateway:
        exchange = Web(gateway).post(listen(id, toolsListChanged=True, promptsListChanged=True))
        await asyncio.sleep(1)
        assert exchange.chunks[0][0] == 0 and exchange.is_stream
        change(gateway)
        await asyncio.sleep(1)
        gateway.engine.closing = "enough"
        [wakeup] = gateway.wakeups
        wakeup.wake()
        await exchange.done()
        assert gateway.wakeups == []
    assert methods(exchange) == ["acknowledged", "list_changed", "result"]
    acknowledged, changed, over = exchange.messages
    told = {"toolsListChanged": True, "promptsListChanged": True}
    assert acknowledged["params"]["notifications"] == told
    tags = [sent["params"]["_meta"] for sent in (acknowledged, changed)] + [over["result"]["_meta"]]
    assert [tag[f"{PREFIX}subscriptionId"] for tag in tags] == [id] * 3 and over["id"] == id


@faked
async def test_a_listener_is_told_only_what_it_wants_and_kept_alive() -> None:
    """C8, C6: a comment every fifteen seconds; no change of a list that it did not ask for."""
    async with site_of(nap) as gateway:
        exchange = Web(gateway).post(listen(promptsListChanged=True))
        await asyncio.sleep(20)
        change(gateway)
        await asyncio.sleep(20)
        exchange.leave()
        await exchange.done()
    assert methods(exchange) == ["acknowledged"]
    assert [at for at, data in exchange.chunks if data.startswith(b":")] == [15, 30]


@faked
async def test_changes_while_a_listener_is_slow_are_told_once() -> None:
    """P5: it is to ask for the list anyway."""
    async with site_of(nap) as gateway:
        exchange = Web(gateway).post(listen(toolsListChanged=True))
        await asyncio.sleep(1)
        exchange.reads.clear()
        for n in range(5):
            change(gateway, f"new{n}")
            await asyncio.sleep(1)
        exchange.reads.set()
        await asyncio.sleep(1)
        exchange.leave()
        await exchange.done()
    assert methods(exchange) == ["acknowledged", "list_changed", "list_changed"]


@faked
async def test_a_listener_that_takes_nothing_is_let_go() -> None:
    """C6: after two minutes, and nothing of it is left behind."""
    async with site_of(nap) as gateway:
        exchange = Web(gateway).post(listen(toolsListChanged=True))
        await asyncio.sleep(1)
        exchange.reads.clear()
        await asyncio.wait_for(exchange.task, 15 + 120)
        assert gateway.wakeups == []


@faked
@pytest.mark.parametrize("params", [{}, {"notifications": 1}, {"notifications": {"toolsListChanged": "yes"}}])
async def test_a_listener_must_say_what_it_wants(params: Message) -> None:
    """E4: -32602 naming the field, before any stream is open."""
    async with site_of(nap) as gateway:
        done = await Web(gateway).ask(modern("subscriptions/listen", params, 7))
    [answer] = done.messages
    assert (done.status, answer["error"]["code"], answer["id"]) == (400, jsonrpc.INVALID_PARAMS, 7)
    assert "notifications" in answer["error"]["message"]
