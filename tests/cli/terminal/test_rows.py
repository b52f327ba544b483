"""Calls as lines that fit a screen, without a screen."""

import time

import msgspec
import pytest

from afoot.cli.terminal.live_state import CallNode, LiveChanges, LiveState, ReadingUpdate
from afoot.cli.terminal.rows import (
    STATE_STYLES,
    StyledLine,
    call_row,
    call_table,
    choose_columns,
    display_state,
    header_line,
    question_lines,
    single_call_line,
    title_line,
)
from afoot.cli.terminal.text import display_width
from afoot.core.call import Call, State
from afoot.core.facts import (
    Admitted,
    Asked,
    CancelRequested,
    Fact,
    Failure,
    Finished,
    Opened,
    Question,
    Reading,
    Started,
)
from afoot.observe.eta import Eta
from tests.cli.terminal.test_live_state import family, opened, told

NASTY = "a\x1b[2Jb\u202ec\u200bd\re\nf"


def text(line: StyledLine) -> str:
    """A line without its styles."""
    return "".join(part for part, _ in line)


def texts(lines: list[StyledLine]) -> list[str]:
    """Lines without their styles or what is empty at their ends."""
    return [text(line).rstrip() for line in lines]


def running(reading: Reading | None = None, tool: str = "count") -> CallNode:
    """A call that runs since 100 s."""
    call = Call("f" * 24 + "1a2b3c4d", opened(tool=tool), State.RUNNING, started=100.0, latest=reading)
    return CallNode(call)


def ended(outcome: str) -> Call:
    """A call that has ended so."""
    return Call("a", opened(), State.FINISHED, end=Finished(101.0, outcome))


def test_a_row_says_state_bar_how_far_how_long_what_is_left_how_fast_and_for_whom() -> None:
    """V2: all of it where there is room."""
    node = running(Reading(130.0, 37, 120, "page 37"))
    node.eta, node.rate, node.estimated_at = Eta(30.0), 3.1, 142.0
    line = text(call_row(node, 142.0, choose_columns(160)))
    for part in ("▶ running", "count", "1a2b3c4d", "━━━━━━──────────────", "37/120", "0:42"):
        assert part in line
    for part in ("~30 s left", "3.1/s", "operator", "page 37"):
        assert part in line


def test_where_columns_are_few_what_is_left_stands_before_the_message() -> None:
    """V2: in eighty columns nothing that matters is dropped."""
    node = running(Reading(130.0, 37, 120, "page 37"))
    node.eta, node.estimated_at = Eta(30.0), 142.0
    line = text(call_row(node, 142.0, choose_columns(90)))
    assert "~30 s left; page 37" in line and "1a2b3c4d" in line and "━━" in line


@pytest.mark.parametrize("wide", [20, 38, 40, 60, 76, 80, 104, 132, 300])
def test_a_row_is_never_wider_than_the_screen(wide: int) -> None:
    """V2: whatever a tool says, and however wide its characters are."""
    for message in ("", "x" * 1000, "漢字" * 200, NASTY * 50, "e\u0301" * 500, "👩‍💻" * 100):
        for tool in ("count", "漢字漢字漢字漢字漢字", NASTY):
            node = running(Reading(130.0, 123456, 1e15, message), tool)
            for depth in (0, 1, 9):
                line = text(call_row(node, 142.0, choose_columns(wide), depth))
                assert display_width(line) <= wide and line.isprintable() or "\u200d" in line
            assert display_width(text(single_call_line(node, 142.0, wide))) <= wide
    assert display_width(text(header_line(choose_columns(wide)))) <= wide


def test_every_state_has_a_word_and_a_shape() -> None:
    """V2: colour says nothing alone."""
    queued, starting = Call("a", opened()), Call("a", opened(), admitted=Admitted(1.0, "starting x"))
    live = Call("a", opened(), State.RUNNING)
    asks = Call("a", opened(), State.RUNNING, open={"q": Question("q", "", "approval")})
    stopping = Call("a", opened(), State.CANCELLING)
    outcomes = ("ok", "failed", "refused", "cancelled", "timed_out", "lost", "uncertain")
    found = [display_state(one) for one in (queued, starting, live, asks, stopping, *map(ended, outcomes))]
    assert {*found, display_state(live, stalled=True)} == set(STATE_STYLES)
    shapes = [shape for shape, _ in STATE_STYLES.values()]
    assert len(set(shapes)) == len(shapes) - 1  # nobody knows what became of a lost or an uncertain one


@pytest.mark.parametrize(
    ("fact", "word", "said"),
    [
        (Admitted(100.0, "starting server x"), "starting", "starting server x"),
        (Asked(100.0, Question("a.1", "", "approval", "run?")), "waiting", "waiting for approval"),
        (Asked(100.0, Question("a.1", "", "form", "name?")), "waiting", "waiting for an answer"),
        (Asked(100.0, Question("a.1", "", "below")), "waiting", "waiting for a call below"),
        (CancelRequested(100.0, "operator", "seen enough"), "cancelling", "seen enough"),
        (Finished(101.0, "failed", failure=Failure("too many requests")), "failed", "too many requests"),
        (Finished(101.0, "cancelled", failure=Failure("cancelled: enough")), "cancelled", "enough"),
    ],
)
def test_a_row_says_what_it_waits_for_or_why_it_ended(fact: Fact, word: str, said: str) -> None:
    """V2: and says nothing twice."""
    scene = LiveState()
    told(scene, ("a", 1, opened()), ("a", 2, fact))
    line = texts(call_table(scene, 120, 10))[1]
    assert word in line and line.endswith(said) and line.count("cancelled") <= 1


