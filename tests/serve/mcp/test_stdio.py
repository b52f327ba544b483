"""MCP on a pipe: the era of a connection, cancels, lines that are wrong, and the end."""

import asyncio

import pytest

from afoot.core.facts import CancelRequested, Limits
from afoot.core.ports import Run
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.call_request import EVENT_MAX_BYTES
from tests.engine.fake_engine import facts
from tests.serve.fake_gateway import Message, asks, faked, nap, only, site_of
from tests.serve.mcp.era_2026.test_subscriptions import change, listen
from tests.serve.raw_transports import PREFIX, Pipe, call, cancelled, hello, modern, older, request

ERAS = ("modern", "handshake")


async def piped(gateway: GatewayState, era: str) -> Pipe:
    """A pipe whose era is settled."""
    pipe = Pipe(gateway)
    first = modern("server/discover", id="first") if era == "modern" else hello(elicitation={})
    assert "result" in await pipe.ask(first)
    return pipe


def calling(era: str, id: int | str = 1, **meta: object) -> Message:
    """A `tools/call` of this era."""
    return call(id, **meta) if era == "modern" else older(id, **meta)


def ends(pipe: Pipe, id: int | str) -> list[Message]:
    """The answers to one request."""
    return [said for said in pipe.said if said.get("id") == id]


async def counts(run: Run) -> str:
    """A tool that reports once a second, three times."""
    for n in range(1, 4):
        run.report(n, 3, None)
        await asyncio.sleep(1)
    return "counted"


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_progress_goes_before_its_result(era: str) -> None:
    """P6, T1, T3: on the one pipe, each frame with its token; the result echoes it."""
    async with site_of(counts) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 1, progressToken="a"), calling(era, 2))
        await asyncio.sleep(5)
        progress = [said["params"] for said in pipe.said if said.get("method")]
        assert [(one["progressToken"], one["progress"]) for one in progress] == [("a", 1), ("a", 2), ("a", 3)]
        [result] = ends(pipe, 1)
        assert result["result"]["_meta"]["progressToken"] == "a"
        assert "progressToken" not in ends(pipe, 2)[0]["result"]["_meta"]
        await pipe.close()


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_a_silent_call_without_a_token_puts_nothing_on_the_pipe(era: str) -> None:
    """C6: no comment, no notice; with a token the notice comes as anywhere."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(40)
        return "slept"

    async with site_of(tool, limits=Limits(idle_s=None)) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 1))
        await asyncio.sleep(41)
        assert len(pipe.said) == 2
        pipe.put(calling(era, 2, progressToken=2))
        await asyncio.sleep(41)
        notices = [said["params"]["message"] for said in pipe.said if said.get("method")]
        assert notices == ["running, 15 s", "running, 30 s"]
        await pipe.close()


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_nothing_follows_a_cancel(era: str) -> None:
    """X1: neither progress nor an answer; the call ends with the caller's reason."""
    async with site_of(counts) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 5, progressToken="t"))
        await asyncio.sleep(1.5)
        live, before = only(gateway), len(pipe.said)
        pipe.put(cancelled(6), cancelled(5, "enough"))
        await asyncio.sleep(10)
        assert len(pipe.said) == before and live.call.end is not None
        assert (live.call.end.outcome, facts(live, CancelRequested)[0].reason) == ("cancelled", "enough")
        await pipe.close()


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_a_cancel_that_comes_right_behind_its_request_counts(era: str) -> None:
    """X1: even if both lines are read in one go."""
    async with site_of(nap) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 5), cancelled(5))
        await asyncio.sleep(30)
        assert ends(pipe, 5) == [] and gateway.engine.calls() == []
        await pipe.close()


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_an_id_in_use_is_refused_and_a_token_in_use_goes_without_progress(era: str) -> None:
    """C8, T1: the first request goes on as if nothing were; both are free again after it."""
    async with site_of(counts) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 5, progressToken="t"))
        await asyncio.sleep(0.5)
        refused = await pipe.ask(calling(era, 5))
        assert refused["error"]["code"] == -32600 and "5" in refused["error"]["message"]
        pipe.put(calling(era, 6, progressToken="t"))
        await asyncio.sleep(5)
        assert gateway.counters == {"tokens used twice": 1}
        assert sum("method" in said for said in pipe.said) == 3 and len(ends(pipe, 6)) == 1
        pipe.put(calling(era, 5, progressToken="t"))
        await asyncio.sleep(5)
        assert sum("method" in said for said in pipe.said) == 6
        await pipe.close()


