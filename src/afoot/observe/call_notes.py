"""`CallNotes` collects for telemetry the milestones, attempts, silences and waits of a live call."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from afoot.core.call import Call, State
from afoot.core.facts import (
    Admitted,
    Amended,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Finished,
    HandedOver,
    Hindered,
    Interrupted,
    Logged,
    Opened,
    Redefined,
    Released,
    Reported,
    Started,
)
from afoot.core.notices import is_stalled
from afoot.core.ports import CallerPresence, Tool
from afoot.observe.eta import ProgressPoint, usual_gap

MAX_MILESTONES = 64  # of one call: a span keeps 128 events, and the last is its end
QUARTERS = 4


class ObservedCall(Protocol):
    """The parts of a living call that telemetry reads."""

    @property
    def call(self) -> Call: ...

    @property
    def tool(self) -> Tool: ...

    @property
    def mirror(self) -> object | None: ...

    @property
    def heard(self) -> float: ...

    @property
    def caller_requests(self) -> CallerPresence | None: ...

    @property
    def advanced(self) -> float | None: ...

    @property
    def points(self) -> Sequence[tuple[float, float, float | None, float]]: ...


class Milestone(Struct, frozen=True):
    """An event in the life of a call that its span shows."""

    at: float
    name: str
    about: dict[str, str | int | float | bool] = {}


class AttemptTimes(Struct):
    """The times of one attempt; `why` says what ended it where the call went on."""

    number: int
    began: float
    over: float | None = None
    why: str = ""


class CallNotes(Struct, eq=False):
    """The notes on one call. `on_reading` is called for every reading, so it only compares and stores."""

    live: ObservedCall
    milestones: list[Milestone] = []
    tries: list[AttemptTimes] = []
    first: float | None = None  # when it first reported
    last: float | None = None  # when it last reported, began, or got its answer
    gap_s: float = 0.0  # the longest between two of those
    waits: list[tuple[str, float]] = []  # the kinds of its questions, and the seconds each was open
    late: int = 0  # reports that came after the end
    stalls: int = 0
    quarter: int = 0
    is_stalled: bool = False
    is_over: bool = False  # for its caller

    def on_reading(self, now: float) -> None:
        """Note a reading."""
        if self.first is None:
            self._first(now)
        elif self.last is not None and now - self.last > self.gap_s:
            self.gap_s = now - self.last
        self.last = now
        latest = self.live.call.latest
        if latest is not None and latest.total and latest.progress is not None:
            quarter = min(QUARTERS, int(latest.progress / latest.total * QUARTERS))
            if quarter > self.quarter:
                self._advance(now, quarter)

    def take(self, fact: Fact) -> None:
        """Note a fact."""
        match fact:
            case Opened() | Amended() | Logged() | HandedOver() | Hindered() | Released():
                pass
            case Redefined():
                self._mark(fact.at, "redefined")
            case Admitted():
                self._mark(fact.at, "admitted")
            case Started():
                self._started(fact)
            case Interrupted():
                self._mark(
                    fact.at, "interrupted"
                )  # its attempts were another gateway's, and are told by none
            case Reported():
                if fact.late:
                    self.late += 1
                else:
                    self.on_reading(fact.at)
            case Asked():
                self._mark(fact.at, "asked", kind=fact.question.kind, to=fact.question.to or "anybody")
            case Answered():
                self._answered(fact)
            case CancelRequested():
                self._mark(fact.at, "cancel requested", by=fact.by)
            case Finished():
                self._finished(fact)

    def look(self, now: float) -> None:
        """Look whether the call still advances (C5)."""
        live = self.live
        if live.call.state is not State.RUNNING:
            return
        usual_s = usual_gap([ProgressPoint(*one) for one in live.points])
        was = self.is_stalled
        self.is_stalled = is_stalled(live.call, now, live.heard, usual_s, live.advanced)
        if self.is_stalled and not was:
            self.stalls += 1
            self._mark(now, "stalled")

    def _started(self, fact: Started) -> None:
        if self.tries:
            self.tries[-1].over = fact.at
            self.tries[-1].why = "runner died"
            self._mark(fact.at, "retry", attempt=fact.attempt, unsent=fact.unsent)
        else:
            self._mark(fact.at, "started")
        self.tries.append(AttemptTimes(fact.attempt, fact.at))
        self.last = fact.at
        if self.first is None and self.live.call.readings and self.live.call.latest is not None:
            self.on_reading(self.live.call.latest.at)  # it came before the start was recorded

    def _answered(self, fact: Answered) -> None:
        call = self.live.call
        asked = call.questions.get(fact.question)
        kind = asked.kind if asked is not None else "form"
        self.waits.append((kind, fact.at - call.asked_at.get(fact.question, fact.at)))
        self.last = fact.at  # the time that people take is no silence of the tool
        self._mark(fact.at, "answered", kind=kind, action=fact.answer.action)

    def _finished(self, fact: Finished) -> None:
        if self.tries:
            self.tries[-1].over = fact.at
        if self.first is not None and self.last is not None and fact.at - self.last > self.gap_s:
            self.gap_s = fact.at - self.last
        self.is_over = True
        self.milestones.append(Milestone(fact.at, "finished", {"outcome": fact.outcome}))

    def _first(self, now: float) -> None:
        self.first = now
        if self.last is not None:
            self.gap_s = max(0.0, now - self.last)
        self._mark(now, "first report")

    def _advance(self, now: float, quarter: int) -> None:
        self.quarter = quarter
        if quarter < QUARTERS:
            self._mark(now, "progress", percent=100 * quarter // QUARTERS)

    def _mark(self, at: float, name: str, **about: str | int | float | bool) -> None:
        if len(self.milestones) < MAX_MILESTONES - 1:
            self.milestones.append(Milestone(at, name, about))
