"""The history of a time in one answer: counts, tools, callers, calls at once, and the span of each call.

Spans are what a drawing of many calls needs. A call that ran straight through is three times; only the facts
of calls that asked, stood still or ran again are read for the rest.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.facts import Answered, Asked, Fact, Finished, Interrupted, Started
from afoot.core.ports import CallOutline, CallQuery, Journal
from afoot.errors import StoreError
from afoot.observe.eta import quantile
from afoot.serve.api.history.call_filters import FAILED_OUTCOMES, FILTERS, read_filters, slow_durations
from afoot.serve.api.request import ApiRequest, read_number
from afoot.store.conditions import APPROVED_BY_PEOPLE, has_stood_still

SUMMARY_OPTIONS = (*(name for name in FILTERS if name not in ("parent", "roots")), "spans", "parts")
DEFAULT_S = 3600.0  # before now, if the query names no time
LOOK_BACK_S = 3600.0  # calls that were opened so long before the time may reach into it
MAX_SPANS = 5000
MAX_PARTS = 1000  # of the time, for which the number at once is told
MAX_MARKED = 500  # calls whose facts are read
P95 = 0.95

Interval = tuple[float, float]
LostAttempt = tuple[float, float, float]  # its start, its loss, and the start of the next one
Marks = tuple[list[Interval], list[Interval], list[LostAttempt]]


class ToolSummary(Struct, frozen=True):
    """The calls of one tool in the time; durations are those of successful calls, from start to end."""

    tool: str
    server: str
    calls: int
    shown: int  # of these, those that match `outcome`, `asked` and `slower`, too
    failed: int
    p50_s: float | None
    p95_s: float | None


class CallerSummary(Struct, frozen=True):
    """The number of calls that a caller made in the time."""

    caller: str
    calls: int


class CallSpan(Struct, frozen=True, array_like=True):
    """The times at which a call was queued, ran and asked, as a list of values."""

    id: str
    tool: int  # its place in `tools`
    opened: float
    started: float | None
    finished: float
    outcome: str
    asked: list[Interval] = []  # a person was asked by this call
    below: list[Interval] = []  # its clocks stood still, because a call below it asked
    lost: list[LostAttempt] = []


class HistorySummary(Struct, frozen=True):
    """The ended calls of a time in short. `spans` are those of the longest calls, failed ones first."""

    since: float
    until: float
    calls: int  # these five count without the filters `outcome`, `asked` and `slower`
    roots: int  # calls that no other call made
    failed: int
    asked: int
    slower: int
    tools: list[ToolSummary]
    callers: list[CallerSummary]
    at_once: list[int]  # the most calls that ran at once, in each part of the time
    spans: list[CallSpan]
    left_out: int  # spans that are not here


async def show(request: ApiRequest) -> None:
    """The ended calls of a time, summed up and as spans."""
    given = request.query(*SUMMARY_OPTIONS)
    now = request.gateway.engine.clock.now()
    spans = int(read_number(given.get("spans", str(MAX_SPANS)), "spans", 0, MAX_SPANS))
    parts = int(read_number(given.get("parts", "120"), "parts", 1, MAX_PARTS))
    query = read_filters(request, given)
    until = now if query.before is None else query.before
    since = until - DEFAULT_S if query.since is None else query.since
    await request.gateway.wait_until_recorded()
    journal = request.gateway.engine.journal
    slow = slow_durations(request.gateway)
    reaching = replace(
        query, outcome="", is_asked=False, slower_than=None, since=since - LOOK_BACK_S, before=until,
        ended_since=since,
    )  # fmt: skip
    every = await journal.outlines(reaching)
    # In a thread: a history of 100,000 calls takes half a second, and everybody else would wait for it.
    summary, drawn = await asyncio.to_thread(summarize, every, query, (since, until), slow, (spans, parts))
    tools = [(one.server, one.tool) for one in summary.tools]
    await request.answer(200, replace(summary, spans=await _spans(journal, drawn, tools)))


def summarize(
    every: Sequence[CallOutline],
    query: CallQuery,
    bounds: Interval,
    slow: Mapping[tuple[str, str], float],
    most: tuple[int, int],
) -> tuple[HistorySummary, list[CallOutline]]:
    """The summary of these calls without its spans, and the calls that are to be drawn.

    `most`: how many of these there may be, and the parts of the time.
    """
    since, until = bounds
    spans, parts = most
    shown = [one for one in every if _is_shown(one, query)]
    within = [one for one in every if one.opened >= since]
    tools = list(dict.fromkeys((one.server, one.tool) for one in every))
    drawn = nlargest(spans, shown, key=_importance)
    summary = HistorySummary(
        since, until, len(within), sum(not one.parent for one in within),
        sum(one.outcome in FAILED_OUTCOMES for one in within), sum(one.is_asked for one in within),
        sum(_is_slower(one, slow) for one in within),
        _tool_summaries(tools, within, {one.id for one in shown}),
        [CallerSummary(*one) for one in Counter(one.caller for one in within).most_common()],
        count_at_once(_runs(shown), since, until, parts), [], len(shown) - len(drawn),
    )  # fmt: skip
    return summary, drawn


def count_at_once(runs: Iterable[Interval], since: float, until: float, parts: int) -> list[int]:
    """The largest number of these intervals that overlap, in each of the equal parts of a time."""
    part_s = max(until - since, 1e-9) / parts
    steps = sorted(
        step
        for start, end in runs
        if start < end and end > since and start < until
        for step in ((start, 1), (end, -1))
    )
    found = [0] * parts
    running, filled = 0, 0
    for at, change in steps:
        part = min(parts - 1, max(0, int((at - since) / part_s)))
        # Up to now `running` calls ran, also in the part that begins now if there is a bit of it.
        last = part if at > since + part * part_s else part - 1
        for one in range(filled, last + 1):
            found[one] = max(found[one], running)
        filled = max(filled, part)
        running += change
        if since <= at < until:
            found[part] = max(found[part], running)
    return found


def read_marks(facts: Sequence[Fact], end: float) -> Marks:
    """The times in which the call itself or a call below it asked a person, and its lost attempts."""
    asked: list[Interval] = []
    below: list[Interval] = []
    lost: list[LostAttempt] = []
    open_since: dict[str, tuple[float, list[Interval]]] = {}
    started_at, spent_before_s, lost_at = 0.0, 0.0, None
    for fact in facts:
        match fact:
            case Asked(at, question):
                is_below = question.kind == "below" or bool(question.below)
                open_since[question.id] = (at, below if is_below else asked)
            case Answered(at, name) if name in open_since:
                since, kind = open_since.pop(name)
                kind.append((since, at))
            case Interrupted(_, spent_s):
                lost_at = started_at + max(0.0, spent_s - spent_before_s)
            case Started(at, attempt, spent_s=spent_s):
                if attempt > 1 and started_at:
                    ran_s = at - started_at if spent_s is None else spent_s - spent_before_s
                    loss = started_at + max(0.0, ran_s) if lost_at is None else lost_at
                    lost.append((started_at, min(at, loss), at))
                started_at, spent_before_s, lost_at = at, spent_s or spent_before_s, None
            case Finished(at):
                end = at
            case _:
                pass
    for since, kind in open_since.values():
        kind.append((since, end))
    return sorted(asked), sorted(below), lost


def _is_shown(one: CallOutline, query: CallQuery) -> bool:
    slow = query.slower_than
    return (
        (not query.outcome or one.outcome in query.outcome.split(","))
        and (one.is_asked or not query.is_asked)
        and (slow is None or _is_slower(one, slow))
    )


def _is_slower(one: CallOutline, slow: Mapping[tuple[str, str], float]) -> bool:
    most_s = slow.get((one.server, one.tool))
    return one.outcome == "ok" and one.ran_s is not None and most_s is not None and one.ran_s > most_s


def _importance(one: CallOutline) -> tuple[bool, float]:
    """Failed calls are drawn before others, and long ones before short ones, which would not be seen."""
    return one.outcome != "ok", (one.finished or one.opened) - one.opened


def _runs(outlines: Iterable[CallOutline]) -> list[Interval]:
    return [(one.started, one.finished) for one in outlines if one.started and one.finished]


def _tool_summaries(
    tools: Sequence[tuple[str, str]], within: Sequence[CallOutline], shown: set[str]
) -> list[ToolSummary]:
    def name(one: CallOutline) -> tuple[str, str]:
        return one.server, one.tool

    groups = {key: list(calls) for key, calls in groupby(sorted(within, key=name), key=name)}
    return [_tool_summary(key, groups.get(key, []), shown) for key in tools]


def _tool_summary(key: tuple[str, str], calls: Sequence[CallOutline], shown: set[str]) -> ToolSummary:
    took = sorted(
        one.finished - one.started for one in calls if one.outcome == "ok" and one.started and one.finished
    )
    p50, p95 = (round(quantile(took, part), 3) if took else None for part in (0.5, P95))
    failed = sum(one.outcome in FAILED_OUTCOMES for one in calls)
    server, tool = key
    return ToolSummary(tool, server, len(calls), sum(one.id in shown for one in calls), failed, p50, p95)


async def _spans(
    journal: Journal, outlines: Sequence[CallOutline], tools: Sequence[tuple[str, str]]
) -> list[CallSpan]:
    retried = set(await journal.retried([one.id for one in outlines]))
    marked = [one for one in outlines if one.id in retried or _has_marks(one)]
    marks: dict[str, Marks] = {}
    for one in nlargest(MAX_MARKED, marked, key=lambda one: one.opened):
        marks[one.id] = await _marks(journal, one.id, one.opened if one.finished is None else one.finished)
    return await asyncio.to_thread(_draw, outlines, tools, marks)


def _draw(
    outlines: Sequence[CallOutline], tools: Sequence[tuple[str, str]], marks: Mapping[str, Marks]
) -> list[CallSpan]:
    places = {key: place for place, key in enumerate(tools)}
    found: list[CallSpan] = []
    for one in sorted(outlines, key=lambda one: one.opened):
        end = one.opened if one.finished is None else one.finished
        span = CallSpan(one.id, places[one.server, one.tool], one.opened, one.started, end, one.outcome or "")
        if one.id in marks:
            asked, below, lost = marks[one.id]
            span = replace(span, asked=asked, below=below, lost=lost)
        elif one.approved in APPROVED_BY_PEOPLE:
            span = replace(span, asked=[(one.opened, one.started or end)])
        found.append(span)
    return found


def _has_marks(one: CallOutline) -> bool:
    return one.is_asked or has_stood_still(one)


async def _marks(journal: Journal, call: str, end: float) -> Marks:
    try:
        return read_marks([entry.fact for entry in await journal.facts(call)], end)
    except StoreError:
        return [], [], []  # damaged: what is known of it without its facts is drawn
