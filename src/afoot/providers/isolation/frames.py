"""`encode_frame` and `FrameDecoder` write and read messages of gateway, fork server and child processes.

A message is a struct as JSON. A frame is `MAGIC`, the length of the message in four bytes, and the message.
"""

import signal
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.core.ports import CallOrigin
from afoot.errors import ToolError

MAGIC: Final = b"\xaf\x00\x1f\xfa"  # nothing that a program prints looks like it
HEADER_BYTES: Final = len(MAGIC) + 4
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
END_SIGNAL: Final = signal.SIGUSR1  # ends the reaper when the gateway cannot reach the fork server
_T = TypeVar("_T")
_encode = msgspec.json.Encoder().encode


class InvalidFrame(Exception):
    """The bytes are no frame. Nothing more can be read from this sender."""


class ForkServerConfig(Struct, frozen=True):
    """The configuration of a fork server. It is written to the reaper's stdin when that is started."""

    address: str  # of the gateway's socket
    secret: str
    gateway: int  # its pid
    nice: int
    spare: int


class IpcMessage(Struct, frozen=True, omit_defaults=True):
    """The options that all messages share."""


class ResourceLimits(IpcMessage, frozen=True):
    """The resources that one call may use; 0 means no limit."""

    cpu_s: float = 0
    memory_bytes: int = 0
    open_files: int = 0
    processes: int = 0


class ToolSource(IpcMessage, frozen=True):
    """The place of a function: a file, or a module that can be imported."""

    module: str
    file: str = ""


class RemoteError(IpcMessage, frozen=True):
    """An exception on its way over the pipe; `kind` is its class where it is not one of afoot's own."""

    message: str
    category: str = "internal"
    code: str = "internal"
    retryable: bool = False
    retry_after: float | None = None
    kind: str = ""
    trace: str = ""


# From a child to the gateway.


class ChildReady(IpcMessage, frozen=True, tag="hello"):
    """A child has loaded its module, or `error` says why not. `secret` is the one of its fork server."""

    secret: str
    child: int
    error: str = ""
    has_lifespan: bool = False  # it must be told before it ends, so that it can close it


class ProgressReading(IpcMessage, frozen=True, tag="r"):
    """A reading: progress, total, message. Its names are short because it is by far the most frequent."""

    p: int | float | None = None
    t: int | float | None = None
    m: str | None = None


class ContentReport(IpcMessage, frozen=True, tag="told"):
    """A report with content. An int stays an int."""

    progress: int | float | None = None
    total: int | float | None = None
    message: str | None = None
    data: Raw = NOTHING
    partial: Raw = NOTHING
    checkpoint: Raw = NOTHING


class Heartbeat(IpcMessage, frozen=True, tag="alive"):
    """The call lives, without having advanced."""


class ResourceChanged(IpcMessage, frozen=True, tag="changed"):
    """A resource of the gateway has changed."""

    uri: str


class LogMessage(IpcMessage, frozen=True, tag="line"):
    """A line for the call's history."""

    text: str
    level: str = "info"
    logger: str = ""


class AskQuestion(IpcMessage, frozen=True, tag="ask"):
    """A question; the `RequestReply` with this number answers it."""

    number: int
    question: Question
    place: int = 0  # how many of its key the function asked before, where a next owner may ask for it again


class InvokeTool(IpcMessage, frozen=True, tag="invoke"):
    """A call of another tool below this call; the `RequestReply` with this number has its result."""

    number: int
    tool: str
    arguments: Raw
    weight: float = 1.0


class WithdrawRequest(IpcMessage, frozen=True, tag="withdraw"):
    """The tool waits no longer for the reply with this number."""

    number: int


class CallDone(IpcMessage, frozen=True, tag="done"):
    """The call is over. `left` says that it left processes, threads or changed limits behind."""

    result: Result | None = None
    trouble: RemoteError | None = None
    cpu_s: float = 0
    left: bool = False


# From the gateway to a child.


class RunCall(IpcMessage, frozen=True, tag="begin"):
    """Run a call."""

    tool: str
    arguments: Raw
    id: str
    attempt: int = 1
    caller: str = ""
    resumed_from: Raw = NOTHING
    message_limit: int = 1000
    limits: ResourceLimits = ResourceLimits()
    origin: CallOrigin = CallOrigin()


class EndChild(IpcMessage, frozen=True, tag="end"):
    """Close the lifespan, and exit: no more calls will come."""


