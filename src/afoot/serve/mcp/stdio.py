"""`StdioServer` serves MCP over stdin and stdout: one client, a line a message; tools print to stderr."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from afoot.bridge.stdio import LineTooLong, read_line
from afoot.core.ports import CallOrigin
from afoot.errors import AfootError
from afoot.serve.access.guard import STDIO_CALLER
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import ONE_WRITE_BYTES
from afoot.serve.mcp.era_2025 import Era2025
from afoot.serve.mcp.era_2026 import Era2026, relay_changes
from afoot.serve.mcp.pending import PendingRequests
from afoot.wire import jsonrpc, mcp_2025, mcp_2026, results
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, Envelope, Fault

CALLER = STDIO_CALLER
# The one at the other end has started this process: whatever the process may do, it may do itself.
STDIO_ORIGIN = CallOrigin("mcp-stdio", is_owner=True)
AFTER_EOF_S = 1.0  # how long calls may go on after the end of the input

log = logging.getLogger("afoot.serve")


class StdioStream:
    """The way back to the client: the pipe that all requests share."""

    __slots__ = ("_stuck_s", "_writer", "gone", "origin", "streaming")

    def __init__(self, writer: asyncio.StreamWriter, stuck_s: float) -> None:
        self._writer = writer
        self._stuck_s = stuck_s
        self.gone = False
        self.streaming = True
        self.origin = STDIO_ORIGIN

    def watch(self, wake: Callable[[], object]) -> None:
        """Do nothing: `StdioServer` reads the pipe, and sees its end."""

    async def send(self, frames: Sequence[bytes]) -> None:
        """Write frames as lines, waiting while the pipe is full."""
        self._writer.write(b"".join([frame + b"\n" for frame in frames]))
        transport = self._writer.transport
        # So little never waits, and needs no timeout: that would cost more than the rest of this.
        if transport.get_write_buffer_size() <= ONE_WRITE_BYTES and not transport.is_closing():
            return
        try:
            async with asyncio.timeout(self._stuck_s):
                await self._writer.drain()
        except (TimeoutError, ConnectionError):
            self.gone = True

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Write the last frames of a request."""
        if not self.gone and (frames or last is not None):
            await self.send([*frames] if last is None else [*frames, last])

    async def keep_alive(self) -> None:
        """Do nothing: a pipe needs no keepalive."""


class StdioServer:
    """The one connection of a process that was started by its client."""

    def __init__(
        self, gateway: GatewayState, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._gateway = gateway
        self._reader = reader
        self._stream = StdioStream(writer, gateway.settings.stuck_s)
        self._era: Era2025 | Era2026 | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._relay: asyncio.Task[None] | None = None  # tells a client of the handshake era of changes

    async def run(self) -> None:
        """Serve until the client closes its end."""
        while not self._stream.gone:
            try:
                text = await read_line(self._reader)
            except LineTooLong:
                await self._refuse_long_line()
                continue
            if text is None:
                break
            if text.strip():
                await self._take_line(text)
        if self._tasks and not self._stream.gone:  # whoever pipes requests in may still read their answers
            await asyncio.wait(self._tasks, timeout=AFTER_EOF_S)
        if self._relay is not None:
            self._relay.cancel()
        if self._era is not None:
            self._era.close("the client closed its end")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._gateway.settings.cancel_grace_s)

    async def _take_line(self, text: bytes) -> None:
        try:
            message = jsonrpc.read(text)
            if not message.is_request:
                self._take_without_answer(message)
                return
            task = asyncio.create_task(self._answer(self._choose_era(message), message))
        except Fault as fault:
            await self._stream.send([results.error_response(fault)])
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if message.method == "initialize":
            await task
        else:
            await asyncio.sleep(0)  # it begins now, so that a cancel right behind it finds it

    def _take_without_answer(self, message: Envelope) -> None:
        """Take a notification or a response; these get no answer, so a wrong one is dropped."""
        if self._era is None:
            self._gateway.count("messages before the first request")
            return
        try:
            if message.is_response:
                self._era.take_response(message)
            else:
                self._era.take_notification(message)
        except Fault:
            pass
        except Exception:  # else it would be the end of everybody's requests
            log.exception("a message without an id failed")
        if message.method == "notifications/initialized" and isinstance(self._era, Era2025):
            self._tell_of_changes(self._era)

    def _tell_of_changes(self, era: Era2025) -> None:
        """Tell this client of the handshake era of changes from now on."""
        if self._relay is None:
            stream = era.task_watch.over(self._stream)
            work = relay_changes(self._gateway, era.listener, stream, mcp_2025.changed_notification)
            self._relay = asyncio.create_task(work)

    def _choose_era(self, message: Envelope) -> Era2025 | Era2026:
        """Choose the era of the whole connection by its first request; raises Fault for another era later."""
        is_modern = message.method != "initialize" and mcp_2026.is_modern(bytes(message.params))
        try:
            if self._era is None and is_modern:
                self._era = Era2026(PendingRequests(self._gateway), CALLER)
            elif self._era is None:
                self._era = Era2025(self._gateway, CALLER, dies=True)
            elif is_modern and isinstance(self._era, Era2025):
                raise Fault(
                    INVALID_REQUEST, "this connection began with initialize; it speaks the handshake era"
                )
            elif message.method == "initialize" and isinstance(self._era, Era2026):
                raise mcp_2026.unsupported_version(mcp_2025.read_initialize(message).protocolVersion)
        except Fault as fault:
            fault.id = message.id if isinstance(message.id, int | str) else None
            raise
        return self._era

    async def _answer(self, era: Era2025 | Era2026, message: Envelope) -> None:
        assert isinstance(message.id, int | str)
        try:
            await era.request(message, self._stream)
        except Fault as fault:
            await self._stream.send([results.error_response(fault, message.id)])
        except Exception as error:  # else its client would wait for ever
            log.exception("request %s failed", message.id)
            text = str(error) if isinstance(error, AfootError) else "the gateway failed; its log says more"
            await self._stream.send([results.error_response(Fault(INTERNAL_ERROR, text), message.id)])

    async def _refuse_long_line(self) -> None:
        """Say that a line was dropped because it is too long."""
        limit = self._gateway.settings.max_body_bytes
        fault = Fault(PARSE_ERROR, f"line over {limit} bytes (raise max_body_bytes)")
        await self._stream.send([results.error_response(fault)])
