"""Resources and prompts of our own functions in both eras: they are calls, with all that calls have."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from msgspec import convert

import afoot
from afoot.config.settings import Settings
from afoot.core.facts import Limits
from afoot.core.ports import CallOrigin, CallQuery
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.offers.provider import OfferProvider
from afoot.serve.gateway_state import GatewayState
from afoot.wire import jsonrpc
from afoot.wire.jsonrpc import Fault
from tests.serve.fake_gateway import Client, Message, Tape, faked, nap, only, site_of
from tests.serve.fake_resource_servers import Rack, get, opened, read
from tests.serve.raw_transports import Exchange, Pipe, Web, cancelled, client, modern, request
from tests.serve.test_resources_notifications import leave, listen, told, watch


@afoot.resource("slow://{steps}")
async def slow(steps: int, ctx: afoot.Context) -> str:
    """Take a second a step."""
    for done in range(1, steps + 1):
        await asyncio.sleep(1)
        ctx.report(done, steps, f"step {done}")
    return f"{steps} steps"


@afoot.resource("silent://night", idle=3, ceiling=20)
async def silent() -> str:
    """Say nothing for long."""
    await asyncio.sleep(1000)
    return "never"


@afoot.resource("busy://bee", ceiling=5)
async def busy(ctx: afoot.Context) -> str:
    """Report for ever."""
    while True:
        await asyncio.sleep(1)
        ctx.report()


@afoot.resource("asking://name")
async def asking(ctx: afoot.Context) -> str:
    """Ask for a name."""
    reply = await ctx.ask("Who are you?", str)
    return f"hello {reply.content}"


@afoot.resource("missing://{name}")
async def missing(name: str) -> str:
    """Have nothing."""
    raise afoot.ToolError.not_found(f"there is no {name}")


@afoot.resource("blocking://thread")
def blocking(ctx: afoot.Context) -> str:
    """Block a thread, and never the loop."""
    ctx.report(1, 2, "in a thread")
    time.sleep(0.05)
    return "from a thread"


@afoot.prompt
async def review(
    code: str, language: Literal["python", "perl"] = "python", ctx: afoot.Context | None = None
) -> str:
    """Review some code."""
    if code == "crash":
        raise RuntimeError("a detail")
    if code == "ask" and ctx is not None:
        code = (await ctx.ask("Which?", str)).content
    return f"{language}: {code}"


EVERYTHING = (slow, silent, busy, asking, missing, blocking, review)


@asynccontextmanager
async def site(
    *functions: Any, racks: tuple[Rack, ...] = (), **settings: object
) -> AsyncIterator[GatewayState]:
    """A gateway with these functions, and with these servers behind it."""
    async with site_of(nap, settings=settings) as gateway:
        own = convert(settings, Settings)
        limits = Limits(idle_s=own.idle_s, ceiling_s=own.ceiling_s)
        provider = OfferProvider(functions or EVERYTHING, FunctionSettings(limits=limits))
        gateway.function_offers.replace(provider)
        gateway.resource_servers = lambda: racks
        yield gateway
        provider.close()


def with_token(message: Message) -> Message:
    """The same request, with a progress token."""
    message["params"]["_meta"] = {**message["params"].get("_meta", {}), "progressToken": "t"}
    return message


def steps(messages: list[Message]) -> list[str | None]:
    """What the progress notifications say."""
    return [one["params"].get("message") for one in messages if one.get("method") == "notifications/progress"]


async def ask(gateway: GatewayState, message: Message) -> Message:
    """The whole answer over HTTP, 2026-07-28."""
    [answer] = (await Web(gateway).ask(message)).messages
    return answer


async def error(gateway: GatewayState, message: Message) -> Message:
    """The error in the answer; all that came before it is left out."""
    found: Message = (await Web(gateway).ask(message)).messages[-1]["error"]
    return found


@faked
async def test_a_long_read_reports_progress_on_every_wire() -> None:
    """F3: HTTP and stdio, of both eras."""
    async with site() as gateway:
        web = await client(gateway)
        pipe = Pipe(gateway)
        pipe.put(with_token(read("slow://3")))
        modern_http = await Web(gateway).ask(with_token(read("slow://3")))
        older_http = await web.ask(with_token(request("resources/read", {"uri": "slow://3"})))
        await asyncio.sleep(4)
        for said in (modern_http.messages, older_http.messages, pipe.said):
            assert steps(said) == ["step 1", "step 2", "step 3"]
            assert said[-1]["result"]["contents"] == [
                {"uri": "slow://3", "mimeType": "text/plain", "text": "3 steps"}
            ]
        assert "resultType" not in older_http.messages[-1]["result"]
        assert modern_http.messages[-1]["result"]["cacheScope"] == "private"
        await pipe.close()


@faked
async def test_the_idle_limit_and_the_ceiling_hold_as_in_calls() -> None:
    """F3, C1, C2: with the texts that a tool's call has; progress holds off the idle limit alone."""
    async with site() as gateway:
        quiet, endless = (
            await error(gateway, read("silent://night")),
            await error(gateway, read("busy://bee")),
        )
        assert quiet["code"] == endless["code"] == -32603
        assert "3 s" in quiet["message"] and quiet["data"]["dev.afoot/error"]["clock"] == "idle"
        assert "5 s" in endless["message"] and endless["data"]["dev.afoot/error"]["clock"] == "ceiling"
        web = await client(gateway)
        older = (await web.ask(request("resources/read", {"uri": "silent://night"}))).messages[-1]["error"]
        assert older["message"] == quiet["message"]


