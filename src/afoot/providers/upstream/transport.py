"""`Transport` is the port to one server's messages; `transport_stdio`, `_http` and `_inprocess` implement it.

`ServerLog` keeps what a server did that no call asked for: lines on stderr and anomalies, counted by kind.
`MessageRecording` writes the messages of a call to the wire log while that is on (V4).
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import UNSET, Struct, field

from afoot.core.facts import Answer, Question
from afoot.core.rate_limit import RateLimit
from afoot.providers.content import clean_line
from afoot.wire.client import incoming
from afoot.wire.client.incoming import ReceivedLog, ReceivedProgress
from afoot.wire.jsonrpc import Envelope, Fault, Id

MAX_ID_DIGITS: Final = 20  # of an id of ours that comes back as a text
SLICE_S: Final = 0.002  # of handling what one server says before all others have their turn
LOG_LINES: Final = 1000  # of one server that are kept
LOG_BYTES: Final = 256 * 1024  # of these lines together
LOG_LINE_CHARS: Final = 2000
MAX_READ_CHARS: Final = 16 * 1024  # of a line in which secrets are looked for; the rest is dropped
LOG_BURST: Final = 40  # lines that a server may write at once
LOG_LINES_PER_S: Final = 100  # and then in a second; more are left out, and counted where they would stand
LAST_LINES: Final = 100  # of those left out in which the last words are looked for
ANOMALIES_LOGGED: Final = 20  # of each kind; more are only counted

RecordMessage = Callable[[str, bytes], None]  # gets "in" or "out", and the message
OnLost = Callable[[str], None]  # gets the reason

_log = logging.getLogger("afoot.upstream")


class RequestListener(Protocol):
    """The maker of a request. It hears progress and logs of that request, and answers questions about it."""

    @property
    def caller(self) -> str: ...

    def key(self) -> str:
        """Return a name for the next question."""
        ...

    def progress(self, told: ReceivedProgress) -> None: ...

    def log(self, said: ReceivedLog) -> None: ...

    def hindered(self, by: str, hint: str) -> None:
        """Hear what stops the server, and what to do about it; both empty: nothing does any more."""
        ...

    def ask(self, question: Question) -> Awaitable[Answer]: ...


class Request(Struct):
    """A request to a server, before it has an id."""

    method: str
    params: Mapping[str, Any] = {}
    listener: RequestListener | None = None
    meta: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    was_asked: bool = False  # whether the server asked something about it, and nobody could be asked
    makes_task: bool = False  # it asks for a task (2025-11-25), whose progress comes behind the answer
    record: RecordMessage | None = None  # writes its messages to the wire log, where that is on


class PendingRequest(Struct, eq=False):
    """A request that was sent, until its answer is here."""

    id: int
    request: Request
    answer: asyncio.Future[Envelope]
    answer_tasks: set[asyncio.Task[None]] = field(
        default_factory=set
    )  # each answers a question of the server


Receive = Callable[[bytes, PendingRequest | None], None]


class Transport(Protocol):
    """Carries messages to one server.

    `receive` gets each message that comes back, and the request of its stream.
    """

    @property
    def version(self) -> str:
        """The version of the protocol, once it is known."""
        ...

    @version.setter
    def version(self, version: str) -> None: ...

    @property
    def has_streams(self) -> bool:
        """Whether each request has a stream of its own, whose end cancels it on 2026-07-28."""
        ...

    @property
    def has_session(self) -> bool:
        """Whether the server knows this client between requests, and can ask it something (handshake era)."""
        ...

    @property
    def pid(self) -> int | None: ...

    async def open(self, receive: Receive, lost: OnLost) -> None:
        """Start the server or prepare the way to it; raises ToolError. `lost` is called once if it dies."""
        ...

    async def send_request(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a request and wait until it is answered; raises RunnerDied, ToolError.

        Only a transport with streams reads `headers`.
        """
        ...

    async def tell(self, body: bytes) -> None:
        """Send a message that has no answer, and wait until the server has it."""
        ...

    def send(self, body: bytes) -> None:
        """Send a message that has no answer, without waiting."""
        ...

    def listen(self) -> None:
        """Start to read messages that belong to no request: the handshake is done."""
        ...

    async def close(self) -> None: ...


