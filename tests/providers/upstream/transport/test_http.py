"""Servers behind HTTP on good and bad days: sessions, streams that break, refusals, redirects, headers."""

import asyncio

import pytest

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream import reconnect
from afoot.providers.upstream.provider import Upstream
from afoot.providers.upstream.transport import http as transport_http
from tests.providers.fake_run import ScriptedRun, accept, text_of, until
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.started_servers import opened, run_tool

SESSION = "mcp-session-id"
OLD, NEW = "2025-11-25", "2026-07-28"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait between attempts."""
    monkeypatch.setattr(reconnect, "BACK_OFF_S", (0.01, 0.02))
    monkeypatch.setattr(transport_http, "RETRY_S", (0.01, 0.02))


async def handshake(asked: Asked, reply: Reply) -> bool:
    """What a server of the handshake era says to everything but a tool call; whether it was that."""
    if asked.verb != "POST":
        await reply.status(405)
    elif "id" not in asked.body or "method" not in asked.body:
        await reply.status(202)
    elif asked.method == "server/discover":
        await reply.status(400, b"Bad Request: Missing session ID")
    elif asked.method != "tools/call":
        await reply.result(asked, mcp_session_id="s1")
    return asked.method != "tools/call"


async def modern(asked: Asked, reply: Reply) -> bool:
    """The same of 2026-07-28."""
    if asked.method != "tools/call":
        await reply.result(asked)
    return asked.method != "tools/call"


async def test_the_handshake_era_has_a_session() -> None:
    """U1: its id and version go with every request after the handshake, and it is ended in the end."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await handshake(asked, reply):
            await reply.json(text(asked, "gone"))

    async with site(answer) as place:
        async with opened(Server(url=place.url)) as upstream:
            assert upstream.era == OLD
            assert text_of(await run_tool(upstream, "go")) == "gone"
        hello, *rest = place.asked
        assert hello.method == "initialize"
        assert SESSION not in hello.headers and "mcp-protocol-version" not in hello.headers
        assert rest[0].method == "notifications/initialized"
        assert {(one.headers[SESSION], one.headers["mcp-protocol-version"]) for one in rest} == {("s1", OLD)}
        assert rest[-1].verb == "DELETE"


async def test_a_session_that_the_server_forgot_is_opened_again() -> None:
    """U1: the request was not looked at, so it had not begun; other requests are simply made again."""
    forgotten = {"s1"}

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.headers.get(SESSION) in forgotten and asked.method in ("tools/call", "ping"):
            await reply.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "?"}}, 404)
            forgotten.clear()
        elif not await handshake(asked, reply):
            await reply.json(text(asked, "gone"))

    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        with pytest.raises(RunnerDied, match="ended the session") as caught:
            await run_tool(upstream, "go")
        assert not caught.value.began
        assert text_of(await run_tool(upstream, "go")) == "gone"
        forgotten.add("s1")
        await upstream.request("ping")
        assert len(place.calls("initialize")) == 3


async def test_a_stream_that_breaks_is_taken_up_where_it_was() -> None:
    """D2, U1: after the time the server asked for, behind the last event; the call goes on."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            await reply.stream()
            done = asked.headers["last-event-id"] == "e2"
            await reply.event(text(call[0], "gone") if done else progress(call[0], 2), id="e2")
        elif not await handshake(asked, reply):
            call.append(asked)
            await reply.stream()
            await reply.event(id="e0", retry=20)
            await reply.event(progress(asked, 1), id="e1")

    call: list[Asked] = []
    run = ScriptedRun()
    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        assert text_of(await run_tool(upstream, "go", run)) == "gone"
        assert [reading[0] for reading in run.readings] == [1, 2]
        resumed = [one.headers.get("last-event-id") for one in place.calls("GET")]
        assert [mark for mark in resumed if mark] == ["e1", "e2"]


def progress(asked: Asked, number: float) -> dict[str, object]:
    token = asked.body["params"]["_meta"]["progressToken"]
    params = {"progressToken": token, "progress": number}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


@pytest.mark.parametrize("era", [OLD, NEW])
async def test_a_stream_that_breaks_and_cannot_be_taken_up_loses_the_call(era: str) -> None:
    """U4: it had begun, and nobody knows how far it came; the connection stays."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await (handshake if era == OLD else modern)(asked, reply):
            await reply.stream()
            await reply.event(progress(asked, 1), id="e1" if era == NEW else "")

    async with site(answer) as place, opened(Server(url=place.url, era=era)) as upstream:
        with pytest.raises(RunnerDied, match="ended without an answer") as caught:
            await run_tool(upstream, "go")
        assert caught.value.began and upstream.state == "ready"


