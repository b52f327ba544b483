"""A call as its facts tell it: `Call = fold(facts)`; what may follow is decided in `rules`."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Raw

from afoot.core.facts import (
    NOTHING,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Finished,
    Logged,
    Opened,
    Question,
    Reading,
    Released,
    Reported,
    Started,
)


class State(StrEnum):
    """Where a call is in its life. Waiting is no state: a call waits while `open` is not empty."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINISHED = "finished"


class Call:
    """One dispatch of a tool. Changed in place, by `evolve` and `note` alone: there is one writer."""

    __slots__ = (
        "answers", "asked_at", "attempt", "cancel", "checkpoint", "end", "heard", "id", "latest", "open",
        "opened", "partials", "questions", "readings", "released", "seq", "since", "spent_s", "started",
        "state",
    )  # fmt: skip

    def __init__(self, call_id: str, opened: Opened) -> None:
        self.id = call_id
        self.opened = opened
        self.state = State.QUEUED
        self.seq = 1
        self.attempt = 0
        self.started: float | None = None
        self.heard = opened.at
        self.since: float | None = None  # on the clock since
        self.spent_s = 0.0  # on the clock before `since`, over all attempts
        self.latest: Reading | None = None
        self.readings = 0
        self.open: dict[str, Question] = {}
        self.asked_at: dict[str, float] = {}
        self.questions: dict[str, Question] = {}
        self.answers: dict[str, Answered] = {}
        self.partials: list[Raw] = []
        self.checkpoint: Raw = NOTHING
        self.cancel: CancelRequested | None = None
        self.end: Finished | None = None
        self.released: Released | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the caller's answer is settled."""
        return self.state is State.FINISHED

    @property
    def is_waiting(self) -> bool:
        """Whether a question of this call is open, so that its clocks stand still."""
        return bool(self.open)

    @property
    def is_safe(self) -> bool:
        """Whether it may be run once more after its runner died (U4)."""
        return self.opened.idempotent or self.opened.read_only

    def on_clock(self, now: float) -> float:
        """Seconds this call has run, human time left out."""
        return self.spent_s if self.since is None else self.spent_s + now - self.since


def fold(call_id: str, facts: Iterable[Fact]) -> Call:
    """The call that these facts tell of; the first must be `Opened`."""
    it = iter(facts)
    first = next(it)
    if not isinstance(first, Opened):
        raise ValueError(f"call {call_id} does not begin with Opened but {type(first).__name__}")
    call = Call(call_id, first)
    for fact in it:
        evolve(call, fact)
    return call


def note(call: Call, reading: Reading) -> None:
    """Take in a reading: the newest value wins, and it is no fact."""
    call.latest = reading
    call.readings += 1


def evolve(call: Call, fact: Fact) -> None:
    """Take in the next fact. That it may follow was decided before."""
    call.seq += 1
    match fact:
        case Opened():
            raise ValueError(f"call {call.id} was opened twice")
        case Started():
            _start(call, fact)
        case Reported():
            _report(call, fact)
        case Logged():
            pass
        case Asked():
            _ask(call, fact)
        case Answered():
            _answer(call, fact)
        case CancelRequested():
            call.cancel = fact
            call.state = State.CANCELLING
        case Finished():
            _finish(call, fact)
        case Released():
            call.released = fact


def _start(call: Call, fact: Started) -> None:
    if call.since is not None:
        call.spent_s += fact.at - call.since
    call.state = State.RUNNING
    call.attempt = fact.attempt
    call.started = fact.at if call.started is None else call.started
    call.heard = fact.at
    call.since = None if call.open else fact.at


def _report(call: Call, fact: Reported) -> None:
    if fact.late:
        return
    call.heard = fact.at
    if fact.partial:
        call.partials.append(fact.partial)
    if fact.checkpoint:
        call.checkpoint = fact.checkpoint
    if fact.progress is not None or fact.message is not None:
        call.latest = Reading(fact.at, fact.progress, fact.total, fact.message)


def _ask(call: Call, fact: Asked) -> None:
    question = fact.question
    if call.since is not None:
        call.spent_s += fact.at - call.since
        call.since = None
    call.open[question.id] = question
    call.questions[question.id] = question
    call.asked_at[question.id] = fact.at


def _answer(call: Call, fact: Answered) -> None:
    del call.open[fact.question]
    call.answers[fact.question] = fact
    if not call.open:
        call.heard = fact.at
        call.since = fact.at if call.state is State.RUNNING else None


def _finish(call: Call, fact: Finished) -> None:
    if call.since is not None:
        call.spent_s += fact.at - call.since
        call.since = None
    call.state = State.FINISHED
    call.end = fact
    call.open.clear()
