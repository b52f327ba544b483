"""`BrowserSessions` keeps login codes that work once, and the sessions of browsers that used them (S1)."""

import hmac
from collections.abc import Callable
from contextlib import suppress
from math import inf
from secrets import token_hex, token_urlsafe
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from afoot.errors import AfootError, CallerError, UnknownName
from afoot.serve.access.principal import Principal
from afoot.wire.gateway_proof import secret_digest

CODE_S = 600.0
SESSION_S = 30 * 86_400.0
IDLE_S = 86_400.0  # a session without a request and without a stream for so long is over
NOTE_USE_S = 3600.0  # interval at which the last use is written, so that it outlives the gateway
MAX_CODES = 32  # a new code replaces the oldest
MAX_SESSIONS = 64  # a new session replaces the oldest
MAX_AGENT = 200  # characters of a User-Agent that are kept
NEW_LINK_HINT = "`afoot console` makes a new one"


class BrowserSession(Struct, frozen=True, forbid_unknown_fields=True):
    """A browser that may do what the asker for its login code may. Only the browser knows its token."""

    id: str
    digest: str  # of its token
    since: float
    expires: float
    agent: str = ""
    token: str = ""  # the id of the named token that asked for its login code, if one did: it ends with that
    used: float = 0.0  # about the time of its last use
    caller: str = ""  # the asker; a session without one was stored before askers were, and is over
    scopes: list[str] = []  # of the asker
    is_owner: bool = False  # the asker had the operator's token, or a session that was opened with it
    claims: str = "{}"  # of the issuer's token of the asker, encoded

    @property
    def until(self) -> float:
        """Expiry time of the token that opened this session, or infinity.

        A session never outlives its token.
        """
        return self.expires if self.expires < self.since + SESSION_S else inf

    @property
    def principal(self) -> Principal:
        """The identity and the rights of the asker, proved by this session."""
        return Principal(
            self.caller,
            frozenset(self.scopes),
            self.id,
            self.token,
            self.until,
            self.is_owner,
            self.claims.encode(),
        )


class SessionStore(Protocol):
    """The file in which sessions outlive the gateway. Both methods raise AfootError."""

    def read(self) -> list[BrowserSession] | None:
        """The sessions, or None if nobody has changed them since they were last read or written."""
        ...

    def write(self, things: list[BrowserSession]) -> None: ...


class _LoginCode(Struct):
    digest: str
    expires: float
    asker: Principal
    is_used: bool = False


class BrowserSessions:
    """The login codes that were given out, and the active sessions; `now` is in seconds since 1970."""

    def __init__(
        self,
        store: SessionStore,
        now: Callable[[], float],
        is_token_valid: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`is_token_valid` says whether the named token with this id is still valid."""
        self._store = store
        self._now = now
        self._is_token_valid = is_token_valid
        self._codes: list[_LoginCode] = []  # with used and expired ones, so that a second use is explained
        self._sessions: list[BrowserSession] = []
        self.seen: dict[str, float] = {}  # by session: the time of its last request

    def code(self, asker: Principal) -> tuple[str, float]:
        """Make a login code for one browser; returns it and its expiry time.

        The session may do what the asker may, and ends when the token of the asker does.
        """
        code, expires = token_urlsafe(24), self._now() + CODE_S
        made = _LoginCode(secret_digest(code.encode()), expires, asker)
        self._codes = [*self._codes[-MAX_CODES + 1 :], made]
        return code, expires

    def log_in(self, code: str, agent: str = "") -> tuple[str, BrowserSession]:
        """Exchange a login code for a new session and its token; raises CallerError saying what is wrong."""
        digest = secret_digest(code.encode("utf-8", "replace"))
        found = [one for one in self._codes if hmac.compare_digest(one.digest, digest)]
        if not found:
            raise CallerError(f"this login link is not known here; {NEW_LINK_HINT}")
        if found[0].is_used:
            raise CallerError(f"this login link was used already; {NEW_LINK_HINT}")
        asker = found[0].asker
        if self._now() >= min(found[0].expires, asker.until):
            raise CallerError(f"this login link has expired; {NEW_LINK_HINT}")
        if asker.token and not self._is_token_valid(asker.token):
            raise CallerError(f"the token that asked for this login link counts no more; {NEW_LINK_HINT}")
        token = token_urlsafe(32)
        now = self._now()
        session = BrowserSession(
            token_hex(8),
            secret_digest(token.encode()),
            now,
            min(now + SESSION_S, asker.until),
            _printable(agent)[:MAX_AGENT],
            asker.token,
            caller=asker.caller,
            scopes=sorted(asker.scopes),
            is_owner=asker.is_owner,
            claims=asker.claims.decode(),
        )
        self._save([*self.sessions()[-MAX_SESSIONS + 1 :], session])
        found[0].is_used = True  # only now: if the session could not be saved, the link still works
        return token, session

    def find(self, token: bytes) -> BrowserSession | None:
        """The session with this token."""
        digest = secret_digest(token)
        for session in self.sessions():
            if hmac.compare_digest(session.digest, digest):
                self._note_use(session)
                return session
        return None

    def sessions(self) -> list[BrowserSession]:
        """The active sessions, oldest first; raises AfootError if the file cannot be read."""
        changed = self._store.read()
        if changed is not None:
            self._sessions = sorted(changed, key=lambda one: one.since)
        return [
            one
            for one in self._sessions
            if self._now() < min(one.expires, self._last_use(one) + IDLE_S)
            and one.caller
            and (not one.token or self._is_token_valid(one.token))
        ]

    def digests(self) -> list[str]:
        """The digests of all login codes and active sessions; raises AfootError."""
        return [one.digest for one in self._codes] + [one.digest for one in self.sessions()]

    def keep(self, session: str) -> bool:
        """Whether a session with an open stream is still active; the stream is a use of it."""
        for one in self.sessions():
            if one.id == session:
                self._note_use(one)
                return True
        return False

    def revoke(self, session: str) -> BrowserSession:
        """End a session; raises UnknownName."""
        sessions = self.sessions()
        for one in sessions:
            if one.id == session:
                self._save([other for other in sessions if other is not one])
                self.seen.pop(session, None)
                return one
        raise UnknownName("session", session, [one.id for one in sessions])

    def _last_use(self, session: BrowserSession) -> float:
        return max(session.since, session.used, self.seen.get(session.id, 0.0))

    def _note_use(self, session: BrowserSession) -> None:
        now = self._now()
        self.seen[session.id] = now
        if now >= max(session.since, session.used) + NOTE_USE_S:
            with suppress(AfootError):  # a full disk: the session ends a little early after a restart
                self._save([replace(one, used=now) if one is session else one for one in self.sessions()])

    def _save(self, sessions: list[BrowserSession]) -> None:
        self._store.write(sessions)
        self._sessions = sessions


def _printable(text: str) -> str:
    return "".join(one for one in text if one.isprintable())
