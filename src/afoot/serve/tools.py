"""Tools over the operator's API: what there is, with which schemas and limits, and how their runs went."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import floor, log10
from typing import Any

from msgspec import UNSET, Struct, UnsetType, json
from msgspec.structs import replace

from afoot.core.ports import Query, Row, Tool
from afoot.observe.eta import quantile
from afoot.serve.calls import find
from afoot.serve.request import Request
from afoot.serve.site import Site
from afoot.serve.view import CallView
from afoot.tables import LIMITS

RUNS = 200  # the newest ones: older ones may have been of another tool of this name
LAST = 10  # calls that are shown
FAILED = ("failed", "timed_out", "lost", "uncertain")
SHORTEST_S = 0.001
COLUMNS = 10  # about so many, where all took about as long
WIDE = 10.0  # past this proportion of the longest to the shortest, the columns grow wider


class Stats(Struct, frozen=True):
    """How the newest runs of a tool went; how long is said of those that ended well."""

    runs: int
    failures: int
    p50_s: float | None
    p95_s: float | None
    histogram: list[tuple[float, float, int]]  # from, to (without it), how many
    last: list[CallView]


class ToolView(Struct, frozen=True):
    """A tool: what a model sees of it, and how it is run."""

    name: str
    server: str
    title: str | None
    description: str
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None
    annotations: dict[str, Any]
    limits: dict[str, float | None]
    patient: bool  # whether silence counts only once it has reported
    concurrency: int
    queue: int
    approval: str  # auto, ask
    safe: bool  # whether it may be run once more if what it runs on dies
    # What a call may use in its child process, 0 for no limit; only where it runs in one.
    isolation: Mapping[str, float] | UnsetType = UNSET
    stats: Stats | UnsetType = UNSET  # only where one tool is asked for


class Tools(Struct, frozen=True):
    """All tools on offer."""

    tools: list[ToolView]


async def index(request: Request) -> None:
    """Every tool."""
    request.query()
    await request.answer(200, Tools([view(tool) for tool in request.site.engine.catalog]))


async def show(request: Request) -> None:
    """One tool, and how its runs went."""
    request.query()
    tool = request.site.engine.catalog.get(request.names["name"])[1]
    await request.answer(200, replace(view(tool), stats=await stats(request.site, tool.name)))


async def stats(site: Site, tool: str) -> Stats:
    """How the newest runs of a tool went, by the history; raises StoreError."""
    rows = await site.engine.journal.find(Query(tool=tool, state="finished", limit=RUNS))
    failures = sum(row.outcome in FAILED for row in rows)
    took = sorted(duration for row in rows if (duration := _took(row)) is not None)
    p50, p95 = (round(quantile(took, part), 3) if took else None for part in (0.5, 0.95))
    last = await find(site, Query(tool=tool, limit=LAST))
    return Stats(len(rows), failures, p50, p95, histogram(took), last[:LAST])


def histogram(took: Sequence[float]) -> list[tuple[float, float, int]]:
    """How many of these durations, sorted, fell between which round numbers."""
    if not took:
        return []
    if took[-1] < SHORTEST_S:
        return [(0.0, SHORTEST_S, len(took))]
    low, high = max(took[0], SHORTEST_S), took[-1]
    marks = _growing(low, high) if high > low * WIDE else _even(low, high)
    if took[0] < marks[0]:
        marks = [0.0, *marks]
    return [(start, end, sum(start <= one < end for one in took)) for start, end in pairwise(marks)]


def _even(low: float, high: float) -> list[float]:
    """Round numbers at one distance, around all between these two."""
    rough = max(high - low, low) / COLUMNS  # what differs by less took as long, to whoever waits
    step = next(one for one in _growing(rough, rough) if one >= rough)
    return _around(
        [round(step * at, 9) for at in range(floor(low / step), floor(high / step) + 3)], low, high
    )


def _growing(low: float, high: float) -> list[float]:
    """The numbers 1, 2, 5, 10, 20 … around these two."""
    decades = range(floor(log10(low)) - 1, floor(log10(high)) + 3)
    return _around([round(digit * 10.0**decade, 9) for decade in decades for digit in (1, 2, 5)], low, high)


def _around(marks: list[float], low: float, high: float) -> list[float]:
    """From the last that is not over low to the first that is over high."""
    first = max((at for at, mark in enumerate(marks) if mark <= low), default=0)
    return marks[first : 1 + min(at for at, mark in enumerate(marks) if mark > high)]


def _took(row: Row) -> float | None:
    """How long its tool worked: from its start, not from when it was asked for."""
    if row.outcome != "ok" or row.finished is None or row.started is None:
        return None
    return max(0.0, row.finished - row.started)


def view(tool: Tool) -> ToolView:
    """The tool as JSON."""
    told: dict[str, Any] = json.decode(tool.definition)
    limits = {name: getattr(tool.limits, name) for name in LIMITS}
    is_safe = tool.trusted and (tool.read_only or tool.idempotent)
    return ToolView(
        tool.name, tool.server, told.get("title"), told.get("description") or "",
        told.get("inputSchema") or {"type": "object"}, told.get("outputSchema"),
        told.get("annotations") or {}, limits, tool.limits.patient, tool.concurrency, tool.queue,
        tool.approval, is_safe, tool.isolation or UNSET,
    )  # fmt: skip
