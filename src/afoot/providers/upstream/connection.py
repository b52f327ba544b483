"""`McpConnection` speaks MCP with one server: requests, their answers, and the server's own questions.

A `Transport` carries its messages. `negotiate` finds the version of MCP that a server is spoken to in: asked,
or pinned by the settings. `server/discover` is the first request of 2026-07-28, `initialize` that of 2025; a
server may know either, or both.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from math import inf
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, field
from msgspec.structs import replace

from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.reachable_clients import FOREIGN
from afoot.providers.upstream.transport.message_recording import MessageRecording
from afoot.providers.upstream.transport.server_log import MAX_READ_CHARS, ServerLog
from afoot.providers.upstream.transport.transport import (
    PendingRequest,
    Request,
    RequestListener,
    Transport,
    as_request_id,
)
from afoot.wire import mcp_2025, mcp_2026
from afoot.wire.client import incoming, outgoing
from afoot.wire.client import tasks as client_tasks
from afoot.wire.client.incoming import InputRequest, ReceivedLog, ServerDescription
from afoot.wire.client.outgoing import Dialect
from afoot.wire.client.tasks import ReceivedTask
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Envelope, Fault, Id

# A server that asks for roots so soon after the handshake most likely asks for itself, not for a call.
STARTUP_S: Final = 2.0
PROBE_S: Final = 5.0  # a server of 2025 may never answer a method that it does not know
HTTP_PROBE_FACTOR: Final = 3  # over HTTP, where the server may have to wake up first
MAX_ANSWERING: Final = 200  # requests of a server that wait for an answer; more are refused
MAX_VISITS: Final = 1000  # pages that a server may report as visited before anybody asks about them
# Requests that open a connection. They are never cancelled: the protocol forbids it.
OPENING_METHODS: Final = ("initialize", "server/discover")
# Requests during which a server may ask its client something, or send log messages for it.
ASKING_METHODS: Final = ("tools/call", "prompts/get", "resources/read", "completion/complete")

OnTask = Callable[[ReceivedTask | None], None]  # gets a state of a task; None: the connection is lost
OnNotification = Callable[[str, Raw], None]  # gets the method and its params
OnLog = Callable[[ReceivedLog], None]  # gets a log message that belongs to no request
ListRoots = Callable[[], Awaitable[list[Raw]]]

_log = logging.getLogger("afoot.upstream")


class FollowedTask(Struct, eq=False):
    """A task of the server that somebody follows: its questions go to `listener`, its states to `tell`."""

    listener: RequestListener
    tell: OnTask
    answer_tasks: set[asyncio.Task[None]] = field(default_factory=set)


class McpConnection:
    """A connection to one server in one version of MCP. It must be used on one event loop."""

    def __init__(
        self, transport: Transport, dialect: Dialect, server_log: ServerLog, on_notification: OnNotification
    ) -> None:
        self.transport = transport
        self.dialect = dialect
        self.server_log = server_log
        self.capabilities: dict[str, Any] = {}
        self.info: dict[str, Any] = {}
        self.instructions = ""
        self.is_shared = True  # whether all callers use it
        self.watch: Callable[[], None] = lambda: None  # called when a call begins to wait
        self.received = 0  # messages
        self.greeted_at = -inf  # when the handshake was done
        self.lost: str | None = None  # why it ended
        self.on_lost: Callable[[], None] = lambda: None
        self.on_log: OnLog | None = None
        self.list_roots: ListRoots | None = None  # answers a server that asks for roots outside requests
        self.has_asked_roots = False  # whether it did so
        self.log_level: str | None = None  # that the server was told
        self.answers = 0  # to calls and the like: a server without any has proved nothing
        self.list_changes = 0  # how often its tools have changed, or may have
        self.listed = -1  # `list_changes` as its tools were last read; -1: they must be read before a call
        self.listing: asyncio.Task[Exception | None] | None = None  # the last reading of its tools
        self.digests: dict[str, str] = {}  # of the definitions of its tools, as they were last read
        self.visits: dict[
            str, asyncio.Event
        ] = {}  # set when the page of an elicitation, by its id, was visited
        self._closing: asyncio.Task[None] | None = None
        self._on_notification = on_notification
        self._ids = count(1)
        self._last_id = 0
        self._pending: dict[int, PendingRequest] = {}
        self._answering: dict[Id, asyncio.Task[None]] = {}  # by the id of the server's request
        self.task_tools: set[str] = set()  # that were found to run only as tasks (2026-07-28)
        self._followed: dict[str, FollowedTask] = {}  # by the id of the task
        self._task_tokens: dict[int, RequestListener] = {}  # progress tokens that outlive their request
        self._recording: MessageRecording | None = None  # while a request is recorded

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._pending)

    @property
    def is_closed(self) -> bool:
        """Whether its transport is closed to the end."""
        return self._closing is not None and self._closing.done()

    @property
    def is_listed(self) -> bool:
        """Whether its tools were read, and nothing was heard since that they have changed."""
        return self.listed == self.list_changes

    async def request(self, request: Request) -> Raw:
        """Send a request and return its result; raises Fault for an error answer, RunnerDied, ToolError."""
        if self.lost is not None:
            raise RunnerDied(self.lost, began=False)
        self._last_id = next(self._ids)
        pending = PendingRequest(self._last_id, request, asyncio.get_running_loop().create_future())
        if request.method == "initialize":
            body = outgoing.initialize_request(pending.id, self.dialect)
        else:
            meta = {**request.meta, "progressToken": pending.id} if request.listener else request.meta
            body = outgoing.request(self.dialect, pending.id, request.method, request.params, meta)
        headers = self._headers(request) if self.transport.has_streams else {}
        self._pending[pending.id] = pending
        if request.record is not None:
            self._recording = self._recording or MessageRecording(self._pending)
            request.record("out", body)
        if request.listener is not None:
            self.watch()
        try:
            await self.transport.send_request(pending, body, headers)
            answer = pending.answer.result()
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                self._send_cancelled(pending, str(error) or "the caller stopped waiting")
            elif isinstance(error, RunnerDied):  # another one may answer at the same address by now
                self.listed = -1
            if pending.answer.done() and not pending.answer.cancelled():
                # retrieved, so that asyncio does not report it: nobody waits any more
                pending.answer.exception()
            raise
        finally:
            del self._pending[pending.id]
            if request.makes_task and request.listener is not None:
                self._task_tokens[pending.id] = request.listener
            for task in pending.answer_tasks:
                task.cancel()
            if self._recording is not None:
                self._end_recording(pending, self._recording)
            if self.lost is not None:
                self._close_if_unused()
        self.answers += request.method in ASKING_METHODS
        if answer.error and memoryview(answer.error) != b"null":
            raise incoming.read_error(answer.error)
        return answer.result

    @contextmanager
    def following_task(self, task: str, listener: RequestListener, tell: OnTask) -> Iterator[None]:
        """Give the messages about a task to its follower, until the block ends."""
        followed = self._followed[task] = FollowedTask(listener, tell)
        try:
            yield
        finally:
            self._followed.pop(task, None)
            for answering in followed.answer_tasks:
                answering.cancel()

    def forget_tokens(self, listener: RequestListener) -> None:
        """Take no more progress for the tasks of a listener."""
        for token in [token for token, one in self._task_tokens.items() if one is listener]:
            del self._task_tokens[token]

    def listeners(self) -> list[RequestListener]:
        """Return the makers of the requests that wait for an answer."""
        return [one.request.listener for one in self._pending.values() if one.request.listener is not None]

    def waiting_callers(self) -> set[str]:
        """Return the callers whose requests are being answered now."""
        found = (one.request.listener for one in self._that_may_ask())
        return {listener.caller if listener is not None else "" for listener in found}

    def tell(self, method: str) -> None:
        """Send a notification without params."""
        self._send(outgoing.notification(method))

    def use_dialect(self, dialect: Dialect) -> None:
        """Speak this version of the protocol from now on."""
        self.dialect = dialect
        self.transport.version = dialect.version

    def receive(self, line: bytes, stream: PendingRequest | None = None) -> None:
        """Handle a message that came, on the stream of a request if it has one. Never raises."""
        if not line or line.isspace():
            return
        if self._recording is not None:
            self._record(self._recording, line, stream)
        self.received += 1
        try:
            message = incoming.read_message(line)
            if message.method is UNSET:
                self._on_response(message, stream)
            elif message.id is not UNSET:
                self._on_request(message, stream)
            elif message.method == "notifications/progress":
                self._on_progress(message.params, stream)
            elif message.method == "notifications/message":
                self._on_log(message.params, stream)
            elif message.method == "notifications/cancelled":
                self._on_cancelled(message.params)
            elif message.method == "notifications/elicitation/complete":
                self._on_elicitation_complete(incoming.read_updated(message.params)[1])
            elif message.method in client_tasks.STATUS_NOTIFICATIONS:
                self._on_task(message.params)
            else:
                self._on_notification(message.method, message.params)
        except Fault:
            self.server_log.count_anomaly("garbage", line[:400].decode("utf-8", "replace"))
        except Exception:  # a fault of ours, which a server may cause again and again
            if self.server_log.count_anomaly("lost_message"):
                _log.exception("server %s: a message was lost", self.server_log.server)

    def _record(self, recording: MessageRecording, line: bytes, stream: PendingRequest | None) -> None:
        """Record a message. If that fails, it is handled all the same, and so are those behind it."""
        try:
            recording.incoming(line, stream)
        except Exception:
            if self.server_log.count_anomaly("not_recorded"):
                _log.exception("server %s: a message was not recorded", self.server_log.server)

    def mark_lost(self, reason: str, level: int = logging.WARNING) -> None:
        """End the connection because the server is gone; each request that waits for an answer fails.

        A request on a stream of its own (HTTP) lives as long as that stream.
        """
        if self.lost is not None:
            return
        self.lost = reason
        self.server_log.note(reason, level)
        if not self.transport.has_streams:
            for pending in self._pending.values():
                if not pending.answer.done():
                    pending.answer.set_exception(RunnerDied(reason))
        for task in tuple(self._answering.values()):
            task.cancel()
        for followed in tuple(self._followed.values()):
            followed.tell(None)
        self.on_lost()
        self._close_if_unused()

    async def close(self) -> None:
        """Close the connection; requests that wait for an answer fail."""
        self.on_lost = lambda: None
        self.mark_lost(f"the connection to server {self.server_log.server} was closed", logging.INFO)
        await self.transport.close()
        if self._closing is not None:
            await self._closing

    def _headers(self, request: Request) -> dict[str, str]:
        own = outgoing.request_headers(self.dialect, request.method, request.params)
        return {**own, **request.headers}

    def _end_recording(self, pending: PendingRequest, recording: MessageRecording) -> None:
        """Record no more for a request that is over, and nothing at all if it was the last one recorded."""
        recording.forget(pending)
        if all(one.request.record is None for one in self._pending.values()):
            self._recording = None

    def _close_if_unused(self) -> None:
        """Close the transport of a lost connection once the last request on it has ended."""
        if not self._pending and self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.transport.close())

    def _send_cancelled(self, pending: PendingRequest, why: str) -> None:
        """Tell the server that nobody waits. On 2026-07-28 over HTTP the closed stream says so."""
        is_closed = self.transport.has_streams and self.dialect.is_modern
        is_answered = pending.answer.done() and not pending.answer.cancelled()
        if is_closed or is_answered or pending.request.method in OPENING_METHODS or self.lost is not None:
            return
        self._send(outgoing.cancel_notification(pending.id, why))

    def _send(self, body: bytes) -> None:
        """Send a message that nobody waits for; a failure is only logged."""
        if self._recording is not None:
            self._recording.outgoing(body)
        try:
            self.transport.send(body)
        except (RunnerDied, ToolError) as error:
            self.server_log.note(f"a message was not sent: {error}")

    # Messages of the server, by their kind.

    def _on_response(self, message: Envelope, stream: PendingRequest | None) -> None:
        pending = self._pending.get(message.id) if type(message.id) is int else self._find_pending(message.id)
        if message.id is None and stream is not None:
            pending = stream  # an error that could not name its request, on that request's own stream
        if pending is None or (stream is not None and pending is not stream) or pending.answer.done():
            self.server_log.count_anomaly("stray_answer", f"to request {message.id}")
        elif not (message.result or message.error):
            self.server_log.count_anomaly("garbage", f"an answer to request {message.id} without a result")
        else:
            pending.answer.set_result(message)

    def _on_progress(self, params: Raw, stream: PendingRequest | None) -> None:
        told = incoming.read_progress(params)
        if told is None:
            self.server_log.count_anomaly("bad_progress", bytes(params)[:200].decode("utf-8", "replace"))
            return
        pending = self._pending.get(told.token) if type(told.token) is int else self._find_pending(told.token)
        kept = self._task_tokens.get(told.token) if isinstance(told.token, int) else None
        if pending is not None and pending.request.makes_task:
            kept = pending.request.listener  # also where the task has just been made
        if kept is not None:
            kept.progress(told)
        elif pending is None or pending.answer.done():
            is_old = isinstance(told.token, int) and told.token <= self._last_id
            kind = "late_progress" if is_old else "unknown_token"
            self.server_log.count_anomaly(kind, f"token {told.token}")
        elif stream is not None and pending is not stream:
            self.server_log.count_anomaly("foreign_progress", f"token {told.token}")
        elif pending.request.listener is not None:
            pending.request.listener.progress(told)

    def _on_log(self, params: Raw, stream: PendingRequest | None) -> None:
        """Give a log message to the request of its stream, or to the only one there is; else keep it here."""
        said = incoming.read_log(params)
        if said is None:
            self.server_log.count_anomaly("garbage", "a log message that is none")
            return
        followed = self._followed.get(client_tasks.related_task(params) or "")
        listener = stream.request.listener if stream else self._only_listener()
        listener = followed.listener if followed is not None else listener
        if listener is not None:
            listener.log(said)
        else:
            is_kept = self.server_log.add_line(f"[{said.level}] {said.text[:MAX_READ_CHARS]}")
            if is_kept and self.on_log is not None:
                self.on_log(said)

    def _on_task(self, params: Raw) -> None:
        """Give the state of a task to its follower; others are not known here any more."""
        task = client_tasks.read_task(params)
        if (followed := self._followed.get(task.id)) is not None:
            followed.tell(task)

    def _on_cancelled(self, params: Raw) -> None:
        """Stop answering a request that the server cancels; on 2026-07-28, end a subscription it closes."""
        named = incoming.read_cancelled(params)
        task = self._answering.pop(named, None) if named is not None else None
        pending = self._find_pending(named)
        if task is not None:
            task.cancel()
            return
        if pending is None or pending.answer.done():
            return
        if pending.request.method == "subscriptions/listen":
            pending.answer.set_exception(Fault(0, "the server ended the stream"))

    def _on_elicitation_complete(self, page: str | None) -> None:
        """Note that a page was visited.

        The news may come before the question, or for a page nobody waits for.
        """
        if page is None:
            return
        if len(page) > incoming.MAX_VISIT_CHARS:
            self.server_log.count_anomaly("bad_visit", f"an id of {len(page)} characters")
            return
        if page not in self.visits and len(self.visits) >= MAX_VISITS:
            old = next((one for one, event in self.visits.items() if event.is_set()), None)
            if old is None:
                return
            del self.visits[old]
        self.visits.setdefault(page, asyncio.Event()).set()

    def _on_request(self, message: Envelope, stream: PendingRequest | None) -> None:
        """Answer a request of the server in a task: ask the maker of the request that it belongs to.

        Raises Fault for a request that cannot be answered, because its id is null.
        """
        if not isinstance(message.id, int | str):
            raise Fault(INVALID_REQUEST, "id: must be a string or an integer, not null")
        if message.method == "ping":
            self._send(outgoing.result_response(message.id, {}))
            return
        if message.id in self._answering:
            self._send(outgoing.error_response(message.id, Fault(INVALID_REQUEST, "this id is still in use")))
            return
        if len(self._answering) >= MAX_ANSWERING:
            self.server_log.count_anomaly("too_many_requests", f"{MAX_ANSWERING} wait for an answer")
            text = f"{MAX_ANSWERING} requests of this server wait for an answer"
            self._send(outgoing.error_response(message.id, Fault(INTERNAL_ERROR, text)))
            return
        followed = self._followed.get(client_tasks.related_task(message.params) or "")
        if followed is not None:
            self._start_answering(message.id, self._answer_request(message, followed.listener, ""), followed)
            return
        pending, to = (stream, "") if stream is not None else self._find_asker()
        listener = pending.request.listener if pending is not None else None
        if message.method == "roots/list" and not self.dialect.is_modern:
            is_starting = stream is None and self._is_starting_up()
            if is_starting and (to or (listener is not None and listener.caller.startswith(FOREIGN))):
                listener = None  # the server would take the folders of one person for those of everybody
            if is_starting or listener is None:
                self.has_asked_roots = True
                self._start_answering(message.id, self._answer_roots(message, listener), pending)
                return
        if pending is None or listener is None or self.dialect.is_modern:
            if pending is not None and message.method != "roots/list":
                pending.request.was_asked = True
            self._refuse_request(message)
            return
        self._start_answering(message.id, self._answer_request(message, listener, to), pending)

    def _start_answering(
        self, request_id: Id, work: Coroutine[Any, Any, None], pending: PendingRequest | FollowedTask | None
    ) -> None:
        """Answer a request of the server, for no longer than the request of ours that it is about."""
        task = self._answering[request_id] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(partial(self._forget_answering, request_id))
        if pending is not None:
            pending.answer_tasks.add(task)
            task.add_done_callback(pending.answer_tasks.discard)

    def _forget_answering(self, request_id: Id, task: asyncio.Task[None]) -> None:
        """Free the id of a request, also where its task was cancelled before its first step."""
        if self._answering.get(request_id) is task:
            del self._answering[request_id]

    async def _answer_request(self, message: Envelope, listener: RequestListener, to: str) -> None:
        assert isinstance(message.id, int | str)
        try:
            asked = outgoing.read_question(
                InputRequest(str(message.method), message.params), listener.key(), to
            )
            answer = await listener.ask(asked)
            body = outgoing.result_response(message.id, outgoing.answer_result(asked, answer))
        except ToolError as error:
            body = outgoing.error_response(message.id, outgoing.unanswerable_fault(error))
        except Fault as fault:
            body = outgoing.error_response(message.id, fault)
        except asyncio.CancelledError:
            if self._answering.pop(message.id, None) is None or self.lost is not None:
                raise  # the server itself cancelled it, or is gone
            self._send(outgoing.error_response(message.id, Fault(-32800, "the call is over")))
            raise
        self._answering.pop(message.id, None)
        self._send(body)

    async def _answer_roots(self, message: Envelope, listener: RequestListener | None) -> None:
        """Answer a request for roots that belongs to no request of ours, or not for certain.

        The clients that are connected are asked first. If none has roots, the call that waits is asked: a
        client of 2026-07-28 has no connection outside its calls.
        """
        assert isinstance(message.id, int | str)
        result: object = {"roots": []}
        try:
            roots = await self.list_roots() if self.list_roots is not None else []
            result = {"roots": roots}
            if not roots and listener is not None:
                asked = outgoing.read_question(InputRequest("roots/list", message.params), listener.key(), "")
                result = outgoing.answer_result(asked, await listener.ask(asked))
        except (ToolError, Fault):
            pass  # the caller has none either
        finally:
            if self._answering.pop(message.id, None) is not None and self.lost is None:
                self._send(outgoing.result_response(message.id, result))

    def _refuse_request(self, message: Envelope) -> None:
        """Refuse a request for which there is nobody to ask. This is the only place that does so upstream."""
        assert isinstance(message.id, int | str)
        self.server_log.count_anomaly("unexpected_request", str(message.method))
        if not (self.transport.has_streams and self.dialect.is_modern):
            self._send(outgoing.error_response(message.id, Fault(METHOD_NOT_FOUND, "there is nobody to ask")))

    def _is_starting_up(self) -> bool:
        return self.is_shared and asyncio.get_running_loop().time() - self.greeted_at < STARTUP_S

    def _find_pending(self, named: object) -> PendingRequest | None:
        """Return a request of ours by its id, which some servers give back as a text."""
        number = as_request_id(named)
        return None if number is None else self._pending.get(number)

    def _only_listener(self) -> RequestListener | None:
        """Return the maker of the only request that may ask or log, None if there are several."""
        found = self._that_may_ask()
        return found[0].request.listener if len(found) == 1 else None

    def _find_asker(self) -> tuple[PendingRequest | None, str]:
        """Return the request that a question without a stream most likely belongs to, and who may answer it.

        The newest request is taken. Where requests of several callers wait, the operator is asked: the
        question may be about the data of another caller.
        """
        found = self._that_may_ask()
        callers = {one.request.listener.caller if one.request.listener else None for one in found}
        return (found[-1] if found else None), "" if len(callers) == 1 else "operator"

    def _that_may_ask(self) -> list[PendingRequest]:
        sent = self._pending.values()
        return [one for one in sent if one.request.listener or one.request.method in ASKING_METHODS]


async def negotiate(connection: McpConnection, era: str, probe_s: float = PROBE_S) -> None:
    """Agree on a version and learn the server's capabilities; raises Fault, ToolError, RunnerDied."""
    if era == outgoing.VERSION_2026:
        found = await _discover_supported(connection)
        if found is None:
            raise ToolError.unavailable(f"server {connection.server_log.server} does not speak {era}")
        _apply_greeting(connection, found, outgoing.VERSION_2026)
    elif era in mcp_2025.VERSIONS:
        await _finish_handshake(connection, await _initialize(connection, era))
    elif connection.transport.has_streams:
        await _negotiate_over_http(connection, HTTP_PROBE_FACTOR * probe_s)
    else:
        await _negotiate_over_pipe(connection, probe_s)


