"""MCP over HTTP, 2026-07-28: JSON or a stream, who may leave when, and every wrong request told."""

import asyncio

import pytest

from afoot.core.call import State
from afoot.core.facts import Limits
from afoot.core.ports import Run
from afoot.serve.mcp.call_request import EVENT_MAX_BYTES
from tests.serve.fake_gateway import Message, asks, faked, nap, only, site_of
from tests.serve.raw_transports import Web, call, hello, modern

PATIENT = Limits(idle_s=None)


async def counts(run: Run) -> str:
    """A tool that reports ten times in ten seconds."""
    for n in range(1, 11):
        run.report(n, 10, f"page {n}")
        await asyncio.sleep(1)
    return "counted"


@faked
async def test_a_call_that_ends_within_five_seconds_is_answered_as_json() -> None:
    """T1, S1: whole, with its length, and whether or not it has a token."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4.9)
        return "slept"

    async with site_of(tool) as gateway:
        done = await Web(gateway).ask(call(7, progressToken="t"))
    assert (done.status, done.headers["content-type"]) == (200, "application/json")
    assert int(done.headers["content-length"]) == len(done.body) and done.messages[0]["id"] == 7
    assert [at for at, _ in done.chunks] == [4.9]


@faked
async def test_the_first_notification_opens_the_stream() -> None:
    """P6: progress in order, then the result, then the end; no proxy may hold it back."""
    async with site_of(counts) as gateway:
        done = await Web(gateway).ask(call(progressToken="t"))
    assert done.is_stream and done.headers["x-accel-buffering"] == "no" and done.is_whole
    assert [sent["params"]["progress"] for sent in done.messages[:-1]] == list(range(1, 11))
    assert done.messages[-1]["result"]["content"][0]["text"] == "counted"
    assert [at for at, _ in done.chunks] == list(range(11)), "each at its own time, the result with the end"


@faked
@pytest.mark.parametrize("token", [True, False])
async def test_a_silent_call_becomes_a_stream_after_five_seconds(token: bool) -> None:
    """C6: by a comment; then notices for a caller with a token, comments for one without."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(40)
        return "slept"

    async with site_of(tool, limits=PATIENT) as gateway:
        done = await Web(gateway).ask(call(**({"progressToken": 1} if token else {})))
    comments = [at for at, data in done.chunks if data == b": alive\n\n"]
    assert comments == ([5] if token else [5, 15, 30]) and done.is_stream
    assert [sent.get("method") for sent in done.messages] == [*["notifications/progress"] * 2 * token, None]


@faked
async def test_a_client_that_leaves_cancels_before_its_answer_and_not_after() -> None:
    """Q1 a, X1: in the silent phase, on the stream, and after the last byte."""
    async with site_of(counts) as gateway:
        web = Web(gateway)
        for message in (call(), call(progressToken="t")):
            exchange = web.post(message)
            await asyncio.sleep(3.5)
            live = only(gateway)
            exchange.leave()
            await exchange.done()
            assert live.call.cancel is not None and live.call.cancel.by == "disconnect"
            assert b"counted" not in exchange.body
            await asyncio.sleep(1)
        done = await web.ask(call())
        done.leave()
    assert done.messages[0]["result"]["content"][0]["text"] == "counted"


@faked
async def test_a_client_that_closes_first_after_a_round_cancels_nothing() -> None:
    """Q1 a, b: the round was one send with no more to follow."""
    async with site_of(asks) as gateway:
        web = Web(gateway)
        first = await web.ask(call())
        first.leave()
        await asyncio.sleep(1)
        assert only(gateway).call.state is State.RUNNING and not first.is_stream
        state = first.messages[0]["result"]["requestState"]
        answers = {"sure": {"action": "decline"}}
        second = await web.ask(call(2, requestState=state, inputResponses=answers))
        assert second.messages[0]["result"]["content"][0]["text"] == "decline  by local"
        wrong = await web.ask(call(3, requestState=state + "x"))
    assert (wrong.status, wrong.messages[0]["error"]["code"], wrong.messages[0]["id"]) == (400, -32602, 3)


