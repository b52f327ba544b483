"""Servers over the operator's API: listed, added, reloaded, removed; their logs, and logins to them (U7)."""

from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from afoot.config.tables import InvalidSetting, Server, convert_table
from afoot.core.redaction import DEFAULT_REDACTOR
from afoot.errors import ToolError, UnknownName
from afoot.providers.upstream.managed_server import ManagedServer
from afoot.providers.upstream.oauth.logins import LoginAttempt
from afoot.providers.upstream.servers import AT_RUN_TIME, Servers
from afoot.serve.api.request import ApiError, ApiRequest, read_number
from afoot.serve.gateway_state import GatewayState

TRANSPORTS = {"command": "stdio", "url": "http", "module": "in process", "": ""}
LOGS = 1000
MAX_NOTES = 100  # on the names of a server's tools

WAIT_S = 20.0  # how long a request waits for a login to end

# The type of a new server, for the OpenAPI description: its name, and all keys of a table [servers.NAME].
NewServer = msgspec.defstruct(
    "NewServer",
    [("name", str), *((one.name, one.type, one.default) if one.default is not msgspec.NODEFAULT
                      else (one.name, one.type, msgspec.field(default_factory=one.default_factory))
                      for one in msgspec.structs.fields(Server))],
    forbid_unknown_fields=True,
)  # fmt: skip


class ServerView(Struct, frozen=True):
    """A server: its origin, how it is reached, and its state. Variables and headers are not shown."""

    name: str
    origin: str
    lasting: bool  # whether it is still there after the next start
    state: str  # disabled, unusable, idle, starting, ready, failed, stopped
    error: str
    transport: str  # stdio, http, in process
    target: str
    era: str
    version: str  # the name and version that it reports
    tools: int
    resources: int
    prompts: int
    pid: int | None
    restarts: int  # how often it was connected again since its settings were read
    up_since: float | None  # when it was last connected; None while it is not
    in_use: int  # calls that run on it
    login: str  # needed, logged in; empty for a server that asked for no login
    counted: dict[str, int]
    renamed: list[str]  # tools that are not called here as there, or not reached by settings, and why
    refused: list[str]  # tools that cannot be offered, and why


class ServerList(Struct, frozen=True):
    """All servers, and the problems in the files that name them."""

    servers: list[ServerView]
    problems: list[str]


class LogLine(Struct, frozen=True):
    """A line that a server wrote."""

    at: float
    text: str


class ServerLogs(Struct, frozen=True):
    """The lines that a server wrote, oldest first."""

    lines: list[LogLine]


class RemovedServer(Struct, frozen=True):
    """The removed server, and whether it comes back."""

    removed: str
    note: str


class LoginRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a login: `port` is the one to which the browser returns, on the gateway's machine."""

    port: int = 0


class LoginView(Struct, frozen=True):
    """A login under way: the URL for the browser, and how it ended."""

    state: str  # waiting, done, failed
    url: str
    error: str


class LogoutView(Struct, frozen=True):
    """The server that has no login any more, and whether it had one."""

    server: str
    had_login: bool


class AllLogoutsView(Struct, frozen=True):
    """The servers that had a login, and have none any more."""

    servers: list[str]


async def index(request: ApiRequest) -> None:
    """Every server."""
    request.query()
    servers = request.gateway.servers
    found = [] if servers is None else [server_view(one, request.gateway) for one in servers.list()]
    problems: list[str] = [] if servers is None else servers.problems
    await request.answer(
        200, ServerList(found, [request.gateway.engine.redactor.prose(one) for one in problems])
    )


async def show(request: ApiRequest) -> None:
    """One server."""
    request.query()
    await request.answer(200, server_view(servers_of(request).get(request.names["name"]), request.gateway))


async def add(request: ApiRequest) -> None:
    """Add a server until the gateway ends; it is written into no file."""
    given = await request.body(dict[str, Any])
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise ApiError(422, "body.name: must be a text", fields=["name"])
    try:
        server = convert_table(Server, given, ("servers", name))
    except InvalidSetting as misfit:
        field = ".".join(misfit.path[2:])
        text = f"body.{field}: {misfit.message}" if field else f"body: {misfit.message}"
        raise ApiError(422, text, fields=[field or "name"]) from None
    await request.answer(201, server_view(await servers_of(request).add(name, server), request.gateway))