async def _negotiate_over_http(connection: McpConnection, probe_s: float) -> None:
    """Ask one after the other: over HTTP a request that was given up leaves no trace.

    A handshake without a session has no way back to the client, so it gains nothing over 2026-07-28.
    """
    greeting, refusal = None, None
    try:
        async with asyncio.timeout(probe_s):
            greeting = await _initialize(connection, outgoing.VERSION_2025)
    except TimeoutError:
        pass
    except (Fault, ToolError) as error:
        if isinstance(error, ToolError) and error.category == "auth":
            raise
        refusal = error
    if greeting is not None and connection.transport.has_session:
        await _finish_handshake(connection, greeting)
        return
    found = await _probe(connection)
    if found is not None:
        _apply_greeting(connection, found, outgoing.VERSION_2026)
    elif refusal is not None:
        raise refusal
    else:
        await _finish_handshake(connection, greeting or await _initialize(connection, outgoing.VERSION_2025))


async def _negotiate_over_pipe(connection: McpConnection, probe_s: float) -> None:
    """Ask for the handshake, and for 2026-07-28 as well if that is refused or stays without an answer.

    The order matters: a server that speaks both may keep to the era of the first request.
    """
    hello = _start_task(_initialize(connection, outgoing.VERSION_2025))
    probe: asyncio.Task[ServerDescription | None] | None = None
    try:
        await asyncio.wait({hello}, timeout=probe_s)
        if not hello.done() or hello.exception() is not None:
            probe = _start_task(_probe(connection))
            await asyncio.wait({probe, hello} if not hello.done() else {probe}, return_when="FIRST_COMPLETED")
        if probe is not None and probe.done() and (found := probe.result()) is not None:
            _apply_greeting(connection, found, outgoing.VERSION_2026)
        else:
            await _finish_handshake(connection, await hello)
    finally:
        hello.cancel()
        if probe is not None:
            probe.cancel()