def test_a_bar_moves_where_nobody_knows_how_far_and_stands_while_it_waits() -> None:
    """V2: a pulse says that it lives, no more."""
    node, fit = running(), choose_columns(80)
    assert len({text(call_row(node, 100 + step / 5, fit)) for step in range(4)}) == 4
    node.call.open["q"] = Question("q", "", "form")
    assert len({text(call_row(node, 100 + step / 5, fit)) for step in range(4)}) == 1


def test_many_children_are_collapsed_with_counts() -> None:
    """P8, V2: five are shown, the rest is counted."""
    lines = texts(call_table(family(500, ended=14, failed=12), 100, 30))
    assert sum("└ count" in line for line in lines) == 5
    assert lines[-1].strip() == "… 495 more, 12 failed"


def test_children_of_children_are_indented_ten_deep() -> None:
    """P8, V2: and no deeper than the column is wide."""
    scene, parent = LiveState(), None
    for number in range(10):
        told(scene, (f"{number:032}", 1, opened(parent=parent)))
        parent = f"{number:032}"
    lines = texts(call_table(scene, 100, 30))[1:]
    assert len(lines) == 10 and all("count" in line for line in lines)
    assert [line.index("count") for line in lines] == sorted(line.index("count") for line in lines)


def test_rows_that_do_not_fit_are_counted_and_can_be_moved_to() -> None:
    """V2: two hundred calls on a small screen."""
    scene = LiveState()
    for number in range(200):
        told(scene, (f"{number:032}", 1, opened()))
    lines = texts(call_table(scene, 80, 10))
    assert len(lines) == 10 and lines[-1].startswith("… 192 more that do not fit")
    assert "00000000" in lines[1] and "00000007" not in "".join(lines[:2])
    moved = texts(call_table(scene, 80, 10, skip=195))
    assert "00000195" in moved[1] and moved[-1].startswith("… 195 more")
    assert call_table(scene, 80, 0) == []


def test_what_waits_for_a_person_is_listed_with_its_key() -> None:
    """Q4, V2: the oldest first; what has no room is counted."""
    scene = LiveState()
    for number in range(12):
        question = Question(f"{number}.1", "", "approval", f"run {number}? {NASTY}")
        told(scene, (str(number), 1, opened()), (str(number), 2, Asked(100.0, question)))
    lines = texts(question_lines(scene, 80, 30))
    assert lines[1].startswith("1 0:01 0 run 0?") and lines[9].startswith("9 ") and lines[10] == "… 3 more"
    assert texts(question_lines(scene, 80, 4))[1:] == [lines[1], lines[2], "… 10 more"]
    assert all(line.isprintable() for line in lines)
    assert question_lines(LiveState(), 80, 30) == []


def test_the_title_says_where_how_many_and_what_is_wrong() -> None:
    """V2: a gateway that is away, or a history that cannot be written, is said first."""
    scene = family(2)
    assert "http://x:1  3 running" in text(title_line(scene, "http://x:1", "", 80))
    quiet = LiveState()
    assert "looking" in text(title_line(quiet, "http://x:1", "", 80))
    told(quiet)
    assert "nothing runs" in text(title_line(quiet, "http://x:1", "", 80))
    assert "! it is away" in text(title_line(scene, "http://x:1", "it is away", 80))
    scene.degraded = NASTY
    told_ = text(title_line(scene, "http://x:1", "", 80))
    assert "! history: a␛[2Jb⟨U+202E⟩c" in told_ and told_.isprintable()


def test_a_redraw_takes_no_longer_for_ten_thousand_calls_than_for_what_fits() -> None:
    """V2: bounded work: rows that nobody sees are not made."""
    scene = LiveState()
    calls = [f"{number:032}" for number in range(10_000)]
    entries = [(call, 1, opened()) for call in calls] + [(call, 2, Started(100.0)) for call in calls]
    told(scene, *entries)
    scene.apply_changes(
        LiveChanges(101.0, [], [ReadingUpdate(call, Reading(101.0, 1, 2, "x" * 1000), 1) for call in calls])
    )
    made = 0

    def counted(tool: str) -> str:
        nonlocal made
        made += 1
        return tool

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("afoot.cli.terminal.rows.short_id", counted)
        call_table(scene, 80, 24)
    assert made <= 24


def test_a_message_of_a_megabyte_costs_what_fits() -> None:
    """G3, V2: it is cut before it is looked at."""
    node = running(Reading(130.0, 1, 2, "\u202e" * 1_000_000))
    began = time.process_time()
    for _ in range(100):
        call_row(node, 142.0, choose_columns(100))
    assert time.process_time() - began < 5.0  # all of it would take a minute


def test_raw_arguments_are_no_part_of_a_row() -> None:
    """S4: a table on a screen shows no arguments."""
    call = Call("a", Opened(1.0, "t", "local", "me", msgspec.Raw(b'{"password": "hush"}')), State.RUNNING)
    assert "hush" not in text(call_row(CallNode(call), 2.0, choose_columns(300)))
