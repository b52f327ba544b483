"""A call as its facts tell it: `Call = fold(facts)`; what may follow is decided in `rules`."""

from collections.abc import Iterable
from enum import StrEnum
from math import ulp

from msgspec import Raw, Struct

from afoot.core.facts import (
    NOTHING,
    Admitted,
    Amended,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Finished,
    Hindered,
    Logged,
    Opened,
    Question,
    Reading,
    Released,
    Reported,
    Started,
)

APPROVAL = "afoot_approval"  # the key of the question whether a call may start
STEP = 1e-6  # small enough that a day of messages does not use up the tool's next whole number


class State(StrEnum):
    """Where a call is in its life. Waiting is no state: a call waits while `open` is not empty."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINISHED = "finished"


class Call(Struct, eq=False):
    """One dispatch of a tool. Changed in place, by `evolve`, `note` and `rest` alone: there is one writer."""

    id: str
    opened: Opened
    state: State = State.QUEUED
    seq: int = 1
    attempt: int = 0
    begun: bool = False  # whether an attempt before this one had the request
    admitted: Admitted | None = None
    started: float | None = None
    heard: float = 0.0  # 0: not since it was opened
    since: float | None = None  # on the clock since
    spent_s: float = 0.0  # on the clock before `since`, over all attempts
    latest: Reading | None = None
    readings: int = 0
    contents: int = 0  # reports that are facts
    open: dict[str, Question] = {}
    asked_at: dict[str, float] = {}
    asked_by: dict[str, int] = {}  # the attempt that did
    questions: dict[str, Question] = {}
    answers: dict[str, Answered] = {}
    partials: list[Raw] = []
    checkpoint: Raw = NOTHING
    amended: Amended | None = None
    hindered: Hindered | None = None  # what slows or stops it now
    cancel: CancelRequested | None = None
    end: Finished | None = None
    released: Released | None = None
    cpu_s: float = 0.0  # processor time, where it runs in a process of its own

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
        return self.opened.trusted and (self.opened.idempotent or self.opened.read_only)

    @property
    def is_harmless(self) -> bool:
        """Whether it changes nothing; what a stranger says of its own tool proves nothing."""
        return self.opened.trusted and self.opened.read_only

    @property
    def is_patient(self) -> bool:
        """Whether silence does not count yet: it is a stranger's tool that has not reported (C1)."""
        return self.opened.limits.patient and not (self.readings or self.contents)

    @property
    def arguments(self) -> Raw:
        """What the tool gets: the caller's arguments, or what a hook made of them."""
        return self.opened.arguments if self.amended is None else self.amended.arguments

    @property
    def approved(self) -> str:
        """How it came to run: auto, allowlist, user; or none (A3)."""
        was_asked = any(one.kind == "approval" and one.key == APPROVAL for one in self.questions.values())
        if self.opened.approval != "ask" and not was_asked:
            return self.opened.approval
        return "user" if self.started is not None else "none"

    def on_clock(self, now: float) -> float:
        """Seconds this call has run, human time left out."""
        return self.spent_s if self.since is None else self.spent_s + now - self.since


class Series(Struct, eq=False):
    """Progress that only rises, as the protocol demands: one series a call, over rounds and attempts (P4)."""

    last: float | None = None
    total: float | None = None
    repaired: int = 0

    def rise(self, reading: Reading) -> tuple[float, float | None]:
        """The progress and total to send for this reading: the tool's own wherever that rises."""
        value = reading.progress
        last = self.last
        if last is None:
            wire = 0.0 if value is None else value
        elif value is not None and value > last:
            wire = value
        else:
            # Never lost in the float, never a whole number's worth: the tool's next number still rises.
            wire = last + max(STEP, 4 * ulp(last))
            wire = round(wire, 6) if wire < 1e9 else wire
            self.repaired += value is not None
        self.last = wire
        if value is None and reading.source == "engine":
            return wire, self.total if self.total is not None and wire < self.total else None
        if reading.total is not None or value is not None:
            self.total = reading.total
        total = self.total
        if total is None or wire <= total:
            return wire, total
        # Past the total it is raised; but where the tool says that it is not there yet, no total beats a lie.
        return wire, None if value is not None and value < total else wire


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


def rest(call: Call, now: float) -> None:
    """Its gateway died, so nobody runs it: it waits to begin, as before its first start (C1, U4).

    What it had run until its last sign counts, whatever a wall clock says.
    """
    if call.since is not None:
        known = max(call.since, call.heard, call.latest.at if call.latest else 0.0)
        call.spent_s, call.since = call.spent_s + known - call.since, None
    if call.state is State.RUNNING:
        call.state = State.QUEUED
    call.heard, call.admitted, call.hindered = now, None, None
    call.asked_at = {question: min(at, now) for question, at in call.asked_at.items()}


def evolve(call: Call, fact: Fact) -> None:
    """Take in the next fact. That it may follow was decided before."""
    call.seq += 1
    match fact:
        case Opened():
            raise ValueError(f"call {call.id} was opened twice")
        case Amended() | Admitted() | Hindered():
            _keep(call, fact)
        case Started():
            spent_s = call.spent_s if call.since is None else call.spent_s + fact.at - call.since
            call.spent_s = spent_s if fact.spent_s is None else fact.spent_s
            call.started = fact.at if call.started is None else call.started
            call.begun = call.begun or (call.attempt > 0 and not fact.unsent)
            call.state, call.attempt, call.heard = State.RUNNING, fact.attempt, fact.at
            call.since, call.hindered = None if call.open else fact.at, None
        case Reported():
            _report(call, fact)
        case Logged():
            pass
        case Asked():
            _ask(call, fact)
        case Answered():
            _answer(call, fact)
        case CancelRequested():
            call.cancel, call.state = fact, State.CANCELLING
        case Finished():
            call.spent_s += 0.0 if call.since is None else fact.at - call.since
            call.state, call.end, call.since, call.cpu_s = State.FINISHED, fact, None, fact.cpu_s
            call.open.clear()
        case Released():
            call.released, call.cpu_s = fact, max(call.cpu_s, fact.cpu_s)


def _keep(call: Call, fact: Amended | Admitted | Hindered) -> None:
    match fact:
        case Amended():
            call.amended = fact
        case Admitted():
            call.admitted = fact
        case Hindered():
            call.hindered = fact if fact.by else None


def _report(call: Call, fact: Reported) -> None:
    if fact.late:
        return
    call.heard = fact.at
    call.contents += 1
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
    call.asked_at[question.id], call.asked_by[question.id] = fact.at, call.attempt


def _answer(call: Call, fact: Answered) -> None:
    call.open.pop(fact.question, None)  # one who came late may not know that it was asked
    call.answers[fact.question] = fact
    if not call.open:
        call.heard = fact.at
        call.since = fact.at if call.state is State.RUNNING else None
