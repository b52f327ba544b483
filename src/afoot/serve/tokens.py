"""Named tokens for callers from elsewhere: made, listed, found by their secret, taken back (S2)."""

import hmac
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Final, Protocol

from msgspec import Struct

from afoot.errors import CallerError, UnknownName
from afoot.serve.principal import SCOPES, Denied, Principal

MARK: Final = "afoot_"  # by which a secret of ours is known, also to those who scan for lost ones
PREFIX: Final = "token:"  # of the callers that they make
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
    """Where tokens are kept. Both raise AfootError."""

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
        known = self.all()
        if any(one.name == name for one in known):
            raise CallerError(f"token {name!r} exists; revoke it first, or choose another name")
        secret, now = MARK + token_urlsafe(32), self._now()
        ordered = [one for one in SCOPES if one in scopes]
        expires = None if lasts_s is None else now + lasts_s
        token = Token(token_hex(4), name, _digest(secret.encode()), ordered, now, expires)
        self._keep([*known, token])
        return secret, token

    def revoke(self, name: str) -> Token:
        """Take a token back, by its name or id; raises UnknownName."""
        known = self.all()
        for one in known:
            if name in (one.name, one.id):
                self._keep([other for other in known if other is not one])
                return one
        raise UnknownName("token", name, [one.name for one in known])

    def find(self, secret: bytes) -> Principal | None:
        """Whose secret this is; None if nobody's. Raises Denied if it was good once."""
        digest = _digest(secret)
        for one in self.all():
            if hmac.compare_digest(one.digest, digest):
                if one.expires is not None and self._now() >= one.expires:
                    raise Denied(401, f"the token {one.name!r} has expired; ask for a new one")
                return Principal(PREFIX + one.name, frozenset(one.scopes))
        return None

    def holds(self, caller: str) -> bool:
        """Whether a caller's token is still in force, if it is one of ours."""
        if not caller.startswith(PREFIX):
            return True
        named = [one for one in self.all() if PREFIX + one.name == caller]
        return any(one.expires is None or self._now() < one.expires for one in named)

    def _keep(self, tokens: list[Token]) -> None:
        self._shelf.write(tokens)
        self._tokens = tokens


def _digest(secret: bytes) -> str:
    """Secrets of 256 bits need no salt."""
    return sha256(secret).hexdigest()
