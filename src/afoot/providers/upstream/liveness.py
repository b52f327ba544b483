"""`LivenessProbe` pings a server that is silent while calls wait, and tells them if no answer comes.

A stopped process keeps its pipes and its port: nothing but a ping without an answer shows it (U4). A ping is
no sign of life of a tool, and touches no clock (C5). It ends nothing either: a server that works on something
long may not read its messages, so the calls only say what is seen.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Raw

from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import Request, RequestListener, Transport
from afoot.wire.client.outgoing import Dialect

PING_S: Final = 10.0  # of silence on a connection, before it is pinged
PONG_S: Final = 5.0  # to answer


class ProbedConnection(Protocol):
    """The parts of a connection that a probe needs."""

    @property
    def transport(self) -> Transport: ...
    @property
    def dialect(self) -> Dialect: ...
    @property
    def server_log(self) -> ServerLog: ...
    @property
    def lost(self) -> str | None: ...
    @property
    def received(self) -> int:
        """The number of messages that came."""
        ...

    def listeners(self) -> list[RequestListener]:
        """The makers of the requests that wait for an answer."""
        ...

    async def request(self, request: Request) -> Raw: ...


class LivenessProbe:
    """Pings one connection. `spawn` runs a task that ends with the connection."""

    def __init__(
        self,
        connection: ProbedConnection,
        spawn: Callable[[Any], "asyncio.Task[Any]"],
        ping_s: float = PING_S,
        pong_s: float = PONG_S,
    ) -> None:
        self._connection = connection
        self._spawn = spawn
        self._ping_s = ping_s
        self._pong_s = pong_s
        self._received = 0  # as the timer was set, or as the ping was sent
        self._is_watching = False
        self._hindrance = ""  # as it was told

    def watch(self) -> None:
        """Watch the connection as long as requests wait. One timer serves all of them, however many come."""
        if not self._is_watching:
            self._is_watching = True
            self._set_timer()

    def _set_timer(self) -> None:
        self._received = self._connection.received
        asyncio.get_running_loop().call_later(self._ping_s, self._on_timer)

    def _on_timer(self) -> None:
        connection = self._connection
        if connection.lost is not None or not connection.listeners():
            self._is_watching = False
        elif connection.received != self._received:
            self._set_timer()
        else:
            self._spawn(self._ping())

    async def _ping(self) -> None:
        """Send one ping, and say so while nothing at all comes; it stays open until it is answered."""
        connection = self._connection
        # 2026-07-28 has no ping; every server of it answers this.
        method = "server/discover" if connection.dialect.is_modern else "ping"
        answer = asyncio.ensure_future(connection.request(Request(method)))
        try:
            while not answer.done() and connection.lost is None:
                await asyncio.wait({answer}, timeout=self._pong_s)
                if connection.received == self._received and not answer.done():
                    self._tell(*_describe(connection.server_log.server, connection.transport.pid))
                else:
                    self._received = connection.received
                    self._tell("", "")
        finally:
            answer.cancel()
            answer.add_done_callback(_retrieve)
        self._set_timer()

    def _tell(self, by: str, hint: str) -> None:
        """Tell all calls that wait; also those that came since."""
        if by and by != self._hindrance:
            self._connection.server_log.note(f"{by}; {hint}")
        if by or self._hindrance:
            for listener in self._connection.listeners():
                listener.hindered(by, hint)
        self._hindrance = by


def _retrieve(answer: "asyncio.Future[Raw]") -> None:
    """Drop the answer to a ping: an error is one, too, and others tell of a lost connection."""
    if not answer.cancelled():
        answer.exception()


def _describe(server: str, pid: int | None) -> tuple[str, str]:
    """The state of a silent server, and the advice for whoever waits for it."""
    if pid is not None and _is_stopped(pid):
        return f"server {server} is stopped", f"let its process {pid} go on: kill -CONT {pid}"
    return f"server {server} does not answer a ping", "it hangs, or is busy; its log may say more"


def _is_stopped(pid: int) -> bool:
    """Whether a signal has stopped a process; only Linux says it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False