class ServerLog:
    """The last log lines of one server, and how often it broke the protocol, by kind."""

    def __init__(self, server: str, clean: Callable[[str], str] = str) -> None:
        self.server = server
        self.logs: deque[tuple[float, str]] = deque()
        self.counted: dict[str, int] = {}
        self._clean = clean  # takes secrets out (S4)
        self._bytes = 0  # of the lines that are kept
        self._last_line = ""  # as the server wrote it
        self._rate = RateLimit(LOG_BURST, LOG_LINES_PER_S)
        self._left_out = 0  # lines since the last one that was kept

    @property
    def last_words(self) -> str:
        """The last line of the server's own."""
        return clean_line(self._clean(self._last_line), LOG_LINE_CHARS) or ""

    def add_line(self, text: str) -> bool:
        """Keep a line of the server's own: from stderr, or a log message that belongs to no call.

        False if it was left out, because the server writes too many: taking secrets out of each would
        keep all others waiting.
        """
        text = text[:MAX_READ_CHARS]
        if text and not text.isspace():
            self._last_line = text
        now = time.time()
        if not self._rate.take(now):
            self._left_out += 1
            return False
        if self._left_out:
            self._keep(now, f"afoot: {self._left_out} lines were left out")
            self._left_out = 0
        if cleaned := clean_line(self._clean(text), LOG_LINE_CHARS):
            self._keep(now, cleaned)
        return True

    def add_lines(self, lines: Sequence[bytes]) -> None:
        """Keep lines that came together. After the first one that is left out, the others are only counted.

        A read of 256 KB can hold 130,000 lines: handled one by one they would take 200 ms.
        """
        for number, line in enumerate(lines, 1):
            if not self.add_line(line.decode("utf-8", "replace")):
                self._left_out += len(lines) - number
                last = next((one for one in reversed(lines[-LAST_LINES:]) if one.strip()), b"")
                self._last_line = last.decode("utf-8", "replace") or self._last_line
                break

    def note(self, text: str, level: int = logging.INFO) -> None:
        """Keep a line of ours about the server, and write it to the gateway's log."""
        said = clean_line(self._clean(text[:MAX_READ_CHARS]), LOG_LINE_CHARS) or ""
        self._keep(time.time(), f"afoot: {said}")
        _log.log(level, "server %s: %s", self.server, said)

    def _keep(self, now: float, line: str) -> None:
        """Keep a line; the oldest go where there are too many, or too large ones."""
        self.logs.append((now, line))
        self._bytes += len(line)
        while len(self.logs) > LOG_LINES or self._bytes > LOG_BYTES:
            self._bytes -= len(self.logs.popleft()[1])

    def count_anomaly(self, kind: str, text: str = "") -> bool:
        """Count a message that was dropped or repaired; returns whether it is one of the first of its kind.

        Those are logged, too.
        """
        count = self.counted[kind] = self.counted.get(kind, 0) + 1
        if count > ANOMALIES_LOGGED:
            return False
        shown = f": {clean_line(text, 200)}" if text else ""
        self.note(f"{kind.replace('_', ' ')} (number {count}){shown}", logging.WARNING)
        return True


class MessageRecording:
    """Records the messages of each request that has `record`, among the pending ones of a connection (V4).

    A connection has one only while such a request is pending, as each message is read once more for it.
    """

    def __init__(self, pending: Mapping[int, PendingRequest]) -> None:
        self._pending = pending
        # By the id of a request of the server: the request of ours that it belongs to.
        self._questions: dict[Id, PendingRequest] = {}

    def incoming(self, line: bytes, stream: PendingRequest | None) -> None:
        """Record a message of the server if it belongs to a request that is recorded."""
        try:
            message = incoming.read_message(line)
        except Fault:  # garbage, which belongs to no request
            return
        pending = stream or self._find_pending(message)
        if pending is None or pending.request.record is None:
            return
        pending.request.record("in", line)
        if message.method is not UNSET and isinstance(message.id, int | str):
            self._questions[message.id] = pending

    def outgoing(self, body: bytes) -> None:
        """Record a message of ours if it answers a request of the server that was recorded."""
        if not self._questions:
            return
        message = incoming.read_message(body)
        if message.method is UNSET and isinstance(message.id, int | str):
            pending = self._questions.pop(message.id, None)
            if pending is not None and pending.request.record is not None:
                pending.request.record("out", body)

    def forget(self, pending: PendingRequest) -> None:
        """Forget the server's questions about a request that is over."""
        self._questions = {id: one for id, one in self._questions.items() if one is not pending}

    def _find_pending(self, message: Envelope) -> PendingRequest | None:
        """Return the request that a message names, or the only one there is if it names none."""
        named = message.id if message.method is UNSET else _progress_token(message)
        if named is None and len(self._pending) == 1:
            return next(iter(self._pending.values()))
        number = as_request_id(named)
        return None if number is None else self._pending.get(number)


def as_request_id(named: object) -> int | None:
    """Return the id of a request of ours, which some servers give back as a text; None if it cannot be one.

    A number of over 4,300 digits would raise ValueError.
    """
    if isinstance(named, str) and len(named) <= MAX_ID_DIGITS and named.isascii() and named.isdigit():
        return int(named)
    return named if isinstance(named, int) else None


def _progress_token(message: Envelope) -> object:
    if message.method != "notifications/progress":
        return None
    told = incoming.read_progress(message.params)
    return None if told is None else told.token
