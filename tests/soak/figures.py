"""`Sampler`: what the gateway's process holds, once a second and in idle pauses, and whether that grows.

A figure is judged by the idle pauses of one gateway. The first fifth of them is its warm-up, and so are those
before its two thousandth call. Of the rest, the median of the second half may be a tenth and a little above
the median of the first half. So neither a busy machine nor one odd pause fails a soak, and a leak that grows
with every phase does.
"""

import os
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from tests.soak.place import Place

PERIOD_S: Final = 1.0
WARM_UP: Final = 0.2
# The memory of a gateway rises with the calls that it has served until it is level: 76 MB at first, 98 to 105
# after a thousand calls, 111 to 113 after two thousand, and the same after three and four thousand. On a busy
# machine that takes many pauses.
WARM_UP_CALLS: Final = 2000
GROWTH: Final = 1.1
FEWEST_PAUSES: Final = 6  # of one gateway, after its warm-up; fewer say nothing of growth
SHORTEST_S: Final = 90.0  # between these; a younger gateway still loads modules and fills its caches
# What may come on top of a tenth: a server that was just started again, a page of the heap.
SLACK: Final[dict[str, float]] = {
    "fds": 4, "threads": 3, "children": 3, "tasks": 4, "objects": 2000, "rss_mb": 3.0,
}  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """What a process holds at one moment. `tasks` and `objects` are known only in idle pauses."""

    at_s: float
    life: int  # which gateway
    rss_mb: float
    fds: int
    threads: int
    children: int
    tasks: int = 0
    objects: int = 0
    calls: int = 0  # that this gateway has served; known only in idle pauses


class Sampler:
    """Reads `/proc` once a second in a thread, and keeps the figures of idle pauses apart."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._began = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[Figures] = []
        self.pauses: list[Figures] = []

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            found = self.look()
            if found is not None:
                self.samples.append(found)

    def look(self, tasks: int = 0, objects: int = 0) -> Figures | None:
        """The figures of this moment; None while there is no gateway."""
        pid, life = self._place.pid, self._place.lives
        with suppress(OSError, StopIteration):
            folder = Path(f"/proc/{pid}")
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
            )
            if "VmRSS" not in status:
                return None  # it has just died
            return Figures(
                time.monotonic() - self._began,
                life,
                int(status["VmRSS"].split()[0]) / 1024,
                len(os.listdir(folder / "fd")),
                int(status["Threads"]),
                len(descendants(pid)),
                tasks,
                objects,
            )
        return None

    def pause(self, pause_s: float, calls: int) -> Figures | None:
        """The lowest figures within an idle pause, after so many calls: what is not given back is held."""
        seen: list[Figures] = []
        end = time.monotonic() + pause_s
        while not seen or time.monotonic() < end:
            api = self._place.api
            objects = api.ended(api.start("collect"))["result"]["structured"]["objects"]
            tasks = api.ended(api.start("census"))["result"]["structured"]["tasks"]
            found = self.look(tasks, objects)
            seen += [] if found is None else [found]
            self._is_over.wait(min(0.5, pause_s / 3))
        held = Figures(
            seen[-1].at_s,
            seen[-1].life,
            min(one.rss_mb for one in seen),
            min(one.fds for one in seen),
            min(one.threads for one in seen),
            min(one.children for one in seen),
            min(one.tasks for one in seen),
            min(one.objects for one in seen),
            self._calls_of(seen[-1].life, calls),
        )
        self.pauses.append(held)
        return held

    def _calls_of(self, life: int, calls: int) -> int:
        """All calls that this gateway has served; the phase in which it began does not count."""
        if not self.pauses:
            return calls
        last = self.pauses[-1]
        return last.calls + calls if last.life == life else 0

    def problems(self) -> list[str]:
        """Which figures grow, by gateway."""
        found = list[str]()
        for life in sorted({one.life for one in self.pauses}):
            pauses = [one for one in self.pauses if one.life == life]
            pauses = [one for one in pauses[int(len(pauses) * WARM_UP) :] if one.calls >= WARM_UP_CALLS]
            if len(pauses) < FEWEST_PAUSES or pauses[-1].at_s - pauses[0].at_s < SHORTEST_S:
                continue
            for name, slack in SLACK.items():
                early, late = plateau([float(asdict(one)[name]) for one in pauses])
                if late > early * GROWTH + slack:
                    found.append(
                        f"gateway {life}: {name} grew from {early:g} to {late:g} over {len(pauses)} pauses"
                    )
        return found


def plateau(values: list[float]) -> tuple[float, float]:
    """The medians of the first and of the second half."""
    half = len(values) // 2
    return median(values[:half]), median(values[half:])


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found
