"""`python -m bench.console` measures the web console with Chromium's trace, and compares it with its limits.

It starts its own gateway, makes the calls over MCP, and uses a headless Chromium with a page of
1280×800.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from bench.client_http import HttpClient
from bench.flight import Plan
from bench.table import align
from bench.trace import SHOWN, Trace, p95, tracing
from bench.wire import MODERN, BenchError
from tests.browser.chromium import running, until
from tests.browser.console.console_client import Console, attended, size
from tests.browser.page import Page

CALLS, LIVE, HZ, SECONDS = 10_000, 200, 20, 20.0
ROWS = 100
# A page of 1280×800 fits in it. A frame that changes only what lies outside of the window is not drawn, and
# counts as shown with the next one that is.
WINDOW = "--window-size=1440,1000"
WIDTH = 100  # calls below each call of a tree of three levels: 10,101 in all
SCROLLED_AT_ONCE = 20  # frames, of which the last is a jump
FLOW_HZ = 5  # calls a second while memory is watched
KEPT_S = 300  # calls that ended are listed for so long
LIMIT_S = 120.0
# Marks the instant at which this many rows are in the page and have been painted.
MARKED = """
new MutationObserver((_, watch) => {
  if (document.querySelectorAll(".call-row-ended").length < %d) return;
  watch.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("rows")));
}).observe(document, { childList: true, subtree: true });
"""
# The lanes of the history: how many calls they have, and how long they took from the answer to the canvas.
DRAWN = """['lanes laid out', 'lanes drawn']
  .reduce((sum, name) => sum + (performance.getEntriesByName(name)[0]?.duration ?? NaN), 0)"""
SPANS = "import('/console/lib/api.js').then(({ get }) => get('/api/history')).then((all) => all.spans.length)"
# Scrolls through the list for so many frames, by a window or by a jump. Gives the gaps between the frames,
# and the number of frames in which rows were missing.
SCROLL = """
(async (frames) => {
  const list = document.querySelector(".live-main");
  const body = document.querySelector(".scrolled-rows");
  const found = { gaps: [], blank: 0 };
  let last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < frames; frame++) {
    const far = frame % 20 === 19;
    list.scrollTop = far ? Math.random() * list.scrollHeight : list.scrollTop + list.clientHeight;
    const now = await new Promise(requestAnimationFrame);
    found.gaps.push(now - last);
    last = now;
    const rows = [...body.children].map((one) => one.getBoundingClientRect()).filter((one) => one.bottom > 0);
    const seen = rows.filter((one) => one.top < innerHeight).length;
    if (seen < Math.floor(list.clientHeight / 36) - 2) found.blank += 1;
  }
  return found;
})
"""
# The number of live calls that the page knows, and what opens the tree of each.
LISTED = """Number(document.querySelector(".chip[data-filter=all] b")?.innerText.replaceAll(",", ""))"""
UNFOLD = """
Promise.all(["store", "router"].map((it) => import(`/console/lib/${it}.js`))).then(([{ store }, router]) => {
  const trees = [...store.all()].filter(({ below }) => below.peek().length).map(({ id }) => id);
  router.navigate(router.withQuery({ toggled: trees.join(",") }));
})
"""
# Lets the page forget the calls that have ended, as it does after five minutes.
FORGET = f"""
Promise.all(["time", "store"].map((it) => import(`/console/lib/${{it}}.js`))).then(([time, {{ store }}]) => {{
  const now = time.preciseNow();
  time.syncClock(now + {KEPT_S} + 1);
  store.prune();
  time.syncClock(now);
}})
"""
# Requests every frame, so that an idle page has as many frames as a busy one.
AWAKE = "globalThis.awake ??= (function awake() { requestAnimationFrame(awake); return true; })()"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure and its limit."""

    what: str
    figure: float
    target: float
    unit: str = "ms"

    @property
    def holds(self) -> bool:
        """Whether the figure is within its limit."""
        return self.figure <= self.target


