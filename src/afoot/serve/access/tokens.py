"""`NamedTokens` stores the tokens of other callers; `TokenChecks` finds the principal of any token (S2).

A token is a named one, or one of a trusted issuer. A request ends soon after its token does.
"""

import hmac
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from secrets import token_hex, token_urlsafe
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.ports import Clock, TimerHandle
from afoot.engine.followers import Wakeup
from afoot.errors import AfootError, CallerError, UnknownName
from afoot.serve.access.principal import CALL, SCOPE, SCOPES, Denied, Principal
from afoot.wire.gateway_proof import secret_digest

SECRET_PREFIX: Final = "afoot_"  # marks our secrets, also for scanners that search for leaked ones
CALLER_PREFIX: Final = "token:"  # of the names of callers with such a token
MAX_LIFETIME_S: Final = 1e10  # three hundred years

CHECK_S: Final = 1.0  # interval at which the tokens of open requests are checked
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")

log = logging.getLogger("afoot.serve")


class NamedToken(Struct, frozen=True, forbid_unknown_fields=True):
    """A token as it is stored: without its secret, which is shown once. `expires` None means never.

    A revoked token stays in the file without its digest. Its name is a caller who still has calls and
    allowlist entries, so nobody else may get it.
    """

    id: str
    name: str
    digest: str
    scopes: list[str]
    since: float
    expires: float | None = None
    revoked: float | None = None  # the time at which it was revoked


class TokenStore(Protocol):
    """The file of the tokens. All methods raise AfootError."""

    def held(self) -> AbstractContextManager[None]: ...

    def read(self) -> list[NamedToken] | None: ...

    def write(self, things: list[NamedToken]) -> None: ...


