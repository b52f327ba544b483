"""Everything that lives, folded from the stream of all calls."""

import json
from typing import Any

import msgspec

from afoot.cli.terminal.live_state import (
    ENDED_SHOWN_S,
    MAX_ENDED_SHOWN,
    LiveChanges,
    LiveSnapshot,
    LiveState,
    ReadingUpdate,
    shown_children,
)
from afoot.core.facts import (
    Admitted,
    Answer,
    Answered,
    Asked,
    Entry,
    Fact,
    Finished,
    Interrupted,
    Opened,
    Question,
    Reading,
    Released,
    Started,
)
from afoot.observe.eta import Eta


def opened(at: float = 100.0, parent: str | None = None, tool: str = "count") -> Opened:
    """The first fact of a call."""
    return Opened(at, tool, "local", "operator", msgspec.Raw(b"{}"), parent=parent)


def told(scene: LiveState, *facts: tuple[str, int, Fact], now: float = 101.0) -> None:
    """The scene hears of these facts in one frame."""
    scene.apply_changes(LiveChanges(now, [Entry(call, seq, fact) for call, seq, fact in facts]))


def family(children: int, ended: int = 0, failed: int = 0) -> LiveState:
    """A call with so many below it, of which some have ended and some of these failed."""
    scene = LiveState()
    told(scene, ("p" * 32, 1, opened()), ("p" * 32, 2, Started(100.0)))
    for number in range(children):
        name = f"{number:032}"
        told(scene, (name, 1, opened(parent="p" * 32)), (name, 2, Started(100.0)))
        if number < ended:
            told(scene, (name, 3, Finished(101.0, "failed" if number < failed else "ok")))
    return scene


def test_a_call_whose_gateway_died_is_queued_until_it_starts_again() -> None:
    """H2, V2: for a watcher that reconnects; an older version did not say so, and then its start is shown."""
    scene = LiveState()
    told(scene, ("a", 1, opened()), ("a", 2, Started(100.0)), ("a", 3, Interrupted(160.0, 1.0)))
    assert scene.count_by_state() == {"queued": 1}
    told(scene, ("a", 4, Started(161.0, 2)))
    assert scene.count_by_state() == {"running": 1}
    told(scene, ("b", 1, opened()), ("b", 2, Started(100.0)), ("b", 3, Admitted(160.0, "starting server x")))
    assert scene.count_by_state() == {"running": 1, "queued": 1}
    told(scene, ("b", 4, Started(161.0, 2)))
    assert scene.count_by_state() == {"running": 2}


def test_a_call_is_shown_from_its_first_fact_to_a_while_after_its_last() -> None:
    """V2: how it ended can be read for a moment."""
    scene = LiveState()
    told(scene, ("a", 1, opened()), ("a", 2, Started(100.0)))
    assert list(scene.roots) == ["a"] and scene.count_by_state() == {"running": 1}
    told(scene, ("a", 3, Finished(101.0, "ok")), ("a", 4, Released(101.0)))
    assert not scene.roots and not scene.calls
    assert [node.call.end.outcome for node in scene.ended if node.call.end] == ["ok"]
    scene.drop_ended(101.0 + ENDED_SHOWN_S)
    assert scene.ended
    scene.drop_ended(101.1 + ENDED_SHOWN_S)
    assert not scene.ended


def test_of_many_calls_that_end_only_the_last_few_stay() -> None:
    """V2: a flood of short calls pushes nothing off the screen."""
    scene = LiveState()
    for number in range(50):
        told(scene, (str(number), 1, opened()), (str(number), 2, Finished(101.0, "ok")))
    scene.drop_ended(101.0)
    assert [node.call.id for node in scene.ended] == [
        str(number) for number in range(50 - MAX_ENDED_SHOWN, 50)
    ]


def test_a_snapshot_and_what_follows_it_overlap_without_harm() -> None:
    """H2: facts up to a call's number are in the snapshot already."""
    scene = LiveState()
    asked: dict[str, Any] = {"id": "a.1", "kind": "form", "message": "name?", "asked": 100.5}
    call = {
        "id": "a", "tool": "t", "server": "local", "caller": "me", "state": "running", "opened": 100.0,
        "started": 100.1, "seq": 3, "questions": [asked], "progress": 1, "total": 4, "message": "one",
        "eta": {"left_s": 1.0}, "rate": 3.0, "stalled": True, "unknown": "ignored",
    }  # fmt: skip
    found = {"now": 101.0, "calls": [call], "questions": [asked], "more": 1}
    scene.load_snapshot(msgspec.json.decode(json.dumps(found), type=LiveSnapshot))
    told(scene, ("a", 2, Started(100.1)), ("a", 3, Asked(100.5, Question("a.1", "", "form", "name?"))))
    node = scene.calls["a"]
    assert (node.eta, node.rate, node.stalled) == (Eta(1.0), 3.0, True)
    assert node.call.latest == Reading(100.1, 1, 4, "one") and list(scene.open_questions) == ["a.1"]
    told(scene, ("a", 4, Answered(102.0, "a.1", Answer())))
    assert not scene.open_questions and not node.call.open


def test_only_what_the_operator_may_answer_is_in_the_inbox() -> None:
    """Q4: what its caller is asked as well; not what a model is asked, nor what stands for one below."""
    scene = LiveState()
    kinds = [
        Question("a.1", "", "approval", "run?"),
        Question("a.2", "", "sample", "think"),
        Question("a.3", "", "below"),
        Question("a.4", "", "form", "mirrored", below="b.1"),
        Question("a.5", "", "form", "yours", to="caller"),
        Question("a.6", "", "url", "log in"),
    ]
    told(scene, ("a", 1, opened()), *(("a", n, Asked(100.0, one)) for n, one in enumerate(kinds, 2)))
    assert list(scene.open_questions) == ["a.1", "a.5", "a.6"]
    told(scene, ("a", 8, Finished(101.0, "cancelled")))
    assert not scene.open_questions


def test_a_last_reading_is_taken_before_the_end_it_came_with() -> None:
    """P2: nothing of a call is lost because it was quick."""
    scene = LiveState()
    facts: list[Entry] = [Entry("a", 1, opened()), Entry("a", 2, Finished(101.0, "ok"))]
    scene.apply_changes(LiveChanges(101.0, facts, [ReadingUpdate("a", Reading(100.9, 3, 3, "all"), 3)]))
    assert [node.call.latest for node in scene.ended] == [Reading(100.9, 3, 3, "all")]


def test_what_a_call_called_stands_below_it_and_is_counted() -> None:
    """P8, V2: what lives first, then what has ended."""
    scene = family(8, ended=6, failed=2)
    parent = scene.calls["p" * 32]
    assert (parent.child_count, parent.failed_count, len(parent.live_children)) == (8, 2, 2)
    assert [node.call.end is None for node in shown_children(parent)][:3] == [True, True, False]
    assert list(scene.roots) == ["p" * 32]


def test_a_child_that_outlives_its_parent_is_not_lost() -> None:
    """X3: it stays to be seen until it has ended, too."""
    scene = family(1)
    told(scene, ("p" * 32, 3, Finished(102.0, "cancelled")))
    child = "0" * 32
    assert child in scene.ended[0].live_children
    scene.drop_ended(102.1 + ENDED_SHOWN_S)
    assert list(scene.roots) == [child]
    told(scene, (child, 3, Finished(120.0, "ok")))
    assert not scene.roots and [node.call.id for node in scene.ended] == [child]
