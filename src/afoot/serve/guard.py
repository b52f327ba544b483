"""Who may speak to which surface: exact hosts, own origins, and secrets compared in constant time (S1)."""

import hmac
import re
from collections.abc import Iterable

from msgspec import Struct

from afoot.serve.admission import Admission
from afoot.serve.asgi import Scope, header
from afoot.serve.principal import ANYBODY, CALL, NOBODY, Denied, Principal, operator
from afoot.serve.ways import Guest, Ways

__all__ = ["LOCAL", "PIPE", "SIGNS", "Denied", "Guard", "hosts"]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LOCAL = "local"  # whoever says nothing that could be proved (S3)
PIPE = "stdio"  # the one who started this process
SIGNS = frozenset(("origin", "authorization", "afoot-caller"))  # headers by which somebody may be known
NEEDED = "a token is needed: Authorization: Bearer …"
UNKNOWN = "this token is not known here"
OPERATORS = (
    "the operator's token is needed: Authorization: Bearer … (the file `token` in the state folder has it;"
    " `afoot console` logs a browser in)"
)
_BRIDGE = re.compile(rb"connect-([A-Za-z0-9]{16,64})")


class Guard(Struct, frozen=True):
    """The names this gateway answers to, and its secrets."""

    hosts: frozenset[str]
    origins: frozenset[str]  # besides our own
    mcp_token: str = ""
    operator_token: str = ""
    admission: Admission | None = None  # browsers that were let in
    ways: Ways | None = None  # for others
    is_closed: bool = False  # `/mcp` answers only those who have proved who they are

    def mcp(self, scope: Scope) -> None:
        """May this request reach `/mcp`? Raises Denied."""
        self._host(scope)
        origin = _text(scope, b"origin")
        if origin is not None and origin not in self.origins and not self._own(origin):
            raise Denied(403, f"origin {origin} is not allowed (see allow_origins)")
        if (
            self.mcp_token
            and self.ways is None
            and not self._bears(scope, self.mcp_token, self.operator_token)
        ):
            raise Denied(401, NEEDED, is_claim=bool(_bearer(scope)))

    async def admit(self, scope: Scope, guest: Guest | None = None) -> str:
        """Who asks at `/mcp` (S3), and may be answered as long as they may stay. Raises Denied."""
        self.mcp(scope)
        if header(scope, b"afoot-caller") is not None:
            return self.caller(scope)
        return await self._identify(scope, guest)

    async def _identify(self, scope: Scope, guest: Guest | None) -> str:
        if self._bears(scope, self.mcp_token, self.operator_token):
            return LOCAL
        bearer = _bearer(scope)
        found = await self.ways.find(bearer) if self.ways is not None and bearer else None
        if found is not None:
            found.demand(CALL)
            self._attend(found, guest)
            return found.caller
        if bearer:  # who claims to be somebody is not taken for somebody else
            raise Denied(401, UNKNOWN if self.is_closed else f"{UNKNOWN}; send none: none is needed")
        if self.is_closed:
            raise Denied(401, NEEDED, is_claim=False)
        return LOCAL

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
        """May this request reach what everybody may know? Raises Denied."""
        self._host(scope)
        self._own_site(scope)

    async def somebody(self, scope: Scope) -> Principal:
        """Who asks for what everybody may know: on a gateway that is closed, nobody unless they prove it."""
        if not self.is_closed:
            return ANYBODY
        try:
            return await self.operator(scope)
        except Denied:
            return NOBODY

    async def operator(self, scope: Scope, guest: Guest | None = None) -> Principal:
        """Who asks at the operator's API. Raises Denied; what they may do there is the route's to say."""
        self._host(scope)
        self._own_site(scope)
        if self._bears(scope, self.operator_token):
            return operator()
        token = _bearer(scope)
        session = self.admission.find(token) if self.admission is not None and token else None
        if session is not None:
            who = operator(session.id, session.token, session.until)
            self._attend(who, guest if who.token else None)  # which ends with that token
            return who
        found = await self.ways.find(token) if self.ways is not None and token else None
        if found is None:
            raise Denied(401, OPERATORS, is_claim=bool(token))
        self._attend(found, guest)
        return found

    def _attend(self, who: Principal, guest: Guest | None) -> None:
        if self.ways is not None and guest is not None:
            self.ways.attend(who, guest)

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


def refusal(guard: Guard, denied: Exception) -> list[tuple[bytes, bytes]]:
    """The header that says how to get in, if that is what is wrong (RFC 6750)."""
    if (
        not isinstance(denied, Denied)
        or denied.status not in (401, 403)
        or (denied.status == 403 and not denied.scope)
    ):
        return []
    told = guard.ways.challenge(denied.scope) if guard.ways is not None else "Bearer"
    if denied.status == 401 and denied.is_claim:
        told += f'{"," if "=" in told else ""} error="invalid_token"'
    return [(b"www-authenticate", told.encode())]


def is_bridge(caller: str) -> bool:
    """Whether a caller is behind `afoot connect`."""
    return caller.startswith("connect:")


def _bearer(scope: Scope) -> bytes:
    """The token that was sent; raises Denied for two, of which a proxy in front may have seen the other."""
    sent = [bytes(value) for key, value in scope["headers"] if key == b"authorization"]
    if len(sent) > 1:
        raise Denied(400, "header authorization: stands more than once")
    return sent[0][7:].strip() if sent and sent[0][:7].lower() == b"bearer " else b""


def _text(scope: Scope, name: bytes) -> str | None:
    value = header(scope, name)
    return None if value is None else value.decode("latin-1")
