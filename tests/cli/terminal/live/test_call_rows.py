"""Calls as lines that fit a screen, without a screen."""

import time

import msgspec
import pytest

from afoot.cli.terminal.live.call_rows import (
    StyledLine,
    call_rows,
    choose_columns,
    header_line,
    single_call_line,
)
from afoot.cli.terminal.live.live_state import CallNode
from afoot.cli.terminal.text import display_width
from afoot.core.call import Call, State
from afoot.core.facts import Asked, Fact, Finished, Hindered, Limits, Opened, Question, Reading, Started
from afoot.observe.eta import Eta
from tests.cli.terminal.live.test_live_state import opened
from tests.cli.terminal.test_call_words import node_after

NASTY = "a\x1b[2Jb\u202ec\u200bd\re\nf"


def text(line: StyledLine) -> str:
    """A line without its styles."""
    return "".join(part for part, _ in line)


def texts(lines: list[StyledLine]) -> list[str]:
    """Lines without their styles or what is empty at their ends."""
    return [text(line).rstrip() for line in lines]


def running(reading: Reading | None = None, tool: str = "count") -> CallNode:
    """A call that runs since 100 s, and was heard at 130 s."""
    name = "f" * 24 + "1a2b3c4d"
    call = Call(
        name, opened(tool=tool), State.RUNNING, started=100.0, since=100.0, heard=130.0, latest=reading
    )
    return CallNode(call)


def row(node: CallNode, width: int, at: float = 142.0, key: str = "") -> str:
    """The lines of a call as one."""
    return " ".join(texts(call_rows(node, at, choose_columns(width), key=key)))


def style_of(line: StyledLine, part: str) -> str:
    """The style of a part of a line."""
    return next(style for shown, style in line if part in shown)


def test_a_row_has_state_bar_per_cent_time_left_both_clocks_with_their_limits_and_message() -> None:
    """V2, V5, V6: all of it where there is room, in the console's figures."""
    node = running(Reading(130.0, 37, 120, "page 37"))
    node.eta = Eta(84.0)
    line = row(node, 170)
    for part in ("▶ running", "count local", "1a2b3c4d", "━━━━━───────────", " 30 %", " ~1:24 ", "operator"):
        assert part in line, part
    for part in ("◑ 0:12 of 0:30", " 0:42 of 5:00", "page 37"):
        assert part in line, part


def test_in_eighty_columns_the_time_left_stands_before_the_message() -> None:
    """V2, V6: nothing that matters is dropped."""
    node = running(Reading(130.0, 37, 120, "page 37"))
    node.eta = Eta(30.0)
    line = row(node, 80)
    for part in ("▶ count", "━━────", " 30 %", "◑ 0:12", "0:42", "1a2b3c4d", "~0:30 left · page 37"):
        assert part in line, part


def test_a_narrow_row_has_two_lines_as_on_a_phone() -> None:
    """V6: what the call is above, how its clocks stand below."""
    node = running(Reading(130.0, 37, 120, "page 37"))
    first, second = texts(call_rows(node, 142.0, choose_columns(40)))
    assert first == "▶ count local              30 % 1a2b3c4d"
    assert second == "   ◑ 0:12    0:42 page 37"


@pytest.mark.parametrize("wide", [10, 20, 38, 40, 56, 60, 76, 80, 96, 104, 116, 120, 132, 160, 300])
def test_a_row_is_never_wider_than_the_screen(wide: int) -> None:
    """V2, V6: whatever a tool says, and however wide its characters are."""
    for message in ("", "x" * 1000, "漢字" * 200, NASTY * 50, "e\u0301" * 500, "👩‍💻" * 100):
        for tool in ("count", "漢字漢字漢字漢字漢字", NASTY):
            node = running(Reading(130.0, 123456, 1e15, message), tool)
            asks = running(None, tool)
            asks.call.open["q"] = Question("q", "", "form", message)
            asks.call.asked_at["q"] = 130.0
            for one in (node, asks):
                for depth in (0, 1, 9):
                    for line in call_rows(one, 142.0, choose_columns(wide), depth, "7"):
                        shown = text(line)
                        assert display_width(shown) <= wide, shown
                        assert shown.isprintable() or "\u200d" in shown
                assert display_width(text(single_call_line(one, 142.0, wide))) <= wide
    assert display_width(text(header_line(choose_columns(wide)))) <= wide


@pytest.mark.parametrize("wide", [60, 80, 120])
def test_columns_stand_at_the_same_place_in_every_row(wide: int) -> None:
    """V6: wide characters of a tool break no row; numbers are right-aligned below their titles."""
    columns = choose_columns(wide)
    nodes = [
        running(Reading(130.0, 37, 120, "漢字")), running(Reading(130.0, 9e8, None, "x"), "漢字漢字漢字"),
        running(None, "tool_with_a_long_name_of_a_browser"), node_after(Finished(4000.0, "failed")),
    ]  # fmt: skip
    end = wide - columns.message_width
    for node in nodes:
        [line] = call_rows(node, 142.0, columns)
        before, parts = 0, iter(line)
        while before < end:
            before += display_width(next(parts)[0])
        assert before == end, text(line)
    title = text(header_line(columns))
    assert title.index("Message") == end and title[: title.index("Elapsed") + 7].endswith("Elapsed")


