"""`BridgeRequest` is an open request of the client, with its answer if no gateway gives one."""

import asyncio

from msgspec import Struct, UnsetType, field, json

from afoot.bridge.connection import mcp_name
from afoot.wire.jsonrpc import ENVELOPE_DECODER, INTERNAL_ERROR, Envelope, Fault, Id
from afoot.wire.results import ErrorMeta, Response, encode, error_response

LOST = -32000  # official clients use it for a closed connection

_CANCELLED = "notifications/cancelled"
_REPEATABLE = frozenset(
    "initialize ping server/discover tools/list prompts/list resources/list resources/templates/list".split()
)


class _CallMeta(Struct):
    call: str = field(name="dev.afoot/call", default="")


class _ProgressParams(Struct):
    meta: _CallMeta = field(name="_meta", default_factory=_CallMeta)


class _RetryParams(Struct):
    requestState: str = ""


_progress_decoder = json.Decoder(_ProgressParams)


class BridgeRequest:
    """One request between the client and the gateway."""

    def __init__(self, line: bytes, message: Envelope, *, modern: bool) -> None:
        assert isinstance(message.id, int | str)
        self.line = line
        self.id: Id = message.id
        self.method = str(message.method)
        self.name = mcp_name(message)
        # Whether it may be sent again though the first one may have arrived: it changes nothing, or continues
        # a call that the gateway knows (Q1 d).
        self.is_safe = self.method in _REPEATABLE or (modern and _continues_call(message))
        self.modern = modern
        self.call = ""  # the id of its call, once a frame has named it
        self.last: Envelope | None = None  # the answer
        self.is_streaming = False
        self.is_cancelled = False
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come for it."""
        return self.last is not None or self.is_cancelled

    def pass_on(self, frames: list[bytes]) -> list[bytes]:
        """The gateway's frames that the client is to see."""
        self.is_streaming = True
        return [shown for frame in frames if (shown := self._frame_for_client(frame))]

    def lost(self) -> bytes:
        """The answer if its gateway has died."""
        text = "lost: the gateway died before it had answered"
        if not self._tool:
            return error_response(Fault(LOST, f"{text}; ask again", data={"code": "lost"}), self.id)
        known = f"; its history tells how far it came: afoot log {self.call}" if self.call else ""
        text += f"; {self._tool} may have had side effects{known}"
        return self._tool_failure(ErrorMeta("unavailable", "lost", False, side_effects="possible"), text)

    def unreached(self, why: str) -> bytes:
        """The answer if there is no gateway, so that nothing was done."""
        text = f"unavailable: {why}"
        if not self._tool:
            return error_response(Fault(LOST, text, data={"code": "unavailable"}), self.id)
        return self._tool_failure(ErrorMeta("unavailable", "unavailable", True, side_effects="none"), text)

    def failed(self, status: int) -> bytes:
        """The answer if the gateway failed on it."""
        self.last = Envelope()
        text = f"the gateway failed (HTTP {status}); its log says more"
        return error_response(Fault(INTERNAL_ERROR, text), self.id)

    @property
    def _tool(self) -> str:
        return (self.name or "the tool") if self.method == "tools/call" else ""

    def _tool_failure(self, meta: ErrorMeta, text: str) -> bytes:
        """A result of the tool that says why it failed."""
        result: dict[str, object] = {"resultType": "complete"} if self.modern else {}
        result |= {"content": [{"type": "text", "text": text}], "isError": True}
        result["_meta"] = {"dev.afoot/error": meta, **({"dev.afoot/call": self.call} if self.call else {})}
        return encode(Response(self.id, result))

    def _frame_for_client(self, frame: bytes) -> bytes | None:
        try:
            message = ENVELOPE_DECODER.decode(frame)
        except (ValueError, RecursionError):
            return None
        if isinstance(message.method, UnsetType):
            self.last = message
            frame = self._with_own_id(frame, message)
        elif not self.call and message.method == "notifications/progress":
            self.call = _progress_decoder.decode(message.params).meta.call
        # After a cancel the client only sees that a question of this call needs no answer any more.
        return frame if not self.is_cancelled or message.method == _CANCELLED else None

    def _with_own_id(self, frame: bytes, message: Envelope) -> bytes:
        """The frame with this request's id, if the gateway refused it before it had read the id."""
        if message.id == self.id or not message.error:
            return frame
        return encode({"jsonrpc": "2.0", "id": self.id, "error": message.error})


def _continues_call(message: Envelope) -> bool:
    try:
        return bool(json.decode(bytes(message.params), type=_RetryParams).requestState)
    except (ValueError, RecursionError):
        return False
