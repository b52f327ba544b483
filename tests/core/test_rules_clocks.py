"""The clocks of a call, by `decide(Tick)` alone: what fires, when, and in what words."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from afoot.core.call import Call, evolve, note
from afoot.core.facts import (
    Admitted,
    Asked,
    CancelRequested,
    Failure,
    Finished,
    Hindered,
    Limits,
    Question,
    Reading,
    Reported,
    Started,
)
from afoot.core.rules import Tick, decide, next_deadline
from tests.core.calls_by_state import answered, asked, commit, lived, opened, running


def ends(call: Call, heard: list[float], step: float = 0.5, until: float = 2000.0) -> tuple[float, Failure]:
    """When and why a clock ends this call, if the tool is heard at these instants and asked every `step`."""
    for tick in range(int(until / step) + 1):
        now = tick * step
        last = max((at for at in heard if at <= now), default=0.0)
        facts = decide(call, Tick(now, last))
        if facts:
            end = facts[-1]
            assert isinstance(end, Finished)
            assert end.failure is not None
            return now, end.failure
    raise AssertionError(f"no clock fired until {until:g}")


def test_no_report_ends_at_30_s() -> None:
    """C2: row one."""
    at, failure = ends(running(), [])
    assert (at, failure.clock, failure.category, failure.code) == (30.0, "idle", "timeout", "idle_limit")


@pytest.mark.parametrize("every", [1, 10, 29, 29.5])
def test_a_report_every_n_seconds_runs_up_to_300_s(every: float) -> None:
    """C2: row two."""
    at, failure = ends(running(), [every * n for n in range(1, 400)])
    assert (at, failure.clock) == (300.0, "ceiling")


def test_a_gap_after_reports_ends_at_that_gap() -> None:
    """C2: row three."""
    at, failure = ends(running(), [10.0, 20.0, 45.0, 80.0])
    assert (at, failure.clock) == (75.0, "idle")


def test_reports_past_300_s_end_at_300_s() -> None:
    """C2: row four."""
    at, failure = ends(running(), [float(n) for n in range(1, 1000)])
    assert (at, failure.clock) == (300.0, "ceiling")


def test_a_report_that_is_a_fact_re_arms_the_idle_limit_too() -> None:
    """C1: each report counts, reading or content, whatever its numbers."""
    call = lived(opened(), Started(0.0), Reported(20.0))
    assert next_deadline(call, 0.0) == 50.0
    assert next_deadline(call, 25.0) == 55.0


def test_a_timeout_of_what_is_hindered_says_by_what_and_what_to_do() -> None:
    """B6, C1: a hidden tab; what hinders no more is not said, and another attempt starts free."""
    call = running()
    commit(call, Hindered(1.0, "its tab is hidden", "bring tab t3 to the front"))
    _, end = decide(call, Tick(30.0, 0.0))
    assert isinstance(end, Finished) and end.failure is not None
    assert end.failure.message.endswith("raise idle_s); its tab is hidden: bring tab t3 to the front")
    commit(call, Hindered(2.0))
    _, end = decide(call, Tick(30.0, 0.0))
    assert isinstance(end, Finished) and end.failure is not None
    assert end.failure.message.endswith("raise idle_s)")
    again = lived(opened(idempotent=True), Started(0.0), Hindered(1.0, "slow"), Started(2.0, attempt=2))
    assert again.hindered is None


def test_nothing_happens_a_moment_before() -> None:
    """C1: the number in the docs is the number in force."""
    assert decide(running(), Tick(29.999, 0.0)) == ()
    assert len(decide(running(), Tick(30.0, 0.0))) == 2


def test_a_clock_writes_cancel_and_end_in_one_step() -> None:
    """C7: the caller is told at the limit; the tool is cancelled with the same words."""
    call = lived(opened(), Started(5.0), Reported(6.0, progress=1.0, total=2.0, message="half"))
    cancel, end = decide(call, Tick(40.0, 6.0))
    assert isinstance(cancel, CancelRequested)
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert (cancel.at, cancel.by, cancel.reason) == (40.0, "idle", end.failure.message)
    assert (end.at, end.outcome, end.failure.elapsed_s) == (40.0, "timed_out", 40.0)
    assert end.failure.last == Reading(6.0, 1.0, 2.0, "half")
    for fact in (cancel, end):
        evolve(call, fact)
    assert call.is_finished


def test_human_time_is_off_the_clock() -> None:
    """C6: while a question is open neither idle limit nor ceiling runs; both go on behind the answer."""
    call = lived(opened(), Started(0.0), asked(10.0))
    assert decide(call, Tick(609.0, 10.0)) == ()
    commit(call, answered(500.0))
    assert next_deadline(call, 10.0) == 530.0
    assert ends(call, [float(n) for n in range(500, 1000)])[0] == 790.0
    assert call.on_clock(790.0) == 300.0


def test_the_clock_stands_until_the_last_question_is_answered() -> None:
    """C6: two questions, two answers."""
    call = lived(opened(), Started(0.0), asked(10.0, "a"), asked(20.0, "b"), answered(100.0, "a"))
    assert call.on_clock(400.0) == 10.0
    assert next_deadline(call, 0.0) == 620.0
    commit(call, answered(200.0, "b"))
    assert next_deadline(call, 0.0) == 230.0


def test_an_unanswered_question_ends_at_the_answer_limit() -> None:
    """C6: 10 minutes from the oldest question that is open."""
    call = lived(opened(), Started(0.0), asked(10.0, "a"), asked(20.0, "b"))
    at, failure = ends(call, [])
    assert (at, failure.clock, failure.code) == (610.0, "answer", "answer_limit")


def test_an_approval_that_nobody_gives_ends_at_the_answer_limit() -> None:
    """C6: before the start the same limit holds, not the queue's."""
    call = lived(opened(), asked(0.0))
    at, failure = ends(call, [])
    assert (at, failure.clock, failure.side_effects) == (600.0, "answer", "none")


