"""What was said on the wires of a call, word for word but for its secrets; where that is wanted (V4)."""

from collections import deque
from typing import TYPE_CHECKING

from msgspec import DecodeError, Raw, Struct, field, json

from afoot.core.declared import of_answer, of_tool
from afoot.engine.live import Live

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

CALLS = 100  # whose tapes are kept; the oldest makes room
MESSAGES = 200  # of a call, the newest
BYTES = 256 * 1024  # of a call
LONG = 64 * 1024  # a longer message is only told of

ARGUMENTS = {"arguments", "input"}  # where they stand in a request, and in a frame for a page
ANSWERS = "inputResponses"

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
        except (DecodeError, RecursionError):
            return Raw(json.encode(redactor.text(message.decode(errors="replace"))))
        if call in self._engine:
            message = self._undeclared(self._engine[call], parts, params) or message
        return redactor.value(Raw(message))

    def _undeclared(self, live: Live, parts: dict[str, Raw], params: dict[str, Raw]) -> bytes | None:
        """The message without what its call's schemas declare to be secrets; None if that is nothing."""
        value, declared = self._engine.catalog.terms.redactor.value, of_tool(live.tool.definition)
        answers = [of_answer(asked.body) for asked in live.call.questions.values()]
        if declared is None and not any(answers):
            return None
        for name in ARGUMENTS & params.keys():
            params[name] = value(params[name], declared)
        for one in filter(None, answers):
            if ANSWERS in params:
                params[ANSWERS] = value(params[ANSWERS], one)
            if "result" in parts:
                parts["result"] = value(parts["result"], one)
        return json.encode({**parts, "params": params} if params else parts)
