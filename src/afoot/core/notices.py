"""`notice` says how long a silent tool runs, or on whom it waits (T5); `is_stalled` if it advances no more.

Other signs of life are here, too: the stages of a silent tool, and the summary of a child call.
"""

from msgspec.structs import replace

from afoot.core.call import Call, State
from afoot.core.facts import ChildSummary, Fact, Finished, Opened, Question, Reading, Started

STALL_S = 10.0  # a call that advances no more is stalled after this, and after STALL_GAPS usual gaps
STALL_GAPS = 4
SILENT_S = 30.0  # one without an idle limit that never reported is stalled after the default of that limit
_STAGES: dict[type[Fact], tuple[tuple[int, str], ...]] = {
    Opened: ((0, "started"),),
    Started: ((25, "initialising"), (50, "executing")),
    Finished: ((100, "completed"),),
}
_STAGES_TOTAL = 100.0
FORM_KINDS = ("approval", "form", "url")  # of questions to a person
SHORT_ID_CHARS = 8  # of a call's id, its last ones: enough for a person to name it


def summarize_child(call: Call, above: str) -> ChildSummary:
    """A call as the followers of the call `above` it see it."""
    latest = call.latest
    numbers = (None, None, None) if latest is None else (latest.progress, latest.total, latest.message)
    parent = None if call.opened.parent == above else call.opened.parent
    outcome = None if call.end is None else call.end.outcome
    return ChildSummary(call.id, call.opened.tool, call.state.value, outcome, *numbers, parent)


def waiting_on(call: Call) -> str | None:
    """The one on whom the call waits, if it waits."""
    return "person" if call.open else None


def is_stalled(
    call: Call, now: float, heard: float, usual_s: float | None = None, advanced: float | None = None
) -> bool:
    """Whether a call has not advanced for far longer than it usually does, and no clock minds that (C5).

    It is alive, or it has no idle limit. `usual_s` is the usual time between two advances; without it, the
    mean of this call counts. `advanced` is the time of its last advance; without it, of its last report.
    """
    if call.started is None or call.state is not State.RUNNING or call.open:
        return False
    latest, is_endless = call.latest, call.opened.limits.idle_s is None
    if latest is None:
        return is_endless and now - max(heard, call.heard) > SILENT_S
    since = _last_advance(call, advanced)
    if usual_s is None:
        usual_s = (latest.at - call.started) / max(1, call.readings + call.contents)
    return (is_endless or heard > since) and now - since > max(STALL_S, STALL_GAPS * usual_s)


def notice(
    call: Call,
    now: float,
    heard: float = 0.0,
    usual_s: float | None = None,
    advanced: float | None = None,
    where: str = "",
) -> Reading:
    """A sign of life from the engine: it has no numbers and touches no clock.

    `where`: the place where a person can answer its question, if the reader cannot be asked (`answer_place`).
    """
    return Reading(now, message=_text(call, now, heard, usual_s, advanced, where), source="engine")


def answer_place(question: Question, console: str | None) -> str:
    """The place where a person can answer a question, in words (Q5); "" if it is not known or not a person's.

    `console`: its address; "" if that is not known, None if there is no console.
    """
    is_for_person = question.kind in FORM_KINDS or (question.kind == "below" and question.below)
    if not is_for_person or console == "":
        return ""
    if console is None:
        return "which nobody can give here, as this gateway has no console"
    call = (question.below or question.id).partition(".")[0][-SHORT_ID_CHARS:]
    return f"which a person can give in the console at {console}/ or with `afoot answer {call}`"


def lifecycle_stages(fact: Fact) -> list[Reading]:
    """The readings that `lifecycle = "stages"` shows at this fact."""
    if type(fact) is Finished and fact.outcome != "ok":
        return []  # a failed call never shows 100
    steps = _STAGES.get(type(fact), ())
    return [Reading(fact.at, float(at), _STAGES_TOTAL, name, source="engine") for at, name in steps]


def within_stage(reading: Reading) -> Reading:
    """A reading of the tool as `lifecycle = "stages"` shows it: its numbers as a part of *executing*.

    Numbers without a total say nothing about that part, so only their message is shown.
    """
    if reading.progress is None or not reading.total:
        return replace(reading, progress=None, total=None)
    share = min(1.0, max(0.0, reading.progress / reading.total))
    begin, _ = _STAGES[Started][-1]
    at = begin + share * (_STAGES_TOTAL - begin)
    return replace(
        reading, progress=min(at, _STAGES_TOTAL - 1.0), total=_STAGES_TOTAL
    )  # all of it: at the end


def _last_advance(call: Call, advanced: float | None) -> float:
    """The time of the last advance: a reading that said more, or a report with content, or a start."""
    if advanced is None:
        advanced = 0.0 if call.latest is None else call.latest.at
    return max(advanced, call.heard)


def _text(
    call: Call, now: float, heard: float, usual_s: float | None, advanced: float | None, where: str
) -> str:
    if call.open:
        question = next(iter(call.open.values()))
        what = "waiting for approval" if question.kind == "approval" else "waiting for an answer"
        what = f"{what}, {where}" if where else what
        return f"{what}: {question.message}" if question.message else what
    if call.state is State.QUEUED:
        if call.admitted is not None:
            return f"{call.admitted.what}, {now - call.admitted.at:.0f} s"
        return f"queued, {now - call.opened.at:.0f} s"
    if call.state is State.CANCELLING:
        return "cancelling"
    if is_stalled(call, now, heard, usual_s, advanced):
        since = _last_advance(call, advanced)
        silent = f"silent for {now - max(heard, since):.0f} s"
        return f"alive, but no advance for {now - since:.0f} s" if heard > since else silent
    hindered = "" if call.hindered is None else f", {call.hindered.by}"
    return f"running, {call.on_clock(now):.0f} s{hindered}"
