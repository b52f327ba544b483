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
    history,
    login,
    openapi,
    questions,
    quotas,
    rerun,
    servers,
    session,
    tabs,
    tools,
    wire,
)
from afoot.serve.asgi import Receive, Scope, Send
from afoot.serve.calls import asked
from afoot.serve.follow import follow, wanted
from afoot.serve.guard import Denied, Guard, refusal
from afoot.serve.http import Reply
from afoot.serve.openapi import PATH_PART, Route
from afoot.serve.principal import ADMIN, ANSWER, CALL, WATCH
from afoot.serve.request import Request, Wrong, explained
from afoot.serve.site import Site
from afoot.serve.view import CallView, encode
from afoot.wire import sse

App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("afoot.serve")


class Health(Struct, frozen=True):
    """Whether the gateway is well; `why` says what is wrong, `counted` what was odd since it started.

    `problems`: what is wrong with the settings that were read last, and are not in force. `public`: its
    address for others, if it has one.
    """

    status: str
    version: str
    why: str | None = None
    counted: dict[str, int] = {}
    problems: list[str] = []
    public: str | None = None


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
            await _fail(reply, error, scope["method"] == "HEAD", refusal(guard, error))
        finally:
            if reply.leave is not None:
                reply.leave(reply)
        if reply.denied and not reply.is_whole:
            over = Denied(401, reply.denied)
            await _fail(reply, over, False, refusal(guard, over))

    return app


async def health(request: Request) -> None:
    """Whether the gateway is well; what exactly is wrong is for those who may watch."""
    site, engine = request.site, request.site.engine
    why = engine.recorder.degraded
    status = "degraded" if why else "ok"
    if WATCH not in request.who.scopes:
        return await request.answer(200, Health(status, site.version))
    counted = {
        **site.counted,
        "tools that did not stop": engine.unstopped,
        "calls over quota": engine.refused.total(),
    }
    problems, browser = site.problems, site.browser
    if browser is not None:
        counted |= {f"browser: {what}": times for what, times in browser.counted.items()}
        problems = [*problems, *browser.problems, *filter(None, [browser.trouble()])]
    odd = {what: times for what, times in counted.items() if times}
    public = site.public if site.public not in ("", site.url) else None
    await request.answer(200, Health(status, site.version, why, odd, problems, public))


async def call_events(request: Request) -> None:
    """The events of a call: its past, then its present, until its end."""
    want = wanted(request)
    await follow(request, await asked(request), want)


async def resource(request: Request) -> None:
    """Who gives out access tokens for this gateway (RFC 9728)."""
    ways = request.site.ways
    if ways is None or ways.issuer is None:
        raise Wrong(404, "no issuer is trusted here (see access.issuer)", "not_found")
    await request.answer(200, ways.issuer.metadata())


async def description(request: Request) -> None:
    """This description."""
    await request.answer(200, openapi.document(ROUTES, request.site.version))


