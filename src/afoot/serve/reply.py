"""The HTTP side of one request: its body, its one answer as JSON or as a stream, and its caller's leaving."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, MutableMapping, Sequence
from typing import Any

from afoot.wire import sse
from afoot.wire.jsonrpc import INVALID_REQUEST, Fault

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON = (b"content-type", b"application/json")


class Reply:
    """An outlet on HTTP: it becomes an event stream at the first frame that is not the last."""

    __slots__ = ("_headers", "_send", "_stuck_s", "gone", "streaming")

    def __init__(self, send: Send, stuck_s: float, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self._send = send
        self._stuck_s = stuck_s
        self._headers = headers
        self.gone = False
        self.streaming = False

    def add(self, header: tuple[bytes, bytes]) -> None:
        """Put a header on whatever is answered."""
        self._headers = (*self._headers, header)

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send frames as events."""
        await self._push(b"".join([sse.message(frame) for frame in frames]), more=True)

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last frame; after one send with no more to come, a closing client is no disconnect."""
        if self.gone:
            return
        if self.streaming or frames:
            everything = [*frames] if last is None else [*frames, last]
            await self._push(b"".join([sse.message(frame) for frame in everything]), more=False)
        elif last is not None:
            await self.json(200, last)
        else:
            await self.json(204, b"")

    async def keep_alive(self) -> None:
        """A comment: bytes for whoever stands between, no event."""
        await self._push(sse.comment("alive"), more=True)

    async def json(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        """Answer at once and whole."""
        length = (b"content-length", str(len(body)).encode())
        kind = (JSON,) if body else ()
        everything = [*kind, length, *self._headers, *headers]
        await self._send({"type": "http.response.start", "status": status, "headers": everything})
        await self._send({"type": "http.response.body", "body": body})

    async def events(self, data: bytes) -> None:
        """Send frames of a stream that is not JSON-RPC."""
        await self._push(data, more=True)

    async def _push(self, data: bytes, *, more: bool) -> None:
        """Send, but never wait longer than `stuck_s` for a reader that takes nothing."""
        try:
            async with asyncio.timeout(self._stuck_s):
                if not self.streaming:
                    self.streaming = True
                    head = [*sse.HEADERS, *self._headers]
                    await self._send({"type": "http.response.start", "status": 200, "headers": head})
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError:
            self.gone = True


class Leaving:
    """Notices that the caller has gone, without a task of its own.

    `receive` is stepped by hand: the future it waits on calls back here. A request then costs one task, which
    waits for its call and for its caller together.
    """

    __slots__ = ("_coroutine", "_reply", "_ring")

    def __init__(self, receive: Receive, reply: Reply, ring: Callable[[], object]) -> None:
        self._reply = reply
        self._ring = ring
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
            self._ring()
        else:
            if waited is None:
                asyncio.get_running_loop().call_soon(self._step)
            else:
                waited._asyncio_future_blocking = False  # as Task does for the future it is handed
                waited.add_done_callback(self._step)

    def close(self) -> None:
        """Look no longer."""
        coroutine, self._coroutine = self._coroutine, None
        if coroutine is not None:
            coroutine.close()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The request's body; raises Fault if it is too large or not JSON by its type."""
    kind = header(scope, b"content-type") or b""
    if kind.split(b";")[0].strip().lower() != b"application/json":
        raise Fault(INVALID_REQUEST, "header content-type: must be application/json", status=415)
    declared = header(scope, b"content-length") or b"0"
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        body += bytes(message.get("body", b""))
        if len(body) > limit:
            raise too_large(limit)
        if not message.get("more_body"):
            return body


def too_large(limit: int) -> Fault:
    """The answer to a body over the limit."""
    return Fault(INVALID_REQUEST, f"body: over {limit} bytes (raise max_body_bytes)", status=413)


def header(scope: Scope, name: bytes) -> bytes | None:
    """A header of the request, by its lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


__all__ = ["Leaving", "Receive", "Reply", "Scope", "Send", "header", "read_body"]
