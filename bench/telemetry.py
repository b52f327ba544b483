"""`python -m bench.telemetry` measures the cost of telemetry for a gateway on HTTP."""

import contextlib
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import uvloop

from bench.client_http import HttpClient
from bench.flight import Plan
from bench.launch import Setup, cores, raise_limits, running
from bench.measure import Client, warm
from bench.table import align
from bench.wire import MODERN

STATES = ("off", "on")
ROUNDS, SECONDS = 5, 4.0  # spans are sent every 5 s, so a round fills more than one batch
MANY, CALLS, REPORTS = 50, 1_000_000, 5_000
VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
Rounds = dict[str, dict[str, list[float]]]


async def main() -> int:
    """Measure in turns and print the table."""
    raise_limits()
    found: Rounds = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with contextlib.AsyncExitStack() as stack:
            url = stack.enter_context(receiving())
            clients: dict[str, tuple[Client, int]] = {}
            for state, endpoint in zip(STATES, ("", url), strict=True):
                clients[state] = await stack.enter_async_context(opened(endpoint, Path(folder)))
            for _ in range(ROUNDS):
                for state, (client, pid) in clients.items():
                    for what, figure in (await one_round(client, pid)).items():
                        found.setdefault(what, {}).setdefault(state, []).append(figure)
    lines = [["", *STATES, "on / off"]]
    for what, rounds in found.items():
        off, on = (statistics.median(rounds[state]) for state in STATES)
        lines.append([what, f"{off:,.2f}", f"{on:,.2f}", f"{on / off:.2f}"])
    print(align(lines))
    return 0


async def one_round(client: Client, pid: int) -> dict[str, float]:
    """Measure concurrent calls, calls one at a time, and the reports of one call."""
    noop = client.wire.call("noop", {}, token=False)
    before = cpu_s(pid)
    many = await client.fly(Plan(noop, MANY, CALLS, seconds=SECONDS))
    spent_s = cpu_s(pid) - before
    alone = await client.fly(Plan(noop, 1, CALLS, seconds=SECONDS))
    notes = await client.fly(Plan(client.wire.call("ticks", {"n": REPORTS}, token=True), 1, 1))
    return {
        f"calls / s, {MANY} at once": many.answered / many.elapsed_s,
        "  processor time a call, us": spent_s / many.answered * 1e6,
        "a call, ms, one at a time": alone.elapsed_s / alone.answered * 1000,
        "notifications / s of one call": notes.notes / notes.elapsed_s,
    }


@contextlib.asynccontextmanager
async def opened(endpoint: str, folder: Path) -> AsyncIterator[tuple[Client, int]]:
    """A client of a gateway that sends telemetry to an endpoint or not at all, and the gateway's process."""
    os.environ.pop(VARIABLE, None)
    if endpoint:
        os.environ[VARIABLE] = endpoint
    with running("afoot", "http", Setup(sys.executable, folder), cores()[0]) as server:
        assert server.port is not None
        client = HttpClient(MODERN, server.port)
        await client.open()
        await warm(client)
        try:
            yield client, server.child.pid
        finally:
            await client.close()


def cpu_s(pid: int) -> float:
    """The processor time of a process, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def receiving() -> Iterator[str]:
    """An OTLP receiver that reads all requests and drops them."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
