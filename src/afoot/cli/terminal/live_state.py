"""`LiveState` holds all live calls, folded from the gateway's event stream.

Pure: events go in, calls in their trees come out. A call that has ended stays for a while, so that a
person sees its end. The structs are the frames of `/api/events` and `/api/snapshot` as the terminal reads
them.
"""

from collections import deque
from collections.abc import Iterator

from msgspec import Raw, Struct, field

from afoot.core.call import Call, State, note_number, replay
from afoot.core.facts import Entry, Finished, Hindered, Opened, Question, Reading
from afoot.observe.eta import Eta

ENDED_SHOWN_S = 10.0  # how long an ended call is shown
MAX_ENDED_SHOWN = 5  # the most ended calls shown below one call, and at the top level
ANSWERABLE_KINDS = ("form", "url", "approval")


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
    readings: int = 0
    questions: list[SnapshotQuestion] = []
    parent: str | None = None
    hindered: Hindered | None = None
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    children: SnapshotChildren | None = None
    source: str = "tool"


class LiveSnapshot(Struct, frozen=True):
    """All live calls at one instant; `questions` are the ones that a person may answer."""

    now: float
    calls: list[SnapshotCall]
    questions: list[SnapshotQuestion] = []
    degraded: str | None = None


class ReadingUpdate(Struct, frozen=True):
    """The newest reading of a call, with its estimated end."""

    call: str
    reading: Reading | None
    readings: int = 0
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False


class LiveChanges(Struct, frozen=True):
    """The facts and readings since the frame before."""

    now: float
    facts: list[Entry] = []
    readings: list[ReadingUpdate] = []
    degraded: str | None = None


class CallNode(Struct, eq=False):
    """A call in its tree, with its estimated end and its child calls."""

    call: Call
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    estimated_at: float = 0.0  # when `eta` and `rate` were computed
    live_children: dict[str, "CallNode"] = {}
    ended_children: deque["CallNode"] = field(default_factory=deque)
    siblings: dict[str, "CallNode"] = {}  # the dict that lists this node while its call is live
    child_count: int = 0  # all children ever seen
    failed_count: int = 0  # those of them that did not end ok


