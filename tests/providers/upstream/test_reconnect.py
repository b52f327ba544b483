"""Lost connections: after which waits a server is started again, and when it has failed."""

import asyncio
from collections.abc import Mapping

import pytest
from msgspec import Raw

from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.connection import McpConnection
from afoot.providers.upstream.reconnect import STABLE_S, Reconnecting
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import OnLost, PendingRequest, Receive, Request
from afoot.wire.client import outgoing
from afoot.wire.client.outgoing import Dialect

HAS_FAKE_CLOCK = True


class Line:
    """A way to a server that answers every request at once, with nothing."""

    version = ""
    has_streams = False
    has_session = True
    pid: int | None = None

    async def open(self, receive: Receive, lost: OnLost) -> None: ...
    async def tell(self, body: bytes) -> None: ...
    def send(self, body: bytes) -> None: ...
    def listen(self) -> None: ...
    async def close(self) -> None: ...

    def __init__(self) -> None:
        self.connection: McpConnection | None = None

    async def send_request(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        assert self.connection is not None
        self.connection.receive(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % pending.id)


class Starts:
    """A server that can be started, and the times at which it was."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.is_away = False

    async def connect(self) -> McpConnection:
        now = asyncio.get_running_loop().time()
        self.times.append(now)
        if self.is_away:
            raise RunnerDied("server files cannot be reached", began=False)
        line = Line()
        dialect = Dialect(outgoing.VERSION_2025, Raw(b"{}"))
        made = line.connection = McpConnection(line, dialect, ServerLog("files"), lambda *_: None)
        made.greeted_at = now
        return made

    def waits(self) -> list[float]:
        """The seconds between two starts."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return [round(after - before, 3) for before, after in pairs]


def reconnecting(starts: Starts, is_remote: bool = False) -> Reconnecting:
    """A connection that is opened when it is needed."""
    return Reconnecting("files", starts.connect, 1000.0, 3, is_remote)


async def test_a_server_that_dies_at_once_is_started_after_waits_that_double_and_fails() -> None:
    """U4: it lists its tools each time, and dies of its first call; after three in a row it is failed."""
    starts = Starts()
    server, states = reconnecting(starts), list[str]()
    for _ in range(9):
        connection = await server.up()
        await connection.request(Request("tools/list"))
        connection.mark_lost("server files was killed")
        states.append(server.state)
    assert starts.waits() == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert states == ["idle", "idle", *7 * ["failed"]] and "was killed" in server.error


async def test_starts_are_counted_and_a_lost_connection_is_up_since_no_time() -> None:
    """U4, V1: a start that failed is none."""
    starts = Starts()
    server = reconnecting(starts)
    assert (server.starts, server.up_since) == (0, None)
    connection = await server.up()
    assert server.starts == 1 and server.up_since is not None
    connection.mark_lost("server files was killed")
    assert (server.starts, server.up_since) == (1, None)
    starts.is_away = True
    with pytest.raises(ToolError):
        await server.up()
    starts.is_away = False
    await server.up()
    assert server.starts == 2 and server.up_since is not None
    await server.close()
    assert server.up_since is None
    await server.close()


@pytest.mark.parametrize("proof", ["an answer to a call", "a long life"])
async def test_a_server_that_has_worked_is_started_at_once(proof: str) -> None:
    """U4: its death is a new one, whatever came before."""
    starts = Starts()
    server = reconnecting(starts)
    for _ in range(2):
        (await server.up()).mark_lost("server files was killed")
    connection = await server.up()
    if proof == "a long life":
        await asyncio.sleep(STABLE_S)
    else:
        await connection.request(Request("tools/call", {"name": "x"}))
    connection.mark_lost("server files was killed")
    assert server.state == "idle"
    died = asyncio.get_running_loop().time()
    await server.up()
    assert starts.times[-1] == died
    await server.close()


async def test_a_server_elsewhere_that_is_away_says_when_it_is_tried_again() -> None:
    """U4: it may come back by itself; one that is started here has failed by itself, too."""
    for is_remote in (True, False):
        starts = Starts()
        starts.is_away = True
        server = reconnecting(starts, is_remote)
        with pytest.raises(ToolError, match="cannot be reached") as caught:
            await server.up()
        assert server.state == "failed" and starts.waits() == [0.5, 1.0]
        assert caught.value.retry_after == (2.0 if is_remote else None)
        await server.close()