async def _probe(connection: McpConnection) -> ServerDescription | None:
    """Ask whether the server speaks 2026-07-28; None for all but a clear yes. Raises if it needs a login."""
    try:
        return await _discover_supported(connection)
    except Fault as fault:
        supported = _supported_versions(fault)
        if supported and not supported & {*mcp_2025.VERSIONS, outgoing.VERSION_2026}:
            raise
    except ToolError as error:
        if error.category == "auth":
            raise
    return None


async def _discover_supported(connection: McpConnection) -> ServerDescription | None:
    """Ask for 2026-07-28, once more if the server refuses that version and then lists it as supported."""
    try:
        return await _discover(connection)
    except Fault as fault:
        if outgoing.VERSION_2026 not in _supported_versions(fault):
            raise
    return await _discover(connection)


def _supported_versions(fault: Fault) -> set[str]:
    """The versions that a server names when it refuses one."""
    if fault.code != mcp_2026.UNSUPPORTED_VERSION or not isinstance(fault.data, dict):
        return set()
    return {str(version) for version in fault.data.get("supported") or ()}


async def _discover(connection: McpConnection) -> ServerDescription | None:
    connection.use_dialect(replace(connection.dialect, version=outgoing.VERSION_2026))
    found = incoming.read_server_description(await connection.request(Request("server/discover")))
    return found if found is not None and outgoing.VERSION_2026 in found.versions else None


