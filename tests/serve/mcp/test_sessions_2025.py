"""The handshake era over HTTP: sessions from initialize to DELETE, their calls, and their own stream."""

import asyncio

import pytest

from afoot.core.call import State
from afoot.core.facts import Limits
from afoot.core.ports import Run
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp import sessions_2025
from afoot.serve.mcp.call_request import EVENT_MAX_BYTES
from afoot.serve.mcp.sessions_2025 import SESSION_IDLE_S, session_caller
from afoot.wire.mcp_2025 import MAX_INITIALIZE_BYTES
from tests.serve.fake_gateway import Message, asks, faked, nap, only, site_of
from tests.serve.mcp.era_2026.test_subscriptions import change, methods
from tests.serve.raw_transports import Exchange, Web, cancelled, client, hello, older, request

INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def neighbour(web: Web, gateway: GatewayState) -> Web:
    """Another client of the same gateway."""
    other = Web(gateway)
    other.application = web.application
    await other.shake_hands()
    return other


async def counts(run: Run) -> str:
    """A tool that reports once a second, five times."""
    for n in range(1, 6):
        run.report(n, 5, None)
        await asyncio.sleep(1)
    return "counted"


@faked
async def test_initialize_opens_a_session_and_every_later_request_names_it() -> None:
    """S3: an id that nobody can guess, in visible letters; notifications are 202 without a body."""
    async with site_of(nap) as gateway:
        web = await client(gateway)
        other = await client(gateway)
        assert web.session.isascii() and web.session.isprintable() and " " not in web.session
        assert len(web.session) > 64 and web.session != other.session
        done = await web.ask(INITIALIZED)
        assert (done.status, done.body) == (202, b"")
        assert (await web.ask(request("ping"))).messages[0]["result"] == {}
        stray = await web.ask({"jsonrpc": "2.0", "id": "afoot-9", "result": {}})
        assert stray.status == 202 and gateway.counters == {"answers to nothing": 1}


@faked
@pytest.mark.parametrize(("session", "status"), [("", 400), ("made up", 404)])
async def test_a_session_that_is_missing_or_unknown_is_told(session: str, status: int) -> None:
    """S3: 404 makes a client begin anew; whatever it wanted, nothing runs."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        web.session = session
        tries = [web.post(request("ping")), web.post(older()), web.post(INITIALIZED)]
        tries += [web.open("GET"), web.open("DELETE")]
        for exchange in tries:
            done = await exchange.done()
            assert (done.status, done.messages[0]["error"]["code"]) == (status, -32600)
        assert gateway.engine.calls() == []
        if session:
            assert (await web.ask(hello())).status == 404, "initialize with a foreign session"


@faked
async def test_a_session_ends_with_delete() -> None:
    """X3: its streams close, its calls run on, and its id is unknown from then on."""
    async with site_of(nap) as gateway:
        web = await client(gateway)
        stream = web.open("GET")
        call = web.post(older())
        await asyncio.sleep(1)
        live = only(gateway)
        assert (await web.open("DELETE").done()).status == 200
        await asyncio.gather(stream.done(), call.done())
        assert stream.is_whole and call.is_whole and live.call.cancel is None
        assert (await web.ask(request("ping"))).status == (await web.open("DELETE").done()).status == 404


@faked
async def test_an_initialize_that_is_wrong_opens_nothing() -> None:
    """E4: an error in a body that the client reads, and no session that it could take for one."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        done = await web.ask(request("initialize", {"protocolVersion": 1}))
        assert (done.status, done.messages[0]["error"]["code"], done.messages[0]["id"]) == (200, -32602, 1)
        assert "mcp-session-id" not in done.headers


