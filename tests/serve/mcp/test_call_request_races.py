"""What comes at the wrong moment: cancels before a call is open, ids used twice, tools that are off."""

import asyncio
import time
from typing import Any

import pytest
from msgspec import Raw

from afoot.config.settings import Settings, ToolSettings
from afoot.core.facts import Result
from afoot.core.ports import Batch, CallRow, Run
from afoot.engine.catalog import EffectiveSettings
from afoot.providers.upstream.reachable_clients import ReachableClients
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.era_2025 import Era2025
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, Journalist, offering
from tests.serve.fake_gateway import KEY, TOKEN, Client, Message, asks, faked, nap, only, site_of
from tests.serve.mcp.test_stdio import ERAS, calling, ends, piped
from tests.serve.raw_transports import Web, call, cancelled, hello, older

OPENING_S = 5.0
CALL = "dev.afoot/call"


class Opening:
    """Servers of which one is still being opened."""

    def __init__(self) -> None:
        self.clients = ReachableClients()

    def tell_roots_changed(self, caller: str) -> None:
        pass

    async def wait_until_opened(self, timeout_s: float) -> None:
        await asyncio.sleep(min(timeout_s, OPENING_S))

    def list(self) -> list[Any]:
        return []


def waits(gateway: GatewayState) -> GatewayState:
    """The site with a server that is still being opened: names that nobody knows wait for it."""
    gateway.servers = Opening()  # type: ignore[assignment]
    return gateway


def named(message: Message, name: str = "bench/tool") -> Message:
    """The same call under another name."""
    message["params"]["name"] = name
    return message


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_a_cancel_that_overtakes_its_call_is_heeded(era: str) -> None:
    """X1: while a server is opened for the name, the call is not there yet; it must not come afterwards."""
    async with site_of(nap) as gateway:
        pipe = await piped(gateway, era)
        waits(gateway)
        pipe.put(named(calling(era, 1)), cancelled(1))
        await asyncio.sleep(OPENING_S + 1)
        assert gateway.engine.calls() == [] and ends(pipe, 1) == []
        assert await gateway.engine.journal.unfinished() == [] and gateway.engine.journal.position == 0
        pipe.put(named(calling(era, 1)))  # the id is free again
        await asyncio.sleep(OPENING_S + 1)
        assert only(gateway).call.started is not None
        await pipe.close()


@faked
async def test_a_cancel_that_overtakes_its_call_over_http_is_heeded() -> None:
    """X1, X3: the same with the handshake era's POSTs; they wait for a response, so they get an error."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        await web.shake_hands()
        waits(gateway)
        post = web.post(named(older(1)))
        await asyncio.sleep(1)
        await web.ask(cancelled(1))
        await post.done()
        assert b'"id":1,"error":{"code":-32800' in post.body and gateway.engine.journal.position == 0


@faked
async def test_a_caller_that_leaves_before_its_call_is_open_has_none() -> None:
    """X1: a closed stream of 2026-07-28 is a cancel, also while a server is opened for the name."""
    async with site_of(nap) as gateway:
        web = Web(waits(gateway))
        gone, stays = web.post(named(call(1))), web.post(named(call(2)))
        await asyncio.sleep(1)
        gone.leave()
        await asyncio.sleep(OPENING_S)
        live = only(gateway)
        stays.leave()  # and later it is still noticed
        await asyncio.sleep(1)
        assert live.call.end is not None and live.call.end.outcome == "cancelled"
        await asyncio.gather(gone.task, stays.task)


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_an_id_that_is_used_twice_before_the_call_is_open_is_refused(era: str) -> None:
    """T4: one request, one answer; the second one of the same id is told that the first still runs."""
    async with site_of(nap) as gateway:
        pipe = await piped(gateway, era)
        waits(gateway)
        pipe.put(named(calling(era, 1)), named(calling(era, 1)))
        await asyncio.sleep(OPENING_S + 20)
        refused, answered = ends(pipe, 1)
        assert "still runs" in refused["error"]["message"] and "result" in answered
        await pipe.close()


def off() -> dict[str, Any]:
    """A tool that is switched off."""
    return {"terms": EffectiveSettings({"tool": ToolSettings(approval="off")})}


@faked
async def test_a_tool_that_is_off_is_refused_over_http_with_the_id_of_the_request() -> None:
    """A1: invisible and refused; the client knows which of its requests that was."""
    async with site_of(nap, **off()) as gateway:
        web = Web(gateway)
        modern = (await web.ask(call(7))).messages[0]
        assert modern["id"] == 7 and "switched off" in modern["error"]["message"]
        await web.shake_hands()
        session = await web.ask(older(8))
        assert session.messages[0]["id"] == 8 and "switched off" in session.messages[0]["error"]["message"]
        assert gateway.engine.journal.position == 0


@faked
@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_that_is_off_is_refused_on_a_pipe(era: str, caplog: pytest.LogCaptureFixture) -> None:
    """A1: that is no failure of the gateway's, and nothing for its log."""
    async with site_of(nap, **off()) as gateway:
        pipe = await piped(gateway, era)
        pipe.put(calling(era, 1))
        await asyncio.sleep(1)
        [refused] = ends(pipe, 1)
        assert "switched off" in refused["error"]["message"] and not caplog.records
        await pipe.close()


