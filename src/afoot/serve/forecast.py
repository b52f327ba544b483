"""What is expected of a call that runs: how long it still takes, how fast it goes, and whether it stalls."""

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.call import State
from afoot.core.notices import is_stalled
from afoot.engine.engine import Engine
from afoot.engine.live import Live
from afoot.observe.eta import Eta, Point, estimate, rate, usual_gap
from afoot.serve.view import CallView, Children, view

ENOUGH = 5  # readings from which on a call has a usual gap


class Outlook(Struct, frozen=True):
    """What is expected of one call: its ETA, what it does a second, whether it has stopped advancing.

    `detached`: it runs on while no request of its caller follows it, and none is due (X3).
    """

    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    detached: bool = False


UNKNOWN = Outlook()


def forecast(engine: Engine, live: Live, now: float) -> Eta | None:
    """How long it still takes; None while it does not run, or nobody knows."""
    call = live.call
    if call.state is not State.RUNNING or call.open:
        return None
    return estimate(_points(live), call.on_clock(now), engine.usual.of(call.opened.tool))


def outlook(engine: Engine, live: Live, now: float) -> Outlook:
    """All that is expected of it."""
    call = live.call
    if call.state is not State.RUNNING or call.open:
        return UNKNOWN
    return Outlook(
        forecast(engine, live, now),
        rate(_points(live), call.on_clock(now)),
        is_stalled(call, now, live.heard, usual_s(live)),
        live.request is not None and is_detached(live, now),
    )


def is_detached(live: Live, now: float) -> bool:
    """Whether no request of its caller follows it, and none is due: it runs for nobody, or is a task (X3)."""
    return live.attached <= 0 and now >= live.awaited and not _is_due(live, now)


def usual_s(live: Live) -> float | None:
    """The longest that it usually takes between two advances; None where too little is known (C5)."""
    return usual_gap(_points(live)) if len(live.points) >= ENOUGH else None


def foreseen(engine: Engine, live: Live, now: float, shown: CallView | None = None) -> CallView:
    """The call as it is now, and what is expected of it."""
    ahead = outlook(engine, live, now)
    shown = view(live.call, now) if shown is None else shown
    below = live.below
    children = None if below is None else Children(below.total, len(below.children), below.failed)
    return replace(
        shown, eta=ahead.eta, rate=ahead.rate, stalled=ahead.stalled, detached=ahead.detached,
        children=children,
    )  # fmt: skip


def _is_due(live: Live, now: float) -> bool:
    """Whether its caller still asks its user what somebody else has answered: it comes back (Q1, A5)."""
    call = live.call
    last = next(reversed(call.answers.values()), None)
    if last is None or not (live.round and live.can_ask) or last.answer.by == call.opened.caller:
        return False
    asked = call.questions[last.question]
    is_put = asked.kind in ("form", "approval") and asked.to != "operator"
    return is_put and now < call.asked_at[asked.id] + call.opened.limits.answer_s


def _points(live: Live) -> list[Point]:
    return [Point(*one) for one in live.points]
