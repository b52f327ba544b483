"""Tools over the operator's API: their schemas and limits, and statistics of their runs."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from math import floor, log10
from typing import Any

from msgspec import UNSET, Struct, UnsetType, json
from msgspec.structs import replace

from afoot.config.tables import LIMITS
from afoot.core.names import own_name
from afoot.core.ports import CallOutline, CallQuery, CallRow, Tool
from afoot.observe.eta import quantile
from afoot.serve.api.calls import find_calls
from afoot.serve.api.history.call_filters import FAILED_OUTCOMES
from afoot.serve.api.request import ApiRequest, read_choice
from afoot.serve.api.views import CallView
from afoot.serve.gateway_state import GatewayState

STATS_RUNS = 200  # the newest runs: older ones may be of another tool with this name
LAST_CALLS = 10  # calls that are shown
RECENT_CALLS = 5000  # the newest calls of the history, of which the list of tools counts the runs of each
PAGE_CALLS = 1000  # that are read at once
SHORTEST_S = 0.001
COLUMNS = 10  # about so many, if all runs took about as long
WIDE_RATIO = 10.0  # if the longest run took more than this many times the shortest, columns get wider


class RecentRuns(Struct, frozen=True):
    """A tool's newest runs in short; durations are those of successful runs."""

    runs: int = 0
    failures: int = 0
    p50_s: float | None = None
    p95_s: float | None = None
    last: float | None = None  # when the newest was opened


class ToolStats(Struct, frozen=True):
    """Statistics of a tool's newest runs; durations are those of successful runs."""

    runs: int
    failures: int
    p50_s: float | None
    p95_s: float | None
    histogram: list[tuple[float, float, int]]  # from, to (without it), how many
    last: list[CallView]


class ToolView(Struct, frozen=True):
    """A tool with its definition for models, and its settings."""

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
    own: str  # its name at its server
    safe: bool  # whether a call may run again if its process or server dies
    # Limits of a call's child process, 0 for none; only for tools that run in one.
    isolation: Mapping[str, float] | UnsetType = UNSET
    stats: ToolStats | UnsetType = UNSET  # only in the view of one tool
    recent: RecentRuns | UnsetType = UNSET  # only in the list, if it is asked for


class ToolList(Struct, frozen=True):
    """All tools on offer."""

    tools: list[ToolView]


async def index(request: ApiRequest) -> None:
    """Every tool; with `recent`, how the newest runs of each went."""
    wants_recent = read_choice(request.query("recent").get("recent", ""), "recent", ("true", "false"))
    tools = list(request.gateway.engine.catalog)
    views = [tool_view(tool) for tool in tools]
    if wants_recent == "true":
        recent = await read_recent_runs(request.gateway, tools, request.only_caller)
        views = [replace(view, recent=runs) for view, runs in zip(views, recent, strict=True)]
    await request.answer(200, ToolList(views))


async def show(request: ApiRequest) -> None:
    """One tool, and statistics of its runs."""
    request.query()
    tool = request.gateway.engine.catalog.get(request.names["name"])[1]
    await request.answer(
        200, replace(tool_view(tool), stats=await read_stats(request.gateway, tool, request.only_caller))
    )


async def read_recent_runs(
    gateway: GatewayState, tools: Sequence[Tool], caller: str = ""
) -> list[RecentRuns]:
    """The newest runs of each of these tools among the newest calls of the history; raises StoreError.

    `caller`: whose calls alone are counted; empty for all.
    """
    runs: dict[tuple[str, str], list[CallRow]] = {}
    query, left = CallQuery(state="finished", caller=caller, limit=PAGE_CALLS), RECENT_CALLS
    while left > 0 and (page := await gateway.engine.journal.find(query)):
        for row in page:
            runs.setdefault((row.server, row.tool), []).append(row)
        left -= len(page)
        if len(page) < PAGE_CALLS:
            break
        query = replace(query, before=page[-1].opened)
    found = [[row for name in _names(tool) for row in runs.get((tool.server, name), ())] for tool in tools]
    return [_recent_runs(_newest(rows)) for rows in found]