@faked
async def test_an_initialize_without_bound_opens_nothing() -> None:
    """S3, H8: a thousand sessions would keep as many names and capabilities of 4 MB."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        wide = await web.ask(hello(extensions={"x": "y" * MAX_INITIALIZE_BYTES}))
        assert "over" in wide.messages[0]["error"]["message"] and not web.session


@faked
async def test_there_are_only_so_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: one more is 503; ending one, or leaving one alone for half an hour, makes room.

    H3: who comes back after that finds its session and its tasks, if there is room.
    """
    monkeypatch.setattr(sessions_2025, "MAX_SESSIONS", 2)
    async with site_of(nap) as gateway:
        web = Web(gateway)
        await web.shake_hands()
        first, web.session = web.session, ""
        await web.shake_hands()
        second, web.session = web.session, ""
        assert (await web.ask(hello())).status == 503
        await web.open("DELETE", mcp_session_id=first).done()
        await web.shake_hands()
        third, web.session = web.session, ""
        await asyncio.sleep(SESSION_IDLE_S - 10)
        assert (await web.ask(request("ping"), mcp_session_id=third)).status == 200
        await asyncio.sleep(20)
        await web.shake_hands()
        assert (await web.ask(request("ping"), mcp_session_id=second)).status == 503
        assert (await web.ask(request("ping"), mcp_session_id=third)).status == 200
        await web.open("DELETE", mcp_session_id=third).done()
        assert (await web.ask(request("ping"), mcp_session_id=second)).status == 200
        assert (await web.ask(request("ping"), mcp_session_id=first)).status == 404


@faked
async def test_a_caller_has_only_so_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8, G2: before, one token took all 10,000. The one idle longest makes room, and may come back."""
    monkeypatch.setattr(sessions_2025, "MAX_SESSIONS_PER_CALLER", 2)
    async with site_of(nap) as gateway:
        web = Web(gateway)
        keys = list[str]()
        for _ in range(4):
            web.session = ""
            await web.shake_hands()
            keys.append(web.session)
            await asyncio.sleep(1)
        assert set(web.sessions._held) == set(keys[-2:])
        assert (await web.ask(request("ping"), mcp_session_id=keys[0])).status == 200
        assert len(web.sessions._held) == 2


@faked
@pytest.mark.parametrize("how", ["call", "stream"])
async def test_a_session_in_use_does_not_expire(how: str) -> None:
    """S3: its half hour begins when its last request or stream is over."""

    async def tool(run: Run) -> str:
        for _ in range(300):
            await asyncio.sleep(10)
            run.alive()
        return "done"

    async with site_of(tool, limits=Limits(ceiling_s=9000)) as gateway:
        web = await client(gateway)
        busy = web.post(older()) if how == "call" else web.open("GET")
        await asyncio.sleep(SESSION_IDLE_S + 100)
        other = await neighbour(web, gateway)
        busy.leave()
        await busy.done()
        await asyncio.sleep(SESSION_IDLE_S - 100)
        other.session = ""
        await other.shake_hands()
        assert (await web.ask(request("ping"))).status == 200


@faked
async def test_a_call_is_answered_as_json_or_as_a_stream() -> None:
    """P6: as in the other era: by the first notification, or after five seconds."""
    async with site_of(counts) as gateway:
        web = await client(gateway)
        told = await web.ask(older(1, progressToken="t"))
        untold = await web.ask(older(2))
    assert told.is_stream and [sent["params"]["progress"] for sent in told.messages[:-1]] == [1, 2, 3, 4, 5]
    assert untold.messages[-1]["id"] == 2 and len(untold.messages) == 1
    assert "resultType" not in told.messages[-1]["result"]


@faked
async def test_a_question_goes_over_the_calls_stream_and_its_answer_comes_by_another_post() -> None:
    """Q1: 202 for the answer; only the session that was asked can give it."""
    async with site_of(asks) as gateway:
        web = await client(gateway, elicitation={})
        other = await neighbour(web, gateway)
        exchange = web.post(older(5))
        await asyncio.sleep(1)
        [asked] = exchange.messages
        answer: Message = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
        assert (await other.ask(answer)).status == 202 and only(gateway).call.open
        assert (await web.ask(answer)).status == 202
        done = await exchange.done()
    assert done.messages[-1]["result"]["content"][0]["text"] == f"decline  by {session_caller(web.session)}"


@faked
async def test_a_disconnect_is_no_cancel_and_a_cancel_is_for_its_own_session() -> None:
    """X3: the call runs on; `notifications/cancelled`, matched by session and id, ends it."""
    async with site_of(nap) as gateway:
        web = await client(gateway)
        other = await neighbour(web, gateway)
        exchange = web.post(older(5))
        await asyncio.sleep(1)
        live = only(gateway)
        exchange.leave()
        await exchange.done()
        await other.ask(cancelled(5))
        assert live.call.state is State.RUNNING
        assert (await web.ask(cancelled(5, "enough"))).status == 202
        assert live.call.cancel is not None and live.call.cancel.reason == "enough"


@faked
@pytest.mark.parametrize("token", [True, False])
async def test_a_cancelled_request_is_answered_as_by_the_server_of_the_sdk(token: bool) -> None:
    """X3: with an error, whether the stream was open already or not: the official client waits for one."""
    async with site_of(counts) as gateway:
        web = await client(gateway)
        exchange = web.post(older(5, **({"progressToken": "t"} if token else {})))
        await asyncio.sleep(2.5)
        await web.ask(cancelled(5))
        done = await exchange.done()
    assert done.is_whole and (done.status, b'"result"' in done.body) == (200, False)
    assert done.headers["content-type"].startswith("text/event-stream" if token else "application/json")
    assert (done.messages[-1]["id"], done.messages[-1]["error"]["code"]) == (5, -32800)


@faked
async def test_an_error_of_a_request_is_in_a_body_with_200() -> None:
    """E4, E5: clients of this era read no error from another; what is no request has its status."""
    async with site_of(nap) as gateway:
        web = await client(gateway)
        for message, code in (
            (request("tools/dance", id=4), -32601),
            (request("tools/call", {"name": "tol"}, 4), -32602),
            (request("tools/list", {"cursor": "2"}, 4), -32602),
        ):
            done = await web.ask(message)
            assert (done.status, done.messages[0]["error"]["code"], done.messages[0]["id"]) == (200, code, 4)
        for body, code in ((b"{", -32700), (b"[]", -32600)):
            done = await web.ask(body)
            assert (done.status, done.messages[0]["error"]["code"]) == (400, code)
        assert (await web.ask(request("ping"), accept="application/json")).status == 406
        assert (await web.ask(request("ping"), content_type="text/plain")).status == 415
        assert (await web.open("PUT").done()).headers["allow"] == "GET, POST, DELETE"


@faked
async def test_a_large_result_goes_as_one_event() -> None:
    """G3: this era has no rounds; the client's own limit decides."""

    async def tool(run: Run) -> str:
        run.report(1, 1, None)
        return "x" * EVENT_MAX_BYTES

    async with site_of(tool) as gateway:
        web = await client(gateway)
        done = await web.ask(older(progressToken="t"))
    assert done.is_stream and len(done.messages[-1]["result"]["content"][0]["text"]) == EVENT_MAX_BYTES