@faked
async def test_a_cancel_ends_a_read() -> None:
    """F3, X1: by a notification, and in 2026-07-28 also by closing the stream."""
    async with site() as gateway:
        pipe = Pipe(gateway)
        pipe.put(read("slow://100"))
        await asyncio.sleep(2)
        live = only(gateway)
        pipe.put(cancelled(1, "enough"))
        await asyncio.sleep(1)
        assert live.call.end is not None and live.call.end.outcome == "cancelled" and pipe.said == []
        gone: Exchange = Web(gateway).post(read("slow://100"))
        await asyncio.sleep(2)
        live = only(gateway)
        gone.leave()
        await gone.done()
        await asyncio.sleep(1)
        assert live.call.end is not None and live.call.end.outcome == "cancelled"
        await pipe.close()


@faked
async def test_a_read_asks_its_caller_in_a_round() -> None:
    """F3, Q1: 2026-07-28: the retry brings the answer, and the same call goes on."""
    async with site() as gateway:
        asked = (await ask(gateway, read("asking://name")))["result"]
        assert asked["resultType"] == "input_required"
        [key] = asked["inputRequests"]
        answer = {key: {"action": "accept", "content": {"value": "Ann"}}}
        params = {"uri": "asking://name", "requestState": asked["requestState"], "inputResponses": answer}
        found = (await ask(gateway, modern("resources/read", params, 2)))["result"]
        assert found["contents"][0]["text"] == "hello Ann"
        params["uri"] = "slow://1"
        assert (await error(gateway, modern("resources/read", params, 3)))["code"] == -32602


@faked
async def test_a_prompt_asks_its_caller_by_a_request() -> None:
    """F3, Q1: the handshake era: a request of ours while it waits."""
    async with site() as gateway:
        caller = await opened(gateway, elicitation={})
        tape = caller.put(
            request("prompts/get", {"name": "review", "arguments": {"code": "ask"}}), streaming=True
        )
        await asyncio.sleep(1)
        [(_, asked)] = tape.of("elicitation/create")
        caller.answer(asked, action="accept", content={"value": "this"})
        await caller.done()
        assert tape.result["messages"] == [
            {"role": "user", "content": {"type": "text", "text": "python: this"}}
        ]


@faked
async def test_a_sync_function_runs_in_a_thread() -> None:
    """F3, P2: its reports come, too."""
    async with site() as gateway:
        said = (await Web(gateway).ask(with_token(read("blocking://thread")))).messages
        assert steps(said) == ["in a thread"] and said[-1]["result"]["contents"][0]["text"] == "from a thread"


@faked
async def test_reads_and_prompts_are_in_the_history() -> None:
    """F3: under names that no tool can have, with what was asked for."""
    async with site() as gateway:
        await ask(gateway, read("slow://2"))
        await ask(gateway, get("review", arguments={"code": "x"}))
        await gateway.wait_until_recorded()
        rows = await gateway.engine.journal.find(CallQuery())
        assert [(row.tool, row.server, row.outcome) for row in rows] == [
            ("prompt review", "local", "ok"),
            ("resource slow://{steps}", "local", "ok"),
        ]
        listed = (await ask(gateway, modern("tools/list")))["result"]["tools"]
        assert len(listed) == 1  # the one of this gateway that is a tool
        wrong = await error(gateway, modern("tools/call", {"name": "prompt review", "arguments": {}}))
        assert "unknown tool" in wrong["message"]


