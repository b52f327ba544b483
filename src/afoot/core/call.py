"""A call as its facts tell it: `Call = fold(facts)`; what may follow is decided in `rules`.

Nothing outside this module assigns to a field of a `Call` (`tests/call_writes.py` looks).
"""

from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from math import ulp

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.core.facts import (
    NOTHING,
    Admitted,
    Amended,
    Answered,
    Asked,
    CancelRequested,
    ChildSummary,
    Fact,
    Finished,
    HandedOver,
    Hindered,
    Interrupted,
    Logged,
    Opened,
    Question,
    Reading,
    Redefined,
    Released,
    Reported,
    Result,
    Sample,
    Started,
)

APPROVAL = "afoot_approval"  # the key of the question whether a call may start
INSTEAD = "afoot_instead"  # the key of the question what to do in place of a call that was rejected
GATEWAY_DIED = "the gateway died"  # why an attempt was followed by another, in `Started.why`
MAX_REMOTE = 1000  # calls below a call at a gateway behind this one that are known
STEP = 1e-6  # by which progress rises where the tool names no number; a day of messages adds less than 1


class State(StrEnum):
    """The states of a call. Waiting is none of them: a call waits while `open` is not empty."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINISHED = "finished"


# Which fact may follow in which state, and the state it leads to. `decide` reads which, `evolve` where to.
TRANSITIONS: dict[State, dict[type[Fact], State]] = {
    State.QUEUED: {
        Amended: State.QUEUED,
        Admitted: State.QUEUED,
        Asked: State.QUEUED,
        Answered: State.QUEUED,
        Interrupted: State.QUEUED,
        Redefined: State.QUEUED,
        HandedOver: State.QUEUED,
        Started: State.RUNNING,
        CancelRequested: State.CANCELLING,
        Finished: State.FINISHED,
    },
    State.RUNNING: {
        Reported: State.RUNNING,
        Logged: State.RUNNING,
        Hindered: State.RUNNING,
        Asked: State.RUNNING,
        Answered: State.RUNNING,
        Started: State.RUNNING,
        Redefined: State.RUNNING,
        HandedOver: State.RUNNING,
        Interrupted: State.QUEUED,
        CancelRequested: State.CANCELLING,
        Finished: State.FINISHED,
    },
    State.CANCELLING: {
        Reported: State.CANCELLING,
        Logged: State.CANCELLING,
        Interrupted: State.CANCELLING,
        HandedOver: State.CANCELLING,
        Finished: State.FINISHED,
    },
    State.FINISHED: {
        Reported: State.FINISHED,
        Logged: State.FINISHED,
        Released: State.FINISHED,
    },
}


class Call(Struct, eq=False):
    """One dispatch of a tool. Changed in place by the functions of this module alone: there is one writer."""

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
    redefined: Redefined | None = None  # what its tool is now, if that has changed
    outdated: int = 0  # how many of its questions, the first ones, were asked before that
    was_harmless: bool = True  # whether each definition that has run so far is trusted and read-only
    handed_over: HandedOver | None = None  # how its caller finds it again, if a request ended before it
    hindered: Hindered | None = None  # what slows or stops it now
    cancel: CancelRequested | None = None
    end: Finished | None = None
    released: Released | None = None
    cpu_s: float = 0.0  # processor time, where it runs in a process of its own
    remote: dict[str, ChildSummary] = {}  # calls below it at a gateway behind this one

    @property
    def is_finished(self) -> bool:
        """Whether the call has its end, which its caller gets as the answer."""
        return self.state is State.FINISHED

    @property
    def is_safe(self) -> bool:
        """Whether the call may be run once more after its runner died (U4)."""
        tool = self.definition
        return tool.trusted and (tool.idempotent or tool.read_only)

    @property
    def is_harmless(self) -> bool:
        """Whether the call changes nothing. The word of a stranger for its own tool proves nothing."""
        tool = self.definition
        is_run = not self.is_redefined
        return self.was_harmless and (not is_run or (tool.trusted and tool.read_only))

    @property
    def definition(self) -> Opened | Redefined:
        """The fact that says what its tool is: digest, approval, and whether it may be repeated."""
        return self.opened if self.redefined is None else self.redefined

    @property
    def is_task(self) -> bool:
        """Whether its caller has it as a task, from the beginning or since a request ended with it (H7)."""
        return self.opened.task or (self.handed_over is not None and self.handed_over.what == "task")

    @property
    def is_redefined(self) -> bool:
        """Whether its tool has changed, and no attempt has begun since (A7)."""
        return self.redefined is not None and self.redefined.attempt == self.attempt

    @property
    def approvals(self) -> list[Question]:
        """The questions whether it may start that were asked about its tool as it is now."""
        asked = islice(self.questions.values(), self.outdated, None)
        return [one for one in asked if one.kind == "approval" and one.key == APPROVAL]

    @property
    def may_repeat(self) -> bool:
        """Whether another attempt may follow one that began: it is safe, or somebody allowed it anew."""
        if self.is_safe:
            return True
        answers = [self.answers.get(one.id) for one in self.approvals] if self.is_redefined else []
        return any(answered is not None and answered.answer.action == "accept" for answered in answers)

    @property
    def is_patient(self) -> bool:
        """Whether silence does not count yet: it is a stranger's tool that has not reported (C1)."""
        return self.opened.limits.patient and not (self.readings or self.contents)

    @property
    def arguments(self) -> Raw:
        """The arguments for the tool, as they are kept: the caller's, or what a hook made of them."""
        return self.opened.arguments if self.amended is None else self.amended.arguments

    @property
    def approved(self) -> str:
        """The approval that let it run: auto, allowlist, user, caller; or none (A3).

        Only the operator's word is a user's: a caller's yes may come from its program alone (S6).
        """
        approval = self.definition.approval
        if approval != "ask" and not self.approvals:
            return approval
        if self.started is None:
            return "none"
        given = [self.answers[one.id].answer for one in self.approvals if one.id in self.answers]
        is_by_caller = any(one.action == "accept" and one.by != "operator" for one in given)
        return "caller" if is_by_caller else "user"

    def on_clock(self, now: float) -> float:
        """The seconds this call has run, without the time of people."""
        return self.spent_s if self.since is None else self.spent_s + now - self.since


