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
    """Bytes in, events out; keeps what is not whole yet."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that these bytes complete."""
        blocks = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        self._rest = blocks.pop()
        for block in blocks:
            event = _event(block.decode("utf-8", "replace"))
            if event is not None:
                yield event


def _event(block: str) -> Event | None:
    fields: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        if name:
            fields.setdefault(name, []).append(value.removeprefix(" "))
    if "data" not in fields:
        return None
    return Event("\n".join(fields["data"]), fields.get("event", ["message"])[-1], fields.get("id", [""])[-1])
