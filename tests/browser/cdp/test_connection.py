"""The DevTools protocol over a pipe: answers find their commands, events keep their order."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from afoot.providers.browser.cdp import connection as module
from afoot.providers.browser.cdp.connection import CdpConnection, CdpMessage, CommandError, PipeTransport
from tests.providers.fake_run import until


class Peer:
    """The other end of both pipes: a browser that says what a test wants."""

    def __init__(self, wire: PipeTransport) -> None:
        self.wire, self.said = wire, wire.messages()
        self.heard: list[CdpMessage] = []

    async def hear(self) -> dict[str, object]:
        """The next command."""
        async with asyncio.timeout(5):
            return msgspec.json.decode(await anext(self.said), type=dict[str, object])

    async def say(self, text: str) -> None:
        """Send any text."""
        await self.wire.send(text.encode())


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[CdpConnection, Peer]]:
    """A connection, and who stands at its other end."""
    down, up = os.pipe(), os.pipe()
    peer = Peer(await PipeTransport.open(down[0], up[1]))
    connection = CdpConnection(await PipeTransport.open(up[0], down[1]), peer.heard.append)
    running = asyncio.create_task(connection.run())
    try:
        yield connection, peer
    finally:
        running.cancel()
        await asyncio.wait([running])
        await peer.wire.close()


async def test_answers_find_their_commands_in_any_order() -> None:
    """B5: two commands open, answered the other way round."""
    async with connected() as (connection, peer):
        first = asyncio.create_task(connection.call("A.one", {"x": 1}, "s"))
        second = asyncio.create_task(connection.call("A.two"))
        one, two = await peer.hear(), await peer.hear()
        assert (one["method"], one["sessionId"], one["params"]) == ("A.one", "s", {"x": 1})
        await peer.say(f'{{"id": {two["id"]}, "result": {{"n": 2}}}}')
        await peer.say(f'{{"id": {one["id"]}, "result": {{"n": 1}}}}')
        assert (await first, await second) == ({"n": 1}, {"n": 2})


async def test_a_refused_command_raises_with_the_browser_s_words() -> None:
    """B5: what the browser says is passed on."""
    async with connected() as (connection, peer):
        asked = asyncio.create_task(connection.call("A.one"))
        number = (await peer.hear())["id"]
        await peer.say(f'{{"id": {number}, "error": {{"code": -32000, "message": "No such thing"}}}}')
        with pytest.raises(CommandError, match="No such thing"):
            await asked


async def test_garbage_is_counted_and_the_rest_is_heard_in_order() -> None:
    """B5: a browser may be newer than we are."""
    async with connected() as (connection, peer):
        for text in ("{", "[]", '{"method": 7}', '{"id": "x"}', '{"id": 99, "result": {}}'):
            await peer.say(text)
        for n in range(100):
            await peer.say(f'{{"method": "E.n", "params": {{"n": {n}}}, "more": true}}')
        await until(lambda: len(peer.heard) == 100)
        assert [msgspec.json.decode(event.params)["n"] for event in peer.heard] == list(range(100))
        assert connection.unreadable == 4


async def test_a_browser_that_goes_fails_what_is_open() -> None:
    """B6: at once, not at a timeout."""
    async with connected() as (connection, peer):
        asked = asyncio.create_task(connection.call("A.one"))
        await peer.hear()
        await peer.wire.close()
        with pytest.raises(ConnectionError, match="gone"):
            await asyncio.wait_for(asked, 5)
        assert connection.post("A.two") is False


async def test_a_browser_that_does_not_answer_is_not_waited_for_long() -> None:
    """C1: every wait has a limit."""
    async with connected() as (connection, _):
        with pytest.raises(TimeoutError, match=r"no answer to A\.one within 0\.05 s"):
            await connection.call("A.one", limit_s=0.05)


async def test_a_browser_that_does_not_read_fills_a_bounded_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: sending never waits, and never takes all memory."""
    monkeypatch.setattr(module, "QUEUE_BYTES", 1 << 20)
    async with connected() as (connection, peer):
        assert connection.post("A.first")
        await peer.hear()
        sent = [connection.post("A.one", {"text": "x" * 10_000}) for _ in range(200)]
        assert sent[0] and not sent[-1]
        assert sum(sent) * 10_000 <= 1 << 20


async def test_a_message_may_be_far_longer_than_a_chunk() -> None:
    """B1: a page's result may be long."""
    async with connected() as (connection, peer):
        asked = asyncio.create_task(connection.call("A.one"))
        number = (await peer.hear())["id"]
        sending = asyncio.create_task(peer.say(f'{{"id": {number}, "result": "{"x" * 3_000_000}"}}'))
        assert len(await asked) == 3_000_000
        await sending
