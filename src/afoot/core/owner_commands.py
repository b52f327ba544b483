"""Commands for a call that another gateway of the cluster owns: the owner carries them out (D1)."""

from msgspec import Struct

from afoot.core.facts import Answer


class CancelCommand(Struct, frozen=True, omit_defaults=True, tag="cancel"):
    """Ask the call to stop."""

    by: str
    reason: str
    who: str = ""


class AnswerCommand(Struct, frozen=True, omit_defaults=True, tag="answer"):
    """Answer an open question of the call; the first answer that reaches the owner counts."""

    question: str
    answer: Answer


class HandOverCommand(Struct, frozen=True, omit_defaults=True, tag="hand_over"):
    """Write that a request of the caller ends before the call, and how the caller finds the call again."""

    what: str


class FollowCommand(Struct, frozen=True, omit_defaults=True, tag="follow"):
    """Take note whether requests follow the call at a gateway: while they do, nobody's leaving cancels it."""

    gateway: str
    is_followed: bool = True


OwnerCommand = CancelCommand | AnswerCommand | HandOverCommand | FollowCommand
