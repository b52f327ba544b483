"""`Era2026` serves one client of 2026-07-28, on HTTP and on a pipe: it dispatches and asks in rounds.

A question ends the request that follows its call: the result says what is asked, and the client's retry goes
on with the call and brings the answers (Q1).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from math import inf
from typing import Any

from msgspec import Raw, Struct, UnsetType

from afoot.core.facts import Answered, Question
from afoot.core.ports import CallOrigin, Tool
from afoot.engine.followers import Wakeup
from afoot.serve.access.guard import LOCAL_CALLER, STDIO_CALLER
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp import handle_tools
from afoot.serve.mcp.app.offer import (
    capabilities_for_client,
    list_tools,
    read_app,
    resources_with_app,
    tools_with_app,
)
from afoot.serve.mcp.call_request import CallRequest
from afoot.serve.mcp.lookups import answer_lookup_2026, read_lookup, serve_lookup
from afoot.serve.mcp.pending import CANCELLED, PendingRequests
from afoot.serve.mcp.streams import ResponseStream, finish_within_bound
from afoot.serve.mcp.tasks import requests as task_requests
from afoot.serve.mcp.tasks.notifications import watch_tasks
from afoot.serve.resources import LISTS, MAX_SUBSCRIPTIONS, ChangeListener, ResourceCatalog
from afoot.wire import mcp_2025, mcp_2026
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, Id, read_params
from afoot.wire.mcp_2026 import CACHE_FIELDS, ListenFilter, RequestMeta2026
from afoot.wire.resources import LOOKUPS, JsonObject, lookup_result_2026
from afoot.wire.results import Capabilities, ToolCall, is_for_apps_alone
from afoot.wire.tasks import METHODS_2026

MAX_ROUNDS = 8  # official clients stop at ten
RETRY_WITHIN_S = 5.0  # within which a client retries a round without questions; official ones need 0.25 s
PRIVATE_CACHE = {**CACHE_FIELDS, "cacheScope": "private"}  # each client has its own list of tools

# Lists that come from other servers: who makes them, and their key in the result.
RESOURCE_LISTS: Mapping[str, tuple[Callable[[ResourceCatalog], list[JsonObject]], str]] = {
    "prompts/list": (ResourceCatalog.prompts, "prompts"),
    "resources/list": (ResourceCatalog.resources, "resources"),
    "resources/templates/list": (ResourceCatalog.templates, "resourceTemplates"),
}

Render = Callable[[str, str | None], bytes]


class Era2026(Struct, eq=False):
    """One client of 2026-07-28: on HTTP as long as one request, on a pipe as long as the connection."""

    _pending: PendingRequests
    _caller: str
    capped: bool = False  # whether a large result cannot go on a stream
    modern: bool = True
    version: str = mcp_2026.VERSION

    async def call(
        self,
        tool_call: ToolCall,
        stream: ResponseStream,
        headers: Mapping[str, str] | None = None,
        deadline: float = inf,
    ) -> None:
        """Serve a request for a call; raises Fault.

        `headers`: where arguments may be mirrored. `deadline`: when its caller needs a newer token.
        """
        gateway = self._pending.gateway
        pending = self._pending
        request_id = tool_call.id
        if tool_call.name not in gateway.engine.catalog.known:
            if not await pending.are_servers_ready(request_id, stream, stays=False):
                return
        if pending.calls:  # on HTTP there is never another
            pending.drop_token_in_use(tool_call)
        if tool_call.state is None and not tool_call.key:
            request = CallRequest.opening(gateway, tool_call, self._caller, stream, self, headers, deadline)
        else:
            # It may have been made before: by its state or its key it goes on with the same call.
            begin = partial(CallRequest.opening_by_key, headers=headers)
            if tool_call.state is not None:
                begin = CallRequest.retrying
            with pending.without_call(request_id) as wakeup:
                request = await begin(gateway, tool_call, self._caller, stream, self, deadline=deadline)
            if wakeup.closed:  # a cancel that comes while the call is looked for counts (X1)
                request.cancel("caller", CANCELLED)
        del headers  # only the opening compares them
        await self._follow(request)

    async def _follow(self, request: CallRequest) -> None:
        """Follow a call for one request, which can be cancelled meanwhile."""
        request_id = request.tool_call.id
        self._pending.calls[request_id] = request
        try:
            await request.follow()
        finally:
            del self._pending.calls[request_id]

    async def _look_up(
        self, message: Envelope, stream: ResponseStream, headers: Mapping[str, str] | None
    ) -> None:
        """Serve a lookup: as a call, if it is of a function of ours, else at the server that has it."""
        gateway, pending = self._pending.gateway, self._pending
        lookup = read_lookup(message, mcp_2026.read_plain(message, headers), self._caller)
        if (page := read_app(gateway, lookup)) is not None:
            last = lookup_result_2026(lookup, gateway.info, page)
            await finish_within_bound(stream, last, gateway.unread, self._caller)
            return
        gateway.check_lookup(lookup, stream.origin)
        own = gateway.function_offers.find(lookup)
        if own is None:
            with pending.without_call(lookup.id) as wakeup:
                work = answer_lookup_2026(gateway, lookup)
                await serve_lookup(gateway, lookup.id, self._caller, stream, wakeup, work)
            return
        tool_call = mcp_2026.lookup_call(message, lookup, own.tool.name, own.arguments)
        pending.drop_token_in_use(tool_call)
        if tool_call.state is None:
            offer = own.provider, own.tool
            request = CallRequest.opening_lookup(gateway, tool_call, self._caller, stream, self, offer)
        else:
            with pending.without_call(lookup.id) as wakeup:
                request = await CallRequest.retrying(gateway, tool_call, self._caller, stream, self)
            if wakeup.closed:
                request.cancel("caller", CANCELLED)
        await self._follow(request)

    async def request(
        self, message: Envelope, stream: ResponseStream, headers: Mapping[str, str] | None = None
    ) -> None:
        """Serve a request; raises Fault."""
        gateway = self._pending.gateway
        caller = self._caller
        request_id = message.id
        assert isinstance(request_id, int | str)
        self._pending.check_is_free(request_id)
        if message.method == "tools/call":
            await self.call(mcp_2026.read_call(message, headers), stream, headers)
        elif message.method == "subscriptions/listen":
            await self._listen(message, request_id, stream, headers)
        elif message.method in METHODS_2026:
            last = await task_requests.answer_task_request(gateway, message, headers, caller)
            await finish_within_bound(stream, last, gateway.unread, caller)
        elif message.method in LOOKUPS:
            await self._look_up(message, stream, headers)
        else:
            mcp_2026.read_plain(message, headers)
            await gateway.wait_until_servers_ready()
            await stream.finish((), answer_list_request(gateway, message, stream.origin))

    def take_notification(self, message: Envelope) -> None:
        """Take a cancel, and drop other notifications; raises Fault."""
        if message.method == "notifications/cancelled":
            cancelled = mcp_2025.read_cancelled(message)
            if cancelled.requestId is not None:
                self._pending.cancel(cancelled.requestId, cancelled.reason)

    def take_response(self, message: Envelope) -> None:
        """Count a response: in this era we send no requests, so it answers nothing."""
        self._pending.gateway.count("answers to nothing")

    def close(self, reason: str) -> None:
        """End everything: the client has gone."""
        for request in list(self._pending.calls.values()):
            request.cancel("disconnect", reason)
        self._pending.end_without_call()

    def ask(self, request: CallRequest, asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """End the request with the questions for the caller; others go to the operator, or are declined."""
        open_now = list(request.live.call.open.values())
        askable = [one for one in open_now if self.may_ask(request, one)]
        if len(askable) < len(open_now):
            self._pending.gateway.decline_unanswerable(one for one in open_now if one not in askable)
        return [], self._round(request, askable) if askable else None

    def may_ask(self, request: CallRequest, asked: Question) -> bool:
        """Whether the client can be asked this in another round."""
        is_in_time = request.round < MAX_ROUNDS and request.live.call.cancel is None
        return is_in_time and request.tool_call.capabilities.may_answer(asked)

    def has_open_form(self, request: CallRequest) -> bool:
        """False: a client with an open form has no request open, as the form has ended it."""
        return False

    def defer_large_result(self, request: CallRequest) -> bytes:
        """End with a round without a question: the client retries, and is answered as plain JSON."""
        return self._round(request, [])

    def may_hand_over(self, request: CallRequest) -> bool:
        """Whether the request can end with a handle. A lookup cannot: it ends with rounds alone."""
        return not request.tool_call.is_lookup or request.round < MAX_ROUNDS

    def hand_over(self, request: CallRequest) -> bytes | None:
        """End with a task if the client takes one, which may come behind progress (H7).

        Others get a round without a question, which the client retries by itself; else a handle.
        """
        if request.as_task or request.may_become_task:
            if not request.is_hand_over_recorded("task"):
                return None
            request.detach()
            return task_requests.created_result(self._pending.gateway, request.tool_call.id, request.live)
        able = request.tool_call.capabilities
        takes_rounds = any(one is not None for one in (able.elicitation, able.sampling, able.roots))
        is_round = takes_rounds and request.round < MAX_ROUNDS and not request.has_own_deadline
        is_round = is_round or request.tool_call.is_lookup
        if not request.is_hand_over_recorded("round" if is_round else "handle"):
            return None
        if is_round:
            return self._round(request, [])
        request.detach()
        return request.handle_result()

    def withdraw_questions(self, request: CallRequest, answered: Answered | None = None) -> list[bytes]:
        """Do nothing: a form already returned cannot be withdrawn."""
        return []

    def client_left(self, request: CallRequest) -> None:
        """Cancel the call, if no other request of the newest round follows it: the stream was closed."""
        is_alone = request.detach()
        if not is_alone or (request.joins_call and request.live.call.is_task):  # its caller has the task
            return
        if request.live.tool.on_disconnect == "detach":
            request.requests.can_ask = False  # unless it comes back
        else:
            reason = self._pending.gateway.leave_reason(request.caller)
            self._pending.gateway.engine.cancel(request.live, "disconnect", reason)

    async def _listen(
        self,
        message: Envelope,
        request_id: Id,
        stream: ResponseStream,
        headers: Mapping[str, str] | None,
    ) -> None:
        """Hold a subscription open: a bridge always has one, by which its caller counts as connected."""
        gateway = self._pending.gateway
        caller = self._caller
        wanted = mcp_2026.read_listen(message, headers)
        is_named = caller not in (LOCAL_CALLER, STDIO_CALLER)
        present = gateway.callers.present(caller, gateway.servers) if is_named else nullcontext()
        with self._pending.without_call(request_id) as wakeup:
            stream.watch(wakeup.wake)
            with await watch_tasks(gateway, message, wanted, caller, wakeup) as watch, present:
                listener = listener_for(wanted, wakeup)
                await serve_subscription(gateway, request_id, wanted, watch.over(stream), listener, caller)

    def _round(self, request: CallRequest, asked: Sequence[Question]) -> bytes:
        """The last frame that begins the next round."""
        gateway = self._pending.gateway
        number = request.round + 1
        if not request.waits:
            retry_until = 0.0 if asked else gateway.engine.clock.now() + RETRY_WITHIN_S
            request.requests.ended_with_round(number, retry_until)
        state = gateway.seal_request_state(
            request.live, request.tool_call, request.caller, number, request.series
        )
        return mcp_2026.input_required_result(request.tool_call.id, gateway.info, asked, state)


def answer_list_request(gateway: GatewayState, message: Envelope, origin: CallOrigin) -> bytes:
    """The answer to a request for a list, or for what this server is; raises Fault."""
    request_id = message.id
    assert isinstance(request_id, int | str)
    method = str(message.method)
    if method == "server/discover":
        instructions = gateway.instructions_for_models()
        declared = _declared(read_params(message, mcp_2026.PLAIN_DECODER).meta)
        can = capabilities_for_client(gateway, declared)
        return mcp_2026.discover_result(request_id, gateway.info, instructions, can)
    if method != "tools/list" and method not in RESOURCE_LISTS:
        raise mcp_2026.unknown_method(method)
    asked = read_params(message, mcp_2026.PLAIN_DECODER)
    if asked.cursor is not None:
        raise Fault(INVALID_PARAMS, "params.cursor: unknown; these lists have one page")
    if method == "tools/list":
        tools = tools_for_caller(gateway, asked.meta, origin)
        cache = _cache_terms(gateway, PRIVATE_CACHE)
        return mcp_2026.complete_result(request_id, gateway.info, tools=tools, **cache)
    listed = resource_list(gateway, method, origin, _declared(asked.meta))
    return mcp_2026.complete_result(request_id, gateway.info, **listed, **_cache_terms(gateway, CACHE_FIELDS))


def tools_for_caller(
    gateway: GatewayState, meta: RequestMeta2026 | UnsetType, origin: CallOrigin
) -> list[Raw]:
    """The tools for one caller: one that cannot wait also sees the handle tools (H5)."""
    assert not isinstance(meta, UnsetType)  # it was checked before
    client = "" if meta.client is None else meta.client.name
    limit_s = handle_tools.client_timeout(gateway, meta.budget, client)
    can = _declared(meta)
    tools = [tool.definition for tool in tools_for_client(gateway, can, origin)]
    return list_tools(gateway, tools, limit_s, can)


def tools_for_client(gateway: GatewayState, can: Capabilities, origin: CallOrigin) -> list[Tool]:
    """Every tool whose scopes this caller has (F1).

    Those that only the page of an MCP App may call are in it if this client shows apps (U8).
    """
    tools = [
        tool
        for tool in gateway.engine.catalog
        if (can.apps or not is_for_apps_alone(tool.definition))
        and not (tool.scopes and origin.lacks(tool.scopes))
    ]
    return tools_with_app(gateway, tools, can)


def resource_list(
    gateway: GatewayState, method: str, origin: CallOrigin, can: Capabilities
) -> dict[str, list[JsonObject]]:
    """The prompts, resources or templates of all servers, and those of our functions for this caller (F1)."""
    make, key = RESOURCE_LISTS[method]
    hidden = gateway.function_offers.hidden_from(origin)
    found = [item for item in make(gateway.resource_catalog) if listed_name(item) not in hidden]
    return {key: resources_with_app(gateway, found, can) if method == "resources/list" else found}


def listed_name(item: JsonObject) -> object:
    """The URI, the template or the name by which a list knows an item."""
    return item.get("uri") or item.get("uriTemplate") or item.get("name")


def listener_for(wanted: ListenFilter, wakeup: Wakeup) -> ChangeListener:
    """A listener for the changes that a caller wants to be told of."""
    return ChangeListener(wakeup, [kind for kind in LISTS if getattr(wanted, f"{kind}ListChanged")])


async def serve_subscription(
    gateway: GatewayState,
    request_id: Id,
    wanted: ListenFilter,
    stream: ResponseStream,
    listener: ChangeListener,
    caller: str,
) -> None:
    """Hold a stream open and tell of every wanted change, until it is left or we close; raises Fault."""
    if len(wanted.resourceSubscriptions) > MAX_SUBSCRIPTIONS:
        raise Fault(INVALID_PARAMS, f"params.notifications.resourceSubscriptions: over {MAX_SUBSCRIPTIONS}")

    def render(kind: str, uri: str | None) -> bytes:
        return mcp_2026.changed_notification(kind, uri, request_id)

    gateway.resource_catalog.listen(listener)
    try:
        await _subscribe(gateway, wanted, listener, caller, stream.origin)
        method = "notifications/subscriptions/acknowledged"
        await stream.send([mcp_2026.listen_notification(method, request_id, notifications=wanted)])
        await relay_changes(gateway, listener, stream, render)
        is_cancelled = listener.wakeup.closed
        last = None if is_cancelled else mcp_2026.listen_result(request_id, gateway.info)
        await stream.finish((), last)
    finally:
        gateway.resource_catalog.leave(listener)


async def relay_changes(
    gateway: GatewayState, listener: ChangeListener, stream: ResponseStream, render: Render
) -> None:
    """Send every change that the listener was told of, and keep the stream alive between them.

    Return when the stream is left, the listener's wakeup is closed, or the gateway closes.
    """
    wakeup = listener.wakeup
    gateway.wakeups.append(wakeup)
    try:
        while not stream.gone and not wakeup.closed and gateway.engine.closing is None:
            await gateway.wait_or_keep_alive(wakeup)
            if stream.gone or wakeup.closed:
                return  # the changes are kept for another stream
            if frames := [*listener.take_frames(), *(render(kind, uri) for kind, uri in listener.take())]:
                await stream.send(frames)
            else:
                await stream.keep_alive()
    finally:
        gateway.wakeups.remove(wakeup)


def _declared(meta: RequestMeta2026 | UnsetType) -> Capabilities:
    """The capabilities that a request declares for its client."""
    declared = None if isinstance(meta, UnsetType) else meta.capabilities
    return declared if isinstance(declared, Capabilities) else Capabilities()


def _cache_terms(gateway: GatewayState, terms: dict[str, Any]) -> dict[str, Any]:
    """The cache terms of a list: no caching if a server's list may change, or while tabs offer tools."""
    has_tabs = gateway.browser is not None and gateway.browser.is_used
    is_lasting = gateway.resource_catalog.is_lasting and not has_tabs
    return terms if is_lasting else {**terms, "ttlMs": 0}


async def _subscribe(
    gateway: GatewayState, wanted: ListenFilter, listener: ChangeListener, caller: str, origin: CallOrigin
) -> None:
    """Subscribe to the wanted resources.

    `wanted` keeps only those whose server tells of changes, and for which the caller has the scopes.
    """
    uris = list(dict.fromkeys(wanted.resourceSubscriptions))
    tried = await asyncio.gather(
        *(gateway.watch_resource(uri, listener, caller, origin) for uri in uris), return_exceptions=True
    )
    for wrong in tried:
        if wrong is not None and not isinstance(wrong, Fault):
            raise wrong
    wanted.resourceSubscriptions = [uri for uri, wrong in zip(uris, tried, strict=True) if wrong is None]
