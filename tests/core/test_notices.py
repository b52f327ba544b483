"""What the engine says for a silent tool: facts and an instant in, words out."""

import pytest
from msgspec.structs import replace

from afoot.core.call import Call, note
from afoot.core.facts import (
    Admitted,
    Asked,
    CancelRequested,
    ChildSummary,
    Fact,
    Finished,
    Hindered,
    Opened,
    Question,
    Reading,
    Released,
    Reported,
    Started,
)
from afoot.core.notices import STALL_S, is_stalled, lifecycle_stages, notice, summarize_child, waiting_on
from tests.core.calls_by_state import answered, asked, commit, lived, opened, running


def advancing(every_s: float, reports: int) -> Call:
    """A call that started at 0 and reported at this pace."""
    call = running()
    for number in range(1, reports + 1):
        note(call, Reading(number * every_s, float(number)))
    return call


def test_a_notice_has_no_number_of_its_own() -> None:
    """T5: source engine, no progress, no total; saying it changes nothing in the call."""
    call = running()
    said = notice(call, 45.0)
    assert (said.source, said.progress, said.total, said.at) == ("engine", None, None, 45.0)
    assert (call.latest, call.readings, call.heard) == (None, 0, 0.0)


def test_it_says_what_hinders_the_call() -> None:
    """B6: as long as it does."""
    call = running()
    commit(call, Hindered(1.0, "its tab is hidden", "show it"))
    assert notice(call, 45.0).message == "running, 45 s, its tab is hidden"
    commit(call, Hindered(2.0))
    assert notice(call, 45.0).message == "running, 45 s"


def test_it_says_on_whom_the_call_waits_or_how_long_it_runs() -> None:
    """C6, T5: queued, running, waiting for an answer, cancelling."""
    call = lived(opened())
    assert (notice(call, 20.0).message, waiting_on(call)) == ("queued, 20 s", None)
    commit(call, Started(20.0))
    assert (notice(call, 65.0).message, waiting_on(call)) == ("running, 45 s", None)
    commit(call, asked(70.0))
    assert (notice(call, 90.0).message, waiting_on(call)) == ("waiting for an answer: sure?", "person")
    commit(call, answered(170.0))
    assert notice(call, 175.0).message == "running, 55 s", "human time is off the clock"
    commit(call, CancelRequested(180.0, "caller", "enough"))
    assert notice(call, 181.0).message == "cancelling"


def test_it_says_what_is_being_started() -> None:
    """T5, C1: since when, and until the tool runs."""
    call = lived(opened(), Admitted(10.0, "starting server files"))
    assert notice(call, 25.0).message == "starting server files, 15 s"
    commit(call, Started(30.0))
    assert notice(call, 35.0).message == "running, 5 s"


def test_it_says_that_an_approval_is_waited_for() -> None:
    """C6: and for what."""
    call = lived(opened(), Asked(1.0, Question("q", "k", "approval", "Run export?")))
    assert (notice(call, 9.0).message, waiting_on(call)) == ("waiting for approval: Run export?", "person")


def test_a_call_below_is_told_of_in_a_few_words() -> None:
    """P8: id, tool, state, numbers; its own parent only where that is not the one that is followed."""
    call = lived(replace(opened(), parent="p"), Started(1.0))
    assert summarize_child(call, "p") == ChildSummary("c", "export", "running")
    note(call, Reading(2.0, 1.0, 4.0, "first"))
    assert summarize_child(call, "root") == ChildSummary(
        "c", "export", "running", None, 1.0, 4.0, "first", "p"
    )
    commit(call, Finished(3.0, "failed"))
    assert (summarize_child(call, "p").state, summarize_child(call, "p").outcome) == ("finished", "failed")


def test_a_question_without_words_is_waited_for_too() -> None:
    """C6: what a model or a list of roots is asked for has no text of its own."""
    call = running()
    call.open["q"] = Question("q", "k", "sample")
    assert notice(call, 1.0).message == "waiting for an answer"


@pytest.mark.parametrize(
    ("every_s", "silent_s", "stalled"),
    [
        (1.0, STALL_S - 0.5, False),
        (1.0, STALL_S + 0.5, True),
        (5.0, 19.5, False),  # four of its usual gaps
        (5.0, 20.5, True),
    ],
)
def test_alive_without_advance_for_longer_than_usual_is_stalled(
    every_s: float, silent_s: float, stalled: bool
) -> None:
    """C5: by this call's own pace, and never before ten seconds; heartbeats are no advance."""
    call = advancing(every_s, 10)
    now = every_s * 10 + silent_s
    assert is_stalled(call, now, heard=now - 0.1) is stalled
    text = notice(call, now, heard=now - 0.1).message or ""
    assert (text == f"alive, but no advance for {silent_s:.0f} s") is stalled


def test_reports_with_content_set_the_pace_too() -> None:
    """C5, P7: whether a report is a reading or a fact, it is an advance."""
    call = running()
    for number in range(1, 11):
        commit(call, Reported(float(number), progress=float(number)))
    assert is_stalled(call, 10 + STALL_S + 1, heard=20.0)


def test_silence_is_not_stalled() -> None:
    """C5: a call that gives no sign of life is the idle limit's business."""
    call = advancing(1.0, 5)
    assert not is_stalled(call, 29.0, heard=5.0)
    assert notice(call, 29.0, heard=5.0).message == "running, 29 s"


def test_a_call_that_never_reported_has_no_usual_gap() -> None:
    """C5: heartbeats alone make no pace to fall behind."""
    assert not is_stalled(running(), 100.0, heard=99.0)


@pytest.mark.parametrize(
    "then",
    [asked(6.0), CancelRequested(6.0, "caller", "enough"), Finished(6.0, "ok")],
    ids=lambda fact: type(fact).__name__,
)
def test_only_a_call_that_runs_can_be_stalled(then: Fact) -> None:
    """C5: not one that waits for a person, is being stopped, or is over."""
    call = advancing(1.0, 5)
    assert is_stalled(call, 100.0, heard=99.0)
    commit(call, then)
    assert not is_stalled(call, 100.0, heard=99.0)


def test_the_stages_are_the_four_of_a_call_that_goes_well() -> None:
    """T5: started 0, initialising 25, executing 50, completed 100 of 100, all said by the engine."""
    facts: list[Fact] = [opened(), Started(1.0), Finished(2.0, "ok")]
    shown = [stage for fact in facts for stage in lifecycle_stages(fact)]
    assert [(one.progress, one.total, one.message) for one in shown] == [
        (0, 100, "started"), (25, 100, "initialising"), (50, 100, "executing"), (100, 100, "completed"),
    ]  # fmt: skip
    assert {one.source for one in shown} == {"engine"}
    assert isinstance(facts[0], Opened) and lifecycle_stages(Released(3.0)) == []


@pytest.mark.parametrize("outcome", ["failed", "refused", "cancelled", "timed_out", "lost", "uncertain"])
def test_a_call_that_does_not_end_well_never_shows_a_hundred(outcome: str) -> None:
    """T5: the last stage is for a result."""
    assert lifecycle_stages(Finished(2.0, outcome)) == []
