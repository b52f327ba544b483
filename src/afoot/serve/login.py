"""Logins to servers over the operator's API: begun, waited for, and cleared (U7)."""

from msgspec import Struct

from afoot.errors import ToolError
from afoot.providers.logins import Attempt
from afoot.serve.request import Request
from afoot.serve.servers import servers_of

WAIT_S = 20.0  # for a login to end, before it is said that it still waits


class Begin(Struct, frozen=True, forbid_unknown_fields=True):
    """How to log in: `port` is where the browser comes back to, on the gateway's machine."""

    port: int = 0


class LoginView(Struct, frozen=True):
    """A login under way: the address for the browser, and how it ended."""

    state: str  # waiting, done, failed
    url: str
    error: str


class LoggedOut(Struct, frozen=True):
    """Which server has no login any more, and whether it had one."""

    server: str
    had_login: bool


async def begin(request: Request) -> None:
    """Begin to log in; somebody has to open the address in a browser."""
    given = await request.body(Begin)
    attempt = await servers_of(request).login(request.names["name"], given.port)
    if not attempt.url:
        raise ToolError.auth(attempt.error)
    await request.answer(202, _told(attempt))


async def wait(request: Request) -> None:
    """How the login is; answers when it ends, or after twenty seconds."""
    request.query()
    servers, name = servers_of(request), request.names["name"]
    servers.get(name)
    attempt = servers.logins.attempt(name)
    await attempt.ended(WAIT_S)
    await request.answer(200, _told(attempt))


async def logout(request: Request) -> None:
    """Forget the tokens of a server, and what we are registered as."""
    name = request.names["name"]
    await request.answer(200, LoggedOut(name, await servers_of(request).clear_tokens(name)))


def _told(attempt: Attempt) -> LoginView:
    return LoginView(attempt.state, attempt.url, attempt.error)
