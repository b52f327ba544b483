"""A tool that has another definition now: the call is judged by it, whatever ran before."""

import pytest
from msgspec.structs import replace

from afoot.core.call import APPROVAL, Call
from afoot.core.facts import Admitted, Answer, Answered, Asked, Finished, Question, Redefined, Started
from afoot.core.rules import next_deadline, outcome_of_dead
from afoot.errors import IllegalFact
from tests.core.calls_by_state import commit, lived, opened


def approval(at: float, name: str) -> Asked:
    """The question whether a call may start."""
    return Asked(at, Question(name, APPROVAL, "approval", "Run it?"))


def yes(at: float, name: str) -> Answered:
    """Its answer."""
    return Answered(at, name, Answer("accept"))


def read_only_and_then(*facts: Redefined | Started | Asked | Answered) -> Call:
    """A call of a read-only tool that ran once."""
    return lived(opened(read_only=True), Started(1.0), *facts)


def test_a_changed_tool_decides_whether_a_call_may_be_repeated() -> None:
    """A7, U4: what was read-only and is not any more is not run a second time without a word."""
    call = read_only_and_then(Redefined(2.0, "another", 1))
    assert not call.is_safe
    with pytest.raises(IllegalFact, match="not safe to repeat"):
        commit(call, Started(3.0, 2))
    commit(call, Started(3.0, 2, unsent=True))


def test_a_yes_to_the_changed_tool_lets_it_run_again() -> None:
    """A7: and only that: a yes to what the tool was before counts no more."""
    call = lived(opened(read_only=True), approval(0.1, "q1"), yes(0.2, "q1"), Started(1.0))
    commit(call, Redefined(2.0, "another", 1, "ask"))
    assert call.approvals == [] and not call.may_repeat
    commit(call, approval(3.0, "q2"))
    assert not call.may_repeat
    commit(call, yes(4.0, "q2"))
    commit(call, Started(5.0, 2))
    assert call.attempt == 2 and not call.is_redefined


def test_only_what_has_run_counts_for_what_may_have_happened() -> None:
    """A7, U4, E2: a read-only attempt did nothing, even if its tool is another now; the next one may."""
    call = read_only_and_then(Redefined(2.0, "another", 1, "ask"))
    assert call.is_harmless and outcome_of_dead(call, began=True) == "lost"
    commit(call, Started(3.0, 2, unsent=True))
    assert not call.is_harmless and outcome_of_dead(call, began=True) == "uncertain"
    commit(call, Redefined(4.0, "third", 2, read_only=True))
    commit(call, Started(5.0, 3))
    assert not call.is_harmless, "the second attempt was not"


def test_a_call_that_was_never_started_is_judged_by_the_changed_tool_alone() -> None:
    """A7, A3: also where the new definition needs no approval any more."""
    call = lived(replace(opened(), approval="ask"), Redefined(1.0, "another", read_only=True), Started(2.0))
    assert call.is_safe and call.is_harmless and call.approved == "auto"
    call = lived(opened(), Redefined(1.0, "another", approval="ask"), approval(2.0, "q"))
    assert call.approved == "none"
    commit(call, Finished(3.0, "refused"))
    assert call.approved == "none"


def test_the_start_has_all_of_its_time_after_an_approval() -> None:
    """C6, A7: a person may think for longer than a server may take to start."""
    call = lived(
        opened(),
        Admitted(1.0, "starting server files"),
        Redefined(2.0, "another", approval="ask"),
        approval(2.0, "q"),
        yes(500.0, "q"),
    )
    assert next_deadline(call, 0.0) == 500.0 + call.opened.limits.start_s