class NamedTokens:
    """The tokens of the gateway. Other processes may change the file. `now` is in seconds since 1970."""

    def __init__(self, store: TokenStore, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._stored: list[NamedToken] = []  # revoked ones included
        self._tokens: list[NamedToken] = []

    def all(self) -> list[NamedToken]:
        """Every token that was not revoked, also expired ones; raises AfootError for an unreadable file."""
        changed = self._store.read()
        if changed is not None:
            self._keep(changed)
        return self._tokens

    def add(
        self, name: str, scopes: Sequence[str], lasts_s: float | None = None, is_renewed: bool = False
    ) -> tuple[str, NamedToken]:
        """Make a new token; returns its secret and the token. Raises CallerError.

        `is_renewed`: it takes the place of the token with this name, revoked or not, and is the same caller.
        """
        if _NAME.fullmatch(name) is None:
            raise CallerError(f"token {name!r}: a name has 1 to 64 letters, digits, `_`, `-`, `.` or `@`")
        if not scopes:
            raise CallerError(f"token {name!r}: no scope is named; there are {', '.join(SCOPES)}")
        if wrong := next(filter(None, map(_scope_mistake, scopes)), ""):
            raise CallerError(
                f"token {name!r}: {wrong}; there are {', '.join(SCOPES)}, and those of your tools"
            )
        if lasts_s is not None and not 0 < lasts_s <= MAX_LIFETIME_S:
            raise CallerError(
                f"token {name!r}: it must last for a time over 0, and at most {MAX_LIFETIME_S:.0f} s"
            )
        secret, now = SECRET_PREFIX + token_urlsafe(32), self._now()
        ordered = [one for one in SCOPES if one in scopes]
        ordered += sorted({one for one in scopes if one not in SCOPES})  # which tools require (F1)
        expires = None if lasts_s is None else now + lasts_s
        token = NamedToken(token_hex(4), name, secret_digest(secret.encode()), ordered, now, expires)
        with self._store.held():
            self._check_name(name, is_renewed)
            self._save([*(one for one in self._stored if one.name != name), token])
        return secret, token

    def revoke(self, name: str) -> NamedToken:
        """Revoke a token by its name or id; raises UnknownName."""
        with self._store.held():
            for one in self.all():
                if name in (one.name, one.id):
                    ended = replace(one, digest="", revoked=self._now())
                    self._save([ended if other is one else other for other in self._stored])
                    return one
        raise UnknownName("token", name, [one.name for one in self._tokens])

    def find(self, secret: bytes) -> Principal | None:
        """The principal of this secret, or None. Raises Denied if the token has expired."""
        digest = secret_digest(secret)
        for one in self.all():
            if hmac.compare_digest(one.digest, digest):
                if one.expires is not None and self._now() >= one.expires:
                    raise Denied(401, f"the token {one.name!r} has expired; ask for a new one")
                return Principal(CALLER_PREFIX + one.name, frozenset(one.scopes), token=one.id)
        return None

    def is_valid(self, token: str) -> bool:
        """Whether the token with this id is still valid."""
        return not self.end_reason(Principal("", frozenset(), token=token))

    def end_reason(self, who: Principal) -> str:
        """Why a principal may not stay any longer; an empty text if it may."""
        try:
            known = next((one for one in self.all() if one.id == who.token), None)
        except AfootError:
            return ""  # the file is just being written; the next check comes soon
        name = "that let this browser in" if who.session else repr(who.caller[len(CALLER_PREFIX) :])
        if known is None:
            return f"the token {name} was revoked"
        is_late = known.expires is not None and self._now() >= known.expires
        return f"the token {name} has expired; ask for a new one" if is_late else ""

    def _check_name(self, name: str, is_renewed: bool) -> None:
        """Check that this name may be given to a new token; raises CallerError."""
        is_active = any(one.name == name for one in self.all())
        is_used = any(one.name == name for one in self._stored)
        if is_renewed and not is_used:
            raise UnknownName("token", name, [one.name for one in self._stored])
        if is_renewed or not is_used:
            return
        way_out = "`--renew` gives the same person a new secret; for anybody else, choose another name"
        if is_active:
            raise CallerError(f"token {name!r} exists; {way_out}")
        raise CallerError(
            f"token {name!r} was used and revoked, and its calls and allowlist entries remain; {way_out}"
        )

    def _save(self, tokens: list[NamedToken]) -> None:
        self._store.write(tokens)
        self._keep(tokens)

    def _keep(self, stored: list[NamedToken]) -> None:
        self._stored = stored
        self._tokens = [one for one in stored if one.revoked is None]


def _scope_mistake(scope: str) -> str:
    """The mistake in a scope, or "". A scope of the gateway that is misspelt is no scope of a tool."""
    if scope not in SCOPES and (near := get_close_matches(scope, SCOPES, n=1, cutoff=0.75)):
        return f"no scope {scope!r}; did you mean {near[0]!r}?"
    return "" if SCOPE.fullmatch(scope) else f"{scope!r} is no scope: it has spaces or odd characters"


class TokenIssuer(Protocol):
    """An issuer of access tokens; `access.jwt` has it, and is imported only where one is trusted."""

    @property
    def metadata_url(self) -> str: ...

    def metadata(self) -> dict[str, object]: ...

    def issuer_scope(self, scope: str) -> str: ...

    async def check(self, token: bytes) -> Principal: ...

    def end_reason(self, who: Principal) -> str: ...


class OpenRequest(Protocol):
    """A request that is being answered, and can be ended early."""

    until: float  # when its caller needs a newer token
    leave: "Callable[[OpenRequest], None] | None"  # to be called when it is answered

    def end(self, why: str) -> None: ...


class TokenChecks:
    """All kinds of tokens, and the open requests that depend on one."""

    def __init__(
        self,
        tokens: NamedTokens,
        clock: Clock,
        issuer: TokenIssuer | None = None,
        wakeups: Sequence[Wakeup] = (),
    ) -> None:
        """`bells` are rung when requests were ended early."""
        self._tokens = tokens
        self._clock = clock
        self.issuer = issuer
        self._wakeups = wakeups
        self._open_requests: dict[OpenRequest, Principal] = {}
        self._timer: TimerHandle | None = None
        self.ending: dict[str, str] = {}  # callers whose requests are ended early, and why

    async def find(self, bearer: bytes) -> Principal | None:
        """The principal of a token, or None if it is none of ours.

        Raises Denied if the token is not valid any more.
        """
        try:
            found = self._tokens.find(bearer)
        except AfootError as error:  # the message names a file, so it goes to the log only
            log.error("nobody can be let in by a token: %s", error)
            raise Denied(503, "tokens cannot be looked up now; the log of the gateway says why") from None
        if found is not None:
            return found
        if bearer.startswith(SECRET_PREFIX.encode()):
            raise Denied(401, "this token is not known here; it may have been revoked")
        return await self.issuer.check(bearer) if self.issuer is not None else None

    def digests(self) -> list[str]:
        """The digests of the named tokens; none if their file cannot be read."""
        try:
            return [one.digest for one in self._tokens.all()]
        except AfootError:
            return []  # `find` logs it

    def track(self, who: Principal, open_request: OpenRequest) -> None:
        """End this request when its principal's token ends."""
        self._open_requests[open_request] = who
        open_request.until = who.until
        open_request.leave = self._untrack
        if self._timer is None:
            self._arm()

    def _untrack(self, open_request: OpenRequest) -> None:
        who = self._open_requests.pop(open_request, None)
        if who is not None and self.ending:
            staying = {one.caller for one in self._open_requests.values()}
            self.ending = {caller: why for caller, why in self.ending.items() if caller in staying}

    def challenge(self, scope: str = "") -> str:
        """The value of WWW-Authenticate (RFC 6750, RFC 9728); `scope`: all that is missing, with spaces."""
        parts: list[str] = []
        if self.issuer is not None:
            parts.append(f'resource_metadata="{self.issuer.metadata_url}"')
        if scope:
            parts.append('error="insufficient_scope"')
        if scope or self.issuer is not None:  # without it, clients ask the issuer for every scope
            named = " ".join(map(self._named, (scope or CALL).split()))
            parts.append(f'scope="{named}"')
        return f"Bearer {', '.join(parts)}".rstrip()

    def _named(self, scope: str) -> str:
        return scope if self.issuer is None else self.issuer.issuer_scope(scope)

    def _arm(self) -> None:
        self._timer = self._clock.at(self._clock.now() + CHECK_S, self._end_expired)

    def _end_expired(self) -> None:
        """End the requests whose token is not valid any more."""
        self._timer = None
        why = {who: self._expiry_reason(who) for who in set(self._open_requests.values())}
        gone = [(open_request, who) for open_request, who in self._open_requests.items() if why[who]]
        for open_request, who in gone:
            self.ending[who.caller] = why[who]
            open_request.end(why[who])
        for wakeup in tuple(self._wakeups) if gone else ():
            wakeup.wake()
        if self._open_requests:
            self._arm()

    def _expiry_reason(self, who: Principal) -> str:
        if who.token or self.issuer is None:
            return self._tokens.end_reason(who)
        return self.issuer.end_reason(who)