@faked
async def test_who_waits_for_a_call_that_just_asked_is_asked_once() -> None:
    """Q1, H5: the question is in no history yet when the wait begins; it is put when it is, and only once."""

    go = asyncio.Event()

    async def late(run: Run) -> str:
        await go.wait()
        return await asks(run)

    journal = Journalist()
    async with site_of(late, settings={"caller_limit_s": 20.0}, journal=journal) as gateway:
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        await client.ask(older(1))
        live = only(gateway)
        journal.delay_s = 1.0
        go.set()
        await asyncio.sleep(0.5)
        assert live.call.open and live.recorded < live.call.seq, "not yet on record"
        wait = older(2)
        wait["params"] |= {"name": "afoot_wait", "arguments": {"call": live.call.id}}
        tape = client.put(wait, streaming=True)
        await asyncio.sleep(3)
        [(_, put)] = tape.of("elicitation/create")
        client.answer(put, action="accept", content={})
        await client.done()
        assert "accept" in tape.result["content"][0]["text"]


@faked
async def test_a_process_is_not_told_of_the_calls_of_one_before_it() -> None:
    """S3, H5: the caller on a pipe is its process; another one's calls are not listed for it."""
    journal, moment = MemoryJournal(), time.time()
    before = CallRow("c1", "tool", "bench", "stdio", moment - 100, "finished", "ok", moment - 1)
    journal.write(Batch(rows={"c1": before}))
    async with site_of(nap, journal=journal) as gateway:
        pipe = await piped(gateway, "handshake")
        pipe.put(calling("handshake", 1))
        await asyncio.sleep(11)
        listed = await pipe.ask(named(calling("handshake", 2), "afoot_calls"))
        assert listed["result"]["structuredContent"]["calls"] == [ends(pipe, 1)[0]["result"]["_meta"][CALL]]
        await pipe.close()


@faked
async def test_what_needs_a_yes_is_refused_at_once_if_its_caller_has_gone() -> None:
    """A1, X3: the call runs on without its stream, but nobody could see the question of a call below it."""

    async def nests(run: Run) -> Result:
        await asyncio.sleep(5)
        return await run.call("wipe", Raw(b"{}"), 1.0)

    bench = Bench()
    bench.add(nests)
    bench.add(nap, "wipe", destructive=True)
    async with offering(bench) as engine:
        gateway = GatewayState(engine, Settings(), "1", KEY, TOKEN)
        web = Web(gateway)
        await web.shake_hands(elicitation={})
        post = web.post(older(1))
        await asyncio.sleep(1)
        live = only(gateway)
        post.leave()
        await asyncio.sleep(5)
        assert live.call.end is not None and live.call.end.failure is not None
        assert "nobody can give it" in live.call.end.failure.message


@faked
async def test_an_answer_that_nobody_can_digest_ends_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """E3: whatever goes wrong with a message that waits for no answer, the others are served on."""

    def broken(*_: object) -> None:
        raise ValueError("a bug")

    async with site_of(nap) as gateway:
        pipe = await piped(gateway, "handshake")
        monkeypatch.setattr(Era2025, "take_response", broken)
        pipe.put({"jsonrpc": "2.0", "id": "afoot-1", "result": {}}, calling("handshake", 1))
        await asyncio.sleep(11)
        assert "result" in ends(pipe, 1)[0]
        await pipe.close()
