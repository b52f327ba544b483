"""The operator's API: who answers which path, who may ask, and what is said when something is wrong."""

import logging
import re
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from afoot.serve import (
    allow,
    calls,
    console,
    extension,
    feed,
    login,
    openapi,
    questions,
    servers,
    session,
    tabs,
    tools,
)
from afoot.serve.asgi import Receive, Scope, Send
from afoot.serve.calls import resolve
from afoot.serve.follow import follow, wanted
from afoot.serve.guard import Guard
from afoot.serve.http import Reply
from afoot.serve.openapi import PATH_PART, Route
from afoot.serve.request import Request, Wrong, explained
from afoot.serve.site import Site
from afoot.serve.view import CallView, encode

App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("afoot.serve")


class Health(Struct, frozen=True):
    """Whether the gateway is well; `why` says what is wrong, `counted` what was odd since it started.

    `problems`: what is wrong with the settings that were read last, and are not in force.
    """

    status: str
    version: str
    why: str | None = None
    counted: dict[str, int] = {}
    problems: list[str] = []


def routes(site: Site, guard: Guard) -> App:
    """The ASGI application of everything that is not MCP."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if (asset := console.find(scope["path"])) is not None:
            await console.serve(asset, guard, scope, send)
            return
        reply = Reply(send, site.settings.stuck_s)
        try:
            await _route(Request(site, scope, receive, reply, {}), guard)
        except ConnectionResetError:
            pass  # the asker left before it had said everything
        except Exception as error:
            await _fail(reply, error, scope["method"] == "HEAD")

    return app


async def health(request: Request) -> None:
    """Whether the gateway is well."""
    why = request.site.engine.recorder.degraded
    status = "degraded" if why else "ok"
    counted = {**request.site.counted, "tools that did not stop": request.site.engine.unstopped}
    problems, browser = request.site.problems, request.site.browser
    if browser is not None:
        counted |= {f"browser: {what}": times for what, times in browser.counted.items()}
        problems = [*problems, *browser.problems]
    odd = {what: times for what, times in counted.items() if times}
    await request.answer(200, Health(status, request.site.version, why, odd, problems))


async def call_events(request: Request) -> None:
    """The events of a call: its past, then its present, until its end."""
    want = wanted(request)
    await follow(request, await resolve(request.site, request.names["id"]), want)


async def description(request: Request) -> None:
    """This description."""
    await request.answer(200, openapi.document(ROUTES, request.site.version))


ROUTES = (
    Route("GET", "/healthz", health, Health, is_public=True),
    Route("GET", "/api/calls", calls.index, calls.Page,
          query=("q", "tool", "server", "state", "outcome", "before", "limit")),
    Route("POST", "/api/calls", calls.start, takes=calls.Start),
    Route("GET", "/api/calls/{id}", calls.show, CallView),
    Route("GET", "/api/calls/{id}/events", call_events, query=("after", "follow")),
    Route("POST", "/api/calls/{id}/cancel", calls.cancel, CallView, calls.Cancel, status=202),
    Route("POST", "/api/calls/{id}/rerun", calls.rerun, CallView, calls.Rerun, status=202),
    Route("GET", "/api/events", feed.events, query=("after",)),
    Route("GET", "/api/snapshot", feed.snapshot, feed.Snapshot),
    Route("GET", "/api/questions", questions.index, questions.Questions),
    Route("POST", "/api/questions/{id}/answer", questions.answer, CallView, questions.Said),
    Route("GET", "/api/allow", allow.index, allow.Allowlist),
    Route("POST", "/api/allow", allow.add, allow.AllowView, allow.Add, status=201),
    Route("DELETE", "/api/allow/{id}", allow.revoke, allow.AllowView),
    Route("GET", "/api/tools", tools.index, tools.Tools),
    Route("GET", "/api/tools/{name}", tools.show, tools.ToolView),
    Route("GET", "/api/servers", servers.index, servers.ServerList),
    Route("POST", "/api/servers", servers.add, servers.ServerView, servers.NewServer, status=201),
    Route("GET", "/api/servers/{name}/logs", servers.logs, servers.Logs, query=("limit",)),
    Route("POST", "/api/servers/{name}/reload", servers.reload, servers.ServerView),
    Route("POST", "/api/servers/{name}/login", login.begin, login.LoginView, login.Begin, status=202),
    Route("GET", "/api/servers/{name}/login", login.wait, login.LoginView),
    Route("POST", "/api/servers/{name}/logout", login.logout, login.LoggedOut),
    Route("GET", "/api/servers/{name}", servers.show, servers.ServerView),
    Route("DELETE", "/api/servers/{name}", servers.remove, servers.Removed),
    Route("GET", "/api/extension", extension.index, extension.ExtensionView),
    Route("POST", "/api/extension/rotate", extension.rotate, extension.ExtensionView),
    Route("GET", "/api/tabs", tabs.index, tabs.Tabs),
    Route("POST", "/api/tabs/{id}/reload", tabs.reload, tabs.Reloading, status=202),
    Route("POST", "/api/session/code", session.code, session.CodeView, status=201),
    Route("POST", "/api/session", session.begin, session.LoggedIn, session.Login, status=201, is_public=True),
    Route("GET", "/api/session", session.index, session.SessionList),
    Route("DELETE", "/api/session/{id}", session.revoke, session.SessionView),
    Route("GET", "/api/openapi.json", description, dict),
)  # fmt: skip


def _pattern(path: str) -> re.Pattern[str]:
    """A tool's name may have a slash in it; nothing else may."""
    return re.compile(PATH_PART.sub(lambda part: "(.+)" if part[1] == "name" else "([^/]+)", path))


