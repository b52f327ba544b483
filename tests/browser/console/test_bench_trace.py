"""What the bench of the console reads out of a trace; here only counts are asserted, no times."""

from pathlib import Path
from typing import Any

from bench.console import gone, heap, opening
from bench.trace import FRAME, MARK, TASK, Trace, p95
from tests.browser.chromium import Chromium
from tests.browser.console.console_client import attended
from tests.browser.page import Page

ROUNDS, CALLS = 12, 60


def event(name: str, at_ms: float, **more: Any) -> dict[str, Any]:
    """An event of the page's main thread."""
    return {"name": name, "ts": at_ms * 1000, "pid": 1, "tid": 1, "args": {}, **more}


def test_times_are_read_from_the_thread_of_the_page() -> None:
    """V1: paints since the navigation, tasks, and the steps from frame to frame."""
    begun = {"args": {"data": {"documentLoaderURL": "http://x/history"}}}
    trace = Trace([
        event("navigationStart", 10, **begun), event("firstContentfulPaint", 5),
        event("firstContentfulPaint", 90),
        event(TASK, 20, dur=7000, tdur=3000), event("Layout", 21, dur=6000, tdur=2000),
        event(TASK, 20, dur=90_000, pid=2), event(MARK, 99),
        *(event(FRAME, 100 + 16 * n) for n in range(21)),
    ])  # fmt: skip
    assert trace.since("/history", "firstContentfulPaint") == 80
    assert (trace.tasks(), trace.tasks("tdur")) == ([7], [3])
    assert trace.longest() == [
        "0.0 s after the first", f"{TASK} 7.0 ms (3.0 ms)", "Layout 6.0 ms (2.0 ms)",
    ]  # fmt: skip
    assert len(trace.frames()) == 20 and p95(trace.frames()) == 16


def test_the_history_is_measured_in_a_real_browser(tmp_path: Path, plain_browser: Chromium) -> None:
    """V1: all figures are there, the rows after the first paint."""
    plain_browser.clear()
    with attended(tmp_path, plain_browser) as console:
        paint, rows, lanes = opening(console, 120)
    assert 0 < paint.figure <= rows.figure and lanes.figure > 0


def test_memory_is_flat_while_calls_come_and_go(tmp_path: Path, plain_browser: Chromium) -> None:
    """V1, V6: a forgotten call leaves nothing; `scripts/bench console --minutes 10` watches longer."""
    plain_browser.clear()
    with attended(tmp_path, plain_browser) as console:
        page = console.open("/live")
        found = []
        for _ in range(ROUNDS):
            made = [console.api.start("export_pages", n=3, step_s=0.01) for _ in range(CALLS)]
            for one in made:
                console.api.ended(one)
            page.until("Boolean(document.querySelector('.chip[data-filter=running] b'))")
            last = f"store.get({made[-1]!r})?.call.peek().outcome"
            page.until(f"import('/console/lib/store.js').then(({{ store }}) => {last})")
            found.append(counted(gone(page)))
    # The first rounds load and compile, and machine code comes later. Calls that stay make it 1.4 times as
    # much.
    for name in ("nodes", "listeners", "heap"):
        early, late = (min(one[name] for one in part) for part in (found[2:5], found[-3:]))
        assert late <= 1.25 * early, (name, [one[name] for one in found])


def counted(page: Page) -> dict[str, float]:
    """What the page holds after its garbage was collected."""
    used = heap(page)
    page.call("Performance.enable")
    metrics = {one["name"]: one["value"] for one in page.call("Performance.getMetrics")["metrics"]}
    return {"heap": used, "nodes": metrics["Nodes"], "listeners": metrics["JSEventListeners"]}
