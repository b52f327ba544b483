"""Calls below calls: what a child says is heard by its parent, and counts for it (P8).

A child that asks stops the clocks of everything above it; a caller that can answer is asked by its own call.
"""

from heapq import nsmallest
from typing import TYPE_CHECKING

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.core.call import State
from afoot.core.facts import (
    NOTHING,
    Answer,
    Answered,
    Asked,
    Finished,
    Question,
    Reading,
    Reported,
    Result,
    Trace,
)
from afoot.core.notices import Child, brief
from afoot.core.trace import handed_down
from afoot.engine.bell import Bell
from afoot.engine.deadlines import arm
from afoot.engine.live import Attempt, Live
from afoot.engine.submission import Submission
from afoot.errors import ToolError

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

UPSTREAM = "upstream"  # the key of what is asked further down, out of our sight
DEEPEST = 32  # calls below one another: one that calls itself for ever must end
FRAME = 50  # changed children that are told of at once
KEPT = 1000  # changed children that are remembered for those who follow


class Counted(Struct, eq=False):
    """What of a child its parent has counted: its share, from 0 to 1, and its newest reading."""

    share: float = 0.0
    latest: Reading | None = None


class Below(Struct, eq=False):
    """What lies below a call: its children, what they have done, and who of all below has changed."""

    children: dict[str, Live] = {}  # those that live
    counted: dict[str, Counted] = {}
    total: int = 0  # children there have been
    failed: int = 0  # of them, those that did not end well
    weights: float = 0.0
    rolled: float = 0.0  # what the children have done, by weight
    is_own: bool = False  # whether the call has told numbers itself: those count
    version: int = 0
    changed: dict[str, tuple[int, Live | Child]] = {}  # every call below, the newest change last

    def touch(self, call_id: str, now_is: Live | Child) -> None:
        """A call below has changed."""
        self.version += 1
        self.changed.pop(call_id, None)
        self.changed[call_id] = self.version, now_is
        if len(self.changed) > KEPT:
            del self.changed[next(iter(self.changed))]


