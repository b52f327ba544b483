"""Everything that lives, as the stream of all calls tells it; what has ended stays a while.

Pure: events in, calls in their trees out.
"""

from collections import deque
from collections.abc import Iterator

from msgspec import Raw, Struct, field

from afoot.core.call import Call, State, evolve, note
from afoot.core.facts import Entry, Finished, Hindered, Opened, Question, Reading
from afoot.observe.eta import Eta

STAY_S = 10.0  # so long a call that has ended is shown
STAY = 5  # and so many of them at most, of one call or of all
ANSWERABLE = ("form", "url", "approval")


class Waiting(Struct, frozen=True):
    """An open question of a snapshot."""

    id: str
    kind: str
    message: str
    asked: float
    key: str = ""
    to: str | None = None


class Below(Struct, frozen=True):
    """How many calls one has made."""

    total: int = 0
    failed: int = 0


class Living(Struct, frozen=True):
    """A call of a snapshot."""

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
    questions: list[Waiting] = []
    parent: str | None = None
    hindered: Hindered | None = None
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    children: Below | None = None


class Snapshot(Struct, frozen=True):
    """What there is now; `questions` are those that somebody may answer."""

    now: float
    calls: list[Living]
    questions: list[Waiting] = []
    degraded: str | None = None


class Seen(Struct, frozen=True):
    """The newest reading of a call, and what is expected of it."""

    call: str
    reading: Reading | None
    readings: int = 0
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False


class Changes(Struct, frozen=True):
    """What is new since the frame before."""

    now: float
    facts: list[Entry] = []
    readings: list[Seen] = []
    degraded: str | None = None


class Node(Struct, eq=False):
    """A call in its tree: what is expected of it, and what it called."""

    call: Call
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    said: float = 0.0  # when that was said
    living: dict[str, "Node"] = {}
    ended: deque["Node"] = field(default_factory=deque)
    home: dict[str, "Node"] = {}  # where it is listed while it lives
    below: int = 0  # calls ever seen right below it
    failed: int = 0


class Scene:
    """All calls that live, those that have just ended, and what somebody may answer."""

    def __init__(self) -> None:
        self.calls: dict[str, Node] = {}
        self.roots: dict[str, Node] = {}  # below no call that is known
        self.ended: deque[Node] = deque()
        self.asking: dict[str, tuple[Node, Question]] = {}  # by question, in the order they were asked
        self.now = 0.0
        self.degraded: str | None = None

    def begin(self, found: Snapshot) -> None:
        """Begin anew with what there is; what is not in it ended unseen."""
        self.now, self.degraded = found.now, found.degraded
        self.roots, self.asking = dict[str, Node](), dict[str, tuple[Node, Question]]()
        own = {one.id for one in found.questions}
        nodes = [_node(one, found.now) for one in sorted(found.calls, key=lambda one: one.opened)]
        self.calls = {node.call.id: node for node in nodes}
        for node in nodes:
            self._place(node)
        for one in found.calls:
            if one.children is not None:
                self.calls[one.id].below, self.calls[one.id].failed = one.children.total, one.children.failed
        for node in nodes:
            for question in node.call.open.values():
                if question.id in own:
                    self._ask(node, question)

    def change(self, changes: Changes) -> None:
        """Take in what is new; a call's last reading comes with its end, and belongs before it."""
        self.now, self.degraded = changes.now, changes.degraded
        new = [one for one in changes.facts if isinstance(one.fact, Opened)]
        for one in new:
            self._fact(one)
        for seen in changes.readings:
            self._seen(seen)
        for one in changes.facts:
            if not isinstance(one.fact, Opened):
                self._fact(one)

    def forget(self, now: float) -> None:
        """Let go of what ended a while ago; what it called and still lives is shown on its own."""
        while self.ended and (len(self.ended) > STAY or _end(self.ended[0]) < now - STAY_S):
            for node in self.ended.popleft().living.values():
                self.roots[node.call.id] = node
                node.home = self.roots
        for node in (*self.calls.values(), *self.ended):
            while node.ended and (len(node.ended) > STAY or _end(node.ended[0]) < now - STAY_S):
                node.ended.popleft()

    def counts(self) -> dict[str, int]:
        """How many calls are in each state; waiting is one here."""
        found: dict[str, int] = {}
        for node in self.calls.values():
            word = "waiting" if node.call.open else node.call.state.value
            found[word] = found.get(word, 0) + 1
        return found

    def _fact(self, entry: Entry) -> None:
        node = self.calls.get(entry.call)
        if isinstance(entry.fact, Opened):
            if node is None:
                node = self.calls[entry.call] = Node(Call(entry.call, entry.fact))
                self._place(node)
            return
        if node is None or entry.seq <= node.call.seq:
            return  # its call is gone, or it is in the snapshot
        before = dict(node.call.open)
        evolve(node.call, entry.fact)
        for gone in before.keys() - node.call.open.keys():
            self.asking.pop(gone, None)
        for name in node.call.open.keys() - before.keys():
            self._ask(node, node.call.open[name])
        if isinstance(entry.fact, Finished):
            self._end(node)

    def _seen(self, seen: Seen) -> None:
        node = self.calls.get(seen.call)
        if node is None:
            return
        if seen.reading is not None and seen.readings != node.call.readings:
            note(node.call, seen.reading)
            node.call.readings = seen.readings
        node.eta, node.rate, node.stalled, node.said = seen.eta, seen.rate, seen.stalled, self.now

    def _ask(self, node: Node, question: Question) -> None:
        """Whoever else is asked: of several the first answer counts, and the operator may always give it."""
        if question.kind in ANSWERABLE and not question.below:
            self.asking[question.id] = (node, question)

    def _place(self, node: Node) -> None:
        above = self.calls.get(node.call.opened.parent or "")
        node.home = self.roots if above is None else above.living
        node.home[node.call.id] = node
        if above is not None:
            above.below += 1

    def _end(self, node: Node) -> None:
        del self.calls[node.call.id]
        del node.home[node.call.id]
        node.eta, node.rate, node.stalled = None, None, False
        above = self.calls.get(node.call.opened.parent or "")
        (self.ended if above is None else above.ended).append(node)
        if above is not None:
            above.failed += node.call.end is not None and node.call.end.outcome != "ok"


def below(node: Node) -> Iterator[Node]:
    """What a call called and is still shown, what lives before what has ended."""
    yield from node.living.values()
    yield from reversed(node.ended)


def _end(node: Node) -> float:
    return 0.0 if node.call.end is None else node.call.end.at


def _node(one: Living, now: float) -> Node:
    """The call of a snapshot; facts go on behind its `seq`."""
    opened = Opened(one.opened, one.tool, one.server, one.caller, Raw(b"{}"), parent=one.parent)
    is_read = one.progress is not None or one.message is not None
    at = one.reported or one.started or one.opened
    call = Call(
        one.id, opened, State(one.state), one.seq, started=one.started, readings=one.readings,
        latest=Reading(at, one.progress, one.total, one.message) if is_read else None,
        open={asked.id: _question(asked) for asked in one.questions}, hindered=one.hindered,
    )  # fmt: skip
    call.asked_at = {asked.id: asked.asked for asked in one.questions}
    return Node(call, one.eta, one.rate, one.stalled, now)


def _question(asked: Waiting) -> Question:
    return Question(asked.id, asked.key, asked.kind, asked.message, to=asked.to or "")
