"""`WireLog` keeps the messages of calls as they were sent and received, without their secrets (V4)."""

from collections import deque
from collections.abc import Mapping, Set

from msgspec import DecodeError, Raw, Struct, field, json

from afoot.core.ports import Clock
from afoot.core.redaction import declared_in_answer, declared_in_tool
from afoot.engine.catalog import Catalog
from afoot.engine.live_call import LiveCall

MAX_CALLS = 100  # whose messages are kept; the oldest makes room
MAX_MESSAGES = 200  # of a call, the newest
MAX_BYTES = 256 * 1024  # of a call
MAX_MESSAGE_BYTES = 64 * 1024  # of a longer message only the length is kept

ARGUMENTS = {"arguments", "input"}  # where they stand in a request, and in a frame for a page
ANSWERS = "inputResponses"

_message = json.Decoder(dict[str, Raw])


class WireMessage(Struct, frozen=True):
    """A message: when, on which side of the gateway, and whether it came or went."""

    at: float
    side: str  # caller, upstream, page
    way: str  # in, out: as the gateway sees it
    message: Raw


class CallMessages(Struct):
    """The messages of one call; `left_out` counts those that are no longer there."""

    said: deque[WireMessage] = field(default_factory=deque)
    size: int = 0
    left_out: int = 0

    def add(self, one: WireMessage) -> None:
        """Keep a message, and let the oldest go where they are too many."""
        self.said.append(one)
        self.size += len(one.message)
        while len(self.said) > MAX_MESSAGES or (self.size > MAX_BYTES and len(self.said) > 1):
            self.size -= len(self.said.popleft().message)
            self.left_out += 1


class WireLog:
    """The messages of the newest calls (`core.ports.MessageLog`). `calls` are the live ones, by id."""

    def __init__(self, clock: Clock, catalog: Catalog, calls: Mapping[str, LiveCall]) -> None:
        self._clock = clock
        self._catalog = catalog
        self._calls = calls
        self._messages: dict[str, CallMessages] = {}

    def __getitem__(self, call: str) -> CallMessages:
        """The messages of a call; none, if none are known."""
        return self._messages.get(call) or CallMessages()

    def add(self, call: str, side: str, way: str, message: bytes) -> None:
        """Keep a message of a call, without secrets."""
        messages = self._messages.get(call)
        if messages is None:
            messages = self._messages[call] = CallMessages()
            if len(self._messages) > MAX_CALLS:
                del self._messages[next(iter(self._messages))]
        messages.add(WireMessage(self._clock.now(), side, way, self._redacted(call, message)))

    def _redacted(self, call: str, message: bytes) -> Raw:
        """The message without secrets: those of its tool's schema, and those of any."""
        if len(message) > MAX_MESSAGE_BYTES:
            return Raw(json.encode({"omitted_bytes": len(message)}))
        redactor = self._catalog.effective_settings.redactor
        try:
            parts = _message.decode(message)
            params = _message.decode(parts["params"]) if "params" in parts else {}
        except (DecodeError, RecursionError):
            return Raw(json.encode(redactor.text(message.decode(errors="replace"))))
        own: Set[str] = frozenset()
        if call in self._calls:
            message = self._without_declared(self._calls[call], parts, params) or message
            own = self._calls[call].secrets()
        return redactor.words(redactor.value(Raw(message)), own)

    def _without_declared(
        self, live: LiveCall, parts: dict[str, Raw], params: dict[str, Raw]
    ) -> bytes | None:
        """The message without what its call's schemas declare to be secrets; None if that is nothing."""
        redact = self._catalog.effective_settings.redactor.value
        declared = declared_in_tool(live.tool.definition)
        answers = [declared_in_answer(asked.body) for asked in live.call.questions.values()]
        if declared is None and not any(answers):
            return None
        for name in ARGUMENTS & params.keys():
            params[name] = redact(params[name], declared)
        for one in filter(None, answers):
            if ANSWERS in params:
                params[ANSWERS] = redact(params[ANSWERS], one)
            if "result" in parts:
                parts["result"] = redact(parts["result"], one)
        return json.encode({**parts, "params": params} if params else parts)
