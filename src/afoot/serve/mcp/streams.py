"""`ResponseStream` takes the frames of a response; `RecordedStream` also writes them to the wire log (V4).

The messages to and from servers are recorded by their connection, in `providers`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from msgspec import UNSET, Raw, json

from afoot.core.ports import CallOrigin, MessageLog
from afoot.serve.unread_results import LARGE_RESULT_BYTES, UnreadResults
from afoot.wire.jsonrpc import Envelope
from afoot.wire.results import ToolCall

EVENT_MAX_BYTES = 900_000  # official clients take at most 1 MiB as one event of a stream


class ResponseStream(Protocol):
    """The response to one caller. `gone`: the caller has left; `streaming`: frames can be sent."""

    @property
    def gone(self) -> bool: ...

    @property
    def streaming(self) -> bool: ...

    @property
    def origin(self) -> CallOrigin:
        """The way by which the caller came, and what it proved."""
        ...

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send frames; more will follow."""
        ...

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send frames and the last one; None: the request ends without an answer."""
        ...

    async def keep_alive(self) -> None:
        """Send something that is no frame, so that nobody on the way closes the stream."""
        ...

    def watch(self, wake: Callable[[], object]) -> None:
        """Call `wake` once the caller has gone."""
        ...


async def finish_within_bound(
    stream: ResponseStream, last: bytes, unread: UnreadResults, caller: str
) -> None:
    """Send a last frame that is in memory already; raises Fault if its caller leaves too much unread."""
    size = len(last)
    if size < LARGE_RESULT_BYTES:
        await stream.finish((), last)
        return
    if not unread.take(caller, size):
        raise unread.refusal(caller)
    try:
        await stream.finish((), last)
    finally:
        unread.free(caller, size)


class RecordedStream:
    """Passes every frame on to another stream, and writes it to the wire log."""

    def __init__(self, stream: ResponseStream, record: Callable[[str, bytes], None]) -> None:
        self.recorded = stream
        self._record = record

    @property
    def gone(self) -> bool:
        return self.recorded.gone

    @property
    def streaming(self) -> bool:
        return self.recorded.streaming

    @property
    def origin(self) -> CallOrigin:
        return self.recorded.origin

    async def send(self, frames: Sequence[bytes]) -> None:
        self._add(frames)
        await self.recorded.send(frames)

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        self._add(frames if last is None else [*frames, last])
        await self.recorded.finish(frames, last)

    async def keep_alive(self) -> None:
        await self.recorded.keep_alive()

    def watch(self, wake: Callable[[], object]) -> None:
        self.recorded.watch(wake)

    def _add(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._record("out", frame)


def unrecorded(stream: ResponseStream) -> ResponseStream:
    """The stream itself, also where another one around it records it."""
    return stream.recorded if isinstance(stream, RecordedStream) else stream


def record_request(
    stream: ResponseStream, log: MessageLog, tool_call: ToolCall, call_id: str
) -> RecordedStream:
    """Write a request for a call to the wire log; return the stream that records its answer too."""
    record = partial(log.add, call_id, "caller")
    params = tool_call.params or Raw(b"{}")
    record(
        "in",
        json.encode({"jsonrpc": "2.0", "id": tool_call.id, "method": tool_call.method, "params": params}),
    )
    return RecordedStream(stream, record)


def encode_envelope(message: Envelope) -> bytes:
    """A message as it came, near enough."""
    parts = {"jsonrpc": "2.0", "id": message.id, "method": message.method}
    more = {"params": message.params, "result": message.result, "error": message.error}
    said = {key: value for key, value in parts.items() if value is not UNSET}
    return json.encode(said | {key: value for key, value in more.items() if value})
