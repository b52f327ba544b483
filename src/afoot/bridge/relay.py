"""`Relay` carries messages between one client on a pipe and the gateway, also across a change of gateways.

`ClientQuestions` gives each question of a gateway an id of its own, so no answer meets another question.
`BridgeSubscription` makes the streams of several gateways look like one to the client.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from msgspec import Raw, Struct, UnsetType, field, json

from afoot.bridge.connection import GatewayConnection
from afoot.bridge.discovery import RECONNECT_S, GatewayFinder, NoGateway, PersistentConnection
from afoot.bridge.http import BrokenConnection, GatewayResponse, Unreachable
from afoot.bridge.initialize_cache import cached_answer, store_answer
from afoot.bridge.pending import BridgeRequest
from afoot.bridge.session_2025 import BridgeSession2025
from afoot.bridge.stdio import LineTooLong, read_line
from afoot.errors import CallerError
from afoot.wire import jsonrpc, mcp_2025, mcp_2026
from afoot.wire.jsonrpc import ENVELOPE_DECODER, INVALID_REQUEST, PARSE_ERROR, Envelope, Fault, Id
from afoot.wire.mcp_2026 import listen_notification
from afoot.wire.results import encode, error_response

LISTEN = "subscriptions/listen"

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
PARTING_S = 1.0  # how long calls may continue after the end of the input
MAX_TRIES = 4
CONNECT_S = 0.05  # how long `initialize` waits for the connection to a gateway that seems to run
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Relay:
    """One client, from its first line to its last."""

    def __init__(self, finder: GatewayFinder, wire: Wire, limit: int) -> None:
        self._gateway = PersistentConnection(finder, self._on_new_gateway)
        self._reader, self._writer = wire
        self._limit = limit
        self._session = BridgeSession2025()
        self._questions = ClientQuestions()
        self._renewing = asyncio.Lock()
        self._session_stream: asyncio.Task[None] | None = None
        self._modern: bool | None = None  # decided by the first request
        self._open: dict[Id, BridgeRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = asyncio.Event()  # set when the client has closed its end
        self._finder = finder

    async def run(self, stop: asyncio.Event) -> None:
        """Carry messages until the client closes its end, or until `stop`; raises CallerError."""
        ends = [asyncio.create_task(wait()) for wait in (stop.wait, self._left.wait)]
        first_gateway = asyncio.create_task(self._gateway.get())
        reading = asyncio.create_task(self._read(first_gateway))
        await asyncio.wait([reading, *ends], return_when=asyncio.FIRST_COMPLETED)
        for task in (*ends, first_gateway):
            task.cancel()
        await self._close(is_patient=reading.done() and not self._left.is_set())
        if not reading.cancel():
            await reading

    async def _read(self, first_gateway: "asyncio.Task[GatewayConnection]") -> None:
        """Read until the input ends; raises CallerError if there is no gateway and none can be started.

        Reading does not wait for the first gateway: a host wants the answer to `initialize` at once.
        """
        lines = asyncio.create_task(self._read_lines())
        try:
            await asyncio.wait([lines, first_gateway], return_when=asyncio.FIRST_COMPLETED)
            await first_gateway  # requests of an input that has ended wait for it too
            await lines
        finally:
            lines.cancel()

    async def _read_lines(self) -> None:
        while True:
            try:
                text = await read_line(self._reader)
            except LineTooLong:
                fault = Fault(PARSE_ERROR, f"line over {self._limit} bytes (raise max_body_bytes)")
                await self._write([error_response(fault)])
                continue
            if text is None:
                return
            if text.strip():
                await self._take(text.strip())

    async def _take(self, text: bytes) -> None:
        try:
            message = jsonrpc.read(text)
            if not message.is_request:
                self._take_notification(text, message)
                return
            pending = BridgeRequest(text, message, modern=self._choose_era(message))
        except Fault as fault:
            await self._write([error_response(fault)])
            return
        if not pending.modern:
            self._session.remember(text, message)
        if pending.method == "initialize" and (answer := await self._initialize_without_gateway(message)):
            await self._write([answer])
            return
        self._open[pending.id] = pending
        pending.task = self._spawn(self._answer(pending))
        pending.task.add_done_callback(lambda _: self._open.pop(pending.id))
        if pending.method == "initialize":  # clients may send the next line before its answer
            await asyncio.wait([pending.task])

    def _choose_era(self, message: Envelope) -> bool:
        """Whether a request is of 2026-07-28; the first request decides for all later ones. Raises Fault."""
        assert isinstance(message.id, int | str)
        modern = message.method != "initialize" and mcp_2026.is_modern(bytes(message.params))
        if self._modern is None:
            self._modern = modern
        try:
            if message.id in self._open:
                raise Fault(INVALID_REQUEST, f"id: {message.id!r} is the id of a request that still runs")
            if self._modern and message.method == "initialize":
                raise mcp_2026.unsupported_version(mcp_2025.read_initialize(message).protocolVersion)
            if modern and not self._modern:
                text = "this connection began with initialize; it speaks the handshake era"
                raise Fault(INVALID_REQUEST, text)
        except Fault as fault:
            fault.id = message.id
            raise
        return self._modern

    async def _initialize_without_gateway(self, message: Envelope) -> bytes | None:
        """The answer to `initialize` if no gateway can be reached at once; None if one can be asked."""
        assert isinstance(message.id, int | str)
        if self._finder.at:
            return None
        if not self._finder.is_cold():  # its process lives, or one that has its number after a crash
            await self._gateway.wait_for(CONNECT_S)
        if self._gateway.connection is not None:
            return None
        try:
            hello = mcp_2025.read_initialize(message)
        except Fault:
            return None  # the gateway says what is wrong with it
        self._session.open_without_gateway(hello.version)
        return cached_answer(message.id, hello, self._finder.config, self._finder.version)

    def _take_notification(self, text: bytes, message: Envelope) -> None:
        """Handle a notification, or the answer to a question; neither is answered."""
        cancelled = None
        if message.method == "notifications/cancelled":
            with suppress(Fault):
                cancelled = self._open.get(mcp_2025.read_cancelled(message).requestId or "")
        if cancelled is not None:
            cancelled.is_cancelled = True
        if message.is_response:
            answer = self._questions.answered(message, self._session.id)
            if answer is not None:
                self._spawn(self._forward(answer, None))
        elif not self._modern:
            self._spawn(self._forward(text, cancelled))
        elif cancelled is not None and cancelled.task is not None:
            cancelled.task.cancel()  # closing its connection is the cancel (X1)

    async def _forward(self, text: bytes, cancelled: BridgeRequest | None) -> None:
        connection = self._gateway.connection
        with suppress(Unreachable, BrokenConnection):
            if connection is not None and self._session.id:
                (await self._session.post(connection, text)).close()
        # Before its first frame the request may still arrive after its cancel. Closing its connection cancels
        # it in any case.
        if cancelled is not None and cancelled.task is not None and not cancelled.is_streaming:
            cancelled.task.cancel()

    async def _answer(self, pending: BridgeRequest) -> None:
        """Forward a request, and answer it here if the gateway could not."""
        is_listening = pending.modern and pending.method == LISTEN
        try:
            if is_listening:
                await self._listen(pending)
            else:
                await self._forward_request(pending)
            if not pending.is_over:
                raise BrokenConnection("the stream ended")
        except CallerError as why:
            await self._write([] if pending.is_cancelled else [pending.unreached(str(why))])
        except BrokenConnection:
            await self._write([] if pending.is_over else [*self._questions.lost(pending.id), pending.lost()])

    async def _forward_request(self, pending: BridgeRequest) -> None:
        """Send a request and pass on its frames; raises CallerError, BrokenConnection."""
        for _ in range(MAX_TRIES):
            connection, session = await self._gateway.get(), self._session.id
            try:
                answer = await self._send(connection, pending)
            except Unreachable:  # nothing was sent
                self._gateway.drop(connection)
                continue
            except BrokenConnection:
                if not pending.is_safe:
                    raise
                await asyncio.sleep(RECONNECT_S)
                continue
            try:
                if not pending.modern and answer.status == 404 and self._session.is_open:
                    await self._renew(connection, session)
                    continue
                await self._pass_on(answer, pending, session)
                return
            finally:
                answer.close()
        raise NoGateway("the gateway comes and goes; see gateway.log in the state folder")

    async def _send(self, connection: GatewayConnection, pending: BridgeRequest) -> GatewayResponse:
        if pending.modern:
            return await connection.post(pending.line, method=pending.method, name=pending.name)
        return await self._session.post(connection, pending.line)

    async def _pass_on(self, answer: GatewayResponse, pending: BridgeRequest, session: str) -> None:
        kind = answer.headers.get("content-type", "")
        if answer.status >= 500 and not kind.startswith("application/json"):
            await self._write([pending.failed(answer.status)])
            return
        async for frames in answer.messages():
            shown = pending.pass_on(frames)
            if not pending.modern:
                shown = self._questions.show(shown, session, pending.id)
            if pending.method == "initialize" and pending.last is not None and pending.last.result:
                self._session.accept(answer, pending.last.result)
                self._store_initialize_answer()
                self._restart_session_stream()
            await self._write(shown)

    async def _listen(self, pending: BridgeRequest) -> None:
        """A subscription, repeated to every new gateway; raises CallerError."""
        await self._gateway.get()
        subscription = BridgeSubscription(pending)
        while not subscription.is_over:
            connection = await self._gateway.wait()
            with suppress(Unreachable, BrokenConnection):
                answer = await self._send(connection, pending)
                try:
                    async for frames in answer.messages():
                        await self._write(subscription.show(frames))
                finally:
                    answer.close()
            if not subscription.is_over:
                await asyncio.sleep(RECONNECT_S)

    async def _on_new_gateway(self, connection: GatewayConnection) -> None:
        """Open the client's session at a new gateway; raises Unreachable, BrokenConnection."""
        if self._session.is_open:
            self._spawn(self._write(await self._session.renew(connection)))
            self._store_initialize_answer()
            self._restart_session_stream()

    def _store_initialize_answer(self) -> None:
        if not self._finder.at:
            finder, session = self._finder, self._session
            store_answer(session.initialize_result, session.version, finder.config, finder.version)

    async def _renew(self, connection: GatewayConnection, old: str) -> None:
        """Open a session again that the gateway has forgotten, unless another request has done so."""
        async with self._renewing:
            if self._session.id == old:
                self._spawn(self._write(await self._session.renew(connection)))
                self._restart_session_stream()

    def _restart_session_stream(self) -> None:
        """Read the stream of the new session, and no longer that of the old one."""
        if self._session_stream is not None:
            self._session_stream.cancel()
        self._session_stream = self._spawn(self._read_session_stream())

    async def _read_session_stream(self) -> None:
        while True:
            connection = await self._gateway.wait()
            with suppress(Unreachable, BrokenConnection):
                answer = await self._session.listen(connection)
                try:
                    if answer.status == 200:
                        async for frames in answer.messages():
                            await self._write(frames)
                finally:
                    answer.close()
            await asyncio.sleep(RECONNECT_S)

    async def _write(self, frames: list[bytes]) -> None:
        """Write lines, and wait while the pipe is full: no more than this is held back."""
        if not frames:
            return
        try:
            self._writer.write(b"".join([frame + b"\n" for frame in frames]))
            await self._writer.drain()
        except OSError:
            self._left.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _close(self, *, is_patient: bool) -> None:
        """End with the client: its open requests end too (X1)."""
        open_now = [pending.task for pending in self._open.values() if pending.method != LISTEN]
        waited = [task for task in open_now if task is not None]
        if waited and is_patient:  # a client that piped its requests in may still read the answers
            await asyncio.wait(waited, timeout=PARTING_S)
        if self._session.is_open and self._gateway.connection is not None:
            with suppress(Unreachable, BrokenConnection, TimeoutError):
                async with asyncio.timeout(PARTING_S):
                    await self._session.end(self._gateway.connection)
        self._gateway.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class ClientQuestions:
    """The questions that the client has not answered. Every session numbers its questions from one."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenQuestion] = {}
        self._number = 0

    def show(self, frames: list[bytes], session: str, request: Id) -> list[bytes]:
        """The frames of a request, with questions and their withdrawals under ids of the bridge."""
        return [self._shown(frame, session, request) for frame in frames]

    def answered(self, message: Envelope, session: str) -> bytes | None:
        """The client's answer under the gateway's id; None if the session that asked is gone."""
        asked = self._open.pop(message.id, None) if isinstance(message.id, str) else None
        if asked is None or asked.session != session:
            return None
        key, value = ("result", message.result) if message.result else ("error", message.error)
        return encode({"jsonrpc": "2.0", "id": asked.id, key: Raw(value)})

    def lost(self, request: Id) -> list[bytes]:
        """Withdraw the questions of a request whose gateway has died."""
        names = [name for name, asked in self._open.items() if asked.request == request]
        for name in names:
            del self._open[name]
        return [mcp_2025.cancel_notification(name, "its gateway died") for name in names]

    def _shown(self, frame: bytes, session: str, request: Id) -> bytes:
        message = ENVELOPE_DECODER.decode(frame)
        if message.method == "notifications/cancelled":
            return self._withdrawn(frame, message, session)
        if isinstance(message.method, UnsetType) or not isinstance(message.id, int | str):
            return frame
        self._number += 1
        name = f"afoot-connect-{self._number}"
        self._open[name] = _OpenQuestion(message.id, session, request)
        return encode({"jsonrpc": "2.0", "id": name, "method": message.method, "params": message.params})

    def _withdrawn(self, frame: bytes, message: Envelope, session: str) -> bytes:
        try:
            cancelled = mcp_2025.read_cancelled(message)
        except Fault:
            return frame
        for name, asked in self._open.items():
            if (asked.id, asked.session) == (cancelled.requestId, session):
                del self._open[name]
                return mcp_2025.cancel_notification(name, cancelled.reason)
        return frame


class BridgeSubscription:
    """One subscription of 2026-07-28 that outlives its gateway; `is_over` when a gateway refused it."""

    def __init__(self, pending: BridgeRequest) -> None:
        self._pending = pending
        self._is_known = False  # whether the client has the acknowledgement
        self.is_over = False

    def show(self, frames: list[bytes]) -> list[bytes]:
        """The frames that the client is to see."""
        pending = self._pending
        shown = pending.pass_on(frames)
        if pending.last is not None:
            self.is_over = bool(pending.last.error)
            if not self.is_over:  # this gateway is closing; the next one gets the same subscription
                shown.pop()
                pending.last = None
        if shown and not self._is_known:
            self._is_known = True
            return shown
        return [line for frame in shown for line in self._show_again(frame)]

    def _show_again(self, frame: bytes) -> list[bytes]:
        """A second acknowledgement becomes notifications that anything may have changed meanwhile."""
        message = ENVELOPE_DECODER.decode(frame)
        if message.method != ACKNOWLEDGED:
            return [frame]
        try:
            return list(
                _change_notifications(
                    self._pending.id, json.decode(message.params, type=_AcknowledgedParams).notifications
                )
            )
        except ValueError:
            return []


class _OpenQuestion(Struct, frozen=True):
    id: Id  # the gateway's id
    session: str
    request: Id  # the client's request that it belongs to


class _AcknowledgedFilter(Struct):
    tools: bool = field(name="toolsListChanged", default=False)
    prompts: bool = field(name="promptsListChanged", default=False)
    resources: bool = field(name="resourcesListChanged", default=False)
    uris: list[str] = field(name="resourceSubscriptions", default_factory=list)


class _AcknowledgedParams(Struct):
    notifications: _AcknowledgedFilter


def _change_notifications(request: Id, wanted: _AcknowledgedFilter) -> list[bytes]:
    kinds = [kind for kind in ("tools", "prompts", "resources") if getattr(wanted, kind)]
    lists = [listen_notification(f"notifications/{kind}/list_changed", request) for kind in kinds]
    return lists + [
        listen_notification("notifications/resources/updated", request, uri=uri) for uri in wanted.uris
    ]
