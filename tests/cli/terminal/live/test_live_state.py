"""Everything that lives, folded from the stream of all calls."""

import json
from typing import Any

import msgspec

from afoot.cli.terminal.live.live_state import (
    ENDED_SHOWN_S,
    MAX_ENDED,
    MAX_ENDED_CHILDREN,
    EndedCalls,
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
    Limits,
    Opened,
    Question,
    Reading,
    Released,
    Result,
    Started,
)
from afoot.observe.eta import Eta


def opened(
    at: float = 100.0, parent: str | None = None, tool: str = "count", ceiling_s: float = 300.0
) -> Opened:
    """The first fact of a call."""
    limits = Limits(ceiling_s=ceiling_s)
    return Opened(at, tool, "local", "operator", msgspec.Raw(b"{}"), limits, parent=parent)


def told(scene: LiveState, *facts: tuple[str, int, Fact], now: float = 101.0) -> None:
    """The scene hears of these facts in one frame."""
    scene.apply_changes(LiveChanges(now, [Entry(call, seq, fact) for call, seq, fact in facts]))


def lifecycle(scene: LiveState, call: str) -> str:
    """The state of a live call, as its facts say it."""
    return scene.calls[call].call.state.value


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
    assert lifecycle(scene, "a") == "queued"
    told(scene, ("a", 4, Started(161.0, 2)))
    assert lifecycle(scene, "a") == "running"
    told(scene, ("b", 1, opened()), ("b", 2, Started(100.0)), ("b", 3, Admitted(160.0, "starting server x")))
    assert lifecycle(scene, "b") == "queued"
    told(scene, ("b", 4, Started(161.0, 2)))
    assert lifecycle(scene, "b") == "running"


def test_a_call_is_shown_from_its_first_fact_to_a_while_after_its_last() -> None:
    """V2: how it ended can be read for a moment."""
    scene = LiveState()
    told(scene, ("a", 1, opened()), ("a", 2, Started(100.0)))
    assert list(scene.roots) == ["a"] and list(scene.calls) == ["a"]
    told(scene, ("a", 3, Finished(101.0, "ok")), ("a", 4, Released(101.0)))
    assert not scene.roots and not scene.calls
    assert [node.call.end.outcome for node in scene.ended if node.call.end] == ["ok"]
    scene.drop_ended(101.0 + ENDED_SHOWN_S)
    assert scene.ended
    scene.drop_ended(101.1 + ENDED_SHOWN_S)
    assert not scene.ended


def test_a_call_that_ended_well_keeps_its_result_in_a_line_and_no_more() -> None:
    """V6: as the console lists it; a result that is data, or of a failure, is no line."""
    scene = LiveState()
    text = msgspec.Raw(b'[{"type": "text", "text": "38 invoices\\nand more"}]')
    data = msgspec.Raw(b'[{"type": "text", "text": "{}"}]')
    for name, content, outcome in (("a", text, "ok"), ("b", data, "ok"), ("c", text, "failed")):
        told(scene, (name, 1, opened()), (name, 2, Finished(101.0, outcome, Result(content))))
    assert [node.result_line for node in scene.ended] == ["38 invoices", "", ""]
    results = [node.call.end.result for node in scene.ended if node.call.end]
    assert [bytes(one.content) for one in results if one] == [b"", b"", b""]


def test_calls_that_end_stay_for_five_minutes_up_to_a_thousand() -> None:
    """V6: as long as in the console; a flood of short calls fills no memory."""
    scene = LiveState()
    for number in range(MAX_ENDED + 50):
        told(scene, (str(number), 1, opened()), (str(number), 2, Finished(101.0, "ok")))
    scene.drop_ended(101.0)
    assert [node.call.id for node in scene.ended] == [str(number) for number in range(50, MAX_ENDED + 50)]
    assert ENDED_SHOWN_S == 300
    scene.drop_ended(401.1)
    assert not scene.ended
    told(scene, ("7", 1, opened()))
    assert list(scene.calls) == ["7"], "nothing of them is kept"


