"""The table of all calls: its groups, its trees, and what it leaves out."""

from pathlib import Path

import pytest
from msgspec import Struct, json

from afoot.cli.terminal.call_words import STATES
from afoot.cli.terminal.live.call_table import IDLE, call_table, title_line
from afoot.cli.terminal.live.live_state import CallNode, LiveChanges, LiveState, ReadingUpdate
from afoot.cli.terminal.text import display_width
from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    ChildSummary,
    Fact,
    Failure,
    Finished,
    Question,
    Reading,
    Reported,
    Started,
)
from tests.cli.terminal.live.test_call_rows import NASTY, text, texts
from tests.cli.terminal.live.test_live_state import family, opened, told


def table(
    scene: LiveState, width: int = 100, most: int = 40, skip: int = 0, unfolded: bool = False
) -> list[str]:
    """The lines of the table."""
    return texts(call_table(scene, width, most, skip, is_unfolded=unfolded).lines)


def started(scene: LiveState, *names: str, tool: str = "count", parent: str | None = None) -> None:
    """Calls that run."""
    for name in names:
        told(scene, (name, 1, opened(tool=tool, parent=parent)), (name, 2, Started(100.0)))


def asked(scene: LiveState, name: str, seq: int = 2, at: float = 100.0, kind: str = "form") -> None:
    """A call asks."""
    told(scene, (name, seq, Asked(at, Question(f"{name}.{seq}", "", kind, f"{name} asks"))))


def heads(lines: list[str]) -> list[str]:
    """The lines that begin a group."""
    return [line for line in lines if line.startswith(("Waiting for you", "Running", "Just ended"))]


def test_calls_stand_in_groups_those_that_wait_first() -> None:
    """V6: as in the console, with its heads; what has just ended is last, the newest first."""
    scene = LiveState()
    started(scene, "r1", "r2", "w1", "e1", "e2")
    told(scene, ("q1", 1, opened(tool="mail")), ("w0", 1, opened(tool="wipe")))
    asked(scene, "w1", 3, 101.0)
    asked(scene, "w0", 2, 101.5)
    told(scene, ("e1", 3, Finished(101.0, "ok")))
    told(scene, ("e2", 3, Finished(102.0, "failed", failure=Failure("too late"))), now=102.0)
    lines = table(scene)
    assert heads(lines) == [
        "Waiting for you  2" + " " * 43 + "clocks stand still; time left to answer",
        "Running  2, and 1 queued",
        "Just ended  2" + " " * 69 + "kept here for 5:00",
    ]
    shapes = [line[0] for line in lines[1:] if line not in heads(lines)]
    assert shapes == ["◆", "◆", "▶", "▶", "◌", "✗", "✓"]
    assert "key 1" in lines[2] and "w1 asks" in lines[2] and "key 2" in lines[3] and "w0 asks" in lines[3]


class FarCalls(Struct):
    """Calls at a gateway behind this one, and their rows: depth, tool, word, per cent, message."""

    name: str
    children: tuple[ChildSummary, ...]
    rows: list[tuple[int, str, str, str, str]]


FAR_FILE = Path(__file__).parents[3] / "vectors" / "far_calls.json"
FAR_CALLS = json.decode(FAR_FILE.read_bytes(), type=list[FarCalls], strict=True)


@pytest.mark.parametrize("vector", FAR_CALLS, ids=lambda vector: vector.name)
def test_calls_at_a_gateway_behind_this_one_stand_below_the_call_that_told_of_them(vector: FarCalls) -> None:
    """V6, P8: as in the console; none of their clocks is known, and they are not counted here."""
    scene = LiveState()
    started(scene, "a", tool="weave")
    told(scene, ("a", 3, Reported(101.0, children=vector.children)))
    lines = table(scene, 170)
    assert heads(lines) == ["Running  1"] and len(lines) == 3 + len(vector.rows)
    for line, (depth, tool, word, percent, message) in zip(lines[3:], vector.rows, strict=True):
        look = next(one for one in STATES.values() if one.word == word)
        assert line.startswith(f"{look.shape} {word} "), line
        assert line.index("└ ") == 15 + 2 * (depth - 1) and line[15:].lstrip(" └").startswith(f"{tool} ")
        assert line.endswith(message) and f" {percent} " in f"{line} "
        assert not {"●", "‖"} & set(line) and " s " not in line


