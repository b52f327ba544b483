"""The words and shapes of a call in the terminal: the vectors that the console agrees with, too."""

from pathlib import Path

import pytest
from msgspec import Struct, json

from afoot.cli.terminal.call_clocks import read_clocks
from afoot.cli.terminal.call_words import STATES, last_words, state_of, tags, time_left, warning
from afoot.cli.terminal.live.live_state import CallNode
from afoot.core.call import Call, State, fold
from afoot.core.facts import (
    Admitted,
    Asked,
    CancelRequested,
    Fact,
    Failure,
    Finished,
    Hindered,
    Question,
    Reading,
    Started,
)
from afoot.observe.eta import Eta
from tests.cli.terminal.live.test_live_state import opened


class News(Struct, frozen=True):
    """The part of a reading that changes a state."""

    stalled: bool = False
    detached: bool = False
    cancel_due: float | None = None


class Vector(Struct):
    """Facts, and the state that people see."""

    name: str
    facts: list[Fact]
    at: float
    state: str
    word: str
    news: News | None = None


class WordsVector(Struct):
    """Facts, and what a row says before the last message of the call; `destructive` are ids of questions."""

    name: str
    facts: list[Fact]
    at: float
    tags: list[str]
    warning: str
    cancel: str
    news: News = News()
    destructive: list[str] = []


FILE = Path(__file__).parents[2] / "vectors" / "states.json"
VECTORS = json.decode(FILE.read_bytes(), type=list[Vector], strict=True)
WORDS = json.decode(FILE.with_name("row_words.json").read_bytes(), type=list[WordsVector], strict=True)


def node_after(*facts: Fact) -> CallNode:
    """A call after these facts; it was opened at 100."""
    return CallNode(fold("a", [opened(), *facts]))


def said(node: CallNode, at: float) -> tuple[str, str]:
    """The warning and the last words at an instant."""
    state = state_of(node, at)
    return warning(node, state, read_clocks(node.call, node.heard, at)), last_words(node, state, at)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_states_and_their_words_agree_with_the_vectors_of_the_console(vector: Vector) -> None:
    """V6: the same call is in the same state wherever it is seen."""
    node = CallNode(fold("c1", vector.facts))
    if vector.news is not None:
        node.stalled, node.cancel_due = vector.news.stalled, vector.news.cancel_due
    assert (state_of(node, vector.at), STATES[vector.state].word) == (vector.state, vector.word)


@pytest.mark.parametrize("vector", WORDS, ids=lambda vector: vector.name)
def test_tags_warnings_and_a_pending_cancel_agree_with_the_vectors_of_the_console(
    vector: WordsVector,
) -> None:
    """V6: the same call says the same of itself wherever it is seen."""
    node = CallNode(fold("c1", vector.facts), destructive=frozenset(vector.destructive))
    node.stalled, node.detached = vector.news.stalled, vector.news.detached
    node.cancel_due = vector.news.cancel_due
    warned, words = said(node, vector.at)
    assert (tags(node), warned) == (vector.tags, vector.warning)
    assert words == vector.cancel or not vector.cancel


def test_every_state_has_a_shape_of_its_own_in_ascii_too() -> None:
    """V6: colour never speaks alone."""
    assert {vector.state for vector in VECTORS} == set(STATES)
    assert len({look.shape for look in STATES.values()}) == len(STATES)
    assert len({look.ascii_shape for look in STATES.values()}) == len(STATES)
    assert all(look.ascii_shape.isascii() and len(look.shape) == 1 for look in STATES.values())
    assert len({STATES[name].bar for name in ("running", "stalled", "held_up")}) == 3


def test_a_quarter_of_the_silence_and_a_tenth_of_the_ceiling_are_told() -> None:
    """V5, V6: what is about to happen is said first; the nearer of both."""
    node = node_after(Started(100.0))
    assert said(node, 122.4) == ("", "")
    assert said(node, 124.4) == ("stalled, ends in 5.6 s", "")
    node.heard = 378.0
    assert said(node, 381.0) == ("0:19 to the ceiling", "")
    node.heard = 365.0
    assert said(node, 394.0) == ("stalled, ends in 1.0 s", "")
    assert said(node, 394.6)[0] == "stalled, ends in 0.4 s"


