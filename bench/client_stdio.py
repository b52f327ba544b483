"""`StdioClient` is the load client on stdio: it counts lines on the pipes of a child."""

import asyncio
import subprocess

from bench.flight import Flight, Plan
from bench.wire import HANDSHAKE, INITIALIZE, NOTE, BenchError, Wire


class Reader(asyncio.Protocol):
    """The child's output: every line is a notification or an answer."""

    __slots__ = ("flight", "rest", "writer")

    def __init__(self) -> None:
        self.flight: Flight | None = None
        self.writer: asyncio.WriteTransport | None = None
        self.rest = b""

    def data_received(self, data: bytes) -> None:
        """Count whole lines; only lines that are no notifications are parsed."""
        data = self.rest + data
        cut = data.rfind(b"\n") + 1
        self.rest = data[cut:]
        flight = self.flight
        if not cut or flight is None:
            return
        data = data[:cut]
        notes = data.count(NOTE)
        if notes:
            flight.note(notes)
        if data.count(b"\n") == notes or self.writer is None:
            return
        requests = [flight.answer(line) for line in data.splitlines() if b'"id"' in line and NOTE not in line]
        self.writer.write(b"".join(requests))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the flight: the child is gone."""
        if self.flight is not None:
            self.flight.fail(f"the server closed its output: {exc}")


class StdioClient:
    """A client of one child, in one era."""

    def __init__(self, era: str, child: "subprocess.Popen[bytes]") -> None:
        self.wire = Wire(era)
        self.child = child
        self.reader = Reader()
        self.transports: list[asyncio.BaseTransport] = []

    async def open(self) -> None:
        """Open the child's pipes, and initialize a session in the era that has one."""
        loop = asyncio.get_running_loop()
        reading, _ = await loop.connect_read_pipe(lambda: self.reader, self.child.stdout)
        writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self.child.stdin)
        self.transports = [reading, writing]
        self.reader.writer = writing
        if self.wire.era != HANDSHAKE:
            return
        await self.fly(Plan(self.wire.request("initialize", INITIALIZE), 1, 1))
        writing.write(self.wire.request("notifications/initialized", {}, notice=True).fill(0))

    async def fly(self, plan: Plan) -> Flight:
        """Carry out a plan and return the count."""
        if self.reader.writer is None:
            raise BenchError("the pipes are not open")
        flight = Flight(plan, self.wire.numbers, asyncio.get_running_loop().create_future())
        self.reader.flight = flight
        for _ in range(plan.at_once):
            self.reader.writer.write(flight.next())
        await flight.wait()
        return flight

    async def close(self) -> None:
        """Close both pipes without the flight noticing; the child ends by itself or is killed."""
        self.reader.flight = None
        for transport in self.transports:
            transport.close()