@faked
async def test_a_function_that_raises_is_a_clean_error(caplog: pytest.LogCaptureFixture) -> None:
    """F3, E3: one line for the caller; the trace is in the log."""
    with caplog.at_level(logging.ERROR):
        async with site() as gateway:
            found = await error(gateway, get("review", arguments={"code": "crash"}))
    assert found["code"] == -32603 and found["message"] == "prompt review crashed: RuntimeError: a detail"
    assert "Traceback" in caplog.text and "Traceback" not in str(found)


@faked
async def test_a_resource_that_is_not_there_is_not_found() -> None:
    """F3: whether no function has it, or its function says so; each era has its code."""
    async with site() as gateway:
        web = await client(gateway)
        for uri, says in (
            ("missing://it", "there is no it"),
            ("slow:/1", "unknown resource 'slow:/1'; nearest: slow://"),
        ):
            now = await error(gateway, read(uri))
            before = (await web.ask(request("resources/read", {"uri": uri}))).messages[-1]["error"]
            assert (now["code"], before["code"]) == (-32602, -32002)
            assert says in now["message"] and now["data"]["uri"] == uri
        assert (await error(gateway, read("slow://x")))["message"].startswith("uri: steps: Input should be")
        unknown = await error(gateway, get("reviev"))
        assert unknown["data"]["nearest"] == ["review"]


@faked
async def test_completion_in_both_eras() -> None:
    """F3: of a prompt's argument; a template has none of its own here."""
    params = {
        "ref": {"type": "ref/prompt", "name": "review"},
        "argument": {"name": "language", "value": "pe"},
    }
    async with site() as gateway:
        expected = {"values": ["perl"], "total": 1, "hasMore": False}
        assert (await ask(gateway, modern("completion/complete", params)))["result"]["completion"] == expected
        caller = await opened(gateway)
        assert (await caller.ask(request("completion/complete", params))).result == {"completion": expected}
        wrong = {**params, "argument": {"name": "langage", "value": ""}}
        assert "nearest: language" in (await error(gateway, modern("completion/complete", wrong)))["message"]


@faked
async def test_a_long_completion_is_cut() -> None:
    """F3: MCP allows a hundred values."""

    @afoot.prompt
    def many(word: str) -> str:
        return word

    @afoot.completion(many, "word")
    def words(typed: str) -> list[str]:
        return [f"{typed}{number}" for number in range(150)]

    params = {"ref": {"type": "ref/prompt", "name": "many"}, "argument": {"name": "word", "value": "w"}}
    async with site(many) as gateway:
        found = (await ask(gateway, modern("completion/complete", params)))["result"]["completion"]
        assert len(found["values"]) == 100 and found["total"] == 150 and found["hasMore"]


@faked
async def test_subscribers_are_told_when_a_resource_changes() -> None:
    """F3: in both eras, and nobody else."""
    async with site() as gateway:
        caller = await opened(gateway)
        listening = await watch(gateway, "slow://1", "nothing://here")
        acknowledged = listening.messages[0]["params"]["notifications"]
        assert acknowledged["resourceSubscriptions"] == ["slow://1"]
        await caller.ask(request("resources/subscribe", {"uri": "slow://1"}))
        gateway.function_offers.changed("slow://1")
        gateway.function_offers.changed("slow://2")
        await asyncio.sleep(1)
        assert told(listening.messages) == ["slow://1"]
        assert caller.session.listener.take() == [("resource", "slow://1")]
        await caller.ask(request("resources/unsubscribe", {"uri": "slow://1"}))
        gateway.function_offers.changed("slow://1")
        assert caller.session.listener.take() == []
        await leave(listening)


@faked
async def test_listeners_are_told_when_the_lists_change() -> None:
    """F3: only of the list that has changed."""
    async with site(slow) as gateway:
        exchange = Web(gateway).post(listen(promptsListChanged=True, resourcesListChanged=True))
        await asyncio.sleep(1)
        gateway.function_offers.replace(OfferProvider((slow, review)))
        await asyncio.sleep(1)
        assert told(exchange.messages) == ["prompts"]
        gateway.function_offers.replace(OfferProvider((slow, review)))
        gateway.function_offers.replace(OfferProvider((review,)))
        await asyncio.sleep(1)
        assert told(exchange.messages) == ["prompts", "resources"]
        await leave(exchange)


