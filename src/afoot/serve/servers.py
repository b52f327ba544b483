"""Servers over the operator's API: how they are, added, connected anew, removed, and what they said."""

from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from afoot.errors import UnknownName
from afoot.providers.listed import Listed
from afoot.providers.servers import RUN_TIME, Servers
from afoot.serve.request import Request, Wrong, number
from afoot.tables import Misfit, Server, fit

TRANSPORTS = {"command": "stdio", "url": "http", "module": "in process", "": ""}
LOGS = 1000

# A server as it is added, for the description: its name, and all that a table [servers.NAME] may have.
NewServer = msgspec.defstruct(
    "NewServer",
    [("name", str), *((one.name, one.type, one.default) if one.default is not msgspec.NODEFAULT
                      else (one.name, one.type, msgspec.field(default_factory=one.default_factory))
                      for one in msgspec.structs.fields(Server))],
    forbid_unknown_fields=True,
)  # fmt: skip


class ServerView(Struct, frozen=True):
    """A server: where it is from, how it is reached and how it is. Variables and headers are not shown."""

    name: str
    origin: str
    lasting: bool  # whether it is there after the next start, too
    state: str  # disabled, unusable, idle, starting, ready, failed, stopped
    error: str
    transport: str  # stdio, http, in process
    target: str
    era: str
    version: str  # as it says of itself
    tools: int
    resources: int
    prompts: int
    pid: int | None
    in_use: int  # calls that run on it
    login: str  # needed, logged in; nothing for a server that asked for no login
    counted: dict[str, int]


class ServerList(Struct, frozen=True):
    """All servers, and what is wrong with the files they are from."""

    servers: list[ServerView]
    problems: list[str]


class LogLine(Struct, frozen=True):
    """A line of what a server said."""

    at: float
    text: str


class Logs(Struct, frozen=True):
    """What a server said, the oldest first."""

    lines: list[LogLine]


class Removed(Struct, frozen=True):
    """What was removed, and for how long."""

    removed: str
    note: str


async def index(request: Request) -> None:
    """Every server."""
    request.query()
    servers = request.site.servers
    found = [] if servers is None else [view(one) for one in servers.list()]
    await request.answer(200, ServerList(found, [] if servers is None else servers.problems))


async def show(request: Request) -> None:
    """One server."""
    request.query()
    await request.answer(200, view(servers_of(request).get(request.names["name"])))


async def add(request: Request) -> None:
    """One more server, until the gateway ends; it is written into no file."""
    given = await request.body(dict[str, Any])
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise Wrong(422, "body.name: must be a text", fields=["name"])
    try:
        server = fit(Server, given, ("servers", name))
    except Misfit as misfit:
        field = ".".join(misfit.path[2:])
        text = f"body.{field}: {misfit.message}" if field else f"body: {misfit.message}"
        raise Wrong(422, text, fields=[field or "name"]) from None
    await request.answer(201, view(await servers_of(request).add(name, server)))


async def reload(request: Request) -> None:
    """Connect anew and list everything again; calls in flight finish on the old connection."""
    await request.answer(200, view(await servers_of(request).reload(request.names["name"])))


async def remove(request: Request) -> None:
    """Have a server no more; calls in flight finish."""
    servers, name = servers_of(request), request.names["name"]
    is_lasting = servers.get(name).wanted.origin != RUN_TIME
    note = f"{servers.get(name).wanted.origin} still has it: it is back when that is read again"
    await servers.remove(name)
    await request.answer(200, Removed(name, note if is_lasting else ""))


async def logs(request: Request) -> None:
    """What a server wrote to stderr and logged, the newest lines."""
    given = request.query("limit")
    limit = int(number(given.get("limit", "100"), "limit", 1, LOGS))
    listed = servers_of(request).get(request.names["name"])
    kept = () if listed.hold is None else tuple(listed.hold.line.logs)
    await request.answer(200, Logs([LogLine(at, text) for at, text in kept[-limit:]]))


def view(listed: Listed) -> ServerView:
    """The server as JSON."""
    server, hold = listed.wanted.server, listed.hold
    info = hold.line.info if hold else {}
    said = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
    return ServerView(
        listed.name, listed.wanted.origin, listed.wanted.origin != RUN_TIME, listed.state, listed.error,
        TRANSPORTS[server.way()], target(server), listed.era, said,
        len(listed.tools()), len(listed.resources), len(listed.prompts),
        hold.line.pid if hold else None, hold.users if hold else 0, listed.login,
        dict(hold.line.counted) if hold else {},
    )  # fmt: skip


def target(server: Server) -> str:
    """How it is reached, without what may be secret: no arguments, no query, no password."""
    if not server.url:
        return server.command or server.module
    parts = urlsplit(server.url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def servers_of(request: Request) -> Servers:
    """The gateway's servers; raises UnknownName where there are none."""
    if request.site.servers is None:
        raise UnknownName("server", request.names.get("name", ""))
    return request.site.servers