class CancelCall(IpcMessage, frozen=True, tag="cancel"):
    """Cancel the call that runs."""

    reason: str


class RequestReply(IpcMessage, frozen=True, tag="reply"):
    """The answer, the result or the error of the request with this number."""

    number: int
    answer: Answer | None = None
    result: Result | None = None
    trouble: RemoteError | None = None


# From the gateway to its fork server.


class ForkChild(IpcMessage, frozen=True, tag="fork"):
    """Fork a child that loads this source."""

    child: int
    source: ToolSource


class WatchCall(IpcMessage, frozen=True, tag="watch"):
    """A call begins in this child: enforce its limits."""

    child: int
    limits: ResourceLimits


class FlushOutput(IpcMessage, frozen=True, tag="settle"):
    """A call is over in this child: send the rest of its output, and enforce no limits any more."""

    child: int


class SignalChild(IpcMessage, frozen=True, tag="signal"):
    """Send a signal to this child and to all processes below it."""

    child: int
    number: int


# From the fork server to the gateway.


class ForkServerReady(IpcMessage, frozen=True, tag="up"):
    """The fork server is ready."""

    secret: str


class OutputLines(IpcMessage, frozen=True, tag="said"):
    """Lines that a child, or a process below it, wrote to stdout or stderr."""

    child: int
    stream: str
    lines: list[str]


class CpuUsage(IpcMessage, frozen=True, tag="used"):
    """Processor time of the call so far."""

    child: int
    cpu_s: float


class OutputComplete(IpcMessage, frozen=True, tag="settled"):
    """All output of the call has been sent. `worn`: the child should serve no other call."""

    child: int
    worn: bool = False


class ChildExit(IpcMessage, frozen=True, tag="died"):
    """A child has ended, with all processes below it. `why`: the limit that it was killed for, or a cause."""

    child: int
    code: int  # exit code; negative: the signal that ended it
    cpu_s: float = 0
    why: str = ""
    peak_bytes: int = 0


FromChild = (
    ChildReady
    | ProgressReading
    | ContentReport
    | Heartbeat
    | ResourceChanged
    | LogMessage
    | AskQuestion
    | InvokeTool
    | WithdrawRequest
    | CallDone
)
ToChild = RunCall | CancelCall | RequestReply | EndChild
ToForkServer = ForkChild | WatchCall | FlushOutput | SignalChild
FromForkServer = ForkServerReady | OutputLines | CpuUsage | OutputComplete | ChildExit


def encode_frame(message: IpcMessage) -> bytes:
    """A message as a frame; raises ToolError if it is longer than `MAX_FRAME_BYTES`."""
    body = _encode(message)
    if len(body) > MAX_FRAME_BYTES:
        text = (
            f"{len(body)} bytes cannot pass between the gateway and a child process, "
            f"which takes {MAX_FRAME_BYTES}"
        )
        raise ToolError.internal(text, code="too_large")
    return MAGIC + len(body).to_bytes(4) + body


class FrameDecoder(Generic[_T]):
    """Bytes in, messages out; raises InvalidFrame for bytes that are no frame, or one that is too long."""

    __slots__ = ("_buffer", "_decoder", "_max_bytes")

    def __init__(self, kind: object, max_bytes: int) -> None:
        self._decoder: msgspec.json.Decoder[_T] = msgspec.json.Decoder(kind)
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def expect(self, kind: object) -> None:
        """Decode the frames that follow as messages of this type."""
        self._decoder = msgspec.json.Decoder(kind)

    def feed(self, data: bytes) -> Iterator[_T]:
        """The messages that are complete with these bytes."""
        buffer = self._buffer
        buffer += data
        at = 0
        try:
            while len(buffer) - at >= HEADER_BYTES:
                size = int.from_bytes(buffer[at + len(MAGIC) : at + HEADER_BYTES])
                if not buffer.startswith(MAGIC, at) or size > self._max_bytes:
                    raise InvalidFrame("no frame begins here")
                end = at + HEADER_BYTES + size
                if len(buffer) < end:
                    break
                body = bytes(buffer[at + HEADER_BYTES : end])
                at = end
                try:
                    yield self._decoder.decode(body)
                except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                    raise InvalidFrame(str(error)) from None
        finally:
            del buffer[:at]


def report_address(address: str, child: int) -> str:
    """The path of the datagram socket on which a child receives reports of its tools' own processes."""
    return f"{address}.{child}"
