"""`clock_view` gives the numbers from which a page can show the clocks of a call between two frames.

All instants are of the gateway's clock. From them a page reads the clocks by the rules of `core.call` and
`core.rules`; `web/lib/call/clock_reading.js` does it on the same test vectors.
"""

from msgspec import UNSET, Struct, UnsetType

from afoot.core.call import Call


class ClockView(Struct, frozen=True):
    """The limits of a call, its last sign of life, and its time on the clock."""

    idle_s: float | None  # null while no idle limit applies
    ceiling_s: float | None
    answer_s: float
    heard: float | None  # the last sign of life: report, heartbeat, child call, start, answer
    spent_s: float  # on the clock before `since`, without the time of people
    since: float | None  # on the clock since; null while the clocks stand still
    patient_idle_s: float | UnsetType = UNSET  # the idle limit that begins with its first report
    below: list[str] | UnsetType = UNSET  # open questions of calls below it, which stop its clocks, too


def clock_view(call: Call, heard: float = 0.0) -> ClockView:
    """The clocks of a call; `heard` is the last sign of life that is no fact."""
    limits = call.opened.limits
    is_patient = call.is_patient
    return ClockView(
        None if is_patient else limits.idle_s,
        limits.ceiling_s,
        limits.answer_s,
        last_heard(call, heard),
        call.spent_s,
        call.since,
        limits.idle_s if is_patient and limits.idle_s is not None else UNSET,
        [one.id for one in call.open.values() if one.kind == "below" or one.below] or UNSET,
    )


def last_heard(call: Call, heard: float) -> float | None:
    """The sign of life from which silence is counted; None if there was none yet."""
    return max(call.heard, heard) or None
