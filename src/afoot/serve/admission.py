"""Who was let in: login codes that work once, and the sessions of browsers that they became (S1)."""

import hmac
from collections.abc import Callable
from hashlib import sha256
from math import inf
from secrets import token_hex, token_urlsafe
from typing import Protocol

from msgspec import Struct

from afoot.errors import CallerError, UnknownName

CODE_S = 600.0
SESSION_S = 30 * 86_400.0
MOST_CODES = 32  # the oldest makes room
MOST_SESSIONS = 64  # likewise
MOST_AGENT = 200  # characters of what a browser says of itself
AGAIN = "`afoot console` makes a new one"


class Session(Struct, frozen=True, forbid_unknown_fields=True):
    """A browser that may do what the operator may; its token is known to it alone."""

    id: str
    digest: str  # of the token
    since: float
    expires: float
    agent: str = ""
    token: str = ""  # the id of the named one that it ends with, if by such a one it was let in

    @property
    def until(self) -> float:
        """When what let it in ends, if that does; what it lets in itself ends then, too."""
        return self.expires if self.expires < self.since + SESSION_S else inf


class Shelf(Protocol):
    """Where sessions outlive the gateway. Both raise AfootError."""

    def read(self) -> list[Session] | None:
        """The sessions, if somebody has changed them since they were last read or written."""
        ...

    def write(self, things: list[Session]) -> None: ...


class _Code(Struct):
    digest: str
    expires: float
    until: float  # when a session that it becomes ends at the latest
    token: str
    is_used: bool = False


class Admission:
    """The codes that were given out, and the sessions in force; `now` is in seconds since 1970."""

    def __init__(
        self, shelf: Shelf, now: Callable[[], float], stands: Callable[[str], bool] = lambda _: True
    ) -> None:
        """`stands`: whether a named token still lets somebody in."""
        self._shelf = shelf
        self._now = now
        self._stands = stands
        self._codes: list[_Code] = []  # used and expired ones too, so that their second use is explained
        self._sessions: list[Session] = []
        self.seen: dict[str, float] = {}  # by session: when it last asked for something

    def code(self, until: float = inf, token: str = "") -> tuple[str, float]:
        """A code that lets one browser in, and until when; what it lets in ends with who asked for it."""
        code, expires = token_urlsafe(24), self._now() + CODE_S
        made = _Code(_digest(code.encode()), expires, until, token)
        self._codes = [*self._codes[-MOST_CODES + 1 :], made]
        return code, expires

    def exchange(self, code: str, agent: str = "") -> tuple[str, Session]:
        """Use up a code: the token of a new session. Raises CallerError saying what is wrong with it."""
        digest = _digest(code.encode("utf-8", "replace"))
        found = [one for one in self._codes if hmac.compare_digest(one.digest, digest)]
        if not found:
            raise CallerError(f"this login link is not known here; {AGAIN}")
        if found[0].is_used:
            raise CallerError(f"this login link was used already; {AGAIN}")
        if self._now() >= min(found[0].expires, found[0].until):
            raise CallerError(f"this login link has expired; {AGAIN}")
        if found[0].token and not self._stands(found[0].token):
            raise CallerError(f"the token that asked for this login link counts no more; {AGAIN}")
        token = token_urlsafe(32)
        now = self._now()
        until = min(now + SESSION_S, found[0].until)
        about = _plain(agent)[:MOST_AGENT], found[0].token
        session = Session(token_hex(8), _digest(token.encode()), now, until, *about)
        self._keep([*self.sessions()[-MOST_SESSIONS + 1 :], session])
        found[0].is_used = True  # a session that could not be kept leaves the link as it was
        return token, session

    def find(self, token: bytes) -> Session | None:
        """The session whose token this is."""
        digest = _digest(token)
        for session in self.sessions():
            if hmac.compare_digest(session.digest, digest):
                self.seen[session.id] = self._now()
                return session
        return None

    def sessions(self) -> list[Session]:
        """The sessions in force, oldest first; raises AfootError if the file cannot be read."""
        changed = self._shelf.read()
        if changed is not None:
            self._sessions = sorted(changed, key=lambda one: one.since)
        return [
            one
            for one in self._sessions
            if self._now() < one.expires and (not one.token or self._stands(one.token))
        ]

    def has(self, session: str) -> bool:
        """Whether a session is still in force."""
        return any(one.id == session for one in self.sessions())

    def revoke(self, session: str) -> Session:
        """End a session; raises UnknownName."""
        sessions = self.sessions()
        for one in sessions:
            if one.id == session:
                self._keep([other for other in sessions if other is not one])
                self.seen.pop(session, None)
                return one
        raise UnknownName("session", session, [one.id for one in sessions])

    def _keep(self, sessions: list[Session]) -> None:
        self._shelf.write(sessions)
        self._sessions = sessions


def _digest(secret: bytes) -> str:
    """Secrets of 192 bits and more need no salt."""
    return sha256(secret).hexdigest()


def _plain(text: str) -> str:
    return "".join(one for one in text if one.isprintable())
