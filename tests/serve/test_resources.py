"""What all servers offer besides tools as one: lists, names that collide, and who is asked for what."""

from typing import Any

import pytest

from afoot.errors import ToolError
from afoot.serve.gateway_state import GatewayState
from afoot.serve.resources import MAX_SHARED, MAX_TOLD
from afoot.wire.jsonrpc import Fault
from tests.serve.fake_gateway import Client, Message, faked
from tests.serve.fake_resource_servers import Rack, get, read, site_with
from tests.serve.raw_transports import Pipe, Web, hello, modern, request


async def ask(gateway: GatewayState, message: Message) -> Message:
    """The whole answer over HTTP, 2026-07-28."""
    [answer] = (await Web(gateway).ask(message)).messages
    return answer


async def result(gateway: GatewayState, message: Message) -> Message:
    """The result."""
    found: Message = (await ask(gateway, message))["result"]
    return found


def not_found(method: str, params: Message) -> Message:
    """A server that knows nothing."""
    raise Fault(-32002, "what?")


def complete(ref: Message) -> Message:
    """A `completion/complete`."""
    return modern("completion/complete", {"ref": ref, "argument": {"name": "a", "value": "b"}})


@faked
async def test_every_servers_things_are_listed_on_every_wire() -> None:
    """U5: in the order of the servers, with everything that a server says of them."""
    racks = Rack("a", prompts=["p"], resources=["a://1"], templates=["a://{x}"]), Rack("b", prompts=["q"])
    async with site_with(*racks) as gateway:
        client = Client(gateway)
        pipe = Pipe(gateway)
        welcome = (await client.ask(hello())).result
        found = await result(gateway, modern("server/discover"))
        assert welcome["capabilities"].pop("tasks") and found["capabilities"].pop("extensions")
        assert welcome["capabilities"] == found["capabilities"]
        for method, key, names in (
            ("prompts/list", "prompts", [("p", "a"), ("q", "b")]),
            ("resources/list", "resources", [("a://1", "a")]),
            ("resources/templates/list", "resourceTemplates", [("a://{x}", "a")]),
        ):
            listed = (await result(gateway, modern(method)))[key]
            assert [tuple(item.values()) for item in listed] == names
            assert (await client.ask(request(method))).result == {key: listed}
            assert (await pipe.ask(modern(method)))["result"][key] == listed
            wrong = await ask(gateway, modern(method, {"cursor": "x"}))
            assert wrong["error"]["code"] == -32602
        await pipe.close()


@faked
async def test_prompts_that_share_a_name_get_their_servers() -> None:
    """U3, U5: under SERVER__NAME, and always under SERVER/NAME; the server hears its own name."""
    racks = Rack("a", prompts=["p", "only"]), Rack("b", prompts=["p"])
    async with site_with(*racks) as gateway:
        listed = (await result(gateway, modern("prompts/list")))["prompts"]
        assert [item["name"] for item in listed] == ["a__p", "b__p", "only"]
        for name, server, own in (
            ("a__p", "a", "p"),
            ("b__p", "b", "p"),
            ("b/p", "b", "p"),
            ("only", "a", "only"),
            ("a/only", "a", "only"),
        ):
            assert (await result(gateway, get(name)))["from"] == server
            assert {one.name: one for one in racks}[server].asked[-1] == (
                "prompts/get",
                {"name": own},
                "local",
            )
        ref = {"type": "ref/prompt", "name": "b__p"}
        assert (await result(gateway, complete(ref)))["from"] == "b"
        assert racks[1].asked[-1][1]["ref"] == {**ref, "name": "p"}


@faked
@pytest.mark.parametrize("name", ["greed", "p", "b/greet"])
async def test_a_prompt_that_nobody_has_gets_the_nearest_names(name: str) -> None:
    """E5: -32602 on both eras, also for a completion."""
    async with site_with(Rack("a", prompts=["greet"]), Rack("b")) as gateway:
        for message in (get(name), complete({"type": "ref/prompt", "name": name})):
            error = (await ask(gateway, message))["error"]
            assert error["code"] == -32602 and f"unknown prompt {name!r}" in error["message"]
        assert error["data"]["nearest"] == ([] if name == "p" else ["greet"])
        client = Client(gateway)
        with pytest.raises(Fault, match="unknown prompt"):
            await client.ask(request("prompts/get", {"name": name}))