@faked
async def test_the_first_request_settles_the_era() -> None:
    """C8: what belongs to the other one is refused by name, and the connection lives on."""
    async with site_of(nap) as gateway:
        pipe = await piped(gateway, "modern")
        refused = await pipe.ask(hello())
        assert refused["error"]["code"] == -32022
        assert refused["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}
        assert "error" in await pipe.ask(request("tools/list", id=2)), "without its envelope"
        assert "result" in await pipe.ask(modern("tools/list"))
        await pipe.close()
        pipe = await piped(gateway, "handshake")
        refused = await pipe.ask(modern("tools/list", id=9))
        assert (refused["id"], refused["error"]["code"]) == (9, -32600)
        assert "result" in await pipe.ask(request("tools/list"))
        await pipe.close()


@faked
async def test_words_in_the_arguments_are_no_envelope() -> None:
    """C8: a tool of the handshake era may be told about the protocol."""
    async with site_of(counts) as gateway:
        pipe = await piped(gateway, "handshake")
        text = {"text": f"{PREFIX}protocolVersion", f"{PREFIX}protocolVersion": 1}
        pipe.put(request("tools/call", {"name": "tool", "arguments": text}, 5))
        await asyncio.sleep(5)
        assert ends(pipe, 5)[0]["result"]["content"][0]["text"] == "counted"
        await pipe.close()


@faked
async def test_a_notification_before_the_first_request_is_dropped() -> None:
    """C8: nobody waits for an answer to one, and it settles nothing."""
    async with site_of(nap) as gateway:
        pipe = Pipe(gateway)
        pipe.put({"jsonrpc": "2.0", "method": "notifications/initialized"}, cancelled(1))
        await asyncio.sleep(1)
        assert pipe.said == []
        assert "result" in await pipe.ask(modern("server/discover"))
        await pipe.close()


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_a_line_that_is_wrong_is_told_and_the_next_is_served(era: str) -> None:
    """E4, G3: the protocol's error; blank lines are nothing; a notification is never answered."""
    wrong: list[tuple[bytes, int]] = [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"id": 4, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 4}', -32600),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "' + b"x" * 3000 + b'"}', -32700),
        (b"x" * 1025 + b"\n" + b"y" * 100_000, -32700),
    ]
    async with site_of(nap, settings={"max_body_bytes": 1024}) as gateway:
        pipe = await piped(gateway, era)
        for line, code in wrong:
            pipe.put(b"", b"  ")
            before = len(pipe.said)
            pipe.put(line)
            await asyncio.sleep(0.01)
            assert {said["error"]["code"] for said in pipe.said[before:]} == {code}, line[:80]
            good = modern("tools/list", id="good") if era == "modern" else request("tools/list", id="good")
            assert (await pipe.ask(good))["id"] == "good"
        pipe.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}})
        pipe.put({"jsonrpc": "2.0", "method": "notifications/unheard"})
        before = len(pipe.said)
        await asyncio.sleep(1)
        assert len(pipe.said) == before
        await pipe.close()


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_the_end_of_the_pipe_ends_its_calls(era: str) -> None:
    """X1: by a disconnect; also one whose last line has no end."""
    async with site_of(nap) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 5))
        await asyncio.sleep(1)
        live = only(gateway)
        await pipe.close(b'{"jsonrpc": "2.0", "id": 9')
        assert live.call.cancel is not None and live.call.cancel.by == "disconnect"
        assert ends(pipe, 5) == [] and pipe.said[-1]["error"]["code"] == -32700


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_reads_nothing_is_taken_for_gone(era: str) -> None:
    """P5, X1: after two minutes; the tool was never held up."""

    async def tool(run: Run) -> str:
        for n in range(1000):
            run.report(n, 1000, None)
            await asyncio.sleep(1)
        return "counted"

    async with site_of(tool, limits=Limits(ceiling_s=2000)) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 5, progressToken="t"))
        await asyncio.sleep(9.5)
        live = only(gateway)
        pipe.block()
        await asyncio.sleep(119)
        assert live.call.cancel is None and live.call.readings > 120
        await asyncio.sleep(3)
        assert live.call.cancel is not None and live.call.cancel.by == "disconnect"
        await pipe.close()


@faked
async def test_a_question_is_a_round_or_a_nested_request() -> None:
    """Q1: by the era; a large result goes at once, as a pipe has no events."""
    async with site_of(asks) as gateway:
        pipe = await piped(gateway, "modern")
        round_one = await pipe.ask(call(5))
        state = round_one["result"]["requestState"]
        assert gateway.engine.calls() != [], "it is parked, not over"
        answers = {"sure": {"action": "decline"}}
        done = await pipe.ask(call(6, requestState=state, inputResponses=answers))
        assert done["result"]["content"][0]["text"] == "decline  by stdio"
        wrong = await pipe.ask(call(7, requestState="made up"))
        assert (wrong["id"], wrong["error"]["code"]) == (7, -32602)
        await pipe.close()
        pipe = await piped(gateway, "handshake")
        asked = await pipe.ask(older(5))
        pipe.put({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
        await asyncio.sleep(1)
        assert ends(pipe, 5)[0]["result"]["content"][0]["text"] == "decline  by stdio"
        await pipe.close()


@faked
async def test_a_large_result_goes_as_one_line() -> None:
    """G3: a pipe has no events, so no limit of theirs."""

    async def tool(run: Run) -> str:
        run.report(1, 1, None)
        return "x" * EVENT_MAX_BYTES

    async with site_of(tool) as gateway:
        pipe = await piped(gateway, "modern")
        pipe.put(call(5, progressToken="t"))
        await asyncio.sleep(1)
        assert len(ends(pipe, 5)[0]["result"]["content"][0]["text"]) == EVENT_MAX_BYTES
        await pipe.close()


@faked
async def test_a_listener_on_a_pipe_is_told_and_can_leave() -> None:
    """C8: its cancel is not answered; nor is the end of the pipe."""
    async with site_of(nap) as gateway:
        pipe = await piped(gateway, "modern")
        assert (await pipe.ask(listen(7, toolsListChanged=True)))["method"].endswith("acknowledged")
        assert (await pipe.ask(call(7)))["error"]["code"] == -32600, "its id is in use"
        await pipe.ask(listen(8, toolsListChanged=True))
        change(gateway)
        await asyncio.sleep(60)
        changed = [said["params"]["_meta"] for said in pipe.said if "list_changed" in said.get("method", "")]
        assert sorted(meta[f"{PREFIX}subscriptionId"] for meta in changed) == [7, 8]
        before = len(pipe.said)
        pipe.put(cancelled(7))
        await asyncio.sleep(1)
        assert len(gateway.wakeups) == 1
        await pipe.close()
        assert gateway.wakeups == [] and len(pipe.said) == before
