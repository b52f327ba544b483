"""Logging a browser in over the operator's API: a code for a link, a session for it, and its end (S1)."""

from msgspec import Struct, field

from afoot.errors import CallerError, UnknownName
from afoot.serve.admission import Admission, Session
from afoot.serve.request import Request, Wrong

MINE = "me"


class CodeView(Struct, frozen=True):
    """A code that lets one browser in, as it is and in a link; good once, until it expires."""

    code: str
    url: str
    expires: float


class Login(Struct, frozen=True, forbid_unknown_fields=True):
    """The code of a login link."""

    code: str


class LoggedIn(Struct, frozen=True):
    """A new session; its token is shown this once, and sent as `Authorization: Bearer` from now on."""

    token: str
    id: str
    expires: float


class SessionView(Struct, frozen=True):
    """A browser that is logged in.

    `seen`: when it last asked for something, since the gateway started. `streams`: how many it has open of
    everything; one, however many tabs it has.
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


async def code(request: Request) -> None:
    """Make a login link for one browser; it works once, within ten minutes."""
    request.query()
    made, expires = _admission(request).code(request.who.until, request.who.token)
    # The guard has found the name among ours.
    host = request.header(b"host")
    scheme = "https" if request.site.public == f"https://{host}" else "http"
    url = f"{scheme}://{host}/#login={made}"
    await request.answer(201, CodeView(made, url, expires))


async def begin(request: Request) -> None:
    """Log a browser in with the code of a login link; needs no token."""
    request.query()
    want = await request.body(Login)
    try:
        token, session = _admission(request).exchange(want.code, request.header(b"user-agent"))
    except CallerError as error:
        raise Wrong(403, str(error), "auth") from None
    await request.answer(201, LoggedIn(token, session.id, session.expires))


async def index(request: Request) -> None:
    """The browsers that are logged in."""
    request.query()
    sessions = _admission(request).sessions()
    await request.answer(200, SessionList([_view(request, one) for one in sessions]))


async def revoke(request: Request) -> None:
    """Log a browser out; `me` is the one that asks. Its streams end."""
    request.query()
    admission, named = _admission(request), request.names["id"]
    if named == MINE and not request.session:
        raise UnknownName("session", MINE, [one.id for one in admission.sessions()])
    wanted = request.session if named == MINE else named
    shown = [_view(request, one) for one in admission.sessions() if one.id == wanted]
    admission.revoke(wanted)
    for bell in list(request.site.bells):
        bell.ring()  # open streams look again whether they may go on
    await request.answer(200, shown[0])


def _admission(request: Request) -> Admission:
    if request.site.admission is None:
        raise Wrong(503, "this gateway has no console", "unavailable")
    return request.site.admission


def _view(request: Request, one: Session) -> SessionView:
    seen = _admission(request).seen.get(one.id)
    streams = request.site.watching[one.id]
    return SessionView(one.id, one.since, one.expires, seen, one.agent, streams, one.id == request.session)
