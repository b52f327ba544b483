"""A call as its facts tell it: the shared vectors, and the fields that no vector shows."""

from pathlib import Path

import pytest
from msgspec import Raw, Struct, json
from msgspec.structs import replace

from afoot.core.call import Call, State, evolve, fold, note, precedes
from afoot.core.facts import (
    Amended,
    Fact,
    Finished,
    HandedOver,
    Limits,
    Logged,
    Opened,
    Reading,
    Released,
    Reported,
    Started,
)
from tests.core.calls_by_state import KINDS, answered, asked, commit, lived, opened


class Summary(Struct, forbid_unknown_fields=True):
    """What every fold, in whatever language, must agree on."""

    id: str
    state: str
    outcome: str | None
    attempt: int
    seq: int
    progress: float | None
    total: float | None
    message: str | None
    open: list[str]
    waiting: bool


class Vector(Struct, forbid_unknown_fields=True):
    """Facts in, summary out."""

    name: str
    call: str
    facts: list[Fact]
    summary: Summary


VECTORS = json.decode(
    (Path(__file__).parents[1] / "vectors" / "fold.json").read_bytes(), type=list[Vector], strict=True
)


def summary(call: Call) -> Summary:
    """The call in a few fields."""
    latest = call.latest or Reading(0.0)
    return Summary(
        id=call.id,
        state=call.state,
        outcome=call.end.outcome if call.end else None,
        attempt=call.attempt,
        seq=call.seq,
        progress=latest.progress,
        total=latest.total,
        message=latest.message,
        open=list(call.open),
        waiting=bool(call.open),
    )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_the_fold_agrees_with_the_vectors(vector: Vector) -> None:
    """H1: the same facts give the same call everywhere."""
    assert summary(fold(vector.call, vector.facts)) == vector.summary


def test_the_vectors_show_every_kind_and_every_state() -> None:
    """H1: a fold that passes has seen everything once."""
    assert len({type(fact) for vector in VECTORS for fact in vector.facts}) == len(KINDS)
    assert {vector.summary.state for vector in VECTORS} == set(State)
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)


def test_a_call_that_became_a_task_stays_one() -> None:
    """H7: whatever else its caller was given, before or after."""
    call = lived(opened(), Started(1.0), HandedOver(2.0, "handle"))
    assert not call.is_task and call.handed_over is not None
    commit(call, HandedOver(3.0, "task"))
    commit(call, HandedOver(4.0, "round"))
    assert call.is_task and call.handed_over == HandedOver(3.0, "task")


def test_a_history_must_begin_with_opened() -> None:
    """H1: anything else is a bug, and is named."""
    with pytest.raises(ValueError, match="call c does not begin with Opened but Started"):
        fold("c", [Started(1.0)])


def test_a_call_is_opened_once() -> None:
    """H1: a second Opened is a bug."""
    with pytest.raises(ValueError, match="call c was opened twice"):
        fold("c", [opened(), opened()])


def test_a_reader_that_lacks_facts_goes_on_with_those_that_it_has() -> None:
    """H1: a full disk may cost the facts between; what may not follow then leaves the state as it is."""
    call = fold("c", [opened(), Reported(3.0, progress=1.0), Released(4.0)])
    assert (call.state, call.seq, call.latest) == (State.QUEUED, 3, Reading(3.0, 1.0))
    evolve(call, Finished(5.0, "ok"))
    assert call.state is State.FINISHED


def test_the_newest_reading_wins_and_is_no_fact() -> None:
    """P4: readings replace one another, are counted, and take no number."""
    call = lived(opened(), Started(1.0))
    note(call, Reading(2.0, 1.0, 3.0, "one"))
    note(call, Reading(3.0, 2.0))
    assert (call.latest, call.readings, call.seq) == (Reading(3.0, 2.0), 2, 2)


def test_content_without_numbers_leaves_the_numbers_alone() -> None:
    """P7: data alone is no progress, but a sign of life."""
    call = lived(opened(), Started(1.0), Reported(2.0, progress=1.0), Reported(3.0, data=Raw(b"{}")))
    assert call.latest == Reading(2.0, 1.0)
    assert call.heard == 3.0