class Trees:
    """The calls of an engine, as far as they are below one another."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self.trace: Trace | None = None  # of a call whose caller sent none; some where spans are made (V3)

    async def call(self, parent: Live, tool: str, arguments: Raw, weight: float) -> Result:
        """Call a tool below this call and wait for its end; raises UnknownName, Refused, ToolError."""
        above = parent.call
        if above.state is not State.RUNNING:
            raise ToolError.cancelled(above.cancel.reason if above.cancel else "the call above it is over")
        if _depth(parent) >= DEEPEST:
            raise ToolError.refused(f"{tool} was not called: over {DEEPEST} calls below one another")
        left_s = max(0.001, above.opened.limits.ceiling_s - above.on_clock(self._engine.clock.now()))
        child = self._engine.submit(
            Submission(
                tool, arguments, above.opened.caller,
                ceiling_s=left_s, parent=above.id, weight=weight, can_ask=bool(parent.can_ask),
                trace=handed_down(above, self.trace is not None), inner=True,
            )
        )  # fmt: skip
        bell = Bell()
        try:
            with self._engine.follow(child, bell.ring, None) as follower:
                follower.seq = 0
                while not any(type(fact) is Finished for fact in follower.take().items):
                    await bell.wait()
        finally:
            self._engine.cancel(child, "parent", "the call above it is over")
        end = child.call.end
        assert end is not None
        if end.outcome == "ok" and end.result is not None:
            return end.result
        raise _failure(child, end)

    def join(self, child: Live, inner: bool) -> None:
        """Put a call below the one that made it, if that lives here and is the same caller's."""
        opened, child.inner = child.call.opened, inner
        parent = self._engine[opened.parent] if opened.parent and opened.parent in self._engine else None
        if parent is None or parent.call.end is not None or parent.call.opened.caller != opened.caller:
            return
        child.parent = parent
        if parent.below is None:
            own = parent.call.latest
            parent.below = Below(is_own=own is not None and own.progress is not None)
        below = parent.below
        below.children[child.call.id] = child
        below.counted[child.call.id] = Counted()
        below.total += 1
        below.weights += opened.weight
        _touch(child, child)

    def reported(self, live: Live, report: Reading | Reported) -> None:
        """A call reported: its own numbers count more than its children's, and its parent hears it."""
        if live.call.end is not None:
            return
        if live.below is not None and report.progress is not None and _is_own(report):
            live.below.is_own = True
        self.heard(live, report.at)

    def heard(self, child: Live, now: float) -> None:
        """A child gave a sign of life: so did everything above it, and it may have come further."""
        parent = child.parent
        if parent is None or parent.below is None:
            return
        if now >= parent.due:  # the loop was blocked, and a clock may have fired meanwhile (G4)
            self._engine.tick(parent)
        if parent.call.end is not None:
            return
        parent.heard = now
        below, latest = parent.below, child.call.latest
        counted = below.counted[child.call.id]
        gained = max(0.0, _share(child) - counted.share)
        if gained or latest is not counted.latest:
            counted.share, counted.latest = counted.share + gained, latest
            below.rolled += gained * child.call.opened.weight
            _touch(child, child)
            if parent.call.state is State.RUNNING and not below.is_own:
                done, whole = round(below.rolled, 6), round(below.weights, 6)
                # Another child may come: while all that are known are done, nobody can say how much it is.
                said = done, whole if done < whole else None, latest.message if latest else None
                Attempt(self._engine, parent, parent.call.attempt).report(*said, source="below")
                return
        self.heard(parent, now)

    def changed(self, live: Live, told: dict[str, int]) -> list[Child]:
        """The calls below that have changed since they were told of, those first that waited longest for it.

        `told` is whoever follows: by call, the change it knows. It is brought up to date.
        """
        below = live.below
        if below is None:
            return []
        news = [
            (told.get(call_id, 0), version, call_id)
            for call_id, (version, _) in below.changed.items()
            if version > told.get(call_id, 0)
        ]
        children: list[Child] = []
        for _, version, call_id in nsmallest(FRAME, news):
            told[call_id], one = version, below.changed[call_id][1]
            children.append(one if isinstance(one, Child) else brief(one.call, live.call.id))
        return children

    def waiting(self, live: Live, message: str | None) -> None:
        """Somebody is asked further down, out of our sight: this call waits meanwhile; None: no more (C3)."""
        asked_now = [one for one in live.call.open.values() if one.kind == "below" and one.key == UPSTREAM]
        now = self._engine.clock.now()
        if message is None:
            for one in asked_now:
                self._close(live, one.id, Answer("accept", by=UPSTREAM))
        elif not asked_now and live.call.state is State.RUNNING and self._may_ask(live):
            question = Question(_next_id(live), UPSTREAM, "below", message)
            self._engine.commit(live, Asked(now, question))
            self._arm(live)
            self.asked(live, question)

    def asked(self, child: Live, question: Question) -> None:
        """A child asks: its parent waits too, and where the caller can answer, it is asked there."""
        parent = child.parent
        if parent is None or parent.call.state is not State.RUNNING:
            return
        is_ours = question.to == "operator" or not parent.can_ask
        kind = "below" if is_ours else question.kind
        key = f"below{len(parent.call.questions) + 1}"
        mirror = Question(
            _next_id(parent), key, kind, question.message, question.body, question.to, question.id
        )
        self._engine.commit(parent, Asked(self._engine.clock.now(), mirror))
        self._arm(parent)
        self.asked(parent, mirror)

    def answered(self, child: Live, question_id: str, answer: Answer) -> None:
        """A child's question is settled: whoever above waits for it waits no more."""
        if child.parent is not None:
            for mirror in [one for one in child.parent.call.open.values() if one.below == question_id]:
                self._close(child.parent, mirror.id, replace(answer, content=NOTHING))

    def settled(self, child: Live) -> None:
        """A child is to stop, or has: what it asked is asked no more."""
        if child.parent is not None:
            for mirror in list(child.parent.call.open.values()):
                if mirror.below.startswith(f"{child.call.id}."):
                    self._close(child.parent, mirror.id, Answer("cancel", by="engine"))

    def ended(self, live: Live) -> None:
        """A call has ended: what it called ends with it, and for its parent it counts as done."""
        for below in list(live.below.children.values()) if live.below is not None else ():
            self._engine.cancel(below, "parent", "the call above it is over")
        parent = live.parent
        if parent is None or parent.below is None:
            return
        self.settled(live)
        self.heard(live, self._engine.clock.now())
        _touch(live, None)
        if parent.below.children.pop(live.call.id, None) is not None and live.call.end is not None:
            parent.below.failed += live.call.end.outcome != "ok"
        parent.below.counted.pop(live.call.id, None)

    def _close(self, live: Live, question_id: str, answer: Answer) -> None:
        # One that is cancelling keeps its questions to its end, and takes no answer any more.
        if question_id in live.call.open and live.call.state is State.RUNNING:
            self._engine.commit(live, Answered(self._engine.clock.now(), question_id, answer))
            self._arm(live)
            self.answered(live, question_id, answer)

    def _may_ask(self, live: Live) -> bool:
        return len(live.call.questions) - live.orphaned < self._engine.max_questions

    def _arm(self, live: Live) -> None:
        arm(live, self._engine.clock, self._engine.tick)


def _touch(live: Live, now_is: Live | None) -> None:
    """Everything above hears that this call has changed; None: for the last time, so a copy is kept."""
    above = live.parent
    while above is not None:
        if above.below is not None:
            above.below.touch(live.call.id, now_is or brief(live.call, above.call.id))
        above = above.parent


def _is_own(report: Reading | Reported) -> bool:
    return not isinstance(report, Reading) or report.source == "tool"


def _depth(live: Live) -> int:
    depth, above = 1, live.parent
    while above is not None:
        depth, above = depth + 1, above.parent
    return depth


def _failure(child: Live, end: Finished) -> ToolError:
    failure = end.failure
    if failure is None:
        return ToolError.internal(f"{child.tool.name} ended {end.outcome}")
    return ToolError(
        f"{child.tool.name}: {failure.message}",
        failure.category,
        code=failure.code,
        retryable=failure.retryable,
        retry_after=failure.retry_after_s,
    )


def _share(child: Live) -> float:
    """How much of a child is done, from 0 to 1; one that has ended is done, whatever its outcome."""
    latest = child.call.latest
    if child.call.end is not None:
        return 1.0
    if latest is None or latest.progress is None or not latest.total:
        return 0.0
    return min(1.0, max(0.0, latest.progress / latest.total))


def _next_id(live: Live) -> str:
    return f"{live.call.id}.{len(live.call.questions) + 1}"
