"""Requests and responses of ASGI: headers, the body, and `HttpResponse`, which is JSON or an event stream.

`DisconnectWatch` notices that the caller has left.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Protocol

from msgspec import Struct, UnsetType

from afoot.core.ports import CallOrigin
from afoot.serve.access.tokens import OpenRequest
from afoot.wire import framing
from afoot.wire.jsonrpc import INVALID_REQUEST, REQUEST_CANCELLED, Fault, Id
from afoot.wire.mcp_2026 import HEADER_MISMATCH
from afoot.wire.results import error_response

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HTTP_ORIGIN = CallOrigin("mcp-http")  # of a caller that proved nothing
JSON = (b"content-type", b"application/json")
LENGTH_DIGITS = 20  # of the longest length that HTTP parsers read
ONE_WRITE_BYTES = 16_384  # certainly fits into the socket's buffer: writing so much never waits
WEBSOCKET_PROVED = "afoot.proved"  # key of a WebSocket's scope: a function that lifts the bounds of strangers
PIECE_BYTES = 256 * 1024  # of a large body that are handed over at once
_ACCEPT_BOTH = "application/json, text/event-stream"
_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class Disconnectable(Protocol):
    """A response that can take note that its reader has gone."""

    gone: bool


class OneStepResponse:
    """What `send` of the gateway's own server is bound to; other servers of ASGI take messages alone."""

    def respond_json(self, body: bytes) -> bool:
        """Send a response with status 200 and this body; False if it must be sent in messages."""
        return False


class DisconnectWatch:
    """Takes note that the caller has gone, without a task of its own.

    `receive` is stepped by hand: the future it waits on calls back here. A request then costs one task, which
    waits for its call and for its caller together.
    """

    __slots__ = ("_coroutine", "_reply", "wake")

    def __init__(self, receive: Receive, reply: Disconnectable, wake: Callable[[], object]) -> None:
        self._reply = reply
        self.wake = wake
        self._coroutine: Generator[Any, None, None] | None = _disconnect(receive).__await__()
        self._step()

    def _step(self, _: object = None) -> None:
        if self._coroutine is None:
            return
        try:
            waited = next(self._coroutine)
        except StopIteration:
            self._coroutine = None
            self._reply.gone = True
            self.wake()
        else:
            if waited is None:
                asyncio.get_running_loop().call_soon(self._step)
            else:
                waited._asyncio_future_blocking = False  # as Task does for the future it is handed
                waited.add_done_callback(self._step)

    def close(self) -> None:
        """Stop watching."""
        coroutine = self._coroutine
        self._coroutine = None
        if coroutine is not None:
            coroutine.close()


