"""Named tokens for callers from elsewhere: made, listed, found by their secret, taken back (S2)."""

import hmac
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Final, Protocol

from msgspec import Struct

from afoot.errors import AfootError, CallerError, UnknownName
from afoot.serve.principal import SCOPES, Denied, Principal

MARK: Final = "afoot_"  # by which a secret of ours is known, also to those who scan for lost ones
PREFIX: Final = "token:"  # of the callers that they make
LONGEST_S: Final = 1e10  # three hundred years
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


class Token(Struct, frozen=True, forbid_unknown_fields=True):
    """A token as it is kept: not its secret, which is shown once. `expires` None: it does not."""

    id: str
    name: str
    digest: str
    scopes: list[str]
    since: float
    expires: float | None = None


class Shelf(Protocol):
    """Where tokens are kept. All raise AfootError."""

    def held(self) -> AbstractContextManager[None]: ...

    def read(self) -> list[Token] | None: ...

    def write(self, things: list[Token]) -> None: ...


class Tokens:
    """The tokens in force; others may change their file while we run. `now` is in seconds since 1970."""

    def __init__(self, shelf: Shelf, now: Callable[[], float]) -> None:
        self._shelf = shelf
        self._now = now
        self._tokens: list[Token] = []

    def all(self) -> list[Token]:
        """Every token, also those that have expired; raises AfootError if they cannot be read."""
        changed = self._shelf.read()
        if changed is not None:
            self._tokens = changed
        return self._tokens

    def add(self, name: str, scopes: Sequence[str], lasts_s: float | None = None) -> tuple[str, Token]:
        """A new token, and its secret; raises CallerError."""
        if _NAME.fullmatch(name) is None:
            raise CallerError(f"token {name!r}: a name has 1 to 64 letters, digits, `_`, `-`, `.` or `@`")
        if unknown := [one for one in scopes if one not in SCOPES] or not scopes:
            wrong = f"no scope {unknown[0]!r}" if isinstance(unknown, list) else "no scope is named"
            raise CallerError(f"token {name!r}: {wrong}; there are {', '.join(SCOPES)}")
        if lasts_s is not None and not 0 < lasts_s <= LONGEST_S:
            raise CallerError(
                f"token {name!r}: it must last for a time over 0, and at most {LONGEST_S:.0f} s"
            )
        secret, now = MARK + token_urlsafe(32), self._now()
        ordered = [one for one in SCOPES if one in scopes]
        expires = None if lasts_s is None else now + lasts_s
        token = Token(token_hex(4), name, _digest(secret.encode()), ordered, now, expires)
        with self._shelf.held():
            if any(one.name == name for one in self.all()):
                raise CallerError(f"token {name!r} exists; revoke it first, or choose another name")
            self._keep([*self._tokens, token])
        return secret, token

    def revoke(self, name: str) -> Token:
        """Take a token back, by its name or id; raises UnknownName."""
        with self._shelf.held():
            for one in self.all():
                if name in (one.name, one.id):
                    self._keep([other for other in self._tokens if other is not one])
                    return one
        raise UnknownName("token", name, [one.name for one in self._tokens])

    def find(self, secret: bytes) -> Principal | None:
        """Whose secret this is; None if nobody's. Raises Denied if it was good once."""
        digest = _digest(secret)
        for one in self.all():
            if hmac.compare_digest(one.digest, digest):
                if one.expires is not None and self._now() >= one.expires:
                    raise Denied(401, f"the token {one.name!r} has expired; ask for a new one")
                return Principal(PREFIX + one.name, frozenset(one.scopes), token=one.id)
        return None

    def stands(self, token: str) -> bool:
        """Whether the token with this id still lets somebody in."""
        return not self.over(Principal("", frozenset(), token=token))

    def over(self, who: Principal) -> str:
        """Why somebody whom a token let in may stay no longer; nothing if they may."""
        try:
            known = next((one for one in self.all() if one.id == who.token), None)
        except AfootError:
            return ""  # somebody writes the file just now; it is looked at again soon
        is_its_own = who.caller.startswith(PREFIX)
        name = repr(who.caller[len(PREFIX) :]) if is_its_own else "that let this browser in"
        if known is None:
            return f"the token {name} was revoked"
        is_late = known.expires is not None and self._now() >= known.expires
        return f"the token {name} has expired; ask for a new one" if is_late else ""

    def _keep(self, tokens: list[Token]) -> None:
        self._shelf.write(tokens)
        self._tokens = tokens


def _digest(secret: bytes) -> str:
    """Secrets of 256 bits need no salt."""
    return sha256(secret).hexdigest()
