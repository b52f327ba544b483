"""`LiveState` holds all live calls, folded from the gateway's event stream, and those that have just ended.

Pure: events go in, calls in their trees come out. The structs are the frames of `/api/events` and
`/api/snapshot`, and the lines of `/api/calls`, as the terminal reads them.
"""

from collections import deque
from collections.abc import Iterator

from msgspec import Raw, Struct, field

from afoot.cli.terminal.call_clocks import has_own_question
from afoot.core.call import Call, State, note_number, replay, without_results
from afoot.core.facts import (
    ChildSummary,
    Entry,
    Failure,
    Finished,
    Hindered,
    Interrupted,
    Limits,
    Opened,
    Question,
    Reading,
    Started,
)
from afoot.core.last_words import result_line
from afoot.observe.eta import Eta

ENDED_SHOWN_S = 300.0  # how long a call that has ended is shown
MAX_ENDED = 1000  # the most trees of ended calls that are shown
MAX_ENDED_CHILDREN = 5  # the most ended calls that are shown below one call
ANSWERABLE_KINDS = ("form", "url", "approval")
_LIVE_STATES = {one.value: one for one in State if one is not State.FINISHED}


class SnapshotQuestion(Struct, frozen=True):
    """An open question of a call, as a snapshot lists it."""

    id: str
    kind: str
    message: str
    asked: float
    key: str = ""
    to: str | None = None


class SnapshotChildren(Struct, frozen=True):
    """The number of child calls that a call has made, as a snapshot counts them."""

    total: int = 0
    failed: int = 0


class SnapshotClocks(Struct, frozen=True):
    """The clocks of a call, as the API tells them (`serve.api.live.clocks`)."""

    idle_s: float | None = None
    ceiling_s: float | None = None
    answer_s: float = Limits().answer_s
    heard: float | None = None
    spent_s: float = 0.0
    since: float | None = None
    patient_idle_s: float | None = None
    below: list[str] = []


class SnapshotCall(Struct, frozen=True):
    """A live call, as a snapshot lists it."""

    id: str
    tool: str
    server: str
    caller: str
    state: str
    opened: float
    started: float | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    reported: float | None = None
    seq: int = 1
    attempt: int = 0
    readings: int = 0
    questions: list[SnapshotQuestion] = []
    parent: str | None = None
    hindered: Hindered | None = None
    eta: Eta | None = None
    stalled: bool = False
    detached: bool = False
    cancel_due: float | None = None
    children: SnapshotChildren | None = None
    source: str = "tool"
    clocks: SnapshotClocks | None = None
    remote: list[ChildSummary] = []  # calls below it at a gateway behind this one


class LiveSnapshot(Struct, frozen=True):
    """All live calls at one instant."""

    now: float
    calls: list[SnapshotCall]
    degraded: str | None = None
    keepalive_s: float = 15.0  # the stream is never silent for longer


class ReadingUpdate(Struct, frozen=True):
    """The newest reading of a call, its last sign of life, and its estimated end."""

    call: str
    reading: Reading | None
    readings: int = 0
    eta: Eta | None = None
    stalled: bool = False
    detached: bool = False
    cancel_due: float | None = None
    heard: float | None = None


class LiveChanges(Struct, frozen=True):
    """The facts and readings since the frame before."""

    now: float
    facts: list[Entry] = []
    readings: list[ReadingUpdate] = []
    degraded: str | None = None


class EndedCall(Struct, frozen=True):
    """A call that has ended, as the history lists it."""

    id: str
    tool: str
    server: str
    caller: str
    outcome: str
    opened: float
    finished: float
    started: float | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    parent: str | None = None


class EndedCalls(Struct, frozen=True):
    """The calls that ended last, including those that ended before this program began to watch."""

    calls: list[EndedCall]


class ListedQuestion(Struct, frozen=True):
    """An open question as the list of questions has it: only there is it told whether a run may destroy."""

    id: str
    call: str
    destructive: bool = False


class OpenQuestions(Struct, frozen=True):
    """The open questions in full, as they are answered."""

    questions: list[ListedQuestion]