_PATTERNS = [(route, _pattern(route.path)) for route in ROUTES]


async def _route(request: Request, guard: Guard) -> None:
    path, method = request.scope["path"], request.scope["method"]
    found = [(route, match) for route, pattern in _PATTERNS if (match := pattern.fullmatch(path))]
    is_public = any(route.is_public for route, _ in found if route.method == method)
    if is_public or not path.startswith("/api"):
        guard.public(request.scope)
    else:
        request = replace(request, session=guard.operator(request.scope))
        request.seen()
    if not found:
        raise _unknown(path)
    for route, match in found:
        if route.method == method:
            names = dict(zip(PATH_PART.findall(route.path), match.groups(), strict=True))
            await route.handler(replace(request, names=names))
            return
    allowed = ", ".join(route.method for route, _ in found)
    raise Wrong(405, f"{method} {path}: the method must be {allowed}", allow=allowed)


def _unknown(path: str) -> Wrong:
    known = sorted({route.path for route in ROUTES})
    near = get_close_matches(path, known, n=3, cutoff=0.5)
    hint = f"nearest: {', '.join(near)}" if near else "/api/openapi.json lists what there is"
    return Wrong(404, f"nothing at {path}; {hint}", "not_found", nearest=near)


async def _fail(reply: Reply, error: Exception, is_head: bool) -> None:
    """Say what is wrong; on a stream that has begun nothing can be said any more."""
    wrong = explained(error)
    if wrong is None:
        log.error("the API failed", exc_info=error)
        wrong = Wrong(500, "the gateway failed; its log says more", "internal")
    if reply.streaming:
        if not reply.gone:
            await reply.finish((), None)
        return
    headers = [(b"cache-control", b"no-store")]
    if wrong.status == 405:
        headers.append((b"allow", str(wrong.more["allow"]).encode()))
    if is_head:  # a head alone would wait for a body to go with
        headers.append((b"connection", b"close"))
    if wrong.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(after := wrong.more.get("retry_after_s"), float):
        headers.append((b"retry-after", str(ceil(after)).encode()))
    told = {"message": wrong.message, "category": wrong.category, **wrong.more}
    await reply.json(wrong.status, encode({"error": told}), *headers)
