"""Who asks, as far as it was proved, and what they may do (S2, S3)."""

from math import inf
from typing import Final

from msgspec import Struct

CALL: Final = "call"  # use tools, and see one's own calls
WATCH: Final = "watch"  # see everything
ANSWER: Final = "answer"  # answer questions, stop calls
ADMIN: Final = "admin"  # change servers, the allowlist, the history, who else is let in
SCOPES: Final = (CALL, WATCH, ANSWER, ADMIN)
OPERATOR: Final = "operator"


class Denied(Exception):
    """Not this way; the message says what was wrong. `scope` is what is missing, if that is all.

    `is_claim`: who asked has said who they are.
    """

    def __init__(self, status: int, message: str, scope: str = "", is_claim: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.scope = scope
        self.is_claim = is_claim


class Principal(Struct, frozen=True):
    """Somebody who was let in, and by what: a browser's session, a named token, or one that runs out."""

    caller: str
    scopes: frozenset[str]
    session: str = ""
    token: str = ""  # the id of a named one
    until: float = inf  # the end of an issuer's, after which its owner has a newer one

    @property
    def role(self) -> str:
        """As whom it steers calls: its own as their caller, others' as an operator."""
        return OPERATOR if self.scopes & {WATCH, ADMIN} else "caller"

    def demand(self, *scopes: str) -> None:
        """Go on only with one of these scopes; raises Denied."""
        if self.scopes.isdisjoint(scopes):
            has = ", ".join(one for one in SCOPES if one in self.scopes) or "nothing"
            raise Denied(403, f"the scope `{scopes[0]}` is needed, and {self.caller} has {has}", scopes[0])


NOBODY: Final = Principal("", frozenset())
ANYBODY: Final = Principal("", frozenset((WATCH,)))  # of this machine, where it is open


def operator(session: str = "", token: str = "", until: float = inf) -> Principal:
    """The person whose gateway it is, at the terminal or in a browser that somebody let in."""
    return Principal(OPERATOR, frozenset(SCOPES), session, token, until)