class HttpResponse(Struct, eq=False):
    """The response to one HTTP request; the first frame that is not the last makes it an event stream."""

    transmit: Send
    stuck_s: float  # how long a reader may take nothing
    headers: tuple[tuple[bytes, bytes], ...] = ()
    receive: Receive | None = None
    gone: bool = False
    streaming: bool = False
    disconnect_watch: DisconnectWatch | None = None
    leave: Callable[[OpenRequest], None] | None = None  # called when it is answered
    is_complete: bool = False  # nothing more can be sent
    request_id: Id | None = None  # of the JSON-RPC request that it answers
    unanswered_id: Id | None = None  # of a request of the handshake era: cancelled, it gets an error
    until: float = inf  # when its caller needs a newer token
    denied: str = ""  # why it ends early: the token of its caller has ended
    origin: CallOrigin = HTTP_ORIGIN

    def add(self, header: tuple[bytes, bytes]) -> None:
        """Add a header to the response, whatever that will be."""
        self.headers = (*self.headers, header)

    def watch(self, wake: Callable[[], object]) -> None:
        """Call `wake` once the caller has gone; a second call takes the place of the first."""
        self.unwatch()
        if self.gone:
            wake()
        elif self.receive is not None:
            self.disconnect_watch = DisconnectWatch(self.receive, self, wake)

    def unwatch(self) -> None:
        """Watch the caller no more. The watch is dropped, as it and this response hold each other."""
        if self.disconnect_watch is not None:
            self.disconnect_watch.close()
            self.disconnect_watch = None

    async def send(self, frames: Sequence[bytes], *, more: bool = True, raw: bytes = b"") -> None:
        """Send frames as events, but wait no longer than `stuck_s` for a reader that takes nothing."""
        data = raw or b"".join([framing.MESSAGE_PREFIX + frame + framing.MESSAGE_SUFFIX for frame in frames])
        is_first = not self.streaming
        self.is_complete = not more
        if is_first:
            self.streaming = True
            head = [*framing.EVENT_STREAM_HEADERS, *self.headers]
            await self.transmit({"type": "http.response.start", "status": 200, "headers": head})
        piece = {"type": "http.response.body", "body": data, "more_body": more}
        if is_first and len(data) <= ONE_WRITE_BYTES:
            await self.transmit(piece)
            return
        if len(data) > PIECE_BYTES:
            await self._send_large(data, more=more)
            return
        try:
            async with asyncio.timeout(self.stuck_s):
                await self.transmit(piece)
        except TimeoutError:
            self.gone = True

    async def _send_large(self, data: bytes, *, more: bool = False) -> None:
        """Hand over a large body piece by piece, each once the reader has taken most of those before.

        Written at once, all of it would lie in the connection's buffer after this request is forgotten.
        """
        for at in range(0, len(data), PIECE_BYTES):
            part = data[at : at + PIECE_BYTES]
            is_more = more or at + PIECE_BYTES < len(data)
            try:
                async with asyncio.timeout(self.stuck_s):
                    await self.transmit({"type": "http.response.body", "body": part, "more_body": is_more})
            except TimeoutError:
                self.gone = True
                return

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last frame; after one send with no more to come, a closing client is no disconnect."""
        if self.gone:
            return
        last = self.error_if_unanswered() if last is None else last
        if self.streaming or frames:
            await self.send(frames if last is None else [*frames, last], more=False)
        elif last is None:
            await self.json(204, b"")
        elif not self.headers and len(last) <= ONE_WRITE_BYTES and self._respond(last):
            self.is_complete = True
        else:
            self.is_complete = True
            head = [JSON, (b"content-length", b"%d" % len(last)), *self.headers]
            await self.transmit({"type": "http.response.start", "status": 200, "headers": head})
            if len(last) > PIECE_BYTES:
                await self._send_large(last)
            else:
                await self.transmit({"type": "http.response.body", "body": last})

    def _respond(self, body: bytes) -> bool:
        """Send a whole response in one step, if the server can: two messages cost it 9 % of a short call."""
        server = getattr(self.transmit, "__self__", None)
        return isinstance(server, OneStepResponse) and server.respond_json(body)

    def error_if_unanswered(self) -> bytes | None:
        """The error for a request of the handshake era that was cancelled, as the SDK's own server has it.

        On HTTP a client of that era waits for a response: without one it takes the connection for broken.
        """
        if self.unanswered_id is None:
            return None
        return error_response(Fault(REQUEST_CANCELLED, "Request cancelled"), self.unanswered_id)

    async def keep_alive(self) -> None:
        """Send a comment: it is no event, but keeps proxies from closing the stream."""
        await self.send((), raw=framing.comment_frame("alive"))

    async def json(
        self, status: int, body: bytes, *headers: tuple[bytes, bytes], kind: tuple[bytes, bytes] = JSON
    ) -> None:
        """Send a whole response, of JSON or another `kind`; a large one as fast as it is read."""
        self.is_complete = True
        kinds = (kind,) if body else ()
        head = [*kinds, (b"content-length", b"%d" % len(body)), *self.headers, *headers]
        await self.transmit({"type": "http.response.start", "status": status, "headers": head})
        if len(body) > PIECE_BYTES:
            await self._send_large(body)
        else:
            await self.transmit({"type": "http.response.body", "body": body})

    async def push(self, data: bytes, *, more: bool = True) -> None:
        """Send a piece of a stream that is not JSON-RPC."""
        await self.send((), raw=data, more=more)

    def end(self, why: str) -> None:
        """End early because the caller's token has ended: as if it had left, but it is told why."""
        if not (self.is_complete or self.gone):
            self.gone = True
            self.denied = why
            if self.disconnect_watch is not None:
                self.disconnect_watch.wake()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Read the body of a request; raises Fault if it is too large, or its type is not JSON."""
    kind = header(scope, b"content-type") or b""
    if kind.split(b";")[0].strip().lower() != b"application/json":
        raise Fault(INVALID_REQUEST, "header content-type: must be application/json", status=415)
    check_declared_length(header(scope, b"content-length") or b"0", limit)
    return await read_rest({"type": "http.request", "body": b"", "more_body": True}, receive, limit)


async def read_json(headers: Mapping[str, str], receive: Receive, limit: int) -> bytes:
    """Read a request of JSON-RPC; raises Fault, or ConnectionResetError if its client leaves before its end.

    Most have the same two headers, and come in one piece.
    """
    if headers.get("content-type") != "application/json" or headers.get("accept") != _ACCEPT_BOTH:
        check_media_types(headers)
    if "expect" in headers:  # the client waits for a word before it sends a body that may be refused
        check_declared_length(headers.get("content-length", "0").encode("latin-1"), limit)
    message = await receive()
    body: bytes = message.get("body", b"")
    if len(body) > limit or message.get("more_body") or message["type"] != "http.request":
        check_declared_length(headers.get("content-length", "0").encode("latin-1"), limit)
        return await read_rest(message, receive, limit)
    return body


async def read_rest(message: Message, receive: Receive, limit: int) -> bytes:
    """Read the body that begins with this message; raises Fault, or ConnectionResetError."""
    body = bytearray()  # a body may come byte by byte, and must not be copied for each
    while True:
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        body += message.get("body", b"")
        if len(body) > limit:
            raise body_too_large(limit)
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()


def check_declared_length(declared: bytes, limit: int) -> None:
    """Check the length of a body before it comes; raises Fault. The parser has read it as a number."""
    digits = declared.lstrip(b"0")  # a number of thousands of digits may not be read, also if it is small
    if digits.isdigit() and (len(digits) > LENGTH_DIGITS or int(digits) > limit):
        raise body_too_large(limit)


def body_too_large(limit: int) -> Fault:
    """The answer to a body over the limit."""
    return Fault(INVALID_REQUEST, f"body: over {limit} bytes (raise max_body_bytes)", status=413)


def header(scope: Scope, name: bytes) -> bytes | None:
    """A header of the request, by its lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


@lru_cache(maxsize=16)  # a client sends the same header with every request: 3 µs
def _takes_both(accept: str) -> bool:
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    json = kinds & {"application/json", "application/*", "*/*"}
    return bool(json and kinds & {"text/event-stream", "text/*", "*/*"})


def check_media_types(headers: Mapping[str, str]) -> None:
    """Check the media types that the client takes and sends; raises Fault."""
    if not _takes_both(headers.get("accept", "")):
        text = "header accept: must have application/json and text/event-stream"
        raise Fault(INVALID_REQUEST, text, status=406)
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise Fault(INVALID_REQUEST, "header content-type: must be application/json", status=415)


def check_duplicate_headers(scope: Scope, request: Id | None | UnsetType) -> None:
    """Check that no routing header, and no header that repeats an argument, occurs twice; raises Fault."""
    names = [key for key, _ in scope["headers"]]
    for name in names:
        if names.count(name) > 1 and (name in _ROUTING or name.startswith(b"mcp-param-")):
            fault = Fault(HEADER_MISMATCH, f"header {name.decode('latin-1')}: stands more than once")
            fault.id = request if isinstance(request, int | str) else None
            raise fault
