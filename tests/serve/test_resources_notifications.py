"""Who is told when a list or a resource changes, and one subscription for all who listen."""

import asyncio
from collections.abc import Sequence

import pytest

from afoot.serve import resources
from afoot.serve.gateway_state import GatewayState
from afoot.wire.jsonrpc import Fault
from tests.serve.fake_gateway import Client, Message, faked, nap, site_of
from tests.serve.fake_resource_servers import Rack, site_with
from tests.serve.mcp.era_2026.test_subscriptions import change, methods
from tests.serve.raw_transports import PREFIX, Exchange, Pipe, Web, hello, modern, request

INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def listen(*uris: str, id: int = 7, **wanted: bool) -> Message:
    """A `subscriptions/listen`."""
    return modern("subscriptions/listen", {"notifications": {**wanted, "resourceSubscriptions": uris}}, id)


def told(messages: Sequence[Message]) -> list[str]:
    """What a listener was told, in short."""
    found = [one for one in messages if str(one.get("method", "")).startswith("notifications/")]
    return [
        one["params"].get("uri") or one["method"].removeprefix("notifications/").partition("/")[0]
        for one in found
        if "acknowledged" not in one["method"]
    ]


async def watch(gateway: GatewayState, *uris: str, id: int = 7) -> Exchange:
    """A listener of 2026-07-28 that has been acknowledged."""
    exchange = Web(gateway).post(listen(*uris, id=id))
    await asyncio.sleep(1)
    return exchange


async def leave(*listeners: Exchange) -> None:
    """Close streams, and let the news of it travel."""
    for one in listeners:
        one.leave()
        await one.done()
    await asyncio.sleep(1)


@faked
async def test_a_listener_hears_of_the_lists_that_it_asked_for() -> None:
    """U5: tools, prompts, resources; each only if it is wanted."""
    rack = Rack("a")
    async with site_with(rack) as gateway:
        every = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
        wanted: list[dict[str, bool]] = [dict.fromkeys(every, True), *({one: True} for one in every), {}]
        listeners = [Web(gateway).post(listen(**one)) for one in wanted]
        await asyncio.sleep(1)
        for kind in ("prompts", "resources", "tools"):  # of its tools the catalog tells
            rack.tell(kind)
            await asyncio.sleep(1)
        change(gateway)
        await asyncio.sleep(1)
        await leave(*listeners)
    heard = [told(one.messages) for one in listeners]
    assert heard == [["prompts", "resources", "tools"], ["tools"], ["prompts"], ["resources"], []]
    assert [one.messages[0]["params"]["notifications"] for one in listeners] == wanted


@faked
async def test_one_subscription_however_many_listen() -> None:
    """U5: made by the first, ended by the last, on both eras and on every wire."""
    rack = Rack("a", resources=["x://1", "x://2"])
    async with site_with(rack) as gateway:
        one, two = await watch(gateway, "x://1", "x://2"), await watch(gateway, "x://1", id=8)
        web, pipe = Web(gateway), Pipe(gateway)
        await web.shake_hands()
        stream = web.open("GET")
        await pipe.ask(hello())
        pipe.put(INITIALIZED)
        await web.ask(request("resources/subscribe", {"uri": "x://1"}))
        assert (await pipe.ask(request("resources/subscribe", {"uri": "x://1"}, 5)))["result"] == {}
        assert sorted(rack.subscribed) == ["+x://1", "+x://2"]
        assert sorted(gateway.resource_catalog.subscriptions.watched()) == [("x://1", 4), ("x://2", 1)]
        rack.tell("resource", "x://1")
        rack.tell("resource", "x://3")
        await asyncio.sleep(1)
        assert [told(heard.messages) for heard in (one, two, stream)] == [["x://1"]] * 3
        assert told(pipe.said) == ["x://1"]
        await web.ask(request("resources/unsubscribe", {"uri": "x://1"}))
        await pipe.ask(request("resources/unsubscribe", {"uri": "x://1"}, 6))
        await leave(one)
        assert rack.subscribed[2:] == ["-x://2"]
        await leave(two, stream)
        assert rack.subscribed[2:] == ["-x://2", "-x://1"]
        await pipe.close()