@faked
async def test_a_reader_that_takes_nothing_for_long_is_taken_for_gone() -> None:
    """C6, X1: two minutes after the first byte that it did not take, and not a second later."""

    async def tool(run: Run) -> str:
        await counts(run)
        await asyncio.sleep(1000)
        return "slept"

    async with site_of(tool, limits=Limits(idle_s=None, ceiling_s=2000)) as gateway:
        exchange = Web(gateway).post(call(progressToken="t"))
        await asyncio.sleep(8.5)
        live = only(gateway)
        exchange.reads.clear()
        await asyncio.wait_for(exchange.task, 200)
        cancel = live.call.cancel
        assert cancel is not None and cancel.by == "disconnect"
        assert cancel.at - live.call.opened.at == pytest.approx(129)
        exchange.reads.set()


@faked
async def test_a_reader_that_reads_again_in_time_gets_the_newest_value() -> None:
    """P5: what lay between is lost to it, and nobody waited for it."""
    async with site_of(counts) as gateway:
        exchange = Web(gateway).post(call(progressToken="t"))
        await asyncio.sleep(2.5)
        exchange.reads.clear()
        await asyncio.sleep(100)
        assert gateway.engine.calls() == []
        exchange.reads.set()
        done = await exchange.done()
    numbers = [sent["params"]["progress"] for sent in done.messages[:-1]]
    assert numbers == [1, 2, 3, 4, 10] and done.messages[-1]["result"]["content"][0]["text"] == "counted"


@faked
async def test_a_result_too_large_for_a_stream_is_fetched_as_json() -> None:
    """G3: on a committed stream a round without a question; its retry is answered whole."""

    async def tool(run: Run) -> str:
        run.report(1, 1, None)
        await asyncio.sleep(0)
        return "x" * EVENT_MAX_BYTES

    async with site_of(tool) as gateway:
        web = Web(gateway)
        first = await web.ask(call(progressToken="t"))
        put_off = first.messages[-1]["result"]
        assert first.is_stream and set(put_off) == {"resultType", "requestState", "_meta"}
        second = await web.ask(call(2, progressToken="t", requestState=put_off["requestState"]))
    assert not second.is_stream and len(second.messages[0]["result"]["content"][0]["text"]) == EVENT_MAX_BYTES


