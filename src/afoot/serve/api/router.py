"""`ApiApp` is the operator's API: its routes, who may use each, its errors, and its OpenAPI description."""

import logging
import re
from collections.abc import Sequence
from difflib import get_close_matches
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from afoot.core.ports import ClusterMemberInfo, KeyRotation
from afoot.observe.prometheus import CONTENT_TYPE
from afoot.serve.access.guard import Denied, Guard, challenge_headers
from afoot.serve.access.principal import ADMIN, ANSWER, CALL, WATCH
from afoot.serve.api import (
    browsers,
    callers,
    calls,
    cluster,
    hosts,
    metrics,
    resources,
    servers,
    sessions,
    tools,
)
from afoot.serve.api.call_page import cancels, runs, story
from afoot.serve.api.calls import call_in_path
from afoot.serve.api.history import purge_export, summary
from afoot.serve.api.history.call_filters import FILTERS
from afoot.serve.api.live import activity, event_feed
from afoot.serve.api.live.call_events import read_options, stream_events
from afoot.serve.api.questions import allowlist, earlier_answers, questions
from afoot.serve.api.request import ApiError, ApiRequest, Handler, as_api_error
from afoot.serve.api.views import CallView, encode_json
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import HttpResponse, Receive, Scope, Send
from afoot.wire import framing
from afoot.wire.gateway_proof import Proof

_PATH_PART = re.compile(r"\{(\w+)\}")

log = logging.getLogger("afoot.serve")


class ErrorView(Struct, frozen=True):
    """The error: what happened, and what to do; further fields say more."""

    message: str
    category: str


class ErrorBodyView(Struct, frozen=True):
    """The body of every error response."""

    error: ErrorView


class Route(Struct, frozen=True):
    """A method and a path, and the function that answers."""

    method: str
    path: str
    handler: Handler
    response: type | str = "text/event-stream"  # a type is answered as JSON
    request_body: type | None = None
    query: tuple[str, ...] = ()
    status: int = 200
    is_public: bool = False
    scope: tuple[str, ...] = ()  # one of these is needed; if empty, `watch` for GET and `admin` for the rest

    @property
    def needed_scopes(self) -> tuple[str, ...]:
        """The scopes of which a request needs one."""
        return self.scope or ((WATCH,) if self.method == "GET" else (ADMIN,))


class Health(Struct, frozen=True):
    """Whether the gateway is well.

    `why` says what is wrong, `counted` what odd things happened since its start.

    `problems`: errors in the settings that were read last, and are not in force. `public`: its address for
    others, if it has one.
    """

    status: str
    version: str
    why: str | None = None
    counted: dict[str, int] = {}
    problems: list[str] = []
    public: str | None = None


async def health(request: ApiRequest) -> None:
    """Whether the gateway is well; the details are for those who may watch."""
    gateway, engine = request.gateway, request.gateway.engine
    engine.recorder.check()
    why = engine.recorder.degraded
    status = "degraded" if why else "ok"
    if WATCH not in request.principal.scopes:
        return await request.answer(200, Health(status, gateway.version))
    counted = {
        **gateway.counters,
        "tools that did not stop": engine.ran_past_grace,
        "calls over quota": engine.quota_refusals.total(),
    }
    problems, browser = [*gateway.problems, *gateway.resource_catalog.problems()], gateway.browser
    if browser is not None:
        counted |= {f"browser: {what}": times for what, times in browser.counted.items()}
        problems = [*problems, *browser.problems, *filter(None, [browser.connection_error()])]
    odd = {what: times for what, times in counted.items() if times}
    public = gateway.public if gateway.public not in ("", gateway.url) else None
    await request.answer(200, Health(status, gateway.version, why, odd, problems, public))


async def call_events(request: ApiRequest) -> None:
    """The events of a call: its past, then its present, until its end."""
    want = read_options(request)
    await stream_events(request, await call_in_path(request), want)