def test_the_queue_limit_ends_as_unavailable() -> None:
    """C1: waiting for a slot has its own limit, and may be tried again."""
    call = lived(opened())
    (end,) = decide(call, Tick(60.0, 0.0))
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert end.outcome == "failed"
    assert (end.failure.category, end.failure.clock, end.failure.retryable) == ("unavailable", "queue", True)
    assert decide(call, Tick(59.999, 0.0)) == ()


def test_the_queue_limit_begins_anew_behind_an_approval() -> None:
    """C6: the time a person took to approve is no time in the queue."""
    call = lived(opened(), asked(0.0), answered(300.0))
    assert decide(call, Tick(300.0, 0.0)) == ()
    assert next_deadline(call, 0.0) == 360.0


def test_waiting_in_the_queue_is_off_the_clock() -> None:
    """C8: the clocks start when the tool starts."""
    call = lived(opened(), Started(50.0))
    assert next_deadline(call, 0.0) == 80.0
    assert call.on_clock(60.0) == 10.0


def test_what_it_runs_on_has_a_limit_to_start_in() -> None:
    """C1: from when it is admitted, whatever it waited before; unavailable, and may be tried again."""
    call = lived(opened(), Admitted(50.0, "starting server files"))
    at, failure = ends(call, [])
    assert (at, failure.clock, failure.category, failure.retryable) == (110.0, "start", "unavailable", True)
    assert (failure.code, failure.side_effects) == ("start_limit", "none")


def test_a_start_is_off_the_clocks() -> None:
    """C1: they start when the tool starts."""
    call = lived(opened(), Admitted(50.0, "starting"), Started(100.0))
    assert (next_deadline(call, 0.0), call.on_clock(110.0)) == (130.0, 10.0)


def test_silence_counts_only_from_the_first_report_of_a_patient_call() -> None:
    """C1: a reading or content; a heartbeat is none."""
    call = running(Limits(patient=True))
    assert next_deadline(call, 0.0) == next_deadline(call, 100.0) == 300.0
    note(call, Reading(200.0, 1.0))
    assert next_deadline(call, 200.0) == 230.0
    content = lived(opened(0.0, Limits(patient=True)), Started(0.0), Reported(100.0, data=Raw(b"1")))
    assert next_deadline(content, 100.0) == 130.0


@pytest.mark.parametrize(
    ("question", "at"),
    [
        (Question("q", "k", "form"), 601.0),
        (Question("q", "k", "below"), 606.0),
        (Question("q", "k", "form", below="c2.1"), 606.0),
    ],
)
def test_what_a_call_below_asks_ends_that_call_first(question: Question, at: float) -> None:
    """C6: those above wait a grace longer than it does."""
    found, failure = ends(lived(opened(), Started(0.0), Asked(1.0, question)), [])
    assert (found, failure.clock) == (at, "answer")