async def test_what_belongs_to_no_request_comes_on_a_stream_beside_them() -> None:
    """U5: it is opened again when it ends, and goes on behind the last event."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.verb == "GET":
            await reply.stream()
            if "last-event-id" not in asked.headers:
                await reply.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, id="g1")
            else:
                await asyncio.sleep(30)
        else:
            await handshake(asked, reply)

    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        await until(lambda: len(place.calls("tools/list")) > 1 and len(place.calls("GET")) > 1)
        assert place.calls("GET")[-1].headers["last-event-id"] == "g1"
        assert upstream.state == "ready"


async def test_a_question_on_a_calls_stream_is_that_calls() -> None:
    """Q3: over HTTP it is known for certain, whoever else calls; the answer is posted."""
    answered = asyncio.Event()

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.body and "result" in asked.body:
            answered.set()
        if await handshake(asked, reply):
            return
        await reply.stream()
        if asked.body["params"]["arguments"]:
            params = {"message": "sure?", "requestedSchema": {"type": "object"}}
            await reply.event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
            await answered.wait()
            await reply.event(text(asked, "asked"))
        else:
            await reply.event(progress(asked, 1))
            await asyncio.sleep(30)

    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        other, run = ScriptedRun(), ScriptedRun(answers=[accept({"a": 1})])
        other.caller = "another"
        hanging = asyncio.create_task(run_tool(upstream, "go", other))
        await until(lambda: other.readings)
        assert text_of(await run_tool(upstream, "go", run, ask=True)) == "asked"
        assert [asked.to for asked in run.questions] == [""]
        sent = next(one.body for one in place.asked if one.body and "result" in one.body)
        assert (sent["id"], sent["result"]) == ("q", {"action": "accept", "content": {"a": 1}})
        hanging.cancel()


@pytest.mark.parametrize("era", [OLD, NEW])
async def test_a_cancel_over_http_is_told_in_the_way_of_the_era(era: str) -> None:
    """X1: a notification before, the closed stream since 2026-07-28, and nothing else."""
    closed = asyncio.Event()

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await (handshake if era == OLD else modern)(asked, reply):
            await reply.stream()
            try:
                while True:
                    await reply.event(progress(asked, 1))
                    await asyncio.sleep(0.01)
            except ConnectionError:
                closed.set()

    async with site(answer) as place, opened(Server(url=place.url, era=era)) as upstream:
        run = ScriptedRun()
        task = asyncio.create_task(run_tool(upstream, "go", run))
        await until(lambda: run.readings)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 5)
        if era == OLD:
            await until(lambda: place.calls("notifications/cancelled"))
            call = place.calls("tools/call")[0].body["id"]
            assert place.calls("notifications/cancelled")[0].body["params"]["requestId"] == call
        else:
            assert not place.calls("notifications/cancelled")


async def test_headers_repeat_what_the_body_says() -> None:
    """U1: method, name and annotated arguments on 2026-07-28; a tool with a wrong annotation is left out."""
    schema = {"type": "object", "properties": {"where": {"type": "string", "x-mcp-header": "Where"}}}
    wrong = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    tools = [{"name": "gö", "inputSchema": schema}, {"name": "bad", "inputSchema": wrong}]

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.method == "tools/list":
            await reply.json({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"tools": tools}})
        elif not await modern(asked, reply):
            await reply.json(text(asked, "gone"))

    async with site(answer) as place, opened(Server(url=place.url, headers={"x-own": "1"})) as upstream:
        assert [tool.name for tool in upstream.tools()] == ["gö"]
        await run_tool(upstream, "gö", where="here")
        sent = place.calls("tools/call")[0].headers
        names = ("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-where", "x-own")
        assert [sent[name] for name in names] == [NEW, "tools/call", "=?base64?Z8O2?=", "here", "1"]


@pytest.mark.parametrize(
    ("status", "category", "said"),
    [
        (401, "auth", "run `afoot servers login raw`"),
        (403, "auth", "403"),
        (429, "rate_limit", "429"),
        (503, "unavailable", "503"),
        (500, "internal", "500: oh"),
    ],
)
async def test_a_refusal_says_what_it_means(status: int, category: str, said: str) -> None:
    """E1: HTTP statuses map to categories; a login is asked for by name."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.status(status, b"oh", retry_after="7")

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        with pytest.raises(ToolError, match=said) as caught:
            await run_tool(upstream, "go")
        assert caught.value.category == category
        assert caught.value.retry_after == (None if status == 401 else 7)


async def test_a_login_that_is_needed_at_once_is_said_at_once() -> None:
    """U7: it is no era, and trying again does not help."""

    async def answer(asked: Asked, reply: Reply) -> None:
        await reply.status(401)

    async with site(answer) as place:
        upstream = Upstream("raw", Server(url=place.url))
        with pytest.raises(ToolError, match="afoot servers login raw"):
            await upstream.open()
        assert (len(place.asked), upstream.state) == (1, "failed")
        await upstream.close()


async def test_the_protocols_error_counts_whatever_the_status() -> None:
    """E1: with an id or without."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            error = {"code": -32602, "message": "wrong"}
            await reply.json({"jsonrpc": "2.0", "id": "server-error", "error": error}, 400)

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        with pytest.raises(ToolError, match="wrong") as caught:
            await run_tool(upstream, "go")
        assert caught.value.category == "validation"
