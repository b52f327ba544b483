"""What the engine says for a tool that is silent: on whom a call waits, or how long it runs (T5)."""

from afoot.core.call import Call, State
from afoot.core.facts import Fact, Finished, Opened, Reading, Started


def waiting_on(call: Call) -> str | None:
    """On whom the call waits, if on anybody."""
    return "person" if call.open else None


def notice(call: Call, now: float) -> Reading:
    """A sign of life from the engine: no number, no total, no touch on a clock."""
    return Reading(now, message=_text(call, now), source="engine")


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


def _text(call: Call, now: float) -> str:
    if call.open:
        question = next(iter(call.open.values()))
        return f"waiting for an answer: {question.message}" if question.message else "waiting for an answer"
    if call.state is State.QUEUED:
        return f"queued, {now - call.opened.at:.0f} s"
    if call.state is State.CANCELLING:
        return "cancelling"
    return f"running, {call.on_clock(now):.0f} s"