class ProgressSeries(Struct, eq=False):
    """The numbers sent to callers, which only rise, as the protocol demands: one series a call (P4)."""

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
            # A step large enough to change the float, and far below one: the tool's next number still rises.
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
        # Past the total, the total is raised. But where the tool itself says that it is not there yet, none
        # is sent: that is better than a wrong one.
        return wire, None if value is not None and value < total else wire


def without_results(call: Call) -> Call:
    """A copy of a call, for whoever keeps it after its end: without what may be large of it.

    Whether its result says that it is an error stays: the status of a task depends on that.
    """
    end = call.end
    if end is not None and end.result is not None:
        end = replace(end, result=Result(NOTHING, is_error=end.result.is_error))
    # The facts of a short call are one row of the history, and a Raw that was read there holds all of it.
    opened = replace(call.opened, arguments=call.opened.arguments.copy(), more=call.opened.more.copy())
    amended = call.amended and replace(call.amended, arguments=call.amended.arguments.copy())
    return replace(call, opened=opened, amended=amended, end=end, partials=list[Raw](), checkpoint=NOTHING)


def fold(call_id: str, facts: Iterable[Fact]) -> Call:
    """The call that these facts tell of; raises ValueError if the first, and it alone, is not `Opened`."""
    it = iter(facts)
    first = next(it)
    if not isinstance(first, Opened):
        raise ValueError(f"call {call_id} does not begin with Opened but {type(first).__name__}")
    call = Call(call_id, first)
    for fact in it:
        replay(call, fact)
    return call


def replay(call: Call, fact: Fact) -> None:
    """Take in a fact that was recorded before, maybe by an older version; see `lacking`."""
    missing = lacking(call, fact)
    if missing is not None:
        evolve(call, missing)
        call.seq -= 1  # it stands in no history, so it has no number there
    evolve(call, fact)


def lacking(call: Call, fact: Fact) -> Interrupted | None:
    """The `Interrupted` that a history of an older version lacks before this fact, if it does.

    Older versions took a call of a dead gateway back into the queue without a fact. The next fact shows it:
    only a queued call is amended or admitted, and a start names the death of the gateway as its reason.
    """
    if call.state is not State.RUNNING:
        return None
    match fact:
        case Started(why=why, spent_s=spent_s) if why == GATEWAY_DIED:
            return Interrupted(fact.at, spent_until_last_sign(call) if spent_s is None else spent_s)
        case Amended() | Admitted():
            return Interrupted(fact.at, spent_until_last_sign(call))
        case _:
            return None


def spent_until_last_sign(call: Call) -> float:
    """The seconds on the clock of a call whose gateway died: up to its last sign of life (C1, U4).

    The wall clock of the next gateway is not asked: the time without a gateway does not count, and somebody
    may have set the clock meanwhile.
    """
    if call.since is None:
        return call.spent_s
    last_sign = max(call.since, call.heard, call.latest.at if call.latest else 0.0)
    return call.spent_s + last_sign - call.since


