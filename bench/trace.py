"""`Trace` reads Chromium's trace of a page: paints, durations of tasks, intervals of frames."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from tests.browser.page import Page

CATEGORIES = ("blink.user_timing", "loading", "devtools.timeline", "disabled-by-default-devtools.timeline")
MARK = "afoot-bench"  # set in the page, so that the trace shows its process
TASK, FRAME, SHOWN = "RunTask", "AnimationFrame::Render", "AnimationFrame::Presentation"
ENDS_S = 60.0
Event = Mapping[str, Any]


class Trace:
    """The events of the main thread of the page that set the mark; times in milliseconds."""

    def __init__(self, events: Sequence[Event]) -> None:
        mark = next(one for one in events if one["name"] == MARK)
        self.events = [one for one in events if (one["pid"], one["tid"]) == (mark["pid"], mark["tid"])]

    def named(self, name: str) -> list[Event]:
        """The events of one name."""
        return [one for one in self.events if one["name"] == name]

    def since(self, url: str, name: str) -> float:
        """The time from the navigation to this address to the first event of a name after it."""
        begun = max(
            one["ts"]
            for one in self.named("navigationStart")
            if one["args"]["data"]["documentLoaderURL"].endswith(url)
        )
        return (min(one["ts"] for one in self.named(name) if one["ts"] >= begun) - begun) / 1000

    def tasks(self, clock: str = "dur") -> list[float]:
        """The duration of each task; by the clock `tdur` only its processor time."""
        return [one[clock] / 1000 for one in self.named(TASK) if clock in one]

    def frames(self, name: str = FRAME) -> list[float]:
        """From each frame to the next, by when they are begun; a frame that is left out doubles one.

        `SHOWN`: by when they are done. A headless browser has no screen on which pictures come at even steps,
        so these are as uneven as the work in them.
        """
        at = sorted(one["ts"] for one in self.named(name) if one.get("ph") != "e")
        return [(after - before) / 1000 for before, after in zip(at, at[1:], strict=False)]

    def longest(self) -> list[str]:
        """The longest task, in wall time and (processor time), and the parts that took a tenth of it."""
        task = max((one for one in self.named(TASK) if "dur" in one), key=lambda one: one["dur"])
        inside = [one for one in self.events if task["ts"] <= one["ts"] < task["ts"] + task["dur"]]
        large = [one for one in inside if one.get("dur", 0) >= task["dur"] / 10]
        begun = min(one["ts"] for one in self.named(TASK))
        return [f"{(task['ts'] - begun) / 1e6:.1f} s after the first", *map(_took, large)]


def _took(event: Event) -> str:
    return f"{event['name']} {event['dur'] / 1000:.1f} ms ({event.get('tdur', 0) / 1000:.1f} ms)"


@contextmanager
def tracing(page: Page) -> Iterator[list[Trace]]:
    """Trace the page within the block; the trace is in the list afterwards."""
    browser, found = page.browser, list[Trace]()
    browser.events.clear()
    how = {"traceConfig": {"includedCategories": CATEGORIES}, "transferMode": "ReportEvents"}
    browser.call("Tracing.start", how)
    yield found
    page.evaluate(f"void performance.mark('{MARK}')")
    browser.call("Tracing.end")
    browser.event("Tracing.tracingComplete", "", 0, ENDS_S)
    parts = [one.params for one in browser.events if one.method == "Tracing.dataCollected"]
    found.append(Trace([one for part in parts for one in msgspec.json.decode(part)["value"]]))


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[18]
