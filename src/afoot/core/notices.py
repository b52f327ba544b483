"""What the engine says for a tool: on whom a silent one waits, or how long it runs (T5); what is below it."""

from msgspec import Struct

from afoot.core.call import Call, State
from afoot.core.facts import Fact, Finished, Opened, Reading, Started

STALL_S = 10.0
STALL_GAPS = 4


class Child(Struct, frozen=True, omit_defaults=True):
    """A call below another, as those are told of it who follow the one above (P8)."""

    id: str
    tool: str
    state: str
    outcome: str | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    parent: str | None = None  # the call right above it, if that is not the one that is followed


def brief(call: Call, above: str) -> Child:
    """A call as it is told of to those who follow the one above."""
    latest = call.latest
    numbers = (None, None, None) if latest is None else (latest.progress, latest.total, latest.message)
    parent = None if call.opened.parent == above else call.opened.parent
    outcome = None if call.end is None else call.end.outcome
    return Child(call.id, call.opened.tool, call.state.value, outcome, *numbers, parent)


def waiting_on(call: Call) -> str | None:
    """On whom the call waits, if on anybody."""
    return "person" if call.open else None


def is_stalled(call: Call, now: float, heard: float, usual_s: float | None = None) -> bool:
    """Alive, but not advancing for far longer than it usually takes between two reports (C5).

    `usual_s` is that time where more is known of it than its mean.
    """
    latest = call.latest
    if latest is None or call.started is None or call.state is not State.RUNNING or call.open:
        return False
    if usual_s is None:
        usual_s = (latest.at - call.started) / max(1, call.readings + call.contents)
    return heard > latest.at and now - latest.at > max(STALL_S, STALL_GAPS * usual_s)


def notice(call: Call, now: float, heard: float = 0.0, usual_s: float | None = None) -> Reading:
    """A sign of life from the engine: no number, no total, no touch on a clock."""
    return Reading(now, message=_text(call, now, heard, usual_s), source="engine")


def stages(fact: Fact) -> list[Reading]:
    """The stages that `lifecycle = "stages"` shows at this fact, for a tool that reports nothing itself."""
    if type(fact) is Finished and fact.outcome != "ok":
        return []  # a failed call never shows 100
    steps = _STAGES.get(type(fact), ())
    return [Reading(fact.at, float(at), 100.0, name, source="engine") for at, name in steps]


_STAGES: dict[type[Fact], tuple[tuple[int, str], ...]] = {
    Opened: ((0, "started"),),
    Started: ((25, "initialising"), (50, "executing")),
    Finished: ((100, "completed"),),
}


def _text(call: Call, now: float, heard: float, usual_s: float | None) -> str:
    if call.open:
        question = next(iter(call.open.values()))
        if question.kind == "approval":
            return f"waiting for approval: {question.message}"
        return f"waiting for an answer: {question.message}" if question.message else "waiting for an answer"
    if call.state is State.QUEUED:
        if call.admitted is not None:
            return f"{call.admitted.what}, {now - call.admitted.at:.0f} s"
        return f"queued, {now - call.opened.at:.0f} s"
    if call.state is State.CANCELLING:
        return "cancelling"
    if is_stalled(call, now, heard, usual_s) and call.latest is not None:
        return f"alive, but no advance for {now - call.latest.at:.0f} s"
    hindered = "" if call.hindered is None else f", {call.hindered.by}"
    return f"running, {call.on_clock(now):.0f} s{hindered}"
