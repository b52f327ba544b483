"""A request that starts no call: its rounds on 2026-07-28, its clock, and its end with its caller."""

import asyncio

import pytest

from afoot.wire.jsonrpc import Fault
from tests.serve.fake_gateway import YES, Message, faked, now
from tests.serve.fake_resource_servers import Rack, Rounds, asks, get, opened, read, site_with
from tests.serve.raw_transports import Pipe, Web, cancelled, hello, modern, request


@faked
@pytest.mark.parametrize("message", [get("p", arguments={"a": "1"}), read("x://1")])
async def test_a_servers_rounds_pass_through_without_anything_kept(message: Message) -> None:
    """U5: its state inside of ours, the answers passed on; the state differs from round to round."""
    asker = Rounds(asks("who", state="one"), asks("what", state="two"))
    async with site_with(Rack("a", asker, prompts=["p"], resources=["x://1"])) as gateway:
        web = Web(gateway)
        first = (await web.ask(message)).messages[0]["result"]
        assert first["resultType"] == "input_required" and list(first["inputRequests"]) == ["who"]
        answered = {"inputResponses": {"who": YES}, "requestState": first["requestState"]}
        again = {**message, "params": {**message["params"], **answered}}
        second = (await web.ask(again)).messages[0]["result"]
        assert list(second["inputRequests"]) == ["what"] and second["requestState"] != first["requestState"]
        again["params"] |= {"inputResponses": {"what": YES}, "requestState": second["requestState"]}
        last = (await web.ask(again)).messages[0]["result"]
        assert last["description"] == "done" and last["resultType"] == "complete"
    assert [one.get("requestState") for one in asker.seen] == [None, "one", "two"]
    assert [one.get("inputResponses") for one in asker.seen] == [None, {"who": YES}, {"what": YES}]


@faked
async def test_a_round_may_have_no_state_and_no_questions() -> None:
    """U5: a server without a state gets none back; one with nothing but a state is asked again."""
    asker = Rounds(asks("who", state=None), asks(state="only"))
    async with site_with(Rack("a", asker, prompts=["p"])) as gateway:
        web = Web(gateway)
        state = (await web.ask(get("p"))).messages[0]["result"]["requestState"]
        second = (await web.ask(get("p", requestState=state, inputResponses={"who": YES}))).messages[0][
            "result"
        ]
        assert "inputRequests" not in second
        await web.ask(get("p", requestState=second["requestState"]))
        assert [one.get("requestState") for one in asker.seen] == [None, None, "only"]
        early = await web.ask(get("p", inputResponses={"who": YES}))
        assert early.status == 200 and asker.seen[-1]["inputResponses"] == {"who": YES}


@faked
async def test_a_state_that_is_not_this_requests_is_not_taken() -> None:
    """U5, Q1 c: -32602 for another name, other arguments, another era's caller, a change, too late."""
    rack = Rack("a", lambda *_: asks("who"), prompts=["p", "q"], resources=["p"])
    async with site_with(rack, answer_s=10, ceiling_s=5) as gateway:
        web, pipe = Web(gateway), Pipe(gateway)
        state = (await web.ask(get("p"))).messages[0]["result"]["requestState"]
        wrong = [get("q", requestState=state), get("p", arguments={"a": "1"}, requestState=state)]
        wrong += [get("p", requestState=state + "-TAMPERED"), get("p", requestState="theirs")]
        read_it = modern("resources/read", {"uri": "p", "requestState": state})
        for message in (*wrong, read_it):
            done = await web.ask(message)
            error = done.messages[0]["error"]
            assert (done.status, error["code"]) == (400, -32602) and "requestState" in error["message"]
        assert (await pipe.ask(get("p", requestState=state)))["error"]["code"] == -32602
        await pipe.close()
        assert len(rack.asked) == 1
        await asyncio.sleep(16)
        late = (await web.ask(get("p", requestState=state))).messages[0]["error"]
        assert "expired" in late["message"]
        gateway.resource_servers = tuple
        gone = (await web.ask(get("p", requestState=state))).messages[0]["error"]
        assert gone["code"] == -32602