@faked
@pytest.mark.parametrize("pieces", [1, 2, 50])
async def test_a_body_may_come_in_pieces(pieces: int) -> None:
    """G3: and a client that leaves in the middle of it is not answered."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        assert (await web.ask(modern("server/discover"), pieces=pieces)).status == 200
        cut = web.post(modern("server/discover"), pieces=0)
        cut.leave()
        assert (await cut.done()).status == 0


GOOD = call()
WRONG: dict[str, tuple[object, dict[str, str], int, int]] = {
    "no JSON": (b"{", {"mcp_protocol_version": "2026-07-28"}, 400, -32700),
    "a batch": (b"[]", {"mcp_protocol_version": "2026-07-28"}, 400, -32600),
    "an answer": (
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        {"mcp_protocol_version": "2026-07-28"},
        400,
        -32600,
    ),
    "another type": (GOOD, {"content_type": "text/plain"}, 415, -32600),
    "no type": (GOOD, {"content_type": ""}, 415, -32600),
    "takes no stream": (GOOD, {"accept": "application/json"}, 406, -32600),
    "takes nothing": (GOOD, {"accept": ""}, 406, -32600),
    "another method": (GOOD, {"mcp_method": "tools/list"}, 400, -32020),
    "another name": (GOOD, {"mcp_name": "other"}, 400, -32020),
    "another version": (GOOD, {"mcp_protocol_version": "v999"}, 400, -32020),
    "unknown method": (modern("tools/dance"), {}, 404, -32601),
    "an old method": (modern("ping"), {}, 404, -32601),
    "unknown tool": (modern("tools/call", {"name": "tol"}), {}, 400, -32602),
    "too large": (call(arguments={"a": "x" * 5000}), {}, 413, -32600),
    "arguments too large": (call(arguments={"a": "x" * 1500}), {}, 400, -32602),
    "a cursor": (modern("tools/list", {"cursor": "2"}), {}, 400, -32602),
}


@faked
@pytest.mark.parametrize("case", WRONG)
async def test_a_wrong_request_is_told_and_runs_nothing(case: str) -> None:
    """E4, E5, G3: the protocol's error with its HTTP status, under the request's own id if it has one."""
    message, headers, status, code = WRONG[case]
    settings = {"max_body_bytes": 4000, "max_arguments_bytes": 1000}
    async with site_of(nap, settings=settings) as gateway:
        done = await Web(gateway).ask(message, **headers)
        assert gateway.engine.calls() == []
    [answer] = done.messages
    assert (done.status, answer["error"]["code"]) == (status, code)
    assert answer["id"] == (1 if status in (400, 404) and isinstance(message, dict) else None)


@faked
async def test_a_missing_capability_is_refused_before_anything_runs() -> None:
    """E4: -32021 with what is missing, as an object."""
    async with site_of(nap, requires={"sampling": {}}) as gateway:
        done = await Web(gateway).ask(call(capabilities={}))
    assert (done.status, done.messages[0]["error"]["code"]) == (400, -32021)
    assert done.messages[0]["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


@faked
async def test_arguments_that_do_not_fit_are_a_result() -> None:
    """E4: `isError`, for the model to read; nothing ran, so nothing may have happened."""
    async with site_of(nap) as gateway:
        done = await Web(gateway).ask(call(arguments={"broken": 1}))
    result = done.messages[0]["result"]
    assert result["isError"] and result["_meta"]["dev.afoot/error"]["side_effects"] == "none"


@faked
async def test_a_notification_is_taken_and_dropped() -> None:
    """X1: also a cancel, which in this era is the end of a stream."""
    notice: Message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with site_of(nap) as gateway:
        web = Web(gateway)
        exchange = web.post(call(1))
        await asyncio.sleep(1)
        done = await web.ask(notice, mcp_protocol_version="2026-07-28")
        unknown = await web.ask(notice, mcp_protocol_version="v999")
        assert (await exchange.done()).messages[-1]["result"]["content"][0]["text"] == "slept"
    assert (done.status, done.body) == (202, b"") and unknown.messages[0]["error"]["code"] == -32022


@faked
async def test_other_methods() -> None:
    """S1: 405 says what there is; a HEAD is no GET."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        for method in ("GET", "DELETE", "PUT"):
            done = await web.open(method, mcp_protocol_version="2026-07-28").done()
            assert (done.status, done.headers["allow"]) == (405, "POST")
        assert (await web.open("HEAD").done()).status == 405


@faked
async def test_a_gateway_that_closes_takes_no_call() -> None:
    """X1: 503, and why."""
    async with site_of(nap) as gateway:
        gateway.engine.closing = "the gateway is shutting down"
        done = await Web(gateway).ask(call())
    assert done.status == 503 and "shutting down" in done.messages[0]["error"]["message"]


@faked
async def test_pages_of_allowed_origins_may_read_responses() -> None:
    """S1, U8: a browser asks first, and the answer names the origin; others are told nothing."""
    page = "https://app.example"
    async with site_of(nap) as gateway:
        web = Web(gateway, origins=[page])
        wanted = {"access_control_request_method": "POST", "access_control_request_headers": "mcp-name"}
        asked = await web.open("OPTIONS", origin=page, **wanted).done()
        assert (asked.status, asked.headers["access-control-allow-origin"]) == (204, page)
        assert asked.headers["access-control-allow-headers"] == "mcp-name"
        assert "POST" in asked.headers["access-control-allow-methods"]
        for message in (modern("tools/list"), modern("nothing"), hello(), b"{"):
            done = await web.ask(message, origin=page)
            assert done.headers["access-control-allow-origin"] == page
            assert "mcp-session-id" in done.headers["access-control-expose-headers"]
        refused = await web.open("OPTIONS", origin="https://evil.example", **wanted).done()
        assert (refused.status, "access-control-allow-origin" in refused.headers) == (405, False)
        plain = await web.ask(modern("tools/list"))
        assert "access-control-allow-origin" not in plain.headers