async def protected_resource(request: ApiRequest) -> None:
    """The issuer of access tokens for this gateway (RFC 9728)."""
    token_checks = request.gateway.token_checks
    if token_checks is None or token_checks.issuer is None:
        raise ApiError(404, "no issuer is trusted here (see access.issuer)", "not_found")
    await request.answer(200, token_checks.issuer.metadata())


async def openapi_description(request: ApiRequest) -> None:
    """This description."""
    await request.answer(200, openapi_document(ROUTES, request.gateway.version))


ROUTES = (
    Route("GET", "/healthz", health, Health, is_public=True),
    Route("GET", "/readyz", cluster.ready, cluster.Readiness, is_public=True),
    Route("GET", "/metrics", metrics.show, CONTENT_TYPE),
    Route("GET", "/api/cluster", cluster.show, cluster.ClusterView),
    Route("POST", "/api/cluster/rotate-keys", cluster.rotate_keys, KeyRotation),
    Route("POST", "/api/cluster/{id}/drain", cluster.drain, ClusterMemberInfo),
    Route("DELETE", "/api/cluster/{id}/drain", cluster.resume, ClusterMemberInfo),
    Route("POST", "/api/cluster/{id}/takeover", cluster.take_over, cluster.TakeOverView,
          cluster.TakeOverRequest),
    Route("GET", "/.well-known/oauth-protected-resource", protected_resource, dict, is_public=True),
    Route("GET", "/.well-known/oauth-protected-resource/mcp", protected_resource, dict, is_public=True),
    Route("GET", "/api/calls", calls.index, calls.CallPage,
          query=calls.LIST_OPTIONS, scope=(CALL, WATCH)),
    Route("POST", "/api/calls", calls.start, request_body=calls.StartRequest, scope=(CALL,)),
    Route("GET", "/api/calls/{id}", calls.show, CallView, scope=(CALL, WATCH)),
    Route("GET", "/api/calls/{id}/wire", calls.show_wire, calls.WireView),
    Route("GET", "/api/calls/{id}/events", call_events, query=("after", "follow"), scope=(CALL, WATCH)),
    Route("POST", "/api/calls/{id}/cancel", cancels.cancel, CallView, cancels.CancelCallRequest, status=202,
          scope=(CALL, ANSWER)),
    Route("DELETE", "/api/calls/{id}/cancel", cancels.withdraw, CallView, scope=(CALL, ANSWER)),
    Route("GET", "/api/calls/{id}/story", story.story, dict, scope=(CALL, WATCH)),
    Route("GET", "/api/calls/{id}/runs", runs.runs, runs.Runs, scope=(CALL, WATCH)),
    Route("POST", "/api/calls/{id}/rerun", calls.rerun, CallView, calls.RerunRequest, status=202,
          scope=(CALL,)),
    Route("GET", "/api/history", summary.show, summary.HistorySummary,
          query=summary.SUMMARY_OPTIONS, scope=(CALL, WATCH)),
    Route("GET", "/api/export", purge_export.export, purge_export.NDJSON, query=("call", *FILTERS),
          scope=(ADMIN,)),
    Route("POST", "/api/purge", purge_export.purge, purge_export.PurgeResult, purge_export.PurgeRequest),
    Route("GET", "/api/events", event_feed.events, query=("after",)),
    Route("GET", "/api/snapshot", event_feed.snapshot, event_feed.FeedSnapshot),
    Route("GET", "/api/questions", questions.index, questions.QuestionList),
    Route("POST", "/api/questions/{id}/answer", questions.answer, CallView, questions.AnswerRequest,
          scope=(ANSWER,)),
    Route("GET", "/api/answers", earlier_answers.index, earlier_answers.GivenAnswers,
          query=earlier_answers.FILTERS),
    Route("GET", "/api/activity", activity.activity, activity.Activity, scope=(CALL, WATCH)),
    Route("GET", "/api/callers", callers.index, callers.CallerList),
    Route("GET", "/api/allow", allowlist.index, allowlist.Allowlist),
    Route("POST", "/api/allow", allowlist.add, allowlist.AllowEntryView, allowlist.AllowRequest, status=201),
    Route("DELETE", "/api/allow/{id}", allowlist.revoke, allowlist.AllowEntryView),
    Route("GET", "/api/tools", tools.index, tools.ToolList, query=("recent",), scope=(CALL, WATCH)),
    Route("GET", "/api/tools/{name}", tools.show, tools.ToolView, scope=(CALL, WATCH)),
    Route("GET", "/api/resources", resources.index, resources.ResourceList, scope=(CALL, WATCH)),
    Route("POST", "/api/resources/read", resources.read, dict, resources.ReadRequest, scope=(CALL,)),
    Route("GET", "/api/prompts", resources.index_prompts, resources.PromptList, scope=(CALL, WATCH)),
    Route("POST", "/api/prompts/get", resources.get_prompt, dict, resources.GetPromptRequest, scope=(CALL,)),
    Route("GET", "/api/hosts", hosts.index, hosts.HostList, scope=(ADMIN,)),
    Route("GET", "/api/servers", servers.index, servers.ServerList),
    Route("POST", "/api/servers", servers.add, servers.ServerView, servers.NewServer, status=201),
    Route("GET", "/api/servers/{name}/logs", servers.logs, servers.ServerLogs, query=("limit",)),
    Route("POST", "/api/servers/{name}/reload", servers.reload, servers.ServerView),
    Route("POST", "/api/servers/{name}/login", servers.begin_login, servers.LoginView, servers.LoginRequest,
          status=202),
    Route("GET", "/api/servers/{name}/login", servers.wait_for_login, servers.LoginView, scope=(ADMIN,)),
    Route("POST", "/api/servers/{name}/logout", servers.logout, servers.LogoutView),
    Route("POST", "/api/logout", servers.logout_all, servers.AllLogoutsView),
    Route("GET", "/api/servers/{name}", servers.show, servers.ServerView),
    Route("DELETE", "/api/servers/{name}", servers.remove, servers.RemovedServer),
    Route("GET", "/api/extension", browsers.show_extensions, browsers.ExtensionView, scope=(ADMIN,)),
    Route("POST", "/api/extension/rotate", browsers.rotate_key, browsers.ExtensionView),
    Route("GET", "/api/tabs", browsers.show_tabs, browsers.TabsView),
    Route("POST", "/api/tabs/{id}/reload", browsers.reload_tab, browsers.ReloadView, status=202),
    Route("GET", "/api/proof", sessions.proof, Proof, query=("key", "nonce"), is_public=True),
    Route("POST", "/api/session/code", sessions.code, sessions.CodeView, status=201),
    Route("POST", "/api/session", sessions.begin, sessions.NewSessionView, sessions.SessionRequest,
          status=201, is_public=True),
    Route("GET", "/api/session", sessions.index, sessions.SessionList, scope=(ADMIN,)),
    Route("DELETE", "/api/session/{id}", sessions.revoke, sessions.SessionView),
    Route("GET", "/api/openapi.json", openapi_description, dict, scope=(CALL, WATCH)),
)  # fmt: skip


