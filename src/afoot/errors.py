"""The errors that afoot raises on purpose: `AfootError` and its families, by whose fault it is.

AfootError
├── CallerError            you asked wrongly
│   ├── UnknownName        no tool, call or question of that name; lists the nearest
│   │   └── Ambiguous      several have that name; lists them
│   ├── Refused            not now: shutting down, queue full, history required
│   │   └── OverQuota      this caller has used its quota; says when it may call again
│   ├── MissingScope       this caller lacks a scope that the tool requires
│   ├── BadTool            a function that cannot be a tool as it is declared
│   ├── IllegalFact        the table of transitions has no such arrow
│   └── AlreadyAnswered    somebody answered this question before
├── ToolError              it failed; category, code, retryable, retry_after
├── RunnerDied             the server, child process or tab of a tool died
└── StoreError             the history could not be written or read
    └── DamagedCall        one call of it cannot be read, now or later

Anything else that is raised is a bug, and stays a plain exception.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest
from itertools import islice
from typing import Final, Self

MAX_COMPARED: Final = 1000  # names that are compared with an unknown one: a server may have thousands
MAX_LOOKED_AT: Final = 20  # of these, the ones that are compared letter by letter
MAX_COMPARED_CHARS: Final = 100  # of a name; in strange ones the time grows with the third power
LEAST_LIKE: Final = 0.5


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The three known names that are most like this one, the nearest first.

    Strangers choose both sides, so only so many names are compared, and by their letters before their order.
    """
    if len(name) > MAX_COMPARED_CHARS:
        return []
    compared = SequenceMatcher(b=name)
    similar: list[tuple[float, str]] = []
    short = (one for one in dict.fromkeys(known) if len(one) <= MAX_COMPARED_CHARS)
    for one in islice(short, MAX_COMPARED):
        compared.set_seq1(one)
        if compared.real_quick_ratio() >= LEAST_LIKE and (ratio := compared.quick_ratio()) >= LEAST_LIKE:
            similar.append((ratio, one))
    looked_at = [one for _, one in nlargest(MAX_LOOKED_AT, similar)]
    return get_close_matches(name, looked_at, n=3, cutoff=LEAST_LIKE)


class AfootError(Exception):
    """The root of all errors raised on purpose."""


class CallerError(AfootError):
    """The request was wrong; nothing ran."""


class UnknownName(CallerError):
    """There is no such tool, call or question."""

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.nearest = nearest_names(name, known)
        hint = f"; nearest: {', '.join(self.nearest)}" if self.nearest else ""
        super().__init__(f"unknown {kind} {name!r}{hint}")


class Ambiguous(UnknownName):
    """Several have that name."""

    def __init__(self, kind: str, name: str, meant: Iterable[str]) -> None:
        super().__init__(kind, name)
        self.nearest = list(meant)
        self.args = (f"{kind} {name!r} may be any of: {', '.join(self.nearest)}; name one of them",)


class Refused(CallerError):
    """The gateway takes no new call now; `retry_after` says when it may."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OverQuota(Refused):
    """The caller has used its quota; `retry_after` says when it may call again."""


class MissingScope(CallerError):
    """The caller has not all scopes that a tool or another offer requires; `scopes` are those it lacks."""

    def __init__(self, what: str, caller: str, scopes: Iterable[str]) -> None:
        self.scopes = list(scopes)
        named = ", ".join(f"`{one}`" for one in self.scopes)
        needed = f"the scope {named} is" if len(self.scopes) == 1 else f"the scopes {named} are"
        super().__init__(f"{needed} needed for {what}, and {caller} has no token with it; nothing ran")


class BadTool(CallerError, TypeError):
    """A function cannot be a tool as its author declared it; the text says where it is and what to do."""


class IllegalFact(CallerError):
    """This fact may not follow in this state."""


class Conflict(CallerError):
    """The state of the thing that was named does not allow this now; the text says what to do instead."""


class AlreadyAnswered(CallerError):
    """The question was answered before; the first answer stands."""


class RunnerDied(AfootError):
    """The server, child process or tab of a tool died; `began` False: before it had the request (U4).

    `code` says how, for programs; without one, the outcome of the call is its code.
    """

    def __init__(self, message: str, *, began: bool = True, code: str = "") -> None:
        super().__init__(message)
        self.began = began
        self.code = code


class StoreError(AfootError):
    """The history could not be written or read."""


class DamagedCall(StoreError):
    """A stored call that is damaged, or of a newer version, so that reading it again is in vain."""


# HTTP status to (category, retryable), as a tool that talks to a web service usually means it.
_STATUS = {
    400: ("validation", False),
    401: ("auth", False),
    403: ("auth", False),
    404: ("not_found", False),
    408: ("timeout", True),
    409: ("validation", False),
    410: ("not_found", False),
    422: ("validation", False),
    425: ("unavailable", True),
    429: ("rate_limit", True),
    502: ("unavailable", True),
    503: ("unavailable", True),
    504: ("timeout", True),
}


class ToolError(AfootError):
    """A tool failed in a way it can explain; the text goes to the model, the fields to programs."""

    def __init__(
        self,
        message: str,
        category: str = "internal",
        *,
        code: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        clock: str | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.category = category
        self.code = code or category
        self.retryable = retryable
        self.retry_after = retry_after
        self.clock = clock  # the clock that ended it, where it ran: idle, ceiling, answer
        self.hint = hint  # what the operator can do about it; no caller is told

    @classmethod
    def auth(cls, message: str, *, code: str | None = None) -> Self:
        """The credentials are missing, wrong or not enough."""
        return cls(message, "auth", code=code)

    @classmethod
    def not_found(cls, message: str, *, code: str | None = None) -> Self:
        """The thing that was asked for does not exist."""
        return cls(message, "not_found", code=code)

    @classmethod
    def rate_limited(cls, message: str, *, retry_after: float | None = None, code: str | None = None) -> Self:
        """Too many requests; try again after `retry_after` seconds."""
        return cls(message, "rate_limit", code=code, retryable=True, retry_after=retry_after)

    @classmethod
    def validation(cls, message: str, *, code: str | None = None) -> Self:
        """The input does not fit."""
        return cls(message, "validation", code=code)

    @classmethod
    def timeout(cls, message: str, *, code: str | None = None) -> Self:
        """Something the tool waited for did not come in time."""
        return cls(message, "timeout", code=code, retryable=True)

    @classmethod
    def cancelled(cls, message: str, *, code: str | None = None) -> Self:
        """Somebody stopped the work."""
        return cls(message, "cancelled", code=code)

    @classmethod
    def refused(cls, message: str, *, code: str | None = None) -> Self:
        """Somebody or some rule said no."""
        return cls(message, "refused", code=code)

    @classmethod
    def unavailable(cls, message: str, *, retry_after: float | None = None, code: str | None = None) -> Self:
        """The tool, or a service that it needs, cannot be reached now. A later call may succeed."""
        return cls(message, "unavailable", code=code, retryable=True, retry_after=retry_after)

    @classmethod
    def internal(cls, message: str, *, code: str | None = None) -> Self:
        """The tool is broken."""
        return cls(message, "internal", code=code)

    @classmethod
    def from_status(cls, status: int, message: str, *, retry_after: float | None = None) -> Self:
        """The error that an HTTP status means."""
        category, retryable = _STATUS.get(status, ("internal", False))
        return cls(message, category, code=str(status), retryable=retryable, retry_after=retry_after)
