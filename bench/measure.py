"""The six measures of one server, on one transport, in one era."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from bench.flight import Flight, Plan
from bench.launch import Server
from bench.wire import BenchError, Wire, text_of

MANY = 50
WAIT_S = 25.0
"""How long a waiting call sleeps: longer than the measuring, shorter than afoot's idle limit."""
SETTLE_S = 1.0


class Client(Protocol):
    """The interface of both load clients."""

    wire: Wire

    async def open(self) -> None: ...
    async def fly(self, plan: Plan) -> Flight: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work of one round."""

    seconds: float = 1.5
    reports: int = 5_000
    waiting: int = 1_000
    rounds: int = 3
    most: int = 400_000
    """No flight asks for more notifications or calls than this."""


QUICK = Size(seconds=0.4, reports=1_000, waiting=200, rounds=1, most=100_000)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one round."""

    value: float
    share: float | None = None
    """The delivered part of the reports, if it is measured."""
    amount: int = 0
    """How many calls or notifications the server handled for it."""


async def warm(client: Client) -> None:
    """Make the first, slow calls before anything is measured."""
    await client.fly(Plan(client.wire.call("noop", {}, token=False), 5, 100, seconds=2.0))
    await client.fly(Plan(client.wire.call("ticks", {"n": 200}, token=True), 1, 1))


async def notes_one(client: Client, size: Size) -> Figure:
    """Notifications per second of one call."""
    return await _notes(client, size, 1)


async def notes_many(client: Client, size: Size) -> Figure:
    """Notifications per second of fifty calls at once."""
    return await _notes(client, size, MANY)


async def calls_one(client: Client, size: Size) -> Figure:
    """Calls per second, one at a time."""
    return await _calls(client, size, 1)


async def calls_many(client: Client, size: Size) -> Figure:
    """Calls per second with fifty in flight."""
    return await _calls(client, size, MANY)


async def cost(client: Client, size: Size) -> Figure:
    """Microseconds of the tool's time per report."""
    plan = Plan(client.wire.call("cost", {"n": size.reports}, token=True), 1, 1)
    return Figure(float(text_of((await client.fly(plan)).last)) * 1e6)


async def memory(client: Client, size: Size, server: Server) -> Figure:
    """Kilobytes of server memory per waiting call; it needs a fresh server and leaves it full."""
    short = client.wire.call("wait", {"seconds": 0.01}, token=True)
    await client.fly(Plan(short, MANY, MANY * 2))
    before = server.rss()
    long = client.wire.call("wait", {"seconds": WAIT_S}, token=True)
    flight = await client.fly(Plan(long, size.waiting, size.waiting, until_notes=size.waiting))
    await asyncio.sleep(SETTLE_S)
    if flight.notes < size.waiting or flight.answered:
        raise BenchError(f"{flight.answered} of {size.waiting} calls did not wait")
    return Figure((server.rss() - before) / size.waiting / 1024)


async def _notes(client: Client, size: Size, calls: int) -> Figure:
    probe = await _ticks(client, 2_000 // calls, calls)
    each = int(probe.notes / probe.elapsed_s * size.seconds / calls)
    each = max(100, min(each, size.most // calls))
    flight = await _ticks(client, each, calls)
    share = flight.notes / (each * calls)
    return Figure(flight.notes / flight.elapsed_s, share, probe.notes + flight.notes)


async def _ticks(client: Client, each: int, calls: int) -> Flight:
    flight = await client.fly(Plan(client.wire.call("ticks", {"n": each}, token=True), calls, calls))
    if not flight.notes:
        raise BenchError("not one notification was delivered")
    return flight


async def _calls(client: Client, size: Size, at_once: int) -> Figure:
    template = client.wire.call("noop", {}, token=False)
    flight = await client.fly(Plan(template, at_once, size.most, seconds=size.seconds))
    return Figure(flight.answered / flight.elapsed_s, amount=flight.answered)


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of the table; `run` is None for memory, which needs its own server."""

    name: str
    label: str
    unit: str
    run: Callable[[Client, Size], Awaitable[Figure]] | None
    target: float | None = None
    """On HTTP: the least ratio to `mcp`, or the most microseconds."""
    lower_is_better: bool = False


MEASURES = (
    Measure("notes1", "notifications, one call", "/s", notes_one, 8.0),
    Measure("notes50", "notifications, fifty calls", "/s", notes_many, 8.0),
    Measure("calls1", "calls, one at a time", "/s", calls_one, 2.0),
    Measure("calls50", "calls, fifty in flight", "/s", calls_many, 4.0),
    Measure("cost", "cost of one report", "µs", cost, 5.0, lower_is_better=True),
    Measure("memory", "memory of a waiting call", "KB", None, lower_is_better=True),
)
