"""What was said on the wires of a call, word for word but for its secrets; where that is wanted (V4)."""

from collections import deque
from typing import TYPE_CHECKING

from msgspec import DecodeError, Raw, Struct, field, json

from afoot.core.declared import of_tool

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

CALLS = 100  # whose tapes are kept; the oldest makes room
MESSAGES = 200  # of a call, the newest
BYTES = 256 * 1024  # of a call
LONG = 64 * 1024  # a longer message is only told of

ARGUMENTS = ("arguments", "input")  # where they stand in a request, and in a frame for a page

_message = json.Decoder(dict[str, Raw])


class Said(Struct, frozen=True):
    """A message: when, on which side of the gateway, and whether it came or went."""

    at: float
    side: str  # caller, upstream, page
    way: str  # in, out: as the gateway sees it
    message: Raw


class Tape(Struct):
    """The messages of one call; `left_out` counts those that are no longer there."""

    said: deque[Said] = field(default_factory=deque)
    size: int = 0
    left_out: int = 0

    def add(self, one: Said) -> None:
        """Keep a message, and let the oldest go where they are too many."""
        self.said.append(one)
        self.size += len(one.message)
        while len(self.said) > MESSAGES or (self.size > BYTES and len(self.said) > 1):
            self.size -= len(self.said.popleft().message)
            self.left_out += 1


class Tapes:
    """The tapes of the newest calls (`core.ports.Tapes`)."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._tapes: dict[str, Tape] = {}

    def __getitem__(self, call: str) -> Tape:
        """What was said for a call; nothing, if that is not known."""
        return self._tapes.get(call) or Tape()

    def add(self, call: str, side: str, way: str, message: bytes) -> None:
        """Something was said for a call."""
        tape = self._tapes.get(call)
        if tape is None:
            tape = self._tapes[call] = Tape()
            if len(self._tapes) > CALLS:
                del self._tapes[next(iter(self._tapes))]
        tape.add(Said(self._engine.clock.now(), side, way, self._kept(call, message)))

    def _kept(self, call: str, message: bytes) -> Raw:
        """The message without secrets: those of its tool's schema, and those of any."""
        if len(message) > LONG:
            return Raw(json.encode({"omitted_bytes": len(message)}))
        redactor = self._engine.catalog.terms.redactor
        try:
            parts = _message.decode(message)
            params = _message.decode(parts["params"]) if "params" in parts else {}
        except DecodeError:
            return Raw(json.encode(redactor.text(message.decode(errors="replace"))))
        declared = of_tool(self._engine[call].tool.definition) if call in self._engine else None
        given = next((name for name in ARGUMENTS if name in params), None)
        if declared is not None and given is not None:
            parts["params"] = Raw(json.encode({**params, given: redactor.value(params[given], declared)}))
            message = json.encode(parts)
        return redactor.value(Raw(message))
