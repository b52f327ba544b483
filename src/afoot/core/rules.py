"""`decide` says which fact may follow which, and what the clocks demand; the table itself is in `call`.

Nothing here knows who asks, where it is written or what time it is: time is an argument.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.call import TRANSITIONS, Call, State
from afoot.core.facts import (
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Failure,
    Finished,
    Limits,
    Released,
    Reported,
    Started,
)
from afoot.errors import AlreadyAnswered, IllegalFact


class Tick(Struct, frozen=True):
    """The wish to apply the clocks. `heard`: the tool's last sign of life, also a heartbeat or a reading."""

    now: float
    heard: float


def decide(call: Call, wish: Fact | Tick) -> tuple[Fact, ...]:
    """The facts that follow from a wish: none, the wish itself, or what a clock demands.

    Raises IllegalFact where the table has no such arrow, AlreadyAnswered for a second answer.
    """
    if isinstance(wish, Tick):
        return _fired(call, wish)
    if type(wish) not in TRANSITIONS[call.state] or call.released is not None and type(wish) is Released:
        now = "released before" if call.released else call.state
        raise IllegalFact(f"call {call.id} is {now}: {type(wish).__name__} may not follow")
    guard = _GUARDS.get(type(wish))
    if guard is None or (call.attempt == 0 and type(wish) is Started and wish.attempt == 1):
        return (wish,)
    return guard(call, wish)


def next_deadline(call: Call, heard: float) -> float | None:
    """The instant at which the next clock of this call fires, if nothing is heard until then."""
    first = _first_clock(call, heard)
    return None if first is None else first[0]


def with_circumstances(call: Call, failure: Failure, now: float) -> Failure:
    """The same failure, saying how far the call had come (E2)."""
    started = call.started is not None
    return replace(
        failure,
        elapsed_s=round(max(0.0, now - call.opened.at), 3),
        last=call.latest,
        side_effects="possible" if started and not call.is_harmless else "none",
    )


def outcome_of_dead(call: Call, *, began: bool) -> str:
    """The outcome of a call whose runner died and that is not run again: lost, or uncertain (U4).

    It is lost if nothing can have happened. `began`: an attempt had the request.
    """
    return "uncertain" if began and not call.is_harmless else "lost"


def _fired(call: Call, tick: Tick) -> tuple[Fact, ...]:
    first = _first_clock(call, tick.heard)
    if first is None or tick.now < first[0]:
        return ()
    clock = first[1]
    message = _MESSAGES[clock](call.opened.limits)
    if call.hindered is not None and clock in ("idle", "ceiling"):
        message += f"; {call.hindered.by}: {call.hindered.hint}"
    if clock in ("queue", "start"):
        failure = Failure(message, "unavailable", f"{clock}_limit", retryable=True, clock=clock)
        return (Finished(tick.now, "failed", failure=with_circumstances(call, failure, tick.now)),)
    failure = Failure(message, "timeout", f"{clock}_limit", retryable=call.is_safe, clock=clock)
    return (
        CancelRequested(tick.now, by=clock, reason=message),
        Finished(tick.now, "timed_out", None, with_circumstances(call, failure, tick.now), call.cpu_s),
    )


def _first_clock(call: Call, heard: float) -> tuple[float, str] | None:
    """The instant and the name together: worked out apart, they would differ by a rounding."""
    limits = call.opened.limits
    if call.state is State.FINISHED or call.state is State.CANCELLING:
        return None
    if call.open:
        return min(call.asked_at[key] + _answer_s(call, key) for key in call.open), "answer"
    if call.state is State.QUEUED:
        if call.admitted is not None:
            since = max(call.admitted.at, call.heard)  # an approval that was asked meanwhile is over (C6)
            return since + limits.start_s, "start"
        return (call.heard or call.opened.at) + limits.queue_s, "queue"
    since = call.since if call.since is not None else call.heard
    ceiling = since + limits.ceiling_s - call.spent_s, "ceiling"
    if limits.idle_s is None or call.is_patient:
        return ceiling
    return min(ceiling, (max(call.heard, heard) + limits.idle_s, "idle"))


def _answer_s(call: Call, question: str) -> float:
    """The seconds a question may stay open; one of a call below has more, so that its call ends first."""
    limits = call.opened.limits
    asked = call.open[question]
    is_below = asked.kind == "below" or asked.below
    return limits.answer_s + limits.grace_s if is_below else limits.answer_s


# A timeout names the clock, its value and the setting that raises it (C1), or the caller's budget (C11).
_MESSAGES: dict[str, Callable[[Limits], str]] = {
    "idle": lambda of: (
        f"timed out: no report for {of.idle_s:g} s (idle limit; report more often, or raise idle_s)"
        if not of.idle_by_caller
        else f"timed out: no report for {of.idle_s:g} s (the budget of its caller: idle_s)"
    ),
    "ceiling": lambda of: (
        f"timed out: ran for {of.ceiling_s:g} s in all (ceiling; raise ceiling_s)"
        if not of.ceiling_by_caller
        else f"timed out: ran for {of.ceiling_s:g} s in all (the budget of its caller: left_s)"
    ),
    "answer": lambda of: f"timed out: no answer for {of.answer_s:g} s (answer limit; raise answer_s)",
    "queue": lambda of: f"no slot became free for {of.queue_s:g} s (queue limit; raise queue_limit_s)",
    "start": lambda of: f"what it runs on did not start in {of.start_s:g} s (raise start_limit_s)",
}


def _guard_answered(call: Call, wish: Answered) -> tuple[Fact, ...]:
    if wish.question in call.open:
        return (wish,)
    first = call.answers.get(wish.question)
    if first is None:
        raise IllegalFact(f"call {call.id} has no open question {wish.question!r}")
    said = f"{first.answer.action}, by {first.answer.by}"
    raise AlreadyAnswered(f"question {wish.question!r} was already answered: {said}")


def _guard_started(call: Call, wish: Started) -> tuple[Fact, ...]:
    if wish.attempt != call.attempt + 1:
        raise IllegalFact(f"call {call.id}: attempt {wish.attempt} may not follow attempt {call.attempt}")
    if call.attempt and not wish.unsent and not call.may_repeat:
        raise IllegalFact(f"call {call.id} is not safe to repeat")
    return (wish,)


def _guard_reported(call: Call, wish: Reported) -> tuple[Fact, ...]:
    late = call.state is State.FINISHED or wish.attempt < call.attempt
    return (replace(wish, late=True),) if late else (wish,)


def _guard_asked(call: Call, wish: Asked) -> tuple[Fact, ...]:
    if wish.question.id in call.questions:
        raise IllegalFact(f"call {call.id} has asked {wish.question.id!r} before")
    return (wish,)


_GUARDS: dict[type[Fact], Callable[..., tuple[Fact, ...]]] = {
    Answered: _guard_answered,
    Started: _guard_started,
    Reported: _guard_reported,
    Asked: _guard_asked,
}

__all__ = ["Tick", "decide", "next_deadline", "outcome_of_dead", "with_circumstances"]