@faked
async def test_a_caller_is_not_asked_what_it_cannot_answer() -> None:
    """Q3: -32021 names what is missing."""
    async with site_with(
        Rack("a", lambda *_: asks("m", method="sampling/createMessage"), prompts=["p"])
    ) as gateway:
        done = await Web(gateway).ask(get("p", capabilities={"elicitation": {}}))
        error = done.messages[0]["error"]
        assert (done.status, error["code"]) == (400, -32021)
        assert error["data"] == {"requiredCapabilities": {"sampling": {}}}
        assert "server a asks" in error["message"]


@faked
@pytest.mark.parametrize("era", ["modern", "handshake"])
async def test_a_server_that_does_not_answer_is_given_up_at_the_ceiling(era: str) -> None:
    """C1: -32603 naming server, clock and setting; the stream is open long before, and kept alive."""
    rack = Rack("slow", resources=["x://1"])
    rack.delay_s = 1000
    async with site_with(rack, ceiling_s=40) as gateway:
        if era == "modern":
            exchange = await Web(gateway).ask(read("x://1"))
            [answer] = exchange.messages
            beats = [at for at, data in exchange.chunks if data.startswith(b":")]
        else:
            client = await opened(gateway)
            tape = client.put(request("resources/read", {"uri": "x://1"}))
            await client.done()
            answer, beats = tape.last, tape.comments
        assert now() == 40 and beats == [5, 20, 35] and rack.cancelled == 1
        assert answer["error"] == {
            "code": -32603,
            "message": "server slow did not answer resources/read within 40 s (raise ceiling_s)",
        }


@faked
@pytest.mark.parametrize("way", ["disconnect", "cancel", "pipe", "old pipe", "delete", "end of pipe"])
async def test_what_nobody_waits_for_any_more_is_cancelled(way: str) -> None:
    """X1: by a closed stream, a cancel on either era, a session's end; and nothing is answered."""
    rack = Rack("slow", resources=["x://1"])
    rack.delay_s = 1000
    async with site_with(rack) as gateway:
        web, pipe = Web(gateway), Pipe(gateway)
        old = request("resources/read", {"uri": "x://1"}, 7)
        if "pipe" in way:
            await pipe.ask(hello() if way == "old pipe" else modern("server/discover"))
            pipe.put(old if way == "old pipe" else read("x://1", 7))
            await asyncio.sleep(1)
            if way != "end of pipe":
                pipe.put(cancelled(7))
        elif way == "disconnect":
            exchange = web.post(read("x://1", 7))
            await asyncio.sleep(1)
            exchange.leave()
            await exchange.done()
            assert not exchange.status
        else:
            await web.shake_hands()
            exchange = web.post(old)
            await asyncio.sleep(1)
            await (web.ask(cancelled(7)) if way == "cancel" else web.open("DELETE").done())
            await exchange.done()
            assert b'"id":7,"error":{"code":-32800' in exchange.body
        await asyncio.sleep(1)
        await pipe.close()
        assert rack.cancelled == 1 and gateway.wakeups == []
        assert [said["id"] for said in pipe.said if said["id"] == 7] == []


@faked
async def test_an_id_is_one_request_at_a_time() -> None:
    """E4: on a session and on a pipe."""
    rack = Rack("slow", resources=["x://1"])
    rack.delay_s = 10
    async with site_with(rack) as gateway:
        client = await opened(gateway)
        client.put(request("resources/read", {"uri": "x://1"}, 7))
        await asyncio.sleep(1)
        with pytest.raises(Fault, match="still runs"):
            await client.ask(request("resources/read", {"uri": "x://1"}, 7))
        with pytest.raises(Fault, match="still runs"):
            await client.ask(request("tools/call", {"name": "tool"}, 7))
        await client.done()
        assert (await client.ask(request("resources/read", {"uri": "x://1"}, 7))).result == {"from": "slow"}


@faked
async def test_a_gateway_that_closes_ends_what_is_looked_up() -> None:
    """X1: with an error, not by silence."""
    rack = Rack("slow", resources=["x://1"])
    rack.delay_s = 1000
    async with site_with(rack) as gateway:
        exchange = Web(gateway).post(read("x://1"))
        await asyncio.sleep(1)
        gateway.engine.closing = "the gateway is shutting down"
        for wakeup in gateway.wakeups:
            wakeup.wake()
        await exchange.done()
        assert exchange.messages[0]["error"]["message"] == "the gateway is shutting down"
        assert rack.cancelled == 1
