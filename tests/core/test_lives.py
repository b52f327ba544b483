"""Random lives of calls: whatever is wished, in whatever order, the promises of the core hold."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from afoot.core.call import Call, State, evolve, fold
from afoot.core.facts import Fact, Finished, Logged, Opened, Released, Reported
from afoot.core.rules import TRANSITIONS, Tick, decide, due
from afoot.errors import AlreadyAnswered, IllegalFact
from tests.core import chance

# A wish, and how long after the one before; None lets time pass up to the next clock.
steps = st.lists(st.tuples(chance.later | st.none(), st.floats(0.0, 50.0)), max_size=30)


def live(first: Opened, wishes: Sequence[tuple[Fact | None, float]]) -> tuple[Call, list[Fact]]:
    """A call driven through these wishes as the engine does, and the facts that were recorded."""
    call, recorded, now = Call("c", first), list[Fact]([first]), first.at
    for wish, after in wishes:
        now = now + after if wish else max(now, due(call, call.heard) or now)
        wanted = _fitting(call, replace(wish, at=now)) if wish else Tick(now, call.heard)
        try:
            facts = decide(call, wanted)
        except (IllegalFact, AlreadyAnswered):
            continue
        for fact in facts:
            assert type(fact) in TRANSITIONS[call.state]
            expected = TRANSITIONS[call.state][type(fact)]
            evolve(call, fact)
            assert call.state is expected
            recorded.append(fact)
        check(call, first.at, now)
    return call, recorded


def check(call: Call, opened: float, now: float) -> None:
    """What holds at every moment of every life."""
    wall = now - opened
    slack = 1e-6 + 1e-9 * now
    assert -slack <= call.spent_s <= wall + slack
    assert -slack <= call.on_clock(now) <= wall + slack
    assert set(call.open) <= set(call.questions)
    assert not set(call.open) & set(call.answers)
    assert call.is_waiting == bool(call.open)
    assert (call.since is not None) <= (call.state in (State.RUNNING, State.CANCELLING))
    if call.state is State.RUNNING:
        assert (call.since is None) == call.is_waiting
    assert call.is_finished == (call.end is not None)
    assert not (call.is_finished and call.open)
    assert (due(call, call.heard) is None) == (call.state in (State.CANCELLING, State.FINISHED))


@given(chance.opened, steps)
def test_the_fold_of_what_was_recorded_is_the_live_call(
    first: Opened, wishes: list[tuple[Fact | None, float]]
) -> None:
    """H1: `Call = fold(facts)`, field by field."""
    call, recorded = live(first, wishes)
    again = fold("c", recorded)
    for name in Call.__struct_fields__:
        assert getattr(again, name) == getattr(call, name), name


@given(chance.opened, steps)
def test_numbers_are_contiguous(first: Opened, wishes: list[tuple[Fact | None, float]]) -> None:
    """H1: the number of a call is the number of its facts, at every moment."""
    call, recorded = live(first, wishes)
    assert call.seq == len(recorded)
    assert [fold("c", recorded[:n]).seq for n in range(1, len(recorded) + 1)] == list(
        range(1, len(recorded) + 1)
    )


@given(chance.opened, steps)
def test_after_the_end_come_only_late_things(first: Opened, wishes: list[tuple[Fact | None, float]]) -> None:
    """C7: late reports, log lines, and one release; and the end that was told stays the end."""
    call, recorded = live(first, wishes)
    ends = [n for n, fact in enumerate(recorded) if isinstance(fact, Finished)]
    assert len(ends) <= 1
    behind = recorded[ends[0] + 1 :] if ends else []
    assert all(
        isinstance(fact, Logged | Released) or (isinstance(fact, Reported) and fact.late) for fact in behind
    )
    assert sum(isinstance(fact, Released) for fact in recorded) <= 1
    if ends:
        assert call.end is recorded[ends[0]]


@given(chance.opened, steps, st.floats(0.0, 1e6))
def test_every_call_ends_if_it_is_left_alone(
    first: Opened, wishes: list[tuple[Fact | None, float]], later: float
) -> None:
    """C1: one clock or another is always running, until somebody has asked for the end."""
    call, _ = live(first, wishes)
    at = due(call, call.heard)
    if at is None:
        assert call.state in (State.CANCELLING, State.FINISHED)
        return
    for fact in decide(call, Tick(at + later, call.heard)):
        evolve(call, fact)
    assert call.is_finished


def _fitting(call: Call, wish: Fact) -> Fact:
    """Attempts by chance would nearly never be the next one."""
    return replace(wish, attempt=call.attempt + 1) if type(wish).__name__ == "Started" else wish
