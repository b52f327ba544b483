"""What ASGI hands us: a request's headers and body, and the news that its caller has left."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping
from typing import Any, Protocol

from msgspec import UnsetType

from afoot.wire.jsonrpc import INVALID_REQUEST, Fault, Id
from afoot.wire.mcp import HEADER_MISMATCH

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class Left(Protocol):
    """What is told that its reader has gone."""

    gone: bool


class Leaving:
    """Notices that the caller has gone, without a task of its own.

    `receive` is stepped by hand: the future it waits on calls back here. A request then costs one task, which
    waits for its call and for its caller together.
    """

    __slots__ = ("_coroutine", "_reply", "ring")

    def __init__(self, receive: Receive, reply: Left, ring: Callable[[], object]) -> None:
        self._reply = reply
        self.ring = ring
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
            self.ring()
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
    return await read_rest({"type": "http.request", "body": b"", "more_body": True}, receive, limit)


async def read_rest(message: Message, receive: Receive, limit: int) -> bytes:
    """The body that begins with this message; raises Fault, or ConnectionResetError if its sender is gone."""
    body = b""
    while True:
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        body += bytes(message.get("body", b""))
        if len(body) > limit:
            raise too_large(limit)
        if not message.get("more_body"):
            return body
        message = await receive()


def too_large(limit: int) -> Fault:
    """The answer to a body over the limit."""
    return Fault(INVALID_REQUEST, f"body: over {limit} bytes (raise max_body_bytes)", status=413)


def header(scope: Scope, name: bytes) -> bytes | None:
    """A header of the request, by its lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def accepts(accept: str) -> None:
    """A client must take both forms of answer; raises Fault."""
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    json = kinds & {"application/json", "application/*", "*/*"}
    if not json or not kinds & {"text/event-stream", "text/*", "*/*"}:
        text = "header accept: must have application/json and text/event-stream"
        raise Fault(INVALID_REQUEST, text, status=406)


def check_kinds(headers: Mapping[str, str]) -> None:
    """The types that are sent and taken; raises Fault."""
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise Fault(INVALID_REQUEST, "header content-type: must be application/json", status=415)
    accepts(headers.get("accept", ""))


def check_once(scope: Scope, request: Id | None | UnsetType) -> None:
    """A routing header, or one that mirrors an argument, may not stand twice; raises Fault."""
    names = [key for key, _ in scope["headers"]]
    for name in names:
        if names.count(name) > 1 and (name in _ROUTING or name.startswith(b"mcp-param-")):
            fault = Fault(HEADER_MISMATCH, f"header {name.decode('latin-1')}: stands more than once")
            fault.id = request if isinstance(request, int | str) else None
            raise fault