def _pattern(path: str) -> re.Pattern[str]:
    """The path as a regular expression. Only a name, such as a tool's, may have a slash in it."""
    return re.compile(_PATH_PART.sub(lambda part: "(.+)" if part[1] == "name" else "([^/]+)", path))


_PATTERNS = [(route, _pattern(route.path)) for route in ROUTES]


class ApiApp:
    """The ASGI application of the operator's API."""

    def __init__(self, gateway: GatewayState, guard: Guard) -> None:
        self._gateway = gateway
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = HttpResponse(send, self._gateway.settings.stuck_s)
        try:
            await self._dispatch(ApiRequest(self._gateway, scope, receive, reply, {}))
        except ConnectionResetError:
            pass  # the client left before its request was complete
        except Exception as error:
            await self._send_error(reply, error, is_head=scope["method"] == "HEAD")
        finally:
            if reply.leave is not None:
                reply.leave(reply)
        if reply.denied and not reply.is_complete:
            await self._send_error(reply, Denied(401, reply.denied))

    async def _dispatch(self, request: ApiRequest) -> None:
        """Check the asker and call the handler of the route; raises ApiError, Denied."""
        path, method = request.scope["path"], request.scope["method"]
        found = [(route, match) for route, pattern in _PATTERNS if (match := pattern.fullmatch(path))]
        is_public = any(route.is_public for route, _ in found if route.method == method)
        if is_public or not (found or path.startswith("/api")):
            self._guard.check_public(request.scope)
            request = replace(request, principal=await self._guard.identify_reader(request.scope))
        else:
            request = replace(
                request, principal=await self._guard.identify_operator(request.scope, request.reply)
            )
        if not found:
            raise _unknown_path(path)
        for route, match in found:
            if route.method == method:
                names = dict(zip(_PATH_PART.findall(route.path), match.groups(), strict=True))
                if not is_public:
                    request.principal.require_scope(*route.needed_scopes)
                    request.seen()
                await route.handler(replace(request, names=names))
                return
        allowed = ", ".join(route.method for route, _ in found)
        raise ApiError(405, f"{method} {path}: the method must be {allowed}", allow=allowed)

    async def _send_error(self, reply: HttpResponse, error: Exception, *, is_head: bool = False) -> None:
        """Send the error; on a stream that has begun, only that its token is not valid any more."""
        wrong = as_api_error(error)
        if wrong is None:
            log.error("the API failed", exc_info=error)
            wrong = ApiError(500, "the gateway failed; its log says more", "internal")
        message = self._gateway.engine.redactor.prose(wrong.message)
        body = encode_json({"error": {"message": message, "category": wrong.category, **wrong.more}})
        if reply.streaming:
            if reply.denied:
                await reply.push(framing.event_frame(body, "denied"), more=False)
            elif not reply.gone:
                await reply.finish((), None)
            return
        headers = [(b"cache-control", b"no-store"), *challenge_headers(self._guard, error)]
        if wrong.status == 405:
            headers.append((b"allow", str(wrong.more["allow"]).encode()))
        if is_head:  # a head alone would wait for a body (see `CoalescingTransport`)
            headers.append((b"connection", b"close"))
        if isinstance(after := wrong.more.get("retry_after_s"), float):
            headers.append((b"retry-after", str(ceil(after)).encode()))
        await reply.json(wrong.status, body, *headers)