def test_calls_that_ended_before_are_read_from_the_history_once() -> None:
    """V6: also while their facts are still to come; not those of five minutes ago, nor calls below others."""
    scene = LiveState()
    told(scene, ("p", 1, opened()), ("p", 2, Started(100.0)), now=1000.0)
    told(scene, ("seen", 1, opened()), ("seen", 2, Finished(990.0, "ok")), now=990.0)
    told(scene, now=1000.0)

    def row(name: str, finished: float, parent: str | None = None, outcome: str = "ok") -> dict[str, Any]:
        who = {"tool": "t", "server": "s", "caller": "c", "state": "finished", "more": 1}
        times = {"opened": finished - 9, "started": finished - 8, "finished": finished}
        return {"id": name, "outcome": outcome, "message": "done it", "parent": parent, **who, **times}

    rows = [
        row("new", 995.0, outcome="failed"), row("seen", 990.0), row("older", 980.0), row("old", 699.0),
        row("below", 985.0, "p"), row("gone", 985.0, "nobody"), row("p", 999.0),
    ]  # fmt: skip
    found = msgspec.json.decode(json.dumps({"calls": rows, "next": None}), type=EndedCalls)
    scene.load_ended(found)
    scene.load_ended(found)
    assert [node.call.id for node in scene.ended] == ["older", "seen", "new"]
    assert [node.call.id for node in scene.calls["p"].ended_children] == ["below"]
    told(scene, ("new", 1, opened()), ("new", 2, Finished(995.0, "failed")), now=1001.0)
    assert len(scene.ended) == 3 and list(scene.calls) == ["p"]
    newest = scene.ended[-1].call
    assert newest.end and newest.end.failure and newest.end.failure.message == "done it"
    assert newest.on_clock(2000.0) == 8.0


def test_a_snapshot_keeps_what_has_ended_and_forgets_what_ended_unseen() -> None:
    """H2, V6: after a break the calls that had ended are still there, below their parents, too."""
    scene = family(3, ended=1)
    told(scene, ("x", 1, opened()), ("x", 2, Finished(101.0, "ok")), ("y", 1, opened()))
    views = [
        {"id": name, "tool": "t", "server": "s", "caller": "c", "state": "running", "opened": 100.0, **more}
        for name, more in (
            ("p" * 32, {"children": {"total": 3, "failed": 0}}),
            ("1" * 32, {"parent": "p" * 32}),
        )
    ]
    scene.load_snapshot(msgspec.json.decode(json.dumps({"now": 105.0, "calls": views}), type=LiveSnapshot))
    assert list(scene.calls) == ["p" * 32, "1" * 32] and [node.call.id for node in scene.ended] == ["x"]
    parent = scene.calls["p" * 32]
    assert parent.child_count == 3 and [node.call.id for node in parent.ended_children] == ["0" * 32]


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
    assert (node.eta, node.stalled) == (Eta(1.0), True)
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
    assert [question.id for _, question in scene.questions_in_order()] == ["a.1"], "one after the other"
    told(scene, ("a", 8, Finished(101.0, "cancelled")))
    assert not scene.open_questions and not scene.waiting


def test_calls_wait_in_the_order_in_which_they_began_to_ask() -> None:
    """Q4, V6: not in that of their start; and a call whose child asks does not wait."""
    scene = LiveState()
    for name in "abc":
        told(scene, (name, 1, opened()))
    for name, seq in (("c", 2), ("a", 2)):
        told(scene, (name, seq, Asked(101.0, Question(f"{name}.1", "", "form", "name?"))))
    told(scene, ("b", 2, Asked(101.0, Question("b.1", "", "below"))))
    assert list(scene.waiting) == ["c", "a"]
    told(scene, ("c", 3, Answered(102.0, "c.1", Answer())))
    told(scene, ("c", 4, Asked(103.0, Question("c.2", "", "sample", "think"))))
    assert list(scene.waiting) == ["a", "c"]
    assert [question.id for _, question in scene.questions_in_order()] == ["a.1"], "a model answers the other"


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


def test_a_tree_stays_in_its_place_until_all_of_it_has_ended() -> None:
    """X3, V6: a call that outlives the one above it is still to be seen below it."""
    scene = family(2, ended=1)
    told(scene, ("p" * 32, 3, Finished(102.0, "cancelled")))
    child = f"{1:032}"
    assert list(scene.roots) == ["p" * 32] and list(scene.calls) == [child] and not scene.ended
    told(scene, (child, 3, Finished(120.0, "ok")), now=120.0)
    assert not scene.roots and not scene.calls and [node.call.id for node in scene.ended] == ["p" * 32]
    scene.drop_ended(120.0 + ENDED_SHOWN_S)
    assert scene.ended, "its time begins when all of it has ended"


def test_of_many_ended_children_only_the_last_few_are_kept() -> None:
    """P8: the others are counted."""
    scene = family(20, ended=20, failed=3)
    parent = scene.calls["p" * 32]
    assert len(parent.ended_children) == MAX_ENDED_CHILDREN
    assert (parent.child_count, parent.failed_count) == (20, 3)