def test_a_child_that_waits_stands_first_and_keeps_its_place_in_the_tree() -> None:
    """V6: it names the call that made it; the calls below it stand below its place."""
    scene = LiveState()
    started(scene, "top", tool="top")
    started(scene, "mid", tool="mid", parent="top")
    started(scene, "low", tool="low", parent="mid")
    asked(scene, "mid", 3)
    told(scene, ("top", 3, Asked(100.0, Question("top.3", "", "below", "", below="mid.3"))))
    lines = table(scene)
    assert lines[1].startswith("Waiting for you  1") and lines[3] == "Running  2"
    assert lines[2].startswith("◆ mid in top ") and " key 1 " in lines[2]
    assert [line.split()[:3] for line in lines[4:]] == [
        ["▶", "top", "local"],
        ["◆", "└", "mid"],
        ["▶", "└", "low"],
    ]
    assert "waits for an answer" in lines[4], "its clocks stand still for the same reason"
    assert " asks you " in lines[5] and len(lines) == 7
    told(
        scene, ("mid", 4, Answered(103.0, "mid.3", Answer())), ("top", 4, Answered(103.0, "top.3", Answer()))
    )
    assert heads(table(scene)) == ["Running  3"] and table(scene)[3].startswith("▶ └ mid")


def test_calls_below_a_root_that_waits_run_and_name_it() -> None:
    """V6: it stands among those that wait alone."""
    scene = LiveState()
    started(scene, "top", tool="top")
    started(scene, "mid", tool="mid", parent="top")
    asked(scene, "top", 3)
    lines = table(scene)
    assert lines[2].startswith("◆ top local ") and lines[3] == "Running  1"
    assert lines[4].startswith("▶ mid in top ") and len(lines) == 5


def test_many_children_are_collapsed_with_counts() -> None:
    """P8, V2: five are shown, the rest is counted."""
    lines = table(family(500, ended=14, failed=12), most=30)
    assert sum("└ count" in line for line in lines) == 5
    assert lines[-1].strip() == "… 495 more, 12 failed"


def test_children_of_children_are_indented_ten_deep() -> None:
    """P8, V2: and no deeper than the column is wide."""
    scene, parent = LiveState(), None
    for number in range(10):
        told(scene, (f"{number:032}", 1, opened(parent=parent)))
        parent = f"{number:032}"
    lines = table(scene)[2:]
    assert len(lines) == 10 and all("count" in line for line in lines)
    assert [line.index("count") for line in lines] == sorted(line.index("count") for line in lines)


def test_an_ended_tree_is_one_row_and_one_with_a_live_call_is_whole() -> None:
    """V6, X3: what has ended takes no room of what runs."""
    scene = family(3, ended=2)
    told(scene, ("p" * 32, 3, Finished(102.0, "ok")))
    lines = table(scene)
    assert heads(lines) == ["Running  1"] and sum("└ count" in line for line in lines) == 3
    told(scene, (f"{2:032}", 3, Finished(103.0, "ok")))
    lines = table(scene)
    assert len(lines) == 3 and lines[1].startswith("Just ended  1") and lines[2].startswith("✓ count")


def test_many_calls_of_one_tool_are_one_line_until_they_are_unfolded() -> None:
    """V6: 200 live calls are read at a glance; what has ended is folded, too."""
    scene = LiveState()
    started(scene, *(f"{number:032}" for number in range(200)), tool="export")
    started(scene, "other", tool="other")
    told(scene, *((f"{number:032}", 3, Finished(101.0, "ok")) for number in range(120)))
    lines = table(scene, 80, 24)
    assert lines[1:3] == ["Running  81", "▸ export  80 running, slowest 1.0 s"]
    assert lines[4].startswith("Just ended  120") and lines[5] == "▸ export  120 done, slowest 1.0 s"
    assert len(lines) == 6
    opened_ = table(scene, 80, 24, unfolded=True)
    assert len(opened_) == 24 and opened_[-1] == "… 180 more that do not fit; the arrows move the table"


def test_rows_that_do_not_fit_are_counted_and_can_be_moved_to() -> None:
    """V2: two hundred calls on a small screen."""
    scene = LiveState()
    for number in range(200):
        told(scene, (f"{number:032}", 1, opened(tool=f"t{number}")))
    lines = table(scene, 80, 11)
    assert len(lines) == 11 and lines[-1].startswith("… 192 more that do not fit")
    assert " t0 " in lines[2] and " t7 " in lines[9]
    moved = table(scene, 80, 10, skip=196)
    assert " t195 " in moved[1] and moved[-1].startswith("… 195 more") and len(moved) == 7
    assert call_table(scene, 80, 10, 5000).first_row == 200, "it cannot be moved past its end"
    assert call_table(scene, 80, 0).lines == []


