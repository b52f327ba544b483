"""`ChildCalls` passes progress, signs of life, questions and ends between a call and its children (P8).

A child that asks stops the clocks of everything above it; a caller that can answer is asked by its own call.
"""

from collections.abc import Callable, Mapping
from heapq import nsmallest

from msgspec.structs import replace

from afoot.core.call import State, is_advance
from afoot.core.facts import (
    NOTHING,
    Answer,
    Answered,
    Asked,
    ChildSummary,
    Fact,
    Question,
    Reading,
    Reported,
)
from afoot.core.notices import summarize_child
from afoot.core.ports import Clock
from afoot.engine.deadlines import Deadlines
from afoot.engine.live_call import ChildShare, LiveCall, Subtree

MAX_DEPTH = 32  # calls below one another: one that calls itself for ever must end
MAX_CHANGES_AT_ONCE = 50  # changed children that are told of at once


class ChildCalls:
    """The calls of an engine, as far as they are below one another.

    `calls` are those that live, by id. `report` notes the progress of a call that its children have made:
    what is done, of what, and the newest message.
    """

    def __init__(
        self,
        clock: Clock,
        deadlines: Deadlines,
        commit: Callable[[LiveCall, Fact], object],
        report: Callable[[LiveCall, float, float | None, str | None], None],
        calls: Mapping[str, LiveCall],
    ) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._commit = commit
        self._report = report
        self._calls = calls

    def attach(self, child: LiveCall) -> None:
        """Put a call below the one that made it, if that lives here and is the same caller's."""
        opened = child.call.opened
        parent = self._calls.get(opened.parent or "")
        if parent is None or parent.call.end is not None or parent.call.opened.caller != opened.caller:
            return
        if parent.mirror is not None:  # another gateway runs it, and hears its children by their facts
            return
        child.parent = parent
        if parent.below is None:
            own = parent.call.latest
            parent.below = Subtree(is_own=own is not None and own.progress is not None)
        below = parent.below
        below.children[child.call.id] = child
        below.shares[child.call.id] = ChildShare()
        below.total += 1
        below.weights += opened.weight
        _touch(child, child)
        done, whole = round(below.done, 6), round(below.weights, 6)
        if below.shown < done < whole and parent.call.state is State.RUNNING and not below.is_own:
            below.shown = done  # it was held back, for it was the whole
            self._report(parent, done, whole, parent.call.latest.message if parent.call.latest else None)

    def on_report(self, live: LiveCall, report: Reading | Reported) -> None:
        """Take in a report: a call's own numbers count more than its children's, and its parent hears it."""
        if live.call.end is not None:
            return
        if isinstance(report, Reported) and report.children:
            self._take_remote(live, report.children)
        if live.below is not None and report.progress is not None and _is_own(report):
            live.below.is_own = True
        if isinstance(report, Reported):
            _note_advance(live, report.at)
        self.on_sign_of_life(live, report.at)

    def on_sign_of_life(self, child: LiveCall, now: float) -> None:
        """Let everything above a call hear it too, and count how far it has come."""
        parent = child.parent
        if parent is None or parent.below is None:
            return
        if now >= parent.due:  # the loop was late (G4)
            self._deadlines.hear_late(parent)
        if parent.call.end is not None:
            return
        parent.heard = now
        below, latest = parent.below, child.call.latest
        counted = below.shares[child.call.id]
        gained = max(0.0, _share_of(child) - counted.share)
        if gained or latest is not counted.latest:
            if gained or _says_more(counted.latest, latest):
                _note_advance(child, now)
            counted.share = counted.share + gained
            counted.latest = latest
            below.done += gained * child.call.opened.weight
            _touch(child, child)
            if parent.call.state is State.RUNNING and not below.is_own:
                done, whole = round(below.done, 6), round(below.weights, 6)
                message = latest.message if latest else None
                # Another child may come, so the whole is shown at the end of the call and not before. Until
                # then, the last number stays; the message is news all the same.
                below.shown = done if done < whole else below.shown
                if done < whole or message != (parent.call.latest.message if parent.call.latest else None):
                    self._report(parent, below.shown, whole or None, message)
                    return
        self.on_sign_of_life(parent, now)

    def complete(self, live: LiveCall) -> None:
        """Show that everything below a call is done, now that it ends well and no other child can come."""
        below, latest = live.below, live.call.latest
        if below is not None and not below.is_own and below.weights and below.shown < below.done:
            done, whole = round(below.done, 6), round(below.weights, 6)
            if done >= whole:
                self._report(live, whole, whole, latest.message if latest else None)

    def on_end(self, live: LiveCall) -> None:
        """Count a call that has ended as done, and forget its questions above it."""
        parent = live.parent
        if parent is None or parent.below is None:
            return
        self.close_questions_of(live)
        now = self._clock.now()
        _note_advance(live, now)
        self.on_sign_of_life(live, now)
        _touch(live, None)
        if parent.below.children.pop(live.call.id, None) is not None and live.call.end is not None:
            parent.below.failed += live.call.end.outcome != "ok"
        parent.below.shares.pop(live.call.id, None)

    def changed(self, live: LiveCall, told: dict[str, int]) -> list[ChildSummary]:
        """The calls below that have changed since they were told of, those first that waited longest for it.

        `told` belongs to the reader: by call, the change it knows. It is brought up to date.
        """
        below = live.below
        if below is None:
            return []
        news = [
            (told.get(call_id, 0), version, call_id)
            for call_id, (version, _) in below.changed.items()
            if version > told.get(call_id, 0)
        ]
        children: list[ChildSummary] = []
        for _, version, call_id in nsmallest(MAX_CHANGES_AT_ONCE, news):
            told[call_id] = version
            one = below.changed[call_id][1]
            is_over = isinstance(one, ChildSummary)
            children.append(one if is_over else summarize_child(one.call, live.call.id))
        return children

    def rest(self, live: LiveCall, told: dict[str, int]) -> list[ChildSummary]:
        """All calls below an ended call whose last state was not sent to its caller yet.

        One that still runs is told to stop, for the call above it is over.
        """
        below = live.below
        if below is None:
            return []
        found: list[ChildSummary] = []
        for call_id, (version, one) in below.changed.items():
            child = one if isinstance(one, ChildSummary) else summarize_child(one.call, live.call.id)
            if version > told.get(call_id, 0) or child.state != State.FINISHED.value:
                told[call_id] = version
                is_over = child.state == State.FINISHED.value
                found.append(child if is_over else replace(child, state=State.CANCELLING.value))
        return found

    def _take_remote(self, live: LiveCall, children: tuple[ChildSummary, ...]) -> None:
        """Put calls at a gateway behind this one below the call that led to them, and below all above it."""
        if live.below is None:
            live.below = Subtree(is_own=True)
        above: LiveCall | None = live
        while above is not None:
            for child in children:
                parent = child.parent or (None if above is live else live.call.id)
                if above.below is not None:
                    above.below.touch(child.id, replace(child, parent=parent))
            above = above.parent

    def on_question(self, child: LiveCall, question: Question) -> None:
        """Let the parent of a call that asks wait too; where its caller can answer, it is asked there."""
        parent = child.parent
        if parent is None or parent.call.state is not State.RUNNING:
            return
        number = len(parent.call.questions) + 1
        is_ours = question.to == "operator" or not parent.can_ask
        mirror = Question(
            f"{parent.call.id}.{number}",
            f"below{number}",
            "below" if is_ours else question.kind,
            question.message,
            question.body,
            question.to,
            question.id,
        )
        self._commit(parent, Asked(self._clock.now(), mirror))
        self._deadlines.arm(parent)
        self.on_question(parent, mirror)

    def on_answer(self, child: LiveCall, question_id: str, answer: Answer) -> None:
        """Close the questions above a call that stand for one of its own, which was answered."""
        if child.parent is not None:
            for mirror in [one for one in child.parent.call.open.values() if one.below == question_id]:
                self.close_question(child.parent, mirror.id, replace(answer, content=NOTHING))

    def close_questions_of(self, child: LiveCall) -> None:
        """Close the questions that stand at the ancestors of a call that stops or has ended."""
        if child.parent is not None:
            for mirror in list(child.parent.call.open.values()):
                if mirror.below.startswith(f"{child.call.id}."):
                    self.close_question(child.parent, mirror.id, Answer("cancel", by="engine"))

    def close_question(self, live: LiveCall, question_id: str, answer: Answer) -> None:
        """Record the answer to a question that a call asks for another one below it, and tell those above."""
        # One that is cancelling keeps its questions to its end, and takes no answer any more.
        if question_id in live.call.open and live.call.state is State.RUNNING:
            self._commit(live, Answered(self._clock.now(), question_id, answer))
            self._deadlines.arm(live)
            self.on_answer(live, question_id, answer)


def _touch(live: LiveCall, now_is: LiveCall | None) -> None:
    """Note in everything above that this call has changed; None: for the last time, so a copy is kept."""
    above = live.parent
    while above is not None:
        if above.below is not None:
            above.below.touch(live.call.id, now_is or summarize_child(live.call, above.call.id))
        above = above.parent


def _note_advance(live: LiveCall, now: float) -> None:
    """Note in everything above that this call has advanced: so has the work of those above it (C5)."""
    above = live.parent
    while above is not None:
        if above.below is not None:
            above.below.advanced = now
        above = above.parent


def _says_more(before: Reading | None, now: Reading | None) -> bool:
    return now is not None and (before is None or is_advance(before, now))


def _is_own(report: Reading | Reported) -> bool:
    return not isinstance(report, Reading) or report.source == "tool"


def _share_of(child: LiveCall) -> float:
    """The done part of a child, from 0 to 1. An ended child counts as 1, whatever its outcome."""
    latest = child.call.latest
    if child.call.end is not None:
        return 1.0
    if latest is None or latest.progress is None or not latest.total:
        return 0.0
    return min(1.0, max(0.0, latest.progress / latest.total))
