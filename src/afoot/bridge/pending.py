"""A request of the client that is not answered yet, and what its frames tell of it."""

import asyncio

from msgspec import Struct, UnsetType, field, json

from afoot.bridge.link import name_of
from afoot.bridge.losses import lost, unreached
from afoot.wire.jsonrpc import ENVELOPE, INTERNAL_ERROR, Envelope, Fault, Id
from afoot.wire.messages import encode, error

_WITHDRAWN = "notifications/cancelled"
_SAFE = frozenset(
    "initialize ping server/discover tools/list prompts/list resources/list resources/templates/list".split()
)


class _Meta(Struct):
    call: str = field(name="dev.afoot/call", default="")


class _Progress(Struct):
    meta: _Meta = field(name="_meta", default_factory=_Meta)


class _Retry(Struct):
    requestState: str = ""


_progress = json.Decoder(_Progress)


class Pending:
    """One request on its way."""

    def __init__(self, line: bytes, message: Envelope, *, modern: bool) -> None:
        assert isinstance(message.id, int | str)
        self.line = line
        self.id: Id = message.id
        self.method = str(message.method)
        self.name = name_of(message)
        # May be sent again though the first may have arrived: it changes nothing, or goes on with a call that
        # the gateway knows (Q1 d).
        self.is_safe = self.method in _SAFE or (modern and _goes_on(message))
        self.modern = modern
        self.call = ""  # its id in the history, once a frame has told
        self.last: Envelope | None = None  # the answer
        self.is_streaming = False
        self.is_cancelled = False
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come for it."""
        return self.last is not None or self.is_cancelled

    def pass_on(self, frames: list[bytes]) -> list[bytes]:
        """Those of the gateway's frames that the client is to see."""
        self.is_streaming = True
        return [shown for frame in frames if (shown := self._shown(frame))]

    def lost(self) -> bytes:
        """The answer if its gateway has died."""
        return lost(self.id, self._tool, self.call, modern=self.modern)

    def unreached(self, why: str) -> bytes:
        """The answer if there is no gateway."""
        return unreached(self.id, self._tool, why, modern=self.modern)

    def failed(self, status: int) -> bytes:
        """The answer if the gateway failed on it."""
        self.last = Envelope()
        text = f"the gateway failed (HTTP {status}); its log says more"
        return error(Fault(INTERNAL_ERROR, text), self.id)

    @property
    def _tool(self) -> str:
        return (self.name or "the tool") if self.method == "tools/call" else ""

    def _shown(self, frame: bytes) -> bytes | None:
        try:
            message = ENVELOPE.decode(frame)
        except (ValueError, RecursionError):
            return None
        if isinstance(message.method, UnsetType):
            self.last = message
            frame = self._named(frame, message)
        elif not self.call and message.method == "notifications/progress":
            self.call = _progress.decode(message.params).meta.call
        # Nothing follows a cancel but the news that a question of that call needs no answer any more.
        return frame if not self.is_cancelled or message.method == _WITHDRAWN else None

    def _named(self, frame: bytes, message: Envelope) -> bytes:
        """A refusal that was made before the request was read has no id; the client waits for its own."""
        if message.id == self.id or not message.error:
            return frame
        return encode({"jsonrpc": "2.0", "id": self.id, "error": message.error})


def _goes_on(message: Envelope) -> bool:
    try:
        return bool(json.decode(bytes(message.params), type=_Retry).requestState)
    except (ValueError, RecursionError):
        return False
