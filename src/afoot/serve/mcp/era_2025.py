"""`Era2025` serves one client of the handshake era, on HTTP and on a pipe: it dispatches requests and asks.

A client of this era begins with `initialize`. A question is a request of ours, sent while its call is
followed. A lost stream is no cancel: the call runs on. On HTTP the events of a `ResumableStream` say where in
their call they stand (H2): a client that lost it sends the id of its last event, and goes on behind it.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Raw

from afoot.core.facts import Answered, Logged, Question
from afoot.core.ports import CallOrigin
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall
from afoot.engine.questions import ENGINE
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp import handle_tools
from afoot.serve.mcp.app.offer import capabilities_for_client, list_tools, read_app
from afoot.serve.mcp.asgi import HttpResponse
from afoot.serve.mcp.call_request import CallRequest
from afoot.serve.mcp.client_requests_2025 import CallQuestions, LookupQuestions
from afoot.serve.mcp.era_2026 import RESOURCE_LISTS, resource_list, tools_for_client
from afoot.serve.mcp.lookups import answer_lookup_2025, serve_lookup
from afoot.serve.mcp.pending import CANCELLED, PendingRequests, id_in_use
from afoot.serve.mcp.streams import ResponseStream, unrecorded
from afoot.serve.mcp.tasks.tasks_2025 import SessionTasks, answer_task_request_2025, tools_with_task_support
from afoot.serve.resources import ChangeListener
from afoot.wire import framing, mcp_2025, resources, results
from afoot.wire.jsonrpc import METHOD_NOT_FOUND, Envelope, Fault, Id
from afoot.wire.resources import LOOKUPS, Lookup
from afoot.wire.results import Capabilities
from afoot.wire.sealed_state import ResumePosition, SessionTicket
from afoot.wire.tasks import CAPABILITY, METHODS_2025

SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")
RETRY_MS = 1000  # after which a client that lost its stream is to come back
TAKE_OVER_CHECK_S = 0.01  # how often to check whether a request has left its stream: a stuck one takes long


class ResumableStream:
    """A response whose events carry the number of the fact that they tell of."""

    def __init__(self, gateway: GatewayState, reply: HttpResponse, version: str) -> None:
        self._gateway = gateway
        self._reply = reply
        # Older clients take an event without data for a broken one.
        self._sends_primer = version == mcp_2025.LATEST
        self._request: CallRequest | None = None
        self._after = 0  # the fact behind which it begins
        self._position: ResumePosition | None = None  # made for the first event: most calls send none
        self._is_left = False
        self._fact_numbers: list[tuple[int, int]] = []  # after how many frames, which fact

    def begin(self, request: CallRequest) -> None:
        """Number the events of this request from now on."""
        self._request = request
        self._after = request.after or 0
        request.on_frames(self.mark)
        if not self._sends_primer:  # the first event, if it is no fact itself, says where the stream begins
            self.mark(1, self._after)

    def mark(self, frames: int, seq: int) -> None:
        """Take note that so many frames of the next send end with fact `seq`, or come behind it."""
        if frames:  # else it is no event
            self._fact_numbers.append((frames, seq))

    def leave(self) -> None:
        """Count as gone: another stream takes over, and has the answer."""
        self._is_left = True
        self._reply.unanswered_id = None

    @property
    def gone(self) -> bool:
        return self._is_left or self._reply.gone

    @property
    def streaming(self) -> bool:
        return self._reply.streaming

    @property
    def origin(self) -> CallOrigin:
        return self._reply.origin

    def watch(self, wake: Callable[[], object]) -> None:
        self._reply.watch(wake)

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send frames as events, each with its number if it has one."""
        await self._reply.send((), raw=self._primer() + self._events(frames))

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last frame."""
        if self.gone or not (self._reply.streaming or frames):
            await self._reply.finish(frames, last)
            return
        last = self._reply.error_if_unanswered() if last is None else last
        whole = frames if last is None else [*frames, last]
        if last is not None and self._request is not None:
            self.mark(len(whole), self._request.live.recorded)
        raw = self._primer() + self._events(whole)
        await self._reply.send((), raw=raw or framing.comment_frame("over"), more=False)

    async def keep_alive(self) -> None:
        """Send a comment; before the first one goes the event that tells where the stream begins."""
        await self._reply.send((), raw=self._primer() + framing.comment_frame("alive"))

    def _primer(self) -> bytes:
        """An event without data, so that a client that loses the stream early can come back."""
        if not self._sends_primer or self._reply.streaming or (position := self._start()) is None:
            return b""
        return f"id: {position.event_id(position.seq)}\nretry: {RETRY_MS}\ndata: \n\n".encode()

    def _events(self, frames: Sequence[bytes]) -> bytes:
        numbers = dict(self._fact_numbers)  # of several at one place, the last counts
        self._fact_numbers.clear()
        position = self._start()
        events: list[bytes] = []
        for at, frame in enumerate(frames, 1):
            event_id = "" if position is None or at not in numbers else position.event_id(numbers[at])
            events.append(framing.event_frame(frame, "message", event_id))
        return b"".join(events)

    def _start(self) -> ResumePosition | None:
        """The position at which the stream begins; None if its events have no numbers."""
        if self._position is None and self._request is not None:
            tool_call, call = self._request.tool_call, self._request.live.call
            epoch = self._gateway.engine.journal.epoch
            token, partial = tool_call.token, tool_call.partial
            self._position = ResumePosition(epoch, call.id, self._after, tool_call.id, token, partial)
        return self._position


class Era2025:
    """One client of the handshake era, for as long as its session or its connection."""

    def __init__(self, gateway: GatewayState, caller: str, *, dies: bool) -> None:
        """`dies`: the transport's end is the caller's end, and ends its calls."""
        self._gateway = gateway
        self._dies = dies
        self.capped = False
        self.modern = False
        self.caller = caller
        self.version = ""
        self.client = ""  # its name
        self.client_version = ""
        self.capabilities = Capabilities()
        self.level: str | None = "info"
        self.log_level: str | None = None  # the level that it asked for, if it did
        self._pending = PendingRequests(gateway)
        self._detached: dict[Id, LiveCall] = {}  # calls that run on without their stream, by their request
        self._call_questions = CallQuestions(gateway, caller)
        self._lookup_questions = LookupQuestions()
        self.listener = ChangeListener(Wakeup())
        self._tasks = SessionTasks(gateway, self, self._call_questions, self.listener.wakeup)
        self.task_watch = self._tasks.watch
        self.tell_others: Callable[[bytes], object] | None = None  # other gateways, in a cluster

    async def request(self, message: Envelope, stream: ResponseStream) -> None:
        """Serve one request; raises Fault."""
        request_id = message.id
        assert isinstance(request_id, int | str)
        if message.method == "tools/call":
            await self._call(message, stream)
        elif message.method in LOOKUPS or message.method in SUBSCRIPTIONS:
            await self._look_up(message, request_id, stream)
        elif message.method in METHODS_2025 and self.version == mcp_2025.LATEST:
            self._pending.check_is_free(request_id)
            request = await answer_task_request_2025(self._gateway, self, message, stream)
            if request is not None:
                await self.follow(request)
        elif message.method == "logging/setLevel":
            self.level = self.log_level = mcp_2025.read_level(message)
            if self._gateway.servers is not None:
                await self._gateway.servers.renew_log_levels()
            await stream.finish((), mcp_2025.result_response(request_id))
        else:
            if message.method != "ping":
                await self._gateway.wait_until_servers_ready()
            await stream.finish((), self._answer_at_once(request_id, message, stream.origin))

    def take_notification(self, message: Envelope) -> bool:
        """Take a cancel or a change of roots, and drop other notifications; raises Fault.

        False for the cancel of a request that is not known here.
        """
        if message.method == "notifications/initialized":
            self._join()
        elif message.method == "notifications/roots/list_changed":
            self._tell_roots_changed()
        if message.method != "notifications/cancelled":
            return True
        cancelled = mcp_2025.read_cancelled(message)
        request_id = cancelled.requestId
        if request_id is None or self._pending.cancel(request_id, cancelled.reason):
            return True
        live = self._detached.pop(request_id, None)
        if live is not None:
            self._gateway.engine.cancel(live, "caller", cancelled.reason or CANCELLED)
        return live is not None

    def take_response(self, message: Envelope) -> bool:
        """Take the answer to a question of ours; one that does not fit is asked for again.

        False for an answer to a question that was not asked here.
        """
        return self._lookup_questions.take_answer(message) or self._call_questions.take_answer(message)

    def follow_task(self, task: str, token: Id | None = None) -> bool:
        """Tell of a task that began at another gateway; False if it is not known here."""
        live = self._gateway.engine[task] if task in self._gateway.engine else None
        if live is not None and live.call.opened.caller == self.caller:
            self._tasks.follow(live, token)
        return live is not None

    def follow_tasks_of_others(self) -> None:
        """Tell of the tasks of this session that live at other gateways: this one has its stream now."""
        if self.caller.startswith("session:"):  # any other caller may have several sessions
            for live in self._gateway.engine.calls():
                if live.mirror is not None and live.call.is_task:
                    self.follow_task(live.call.id)

    def close(self, reason: str) -> None:
        """End everything: the connection is over."""
        for request in list(self._pending.calls.values()):
            if self._dies:
                request.cancel("disconnect", reason)
            request.stop()
        self.end_without_call()

    def restore(self, ticket: SessionTicket) -> None:
        """Go on with a session that another gateway has opened."""
        self.version = ticket.version
        self.client = ticket.client
        self.client_version = ticket.client_version
        self.capabilities = ticket.capabilities
        self._call_questions.use_new_ids()
        self._lookup_questions.use_new_ids()
        self._join()
        self._gateway.resource_catalog.listen(self.listener)

    def end_without_call(self) -> None:
        """End every request that follows no call, and send no more changes: the client has left."""
        self.listener.wakeup.close()
        if self._gateway.servers is not None and self._gateway.servers.clients.leave(self):
            self._tell_roots_changed()
        self._pending.end_without_call()
        self._gateway.resource_catalog.leave(self.listener)
        self.task_watch.close()

    @property
    def has_roots(self) -> bool:
        """Whether the client can be asked for its roots."""
        return self.capabilities.roots is not None

    def show_log(self, line: Logged) -> None:
        """Send a log message that belongs to no call, if this client asked for its level."""
        if results.is_log_wanted(self.log_level, line.level):
            self.listener.add_frame(results.log_notification(line))

    async def list_roots(self) -> list[Raw]:
        """Ask the client for its roots, on the stream that it holds open; raises Fault."""
        answer = await self._lookup_questions.ask_outside_requests(self.listener.add_frame, "roots/list")
        roots = answer.get("roots")
        return [Raw(results.encode(one)) for one in roots] if isinstance(roots, list) else []

    def ask(self, request: CallRequest, asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """Put questions to the client as requests of our own; those it cannot answer go to the operator."""
        return self._call_questions.put(request, asked, self.capabilities), None

    def may_ask(self, request: CallRequest, asked: Question) -> bool:
        """Whether the client can be asked this."""
        return self.capabilities.may_answer(asked)

    def has_open_form(self, request: CallRequest) -> bool:
        """Whether a form of this request is open at the client."""
        return self._call_questions.has_form_of(request)

    def defer_large_result(self, request: CallRequest) -> bytes:
        """Fail: in this era a large result goes as one event."""
        raise AssertionError("a handshake-era stream is not capped")

    def may_hand_over(self, request: CallRequest) -> bool:
        """Whether the request can end with a handle. A lookup cannot: it has none."""
        return not request.tool_call.is_lookup

    def hand_over(self, request: CallRequest) -> bytes | None:
        """End with a handle; a request that waits for the call is asked again what it asks."""
        if not request.is_hand_over_recorded("handle"):
            return None
        request.detach()
        return request.handle_result()

    def withdraw_questions(self, request: CallRequest, answered: Answered | None = None) -> list[bytes]:
        """Withdraw a question that somebody else has answered (A5), or all that the call needs no more.

        All of them stay if the stream broke, for it may be resumed.
        """
        if answered is not None:
            by = answered.answer.by
            why = "its tool has changed" if by == ENGINE else f"answered by {by}"
            return self._call_questions.withdraw(answered.question, why)
        if request.stream.gone and not (self._dies or request.is_over):
            return []
        return self._call_questions.withdraw_all_of(request, "its request is over")

    def client_left(self, request: CallRequest) -> None:
        """Let the call run on, and remember how to cancel it: a lost stream is no cancel in this era (X3)."""
        live = request.live
        if self._dies and live.tool.on_disconnect != "detach":
            self._gateway.engine.cancel(live, "disconnect", "the client takes nothing any more")
        request.detach()
        request.requests.can_ask = False  # unless it comes back to wait for it
        self._detached = {key: one for key, one in self._detached.items() if not one.call.is_finished}
        self._detached[request.tool_call.id] = live

    async def take_over_request(self, request: CallRequest, received: set[str]) -> None:
        """Let a request go on, on another stream; questions that its client received are not asked again."""
        request_id = request.tool_call.id
        while (before := self._pending.calls.get(request_id)) is not None:
            stream = unrecorded(before.stream)
            if before.live.call.id != request.live.call.id or not isinstance(stream, ResumableStream):
                raise id_in_use(request_id)
            stream.leave()
            before.wakeup.wake()
            await asyncio.sleep(TAKE_OVER_CHECK_S)
        self._detached.pop(request_id, None)
        self._call_questions.pass_on(request, received)

    async def follow(self, request: CallRequest) -> None:
        """Follow a call for one request, which can be cancelled meanwhile."""
        if isinstance(request.stream, ResumableStream) and request.after is None and not request.waits:
            request.stream.begin(request)
        self.register(request)
        try:
            await request.follow()
        finally:
            self.unregister(request)

    def register(self, request: CallRequest) -> None:
        """Keep the id of this request taken until `unregister`, so that it can be cancelled."""
        self._pending.calls[request.tool_call.id] = request

    def unregister(self, request: CallRequest) -> None:
        """Free the id of a request that is over, and withdraw its questions."""
        request_id = request.tool_call.id
        if self._pending.calls.get(request_id) is request:
            del self._pending.calls[request_id]
        self.withdraw_questions(request)

    def _join(self) -> None:
        """Let servers reach this client outside calls."""
        if self._gateway.servers is not None:
            self._gateway.servers.clients.join(self)
            self._tell_roots_changed()

    def _tell_roots_changed(self) -> None:
        if self._gateway.servers is not None and self.has_roots:
            self._gateway.servers.tell_roots_changed(self.caller)

    async def _call(self, message: Envelope, stream: ResponseStream) -> None:
        """Serve a request for a call; raises Fault."""
        gateway = self._gateway
        pending = self._pending
        tool_call = mcp_2025.read_call(message, self.capabilities, self.level)
        pending.check_is_free(tool_call.id)
        tool_call.client = self.client
        tool_call.client_version = self.client_version
        tool_call.task = tool_call.task and self.version == mcp_2025.LATEST
        if tool_call.name not in gateway.engine.catalog.known:
            if not await pending.are_servers_ready(tool_call.id, stream, stays=not self._dies):
                await stream.finish((), None)
                return
        pending.drop_token_in_use(tool_call, self._tasks.tokens())
        if tool_call.key:
            with pending.without_call(tool_call.id) as wakeup:
                request = await CallRequest.opening_by_key(gateway, tool_call, self.caller, stream, self)
            if wakeup.closed and self.listener.wakeup.closed and request.joins_call:
                request.stop()  # its session was ended: no cancel of what another request opened (X3)
            elif wakeup.closed:  # a cancel that comes while the call is looked for counts (X1)
                request.cancel("caller", CANCELLED)
        else:
            request = CallRequest.opening(gateway, tool_call, self.caller, stream, self)
        if tool_call.task:
            await self._tasks.begin(request)
        else:
            await self.follow(request)

    async def _look_up(self, message: Envelope, request_id: Id, stream: ResponseStream) -> None:
        """Answer a request that starts no call, but may take its time."""
        self._pending.check_is_free(request_id)
        if message.method in LOOKUPS:
            lookup = resources.read_lookup(message, self.caller, self.capabilities)
            if (page := read_app(self._gateway, lookup)) is not None:
                await stream.finish((), resources.lookup_result_2025(lookup, page))
                return
            if await self._is_own_lookup(message, lookup, stream):
                return
            work = answer_lookup_2025(self._gateway, lookup, partial(self._lookup_questions.ask, stream))
        else:
            uri = resources.read_uri(message)
            work = self._subscribe(request_id, str(message.method), uri, stream.origin)
        with self._pending.without_call(request_id) as wakeup:
            await serve_lookup(self._gateway, request_id, self.caller, stream, wakeup, work)

    async def _is_own_lookup(self, message: Envelope, lookup: Lookup, stream: ResponseStream) -> bool:
        """Serve a lookup of a function of ours as a call; False if it is none. Raises Fault."""
        self._gateway.check_lookup(lookup, stream.origin)
        own = self._gateway.function_offers.find(lookup)
        if own is None:
            return False
        tool_call = mcp_2025.lookup_call(message, lookup, own.tool.name, own.arguments, self.level)
        tool_call.client, tool_call.client_version = self.client, self.client_version
        self._pending.drop_token_in_use(tool_call, self._tasks.tokens())
        offer = own.provider, own.tool
        await self.follow(
            CallRequest.opening_lookup(self._gateway, tool_call, self.caller, stream, self, offer)
        )
        return True

    async def _subscribe(self, request_id: Id, method: str, uri: str, origin: CallOrigin) -> bytes:
        """Subscribe to a resource, or end that; raises Fault."""
        catalog = self._gateway.resource_catalog
        if method == "resources/unsubscribe":
            catalog.subscriptions.drop(uri, self.listener)
            return mcp_2025.result_response(request_id)
        try:
            await self._gateway.watch_resource(uri, self.listener, self.caller, origin)
        except Fault as fault:
            raise resources.translate_fault(fault, "", modern=False, uri=uri) from None
        return mcp_2025.result_response(request_id)

    def _answer_at_once(self, request_id: Id, message: Envelope, origin: CallOrigin) -> bytes:
        """The answer to a request that neither starts a call nor asks another server; raises Fault."""
        method = str(message.method)
        if method == "initialize":
            return self._initialize(request_id, message)
        if method == "ping":
            return mcp_2025.result_response(request_id)
        if method == "tools/list":
            asked = mcp_2025.read_list(message)
            limit_s = handle_tools.client_timeout(self._gateway, asked.meta.budget, self.client)
            found = tools_for_client(self._gateway, self.capabilities, origin)
            if self.version == mcp_2025.LATEST:
                tools = tools_with_task_support(found)
            else:
                tools = [tool.definition for tool in found]
            tools = list_tools(self._gateway, tools, limit_s, self.capabilities)
            return mcp_2025.result_response(request_id, tools=tools)
        if method in RESOURCE_LISTS:
            mcp_2025.read_list(message)
            listed = resource_list(self._gateway, method, origin, self.capabilities)
            return mcp_2025.result_response(request_id, **listed)
        raise Fault(METHOD_NOT_FOUND, f"unknown method {method!r}", status=200)

    def _initialize(self, request_id: Id, message: Envelope) -> bytes:
        hello = mcp_2025.read_initialize(message)
        self.version = hello.version
        self.capabilities = hello.capabilities
        self.client = hello.clientInfo.name
        self.client_version = hello.clientInfo.version_text
        catalog = self._gateway.resource_catalog
        catalog.listen(self.listener)
        can = capabilities_for_client(self._gateway, self.capabilities)
        if self.version == mcp_2025.LATEST:
            can = {**can, "tasks": CAPABILITY}
        instructions = self._gateway.instructions_for_models()
        return mcp_2025.initialize_result(request_id, hello, self._gateway.info, instructions, can)
