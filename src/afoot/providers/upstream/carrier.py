"""What carries messages to a server and back, as a Protocol; and a request while it is on its way."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from afoot.core.facts import Answer, Question
from afoot.wire.client_reading import Said, Told
from afoot.wire.jsonrpc import Envelope

Tape = Callable[[str, bytes], bool]  # takes down what went out or came in; it is there, so True


class Listener(Protocol):
    """Who made a request, and hears what belongs to it."""

    @property
    def caller(self) -> str: ...

    def key(self) -> str:
        """A name for the next question."""
        ...

    def progress(self, told: Told) -> None: ...

    def log(self, said: Said) -> None: ...

    def ask(self, question: Question) -> Awaitable[Answer]: ...


class Order(Struct):
    """A request to make."""

    method: str
    params: Mapping[str, Any] = {}
    listener: Listener | None = None
    meta: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    tape: "Tape | None" = None


class Exchange:
    """A request on its way, until its answer is there."""

    __slots__ = ("answer", "asking", "id", "listener", "method", "tape")

    def __init__(self, id: int, order: Order) -> None:
        self.id = id
        self.method = order.method
        self.listener, self.tape = order.listener, order.tape
        self.answer: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self.asking: set[asyncio.Task[None]] = set()  # questions of the server's that belong to it

    def close(self) -> None:
        """Nobody waits for it any more."""
        for task in self.asking:
            task.cancel()
        if self.answer.done() and not self.answer.cancelled():
            self.answer.exception()  # looked at: whoever waited is gone


Receive = Callable[[bytes, Exchange | None], None]
Lost = Callable[[str], None]


class Carrier(Protocol):
    """Carries messages to one server. `receive` gets each that comes back, with the request it came for."""

    version: str  # of the protocol, once it is known

    @property
    def has_streams(self) -> bool:
        """Whether each request has a stream of its own, whose end cancels it on 2026-07-28."""
        ...

    @property
    def pid(self) -> int | None: ...

    async def open(self, receive: Receive, lost: Lost) -> None:
        """Get it going; raises ToolError. `lost` is called once if it dies."""
        ...

    async def carry(self, exchange: Exchange, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a request and wait until it is answered; raises RunnerDied, ToolError."""
        ...

    async def tell(self, body: bytes) -> None:
        """Send what has no answer, and wait until it is there."""
        ...

    def send(self, body: bytes) -> None:
        """Send what has no answer; nobody waits."""
        ...

    def listen(self) -> None:
        """The handshake is done: hear what belongs to no request."""
        ...

    async def close(self) -> None: ...
