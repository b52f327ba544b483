"""`HttpClient` is the load client on HTTP: it finds the end of an answer and counts notifications.

Chunk framing is not removed. It is enough that no server splits an event into two chunks: a split would
show as a missing notification or as an answer that does not parse.
"""

import asyncio
import re
from typing import cast

from bench.flight import Flight, Plan
from bench.wire import HANDSHAKE, INITIALIZE, NOTE, BenchError, Wire

END = b"\r\n0\r\n\r\n"
KEEP = 16_384
"""Bytes of a stream that are kept to find the answer in: the bench's tools answer in less."""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SESSION = re.compile(rb"\r\nmcp-session-id: *([^\r]+)", re.IGNORECASE)
DIALS = 100
"""Connections opened at a time, well under a server's backlog."""


class Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request in the air."""

    __slots__ = ("body", "flight", "head", "left", "transport")

    def __init__(self) -> None:
        self.flight: Flight | None = None
        self.transport: asyncio.Transport | None = None
        self.head = b""
        self.body: bytes | None = None
        self.left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the flight if it still waits for this connection's answer."""
        if self.flight is not None:
            self.flight.fail(f"the server closed the connection: {exc}")

    def send(self, request: bytes) -> None:
        """Send a request, if there is one."""
        if request and self.transport is not None:
            self.head, self.body = b"", None
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Read the head once, then the body, which is chunked or has a length."""
        if self.body is None:
            self.head += data
            cut = self.head.find(b"\r\n\r\n")
            if cut < 0:
                return
            data, self.head, self.body = self.head[cut + 4 :], self.head[:cut], b""
            found = LENGTH.search(self.head)
            self.left = int(found[1]) if found else -1
        if self.left >= 0:
            self._plain(data)
        else:
            self._chunked(data)

    def _plain(self, data: bytes) -> None:
        assert self.body is not None
        self.body += data
        if len(self.body) >= self.left:
            self._finish(self.body)

    def _chunked(self, data: bytes) -> None:
        assert self.body is not None and self.flight is not None
        fresh = self.body[1 - len(NOTE) :] + data
        count = fresh.count(NOTE)
        if count:
            self.flight.note(count)
        self.body = data[-KEEP:] if len(data) >= KEEP else (self.body + data)[-KEEP:]
        if self.body.endswith(END) or self.body == END[2:]:
            self._finish(event(self.body))

    def _finish(self, body: bytes) -> None:
        assert self.flight is not None
        if not self.head.startswith(b"HTTP/1.1 20"):
            self.flight.fail(f"{self.head[:60]!r} {body[:300]!r}")
            return
        self.send(self.flight.answer(body))


class HttpClient:
    """A client of one server on loopback, in one era."""

    def __init__(self, era: str, port: int) -> None:
        self.wire = Wire(era, port)
        self.port = port
        self.held: list[Connection] = []

    async def open(self) -> None:
        """Initialize a session, in the era that has one."""
        if self.wire.era != HANDSHAKE:
            return
        connection = await self._dial()
        opened = await self._fly(Plan(self.wire.request("initialize", INITIALIZE), 1, 1), [connection])
        assert opened.answered == 1
        found = SESSION.search(connection.head)
        self.wire.session = found[1].decode() if found else None
        notice = self.wire.request("notifications/initialized", {}, notice=True)
        await self._fly(Plan(notice, 1, 1), [connection])
        hang_up([connection])

    async def fly(self, plan: Plan) -> Flight:
        """Carry out a plan on fresh connections (servers close idle ones) and return the count."""
        connections: list[Connection] = []
        try:
            for start in range(0, plan.at_once, DIALS):
                dials = range(start, min(start + DIALS, plan.at_once))
                connections += await asyncio.gather(*[self._dial() for _ in dials])
            return await self._fly(plan, connections)
        finally:
            if plan.until_notes is None:
                hang_up(connections)
            else:
                self.held += connections

    async def close(self) -> None:
        """Close the connections of calls that a flight left waiting."""
        hang_up(self.held)

    async def _dial(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            return (await loop.create_connection(Connection, "127.0.0.1", self.port))[1]
        except OSError as error:
            raise BenchError(f"no connection: {error}") from error

    async def _fly(self, plan: Plan, connections: list[Connection]) -> Flight:
        flight = Flight(plan, self.wire.numbers, asyncio.get_running_loop().create_future())
        for connection in connections:
            connection.flight = flight
            connection.send(flight.next())
        await flight.wait()
        return flight


def hang_up(connections: list[Connection]) -> None:
    """Close connections without their flight noticing."""
    for connection in connections:
        connection.flight = None
        if connection.transport is not None:
            connection.transport.close()


def event(body: bytes) -> bytes:
    """Return the data of the last event in a stream."""
    start = body.rfind(b"data:") + 5
    end = body.find(b"\n", start)
    return body[start:end]