@faked
async def test_our_own_come_before_those_of_servers(caplog: pytest.LogCaptureFixture) -> None:
    """F3, U12: a server cannot take a URI or a prompt's name from us by listing it; the log says so."""
    rack = Rack(
        "far", prompts=["review", "other"], resources=["slow://1", "far://1"], templates=["slow://{n}"]
    )
    with caplog.at_level(logging.WARNING):
        async with site(racks=(rack,)) as gateway:
            listed = (await ask(gateway, modern("prompts/list")))["result"]["prompts"]
            assert [one["name"] for one in listed] == ["review", "far__review", "other"]
            assert (await ask(gateway, read("slow://1")))["result"]["contents"][0]["text"] == "1 steps"
            assert (await ask(gateway, read("far://1")))["result"]["from"] == "far"
            found = await ask(gateway, get("review", arguments={"code": "x"}))
            assert found["result"]["messages"][0]["content"]["text"] == "python: x"
            assert (await ask(gateway, get("far__review")))["result"]["from"] == "far"
            assert (await ask(gateway, get("local/review", arguments={"code": "x"})))["result"]["messages"]
            hidden, renamed = gateway.resource_catalog.problems()
    assert hidden == "server far: resource slow://1 is read by a function of this gateway instead"
    assert renamed == "server far: prompt review has its prefix here: a function has that name"
    assert hidden in caplog.text and renamed in caplog.text


@faked
async def test_a_broken_stream_of_a_read_goes_on() -> None:
    """F3, H2: a client of the handshake era comes back with the id of its last event."""
    async with site() as gateway:
        web = await client(gateway)
        first = web.post(with_token(request("resources/read", {"uri": "slow://4"})))
        await asyncio.sleep(2.5)
        first.leave()
        await first.done()
        last = [event.id for event in first.events if event.id][-1]
        rest = await web.open("GET", last_event_id=last).done()
        assert rest.messages[-1]["result"]["contents"][0]["text"] == "4 steps"


@faked
async def test_the_limits_of_a_read_can_be_set() -> None:
    """F3, C3: a table of tools counts where it names the resource, and a pattern for tools does not."""
    settings = convert({"tools": {"*": {"idle_s": 1}, "resource busy://bee": {"ceiling_s": 2}}}, Settings)
    async with site() as gateway:
        gateway.engine.apply_settings(settings)
        effective = gateway.engine.catalog.effective_settings
        provider = OfferProvider((busy, slow), FunctionSettings(effective_settings=effective))
        bee, other = provider.find_resource("busy://bee"), provider.find_resource("slow://1")
        assert bee is not None and other is not None
        assert bee.limits.ceiling_s == 2 and other.limits.idle_s == Limits().idle_s
        assert bee.approval == "auto" and bee.plain
        provider.close()


@faked
async def test_a_client_that_cannot_wait_goes_round() -> None:
    """F3, H5: a read has no handle, so 2026-07-28 ends the request with a round that asks nothing."""
    async with site() as gateway:
        message = read("slow://9")
        message["params"]["_meta"]["dev.afoot/budget"] = {"wait_s": 4}
        found = (await Web(gateway).ask(message)).messages[-1]["result"]
        assert found["resultType"] == "input_required" and "inputRequests" not in found
        params = {"uri": "slow://9", "requestState": found["requestState"]}
        assert (await ask(gateway, modern("resources/read", params, 2)))["result"]["contents"]


@faked
async def test_a_client_of_the_handshake_era_waits() -> None:
    """F3, H5: it has no rounds, and the answer to a read cannot be a handle."""
    async with site() as gateway:
        caller: Client = await opened(gateway)
        meta = {"dev.afoot/budget": {"wait_s": 4}}
        tape = await caller.ask(request("resources/read", {"uri": "slow://9", "_meta": meta}))
        assert tape.result["contents"][0]["text"] == "9 steps"


@faked
async def test_a_large_read_comes_whole() -> None:
    """F3, G3: an event of a stream has a limit in official clients, so a retry gets it as plain JSON."""

    @afoot.resource("large://text")
    async def large(ctx: afoot.Context) -> str:
        ctx.report(1, 1)
        await asyncio.sleep(1)
        return "x" * 2_000_000

    async with site(large) as gateway:
        first = (await Web(gateway).ask(with_token(read("large://text")))).messages[-1]["result"]
        assert first["resultType"] == "input_required" and "inputRequests" not in first
        params = {"uri": "large://text", "requestState": first["requestState"]}
        [found] = (await ask(gateway, modern("resources/read", params, 2)))["result"]["contents"]
        assert len(found["text"]) == 2_000_000
        web = await client(gateway)
        older = await web.ask(with_token(request("resources/read", {"uri": "large://text"})))
        assert len(older.messages[-1]["result"]["contents"][0]["text"]) == 2_000_000


