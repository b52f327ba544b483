"""`Guard` decides who may use which surface: by exact hosts, own origins and tokens (S1)."""

import hmac
import re
from collections.abc import Iterable

from msgspec import Struct

from afoot.serve.access.browser_sessions import BrowserSessions
from afoot.serve.access.peer import is_other_user, is_own_user
from afoot.serve.access.principal import ANYBODY, CALL, NOBODY, OPERATOR_PRINCIPAL, SCOPES, Denied, Principal
from afoot.serve.access.tokens import OpenRequest, TokenChecks
from afoot.serve.mcp.asgi import Scope, header

__all__ = ["LOCAL_CALLER", "STDIO_CALLER", "IDENTITY_HEADERS", "Denied", "Guard", "accepted_hosts"]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LOCAL_CALLER = "local"  # the caller of a request without credentials (S3)
STDIO_CALLER = "stdio"  # the caller that started this process
# A request with one of these headers is checked: it may name its caller.
IDENTITY_HEADERS = frozenset(("origin", "authorization", "afoot-caller"))
TOKEN_NEEDED = "a token is needed: Authorization: Bearer …"
OTHER_USER = (
    "this gateway serves the programs of its own user only; send a token (Authorization: Bearer …;"
    ' `afoot tokens add NAME`), or set local = "everyone" in [access]'
)
UNKNOWN_USER = (
    "this system does not tell whose program you are, so a token is needed: Authorization: Bearer …"
    " (`afoot install` and `afoot connect` send it by themselves; `afoot tokens add NAME` makes one)"
)
TOKEN_UNKNOWN = "this token is not known here"
OPERATOR_TOKEN_NEEDED = (
    "the operator's token is needed: Authorization: Bearer … (the file `token` in the state folder has it;"
    " `afoot console` logs a browser in)"
)
ANONYMOUS = Principal(LOCAL_CALLER, frozenset((CALL,)))
_BRIDGE_NAME = re.compile(rb"connect-([A-Za-z0-9]{16,64})")


