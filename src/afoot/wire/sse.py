"""Server-sent events: frames out, and a parser for whoever reads them."""

from collections.abc import Iterator

from msgspec import Struct

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)

# What stands around a JSON-RPC message that is an event.
BEFORE, BEHIND = b"event: message\ndata: ", b"\n\n"


def frame(data: bytes, event: str = "", id: str = "") -> bytes:
    """One event; `data` must hold no line break, as encoded JSON never does."""
    head = (f"id: {id}\n" if id else "") + (f"event: {event}\n" if event else "")
    return head.encode() + b"data: " + data + b"\n\n"


def comment(text: str) -> bytes:
    """A sign of life that is no event."""
    return f": {text}\n\n".encode()


class Event(Struct, frozen=True):
    """What a reader gets."""

    data: str
    event: str = "message"
    id: str = ""


class Parser:
    """Bytes in, events out; keeps what is not whole yet, and never more than `limit` bytes of it."""

    def __init__(self, limit: int | None = None) -> None:
        self.last_id = ""  # of the last event that had one: where to go on after a break
        self.retry_ms: int | None = None  # how long to wait before coming back
        self.dropped = 0  # events over the limit
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._is_skipping = False
        self._rest = b""  # a return at the end of a chunk: what comes behind it counts

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that these bytes complete."""
        chunk = self._plain(chunk)
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
            event = self._event(block.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _plain(self, chunk: bytes) -> bytes:
        """The same with plain line ends."""
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
            self._parts, self._size = [chunk[-1:]], 1  # a blank line may lie across two chunks

    def _event(self, block: str) -> Event | None:
        fields: dict[str, list[str]] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:
                fields.setdefault(name, []).append(value.removeprefix(" "))
        self.last_id = fields.get("id", [self.last_id])[-1]
        retry = fields.get("retry", [""])[-1]
        if retry.isascii() and retry.isdigit():
            self.retry_ms = int(retry)
        if "data" not in fields:
            return None
        event, id = fields.get("event", ["message"])[-1], fields.get("id", [""])[-1]
        return Event("\n".join(fields["data"]), event, id)