def test_a_few_that_wait_stay_in_view_wherever_the_table_is_moved_and_many_move_with_it() -> None:
    """V6: what needs a person is never out of sight, and leaves room for the rest."""
    scene = LiveState()
    for number in range(30):
        told(scene, (f"{number:032}", 1, opened(tool=f"t{number}")))
    for number in range(3):
        asked(scene, f"{number:032}")
    lines = table(scene, 80, 12, skip=20)
    assert [" key 1 " in lines[2], " key 3 " in lines[4], " t22 " in lines[5]] == [True] * 3
    for number in range(3, 20):
        asked(scene, f"{number:032}")
    lines = table(scene, 80, 12)
    assert " key 9 " in lines[10] and "…" in lines[11] and len(lines) == 12
    assert " t25 " in table(scene, 80, 12, skip=27)[1]
    assert all("key" not in line for line in table(scene, 80, 30)[11:22]), "nine have a key"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 24])
def test_a_table_is_never_wider_or_higher_than_its_place(width: int, most: int) -> None:
    """V2, V6: with everything in it, and with text that tries to break it."""
    scene = family(12, ended=3, failed=1)
    for number in range(60):
        told(scene, (f"n{number}", 1, opened(tool=f"{NASTY}漢字" * 5)))
    for name in ("n1", "n2", "n3"):
        told(scene, (name, 2, Asked(100.0, Question(f"{name}.2", "", "form", f"{NASTY}漢字" * 50))))
    told(scene, ("n4", 2, Finished(101.0, "failed", failure=Failure(f"{NASTY}漢字" * 50))))
    for skip in (0, 5, 500):
        for unfolded in (False, True):
            lines = call_table(scene, width, most, skip, is_unfolded=unfolded).lines
            assert 0 < len(lines) <= most
            for line in lines:
                assert display_width(text(line)) <= width and text(line).isprintable()


def test_nothing_that_runs_is_said_as_in_the_console() -> None:
    """V6: and nothing before the gateway has answered."""
    scene = LiveState()
    assert table(scene) == []
    told(scene)
    assert table(scene) == [IDLE]


def test_the_title_counts_the_calls_by_state() -> None:
    """V6: in the words and the order of the console; a call that is tried again runs."""
    scene = LiveState()
    assert "looking" in text(title_line(scene, "http://x:1", 80))
    told(scene, now=125.0)
    assert "nothing runs" in text(title_line(scene, "http://x:1", 80))
    started(scene, "run", "stalled", "again")
    told(scene, ("queued", 1, opened()), ("asks", 1, opened()), ("again", 3, Started(120.0, 2)))
    asked(scene, "asks")
    scene.apply_changes(LiveChanges(125.0, [], [ReadingUpdate("run", Reading(124.0, 1), 1, heard=124.0)]))
    title = text(title_line(scene, "http://x:1", 100))
    assert title.startswith("afoot http://x:1  1 waiting, 2 running, 1 stalled, 1 queued ")
    assert title.endswith("?: keys") and len(title) == 100
    assert text(title_line(scene, "http://x:1", 60)).startswith("afoot 1 waiting, 2 running, 1 stalled")


def test_a_redraw_draws_no_more_of_ten_thousand_calls_than_what_fits() -> None:
    """V2, V6: bounded work: rows that nobody sees are not made."""
    scene = LiveState()
    calls = [f"{number:032}" for number in range(10_000)]
    entries: list[tuple[str, int, Fact]] = [(call, 1, opened()) for call in calls]
    told(scene, *entries, *((call, 2, Started(100.0)) for call in calls))
    scene.apply_changes(
        LiveChanges(101.0, [], [ReadingUpdate(call, Reading(101.0, 1, 2, "x" * 1000), 1) for call in calls])
    )
    made = 0

    def counted(name: str) -> str:
        nonlocal made
        made += 1
        return name

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("afoot.cli.terminal.live.call_rows.short_id", counted)
        call_table(scene, 80, 24, is_unfolded=True)
        assert made <= 26
        call_table(scene, 80, 24)
    assert made <= 26, "folded, none has a row of its own"


def test_a_node_alone_is_in_no_tree() -> None:
    """P8: defaults of a node are its own, and no other node's."""
    one, other = (CallNode(node.call) for node in family(1).calls.values())
    one.live_children["x"] = other
    assert not other.live_children and not other.ended_children