async def read_stats(gateway: GatewayState, tool: Tool, caller: str = "") -> ToolStats:
    """Statistics of a tool's newest runs, from the history; raises StoreError.

    They are of its server and its own name there, under any name that it had here (U12). `caller`: whose
    calls alone are counted and shown; empty for all (S3).
    """
    whole = CallQuery(server=tool.server, caller=caller, limit=STATS_RUNS)
    queries = [replace(whole, tool=name) for name in _names(tool)]
    found = [await gateway.engine.journal.find(replace(one, state="finished")) for one in queries]
    rows = _newest(chain(*found))
    recent = _recent_runs(rows)
    calls = [await find_calls(gateway, replace(one, limit=LAST_CALLS)) for one in queries]
    last = sorted(chain(*calls), key=lambda call: call.opened, reverse=True)[:LAST_CALLS]
    return ToolStats(
        recent.runs, recent.failures, recent.p50_s, recent.p95_s, histogram(_durations_s(rows)), last
    )


def duration_s(row: CallRow | CallOutline) -> float | None:
    """The seconds that the tool worked, from its start and not from the opening of the call."""
    if row.outcome != "ok" or row.finished is None or row.started is None:
        return None
    return max(0.0, row.finished - row.started)


def histogram(took: Sequence[float]) -> list[tuple[float, float, int]]:
    """Count these sorted durations between round numbers."""
    if not took:
        return []
    if took[-1] < SHORTEST_S:
        return [(0.0, SHORTEST_S, len(took))]
    low, high = max(took[0], SHORTEST_S), took[-1]
    marks = _growing_marks(low, high) if high > low * WIDE_RATIO else _even_marks(low, high)
    if took[0] < marks[0]:
        marks = [0.0, *marks]
    return [(start, end, sum(start <= one < end for one in took)) for start, end in pairwise(marks)]


def _even_marks(low: float, high: float) -> list[float]:
    """Round numbers at equal distances that enclose these two."""
    rough = max(high - low, low) / COLUMNS  # smaller differences do not matter to a person who waits
    step = next(one for one in _growing_marks(rough, rough) if one >= rough)
    return _marks_around(
        [round(step * at, 9) for at in range(floor(low / step), floor(high / step) + 3)], low, high
    )


def _growing_marks(low: float, high: float) -> list[float]:
    """The numbers 1, 2, 5, 10, 20 … around these two."""
    decades = range(floor(log10(low)) - 1, floor(log10(high)) + 3)
    return _marks_around(
        [round(digit * 10.0**decade, 9) for decade in decades for digit in (1, 2, 5)], low, high
    )


def _marks_around(marks: list[float], low: float, high: float) -> list[float]:
    """The marks from the last one that is not over `low` to the first one that is over `high`."""
    first = max((at for at, mark in enumerate(marks) if mark <= low), default=0)
    return marks[first : 1 + min(at for at, mark in enumerate(marks) if mark > high)]


def _names(tool: Tool) -> Iterable[str]:
    """The names under which calls of a tool stand in the history."""
    return dict.fromkeys((tool.name, own_name(tool), tool.alias or tool.name))


def _newest(rows: Iterable[CallRow]) -> list[CallRow]:
    return sorted(rows, key=lambda row: row.opened, reverse=True)[:STATS_RUNS]


def _recent_runs(rows: Sequence[CallRow]) -> RecentRuns:
    """Summarise these runs, newest first."""
    took = _durations_s(rows)
    p50, p95 = (round(quantile(took, part), 3) if took else None for part in (0.5, 0.95))
    failures = sum(row.outcome in FAILED_OUTCOMES for row in rows)
    return RecentRuns(len(rows), failures, p50, p95, rows[0].opened if rows else None)


def _durations_s(rows: Sequence[CallRow]) -> list[float]:
    """The durations of the successful runs among these, shortest first."""
    return sorted(duration for row in rows if (duration := duration_s(row)) is not None)


def tool_view(tool: Tool) -> ToolView:
    """The tool as JSON."""
    definition: dict[str, Any] = json.decode(tool.definition)
    limits = {name: getattr(tool.limits, name) for name in LIMITS}
    is_safe = tool.trusted and (tool.read_only or tool.idempotent)
    return ToolView(
        tool.name, tool.server, definition.get("title"), definition.get("description") or "",
        definition.get("inputSchema") or {"type": "object"}, definition.get("outputSchema"),
        definition.get("annotations") or {}, limits, tool.limits.patient, tool.concurrency, tool.queue,
        tool.approval, own_name(tool), is_safe, tool.isolation or UNSET,
    )  # fmt: skip