def _unknown_path(path: str) -> ApiError:
    known = sorted({route.path for route in ROUTES})
    near = get_close_matches(path, known, n=3, cutoff=0.5)
    hint = f"nearest: {', '.join(near)}" if near else "/api/openapi.json lists what there is"
    return ApiError(404, f"nothing at {path}; {hint}", "not_found", nearest=near)


def openapi_document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The OpenAPI description of these routes."""
    types = [one for route in routes for one in (route.response, route.request_body) if isinstance(one, type)]
    schemas, components = msgspec.json.schema_components(
        dict.fromkeys([*types, ErrorBodyView]), ref_template="#/components/schemas/{name}"
    )
    known = dict(zip(dict.fromkeys([*types, ErrorBodyView]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "afoot: the operator's API", "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"operator": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, known: dict[type, Any]) -> dict[str, Any]:
    if isinstance(route.response, type):
        content: dict[str, Any] = {"application/json": {"schema": known[route.response]}}
    else:
        content = {route.response: {"schema": {"type": "string"}}}
    wrong = {
        "description": "what went wrong",
        "content": {"application/json": {"schema": known[ErrorBodyView]}},
    }
    operation: dict[str, Any] = {
        "summary": (route.handler.__doc__ or "").split("\n")[0],
        "parameters": _parameters(route),
        "responses": {str(route.status): {"description": "as asked", "content": content}, "default": wrong},
        "security": [] if route.is_public else [{"operator": []}],
    }
    if route.request_body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": known[route.request_body]}}}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    text = {"type": "string"}
    inside = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in _PATH_PART.findall(route.path)
    ]
    return inside + [{"name": name, "in": "query", "schema": text} for name in route.query]