@faked
async def test_a_listener_is_acknowledged_what_it_gets() -> None:
    """U5: a resource that nobody knows or tells of is left out; each notice carries the stream's id."""
    rack, mute = (
        Rack("a", resources=["x://1", "deaf://1"]),
        Rack("b", resources=["y://1"], capabilities={"x": {}}),
    )
    async with site_with(rack, mute) as gateway:
        exchange = await watch(gateway, "x://1", "deaf://1", "y://1", "x://1")
        wanted = exchange.messages[0]["params"]["notifications"]
        assert wanted == {"resourceSubscriptions": ["x://1"]}
        rack.tell("resource", "x://1/part")
        await asyncio.sleep(1)
        rack.tell("resource")
        await asyncio.sleep(1)
        await leave(exchange)
    assert told(exchange.messages) == ["x://1/part", "x://1"], "what lies below it, and whatever is meant"
    tags = {one["params"]["_meta"][f"{PREFIX}subscriptionId"] for one in exchange.messages}
    assert tags == {7} and rack.subscribed == ["+x://1", "-x://1"]


@faked
async def test_too_many_resources_are_refused() -> None:
    """E4: before any stream is open."""
    async with site_with(Rack("a")) as gateway:
        done = await Web(gateway).ask(listen(*(f"x://{n}" for n in range(1001))))
        assert done.status == 400 and done.messages[0]["error"]["code"] == -32602
        assert gateway.resource_catalog.subscriptions._by_uri == {}


@faked
async def test_an_older_client_has_only_so_many_subscriptions() -> None:
    """E4: bounded in number and length; one that was left makes place for another."""
    async with site_with(Rack("a", resources=[f"x://{n}" for n in range(1001)])) as gateway:
        client = Client(gateway)
        await client.ask(hello())
        for n in range(1000):
            await client.ask(request("resources/subscribe", {"uri": f"x://{n}"}, n))
        with pytest.raises(Fault, match=r"params\.uri: over 1000 subscriptions"):
            await client.ask(request("resources/subscribe", {"uri": "x://1000"}))
        with pytest.raises(Fault, match=r"params\.uri: over 4096 characters"):
            await client.ask(request("resources/subscribe", {"uri": "x://" + 5000 * "a"}))
        await client.ask(request("resources/subscribe", {"uri": "x://7"}))
        await client.ask(request("resources/unsubscribe", {"uri": "x://7"}))
        await client.ask(request("resources/subscribe", {"uri": "x://1000"}))
        assert len(gateway.resource_catalog.subscriptions._by_uri) == 1000