def test_a_long_call_is_not_warned_of_its_ceiling_before_the_last_minute() -> None:
    """V6: before that, the time on the clock says enough."""
    call = Call("a", opened(ceiling_s=3600.0), State.RUNNING, heard=3500.0, since=100.0)
    assert said(CallNode(call), 3510.0)[0] == ""
    call = Call("a", opened(ceiling_s=3600.0), State.RUNNING, heard=3640.0, since=100.0)
    assert said(CallNode(call), 3645.0)[0] == "0:55 to the ceiling"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([Admitted(100.0, "starting server x")], ("", "starting server x")),
        ([Asked(100.0, Question("a.1", "", "approval", 'Run local/x({"n": 1})?'))], ("", '{"n": 1}')),
        ([Asked(100.0, Question("a.1", "", "form", "name?"))], ("", "name?")),
        ([Asked(100.0, Question("a.1", "", "below"))], ("", "waits for an answer")),
        ([Started(100.0), CancelRequested(100.0, "operator", "seen enough")], ("", "seen enough")),
        ([Started(100.0), Hindered(100.0, "its tab is hidden", "show it")],
         ("held up: its tab is hidden", "show it")),
        ([Finished(101.0, "failed", failure=Failure("too many requests"))], ("", "too many requests")),
        ([Finished(101.0, "cancelled", failure=Failure("cancelled: enough"))], ("", "enough")),
        ([Finished(101.0, "timed_out", failure=Failure("timed out: no report"))],
         ("", "timed out: no report")),
        ([Finished(101.0, "refused", failure=Failure("not on a Friday"))], ("", "refused: not on a Friday")),
        ([Finished(101.0, "lost")], ("", "lost")),
    ],
)  # fmt: skip
def test_a_call_says_what_it_waits_for_or_why_it_ended(facts: list[Fact], words: tuple[str, str]) -> None:
    """V2, V6: and nothing twice: what its state says, its message does not."""
    assert said(node_after(*facts), 101.0) == words


def test_the_last_message_stands_behind_what_holds_a_call_up() -> None:
    """V6: in one line, as in the console."""
    node = node_after(Started(100.0), Hindered(100.0, "its tab is hidden", "show it"))
    node.call.latest = Reading(100.0, 48, 120, "row 48")
    assert said(node, 101.0) == ("held up: its tab is hidden", "show it, row 48")


def test_another_attempt_and_a_pending_cancel_are_told() -> None:
    """V6, X1: and that nobody waits for the call any more."""
    node = node_after(Started(100.0), Started(101.0, 2))
    node.detached, node.cancel_due = True, 106.0
    assert tags(node) == ["attempt 2", "detached"]
    assert said(node, 102.6) == ("", "cancels in 3.4 s")
    ended = node_after(Started(100.0), Started(101.0, 2), Finished(102.0, "ok"))
    assert tags(ended) == []


def test_a_call_that_ended_well_says_its_result_and_not_its_last_progress() -> None:
    """V6: where it has a line for people."""
    node = node_after(Started(100.0), Finished(101.0, "ok"))
    node.call.latest = Reading(100.5, 3, 3, "page 3")
    assert said(node, 102.0) == ("", "page 3")
    node.result_line = "3 pages"
    assert said(node, 102.0) == ("", "3 pages")


def test_only_a_call_that_advances_has_a_time_left() -> None:
    """V6, P9: none is shown for a stalled or held-up call, as it would not hold."""
    node = node_after(Started(100.0))
    node.eta = Eta(84.2)
    assert time_left(node, "running") == "~1:24"
    assert [time_left(node, one) for one in ("stalled", "held_up", "waiting", "queued")] == [""] * 4
