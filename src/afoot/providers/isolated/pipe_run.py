"""A run whose engine is in another process: reports go over the pipe, answers come back by number."""

import asyncio
from itertools import count
from typing import Final

from msgspec import Raw

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.core.ports import Report, Tapes
from afoot.errors import CallerError, ToolError
from afoot.providers.hygiene import line, number, plain_text
from afoot.providers.isolated.frames import (
    Alive,
    Ask,
    Begin,
    Cancel,
    Frame,
    Invoke,
    Line,
    Read,
    Reply,
    Told,
    Trouble,
    Withdraw,
    frame,
)

_SAID: Final = 40_000  # characters: more than is kept, as it is cut once more when it has no secrets
ROOM: Final = 256 * 1024  # bytes that wait for the gateway; beyond them only the newest reading waits


class Pipe:
    """The way to the gateway. It never waits: when it is full, a reading replaces the one before (P5)."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._ready: list[bytes] = []
        self._held: Read | None = None
        self.is_full = False

    def read(self, reading: Read) -> None:
        """Send a reading, now or as the newest once there is room."""
        if self.is_full:
            self._held = reading
        else:
            self.send(reading)

    def send(self, said: Frame) -> None:
        """Send anything, after what was said before. All of one pass of the loop leaves together."""
        if not self._ready:
            self._loop.call_soon(self.flush)
        if self._held is not None:
            self._ready.append(frame(self._held))
            self._held = None
        self._ready.append(frame(said))

    def flush(self) -> None:
        """Write what is ready."""
        if self._ready and not self._transport.is_closing():
            self._transport.write(b"".join(self._ready))
        self._ready.clear()

    def emptied(self) -> None:
        """There is room again."""
        self.is_full = False
        if self._held is not None:
            held, self._held = self._held, None
            self.send(held)


class PipeRun:
    """One attempt of one call, as its provider in the child sees it (`core.ports.Run`)."""

    def __init__(self, begin: Begin, pipe: Pipe) -> None:
        self.id = begin.id
        self.attempt = begin.attempt
        self.caller = begin.caller
        self.resumed_from = begin.resumed_from
        self.cancelled: str | None = None
        self.trace: dict[str, str] = {}
        self.tapes: Tapes | None = None  # the wires are the gateway's
        self._limit = begin.message_limit
        self._pipe = pipe
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self.is_over = False

    def report(self, progress: float | None, total: float | None, message: str | None) -> None:
        if not self.is_over:
            self._pipe.read(Read(progress, total, message))

    def relayed(self, progress: object, total: object, message: object) -> None:
        """A report of a process that the tool started; nobody has looked at it yet."""
        self.report(number(progress), number(total), line(message, self._limit))

    def content(self, report: Report) -> None:
        parts = (_whole(part) for part in (report.data, report.partial, report.checkpoint))
        try:
            self._say(Told(report.progress, report.total, report.message, *parts))
        except ToolError as error:
            self.log(f"a report was dropped: {error}", "warning", "afoot")

    def alive(self) -> None:
        if not self._pipe.is_full:
            self._say(Alive())

    def log(self, text: str, level: str, logger: str) -> None:
        self._say(Line(text, level, logger))

    async def ask(self, question: Question) -> Answer:
        """The answer; raises ToolError."""
        number = next(self._numbers)
        reply = await self._reply(number, Ask(number, question))
        assert reply.answer is not None
        return reply.answer

    async def call(self, tool: str, arguments: Raw, weight: float) -> Result:
        """The result of a call below; raises CallerError, ToolError."""
        number = next(self._numbers)
        reply = await self._reply(number, Invoke(number, tool, arguments, weight))
        assert reply.result is not None
        return reply.result

    def budget(self) -> tuple[float | None, float]:
        """Its clocks are in the gateway."""
        return None, float("inf")

    def waiting(self, message: str | None) -> None:
        """Only upstreams say this."""

    def hindered(self, by: str, hint: str) -> None:
        """Only tabs say this."""

    def spent(self, cpu_s: float) -> None:
        """What the child has used is known from the child."""

    def hear(self, said: Cancel | Reply) -> None:
        """From the gateway."""
        if isinstance(said, Cancel):
            self.cancelled = said.reason
        elif (waiting := self._waiting.pop(said.number, None)) is not None and not waiting.done():
            waiting.set_result(said)

    async def _reply(self, number: int, said: Frame) -> Reply:
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._say(said)
        try:
            reply = await waiting
        except asyncio.CancelledError:
            self._waiting.pop(number, None)
            self._say(Withdraw(number))
            raise
        if reply.trouble is not None:
            raise raised(reply.trouble)
        return reply

    def _say(self, said: Frame) -> None:
        if not self.is_over:
            self._pipe.send(said)


def raised(trouble: Trouble) -> Exception:
    """What was raised on the other side."""
    if trouble.kind == "CallerError":
        return CallerError(trouble.message)
    return ToolError(
        trouble.message,
        trouble.category,
        code=trouble.code,
        retryable=trouble.retryable,
        retry_after=trouble.retry_after,
    )


def troubled(error: BaseException) -> Trouble:
    """What was raised here, for the other side; whatever an author put into it, it can be sent."""
    if isinstance(error, ToolError):
        words = _text(error.message), _text(error.category), _text(error.code)
        return Trouble(*words, error.retryable is True, number(error.retry_after))
    kind = "CallerError" if isinstance(error, CallerError) else type(error).__name__
    return Trouble(_text(error), kind=kind)


def whole(result: Result) -> Result:
    """A result that can be encoded: an empty value is left out only if it is the one that means nothing."""
    return Result(result.content, _whole(result.structured), result.is_error)


def _whole(raw: Raw) -> Raw:
    return raw if bytes(raw) else NOTHING


def _text(value: object) -> str:
    try:
        return plain_text(str(value)[:_SAID])
    except Exception:  # a type of the author's own may raise anything
        return "it cannot be said what"
