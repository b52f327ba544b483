"""Random lives of calls: whatever is wished, in whatever order, the promises of the core hold."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from afoot.core.call import (
    GATEWAY_DIED,
    TRANSITIONS,
    Call,
    State,
    evolve,
    fold,
    lacking,
    spent_until_last_sign,
)
from afoot.core.facts import (
    Admitted,
    Amended,
    CancelRequested,
    Fact,
    Finished,
    Interrupted,
    Logged,
    Opened,
    Redefined,
    Released,
    Reported,
    Started,
)
from afoot.core.rules import Tick, decide, next_deadline
from afoot.errors import AlreadyAnswered, IllegalFact
from tests.core import random_facts

# A wish, and how long after the one before; None lets time pass up to the next clock.
steps = st.lists(st.tuples(random_facts.later | st.none(), st.floats(0.0, 50.0)), max_size=30)


def live(first: Opened, wishes: Sequence[tuple[Fact | None, float]]) -> tuple[Call, list[Fact]]:
    """A call driven through these wishes as the engine does, and the facts that were recorded."""
    call, recorded, now = Call("c", first), list[Fact]([first]), first.at
    for wish, after in wishes:
        now = now + after if wish else max(now, next_deadline(call, call.heard) or now)
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
    assert (call.since is not None) <= (call.state in (State.RUNNING, State.CANCELLING))
    if call.state is State.RUNNING:
        assert (call.since is None) == bool(call.open)
    assert call.is_finished == (call.end is not None)
    assert not (call.is_finished and call.open)
    assert (next_deadline(call, call.heard) is None) == (call.state in (State.CANCELLING, State.FINISHED))


@given(random_facts.opened, steps)
def test_the_fold_of_what_was_recorded_is_the_live_call(
    first: Opened, wishes: list[tuple[Fact | None, float]]
) -> None:
    """H1: `Call = fold(facts)`, field by field."""
    call, recorded = live(first, wishes)
    again = fold("c", recorded)
    for name in Call.__struct_fields__:
        assert getattr(again, name) == getattr(call, name), name


@given(random_facts.opened, steps)
def test_numbers_are_contiguous(first: Opened, wishes: list[tuple[Fact | None, float]]) -> None:
    """H1: the number of a call is the number of its facts, at every moment."""
    call, recorded = live(first, wishes)
    assert call.seq == len(recorded)
    assert [fold("c", recorded[:n]).seq for n in range(1, len(recorded) + 1)] == list(
        range(1, len(recorded) + 1)
    )


@given(random_facts.opened, steps)
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


@given(random_facts.opened, steps, st.floats(0.0, 1e6))
def test_every_call_ends_if_it_is_left_alone(
    first: Opened, wishes: list[tuple[Fact | None, float]], later: float
) -> None:
    """C1: one clock or another is always running, until somebody has asked for the end."""
    call, _ = live(first, wishes)
    at = next_deadline(call, call.heard)
    if at is None:
        assert call.state in (State.CANCELLING, State.FINISHED)
        return
    for fact in decide(call, Tick(at + later, call.heard)):
        evolve(call, fact)
    assert call.is_finished


@given(random_facts.opened, steps)
def test_every_life_replays_through_the_rules(first: Opened, wishes: list[tuple[Fact | None, float]]) -> None:
    """C1, H1: what was recorded may be recorded again, fact by fact; gateways die in some of these lives."""
    call, recorded = live(first, wishes)
    again = Call("c", first)
    for fact in recorded[1:]:
        assert lacking(again, fact) is None
        assert decide(again, fact) == (fact,)
        evolve(again, fact)
    assert again.state is call.state


@given(random_facts.opened, steps)
def test_a_life_of_an_older_version_replays_through_the_rules(
    first: Opened, wishes: list[tuple[Fact | None, float]]
) -> None:
    """C1, H1: it lacks every `Interrupted`; where the next fact shows one, the reader puts it in."""
    call, recorded = live(first, wishes)
    stored = [fact for fact in recorded if not isinstance(fact, Interrupted)]
    again = Call("c", first)
    for fact in stored[1:]:
        for one in (lacking(again, fact), fact):
            if one is not None:
                assert decide(again, one) == (one,)
                evolve(again, one)
    folded = fold("c", stored)
    assert (folded.state, folded.seq) == (again.state, len(stored)), "what was put in has no number"
    if _is_closed(recorded):
        assert (folded.state, folded.attempt, folded.open) == (call.state, call.attempt, call.open)


def _is_closed(recorded: Sequence[Fact]) -> bool:
    """Whether a later fact shows each death of a gateway; else the next gateway writes it down."""
    deaths = [n for n, fact in enumerate(recorded) if isinstance(fact, Interrupted)]
    shown = (Started, Amended, Admitted, CancelRequested, Finished)
    return not deaths or any(isinstance(fact, shown) for fact in recorded[deaths[-1] :])


def _fitting(call: Call, wish: Fact) -> Fact:
    """The wish as the engine makes it: attempts and seconds by chance would nearly never be possible ones."""
    match wish:
        case Started():
            is_again = call.attempt > 0 and call.state is State.QUEUED
            why, spent_s = (GATEWAY_DIED, call.spent_s) if is_again else ("", None)
            return replace(wish, attempt=call.attempt + 1, why=why, spent_s=spent_s)
        case Interrupted():
            return replace(wish, spent_s=spent_until_last_sign(call))
        case Redefined():
            return replace(wish, attempt=call.attempt)
        case _:
            return wish
