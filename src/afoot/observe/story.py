"""A call's story: how it stands or ended, then what happened when, as lines for a terminal; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from afoot.core.call import Call, fold, note
from afoot.core.facts import Answered, Entry, Fact, Finished, Reading, Reported
from afoot.observe.row import awaited, kind_of
from afoot.observe.terminal import (
    amount,
    at,
    clean,
    lasting,
    reading,
    short,
    short_question,
    told,
    why,
)

READINGS = 12  # of many readings, or checkpoints, so many are told; how many lie between is said
TRACE = 30  # lines of a crash


class Read(Struct, frozen=True):
    """A reading of the history; `left_out` counts those before it that are not told."""

    reading: Reading
    left_out: int = 0


View = Mapping[str, Any]  # a call as the API shows it


def story(
    items: Sequence[Entry | Read], view: View | None = None, below: Sequence[View] = ()
) -> Iterator[str]:
    """The whole story. `view` has what is in none of its facts; `below`: some of the calls it made."""
    facts = [item.fact for item in items if isinstance(item, Entry)]
    first = next((item for item in items if isinstance(item, Entry)), None)
    if first is None:
        return
    call = fold(first.call, facts)
    if call.latest is None:
        for item in items:
            if isinstance(item, Read):
                note(call, item.reading)
    yield from _summary(call, view or {})
    yield from _below((view or {}).get("children"), below)
    yield ""
    for item, left_out in highlights(items):
        when = item.fact.at if isinstance(item, Entry) else item.reading.at
        more = f" ({left_out} more before it)" if left_out else ""
        yield f"{when - call.opened.at:9.3f}  {_line(item, call)}{more}"
        if isinstance(item, Entry) and isinstance(item.fact, Finished) and item.fact.failure is not None:
            lines = item.fact.failure.trace.rstrip().split("\n")[-TRACE:]
            yield from (f"{'':11}| {clean(line)}" for line in lines if line)


def highlights(items: Sequence[Entry | Read]) -> Iterator[tuple[Entry | Read, int]]:
    """What is told, and how many of its kind before it are not: of many readings and checkpoints only some.

    The first, the last, and some between.
    """
    kept = {*_some(items, Read), *_some(items, Entry)}
    left_out: dict[type[Entry | Read], int] = {Entry: 0, Read: 0}
    for number, item in enumerate(items):
        kind = type(item)
        if isinstance(item, Read):
            left_out[kind] += item.left_out
        elif not _is_checkpoint(item.fact):
            yield item, 0
            continue
        if number in kept:
            yield item, left_out[kind]
            left_out[kind] = 0
        else:
            left_out[kind] += 1


def _some(items: Sequence[Entry | Read], kind: type[Entry | Read]) -> set[int]:
    """Which of the readings, or of the checkpoints, are told."""
    found = [
        number
        for number, item in enumerate(items)
        if isinstance(item, kind) and (isinstance(item, Read) or _is_checkpoint(item.fact))
    ]
    step = (len(found) - 1) / (READINGS - 1)
    return set(found) if step <= 1 else {found[round(number * step)] for number in range(READINGS)}


def _is_checkpoint(fact: Fact) -> bool:
    """Whether it is a checkpoint and nothing else."""
    if not isinstance(fact, Reported) or fact.late:
        return False
    return bool(fact.checkpoint) and not (fact.partial or fact.data)


def ended(call: Call, end: Finished) -> Iterator[str]:
    """How a call ended, after how long, and how far it had come."""
    outcome = end.outcome.replace("_", " ")
    after = f"after {lasting(end.at - call.opened.at)}"
    far = _far(call, end)
    if end.failure is None:
        yield f"{outcome} {after}{far and f' at {far}'}"
        return
    reason = why(end)
    yield f"{outcome} {after}: {reason}"
    if far and far not in reason:
        yield f"it had come to {far}"
    if end.failure.retryable:
        wait = end.failure.retry_after_s
        yield f"it may be tried again{f' in {lasting(wait)}' if wait else ''}"


def _summary(call: Call, view: View) -> Iterator[str]:
    opened = call.opened
    yield f"call {call.id}: {clean(opened.tool)} on {clean(opened.server)}, {at(opened.at)}"
    yield from (f"  {line}" for line in _standing(call))
    measured = [one.cpu_s for one in (call.end, call.released) if one is not None]
    if cpu_s := max(measured, default=0.0):
        yield f"  {lasting(cpu_s)} of processor time"
    if call.end is not None and call.end.failure is not None and call.end.failure.side_effects != "none":
        yield f"  side effects: {call.end.failure.side_effects}"
    for word, name in (("again of call", opened.rerun_of), ("called by call", opened.parent)):
        if name:
            yield f"  {word} {short(name)}: afoot log {short(name)}"
    if trace := view.get("trace"):
        yield f"  trace {clean(str(trace))}"


def _below(counts: Mapping[str, int] | None, calls: Sequence[View]) -> Iterator[str]:
    if not counts or not counts.get("total"):
        return
    words = [f"{counts[word]} {word}" for word in ("live", "failed") if counts.get(word)]
    yield f"  called {counts['total']} others{': ' if words else ''}{', '.join(words)}"
    for one in sorted(calls, key=lambda one: one["opened"]):
        state = str(one["outcome"] or one["state"]).replace("_", " ")
        far = amount(one["progress"], one["total"])
        parts = (short(one["id"]), clean(one["tool"]), state, lasting(one["elapsed_s"]), far)
        yield f"    {'  '.join(part for part in parts if part)}"
    if len(calls) < counts["total"] and calls:
        yield f"    … {counts['total'] - len(calls)} more"


def _standing(call: Call) -> Iterable[str]:
    if call.end is not None:
        return ended(call, call.end)
    far = reading(call.latest) if call.latest is not None else ""
    asks = [f"it asks: {clean(one.message) or one.kind}" for one in call.open.values() if one.kind != "below"]
    word = awaited(call) if call.open else kind_of(call)
    return [f"{word}{far and f', at {far}'}", *asks]


def _far(call: Call, end: Finished) -> str:
    """How far it came; nothing of a call that came to its end, which is no news."""
    last = call.latest or (end.failure.last if end.failure is not None else None)
    is_whole = last is not None and last.progress is not None and last.progress == last.total
    if last is None or (end.failure is None and (is_whole or last.source != "tool")):
        return ""
    return amount(last.progress, last.total) if end.failure is None else reading(last)


def _line(item: Entry | Read, call: Call) -> str:
    if isinstance(item, Read):
        return f"{'reading':<9} {reading(item.reading)}"
    word, rest = told(item.fact)
    return f"{word:<9} {rest}{_more(item.fact, call)}".rstrip()


def _more(fact: Fact, call: Call) -> str:
    """What the facts before it say of a fact."""
    match fact:
        case Answered() if fact.question in call.asked_at:
            where = fact.answer.surface
            took = lasting(fact.at - call.asked_at[fact.question])
            return (
                f"{f' in the {clean(where)}' if where else ''}, {took} after {short_question(fact.question)}"
            )
        case _:
            return ""