def note(call: Call, reading: Reading) -> None:
    """Take in a reading: the newest value wins, and it is no fact."""
    call.latest = reading
    call.readings += 1


def is_advance(before: Reading, now: Reading) -> bool:
    """Whether a reading differs from the one before; an equal one is only a sign of life (C5)."""
    return now.progress != before.progress or now.total != before.total or now.message != before.message


def precedes(reading: Reading, fact: Fact) -> bool:
    """Whether a reading belongs before a fact; within one instant, starts and contents come first.

    Instants are as long as the clock's resolution, which is a millisecond with uvloop.
    """
    kind = type(fact)
    if kind is Opened or kind is Started or kind is Reported:
        return reading.at < fact.at
    return reading.at <= fact.at or kind is Finished or kind is Released


def note_number(call: Call, reading: Reading, number: int) -> None:
    """Take in the newest reading, with its number: a stream leaves out many between two."""
    call.latest = reading
    call.readings = number


def note_sample(call: Call, sample: Sample) -> None:
    """Take in the last reading that the history has; a fact may have told of a later one."""
    call.readings = sample.number
    if call.latest is None or call.latest.at < sample.reading.at:
        call.latest = sample.reading


def note_cpu(call: Call, cpu_s: float) -> None:
    """Take in that so many more seconds of processor time were used; its end says how many in all."""
    call.cpu_s += cpu_s


def evolve(call: Call, fact: Fact) -> None:
    """Take in the next fact. That it may follow was decided before; raises ValueError for a second `Opened`.

    A reader may lack facts, as after a full disk. One that may not follow then leaves the state as it is.
    The commonest facts come first, since the arms are tried in order: that pays for the look at the table.
    """
    call.seq += 1
    call.state = TRANSITIONS[call.state].get(type(fact), call.state)
    match fact:
        case Started():
            spent_s = call.spent_s if call.since is None else call.spent_s + fact.at - call.since
            call.spent_s = spent_s if fact.spent_s is None else fact.spent_s
            call.started = fact.at if call.started is None else call.started
            call.begun = call.begun or (call.attempt > 0 and not fact.unsent)
            call.attempt = fact.attempt
            call.heard = fact.at
            call.since = None if call.open else fact.at
            call.hindered = None
        case Reported():
            _report(call, fact)
        case Finished():
            call.spent_s += 0.0 if call.since is None else fact.at - call.since
            call.end = fact
            call.since = None
            call.cpu_s = fact.cpu_s
            call.open.clear()
        case Released():
            call.released = fact
            call.cpu_s = max(call.cpu_s, fact.cpu_s)
        case Logged():
            pass
        case Asked():
            _ask(call, fact)
        case Answered():
            _answer(call, fact)
        case CancelRequested():
            call.cancel = fact
        case Amended() | Admitted() | Redefined():
            _before_start(call, fact)
        case HandedOver():
            call.handed_over = call.handed_over if call.is_task else fact
        case Hindered():
            call.hindered = fact if fact.by else None
        case Interrupted():
            _interrupt(call, fact)
        case Opened():
            raise ValueError(f"call {call.id} was opened twice")


def _before_start(call: Call, fact: Amended | Admitted | Redefined) -> None:
    match fact:
        case Amended():
            call.amended = fact
        case Admitted():
            call.admitted = fact
        case Redefined():
            call.was_harmless = call.is_harmless if call.attempt else True
            call.redefined = fact
            call.outdated = len(call.questions)


def _interrupt(call: Call, fact: Interrupted) -> None:
    """Put a call that nobody runs back into the queue: fresh clocks, and its questions stay open (C1, U4)."""
    call.spent_s = fact.spent_s
    call.since = None
    call.heard = fact.at
    call.admitted = None
    call.hindered = None
    # A clock that was set back meanwhile gives nobody more time to answer.
    call.asked_at = {question: min(at, fact.at) for question, at in call.asked_at.items()}


def _report(call: Call, fact: Reported) -> None:
    if fact.late:
        return
    call.heard = fact.at
    call.contents += 1
    if fact.partial:
        call.partials.append(fact.partial)
    if fact.checkpoint:
        call.checkpoint = fact.checkpoint
    for child in fact.children:
        if child.id in call.remote or len(call.remote) < MAX_REMOTE:
            call.remote[child.id] = child
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
    call.asked_by[question.id] = call.attempt


def _answer(call: Call, fact: Answered) -> None:
    call.open.pop(fact.question, None)  # one who came late may not know that it was asked
    call.answers[fact.question] = fact
    if not call.open:
        call.heard = fact.at
        call.since = fact.at if call.state is State.RUNNING else None
