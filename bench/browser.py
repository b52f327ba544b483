"""`python -m bench.browser` measures calls from a page to an MCP client, over CDP and over the extension.

The raw client counts rates, the official client measures times; page and client share a clock.
"""

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from afoot.providers.browser.cdp.connection import CommandError
from bench.client_http import HttpClient
from bench.flight import Plan
from bench.table import align
from bench.wire import MODERN, BenchError
from tests.browser.chain import Bench, Chain, attaching, linking
from tests.browser.chromium import NATIVE, running
from tests.browser.site import served

WAYS = {"cdp": attaching, "extension": linking}
KINDS = {"native": (NATIVE,), "supplied": ()}
FLOOD, STREAM, PACE = 100_000, 5_000, 300
ROUNDS = 20
PAGE = """<!doctype html><title>Bench</title><script>
const now = () => performance.timeOrigin + performance.now();
const tool = (name, execute) => document.modelContext.registerTool({
  name, description: name, inputSchema: {type: "object", properties: {n: {type: "integer"}}}, execute});
const nap = (ms) => new Promise((wake) => setTimeout(wake, ms));
tool("flood", async ({n}, {reportProgress}) => {
  for (let i = 1; i <= n; i += 1) reportProgress({progress: i, total: n});
});
tool("stream", async ({n}, {reportProgress}) => {
  for (let i = 1; i <= n; i += 1) {
    reportProgress({progress: i, total: n});
    if (i % 32 === 0) await nap(8);
  }
});
tool("pace", async ({n}, {reportProgress}) => {
  for (let i = 1; i <= n; i += 1) {
    await nap(10);
    reportProgress({progress: i, total: n, message: String(now())});
  }
});
tool("wait", async (_, {signal, reportProgress}) => {
  const stopped = new Promise((resolve) => signal.addEventListener("abort", () => resolve(now())));
  reportProgress({progress: 1, message: "waits"});
  window.stopped = await stopped;
});
</script>"""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one transport; times in milliseconds."""

    flood: float  # notifications per second while a page reports in a tight loop; the newest are kept
    stream: float  # of a page that reports slowly enough that all can be kept
    kept: float  # the part of those reports that arrived
    latency: list[float]
    closing: list[float]
    stopping: list[float]


def main() -> int:
    """Measure every transport and print the table."""
    lines = [
        [
            "",
            "flood /s",
            "stream /s",
            "kept",
            "report p50",
            "p99",
            "tab closed p50",
            "max",
            "stopped p50",
            "max",
        ]
    ]
    for kind, flags in KINDS.items():
        with running("--headless=new", *flags) as browser, served() as site:
            site.pages["bench.html"] = PAGE
            for way, made in WAYS.items():
                print(f"bench: {way}, {kind} WebMCP", file=sys.stderr, flush=True)
                with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                    with made(Path(folder), browser, site) as chain:
                        lines.append([f"{way}, {kind}", *told(measure(chain))])
    print(f"load average {os.getloadavg()[0]:.1f}; times in ms")
    print(align(lines))
    return 0


def measure(chain: Chain) -> Figures:
    """All figures of one transport."""
    with tab(chain) as bench:
        flood, _ = rate(bench, "flood", FLOOD)
        stream, kept = rate(bench, "stream", STREAM)
        latency = late(bench)
    return Figures(flood, stream, kept, latency, closing(chain), stopping(chain))


@contextlib.contextmanager
def tab(chain: Chain) -> Iterator[Bench]:
    """A tab with the bench page, closed at the end."""
    bench = chain.open("bench.html", host="bench.localhost")
    try:
        bench.tool("wait")
        yield bench
    finally:
        with contextlib.suppress(CommandError):  # it may be closed
            bench.page.close()


def rate(bench: Bench, tool: str, reports: int) -> tuple[float, float]:
    """Notifications per second, and the part of the reports that became a notification."""

    async def fly() -> tuple[float, float]:
        port = int(bench.chain.gateway.url.rpartition(":")[2].partition("/")[0])
        client = HttpClient(MODERN, port)
        template = client.wire.call(bench.tool(tool).name, {"n": reports}, token=True)
        flight = await client.fly(Plan(template, 1, 1))
        if not flight.notes:
            raise BenchError("not one notification was delivered")
        return flight.notes / flight.elapsed_s, flight.notes / reports

    return asyncio.run(fly())


def late(bench: Bench) -> list[float]:
    """The time of each report from the page to the client's callback."""
    call = bench.call("pace", n=PACE)
    call.result(60)
    said = zip(call.at, call.seen, strict=True)
    return [at * 1000 - float(message) for at, (_, _, message) in said if message is not None]


def closing(chain: Chain) -> list[float]:
    """The time from the command that closes a tab to the error at the caller."""
    found: list[float] = []
    for _ in range(ROUNDS):
        with tab(chain) as bench:
            call = bench.call("wait").until_said("waits")
            ended: list[float] = []
            call.future.add_done_callback(lambda _, ended=ended: ended.append(time.perf_counter()))
            began = time.perf_counter()
            bench.page.close()
            call.result()
            found.append((ended[0] - began) * 1000)
    return found


def stopping(chain: Chain) -> list[float]:
    """The time from the client's cancel to the page's abort signal."""
    found: list[float] = []
    with tab(chain) as bench:
        for _ in range(ROUNDS):
            bench.page.evaluate("void (window.stopped = 0)")
            call = bench.call("wait").until_said("waits")
            began = time.time() * 1000
            call.cancel()
            found.append(float(bench.page.until("window.stopped")) - began)
    return found


def told(figures: Figures) -> list[str]:
    """A line of the table."""
    cuts = statistics.quantiles(figures.latency, n=100)
    return [
        f"{figures.flood:,.0f}",
        f"{figures.stream:,.0f}",
        f"{figures.kept:.0%}",
        f"{cuts[49]:.1f}",
        f"{cuts[98]:.1f}",
        *(f"{value:.0f}" for value in (statistics.median(figures.closing), max(figures.closing))),
        *(f"{value:.1f}" for value in (statistics.median(figures.stopping), max(figures.stopping))),
    ]


if __name__ == "__main__":
    sys.exit(main())
