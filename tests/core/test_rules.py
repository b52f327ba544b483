"""Which fact may follow which: every arrow is taken, every missing one refused; and the guards beside."""

from copy import copy

import pytest
from msgspec import Raw
from msgspec.structs import replace

from afoot.core.call import TRANSITIONS, Call, State
from afoot.core.facts import (
    Admitted,
    Amended,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Failure,
    Finished,
    HandedOver,
    Hindered,
    Interrupted,
    Limits,
    Logged,
    Reading,
    Redefined,
    Released,
    Reported,
    Started,
)
from afoot.core.rules import Tick, decide, outcome_of_dead, with_circumstances
from afoot.errors import AlreadyAnswered, IllegalFact
from tests.core.calls_by_state import (
    KINDS,
    answered,
    asked,
    commit,
    in_state,
    lived,
    next_fact,
    opened,
    running,
)

# The table once more, written down apart from the code: what may follow, and where it leads.
ARROWS: dict[State, dict[type[Fact], State]] = {
    State.QUEUED: {
        Amended: State.QUEUED,
        Admitted: State.QUEUED,
        Asked: State.QUEUED,
        Answered: State.QUEUED,
        Interrupted: State.QUEUED,
        Redefined: State.QUEUED,
        HandedOver: State.QUEUED,
        Started: State.RUNNING,
        CancelRequested: State.CANCELLING,
        Finished: State.FINISHED,
    },
    State.RUNNING: {
        Reported: State.RUNNING,
        Logged: State.RUNNING,
        Hindered: State.RUNNING,
        Asked: State.RUNNING,
        Answered: State.RUNNING,
        Started: State.RUNNING,
        Redefined: State.RUNNING,
        HandedOver: State.RUNNING,
        Interrupted: State.QUEUED,
        CancelRequested: State.CANCELLING,
        Finished: State.FINISHED,
    },
    State.CANCELLING: {
        Reported: State.CANCELLING,
        Logged: State.CANCELLING,
        Interrupted: State.CANCELLING,
        HandedOver: State.CANCELLING,
        Finished: State.FINISHED,
    },
    State.FINISHED: {
        Reported: State.FINISHED,
        Logged: State.FINISHED,
        Released: State.FINISHED,
    },
}
TAKEN = [(state, kind) for state in State for kind in KINDS if kind in ARROWS[state]]
MISSING = [(state, kind) for state in State for kind in KINDS if kind not in ARROWS[state]]


def test_the_table_is_the_one_that_was_agreed() -> None:
    """C1: no arrow more, no arrow less."""
    assert TRANSITIONS == ARROWS
    assert len(TAKEN) + len(MISSING) == len(State) * len(KINDS)


@pytest.mark.parametrize(("state", "kind"), TAKEN)
def test_an_arrow_of_the_table_is_taken(state: State, kind: type[Fact]) -> None:
    """C1: the fact is allowed, counted, and leads where the table says."""
    call = in_state(state)
    before = call.seq
    facts = commit(call, next_fact(kind, call))
    assert [type(fact) for fact in facts] == [kind]
    assert call.state is ARROWS[state][kind]
    assert call.seq == before + 1


@pytest.mark.parametrize(("state", "kind"), MISSING)
def test_a_missing_arrow_is_refused(state: State, kind: type[Fact]) -> None:
    """C1: the refusal names call, state and fact, and changes nothing."""
    call = in_state(state)
    before = _seen(call)
    with pytest.raises(IllegalFact, match=f"call c is {state}: {kind.__name__} may not follow"):
        decide(call, next_fact(kind, call))
    assert _seen(call) == before


def test_a_second_answer_is_refused_and_names_the_first() -> None:
    """Q4: the first answer wins."""
    call = lived(opened(), Started(1.0), asked(2.0), answered(3.0, by="operator"))
    with pytest.raises(AlreadyAnswered, match=r"'q' was already answered.*accept.*operator"):
        decide(call, answered(4.0))
    assert call.answers["q"].answer.by == "operator"


def test_an_answer_to_no_question_is_refused() -> None:
    """Q4: only an open question can be answered."""
    with pytest.raises(IllegalFact, match="no open question 'q'"):
        decide(running(), answered(1.0))


def test_a_question_is_asked_once() -> None:
    """Q1: an id names one question for the whole call, answered or not."""
    call = lived(opened(), Started(1.0), asked(2.0))
    with pytest.raises(IllegalFact, match="has asked 'q' before"):
        decide(call, asked(3.0))
    commit(call, answered(4.0))
    with pytest.raises(IllegalFact, match="has asked 'q' before"):
        decide(call, asked(5.0))


@pytest.mark.parametrize("attempt", [0, 1, 3])
def test_attempts_are_counted_without_a_hole(attempt: int) -> None:
    """U4: after attempt 1 comes attempt 2."""
    call = lived(opened(idempotent=True), Started(1.0))
    with pytest.raises(IllegalFact, match=f"attempt {attempt} may not follow attempt 1"):
        decide(call, Started(2.0, attempt))


def test_the_first_attempt_is_number_one() -> None:
    """U4: a call cannot begin with attempt 2."""
    with pytest.raises(IllegalFact, match="attempt 2 may not follow attempt 0"):
        decide(lived(opened()), Started(1.0, 2))


@pytest.mark.parametrize(("read_only", "idempotent"), [(True, False), (False, True), (True, True)])
def test_what_is_safe_may_be_tried_again(read_only: bool, idempotent: bool) -> None:
    """U4: declared read-only or idempotent is safe to repeat."""
    call = lived(opened(read_only=read_only, idempotent=idempotent), Started(1.0), Started(2.0, 2))
    assert call.attempt == 2