@faked
async def test_a_resource_is_read_where_it_is_listed_or_made_or_known() -> None:
    """U5: by its URI, at the first server that lists it; by a template; else whoever knows it."""
    racks = (
        Rack("a", not_found, resources=["x://2"], templates=["x://t/{n}"]),
        Rack("b", resources=["x://1"], templates=["y://{n}"]),
        Rack("c", resources=["x://1"]),
        Rack("d", capabilities={"prompts": {}}),
    )
    async with site_with(*racks) as gateway:
        listed = (await result(gateway, modern("resources/list")))["resources"]
        assert [(item["uri"], item["name"]) for item in listed] == [("x://2", "a"), ("x://1", "b")]
        assert (await result(gateway, read("x://1")))["from"] == "b"
        assert (await result(gateway, read("y://5")))["from"] == "b"
        assert [len(rack.asked) for rack in racks] == [0, 2, 0, 0]
        assert (await result(gateway, read("z://unlisted")))["from"] == "b", "the first that knows it"
        assert (await result(gateway, complete({"type": "ref/resource", "uri": "y://{n}"})))["from"] == "b"
        for uri in ("x://2", "x://t/7"):
            assert "what?" in (await ask(gateway, read(uri)))["error"]["message"], "nobody else is asked"
        assert [len(rack.asked) for rack in racks] == [3, 4, 0, 0]


@faked
async def test_a_resource_that_two_servers_list_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """U5: the first server by name is read, whoever came first; the log and the problems name both, once."""
    first, second = Rack("a", resources=["x://0"]), Rack("b", resources=["x://1"], templates=["y://{n}"])
    told = [
        "server b: resource x://1 is read at server a instead, which lists it too",
        "server b: template y://{n} is read at server a instead, which lists it too",
    ]
    async with site_with(first, second) as gateway:
        catalog = gateway.resource_catalog
        assert (await result(gateway, read("x://1")))["from"] == "b" and catalog.problems() == []
        first.resources = [{"uri": "x://1", "name": "a"}]
        first.templates = [{"uriTemplate": "y://{n}", "name": "a"}]
        for _ in range(2):
            first.tell("resources")
        assert (await result(gateway, read("x://1")))["from"] == "a" and catalog.problems() == told
        assert [one.message for one in caplog.records if "instead" in one.message] == told


@faked
async def test_resources_without_end_that_two_servers_list_fill_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """U5: a server that lists other ones each time is told only so often, on lines of bounded length."""
    first, second = Rack("a"), Rack("b")
    async with site_with(first, second) as gateway:
        assert gateway.resource_catalog.problems() == []
        for turn in range(20):
            uris = [f"x://{turn}/{n}\n{'y' * 1000}" for n in range(200)]
            first.resources = second.resources = [{"uri": uri} for uri in uris]
            second.tell("resources")
        problems = gateway.resource_catalog.problems()
        assert len(problems) == MAX_SHARED + 1
        assert (
            problems[-1] == f"server b: {200 - MAX_SHARED} more resources are read at other servers instead"
        )
    lines = [one.message for one in caplog.records if "instead" in one.message]
    assert len(lines) <= MAX_TOLD and all(len(one) < 400 and one.isprintable() for one in lines)


@faked
@pytest.mark.parametrize("racks", [0, 1, 2])
async def test_a_resource_that_nobody_knows_is_told_in_the_words_of_the_era(racks: int) -> None:
    """U5: -32602 with its URI on 2026-07-28, -32002 before."""
    async with site_with(*(Rack(f"r{n}", not_found) for n in range(racks))) as gateway:
        done = await Web(gateway).ask(read("x://1"))
        [answer] = done.messages
        assert (done.status, answer["error"]["code"], answer["error"]["data"]) == (
            400,
            -32602,
            {"uri": "x://1"},
        )
        with pytest.raises(Fault) as caught:
            await Client(gateway).ask(request("resources/read", {"uri": "x://1"}))
        assert caught.value.code == -32002