class Guard(Struct, frozen=True):
    """The host names of this gateway, its tokens, and the checks of each surface."""

    hosts: frozenset[str]
    origins: frozenset[str]  # allowed besides our own
    mcp_token: str = ""
    operator_token: str = ""
    browser_sessions: BrowserSessions | None = None
    token_checks: TokenChecks | None = None  # named tokens, and those of a trusted issuer
    is_closed: bool = False  # `/mcp` answers nobody without a valid token
    serves_everyone: bool = False  # `/mcp` answers other users of the machine without a token (S6)

    def check_mcp(self, scope: Scope) -> None:
        """Check that this request may reach `/mcp`; raises Denied."""
        self._check_host(scope)
        origin = _header_text(scope, b"origin")
        if origin is not None and origin not in self.origins and not self._is_own_origin(origin):
            raise Denied(403, f"origin {origin} is not allowed (see allow_origins)")
        if (
            self.mcp_token
            and self.token_checks is None
            and not self._has_token(scope, self.mcp_token, self.operator_token)
        ):
            raise Denied(401, TOKEN_NEEDED, is_claim=bool(_bearer(scope)))

    async def identify_caller(self, scope: Scope, open_request: OpenRequest | None = None) -> Principal:
        """The principal of a request to `/mcp` (S3), which is answered for as long as its token is valid.

        Raises Denied.
        """
        self.check_mcp(scope)
        if header(scope, b"afoot-caller") is not None:
            return Principal(self.bridge_caller(scope), frozenset(SCOPES), is_owner=True)
        return await self._identify(scope, open_request)

    async def _identify(self, scope: Scope, open_request: OpenRequest | None) -> Principal:
        if self._has_token(scope, self.operator_token):
            return Principal(LOCAL_CALLER, frozenset(SCOPES), is_owner=True)
        if self._has_token(scope, self.mcp_token):
            return ANONYMOUS
        bearer = _bearer(scope)
        found = await self.token_checks.find(bearer) if self.token_checks is not None and bearer else None
        if found is not None:
            found.require_scope(CALL)
            self._track(found, open_request)
            return found
        if bearer:  # a request with an unknown token is refused, not treated as one without a token
            raise Denied(
                401, TOKEN_UNKNOWN if self.is_closed else f"{TOKEN_UNKNOWN}; send none: none is needed"
            )
        if self.is_closed:
            raise Denied(401, TOKEN_NEEDED, is_claim=False)
        if not self.is_open_to(scope):
            raise Denied(401, OTHER_USER if is_other_user(scope) else UNKNOWN_USER, is_claim=False)
        return ANONYMOUS

    def is_open_to(self, scope: Scope) -> bool:
        """Whether the peer of a request may use `/mcp` without a token, if anybody may (S6)."""
        return self.serves_everyone or is_own_user(scope)

    def bridge_caller(self, scope: Scope) -> str:
        """The caller that a bridge names; only a bridge with the operator's token may do so (S3).

        Raises Denied.
        """
        named = header(scope, b"afoot-caller")
        if named is None:
            return LOCAL_CALLER
        known = _BRIDGE_NAME.fullmatch(named)
        if known is None or not self._has_token(scope, self.operator_token):
            raise Denied(403, "header afoot-caller: only a bridge with the operator's token may send it")
        return f"connect:{known[1].decode()}"

    def check_public(self, scope: Scope) -> None:
        """Check that this request may read public paths; raises Denied."""
        self._check_host(scope)
        self._check_same_site(scope)

    async def identify_reader(self, scope: Scope) -> Principal:
        """The principal of a request to a public path.

        On a closed gateway it is NOBODY, unless the request has a valid token.
        """
        if not self.is_closed and self.is_open_to(scope):
            return ANYBODY
        try:
            return await self.identify_operator(scope)
        except Denied:
            return NOBODY

    async def identify_operator(self, scope: Scope, open_request: OpenRequest | None = None) -> Principal:
        """The principal of a request to the operator's API; raises Denied.

        The route decides which scopes it needs.
        """
        self._check_host(scope)
        self._check_same_site(scope)
        if self._has_token(scope, self.operator_token):
            return OPERATOR_PRINCIPAL
        token = _bearer(scope)
        session = self.browser_sessions.find(token) if self.browser_sessions is not None and token else None
        if session is not None:
            if not self.is_closed and is_other_user(scope):  # on a closed one, that may be a proxy
                raise Denied(
                    403, "this session is of a browser of another user; `afoot console` makes a link"
                )
            who = session.principal
            self._track(who, open_request if who.token else None)  # it ends with that token
            return who
        found = await self.token_checks.find(token) if self.token_checks is not None and token else None
        if found is None:
            raise Denied(401, OPERATOR_TOKEN_NEEDED, is_claim=bool(token))
        self._track(found, open_request)
        return found

    def _track(self, who: Principal, open_request: OpenRequest | None) -> None:
        if self.token_checks is not None and open_request is not None:
            self.token_checks.track(who, open_request)

    def check_link(self, scope: Scope, origin: str) -> None:
        """Check that this request may open the link of the extension with this origin; raises Denied."""
        self._check_host(scope)
        given = _header_text(scope, b"origin")
        if given != origin:
            raise Denied(403, f"origin {given} is not the extension's")

    def _check_same_site(self, scope: Scope) -> None:
        origin = _header_text(scope, b"origin")
        if origin is not None and not self._is_own_origin(origin):
            raise Denied(403, f"origin {origin} is not allowed")
        gateway = _header_text(scope, b"sec-fetch-site")
        if gateway is not None and gateway not in ("none", "same-origin"):
            raise Denied(403, "requests from other sites are not allowed")

    def _check_host(self, scope: Scope) -> None:
        host = _header_text(scope, b"host")
        if host is None or host.lower() not in self.hosts:
            raise Denied(421, f"host {host} is not this gateway's (see allow_hosts)")

    def _is_own_origin(self, origin: str) -> bool:
        return origin.removeprefix("http://").removeprefix("https://").lower() in self.hosts

    def _has_token(self, scope: Scope, *tokens: str) -> bool:
        bearer = _bearer(scope)
        return any(token and hmac.compare_digest(bearer, token.encode()) for token in tokens)


def accepted_hosts(port: int, named: Iterable[str]) -> frozenset[str]:
    """The Host headers that name this gateway."""
    return frozenset([f"{name}:{port}" for name in LOOPBACK] + [name.lower() for name in named])


def challenge_headers(guard: Guard, denied: Exception) -> list[tuple[bytes, bytes]]:
    """The WWW-Authenticate header for a refusal, if a token or a scope is missing (RFC 6750)."""
    if (
        not isinstance(denied, Denied)
        or denied.status not in (401, 403)
        or (denied.status == 403 and not denied.scope)
    ):
        return []
    challenge = guard.token_checks.challenge(denied.scope) if guard.token_checks is not None else "Bearer"
    if denied.status == 401 and denied.is_claim:
        challenge += f'{"," if "=" in challenge else ""} error="invalid_token"'
    return [(b"www-authenticate", challenge.encode())]


def is_bridge(caller: str) -> bool:
    """Whether a caller is behind `afoot connect`."""
    return caller.startswith("connect:")


def _bearer(scope: Scope) -> bytes:
    """The bearer token of the request, or nothing.

    Raises Denied for two Authorization headers: a proxy in front may have checked the other one.
    """
    sent = [bytes(value) for key, value in scope["headers"] if key == b"authorization"]
    if len(sent) > 1:
        raise Denied(400, "header authorization: stands more than once")
    return sent[0][7:].strip() if sent and sent[0][:7].lower() == b"bearer " else b""


def _header_text(scope: Scope, name: bytes) -> str | None:
    """A header that decides on the request. Raises Denied if it stands twice: only one would be checked."""
    sent = [bytes(value) for key, value in scope["headers"] if key == name]
    if len(sent) > 1:
        raise Denied(400, f"header {name.decode()}: stands more than once")
    return sent[0].decode("latin-1") if sent else None
