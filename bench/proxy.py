"""`python -m bench.proxy` measures what afoot and FastMCP's proxy add in front of the same FastMCP server.

The added latency of a call is its time through the gateway minus its time direct to the server, both in
one run.
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from bench.client_http import HttpClient
from bench.client_stdio import StdioClient
from bench.flight import Plan
from bench.launch import SERVERS, Server, free_port, peers_python, raise_limits, started
from bench.measure import Client
from bench.table import align
from bench.wire import MODERN, BenchError

SUBJECTS = ("direct", "fastmcp", "afoot")
ROUNDS = 3
CALLS, SECONDS = 400, 3.0
REPORTS = 2_000
MOST_ADDED, LEAST_NOTES = 0.1, 3.0  # the targets, as ratios to FastMCP's proxy


@dataclass(slots=True)
class Figures:
    """The rounds of one route to the server."""

    call_ms: list[float] = field(default_factory=list)
    notes: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """The peers' Python, a folder, and the servers' cores."""

    python: str
    folder: Path
    core: set[int]

    def room(self) -> Path:
        """A folder for one server."""
        return Path(tempfile.mkdtemp(dir=self.folder))


async def main() -> int:
    """Measure both kinds of upstream and print the table; exits with 1 if a target is missed."""
    raise_limits()
    every = os.sched_getaffinity(0)  # three processes in a chain: the system chooses their cores
    lines = [["", *SUBJECTS, "afoot / fastmcp", "target"]]
    met = True
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        place = Place(peers_python(), Path(folder), every)
        for transport in ("stdio", "http"):
            print(f"bench: upstream on {transport}", file=sys.stderr, flush=True)
            rows, kept = told(transport, await measure(place, transport))
            lines += rows
            met = met and kept
    print(align(lines))
    return 0 if met else 1


async def measure(place: Place, transport: str) -> dict[str, Figures]:
    """All rounds of all routes, in turns, so that noise affects all of them."""
    found = {subject: Figures() for subject in SUBJECTS}
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, Client] = {}
        for subject in SUBJECTS:
            clients[subject] = await stack.enter_async_context(opened(subject, place, transport))
        for _ in range(ROUNDS):
            for subject, client in clients.items():
                found[subject].call_ms.append(await call_ms(client))
                found[subject].notes.append(await notes(client))
    return found


@contextlib.asynccontextmanager
async def opened(subject: str, place: Place, transport: str) -> AsyncIterator[Client]:
    """A client of the server, direct or through a gateway; each has its own server."""
    with contextlib.ExitStack() as stack:
        upstream = [place.python, str(SERVERS / "fastmcp_server.py"), "stdio"]
        if transport == "http":
            port = free_port()
            line = [place.python, str(SERVERS / "fastmcp_server.py"), "http", str(port)]
            stack.enter_context(started("fastmcp", line, port, place.room(), place.core))
            upstream = [f"http://127.0.0.1:{port}/mcp"]
        client: Client
        if subject == "direct" and transport == "http":
            client = HttpClient(MODERN, int(upstream[0].split(":")[2].partition("/")[0]))
        else:
            server = stack.enter_context(way(subject, upstream, place))
            if server.port is None:
                client = StdioClient(MODERN, server.child)
            else:
                client = HttpClient(MODERN, server.port)
        await client.open()
        await client.fly(Plan(client.wire.call("noop", {}, token=False), 1, 20))
        await client.fly(Plan(client.wire.call("ticks", {"n": 100}, token=True), 1, 1))
        try:
            yield client
        finally:
            await client.close()


def way(subject: str, upstream: list[str], place: Place) -> contextlib.AbstractContextManager[Server]:
    """The server itself on stdio, or a gateway on HTTP in front of it."""
    folder = place.room()
    if subject == "direct":
        return started(subject, upstream, None, folder, place.core)
    port = free_port()
    if subject == "fastmcp":
        line = [place.python, str(SERVERS / "fastmcp_proxy.py"), str(port), *upstream]
        return started(subject, line, port, folder, place.core)
    reached = {"url": upstream[0]} if len(upstream) == 1 else {"command": upstream[0], "args": upstream[1:]}
    config = folder / "afoot.toml"
    config.write_text("[servers.up]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in reached.items()))
    line = [sys.executable, "-m", "afoot", "serve", "--config", str(config), "--http", f"127.0.0.1:{port}"]
    return started(subject, [*line, "--store", str(folder / "store.db")], port, folder, place.core)


async def call_ms(client: Client) -> float:
    """Milliseconds per call, one at a time."""
    plan = Plan(client.wire.call("noop", {}, token=False), 1, CALLS, seconds=SECONDS)
    flight = await client.fly(plan)
    return flight.elapsed_s / flight.answered * 1000


async def notes(client: Client) -> float:
    """Notifications per second of one call."""
    flight = await client.fly(Plan(client.wire.call("ticks", {"n": REPORTS}, token=True), 1, 1))
    if not flight.notes:
        raise BenchError("not one notification was delivered")
    return flight.notes / flight.elapsed_s


def told(transport: str, found: dict[str, Figures]) -> tuple[list[list[str]], bool]:
    """The rows of one kind of upstream, and whether both targets are met."""
    ms = {subject: statistics.median(figures.call_ms) for subject, figures in found.items()}
    rate = {subject: statistics.median(figures.notes) for subject, figures in found.items()}
    added = {subject: ms[subject] - ms["direct"] for subject in ("fastmcp", "afoot")}
    less, more = added["afoot"] / added["fastmcp"], rate["afoot"] / rate["fastmcp"]
    rows = [
        [f"upstream on {transport}"],
        ["  a call, ms", *[f"{ms[subject]:.2f}" for subject in SUBJECTS]],
        ["  added to a call, ms", "", *[f"{added[one]:.2f}" for one in ("fastmcp", "afoot")], f"{less:.3f}",
         f"<= {MOST_ADDED:g}  {'met' if less <= MOST_ADDED else 'MISSED'}"],
        ["  notifications / s", *[f"{rate[subject]:,.0f}" for subject in SUBJECTS], f"{more:.2f}",
         f">= {LEAST_NOTES:g}  {'met' if more >= LEAST_NOTES else 'MISSED'}"],
    ]  # fmt: skip
    return rows, less <= MOST_ADDED and more >= LEAST_NOTES


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
