"""Who may speak to which surface: exact hosts, own origins, and secrets compared in constant time (S1)."""

import hmac
import re
from collections.abc import Iterable

from msgspec import Struct

from afoot.serve.admission import Admission
from afoot.serve.asgi import Scope, header

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LOCAL = "local"  # whoever says nothing that could be proved (S3)
PIPE = "stdio"  # the one who started this process
_BRIDGE = re.compile(rb"connect-([A-Za-z0-9]{16,64})")


class Denied(Exception):
    """Not this way; the message says what was wrong."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guard(Struct, frozen=True):
    """The names this gateway answers to, and its secrets."""

    hosts: frozenset[str]
    origins: frozenset[str]  # besides our own
    mcp_token: str = ""
    operator_token: str = ""
    admission: Admission | None = None  # browsers that were let in

    def mcp(self, scope: Scope) -> None:
        """May this request reach `/mcp`? Raises Denied."""
        self._host(scope)
        origin = _text(scope, b"origin")
        if origin is not None and origin not in self.origins and not self._own(origin):
            raise Denied(403, f"origin {origin} is not allowed (see allow_origins)")
        if self.mcp_token and not self._bears(scope, self.mcp_token, self.operator_token):
            raise Denied(401, "a token is needed: Authorization: Bearer …")

    def caller(self, scope: Scope) -> str:
        """Who asks: a bridge that bears the operator's token may say which it is (S3). Raises Denied."""
        named = header(scope, b"afoot-caller")
        if named is None:
            return LOCAL
        known = _BRIDGE.fullmatch(named)
        if known is None or not self._bears(scope, self.operator_token):
            raise Denied(403, "header afoot-caller: only a bridge with the operator's token may send it")
        return f"connect:{known[1].decode()}"

    def public(self, scope: Scope) -> None:
        """May this request reach what everybody on this machine may know? Raises Denied."""
        self._host(scope)
        self._own_site(scope)

    def operator(self, scope: Scope) -> str:
        """May this request reach the operator's API? Gives the session it is of, if any. Raises Denied."""
        self._host(scope)
        self._own_site(scope)
        if self._bears(scope, self.operator_token):
            return ""
        token = _bearer(scope)
        session = self.admission.find(token) if self.admission is not None and token else None
        if session is None:
            raise Denied(401, "the operator's token is needed: Authorization: Bearer …")
        return session.id

    def link(self, scope: Scope, origin: str) -> None:
        """May this request become the link of the extension with this origin? Raises Denied."""
        self._host(scope)
        given = _text(scope, b"origin")
        if given != origin:
            raise Denied(403, f"origin {given} is not the extension's")

    def _own_site(self, scope: Scope) -> None:
        origin = _text(scope, b"origin")
        if origin is not None and not self._own(origin):
            raise Denied(403, f"origin {origin} is not allowed")
        site = _text(scope, b"sec-fetch-site")
        if site is not None and site not in ("none", "same-origin"):
            raise Denied(403, "requests from other sites are not allowed")

    def _host(self, scope: Scope) -> None:
        host = _text(scope, b"host")
        if host is None or host.lower() not in self.hosts:
            raise Denied(421, f"host {host} is not this gateway's (see allow_hosts)")

    def _own(self, origin: str) -> bool:
        return origin.removeprefix("http://").removeprefix("https://").lower() in self.hosts

    def _bears(self, scope: Scope, *tokens: str) -> bool:
        bearer = _bearer(scope)
        return any(token and hmac.compare_digest(bearer, token.encode()) for token in tokens)


def hosts(port: int, named: Iterable[str]) -> frozenset[str]:
    """The Host headers that mean us."""
    return frozenset([f"{name}:{port}" for name in LOOPBACK] + [name.lower() for name in named])


def _bearer(scope: Scope) -> bytes:
    sent = header(scope, b"authorization") or b""
    return sent[7:].strip() if sent[:7].lower() == b"bearer " else b""


def _text(scope: Scope, name: bytes) -> str | None:
    value = header(scope, name)
    return None if value is None else value.decode("latin-1")
