"""What is noted of a call while it lives: its milestones, its silences, and no more than is kept."""

import pytest
from msgspec import Raw

from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    CancelRequested,
    Finished,
    Interrupted,
    Question,
    Redefined,
    Reported,
    Started,
)
from afoot.observe.call_notes import MAX_MILESTONES
from tests.observe.sample_calls import Noted


def test_milestones_are_few_however_much_is_reported() -> None:
    """V3: a span keeps 128 events: the first report and the quarters are marks, readings are none."""
    noted = Noted().facts(Started(101.0)).reads(*((101 + n / 100, n, 1000) for n in range(1, 1001)))
    noted.facts(Finished(120.0, "ok"))
    assert noted.named() == ["started", "first report", "progress", "progress", "progress", "finished"]
    assert [one.about["percent"] for one in noted.notes.milestones[2:5]] == [25, 50, 75]


def test_a_call_that_asks_without_end_keeps_its_end() -> None:
    """V3: milestones are capped well below what a span keeps, and the last is always there."""
    noted = Noted().facts(Started(101.0))
    for number in range(200):
        noted.facts(Asked(102.0 + number, Question(f"q{number}", f"k{number}", "form")))
    noted.facts(Finished(400.0, "ok"))
    assert len(noted.named()) == MAX_MILESTONES
    assert noted.named()[-1] == "finished"


def test_the_time_people_take_is_no_silence_of_the_tool() -> None:
    """V3: the longest gap is the tool's, and the question's wait is told apart."""
    noted = Noted().facts(Started(101.0)).reads((102.0, 1, 3))
    noted.facts(Asked(103.0, Question("q", "k", "form", "sure?")), Answered(160.0, "q", Answer()))
    noted.reads((162.5, 2, 3), (163.0, 3, 3)).facts(Finished(164.0, "ok"))
    assert noted.notes.first == 102.0
    assert noted.notes.gap_s == pytest.approx(2.5)
    assert noted.notes.waits == [("form", 57.0)]
    assert "asked" in noted.named() and "answered" in noted.named()


def test_silence_before_the_first_report_and_before_the_end_counts() -> None:
    """V3: a tool may be silent at either end."""
    begins_late = Noted().facts(Started(101.0)).reads((111.0, 1, 2)).facts(Finished(112.0, "ok"))
    ends_late = Noted().facts(Started(101.0)).reads((102.0, 1, 2)).facts(Finished(132.0, "timed_out"))
    assert begins_late.notes.gap_s == pytest.approx(10.0)
    assert ends_late.notes.gap_s == pytest.approx(30.0)


def test_a_tool_that_never_reports_has_no_gap() -> None:
    """V3: nothing is measured of what was never promised."""
    assert Noted().facts(Started(101.0), Finished(132.0, "ok")).notes.first is None


def test_a_call_that_lives_and_does_not_advance_is_counted_once_a_stall() -> None:
    """V3, C5: the mark is set when it stops, and again only after it went on."""
    noted = Noted().facts(Started(101.0)).reads((102.0, 1, 9))
    for now in (103.0, 120.0, 130.0):
        noted.live.heard = now - 0.5
        noted.notes.look(now)
    assert (noted.notes.stalls, noted.named().count("stalled")) == (1, 1)
    noted.reads((131.0, 2, 9))
    noted.live.heard = 131.5
    noted.notes.look(132.0)
    noted.live.heard = 200.0
    noted.notes.look(201.0)
    assert noted.notes.stalls == 2


def test_attempts_cancels_and_late_reports_are_noted() -> None:
    """V3: what a span needs to tell the whole of it."""
    noted = Noted().facts(Started(101.0), Started(105.0, 2, why="the server died"))
    noted.facts(CancelRequested(106.0, "caller", "enough"), Finished(107.0, "cancelled"))
    noted.facts(Reported(108.0, 2, partial=Raw(b"[]"), late=True))
    assert noted.named() == ["started", "retry", "cancel requested", "finished"]
    assert [(one.number, one.began, one.over) for one in noted.notes.tries] == [
        (1, 101.0, 105.0),
        (2, 105.0, 107.0),
    ]
    assert noted.notes.late == 1


def test_a_tool_that_has_changed_is_noted() -> None:
    """V3, A7: the span says that another definition ran than was called."""
    assert Noted().facts(Redefined(101.0, "another"), Started(105.0)).named() == ["redefined", "started"]


def test_the_death_of_the_gateway_before_is_noted() -> None:
    """V3, H4: a span of a call that was found says so; nobody tells of the dead gateway's attempts."""
    noted = Noted().facts(Interrupted(101.0, 3.0), Started(105.0, 2), Finished(107.0, "ok"))
    assert noted.named() == ["interrupted", "started", "finished"]
    assert [(one.number, one.began) for one in noted.notes.tries] == [(2, 105.0)]