async def reload(request: ApiRequest) -> None:
    """Connect again and list everything again; calls in flight finish on the old connection."""
    await request.answer(
        200, server_view(await servers_of(request).reload(request.names["name"]), request.gateway)
    )


async def remove(request: ApiRequest) -> None:
    """Remove a server; calls in flight finish."""
    servers, name = servers_of(request), request.names["name"]
    is_lasting = servers.get(name).entry.origin != AT_RUN_TIME
    note = f"{servers.get(name).entry.origin} still has it: it is back when that is read again"
    await servers.remove(name)
    await request.answer(200, RemovedServer(name, note if is_lasting else ""))


async def logs(request: ApiRequest) -> None:
    """The newest lines that a server wrote to stderr or logged."""
    given = request.query("limit")
    limit = int(read_number(given.get("limit", "100"), "limit", 1, LOGS))
    listed = servers_of(request).get(request.names["name"])
    kept = () if listed.lease is None else tuple(listed.connection.logs)
    await request.answer(200, ServerLogs([LogLine(at, text) for at, text in kept[-limit:]]))


async def begin_login(request: ApiRequest) -> None:
    """Begin a login; a person has to open the URL in a browser."""
    given = await request.body(LoginRequest)
    attempt = await servers_of(request).login(request.names["name"], given.port)
    if not attempt.url:
        raise ToolError.auth(attempt.error)
    await request.answer(202, _login_view(attempt))


async def wait_for_login(request: ApiRequest) -> None:
    """The state of the login; answers when it ends, or after twenty seconds."""
    request.query()
    servers, name = servers_of(request), request.names["name"]
    servers.get(name)
    attempt = servers.logins.attempt(name)
    await attempt.ended(WAIT_S)
    await request.answer(200, _login_view(attempt))


async def logout(request: ApiRequest) -> None:
    """Delete the tokens of a server, and our client registration."""
    name = request.names["name"]
    await request.answer(200, LogoutView(name, await servers_of(request).clear_tokens(name)))


async def logout_all(request: ApiRequest) -> None:
    """Delete the tokens of all servers, also of those that were removed, and our client registrations."""
    servers = request.gateway.servers
    cleared = () if servers is None else await servers.clear_all_tokens()
    await request.answer(200, AllLogoutsView(list(cleared)))


def server_view(managed: ManagedServer, gateway: GatewayState) -> ServerView:
    """The server as JSON."""
    notes = [str(one) for one in gateway.engine.catalog.notes if one.server == managed.name]
    entry, lease = managed.entry, managed.lease
    connection = None if lease is None else lease.connection
    info = connection.info if connection else {}
    return ServerView(
        managed.name,
        entry.origin,
        entry.origin != AT_RUN_TIME,
        managed.state,
        managed.error,
        TRANSPORTS[entry.server.way()],
        shown_target(entry.server),
        connection.era if connection else "",
        " ".join(str(info[key]) for key in ("name", "version") if info.get(key)),
        len(managed.tools()),
        len(managed.resources),
        len(managed.prompts),
        connection.pid if connection else None,
        max(0, connection.starts - 1) if connection else 0,
        connection.up_since if connection else None,
        lease.users if lease else 0,
        managed.login,
        dict(connection.counted) if connection else {},
        notes[:MAX_NOTES],
        list(connection.refused) if connection else [],
    )


def shown_target(server: Server) -> str:
    """The address or command of the server without possible secrets: arguments, query, password."""
    if not server.url:
        return DEFAULT_REDACTOR.prose(server.command or server.module)
    parts = urlsplit(server.url)
    return DEFAULT_REDACTOR.prose(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def servers_of(request: ApiRequest) -> Servers:
    """The gateway's servers; raises UnknownName where there are none."""
    if request.gateway.servers is None:
        raise UnknownName("server", request.names.get("name", ""))
    return request.gateway.servers


def _login_view(attempt: LoginAttempt) -> LoginView:
    return LoginView(attempt.state, attempt.url, attempt.error)