async def _initialize(connection: McpConnection, version: str) -> ServerDescription:
    connection.use_dialect(replace(connection.dialect, version=version))
    found = incoming.read_server_description(await connection.request(Request("initialize")))
    if found is None or found.version not in mcp_2025.VERSIONS:
        spoken = found.version if found else "nothing that could be read"
        raise ToolError.unavailable(
            f"server {connection.server_log.server} answered initialize with {spoken!r}"
        )
    return found


async def _finish_handshake(connection: McpConnection, found: ServerDescription) -> None:
    _apply_greeting(connection, found, found.version)
    await connection.transport.tell(outgoing.notification("notifications/initialized"))
    connection.transport.listen()


def _apply_greeting(connection: McpConnection, found: ServerDescription, version: str) -> None:
    connection.use_dialect(replace(connection.dialect, version=version))
    connection.greeted_at = asyncio.get_running_loop().time()
    connection.capabilities = found.capabilities
    connection.info = found.server
    connection.instructions = found.instructions or ""


def _start_task(work: "Coroutine[Any, Any, Any]") -> "asyncio.Task[Any]":
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_retrieve_exception)
    return task


def _retrieve_exception(task: "asyncio.Task[Any]") -> None:
    with suppress(asyncio.CancelledError):
        task.exception()