def test_what_is_not_safe_runs_once() -> None:
    """U4: silence means no."""
    with pytest.raises(IllegalFact, match="not safe to repeat"):
        decide(running(), Started(2.0, 2))


def test_what_was_never_sent_may_be_tried_again_whatever_it_is() -> None:
    """U4: nothing can have happened."""
    assert commit(running(), Started(2.0, 2, unsent=True)) == (Started(2.0, 2, unsent=True),)


def test_what_was_never_sent_still_counts_as_an_attempt() -> None:
    """U4: no number is left out."""
    with pytest.raises(IllegalFact, match="attempt 3 may not follow attempt 1"):
        decide(running(), Started(2.0, 3, unsent=True))


def test_a_report_of_an_older_attempt_is_late_and_changes_nothing() -> None:
    """C7: it is kept in the history, and nowhere else."""
    call = lived(opened(idempotent=True), Started(1.0), Started(2.0, 2))
    full = Reported(9.0, 1, 5.0, 6.0, "old", Raw(b"1"), Raw(b"2"), Raw(b"3"))
    (fact,) = commit(call, full)
    assert isinstance(fact, Reported)
    assert fact.late
    assert (call.heard, call.latest, call.partials, bytes(call.checkpoint)) == (2.0, None, [], b"")


def test_a_report_after_the_end_is_late() -> None:
    """C7: late reports are kept, marked late."""
    call = lived(opened(), Started(1.0), Finished(2.0, "ok"))
    assert commit(call, Reported(3.0, progress=1.0)) == (Reported(3.0, progress=1.0, late=True),)
    assert call.latest is None


def test_a_report_while_cancelling_counts() -> None:
    """X2: what a tool says on being cancelled is recorded, and its partial result kept."""
    call = lived(opened(), Started(1.0), CancelRequested(2.0, "caller", "enough"))
    assert commit(call, Reported(3.0, partial=Raw(b'"half"'))) == (Reported(3.0, partial=Raw(b'"half"')),)
    assert call.partials == [Raw(b'"half"')]


def test_a_call_is_released_once() -> None:
    """C7: the slot is given back one time."""
    call = lived(opened(), Started(1.0), Finished(2.0, "ok"), Released(3.0))
    with pytest.raises(IllegalFact, match="released before"):
        decide(call, Released(4.0, "grace"))


def test_the_end_closes_all_questions() -> None:
    """Q4: open questions go when their call ends."""
    call = lived(opened(), Started(1.0), asked(2.0, "a"), asked(2.0, "b"), Finished(3.0, "ok"))
    assert not call.open
    assert set(call.questions) == {"a", "b"}


def test_deciding_changes_nothing() -> None:
    """C1: `decide` only says what would follow."""
    call = in_state(State.RUNNING)
    before = _seen(call)
    for wish in (Finished(9.0, "ok"), answered(9.0), Reported(9.0), Tick(10_000.0, 1.0)):
        decide(call, wish)
    assert _seen(call) == before


def test_a_failure_says_how_far_the_call_had_come() -> None:
    """E2: elapsed time, the last reading, and that something may have happened."""
    call = lived(opened(10.0), Started(11.0), Reported(12.0, progress=3.0, total=9.0, message="page 3"))
    failure = with_circumstances(call, Failure("broken", "internal", retryable=True), 15.5)
    assert failure.elapsed_s == 5.5
    assert failure.last == Reading(12.0, 3.0, 9.0, "page 3")
    assert failure.side_effects == "possible"
    assert (failure.message, failure.category, failure.retryable) == ("broken", "internal", True)


def test_nothing_has_happened_before_the_start_or_in_a_read_only_tool() -> None:
    """E2: side effects are named only where there may be some."""
    waiting = lived(opened())
    reading = lived(opened(read_only=True), Started(1.0))
    repeatable = lived(opened(idempotent=True), Started(1.0))
    found = [
        with_circumstances(call, Failure("x"), 2.0).side_effects for call in (waiting, reading, repeatable)
    ]
    assert found == ["none", "none", "possible"]


@pytest.mark.parametrize(
    ("read_only", "trusted", "began", "told"),
    [
        (False, True, False, "lost"),
        (False, True, True, "uncertain"),
        (True, True, True, "lost"),
        (True, False, True, "uncertain"),
        (True, False, False, "lost"),
    ],
)
def test_what_died_is_lost_only_where_nothing_can_have_happened(
    read_only: bool, trusted: bool, began: bool, told: str
) -> None:
    """U4: and what a stranger says of its own tool is no proof."""
    call = lived(replace(opened(read_only=read_only), trusted=trusted), Started(1.0))
    assert outcome_of_dead(call, began=began) == told


def test_elapsed_time_is_never_negative() -> None:
    """E2: whatever the instants say."""
    assert with_circumstances(lived(opened(10.0)), Failure("x"), 9.0).elapsed_s == 0.0


def test_a_log_line_touches_nothing() -> None:
    """C5: a printed line is no report and re-arms no clock."""
    call = running(Limits())
    commit(call, Logged(20.0, "still here"))
    assert (call.heard, call.latest) == (0.0, None)
    assert decide(call, Tick(30.0, 0.0))


def _seen(call: Call) -> dict[str, object]:
    """Every field of a call, copied."""
    return {name: copy(getattr(call, name)) for name in Call.__struct_fields__}