def comments(exchange: Exchange) -> list[float]:
    """When a sign of life came."""
    return [at for at, data in exchange.chunks if data.startswith(b":")]


@faked
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json, text/event-stream", "*/*", ""])
async def test_a_session_has_a_stream_for_what_belongs_to_no_request(accept: str) -> None:
    """C8: open at once, kept alive, and told of changes; one at a time, and another after it."""
    async with site_of(counts) as gateway:
        web = await client(gateway)
        stream = web.open("GET", accept=accept)
        await asyncio.sleep(1)
        assert (stream.status, comments(stream)) == (200, [0])
        assert (await web.open("GET").done()).status == 409
        await web.ask(older(progressToken="t"))
        change(gateway)
        await asyncio.sleep(20)
        stream.leave()
        await stream.done()
        assert methods(stream) == ["list_changed"] and comments(stream) == [0, 21]
        again = web.open("GET")
        await asyncio.sleep(1)
        assert again.status == 200
        gateway.engine.closing = "enough"
        [wakeup] = gateway.wakeups
        wakeup.wake()
        await again.done()
        assert again.is_whole and gateway.wakeups == []


@faked
async def test_a_stream_must_be_wanted_as_one() -> None:
    """C8: 406 for a GET that takes no events."""
    async with site_of(nap) as gateway:
        web = await client(gateway)
        assert (await web.open("GET", accept="application/json").done()).status == 406
