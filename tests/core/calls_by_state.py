"""Calls in every state, and a fact of every kind that may follow there, for the tests of the core."""

from msgspec import Raw

from afoot.core.call import Call, State, evolve
from afoot.core.facts import (
    Admitted,
    Amended,
    Answer,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Finished,
    HandedOver,
    Hindered,
    Interrupted,
    Limits,
    Logged,
    Opened,
    Question,
    Redefined,
    Released,
    Reported,
    Started,
)
from afoot.core.rules import decide

KINDS: tuple[type[Fact], ...] = (
    Opened, Amended, Admitted, Started, Interrupted, Redefined, HandedOver, Reported, Logged, Hindered, Asked,
    Answered, CancelRequested, Finished, Released,
)  # fmt: skip


def opened(
    at: float = 0.0, limits: Limits | None = None, *, read_only: bool = False, idempotent: bool = False
) -> Opened:
    """The first fact of a call."""
    return Opened(
        at,
        "export",
        "tools",
        "local",
        Raw(b"{}"),
        limits or Limits(),
        read_only=read_only,
        idempotent=idempotent,
    )


def asked(at: float, name: str = "q") -> Asked:
    """A question with this id."""
    return Asked(at, Question(name, f"key-{name}", "form", "sure?"))


def answered(at: float, name: str = "q", by: str = "caller") -> Answered:
    """Its answer."""
    return Answered(at, name, Answer("accept", Raw(b'{"ok":true}'), by))


def commit(call: Call, wish: Fact) -> tuple[Fact, ...]:
    """What the engine's door does: decide, then take in what follows."""
    facts = decide(call, wish)
    for fact in facts:
        evolve(call, fact)
    return facts


def lived(first: Opened, *wishes: Fact) -> Call:
    """A call that had this life, each step of it legal."""
    call = Call("c", first)
    for wish in wishes:
        commit(call, wish)
    return call


def running(limits: Limits | None = None, at: float = 0.0) -> Call:
    """A call that started at once."""
    return lived(opened(at, limits), Started(at))


def in_state(state: State) -> Call:
    """A call that is safe to repeat, in this state, with question "q" open unless it is finished."""
    lives: dict[State, list[Fact]] = {
        State.QUEUED: [asked(1.0)],
        State.RUNNING: [Started(1.0), asked(2.0)],
        State.CANCELLING: [Started(1.0), asked(2.0), CancelRequested(3.0, "caller", "enough")],
        State.FINISHED: [Started(1.0), asked(2.0), Finished(3.0, "ok")],
    }
    return lived(opened(idempotent=True), *lives[state])


def next_fact(kind: type[Fact], call: Call) -> Fact:
    """A fact of this kind that fits the call in everything but, maybe, its state."""
    facts: tuple[Fact, ...] = (
        opened(9.0),
        Amended(9.0, Raw(b"{}"), "hook"),
        Admitted(9.0, "starting server files"),
        Started(9.0, attempt=call.attempt + 1),
        Interrupted(9.0, 1.0),
        Redefined(9.0, "another", call.attempt),
        HandedOver(9.0, "handle"),
        Reported(9.0, attempt=call.attempt, progress=1.0),
        Logged(9.0, "a line"),
        Hindered(9.0, "its tab is hidden", "show it"),
        asked(9.0, "another"),
        answered(9.0),
        CancelRequested(9.0, "operator", "enough"),
        Finished(9.0, "ok"),
        Released(9.0),
    )
    return next(fact for fact in facts if type(fact) is kind)