@faked
async def test_a_servers_error_passes_and_a_server_that_is_down_is_named() -> None:
    """U5: code, message and data as they came; -32603 with the server and the reason otherwise."""

    def odd(method: str, params: Message) -> Message:
        if params["name"] == "p":
            raise Fault(-31999, "its own", data={"more": [1]})
        raise ToolError.unavailable("it cannot be started: no such file")

    async with site_with(Rack("odd", odd, prompts=["p", "q"])) as gateway:
        done = await Web(gateway).ask(get("p"))
        own = {"code": -31999, "message": "its own", "data": {"more": [1]}}
        assert (done.status, done.messages[0]["error"], done.messages[0]["id"]) == (200, own, 1)
        down = (await ask(gateway, get("q")))["error"]
        assert down["code"] == -32603 and down["message"] == "server odd: it cannot be started: no such file"
        listed = (await result(gateway, modern("prompts/list")))["prompts"]
        assert len(listed) == 2, "what is known of it stays in the list"


@faked
async def test_a_server_that_completes_nothing_is_not_asked_to() -> None:
    """U5: another may, so we say that we do; an empty answer is true of this one."""
    mute = Rack("mute", prompts=["p"], capabilities={"prompts": {}})
    async with site_with(mute, Rack("other")) as gateway:
        found = await result(gateway, complete({"type": "ref/prompt", "name": "p"}))
        assert found["completion"]["values"] == [] and mute.asked == []


@faked
@pytest.mark.parametrize(
    ("can", "subscribe", "completions"),
    [
        ([], False, False),
        ([{"prompts": {}}], False, False),
        ([{"resources": {}}, {"resources": {"subscribe": True}}], True, False),
        ([{"completions": {}}], False, True),
        ([{}], True, True),
    ],
)
async def test_we_say_what_our_servers_can(can: list[Any], subscribe: bool, completions: bool) -> None:
    """U5: truthfully; one that has not been started yet may be able to do anything."""
    racks = [Rack(f"r{n}", capabilities=one) for n, one in enumerate(can)]
    async with site_with(*racks) as gateway:
        found = (await result(gateway, modern("server/discover")))["capabilities"]
        assert ("subscribe" in found["resources"], "completions" in found) == (subscribe, completions)
        assert found["tools"]["listChanged"] and found["prompts"]["listChanged"] and found["logging"] == {}


@faked
async def test_a_list_holds_only_once_everybody_has_spoken() -> None:
    """U5: a client is not to keep a list that a server is about to add to; one that is off says nothing."""
    late, off = Rack("late", capabilities={}), Rack("off", capabilities={}, prompts=["p"])
    off.state = "disabled"
    async with site_with(late, off) as gateway:
        for method in ("tools/list", "prompts/list"):
            assert (await result(gateway, modern(method)))["ttlMs"] == 0
        late.capabilities = {"prompts": {}}
        for method in ("tools/list", "prompts/list"):
            assert (await result(gateway, modern(method)))["ttlMs"] == 60_000
        assert (await result(gateway, modern("prompts/list")))["prompts"] == []
        assert "completions" not in (await result(gateway, modern("server/discover")))["capabilities"]


@faked
async def test_a_list_of_a_server_whose_lists_change_is_kept_by_nobody() -> None:
    """U5, F6: a client that keeps it would miss a tool that a call has switched on."""
    rack = Rack("rack", capabilities={"tools": {"listChanged": True}})
    async with site_with(rack) as gateway:
        assert (await result(gateway, modern("tools/list")))["ttlMs"] == 0
        rack.capabilities = {"tools": {"listChanged": False}, "prompts": {}}
        assert (await result(gateway, modern("tools/list")))["ttlMs"] == 60_000


@faked
async def test_what_is_no_item_is_left_out() -> None:
    """U5: a list of a server that says anything."""
    rack = Rack("a", prompts=["p"], resources=["x://1"])
    rack.prompts += [{}, {"name": 5}, {"name": "p", "again": True}]
    rack.resources += [{}, {"uri": None}]
    async with site_with(rack) as gateway:
        assert len((await result(gateway, modern("prompts/list")))["prompts"]) == 1
        assert len((await result(gateway, modern("resources/list")))["resources"]) == 1