def test_partial_results_are_kept_in_order_and_the_last_checkpoint_wins() -> None:
    """P11, H4: what a generator gave, and where it can go on."""
    call = lived(
        opened(),
        Started(1.0),
        Reported(2.0, partial=Raw(b"1"), checkpoint=Raw(b'"x"')),
        Reported(3.0, partial=Raw(b"2")),
        Reported(4.0, checkpoint=Raw(b"null")),
    )
    assert call.partials == [Raw(b"1"), Raw(b"2")]
    assert call.checkpoint == Raw(b"null")


def test_the_first_start_is_the_start() -> None:
    """U4: a later attempt does not move it, not even where time begins at zero."""
    call = lived(opened(idempotent=True), Started(0.0), Started(5.0, 2))
    assert (call.started, call.heard, call.attempt) == (0.0, 5.0, 2)


def test_another_attempt_while_a_question_is_open_stays_off_the_clock() -> None:
    """C6: the answer, not the attempt, starts the clock."""
    call = lived(opened(idempotent=True), Started(0.0), asked(10.0), Started(20.0, 2))
    assert call.on_clock(100.0) == 10.0
    evolve(call, answered(50.0))
    assert call.on_clock(60.0) == 20.0


def test_time_on_the_clock_ends_with_the_call() -> None:
    """C1: what ran is counted once and stays."""
    call = lived(opened(), Started(5.0), Finished(12.0, "ok"), Released(20.0))
    assert call.on_clock(100.0) == call.spent_s == 7.0


@pytest.mark.parametrize(
    ("read_only", "idempotent", "safe"),
    [(False, False, False), (True, False, True), (False, True, True), (True, True, True)],
)
def test_safe_to_repeat_means_declared_so(read_only: bool, idempotent: bool, safe: bool) -> None:
    """U4: read-only or idempotent."""
    assert Call("c", opened(read_only=read_only, idempotent=idempotent)).is_safe is safe


def test_a_claim_counts_only_if_its_source_is_trusted() -> None:
    """U4: what a stranger says of its own safety is no reason to run it twice."""
    assert not Call("c", replace(opened(read_only=True, idempotent=True), trusted=False)).is_safe


def test_a_tool_gets_what_a_hook_made_of_the_arguments() -> None:
    """K1: the last change counts; what the caller sent stays in the first fact."""
    call = lived(opened())
    assert call.arguments == call.opened.arguments
    commit(call, Amended(1.0, Raw(b'{"n":1}'), "hook"))
    commit(call, Amended(2.0, Raw(b'{"n":2}'), "hook"))
    assert bytes(call.arguments) == b'{"n":2}' and bytes(call.opened.arguments) == b"{}"


def test_it_is_known_whether_an_attempt_before_had_the_request() -> None:
    """U4: one that had makes it uncertain for good, however many had not."""
    call = lived(opened(idempotent=True), Started(1.0))
    assert not call.begun, "the first is not a second"
    commit(call, Started(2.0, 2, unsent=True))
    assert not call.begun
    commit(call, Started(3.0, 3))
    assert call.begun
    commit(call, Started(4.0, 4, unsent=True))
    assert call.begun


@pytest.mark.parametrize(
    ("fact", "is_before"),
    [
        (Logged(2.0, "earlier"), False),
        (Started(3.0), False),
        (Opened(3.0, "tool", "local", "ada", Raw(b"{}"), Limits()), False),
        (Logged(3.0, "at once"), True),
        (Reported(3.0, partial=Raw(b"[]")), False),
        (Finished(3.0, "ok"), True),
        (Released(3.0), True),
        (Logged(4.0, "later"), True),
    ],
)
def test_a_reading_comes_before_a_fact_of_the_same_instant_but_behind_starts_and_contents(
    fact: Fact, is_before: bool
) -> None:
    """P5: followers and the event stream put them in the same order."""
    assert precedes(Reading(3.0, 1), fact) is is_before
