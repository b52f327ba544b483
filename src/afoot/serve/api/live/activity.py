"""`activity` returns figures of the last hour: calls, the number that ran at once, failures, durations."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.call import Call
from afoot.core.ports import CallOutline, CallQuery
from afoot.observe.eta import quantile
from afoot.serve.api.request import ApiRequest
from afoot.serve.api.tools import FAILED_OUTCOMES, duration_s

SPAN_S = 3600.0
LOOK_BACK_S = 3600.0  # calls that were opened so long before the hour may reach into it
STEPS = 30


class ActivityStep(Struct, frozen=True):
    """The figures of one step of the time: `running` is the number at its end."""

    at: float  # its end
    opened: int
    running: int
    failed: int
    p95_s: float | None


class SlowestCall(Struct, frozen=True):
    """The successful call that took longest."""

    id: str
    tool: str
    took_s: float


class Activity(Struct, frozen=True):
    """The figures of all calls that were opened after `since`; durations are those of successful calls."""

    now: float
    since: float
    calls: int
    failed: int
    p95_s: float | None
    slowest: SlowestCall | None
    steps: list[ActivityStep]
    slots: int | None = None  # how many calls can run at once, if every server has a limit


async def activity(request: ApiRequest) -> None:
    """The figures of the last hour: calls, how many ran at once, failures, durations."""
    request.query()
    engine, caller = request.gateway.engine, request.only_caller
    now = engine.clock.now()
    living = [_live_row(live.call) for live in engine.calls() if request.may_see(live.call.opened.caller)]
    since = now - SPAN_S
    ended = await engine.journal.outlines(
        CallQuery(caller=caller, since=since - LOOK_BACK_S, ended_since=since)
    )
    rows = list({row.id: row for row in [*ended, *living]}.values())
    # In a thread, because the rows of a busy hour take longer than anybody else should wait.
    found = await asyncio.to_thread(summarize_activity, rows, since, now)
    await request.answer(200, replace(found, slots=engine.slots.most_at_once(engine.catalog)))


def summarize_activity(rows: Sequence[CallOutline], since: float, now: float) -> Activity:
    """The figures of these calls between two instants, also in equal steps."""
    recent = [row for row in rows if row.opened >= since]
    took = {row.id: duration for row in recent if (duration := duration_s(row)) is not None}
    slowest = max((row for row in recent if row.id in took), key=lambda row: took[row.id], default=None)
    width_s = (now - since) / STEPS
    ends = [since + width_s * number for number in range(1, STEPS)] + [now]
    return Activity(
        now,
        since,
        len(recent),
        sum(row.outcome in FAILED_OUTCOMES for row in recent),
        _p95_s(list(took.values())),
        None if slowest is None else SlowestCall(slowest.id, slowest.tool, round(took[slowest.id], 3)),
        _steps(rows, recent, ends, width_s),
    )


def _steps(
    rows: Sequence[CallOutline], recent: Sequence[CallOutline], ends: Sequence[float], width_s: float
) -> list[ActivityStep]:
    """The figures of each step; failures and durations count where a call ended."""
    begin = ends[0] - width_s
    opened, failed, running = [0] * len(ends), [0] * len(ends), [0] * len(ends)
    took: list[list[float]] = [[] for _ in ends]

    def step_of(at: float) -> int:
        return max(0, min(len(ends) - 1, int((at - begin) / width_s))) if width_s > 0 else 0

    for row in recent:
        opened[step_of(row.opened)] += 1
        if row.finished is None:
            continue
        failed[step_of(row.finished)] += row.outcome in FAILED_OUTCOMES
        if (duration := duration_s(row)) is not None:
            took[step_of(row.finished)].append(duration)
    for row in rows:
        if row.started is None:
            continue
        # A start at the very end of a step falls into the next one.
        for number in range(max(0, step_of(row.started) - 1), len(ends)):
            if row.finished is not None and row.finished <= ends[number]:
                break
            running[number] += row.started <= ends[number]
    return [
        ActivityStep(end, opened[at], running[at], failed[at], _p95_s(took[at]))
        for at, end in enumerate(ends)
    ]


def _p95_s(took: list[float]) -> float | None:
    return round(quantile(sorted(took), 0.95), 3) if took else None


def _live_row(call: Call) -> CallOutline:
    """A call that lives; the history may have older values of it."""
    opened, end = call.opened, call.end
    return CallOutline(
        call.id, opened.tool, opened.server, opened.caller, opened.at, call.started,
        end.at if end else None, end.outcome if end else None, "", opened.parent or "", None, False,
    )  # fmt: skip