class CallNode(Struct, eq=False):
    """A call in its tree, with its last sign of life, its estimated end and its child calls.

    A call that has ended stays in its place while a call below it is live.
    """

    call: Call
    heard: float = 0.0  # the last sign of life that is no fact
    eta: Eta | None = None
    stalled: bool = False
    detached: bool = False
    cancel_due: float | None = None  # when a pending cancel comes
    above: "CallNode | None" = None
    live_children: dict[str, "CallNode"] = {}  # with those that have ended above a live call
    ended_children: deque["CallNode"] = field(default_factory=lambda: deque(maxlen=MAX_ENDED_CHILDREN))
    child_count: int = 0  # all children ever seen
    failed_count: int = 0  # those of them that did not end ok
    result_line: str = ""  # the result of a call that ended well, in a line
    over_at: float = 0.0  # when the call and all calls below it had ended
    destructive: frozenset[str] = frozenset()  # its questions whose run may destroy something
    is_remote: bool = False  # a call at a gateway behind this one, of which no clock is known


class LiveState:
    """All live calls, the calls that have just ended, and the questions that a person may answer."""

    def __init__(self) -> None:
        self.calls: dict[str, CallNode] = {}  # that have not ended
        self.roots: dict[str, CallNode] = {}  # trees with a live call
        self.ended: deque[CallNode] = deque()  # trees in which all calls have ended, the oldest first
        self.waiting: dict[str, CallNode] = {}  # calls that ask, in the order in which they began
        self.open_questions: dict[str, tuple[CallNode, Question]] = {}  # by id, for a person
        self.now = 0.0
        self.degraded: str | None = None
        self._ended_ids: set[str] = set()  # of `ended`

    def load_snapshot(self, found: LiveSnapshot) -> None:
        """Replace all live calls by those of a snapshot; a call that is not in it has ended unseen."""
        self.now = found.now
        self.degraded = found.degraded
        before = self.calls
        self.roots = dict[str, CallNode]()
        self.waiting = dict[str, CallNode]()
        self.open_questions = dict[str, tuple[CallNode, Question]]()
        nodes = [_node_of_snapshot(one) for one in sorted(found.calls, key=lambda one: one.opened)]
        self.calls = {node.call.id: node for node in nodes}
        for node in nodes:
            self._attach(node)
            if (known := before.get(node.call.id)) is not None:
                node.ended_children = known.ended_children
        for one in found.calls:
            if one.children is not None:
                self.calls[one.id].child_count = one.children.total
                self.calls[one.id].failed_count = one.children.failed
        for node in sorted(nodes, key=_asked_at):
            self._update_questions(node)

    def load_ended(self, found: EndedCalls) -> None:
        """Take in calls of the history that have just ended, as far as they are not known."""
        known = {*self.calls, *self._ended_ids}
        for one in sorted(found.calls, key=lambda one: one.finished):
            if one.id in known or one.finished < self.now - ENDED_SHOWN_S:
                continue
            above = self.calls.get(one.parent or "")
            if above is None and not one.parent:
                self._show_ended(_node_of_history(one))
            elif above is not None and all(child.call.id != one.id for child in above.ended_children):
                above.ended_children.append(_node_of_history(one))
        self.ended = deque(sorted(self.ended, key=lambda node: node.over_at))

    def load_questions(self, found: OpenQuestions) -> None:
        """Note which open questions are about a run that may destroy something."""
        by_call: dict[str, set[str]] = {}
        for one in found.questions:
            if one.destructive:
                by_call.setdefault(one.call, set()).add(one.id)
        for name, node in self.waiting.items():
            node.destructive = frozenset(by_call.get(name, ()))

    def apply_changes(self, changes: LiveChanges) -> None:
        """Apply one frame.

        A call's last reading comes in the frame of its end, so readings go before the other facts.
        """
        self.now = changes.now
        self.degraded = changes.degraded
        new = [one for one in changes.facts if isinstance(one.fact, Opened)]
        for one in new:
            self._apply_fact(one)
        for seen in changes.readings:
            self._apply_reading(seen)
        for one in changes.facts:
            if not isinstance(one.fact, Opened):
                self._apply_fact(one)

    def drop_ended(self, now: float) -> None:
        """Drop the calls that ended a while ago."""
        last = now - ENDED_SHOWN_S
        while self.ended and (len(self.ended) > MAX_ENDED or self.ended[0].over_at < last):
            self._ended_ids.discard(self.ended.popleft().call.id)
        for node in self.calls.values():
            while node.ended_children and node.ended_children[0].over_at < last:
                node.ended_children.popleft()

    def pending_cancel(self) -> CallNode | None:
        """The call whose cancel was asked for last and can still be withdrawn, if there is one."""
        pending = [node for node in self.calls.values() if can_withdraw(node)]
        return max(pending, key=lambda node: node.cancel_due or 0.0, default=None)

    def questions_in_order(self) -> list[tuple[CallNode, Question]]:
        """The first open question of each waiting call that a person may answer, the oldest call first."""
        first: dict[str, tuple[CallNode, Question]] = {}
        for node, question in self.open_questions.values():
            first.setdefault(node.call.id, (node, question))
        return [first[name] for name in self.waiting if name in first]

    def _apply_fact(self, entry: Entry) -> None:
        node = self.calls.get(entry.call)
        if isinstance(entry.fact, Opened):
            if node is None and entry.call not in self._ended_ids:
                node = self.calls[entry.call] = CallNode(Call(entry.call, entry.fact))
                self._attach(node)
            return
        if node is None or entry.seq <= node.call.seq:
            return  # the call has ended, or the snapshot already contains this fact
        had_questions = bool(node.call.open)
        replay(node.call, entry.fact)
        if isinstance(entry.fact, Started | Interrupted):
            node.heard = 0.0  # silence is counted anew from this fact
        if had_questions or node.call.open:
            self._update_questions(node)
        if isinstance(entry.fact, Finished):
            self._end_call(node)

    def _apply_reading(self, seen: ReadingUpdate) -> None:
        node = self.calls.get(seen.call)
        if node is None:
            return
        if seen.reading is not None and seen.readings != node.call.readings:
            note_number(node.call, seen.reading, seen.readings)
        node.heard = node.heard if seen.heard is None else seen.heard
        node.eta = seen.eta
        node.stalled = seen.stalled
        node.detached = seen.detached
        node.cancel_due = seen.cancel_due

    def _update_questions(self, node: CallNode) -> None:
        """List the open questions of a call that a person at this terminal may answer.

        It does not matter who else was asked: the operator may always answer, and the first answer counts.
        """
        call = node.call
        for name, (asking, _) in list(self.open_questions.items()):
            if asking is node and name not in call.open:
                del self.open_questions[name]
        for question in call.open.values():
            if question.kind in ANSWERABLE_KINDS and not question.below:
                self.open_questions.setdefault(question.id, (node, question))
        if has_own_question(call):
            self.waiting.setdefault(call.id, node)
        else:
            self.waiting.pop(call.id, None)

    def _attach(self, node: CallNode) -> None:
        above = self.calls.get(node.call.opened.parent or "")
        node.above = above
        self._siblings(node)[node.call.id] = node
        if above is not None:
            above.child_count += 1

    def _siblings(self, node: CallNode) -> dict[str, CallNode]:
        return self.roots if node.above is None else node.above.live_children

    def _end_call(self, node: CallNode) -> None:
        del self.calls[node.call.id]
        self.waiting.pop(node.call.id, None)
        node.eta = None
        node.stalled = False
        node.cancel_due = None
        if node.call.end is not None and node.call.end.result is not None and node.call.end.outcome == "ok":
            node.result_line = result_line(node.call.end.result)
        node.call = without_results(node.call)  # it is shown for minutes, and may be large
        if node.above is not None:
            node.above.failed_count += node.call.end is not None and node.call.end.outcome != "ok"
        while node.call.end is not None and not node.live_children:  # nor does anything below it live
            del self._siblings(node)[node.call.id]
            node.over_at = self.now
            if node.above is None:
                self._show_ended(node)
                return
            node.above.ended_children.append(node)
            node = node.above

    def _show_ended(self, node: CallNode) -> None:
        self.ended.append(node)
        self._ended_ids.add(node.call.id)