def test_without_an_idle_limit_silence_ends_nothing() -> None:
    """C1: then the ceiling alone ends it."""
    at, failure = ends(running(Limits(idle_s=None)), [])
    assert (at, failure.clock) == (300.0, "ceiling")


def test_the_ceiling_counts_all_attempts() -> None:
    """C1: nothing extends the ceiling, not even another attempt."""
    call = lived(opened(idempotent=True), Started(0.0), Started(200.0, 2))
    at, failure = ends(call, [float(n) for n in range(1, 1000)])
    assert (at, failure.clock) == (300.0, "ceiling")


def test_another_attempt_re_arms_the_idle_limit() -> None:
    """C1: a new attempt has said nothing yet."""
    call = lived(opened(idempotent=True), Started(0.0), Started(20.0, 2))
    assert next_deadline(call, 0.0) == 50.0


def test_no_clock_runs_while_cancelling_or_after_the_end() -> None:
    """C7: the grace of a cancel is not the engine's clock of a call."""
    cancelling = lived(opened(), Started(0.0), CancelRequested(1.0, "caller", "enough"))
    finished = lived(opened(), Started(0.0), Finished(1.0, "ok"))
    for call in (cancelling, finished):
        assert next_deadline(call, 0.0) is None
        assert decide(call, Tick(1e9, 0.0)) == ()


def test_a_late_tick_names_the_clock_that_was_due_first() -> None:
    """G4: clocks that fired while the loop was blocked are applied afterwards, and rightly named."""
    (_, end) = decide(running(), Tick(400.0, 290.0))
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert end.failure.clock == "ceiling"
    (_, end) = decide(running(), Tick(400.0, 100.0))
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert end.failure.clock == "idle"


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (running(Limits(idle_s=2.5)), ["2.5 s", "idle", "idle_s"]),
        (running(Limits(idle_s=None, ceiling_s=7.0)), ["7 s", "ceiling", "ceiling_s"]),
        (lived(opened(0.0, Limits(answer_s=8.0)), Started(0.0), asked(0.0)), ["8 s", "answer", "answer_s"]),
        (lived(opened(0.0, Limits(queue_s=9.0))), ["9 s", "queue", "queue_limit_s"]),
        (lived(opened(0.0, Limits(start_s=6.0)), Admitted(0.0, "x")), ["6 s", "start", "start_limit_s"]),
    ],
)
def test_every_timeout_names_clock_value_and_setting(call: Call, parts: list[str]) -> None:
    """C1: the text says what to raise."""
    _, failure = ends(call, [])
    assert failure.clock == parts[1]
    for part in parts:
        assert part in failure.message


def test_only_what_is_safe_is_called_retryable() -> None:
    """E1: a timed-out call may have done something."""
    assert not ends(running(), [])[1].retryable
    assert ends(lived(opened(idempotent=True), Started(0.0)), [])[1].retryable


seconds = st.floats(0.001, 5000.0)


@given(
    start=st.floats(0.0, 2e9),
    idle=st.none() | seconds,
    ceiling=seconds,
    quiet=st.floats(0.0, 5000.0),
    asks=st.lists(st.tuples(seconds, seconds), max_size=3),
)
@example(start=1_700_000_000.1, idle=None, ceiling=0.3, quiet=0.0, asks=[])
@example(start=1_700_000_000.7, idle=None, ceiling=300.0, quiet=0.0, asks=[(0.1, 0.7)])
def test_a_clock_fires_at_the_very_instant_that_is_due(
    start: float, idle: float | None, ceiling: float, quiet: float, asks: list[tuple[float, float]]
) -> None:
    """C1: `due` and `decide` agree to the last bit, whatever the instants, and name a clock that is set."""
    call = running(Limits(idle_s=idle, ceiling_s=ceiling, answer_s=1e9), at=start)
    now = start
    for n, (before, human) in enumerate(asks):
        commit(call, asked(now + before, str(n)))
        commit(call, answered(now + before + human, str(n)))
        now += before + human
    heard = now + quiet
    at = next_deadline(call, heard)
    assert at is not None
    _, end = decide(call, Tick(at, heard))
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert end.failure.clock in ({"ceiling"} if idle is None else {"ceiling", "idle"})