@faked
async def test_a_resource_may_require_scopes() -> None:
    """F1, F3: a caller without them neither sees it nor reads it, nor completes its arguments."""

    @afoot.resource("secret://{name}", scopes=["billing"])
    async def secret(name: Literal["a", "b"], ctx: afoot.Context) -> str:
        return f"{name} for {sorted(ctx.caller.scopes)}"

    @afoot.prompt(scopes=["billing"])
    def hidden() -> str:
        return ""

    params = {
        "ref": {"type": "ref/resource", "uri": "secret://{name}"},
        "argument": {"name": "name", "value": ""},
    }
    async with site(secret, hidden, review) as gateway:
        for method, key in (("resources/templates/list", "resourceTemplates"), ("prompts/list", "prompts")):
            listed = (await ask(gateway, modern(method)))["result"][key]
            assert [one.get("name") for one in listed] == (["review"] if key == "prompts" else [])
        for message in (read("secret://a"), get("hidden"), modern("completion/complete", params)):
            assert "billing" in (await error(gateway, message))["message"]
        caller = await opened(gateway)
        tape = Tape()
        tape.origin = CallOrigin("mcp-http", scopes=frozenset(("billing",)))
        await caller.session.request(
            jsonrpc.read(json.dumps(request("resources/read", {"uri": "secret://a"})).encode()), tape
        )
        assert tape.result["contents"][0]["text"] == "a for ['billing']"


@faked
async def test_completions_of_a_template_that_requires_scopes_need_them() -> None:
    """F1, F3: also where the text of the template fits another one, which requires none."""

    @afoot.resource("files://{+path}")
    def anything(path: str) -> str:
        return path

    @afoot.resource("files://keys{/name}", scopes=["billing"])
    def keys(name: Literal["red", "blue"]) -> str:
        return name

    ref = {"type": "ref/resource", "uri": "files://keys{/name}"}
    asked = modern("completion/complete", {"ref": ref, "argument": {"name": "name", "value": ""}})
    async with site(anything, keys) as gateway:
        assert "billing" in (await error(gateway, asked))["message"]


@faked
async def test_a_template_is_completed_by_its_text_whatever_its_operators() -> None:
    """F3: as URI, the text of such a template is none of its own."""

    @afoot.resource("files://keys{/name}")
    def keys(name: Literal["red", "blue"]) -> str:
        return name

    ref = {"type": "ref/resource", "uri": "files://keys{/name}"}
    asked = modern("completion/complete", {"ref": ref, "argument": {"name": "name", "value": "r"}})
    async with site(keys) as gateway:
        assert (await ask(gateway, asked))["result"]["completion"]["values"] == ["red"]


@faked
async def test_a_resource_that_requires_scopes_is_not_watched_without_them() -> None:
    """F1, F3: neither itself nor by the folder above it; whoever loses the scopes hears no more."""

    @afoot.resource("secret://all")
    def overview() -> str:
        return ""

    @afoot.resource("secret://all/{name}", scopes=["billing"])
    def secret(name: str) -> str:
        return name

    async with site(secret, overview) as gateway:
        listening = await watch(gateway, "secret://all", "secret://all/a")
        acknowledged = listening.messages[0]["params"]["notifications"]
        assert acknowledged["resourceSubscriptions"] == ["secret://all"]
        caller = await opened(gateway)
        with pytest.raises(Fault, match="billing"):
            await caller.ask(request("resources/subscribe", {"uri": "secret://all/a"}))
        tape = Tape()
        tape.origin = CallOrigin("mcp-http", scopes=frozenset(("billing",)))
        wanted = request("resources/subscribe", {"uri": "secret://all/a"})
        await caller.session.request(jsonrpc.read(json.dumps(wanted).encode()), tape)
        gateway.function_offers.changed("secret://all/a")
        gateway.function_offers.changed("secret://all")
        await asyncio.sleep(1)
        assert told(listening.messages) == ["secret://all"]
        assert caller.session.listener.take() == [("resource", "secret://all/a")]
        caller.session.listener.origin = CallOrigin("mcp-http")
        gateway.function_offers.changed("secret://all/a")
        assert caller.session.listener.take() == []
        await leave(listening)


@faked
async def test_a_read_has_the_state_and_the_dependencies_of_its_file() -> None:
    """F2, F3, F4: as a tool has."""

    def unit() -> str:
        return "km"

    @afoot.resource("far://{n}")
    async def far(n: int, ctx: afoot.Context, unit: str = afoot.Depends(unit)) -> str:
        return f"{n} {unit} {ctx.caller.id}"

    async with site(far) as gateway:
        assert (await ask(gateway, read("far://5")))["result"]["contents"][0]["text"] == "5 km local"