ROUTES = (
    Route("GET", "/healthz", health, Health, is_public=True),
    Route("GET", "/.well-known/oauth-protected-resource", resource, dict, is_public=True),
    Route("GET", "/.well-known/oauth-protected-resource/mcp", resource, dict, is_public=True),
    Route("GET", "/api/calls", calls.index, calls.Page,
          query=calls.FILTERS, scope=(CALL, WATCH)),
    Route("POST", "/api/calls", calls.start, takes=calls.Start, scope=(CALL,)),
    Route("GET", "/api/calls/{id}", calls.show, CallView, scope=(CALL, WATCH)),
    Route("GET", "/api/calls/{id}/wire", wire.show, wire.WireView),
    Route("GET", "/api/calls/{id}/events", call_events, query=("after", "follow"), scope=(CALL, WATCH)),
    Route("POST", "/api/calls/{id}/cancel", calls.cancel, CallView, calls.Cancel, status=202,
          scope=(CALL, ANSWER)),
    Route("POST", "/api/calls/{id}/rerun", rerun.rerun, CallView, rerun.Rerun, status=202, scope=(CALL,)),
    Route("GET", "/api/export", history.export, history.NDJSON, query=("call",), scope=(ADMIN,)),
    Route("POST", "/api/purge", history.purge, history.Purged, history.Want),
    Route("GET", "/api/events", feed.events, query=("after",)),
    Route("GET", "/api/snapshot", feed.snapshot, feed.Snapshot),
    Route("GET", "/api/questions", questions.index, questions.Questions),
    Route("POST", "/api/questions/{id}/answer", questions.answer, CallView, questions.Said, scope=(ANSWER,)),
    Route("GET", "/api/callers", quotas.index, quotas.CallerList),
    Route("GET", "/api/allow", allow.index, allow.Allowlist),
    Route("POST", "/api/allow", allow.add, allow.AllowView, allow.Add, status=201),
    Route("DELETE", "/api/allow/{id}", allow.revoke, allow.AllowView),
    Route("GET", "/api/tools", tools.index, tools.Tools, scope=(CALL, WATCH)),
    Route("GET", "/api/tools/{name}", tools.show, tools.ToolView, scope=(CALL, WATCH)),
    Route("GET", "/api/servers", servers.index, servers.ServerList),
    Route("POST", "/api/servers", servers.add, servers.ServerView, servers.NewServer, status=201),
    Route("GET", "/api/servers/{name}/logs", servers.logs, servers.Logs, query=("limit",)),
    Route("POST", "/api/servers/{name}/reload", servers.reload, servers.ServerView),
    Route("POST", "/api/servers/{name}/login", login.begin, login.LoginView, login.Begin, status=202),
    Route("GET", "/api/servers/{name}/login", login.wait, login.LoginView, scope=(ADMIN,)),
    Route("POST", "/api/servers/{name}/logout", login.logout, login.LoggedOut),
    Route("GET", "/api/servers/{name}", servers.show, servers.ServerView),
    Route("DELETE", "/api/servers/{name}", servers.remove, servers.Removed),
    Route("GET", "/api/extension", extension.index, extension.ExtensionView, scope=(ADMIN,)),
    Route("POST", "/api/extension/rotate", extension.rotate, extension.ExtensionView),
    Route("GET", "/api/tabs", tabs.index, tabs.Tabs),
    Route("POST", "/api/tabs/{id}/reload", tabs.reload, tabs.Reloading, status=202),
    Route("POST", "/api/session/code", session.code, session.CodeView, status=201),
    Route("POST", "/api/session", session.begin, session.LoggedIn, session.Login, status=201, is_public=True),
    Route("GET", "/api/session", session.index, session.SessionList, scope=(ADMIN,)),
    Route("DELETE", "/api/session/{id}", session.revoke, session.SessionView),
    Route("GET", "/api/openapi.json", description, dict, scope=(CALL, WATCH)),
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
        request = replace(request, who=await guard.somebody(request.scope))
    else:
        request = replace(request, who=await guard.operator(request.scope, request.reply))
    if not found:
        raise _unknown(path)
    for route, match in found:
        if route.method == method:
            names = dict(zip(PATH_PART.findall(route.path), match.groups(), strict=True))
            if not is_public:
                request.who.demand(*route.needs)
                request.seen()
            await route.handler(replace(request, names=names))
            return
    allowed = ", ".join(route.method for route, _ in found)
    raise Wrong(405, f"{method} {path}: the method must be {allowed}", allow=allowed)


def _unknown(path: str) -> Wrong:
    known = sorted({route.path for route in ROUTES})
    near = get_close_matches(path, known, n=3, cutoff=0.5)
    hint = f"nearest: {', '.join(near)}" if near else "/api/openapi.json lists what there is"
    return Wrong(404, f"nothing at {path}; {hint}", "not_found", nearest=near)


async def _fail(reply: Reply, error: Exception, is_head: bool, told: list[tuple[bytes, bytes]]) -> None:
    """Say what is wrong; on a stream that has begun only that its asker is let in no more."""
    wrong = explained(error)
    if wrong is None:
        log.error("the API failed", exc_info=error)
        wrong = Wrong(500, "the gateway failed; its log says more", "internal")
    body = encode({"error": {"message": wrong.message, "category": wrong.category, **wrong.more}})
    if reply.streaming:
        if reply.denied:
            await reply.push(sse.frame(body, "denied"), more=False)
        elif not reply.gone:
            await reply.finish((), None)
        return
    headers = [(b"cache-control", b"no-store"), *told]
    if wrong.status == 405:
        headers.append((b"allow", str(wrong.more["allow"]).encode()))
    if is_head:  # a head alone would wait for a body to go with
        headers.append((b"connection", b"close"))
    if isinstance(after := wrong.more.get("retry_after_s"), float):
        headers.append((b"retry-after", str(ceil(after)).encode()))
    await reply.json(wrong.status, body, *headers)