def main() -> int:
    """Measure and print the table; exit 1 if a target does not hold."""
    found = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    found.add_argument("--json", action="store_true", help="print one object instead of the table")
    found.add_argument("--quick", action="store_true", help="a tenth of the calls, a quarter of the time")
    found.add_argument("--minutes", type=float, default=0, help="watch the memory of the page for so long")
    options = found.parse_args()
    load = os.getloadavg()[0]
    with running("--headless=new", WINDOW) as browser, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        with attended(Path(folder), browser, linger_s=600) as console:
            lines = [*opening(console, CALLS // 10 if options.quick else CALLS)]
            lines += [*living(console, LIVE, SECONDS / 4 if options.quick else SECONDS)]
            lines += [*scrolling(console, 100 if options.quick else 400)]
            if options.minutes:
                lines += [*lasting(console, options.minutes)]
    if options.json:
        print(json.dumps({"load": load, "lines": [{**asdict(one), "holds": one.holds} for one in lines]}))
    else:
        print(f"load average {load:.1f} before, {os.getloadavg()[0]:.1f} after")
        heads = ["", "figure", "target", "holds"]
        print(align([heads, *([one.what, *_told(one), "yes" if one.holds else "NO"] for one in lines)]))
    return 0 if all(one.holds for one in lines) else 1


def opening(console: Console, calls: int) -> Iterator[Line]:
    """Open a long history in a browser that is logged in and has an empty cache."""
    said(f"{calls:,} calls")
    asyncio.run(fill(console, calls))
    said("the history opens")
    page = console.open("/live", MARKED % ROWS)
    page.call("Network.enable")
    page.call("Network.clearBrowserCache")
    with tracing(page) as found:
        page.navigate(f"{console.api.url}/history")
        page.until("performance.getEntriesByName('rows').length", LIMIT_S)
    took = page.until(DRAWN, LIMIT_S)
    spans = page.evaluate(SPANS)
    page.close()
    yield Line(f"{calls:,} calls kept: first contentful paint", since(found[0], "firstContentfulPaint"), 1000)
    yield Line(f"{calls:,} calls kept: first {ROWS} rows", since(found[0], "rows"), 1000)
    yield Line(f"{spans:,} calls of an hour: drawn as lanes", took, 100)


def since(trace: Trace, what: str) -> float:
    """The time from the navigation to the history."""
    return trace.since("/history", what)


async def fill(console: Console, calls: int) -> None:
    """Make as many calls as the history shall have."""
    port = int(console.gateway.url.rpartition(":")[2].partition("/")[0])
    client = HttpClient(MODERN, port)
    template = client.wire.call("export_pages", {"n": 2, "step_s": 0}, token=True)
    flight = await client.fly(Plan(template, 32, calls))
    if flight.answered < calls:
        raise BenchError(f"of {calls} calls only {flight.answered} were answered")


def living(console: Console, calls: int, seconds: float) -> Iterator[Line]:
    """Compare the page with many calls that report often to the page without calls."""
    page = console.open(f"/live?toggled={opened('export_pages')}")
    size(page, 1280, 800)
    page.evaluate(AWAKE)
    heaps = [heap(page)]
    said("a first round: scripts are compiled where they are first needed, and that stays")
    with reporting(console, calls, seconds):
        pass
    heaps.append(heap(gone(page)))
    said("the page at rest")
    with tracing(page) as idle:
        time.sleep(seconds / 2)
    said(f"{calls} calls at {HZ} Hz for {seconds:g} s")
    with tracing(page) as busy, reporting(console, calls, seconds):
        time.sleep(seconds / 2)
        if (shown := int(page.evaluate("document.querySelector('.live-list').ariaRowCount"))) < calls:
            raise BenchError(f"of {calls} calls only {shown} are listed")
    heaps.append(heap(gone(page)))
    told(idle[0], busy[0], heaps)
    name = f"{calls} calls at {HZ} Hz"
    yield Line(f"{name}: longest task", max(busy[0].tasks()), 50)
    yield Line(f"{name}: the same, on the processor", max(busy[0].tasks("tdur")), 50)
    frames = [p95(one.frames(SHOWN)) for one in (busy[0], idle[0])]
    yield Line(f"{name}: p95 of frames, when they end", frames[0], 1.5 * frames[1])
    yield Line(f"{name}: heap after, of that before", heaps[2] / heaps[1] * 100, 110, "%")


def opened(tool: str) -> str:
    """The key of a tool's line, as it stands in the address when that line is open."""
    return quote(quote(f"tool running {tool}", safe=""), safe="")


def scrolling(console: Console, frames: int) -> Iterator[Line]:
    """Scroll through the rows of ten thousand live calls."""
    calls = 1 + WIDTH + WIDTH * WIDTH
    said(f"{calls:,} live calls")
    page = console.open("/live?q=survey")
    size(page, 1280, 800)
    tree = console.api.start("survey", width=WIDTH, depth=2, leaf_s=3600)
    page.until(f"{LISTED} >= {calls}", LIMIT_S)
    page.evaluate(UNFOLD)
    page.until(f"Number(document.querySelector('.live-list')?.ariaRowCount) >= {calls}", LIMIT_S)
    said(f"{frames} frames of scrolling")
    with tracing(page) as found:
        scrolled = [page.evaluate(f"{SCROLL}({SCROLLED_AT_ONCE})") for _ in range(frames // SCROLLED_AT_ONCE)]
    said(f"the longest task: {'; '.join(found[0].longest())}")
    rows = page.evaluate("document.querySelectorAll('.live-list [role=row]').length")
    page.close()
    console.api.post(f"/api/calls/{tree}/cancel", {})
    name = f"{calls:,} live rows"
    gaps = [gap for one in scrolled for gap in one["gaps"]]
    yield Line(f"{name}: longest gap between frames while scrolling", max(gaps), 100)
    yield Line(f"{name}: longest task while scrolling, on the processor", max(found[0].tasks("tdur")), 100)
    yield Line(f"{name}: frames with rows missing", sum(one["blank"] for one in scrolled), 0, "")
    yield Line(f"{name}: rows in the document", rows, ROWS, "")


def lasting(console: Console, minutes: float) -> Iterator[Line]:
    """Watch the page's memory while calls come and go: at half of the time all that it keeps is there."""
    said(f"{FLOW_HZ} calls a second for {minutes:g} minutes")
    page = console.open("/live")
    size(page, 1280, 800)
    heaps = []
    for _ in range(2):
        end = time.monotonic() + 30 * minutes
        while time.monotonic() < end:
            console.api.start("export_pages", n=4, step_s=0.1)
            time.sleep(1 / FLOW_HZ)
        heaps.append(heap(page))
    said(f"heap in MB at half of the time, and at its end: {', '.join(f'{one / 1e6:.2f}' for one in heaps)}")
    page.close()
    yield Line(f"{minutes:g} minutes: heap at the end, of that at half", heaps[1] / heaps[0] * 100, 110, "%")


def told(idle: Trace, busy: Trace, heaps: list[float]) -> None:
    """The details behind the figures."""
    said(f"the longest task: {'; '.join(busy.longest())}")
    said(f"heap in MB at first, before and after: {', '.join(f'{one / 1e6:.2f}' for one in heaps)}")
    for what, trace in (("at rest", idle), ("busy", busy)):
        rate, begun = 1000 / statistics.mean(trace.frames()), p95(trace.frames())
        said(f"{what}: {rate:.1f} frames a second; p95 of the steps between their beginnings {begun:.1f} ms")


def gone(page: Page) -> Page:
    """The page after the last call has ended and left it."""
    page.until("document.querySelector('.chip[data-filter=running] b').innerText === '0'", LIMIT_S)
    page.evaluate(FORGET)
    page.until("document.querySelectorAll('.live-row').length === 0", LIMIT_S)
    return page


@contextlib.contextmanager
def reporting(console: Console, calls: int, seconds: float) -> Iterator[None]:
    """Run this many calls that report, until the last one has ended."""
    steps = {"n": round(seconds * HZ), "step_s": 1 / HZ}
    made = [console.api.start("export_pages", **steps) for _ in range(calls)]
    began = time.monotonic()
    yield
    time.sleep(
        max(0.0, seconds - (time.monotonic() - began))
    )  # a request now would take time from the measured page
    for one in made:
        until(lambda one=one: console.api.call(one)["outcome"], f"the end of {one}", LIMIT_S)


def heap(page: Page) -> float:
    """The heap of the page's scripts in bytes."""
    page.call("HeapProfiler.enable")
    for _ in range(3):
        page.call("HeapProfiler.collectGarbage")
    page.call("HeapProfiler.disable")
    used: float = page.call("Runtime.getHeapUsage")["usedSize"]
    return used


def said(text: str) -> None:
    """Print the current step."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _told(line: Line) -> tuple[str, str]:
    return f"{line.figure:.1f} {line.unit}", f"≤ {line.target:.1f} {line.unit}"


if __name__ == "__main__":
    sys.exit(main())
