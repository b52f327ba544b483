"""`WorkerRun` is a run (`core.ports.Run`) in a child process; its engine is in the gateway.

Reports go to the gateway over a `GatewayPipe`; answers come back by number.
"""

import asyncio
from itertools import count
from typing import Final, Protocol

from msgspec import Raw

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.core.ports import MessageLog, Report
from afoot.errors import CallerError, ToolError
from afoot.providers.content import clean_line, finite_number, without_surrogates
from afoot.providers.isolation.frames import (
    AskQuestion,
    CancelCall,
    ContentReport,
    Heartbeat,
    InvokeTool,
    IpcMessage,
    LogMessage,
    ProgressReading,
    RemoteError,
    RequestReply,
    ResourceChanged,
    RunCall,
    WithdrawRequest,
    encode_frame,
)

PIPE_BUFFER_BYTES: Final = 256 * 1024  # may wait for the gateway; beyond them only the newest reading waits
_MAX_TEXT: Final = 40_000  # characters, more than are kept: the gateway cuts again after it removed secrets


class RunPipe(Protocol):
    """The way from a run in another process to its gateway. It never waits."""

    @property
    def is_full(self) -> bool:
        """Whether only the newest reading is kept, and no heartbeat."""
        ...

    def send_reading(self, reading: ProgressReading) -> None: ...

    def send(self, message: IpcMessage) -> None: ...


class GatewayPipe:
    """The child's pipe to the gateway. It never waits: a full pipe keeps only the newest reading (P5)."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._frames: list[bytes] = []
        self._newest: ProgressReading | None = None
        self.is_full = False

    def send_reading(self, reading: ProgressReading) -> None:
        """Send a reading, now or as the newest once there is room."""
        if self.is_full:
            self._newest = reading
        else:
            self.send(reading)

    def send(self, message: IpcMessage) -> None:
        """Send a message, after all earlier ones. Messages of one pass of the loop are written together."""
        if not self._frames:
            self._loop.call_soon(self.flush)
        if self._newest is not None:
            self._frames.append(encode_frame(self._newest))
            self._newest = None
        self._frames.append(encode_frame(message))

    def flush(self) -> None:
        """Write the messages of this pass now."""
        if self._frames and not self._transport.is_closing():
            self._transport.write(b"".join(self._frames))
        self._frames.clear()

    def on_room(self) -> None:
        """The pipe has room again: send the reading that waited."""
        self.is_full = False
        reading = self._newest
        if reading is not None:
            self._newest = None
            self.send(reading)


class WorkerRun:
    """One attempt of one call, as its provider in the child sees it."""

    def __init__(self, message: RunCall, pipe: RunPipe) -> None:
        self.id = message.id
        self.attempt = message.attempt
        self.caller = message.caller
        self.origin = message.origin
        self.resumed_from = message.resumed_from
        self.more = NOTHING  # for tools of other servers alone
        self.cancelled: str | None = None
        self.trace: dict[str, str] = {}
        self.wire_log: MessageLog | None = None  # connections to upstreams are the gateway's
        self.is_over = False
        self._message_limit = message.message_limit
        self._pipe = pipe
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[RequestReply]] = {}

    def report(self, progress: float | None, total: float | None, message: str | None) -> None:
        if not self.is_over:
            self._pipe.send_reading(ProgressReading(progress, total, message))

    def report_unchecked(self, progress: object, total: object, message: object) -> None:
        """Report values that come from a process that the tool started, and may be of any type."""
        self.report(finite_number(progress), finite_number(total), clean_line(message, self._message_limit))

    def content(self, report: Report) -> None:
        message = ContentReport(
            report.progress,
            report.total,
            report.message,
            _encodable(report.data),
            _encodable(report.partial),
            _encodable(report.checkpoint),
        )
        try:
            self._send(message)
        except ToolError as error:
            self.log(f"a report was dropped: {error}", "warning", "afoot")

    def alive(self) -> None:
        if not self._pipe.is_full:
            self._send(Heartbeat())

    def log(self, text: str, level: str, logger: str, more: Raw = NOTHING) -> None:
        self._send(LogMessage(text, level, logger))

    async def ask(self, question: Question) -> Answer:
        """Ask the gateway, and return the answer; raises ToolError."""
        number = next(self._numbers)
        reply = await self._request(number, AskQuestion(number, question))
        assert reply.answer is not None
        return reply.answer

    async def call(self, tool: str, arguments: Raw, weight: float, key: str = "") -> Result:
        """The result of a call below this one; raises CallerError, ToolError."""
        number = next(self._numbers)
        reply = await self._request(number, InvokeTool(number, tool, arguments, weight))
        assert reply.result is not None
        return reply.result

    def budget(self) -> tuple[float | None, float]:
        """No budget here: the deadlines of the call are kept in the gateway."""
        return None, float("inf")

    def waiting(self, message: str | None) -> None:
        """Does nothing: only upstreams report this."""

    def hindered(self, by: str, hint: str) -> None:
        """Does nothing: only browser tabs report this."""

    def holds_loop(self) -> None:
        """Does nothing: the loop here is the child's own."""

    def resource_changed(self, uri: str) -> None:
        self._send(ResourceChanged(uri))

    def spent(self, cpu_s: float) -> None:
        """Does nothing: the fork server measures the processor time."""

    def receive(self, message: CancelCall | RequestReply) -> None:
        """Take a message of the gateway."""
        if isinstance(message, CancelCall):
            self.cancelled = message.reason
            return
        waiting = self._waiting.pop(message.number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def _request(self, number: int, message: IpcMessage) -> RequestReply:
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send(message)
        try:
            reply = await waiting
        except asyncio.CancelledError:
            self._waiting.pop(number, None)
            self._send(WithdrawRequest(number))
            raise
        if reply.trouble is not None:
            raise to_exception(reply.trouble)
        return reply

    def _send(self, message: IpcMessage) -> None:
        if not self.is_over:
            self._pipe.send(message)


def to_exception(error: RemoteError) -> Exception:
    """The exception for an error that was raised in the other process."""
    if error.kind == "CallerError":
        return CallerError(error.message)
    return ToolError(
        error.message,
        error.category,
        code=error.code,
        retryable=error.retryable,
        retry_after=error.retry_after,
    )


def to_remote_error(error: BaseException) -> RemoteError:
    """An exception for the other process. It can be encoded, whatever its author put into it."""
    if isinstance(error, ToolError):
        return RemoteError(
            _safe_text(error.message),
            _safe_text(error.category),
            _safe_text(error.code),
            error.retryable is True,
            finite_number(error.retry_after),
        )
    kind = "CallerError" if isinstance(error, CallerError) else type(error).__name__
    return RemoteError(_safe_text(error), kind=kind)


def encodable_result(result: Result) -> Result:
    """The same result, in a form that msgspec can encode."""
    return Result(result.content, _encodable(result.structured), result.is_error)


def _encodable(raw: Raw) -> Raw:
    """`NOTHING` for any empty value: an encoder omits a default only where it is the identical object."""
    return raw if bytes(raw) else NOTHING


def _safe_text(value: object) -> str:
    try:
        return without_surrogates(str(value)[:_MAX_TEXT])
    except Exception:  # a type of the author's own may raise anything
        return "it cannot be said what"