class LiveState:
    """All live calls, the calls that ended a moment ago, and the questions that a person may answer."""

    def __init__(self) -> None:
        self.calls: dict[str, CallNode] = {}
        self.roots: dict[str, CallNode] = {}  # calls without a known parent
        self.ended: deque[CallNode] = deque()
        # By question id, in the order in which they were asked.
        self.open_questions: dict[str, tuple[CallNode, Question]] = {}
        self.now = 0.0
        self.degraded: str | None = None

    def load_snapshot(self, found: LiveSnapshot) -> None:
        """Replace all live calls by those of a snapshot; a call that is not in it has ended unseen."""
        self.now = found.now
        self.degraded = found.degraded
        self.roots = dict[str, CallNode]()
        self.open_questions = dict[str, tuple[CallNode, Question]]()
        own = {one.id for one in found.questions}
        nodes = [_node_of_snapshot(one, found.now) for one in sorted(found.calls, key=lambda one: one.opened)]
        self.calls = {node.call.id: node for node in nodes}
        for node in nodes:
            self._attach(node)
        for one in found.calls:
            if one.children is not None:
                self.calls[one.id].child_count = one.children.total
                self.calls[one.id].failed_count = one.children.failed
        for node in nodes:
            for question in node.call.open.values():
                if question.id in own:
                    self._add_question(node, question)

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
        """Drop calls that ended a while ago; their live children move to the top level."""
        while self.ended and (
            len(self.ended) > MAX_ENDED_SHOWN or _ended_at(self.ended[0]) < now - ENDED_SHOWN_S
        ):
            for node in self.ended.popleft().live_children.values():
                self.roots[node.call.id] = node
                node.siblings = self.roots
        for node in (*self.calls.values(), *self.ended):
            while node.ended_children and (
                len(node.ended_children) > MAX_ENDED_SHOWN
                or _ended_at(node.ended_children[0]) < now - ENDED_SHOWN_S
            ):
                node.ended_children.popleft()

    def count_by_state(self) -> dict[str, int]:
        """The number of calls by state; a call with an open question counts as `waiting`."""
        found: dict[str, int] = {}
        for node in self.calls.values():
            word = "waiting" if node.call.open else node.call.state.value
            found[word] = found.get(word, 0) + 1
        return found

    def _apply_fact(self, entry: Entry) -> None:
        node = self.calls.get(entry.call)
        if isinstance(entry.fact, Opened):
            if node is None:
                node = self.calls[entry.call] = CallNode(Call(entry.call, entry.fact))
                self._attach(node)
            return
        if node is None or entry.seq <= node.call.seq:
            return  # the call has ended, or the snapshot already contains this fact
        before = dict(node.call.open)
        replay(node.call, entry.fact)
        for closed in before.keys() - node.call.open.keys():
            self.open_questions.pop(closed, None)
        for name in node.call.open.keys() - before.keys():
            self._add_question(node, node.call.open[name])
        if isinstance(entry.fact, Finished):
            self._end_call(node)

    def _apply_reading(self, seen: ReadingUpdate) -> None:
        node = self.calls.get(seen.call)
        if node is None:
            return
        if seen.reading is not None and seen.readings != node.call.readings:
            note_number(node.call, seen.reading, seen.readings)
        node.eta = seen.eta
        node.rate = seen.rate
        node.stalled = seen.stalled
        node.estimated_at = self.now

    def _add_question(self, node: CallNode, question: Question) -> None:
        """Add a question that a person at this terminal may answer.

        It does not matter who else was asked: the operator may always answer, and the first answer counts.
        """
        if question.kind in ANSWERABLE_KINDS and not question.below:
            self.open_questions[question.id] = (node, question)

    def _attach(self, node: CallNode) -> None:
        above = self.calls.get(node.call.opened.parent or "")
        node.siblings = self.roots if above is None else above.live_children
        node.siblings[node.call.id] = node
        if above is not None:
            above.child_count += 1

    def _end_call(self, node: CallNode) -> None:
        del self.calls[node.call.id]
        del node.siblings[node.call.id]
        node.eta = None
        node.rate = None
        node.stalled = False
        above = self.calls.get(node.call.opened.parent or "")
        (self.ended if above is None else above.ended_children).append(node)
        if above is not None:
            above.failed_count += node.call.end is not None and node.call.end.outcome != "ok"


def shown_children(node: CallNode) -> Iterator[CallNode]:
    """The children of a call that are shown: live ones first, then the ended ones, newest first."""
    yield from node.live_children.values()
    yield from reversed(node.ended_children)


def _ended_at(node: CallNode) -> float:
    return 0.0 if node.call.end is None else node.call.end.at


def _node_of_snapshot(one: SnapshotCall, now: float) -> CallNode:
    """A node for a call of a snapshot; later facts continue after its `seq`."""
    opened = Opened(one.opened, one.tool, one.server, one.caller, Raw(b"{}"), parent=one.parent)
    is_read = one.progress is not None or one.message is not None
    at = one.reported or one.started or one.opened
    call = Call(
        one.id, opened, State(one.state), one.seq, started=one.started, readings=one.readings,
        latest=Reading(at, one.progress, one.total, one.message, one.source) if is_read else None,
        open={asked.id: _question_of_snapshot(asked) for asked in one.questions}, hindered=one.hindered,
        asked_at={asked.id: asked.asked for asked in one.questions},
    )  # fmt: skip
    return CallNode(call, one.eta, one.rate, one.stalled, now)


def _question_of_snapshot(asked: SnapshotQuestion) -> Question:
    return Question(asked.id, asked.key, asked.kind, asked.message, to=asked.to or "")
