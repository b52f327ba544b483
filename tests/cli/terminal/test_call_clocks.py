"""The clocks of a call in the terminal: the vectors that the console and the engine agree with."""

from pathlib import Path

import pytest
from msgspec import Struct, json
from msgspec.structs import replace

from afoot.cli.terminal.call_clocks import ClockReading, GatewayClock, is_silence_last, read_clocks
from afoot.cli.terminal.live.live_state import (
    LiveChanges,
    LiveSnapshot,
    LiveState,
    ReadingUpdate,
    SnapshotCall,
    SnapshotClocks,
    SnapshotQuestion,
)
from afoot.core.call import fold
from afoot.core.facts import Asked, Entry, Fact, Question
from afoot.observe.eta import Eta


class Firing(Struct):
    """The clock that ends the call if nothing is heard until then."""

    at: float


class Vector(Struct):
    """Facts, the newest sign of life that is none of them, and the clocks that follow."""

    name: str
    facts: list[Fact]
    clocks: SnapshotClocks
    at: float
    reading: ClockReading
    heard: float | None = None
    readings: int = 0
    fires: Firing | None = None


FILE = Path(__file__).parents[2] / "vectors" / "clocks.json"
VECTORS = json.decode(FILE.read_bytes(), type=list[Vector], strict=True)
by_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
OPENED_AND_STARTED = VECTORS[1].facts


def told(vector: Vector) -> LiveState:
    """What a terminal knows that has seen all facts, and the newest sign of life."""
    state = LiveState()
    facts = [Entry("c1", seq, fact) for seq, fact in enumerate(vector.facts, 1)]
    state.apply_changes(LiveChanges(vector.at, facts[:-1] if ended(vector) else facts))
    if vector.heard is not None:
        news = ReadingUpdate("c1", None, vector.readings, heard=vector.clocks.heard)
        state.apply_changes(LiveChanges(vector.at, [], [news]))
        state.calls["c1"].call.readings = vector.readings
    if ended(vector):
        state.apply_changes(LiveChanges(vector.at, facts[-1:]))
    return state


def ended(vector: Vector) -> bool:
    """Whether its call has ended."""
    return vector.reading.frozen == "ended"


def fires_at(reading: ClockReading, at: float) -> float | None:
    """The instant at which the first clock fires, if nothing is heard until then."""
    if reading.answer_left_s is not None:
        return at + reading.answer_left_s
    if reading.frozen:
        return None
    silence_left_s = float("inf") if reading.idle_s is None else reading.idle_s - reading.silent_s
    return at + min(reading.ceiling_left_s, silence_left_s)


@by_vector
def test_the_clocks_agree_with_the_vectors_of_the_console(vector: Vector) -> None:
    """V5, V6: both computations give the same, to the last digit, and the engine fires when they say."""
    state = told(vector)
    node = state.ended[0] if ended(vector) else state.calls["c1"]
    reading = read_clocks(node.call, node.heard, vector.at)
    assert reading == vector.reading
    assert is_silence_last(node.call, node.heard, vector.at) == reading.is_silence_last
    if not vector.clocks.below:
        assert fires_at(reading, vector.at) == (vector.fires.at if vector.fires else None)


@pytest.mark.parametrize(
    "vector", [one for one in VECTORS if one.reading.frozen != "ended"], ids=lambda vector: vector.name
)
def test_the_clocks_of_a_snapshot_agree_with_the_vectors(vector: Vector) -> None:
    """V5, V6: a terminal that connects later shows the same clocks; a snapshot has live calls only."""
    call = fold("c1", vector.facts)
    asked = [
        SnapshotQuestion(one.id, one.kind, one.message, call.asked_at[one.id])
        for one in call.open.values()
        if one.kind != "below"
    ]
    view = SnapshotCall(
        "c1", "t", "s", "c", call.state.value, call.opened.at, call.started, seq=call.seq,
        attempt=call.attempt, readings=vector.readings, questions=asked, clocks=vector.clocks,
    )  # fmt: skip
    state = LiveState()
    state.load_snapshot(LiveSnapshot(vector.at, [view]))
    node = state.calls["c1"]
    assert read_clocks(node.call, node.heard, vector.at) == vector.reading


def test_a_clock_that_is_behind_shows_no_time_below_nothing_or_past_a_limit() -> None:
    """V5: shares stay between nothing and all, whatever the clock says."""
    call = fold("c1", OPENED_AND_STARTED)
    early = read_clocks(call, 0.0, 5.0)
    assert (early.silent_s, early.silence_left, early.used_s, early.used) == (0.0, 1.0, 0.0, 0.0)
    late = read_clocks(call, 0.0, 5000.0)
    assert (late.silence_left, late.used, late.ceiling_left_s) == (0.0, 1.0, 0.0)
    asked = fold("c1", [*OPENED_AND_STARTED, Asked(20.0, Question("c1.1", "k", "form"))])
    lefts = [read_clocks(asked, 0.0, at).answer_left_s for at in (19.9, 21.0, 5000.0)]
    assert lefts == [600.0, 599.0, 0.0], "no more than the limit"


def test_the_second_attempt_counts_silence_anew() -> None:
    """V5: a sign of life of the attempt before is none of this one, even if the clock was set back."""
    state = LiveState()
    opened, started = OPENED_AND_STARTED
    state.apply_changes(LiveChanges(20.0, [Entry("c1", 1, opened), Entry("c1", 2, started)]))
    state.apply_changes(LiveChanges(30.0, [], [ReadingUpdate("c1", None, 1, Eta(3.0), heard=29.0)]))
    again = replace(started, at=20.0, attempt=2, spent_s=1.0)
    state.apply_changes(LiveChanges(21.0, [Entry("c1", 3, again)]))
    node = state.calls["c1"]
    assert read_clocks(node.call, node.heard, 24.0).silent_s == 4.0


def test_the_gateways_clock_follows_the_message_that_came_fastest() -> None:
    """V5: messages come late, never early; a late one turns no clock back."""
    clock = GatewayClock(-7.0)
    assert clock.now(100.0) == 93.0
    clock.hear(1000.0, 100.0)
    assert clock.now(100.5) == 1000.5
    clock.hear(1000.6, 101.0)  # 0.4 s late
    assert clock.now(101.0) == 1001.0
    clock.hear(1002.2, 102.0)  # faster than any before
    assert clock.now(102.0) == 1002.2


def test_the_gateways_clock_follows_one_that_stood_still_or_drifts() -> None:
    """V5: a jump at once; a small one when twenty messages in five seconds agree."""
    clock = GatewayClock()
    clock.hear(1000.0, 100.0)
    clock.hear(1005.0, 110.0)
    assert clock.now(110.0) == 1005.0, "it did not run for five seconds"
    for number in range(19):
        clock.hear(1005.0 + number / 2, 111.0 + number / 2)  # all a second late
        assert clock.now(111.0 + number / 2) == 1006.0 + number / 2
    clock.hear(1014.5, 120.5)
    assert clock.now(120.5) == 1014.5
