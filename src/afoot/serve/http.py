"""MCP over HTTP: one POST is one exchange, and here it finds its era and gets its one answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from math import inf
from typing import Any, Protocol

from msgspec import Struct

from afoot.engine.bell import Bell
from afoot.errors import AfootError
from afoot.serve import tasks
from afoot.serve.asgi import Leaving, Receive, Scope, Send, check_kinds, check_once, read_rest
from afoot.serve.conversation import Conversation
from afoot.serve.guard import LOCAL, SIGNS, Denied, Guard, is_bridge, refusal
from afoot.serve.listing import answer_plain, ear_for, listen
from afoot.serve.modern import Modern, again
from afoot.serve.shelf_lookup import answer_modern, hold, look_up
from afoot.serve.site import Site
from afoot.serve.tasks_news import watched
from afoot.serve.ways import Guest
from afoot.wire import mcp, mcp_2025, messages, sse
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Envelope, Fault, Id
from afoot.wire.messages import Wanted
from afoot.wire.shelf import LOOKUPS
from afoot.wire.tasks import METHODS

App = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON = (b"content-type", b"application/json")
CLOSING_S = 30.0  # how long a closed connection may take to hand over what was written
SMALL = 16_384  # what certainly fits into the socket's buffer: writing it never waits
_MODERN = Modern(cancels=True, capped=True)
_BRIDGED = Modern(cancels=True, capped=False)  # behind a bridge is a pipe, which takes a line of any length
_BOTH = "application/json, text/event-stream"


class Reply(Struct, eq=False):
    """An outlet on HTTP: it becomes an event stream at the first frame that is not the last."""

    transmit: Send
    stuck_s: float
    headers: tuple[tuple[bytes, bytes], ...] = ()
    receive: Receive | None = None
    gone: bool = False
    streaming: bool = False
    leaving: Leaving | None = None
    leave: Callable[[Guest], None] | None = None  # called when it is answered
    is_whole: bool = False  # nothing more can be sent
    request: Id | None = None  # what a last frame of ours answers
    until: float = inf  # when its asker needs a newer token
    denied: str = ""  # why it ends early: its asker is let in no more

    def add(self, header: tuple[bytes, bytes]) -> None:
        """Put a header on whatever is answered."""
        self.headers = (*self.headers, header)

    def watch(self, ring: Callable[[], object]) -> None:
        """Ring when the caller has gone; who asks last is told."""
        if self.leaving is not None:
            self.leaving.close()
        if self.gone:
            ring()
        elif self.receive is not None:
            self.leaving = Leaving(self.receive, self, ring)

    async def send(self, frames: Sequence[bytes], *, more: bool = True, raw: bytes = b"") -> None:
        """Send frames as events, but wait no longer than `stuck_s` for a reader that takes nothing."""
        data = raw or b"".join([sse.BEFORE + frame + sse.BEHIND for frame in frames])
        is_first = not self.streaming
        self.is_whole = not more
        if is_first:
            self.streaming = True
            head = [*sse.HEADERS, *self.headers]
            await self.transmit({"type": "http.response.start", "status": 200, "headers": head})
        piece = {"type": "http.response.body", "body": data, "more_body": more}
        if is_first and len(data) <= SMALL:
            await self.transmit(piece)
            return
        try:
            async with asyncio.timeout(self.stuck_s):
                await self.transmit(piece)
        except TimeoutError:
            self.gone = True

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last frame; after one send with no more to come, a closing client is no disconnect."""
        if self.gone:
            return
        if self.streaming or frames:
            await self.send(frames if last is None else [*frames, last], more=False)
        elif last is None:
            await self.json(204, b"")
        else:
            self.is_whole = True
            head = [JSON, (b"content-length", b"%d" % len(last)), *self.headers]
            await self.transmit({"type": "http.response.start", "status": 200, "headers": head})
            await self.transmit({"type": "http.response.body", "body": last})

    async def keep_alive(self) -> None:
        """A comment: bytes for whoever stands between, no event."""
        await self.send((), raw=sse.comment("alive"))

    async def json(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        """Answer at once and whole."""
        self.is_whole = True
        kind = (JSON,) if body else ()
        head = [*kind, (b"content-length", b"%d" % len(body)), *self.headers, *headers]
        await self.transmit({"type": "http.response.start", "status": status, "headers": head})
        await self.transmit({"type": "http.response.body", "body": body})

    async def push(self, data: bytes, *, more: bool = True) -> None:
        """Send a piece of a stream that is not JSON-RPC."""
        await self.send((), raw=data, more=more)

    def end(self, why: str) -> None:
        """Whoever asked is let in no more: to those who answer as if they had left, but they are told why."""
        if not (self.is_whole or self.gone):
            self.gone, self.denied = True, why
            if self.leaving is not None:
                self.leaving.ring()


class Era(Protocol):
    """Serves the requests of the handshake era."""

    async def serve(self, scope: Scope, receive: Receive, reply: Reply, caller: str) -> None: ...


class Http:
    """The ASGI application of a gateway: `/mcp` here, everything else by `routes`."""

    def __init__(self, site: Site, guard: Guard, sessions: Era, routes: App) -> None:
        self._site = site
        self._guard = guard
        self._sessions = sessions
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") == "HEAD" and scope["path"] == "/mcp":
            return await self._head(send)
        if scope["type"] != "http" or scope["path"] != "/mcp":
            return await self._routes(scope, receive, send)
        guard, reply = self._guard, Reply(send, self._site.settings.stuck_s, (), receive)
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        try:
            is_open = headers.get("host") in guard.hosts and not guard.is_closed and not guard.mcp_token
            caller = LOCAL if is_open and SIGNS.isdisjoint(headers) else await guard.admit(scope, reply)
            if headers.get("mcp-protocol-version", mcp_2025.LATEST) in mcp_2025.VERSIONS:
                await self._sessions.serve(scope, receive, reply, caller)
            elif scope["method"] != "POST":
                await reply.json(405, b"", (b"allow", b"POST"))
            else:
                await self._post(scope, headers, receive, reply, caller)
        except Fault as fault:
            await reply.json(fault.status, messages.error(fault))
        except Denied as error:
            told = messages.error(Fault(INVALID_REQUEST, str(error)))
            await reply.json(error.status, told, *refusal(guard, error))
        except AfootError as error:
            await reply.json(503, messages.error(Fault(INTERNAL_ERROR, str(error)), reply.request))
        except ConnectionResetError:
            pass  # the caller left before it had said everything
        finally:
            if reply.leaving is not None:
                reply.leaving.close()
            if reply.leave is not None:
                await self._part(reply, reply.leave)

    async def _part(self, reply: Reply, leave: Callable[[Guest], None]) -> None:
        """The asker is answered; or, if it is let in no more, told why this ends early."""
        leave(reply)
        if reply.is_whole or not reply.denied:
            return
        fault = Fault(INVALID_REQUEST, reply.denied)
        fault.id = reply.request
        if not reply.streaming:
            await reply.json(401, messages.error(fault), *refusal(self._guard, Denied(401, reply.denied)))
        elif fault.id is not None:
            await reply.send([messages.error(fault)], more=False)
        else:  # the handshake era goes on with a stream that just ends
            await reply.send((), raw=sse.comment(reply.denied), more=False)

    async def _head(self, send: Send) -> None:
        """The head of a HEAD alone would wait for a body, so the connection ends with it."""
        head = [(b"allow", b"GET, POST, DELETE"), (b"connection", b"close")]
        await Reply(send, self._site.settings.stuck_s).json(405, b"", *head)

    async def _post(
        self, scope: Scope, headers: dict[str, str], receive: Receive, reply: Reply, caller: str
    ) -> None:
        """One request of 2026-07-28."""
        site, limit = self._site, self._site.settings.max_body_bytes
        if headers.get("content-type") != "application/json" or headers.get("accept") != _BOTH:
            check_kinds(headers)
        message = await receive()
        body = message.get("body", b"")
        if len(body) > limit or message.get("more_body") or message["type"] != "http.request":
            body = await read_rest(message, receive, limit)
        if reply.denied:  # it may have waited long with the rest of it
            raise ConnectionResetError
        asked = mcp.read(body, headers)
        if len(headers) != len(scope["headers"]):
            check_once(scope, asked.id)
        if not isinstance(asked, Wanted):
            return await self._plain(asked, headers, reply, caller)
        is_local = caller == LOCAL or not is_bridge(caller)
        if asked.name not in site.engine.catalog.known and not await self._settled(reply):
            return
        talk = Conversation(site, asked, caller, reply, _MODERN if is_local else _BRIDGED)
        reply.request, talk.due = asked.id, reply.until  # the next request of it comes with a newer token
        try:
            # A bridge knows no schema to mirror arguments by, so no headers are compared for it.
            mirrored = headers if is_local else None
            await again(talk, mirrored) if asked.state is not None or asked.key else talk.open(mirrored)
        except Fault as fault:
            fault.id = asked.id
            raise
        await talk.hold()

    async def _settled(self, reply: Reply) -> bool:
        """Wait for servers that are just being opened; False if the caller has left meanwhile (X1)."""
        reply.watch(Bell().ring)
        await self._site.settled()
        return not reply.gone

    async def _plain(self, message: Envelope, headers: dict[str, str], reply: Reply, caller: str) -> None:
        """A request that starts no call."""
        if message.is_notification:
            return await self._notified(headers, reply)
        if message.is_response:
            raise Fault(INVALID_REQUEST, "a response is no request; send answers as inputResponses")
        assert isinstance(message.id, int | str)
        bell, reply.request = Bell(), message.id
        try:
            if message.method == "subscriptions/listen":
                wanted = mcp.read_listen(message, headers)
                reply.watch(bell.ring)
                stays = self._site.callers.present(caller, self._site.servers)  # a bridge always holds one
                carried = await watched(self._site, message, wanted, caller, bell)
                ear = ear_for(wanted, bell)
                with carried, nullcontext() if caller == LOCAL else stays:
                    await listen(self._site, message.id, wanted, carried.over(reply), ear)
                return
            if message.method in METHODS:
                return await reply.json(200, await tasks.answer(self._site, message, headers, caller))
            asked = mcp.read_plain(message, headers)
            if message.method in LOOKUPS:
                work = answer_modern(self._site, look_up(message, asked, caller))
                await hold(self._site, message.id, reply, bell, work)
            else:
                await self._site.settled()
                await reply.json(200, answer_plain(self._site, message))
        except Fault as fault:
            fault.id = message.id
            raise

    async def _notified(self, headers: dict[str, str], reply: Reply) -> None:
        """A notification is taken and dropped: this era has none that a client sends over HTTP."""
        version = headers.get("mcp-protocol-version", "")
        if version != mcp.VERSION:
            raise mcp.unsupported(version)
        await reply.json(202, b"")


class Joined:
    """A transport that keeps the head of a response until its body comes, which is always at once.

    The two then travel in one system call and one packet.
    """

    def __init__(self, transport: Any) -> None:
        self._head = b""
        self._transport = self.plain = transport
        self._write = transport.write
        self.is_closing: Callable[[], bool] = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write, with the head that waits."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n") and b" 100 " not in data[:14]:
            self._head = data
            return
        self._write(data)

    def close(self) -> None:
        """Close, with nothing left behind."""
        if self._head:
            self._write(self._head)
            self._head = b""
        self._transport.close()
        if self._transport.get_write_buffer_size():  # closing waits for a reader, who may never come
            asyncio.get_running_loop().call_later(CLOSING_S, self._transport.abort)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
