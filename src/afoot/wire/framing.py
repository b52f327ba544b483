"""Framing of byte streams: `LineSplitter` for lines, `EventParser` for server-sent events."""

from collections.abc import Iterator

from msgspec import Struct

EVENT_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)

# The text around a JSON-RPC message that is sent as an event.
MESSAGE_PREFIX, MESSAGE_SUFFIX = b"event: message\ndata: ", b"\n\n"

RETRY_DIGITS = 9  # of a `retry` that is read; a longer one would be years, and may be no number for Python
MAX_RETRY_MS = 10**RETRY_DIGITS


class ServerSentEvent(Struct, frozen=True):
    """One event of a stream."""

    data: str
    event: str = "message"
    id: str = ""


class LineSplitter:
    """Splits bytes into lines; keeps the unfinished line, and hardly more than `limit` bytes of it."""

    def __init__(self, limit: int) -> None:
        self.dropped = 0  # lines over the limit
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._is_skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        found = chunk.split(b"\n")
        rest = found.pop()
        if found and (self._parts or self._is_skipping):
            found[0] = b"".join([*self._parts, found[0]])
            self._clear()
            if self._is_skipping:
                self._is_skipping = False
                self.dropped += 1
                del found[0]
        if rest:
            self._keep(rest)
        return found

    def _keep(self, rest: bytes) -> None:
        self._parts.append(rest)
        self._size += len(rest)
        if self._is_skipping or self._size > self._limit:
            self._is_skipping = True
            self._clear()

    def _clear(self) -> None:
        self._parts = []
        self._size = 0


class EventParser:
    """Parses bytes into events; keeps the unfinished event, and never more than `limit` bytes of it."""

    def __init__(self, limit: int | None = None) -> None:
        self.last_id = ""  # the id of the last event that had one: the place to resume at
        self.retry_ms: int | None = None  # how long to wait before reconnecting
        self.dropped = 0  # events over the limit
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._is_skipping = False
        self._rest = b""  # a CR at the end of a chunk: the next chunk may begin with its LF

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """The events that these bytes complete."""
        chunk = self._with_plain_line_ends(chunk)
        tail = self._parts[-1][-1:] if self._parts else b""
        if b"\n\n" not in tail + chunk:
            self._keep(chunk)
            return
        blocks = b"".join([*self._parts, chunk]).split(b"\n\n")
        if self._is_skipping:
            self._is_skipping = False
            self.dropped += 1
            del blocks[0]
        self._parts = []
        self._size = 0
        self._keep(blocks.pop())
        for block in blocks:
            event = self._read_block(block.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        """The chunk with every line end as a single LF."""
        if not self._rest and b"\r" not in chunk:
            return chunk
        chunk = self._rest + chunk
        self._rest = b"\r" if chunk.endswith(b"\r") else b""
        chunk = chunk[:-1] if self._rest else chunk
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _keep(self, chunk: bytes) -> None:
        if not chunk:
            return
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._is_skipping or (self._limit is not None and self._size > self._limit):
            self._is_skipping = True
            self._parts = [chunk[-1:]]
            self._size = 1  # a blank line may lie across two chunks

    def _read_block(self, block: str) -> ServerSentEvent | None:
        fields: dict[str, list[str]] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:
                fields.setdefault(name, []).append(value.removeprefix(" "))
        self.last_id = fields.get("id", [self.last_id])[-1]
        retry = fields.get("retry", [""])[-1]
        if retry.isascii() and retry.isdigit():
            self.retry_ms = int(retry) if len(retry) <= RETRY_DIGITS else MAX_RETRY_MS
        if "data" not in fields:
            return None
        event, id = fields.get("event", ["message"])[-1], fields.get("id", [""])[-1]
        return ServerSentEvent("\n".join(fields["data"]), event, id)


def event_frame(data: bytes, event: str = "", id: str = "") -> bytes:
    """One event; `data` must hold no line break, as encoded JSON never does."""
    head = (f"id: {id}\n" if id else "") + (f"event: {event}\n" if event else "")
    return head.encode() + b"data: " + data + b"\n\n"


def comment_frame(text: str) -> bytes:
    """A comment: a sign of life that is no event."""
    return f": {text}\n\n".encode()