@pytest.mark.parametrize(
    ("facts", "at", "silent", "elapsed", "said"),
    [
        ([], 104.2, "", "4.2 s", "queued"),
        ([Started(100.0)], 104.2, "◕ 4.2 s", "4.2 s", ""),
        ([Started(100.0)], 124.4, "◔ 0:24", "0:24", "stalled, ends in 5.6 s"),
        (
            [Started(100.0), Asked(108.0, Question("a.1", "", "form", "who?"))],
            156.0,
            "‖ 9:12",
            "8.0 s",
            "who?",
        ),
        ([Asked(100.5, Question("a.1", "", "approval", "Run it?"))], 104.2, "‖ 9:57", "0.0 s", "Run it?"),
        ([Started(100.0), Asked(108.0, Question("a.1", "", "below"))], 156.0, "‖", "8.0 s", "waits for"),
        (
            [Started(100.0), Hindered(101.0, "tab is hidden")],
            111.0,
            "◕ 0:11",
            "0:11",
            "held up: tab is hidden",
        ),
        ([Started(100.0), Finished(101.5, "ok")], 300.0, "", "1.5 s", ""),
    ],
)
def test_both_clocks_say_how_they_stand_and_stand_still_while_a_person_is_asked(
    facts: list[Fact], at: float, silent: str, elapsed: str, said: str
) -> None:
    """V5, V6: the silence so far, or the time left to answer; the time on the clock."""
    node = node_after(*facts)
    line = row(node, 80, at)
    assert f"{silent:>7} {elapsed:>7}" in line and said in line
    if silent.startswith("‖"):
        assert row(node, 80, at + 30).count(elapsed) == 1, "the ceiling stands still"


def test_a_call_without_an_idle_limit_has_no_ring_but_its_silence() -> None:
    """V5: the time since it was heard is a fact all the same."""
    call = Opened(100.0, "t", "local", "me", msgspec.Raw(b"{}"), Limits(idle_s=None))
    node = CallNode(Call("a", call, State.RUNNING, heard=100.0, since=100.0))
    line = row(node, 120, 172.0)
    assert "  1:12 " in line and "1:12 of 5:00" in line and not set("○◔◑◕●") & set(line)


def test_what_is_urgent_is_red_and_who_is_asked_is_amber() -> None:
    """V5, V6: and nothing else is."""
    columns = choose_columns(120)
    [line] = call_rows(node_after(Started(100.0)), 124.4, columns)
    assert [style_of(line, part) for part in ("△", "0:24 of", "stalled, ends")] == ["bad"] * 3
    assert style_of(line, "0:24 of 5:00") == ""
    node = node_after(Started(100.0))
    node.heard = 370.0
    [line] = call_rows(node, 381.0, columns)
    assert style_of(line, "4:41 of") == "bad" and style_of(line, "0:11 of") == ""
    [line] = call_rows(node_after(Asked(100.0, Question("a.1", "", "form", "who?"))), 124.4, columns, key="3")
    assert style_of(line, "‖ 9:36") == "warn" and style_of(line, "key 3") == "bold"


def test_a_waiting_row_has_the_key_that_answers_it() -> None:
    """V6: where a bar would stand; in brackets where there is no bar."""
    node = node_after(Asked(100.0, Question("a.1", "", "form", "who?")))
    assert "key 3" in row(node, 80, key="3") and "[3]" not in row(node, 80, key="3")
    assert "[3]" in row(node, 60, key="3") and "[3]" in row(node, 40, key="3")
    assert "key" not in row(node, 80) and "[" not in row(node, 60)


def test_a_bar_moves_where_nobody_knows_how_far_and_stands_while_it_waits() -> None:
    """V2: a pulse says that it lives, no more."""
    node = running()
    bars = {row(node, 80, 131 + step / 5)[17:23] for step in range(4)}
    assert len(bars) == 4 and all("━" in bar for bar in bars)
    node.call.open["q"] = Question("q", "", "below")
    assert len({row(node, 80, 131 + step / 5) for step in range(4)}) == 1


def test_a_call_that_ended_well_is_whole_and_a_count_stays_a_number() -> None:
    """V6: per cent with a space."""
    node = node_after(Started(100.0), Finished(101.0, "ok"))
    assert "━━━━━━ 100 %" in row(node, 80)
    assert " 318 " in row(running(Reading(130.0, 318, None, "318 passed")), 80)


def test_a_message_of_a_megabyte_costs_what_fits() -> None:
    """G3, V2: it is cut before it is looked at."""
    node = running(Reading(130.0, 1, 2, "\u202e" * 1_000_000))
    began = time.process_time()
    for _ in range(100):
        call_rows(node, 142.0, choose_columns(100))
    assert time.process_time() - began < 5.0  # all of it would take a minute


def test_raw_arguments_are_no_part_of_a_row() -> None:
    """S4: a table on a screen shows no arguments."""
    call = Call("a", Opened(1.0, "t", "local", "me", msgspec.Raw(b'{"password": "hush"}')), State.RUNNING)
    assert "hush" not in row(CallNode(call), 300, 2.0)


def test_a_call_that_is_followed_alone_has_its_state_bar_clock_and_words() -> None:
    """V2, V6: in the same words as in the table."""
    node = running(Reading(130.0, 37, 120, "page 37"))
    node.eta = Eta(84.0)
    line = text(single_call_line(node, 142.0, 80))
    assert line == "▶ running count ━━━━━━────────────── 30 % 0:42 ~1:24 left · page 37"
    assert "stalled, ends in 5.6 s" in text(single_call_line(node, 154.4, 80))
    node.call.open["q"] = Question("q", "", "approval", "Run it?")
    node.call.asked_at["q"] = 142.0
    assert text(single_call_line(node, 142.0, 80)).startswith("◆ waiting for approval count ")
