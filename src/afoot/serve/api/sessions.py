"""Browser sessions over the operator's API: login codes, sessions and their end (S1), and proofs (S6)."""

from collections.abc import Iterator

from msgspec import Struct, field

from afoot.errors import CallerError, UnknownName
from afoot.serve.access.browser_sessions import BrowserSession, BrowserSessions
from afoot.serve.access.peer import is_other_user
from afoot.serve.api.request import ApiError, ApiRequest
from afoot.wire.gateway_proof import Proof, is_nonce, proof_mac, secret_digest, secret_id

OWN_SESSION = "me"


class CodeView(Struct, frozen=True):
    """A login code for one browser, alone and in a link; it works once, until it expires."""

    code: str
    url: str
    expires: float


class SessionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The code of a login link."""

    code: str


class NewSessionView(Struct, frozen=True):
    """A new session; its token is shown only here, and sent as `Authorization: Bearer` from now on."""

    token: str
    id: str
    expires: float


class SessionView(Struct, frozen=True):
    """A browser that is logged in.

    `seen`: the time of its last request since the gateway started. `streams`: its open streams of everything;
    one, however many tabs it has.
    """

    id: str
    since: float
    expires: float
    seen: float | None
    agent: str
    streams: int
    is_mine: bool = field(name="mine")


class SessionList(Struct, frozen=True):
    """All browsers that are logged in, oldest first."""

    sessions: list[SessionView]


async def proof(request: ApiRequest) -> None:
    """Prove that this gateway knows a secret, before a client sends that; needs no token (S6)."""
    asked = request.query("key", "nonce")
    nonce, host = asked.get("nonce", ""), request.header(b"host")
    if host.lower().startswith("localhost:") and is_other_user(request.scope):
        # `localhost` may also mean [::1]; one who listens there could pass on the question to us.
        raise ApiError(403, "a proof for localhost is for programs of the gateway's own user", "auth")
    if not is_nonce(nonce):
        raise ApiError(422, "nonce: must be 64 hex digits", fields=["nonce"])
    found = [one for one in _digests(request) if secret_id(one) == asked.get("key")]
    if not found:
        raise ApiError(404, "this secret is not known here", "not_found")
    await request.answer(200, Proof(proof_mac(found[0], host, nonce)))


async def code(request: ApiRequest) -> None:
    """Make a login link for one browser; it works once, within ten minutes."""
    request.query()
    made, expires = _browser_sessions(request).code(request.principal)
    # The guard has checked the Host header.
    host = request.header(b"host")
    scheme = "https" if request.gateway.public == f"https://{host}" else "http"
    url = f"{scheme}://{host}/#login={made}"
    await request.answer(201, CodeView(made, url, expires))


async def begin(request: ApiRequest) -> None:
    """Log a browser in with the code of a login link; needs no token."""
    request.query()
    want = await request.body(SessionRequest)
    try:
        token, session = _browser_sessions(request).log_in(want.code, request.header(b"user-agent"))
    except CallerError as error:
        raise ApiError(403, str(error), "auth") from None
    await request.answer(201, NewSessionView(token, session.id, session.expires))


async def index(request: ApiRequest) -> None:
    """The browsers that are logged in."""
    request.query()
    sessions = _browser_sessions(request).sessions()
    await request.answer(200, SessionList([_session_view(request, one) for one in sessions]))


async def revoke(request: ApiRequest) -> None:
    """Log a browser out; `me` is the one that asks. Its streams end."""
    request.query()
    sessions, named = _browser_sessions(request), request.names["id"]
    if named == OWN_SESSION and not request.session:
        raise UnknownName("session", OWN_SESSION, [one.id for one in sessions.sessions()])
    wanted = request.session if named == OWN_SESSION else named
    shown = [_session_view(request, one) for one in sessions.sessions() if one.id == wanted]
    sessions.revoke(wanted)
    for wakeup in list(request.gateway.wakeups):
        wakeup.wake()  # open streams check again whether they may continue
    await request.answer(200, shown[0])


def _digests(request: ApiRequest) -> Iterator[str]:
    """The digests of all secrets that clients of this API send."""
    gateway = request.gateway
    if gateway.token:
        yield secret_digest(gateway.token.encode())
    if gateway.browser_sessions is not None:
        yield from gateway.browser_sessions.digests()
    if gateway.token_checks is not None:
        yield from gateway.token_checks.digests()


def _browser_sessions(request: ApiRequest) -> BrowserSessions:
    if request.gateway.browser_sessions is None:
        raise ApiError(503, "this gateway has no console", "unavailable")
    return request.gateway.browser_sessions


def _session_view(request: ApiRequest, one: BrowserSession) -> SessionView:
    seen = _browser_sessions(request).seen.get(one.id)
    streams = request.gateway.watching[one.id]
    return SessionView(one.id, one.since, one.expires, seen, one.agent, streams, one.id == request.session)
