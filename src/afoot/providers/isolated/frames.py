"""What a gateway, its keeper and its children say to each other: structs as JSON, each behind its length."""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.errors import ToolError

MARK: Final = b"\xaf\x00\x1f\xfa"  # how every frame begins: nothing that is printed looks like it
HEAD: Final = len(MARK) + 4  # and its length
MOST: Final = 64 * 1024 * 1024  # bytes of one frame
_T = TypeVar("_T")
_encode = msgspec.json.Encoder().encode


class Garbage(Exception):
    """What came is no frame: whoever sent it cannot be listened to any more."""


class Frame(Struct, frozen=True, omit_defaults=True):
    """What all frames have in common."""


class Limits(Frame, frozen=True):
    """What one call may use; 0 means no limit."""

    cpu_s: float = 0
    memory_bytes: int = 0
    open_files: int = 0
    processes: int = 0


class Source(Frame, frozen=True):
    """Where a function is to be found: in a file, or in a module that can be imported."""

    module: str
    file: str = ""


class Trouble(Frame, frozen=True):
    """Something that was raised, on its way over the pipe; `kind` is its class where it is none of ours."""

    message: str
    category: str = "internal"
    code: str = "internal"
    retryable: bool = False
    retry_after: float | None = None
    kind: str = ""
    trace: str = ""


# From a child to the gateway.


class Hello(Frame, frozen=True, tag="hello"):
    """A child has loaded its module, or could not; `secret` is what its keeper was given."""

    secret: str
    child: int
    error: str = ""


class Read(Frame, frozen=True, tag="r"):
    """A reading."""

    p: int | float | None = None
    t: int | float | None = None
    m: str | None = None


class Told(Frame, frozen=True, tag="told"):
    """A report with content. A whole number stays one."""

    progress: int | float | None = None
    total: int | float | None = None
    message: str | None = None
    data: Raw = NOTHING
    partial: Raw = NOTHING
    checkpoint: Raw = NOTHING


class Alive(Frame, frozen=True, tag="alive"):
    """A heartbeat."""


class Line(Frame, frozen=True, tag="line"):
    """A line for the history."""

    text: str
    level: str = "info"
    logger: str = ""


class Ask(Frame, frozen=True, tag="ask"):
    """A question; its answer comes under this number."""

    number: int
    question: Question


class Invoke(Frame, frozen=True, tag="invoke"):
    """A tool is called below; its result comes under this number."""

    number: int
    tool: str
    arguments: Raw
    weight: float = 1.0


class Withdraw(Frame, frozen=True, tag="withdraw"):
    """Nobody waits for this number any more."""

    number: int


class Done(Frame, frozen=True, tag="done"):
    """The call is over. `left` says that it left processes behind."""

    result: Result | None = None
    trouble: Trouble | None = None
    cpu_s: float = 0
    left: bool = False


# From the gateway to a child.


class Begin(Frame, frozen=True, tag="begin"):
    """Run a call."""

    tool: str
    arguments: Raw
    id: str
    attempt: int = 1
    caller: str = ""
    resumed_from: Raw = NOTHING
    message_limit: int = 1000
    limits: Limits = Limits()


class Cancel(Frame, frozen=True, tag="cancel"):
    """The call should stop."""

    reason: str


class Reply(Frame, frozen=True, tag="reply"):
    """What was asked or called for under this number."""

    number: int
    answer: Answer | None = None
    result: Result | None = None
    trouble: Trouble | None = None


# From the gateway to its keeper.


class Fork(Frame, frozen=True, tag="fork"):
    """Start a child that loads this."""

    child: int
    source: Source


class Watch(Frame, frozen=True, tag="watch"):
    """A call begins in this child: watch what it uses."""

    child: int
    limits: Limits


class Settle(Frame, frozen=True, tag="settle"):
    """A call is over in this child: say what it printed, and watch no more."""

    child: int


class Signal(Frame, frozen=True, tag="signal"):
    """Send a signal to this child and to all that it started."""

    child: int
    number: int


# From the keeper to the gateway.


class Up(Frame, frozen=True, tag="up"):
    """The keeper is there."""

    secret: str


class Said(Frame, frozen=True, tag="said"):
    """Lines that a child, or what it started, wrote to stdout or stderr."""

    child: int
    stream: str
    lines: list[str]


class Used(Frame, frozen=True, tag="used"):
    """Processor time of the call so far."""

    child: int
    cpu_s: float


class Settled(Frame, frozen=True, tag="settled"):
    """All that the call had printed was said. `worn`: the child should serve no other."""

    child: int
    worn: bool = False


class Died(Frame, frozen=True, tag="died"):
    """A child is gone with all that it started. `why`: the limit it was killed for, or what is known."""

    child: int
    code: int  # of its exit; negative: the signal that ended it
    cpu_s: float = 0
    why: str = ""
    peak_bytes: int = 0  # the most memory it had


FromChild = Hello | Read | Told | Alive | Line | Ask | Invoke | Withdraw | Done
ToChild = Begin | Cancel | Reply
ToKeeper = Fork | Watch | Settle | Signal
FromKeeper = Up | Said | Used | Settled | Died


def frame(said: Frame) -> bytes:
    """A frame as bytes; raises ToolError if it is longer than it may be."""
    body = _encode(said)
    if len(body) > MOST:
        text = f"{len(body)} bytes cannot pass between the gateway and a child process, which takes {MOST}"
        raise ToolError.internal(text, code="too_large")
    return MARK + len(body).to_bytes(4) + body


class Frames(Generic[_T]):
    """Bytes in, frames out; raises Garbage for what is none, or is longer than it may be."""

    __slots__ = ("_buffer", "_decode", "_most")

    def __init__(self, kind: object, most: int) -> None:
        self._decode: msgspec.json.Decoder[_T] = msgspec.json.Decoder(kind)
        self._most = most
        self._buffer = bytearray()

    def expect(self, kind: object) -> None:
        """From the next one on these are the frames."""
        self._decode = msgspec.json.Decoder(kind)

    def feed(self, data: bytes) -> Iterator[_T]:
        """The frames that are whole by now."""
        buffer = self._buffer
        buffer += data
        at = 0
        try:
            while len(buffer) - at >= HEAD:
                size = int.from_bytes(buffer[at + len(MARK) : at + HEAD])
                if not buffer.startswith(MARK, at) or size > self._most:
                    raise Garbage("no frame begins here")
                end = at + HEAD + size
                if len(buffer) < end:
                    break
                body = bytes(buffer[at + HEAD : end])
                at = end
                try:
                    yield self._decode.decode(body)
                except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                    raise Garbage(str(error)) from None
        finally:
            del buffer[:at]