def shown_children(node: CallNode) -> Iterator[CallNode]:
    """The children of a call that are shown: live ones first, then the ended ones, newest first."""
    yield from node.live_children.values()
    yield from reversed(node.ended_children)


def can_withdraw(node: CallNode) -> bool:
    """Whether a cancel of the call is pending."""
    return node.cancel_due is not None and node.call.state in (State.QUEUED, State.RUNNING)


def remote_children(node: CallNode, above: str | None = None) -> Iterator[CallNode]:
    """The calls at a gateway behind this one that the call made, or another one of them did."""
    for one in node.call.remote.values():
        if one.parent == above:
            yield _node_of_remote(one, node.call)


def _asked_at(node: CallNode) -> float:
    """When a call began to ask."""
    return min((node.call.asked_at[name] for name in node.call.open), default=0.0)


def _node_of_snapshot(one: SnapshotCall) -> CallNode:
    """A node for a call of a snapshot; later facts continue after its `seq`."""
    clocks = one.clocks or SnapshotClocks()
    is_patient = clocks.patient_idle_s is not None
    limits = Limits(
        idle_s=clocks.patient_idle_s if is_patient else clocks.idle_s,
        ceiling_s=Limits().ceiling_s if clocks.ceiling_s is None else clocks.ceiling_s,
        answer_s=clocks.answer_s, patient=is_patient,
    )  # fmt: skip
    opened = Opened(
        one.opened, one.tool, one.server, one.caller, Raw(b"{}"), limits=limits, parent=one.parent
    )
    is_read = one.progress is not None or one.message is not None
    at = one.reported or one.started or one.opened
    # A view does not list the questions of calls below, which stop the clocks, too.
    asked = {one.id: _question_of_snapshot(one) for one in one.questions if one.id not in clocks.below}
    below = {name: Question(name, "", "below") for name in clocks.below}
    call = Call(
        one.id, opened, State(one.state), one.seq, attempt=one.attempt, started=one.started,
        heard=clocks.heard or 0.0, since=clocks.since, spent_s=clocks.spent_s, readings=one.readings,
        latest=Reading(at, one.progress, one.total, one.message, one.source) if is_read else None,
        open={**asked, **below}, hindered=one.hindered,
        asked_at={asked.id: asked.asked for asked in one.questions} | dict.fromkeys(below, one.opened),
        remote={far.id: far for far in one.remote},
    )  # fmt: skip
    return CallNode(call, 0.0, one.eta, one.stalled, one.detached, one.cancel_due)


