"""`Transport` is the port to one server's messages; `http`, `stdio` and `inprocess` implement it.

`Request` is a request to a server, `PendingRequest` one that was sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct, field

from afoot.core.facts import Answer, Question
from afoot.wire.client.incoming import ReceivedLog, ReceivedProgress
from afoot.wire.jsonrpc import Envelope

MAX_ID_DIGITS: Final = 20  # of an id of ours that comes back as a text
SLICE_S: Final = 0.002  # of handling what one server says before all others have their turn

RecordMessage = Callable[[str, bytes], None]  # gets "in" or "out", and the message
OnLost = Callable[[str], None]  # gets the reason


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


def as_request_id(named: object) -> int | None:
    """Return the id of a request of ours, which some servers give back as a text; None if it cannot be one.

    A number of over 4,300 digits would raise ValueError.
    """
    if isinstance(named, str) and len(named) <= MAX_ID_DIGITS and named.isascii() and named.isdigit():
        return int(named)
    return named if isinstance(named, int) else None
