"""`log_lines` prints the history of one call: its state or outcome, then its events in order.

Pure: entries and readings go in, lines for a terminal come out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from afoot.cli.terminal.call_words import STATES, state_of, waiting_text
from afoot.cli.terminal.fact_text import describe_fact, failure_text, reading_text
from afoot.cli.terminal.live.live_state import CallNode
from afoot.cli.terminal.text import (
    clean,
    format_progress,
    format_span,
    format_time,
    short_id,
    short_question_id,
)
from afoot.core.call import Call, fold, note
from afoot.core.facts import Answered, Entry, Fact, Failure, Finished, Reading, Reported

MAX_SHOWN_READINGS = 12  # and as many checkpoints; the number between two is printed
TRACE_LINES = 30  # the last lines of a stack trace
JsonCall = Mapping[str, Any]  # a call as the API shows it


class StoredReading(Struct, frozen=True):
    """A reading of the history; `left_out` counts the readings before it that are not shown."""

    reading: Reading
    left_out: int = 0


def log_lines(
    items: Sequence[Entry | StoredReading], view: JsonCall | None = None, children: Sequence[JsonCall] = ()
) -> Iterator[str]:
    """All lines about a call.

    `view` is the call as the API shows it, with parts that no fact has. `children` are some of its calls.
    """
    facts = [item.fact for item in items if isinstance(item, Entry)]
    first = next((item for item in items if isinstance(item, Entry)), None)
    if first is None:
        return
    call = fold(first.call, facts)
    if call.latest is None:
        for item in items:
            if isinstance(item, StoredReading):
                note(call, item.reading)
    yield from _summary_lines(call, view or {})
    yield from _child_lines((view or {}).get("children"), children)
    yield ""
    for item, left_out in choose_items(items):
        when = item.fact.at if isinstance(item, Entry) else item.reading.at
        more = f" ({left_out} more before it)" if left_out else ""
        yield f"{when - call.opened.at:9.3f}  {_item_line(item, call)}{more}"
        if isinstance(item, Entry) and isinstance(item.fact, Finished) and item.fact.failure is not None:
            yield from (f"{'':11}| {line}" for line in trace_lines(item.fact.failure)[-TRACE_LINES:])


def choose_items(items: Sequence[Entry | StoredReading]) -> Iterator[tuple[Entry | StoredReading, int]]:
    """The items to show, each with the number of its kind before it that are left out.

    All facts are shown. Of many readings and checkpoints, the first, the last and some between are shown.
    """
    kept = {*_choose_evenly(items, StoredReading), *_choose_evenly(items, Entry)}
    left_out: dict[type[Entry | StoredReading], int] = {Entry: 0, StoredReading: 0}
    for number, item in enumerate(items):
        kind = type(item)
        if isinstance(item, StoredReading):
            left_out[kind] += item.left_out
        elif not _is_checkpoint(item.fact):
            yield item, 0
            continue
        if number in kept:
            yield item, left_out[kind]
            left_out[kind] = 0
        else:
            left_out[kind] += 1


def outcome_lines(call: Call, end: Finished) -> Iterator[str]:
    """The lines for the end of a call: its outcome, its duration, and its last progress."""
    outcome = end.outcome.replace("_", " ")
    after = f"after {format_span(end.at - call.opened.at)}"
    far = _progress_at_end(call, end)
    if end.failure is None:
        yield f"{outcome} {after}{far and f' at {far}'}"
        return
    reason = failure_text(end)
    yield f"{outcome} {after}: {reason}"
    if far and far not in reason:
        yield f"it had come to {far}"
    if end.failure.retryable:
        wait = end.failure.retry_after_s
        yield f"it may be tried again{f' in {format_span(wait)}' if wait else ''}"
    if end.failure.hint:
        yield f"what you can do: {clean(end.failure.hint)}"


def trace_lines(failure: Failure) -> list[str]:
    """The lines of a stack trace, without the words of the error at its end: the message has them."""
    trace = failure.trace.rstrip()
    words = failure.message.partition(" crashed: ")[2].rstrip()
    if words and trace.endswith(f"\n{words}"):
        trace = trace[: -len(words)]
    return [clean(line) for line in trace.split("\n") if line]


def _choose_evenly(items: Sequence[Entry | StoredReading], kind: type[Entry | StoredReading]) -> set[int]:
    """The indexes of the readings, or of the checkpoints, that are shown."""
    found = [
        number
        for number, item in enumerate(items)
        if isinstance(item, kind) and (isinstance(item, StoredReading) or _is_checkpoint(item.fact))
    ]
    step = (len(found) - 1) / (MAX_SHOWN_READINGS - 1)
    return set(found) if step <= 1 else {found[round(number * step)] for number in range(MAX_SHOWN_READINGS)}


def _is_checkpoint(fact: Fact) -> bool:
    """Whether a fact is a checkpoint and nothing else."""
    if not isinstance(fact, Reported) or fact.late:
        return False
    return bool(fact.checkpoint) and not (fact.partial or fact.data)


def _summary_lines(call: Call, view: JsonCall) -> Iterator[str]:
    opened = call.opened
    yield f"call {call.id}: {clean(opened.tool)} on {clean(opened.server)}, {format_time(opened.at)}"
    yield from (f"  {line}" for line in _state_lines(call))
    measured = [one.cpu_s for one in (call.end, call.released) if one is not None]
    if cpu_s := max(measured, default=0.0):
        yield f"  {format_span(cpu_s)} of processor time"
    if call.end is not None and call.end.failure is not None and call.end.failure.side_effects != "none":
        yield f"  side effects: {call.end.failure.side_effects}"
    for word, name in (("again of call", opened.rerun_of), ("called by call", opened.parent)):
        if name:
            yield f"  {word} {short_id(name)}: afoot log {short_id(name)}"
    if trace := view.get("trace"):
        yield f"  trace {clean(str(trace))}"


def _child_lines(counts: Mapping[str, int] | None, calls: Sequence[JsonCall]) -> Iterator[str]:
    if not counts or not counts.get("total"):
        return
    words = [f"{counts[word]} {word}" for word in ("live", "failed") if counts.get(word)]
    yield f"  called {counts['total']} others{': ' if words else ''}{', '.join(words)}"
    for one in sorted(calls, key=lambda one: one["opened"]):
        state = str(one["outcome"] or one["state"]).replace("_", " ")
        far = format_progress(one["progress"], one["total"], one.get("source", "tool"))
        parts = (short_id(one["id"]), clean(one["tool"]), state, format_span(one["elapsed_s"]), far)
        yield f"    {'  '.join(part for part in parts if part)}"
    if len(calls) < counts["total"] and calls:
        yield f"    … {counts['total'] - len(calls)} more"


def _state_lines(call: Call) -> Iterable[str]:
    if call.end is not None:
        return outcome_lines(call, call.end)
    far = reading_text(call.latest) if call.latest is not None else ""
    asks = [f"it asks: {clean(one.message) or one.kind}" for one in call.open.values() if one.kind != "below"]
    word = waiting_text(call) if call.open else STATES[state_of(CallNode(call), call.heard)].word
    return [f"{word}{far and f', at {far}'}", *asks]


def _progress_at_end(call: Call, end: Finished) -> str:
    """The last progress of an ended call; empty if it reached its total."""
    last = call.latest or (end.failure.last if end.failure is not None else None)
    is_whole = last is not None and last.progress is not None and last.progress == last.total
    if last is None or (end.failure is None and (is_whole or last.source != "tool")):
        return ""
    return format_progress(last.progress, last.total) if end.failure is None else reading_text(last)


def _item_line(item: Entry | StoredReading, call: Call) -> str:
    if isinstance(item, StoredReading):
        return f"{'reading':<9} {reading_text(item.reading)}"
    word, rest = describe_fact(item.fact)
    if isinstance(item.fact, Finished) and item.fact.failure is not None and item.fact.result is None:
        rest = item.fact.outcome  # the summary above has the reason
    return f"{word:<9} {rest}{_answer_note(item.fact, call)}".rstrip()


def _answer_note(fact: Fact, call: Call) -> str:
    """The place and the speed of an answer, in words; empty for other facts."""
    match fact:
        case Answered() if fact.question in call.asked_at:
            where = fact.answer.surface
            took = format_span(fact.at - call.asked_at[fact.question])
            place = f" in the {clean(where)}" if where else ""
            return f"{place}, {took} after {short_question_id(fact.question)}"
        case _:
            return ""