@faked
async def test_clients_together_have_only_so_many_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8: one program may have a thousand sessions, each with a thousand subscriptions."""
    monkeypatch.setattr(resources, "MAX_WATCHED_CHARS", 20)
    async with site_with(Rack("a", resources=[f"x://{n}" for n in range(9)])) as gateway:
        first, second = Client(gateway), Client(gateway)
        for client in (first, second):
            await client.ask(hello())
        for n in range(4):
            await first.ask(request("resources/subscribe", {"uri": f"x://{n}"}, n))
        await second.ask(request("resources/subscribe", {"uri": "x://0"}))  # it is watched anyway
        with pytest.raises(Fault, match="too many resources are watched"):
            await second.ask(request("resources/subscribe", {"uri": "x://8"}))
        await first.ask(request("resources/unsubscribe", {"uri": "x://3"}))
        await second.ask(request("resources/subscribe", {"uri": "x://8"}))


@faked
async def test_changes_that_nobody_fetches_are_bounded() -> None:
    """P5, U5: a server that names ever more URIs below a watched one fills no memory."""
    rack = Rack("a", resources=["x://1"])
    async with site_with(rack) as gateway:
        client = Client(gateway)
        await client.ask(hello())
        await client.ask(request("resources/subscribe", {"uri": "x://1"}))
        client.session.listener.take()
        catalog = gateway.resource_catalog
        catalog.subscriptions.changed(rack, "x://1/" + 5000 * "a")
        assert client.session.listener.take() == [("resource", "x://1")]
        for n in range(3000):
            catalog.subscriptions.changed(rack, f"x://1/{n}")
        changes = client.session.listener.take()
        assert len(changes) == 1001 and ("resource", "x://1") in changes


@faked
@pytest.mark.parametrize(("uri", "code"), [("x://none", -32002), ("y://1", -32602), ("deaf://1", -32602)])
async def test_an_older_client_is_told_what_it_cannot_watch(uri: str, code: int) -> None:
    """U5: and nothing of it is left behind."""
    mute = Rack("b", resources=["y://1"], capabilities={"resources": {}})
    racks = [mute, Rack("a", resources=["deaf://1"])] if uri != "x://none" else []
    async with site_with(*racks) as gateway:
        client = Client(gateway)
        with pytest.raises(Fault) as caught:
            await client.ask(request("resources/subscribe", {"uri": uri}))
        assert caught.value.code == code and gateway.resource_catalog.subscriptions._by_uri == {}
        assert (await client.ask(request("resources/unsubscribe", {"uri": uri}))).result == {}
        with pytest.raises(Fault, match=r"params\.uri: missing"):
            await client.ask(request("resources/subscribe"))


@faked
async def test_a_session_keeps_what_happened_until_it_has_a_stream() -> None:
    """U5, P5: each change once; and its end, or its long silence, ends its subscriptions."""
    rack = Rack("a", resources=["x://1"])
    async with site_with(rack) as gateway:
        web = Web(gateway)
        await web.shake_hands()
        await web.ask(request("resources/subscribe", {"uri": "x://1"}))
        await web.ask(request("resources/subscribe", {"uri": "x://1"}))
        for _ in range(3):
            rack.tell("resource", "x://1")
            rack.tell("prompts")
        stream = web.open("GET")
        await asyncio.sleep(1)
        assert told(stream.messages) == ["x://1", "prompts"]
        await leave(stream)
        await web.open("DELETE").done()
        await asyncio.sleep(1)
        assert rack.subscribed == ["+x://1", "-x://1"]
        web.session = ""
        await web.shake_hands()
        await web.ask(request("resources/subscribe", {"uri": "x://1"}))
        await asyncio.sleep(4000)
        web.session = ""
        await web.shake_hands()
        await asyncio.sleep(1)
        assert rack.subscribed[2:] == ["+x://1", "-x://1"]


@faked
async def test_a_pipe_of_the_handshake_era_is_told_of_changes_once_it_is_ready() -> None:
    """U5: after its `initialized`, and not before."""
    async with site_with(Rack("a")) as gateway:
        pipe = Pipe(gateway)
        await pipe.ask(hello())
        change(gateway)
        await asyncio.sleep(1)
        assert told(pipe.said) == []
        pipe.put(INITIALIZED, INITIALIZED)
        await asyncio.sleep(1)
        assert told(pipe.said) == ["tools"]
        await pipe.close()
        assert gateway.wakeups == []


@faked
async def test_a_resource_left_and_taken_up_at_once_stays_subscribed() -> None:
    """U5: the server hears it in the order in which it was meant."""
    rack = Rack("a", resources=["x://1"])
    rack.delay_s = 1
    async with site_with(rack) as gateway:
        client = Client(gateway)
        first = client.put(request("resources/subscribe", {"uri": "x://1"}, 1))
        await asyncio.sleep(3)
        await client.ask(request("resources/unsubscribe", {"uri": "x://1"}, 2))
        await client.ask(request("resources/subscribe", {"uri": "x://1"}, 3))
        assert rack.subscribed == ["+x://1", "-x://1", "+x://1"] and first.result == {}


@faked
async def test_who_gives_up_subscribing_takes_nobody_along() -> None:
    """X1: the other one who waits for the same subscription gets it."""
    rack = Rack("a", resources=["x://1"])
    rack.delay_s = 5
    async with site_with(rack) as gateway:
        one, two = Client(gateway), Client(gateway)
        first = one.put(request("resources/subscribe", {"uri": "x://1"}))
        second = two.put(request("resources/subscribe", {"uri": "x://1"}))
        await asyncio.sleep(1)
        one.session.close("gone")
        await asyncio.sleep(10)
        assert second.result == {} and first.ended[0][1] is None and rack.subscribed == ["+x://1"]
        two.session.close("gone")
        await asyncio.sleep(10)
        assert rack.subscribed == ["+x://1", "-x://1"]


@faked
async def test_servers_that_come_and_go_are_told_and_keep_their_subscriptions() -> None:
    """U1, U5: lists change; a server made anew is subscribed to again; one that went is not listened to."""
    old, new, other = Rack("a", resources=["x://1"]), Rack("a", resources=["x://1"]), Rack("b", prompts=["p"])
    async with site_of(nap) as gateway:
        gateway.resource_servers = lambda: [old]
        exchange = Web(gateway).post(listen("x://1", promptsListChanged=True, resourcesListChanged=True))
        await asyncio.sleep(1)
        assert old.listeners == 1
        gateway.resource_servers = lambda: [new, other]
        change(gateway)
        await asyncio.sleep(1)
        assert (old.listeners, new.listeners, other.listeners) == (0, 1, 1) and new.subscribed == ["+x://1"]
        new.tell("resource", "x://1")
        await asyncio.sleep(1)
        gateway.resource_servers = lambda: [new]
        change(gateway, "newer")
        await asyncio.sleep(1)
        await leave(exchange)
    assert told(exchange.messages) == ["prompts", "resources", "x://1", "prompts"]
    assert methods(exchange)[0] == "acknowledged" and new.subscribed == ["+x://1", "-x://1"]