def _question_of_snapshot(asked: SnapshotQuestion) -> Question:
    return Question(asked.id, asked.key, asked.kind, asked.message, to=asked.to or "")


def _node_of_remote(one: ChildSummary, above: Call) -> CallNode:
    """A node for a call at a gateway behind this one, as that gateway told of it."""
    is_read = one.progress is not None or one.message is not None
    is_over = one.outcome is not None
    call = Call(
        one.id, Opened(0.0, one.tool, "", "", Raw(b"{}"), parent=one.parent),
        State.FINISHED if is_over else _LIVE_STATES.get(one.state, State.RUNNING),
        latest=Reading(0.0, one.progress, one.total, one.message) if is_read else None,
        end=Finished(0.0, one.outcome, failure=_failure(one)) if one.outcome is not None else None,
        remote=above.remote,
    )  # fmt: skip
    return CallNode(call, is_remote=True)


def _failure(one: ChildSummary | EndedCall) -> Failure | None:
    return Failure(one.message) if one.outcome != "ok" and one.message else None


def _node_of_history(one: EndedCall) -> CallNode:
    """A node for a call of the history, which tells no clocks: they ran from its start to its end."""
    is_read = one.progress is not None or one.message is not None
    call = Call(
        one.id, Opened(one.opened, one.tool, one.server, one.caller, Raw(b"{}"), parent=one.parent),
        State.FINISHED, started=one.started,
        spent_s=0.0 if one.started is None else max(0.0, one.finished - one.started),
        latest=Reading(one.finished, one.progress, one.total, one.message) if is_read else None,
        end=Finished(one.finished, one.outcome, failure=_failure(one)),
    )  # fmt: skip
    return CallNode(call, over_at=one.finished)
