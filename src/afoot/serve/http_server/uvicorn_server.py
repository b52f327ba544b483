"""`make_server` configures uvicorn for a gateway: no signal handlers, no access log, one packet a response.

`HttpProtocol` holds the bounds of every request before it is known whose it is (S5): it counts bytes and
fields before they pile up in the parser, and ends what comes too slowly. `CoalescingTransport` is why a
response leaves in one piece. uvicorn writes the head and the body of a response one after the other, which
costs a system call and a packet each. The transport keeps the head until the body comes, which is always at
once.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NoReturn
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from afoot.config.tables import ConnectionSettings
from afoot.serve.access.peer import LOOPBACK, PEER, user_or_peer
from afoot.serve.console import SECURITY_HEADERS
from afoot.serve.http_server.acceptor import Acceptor
from afoot.serve.http_server.connections import Connections
from afoot.serve.http_server.tls import TlsContext
from afoot.serve.mcp.asgi import WEBSOCKET_PROVED, App, OneStepResponse

CLOSE_TIMEOUT_S = 30.0  # how long a closed connection may take to hand over what was written
WEBSOCKET_MAX_BYTES = 40 * 1024 * 1024  # a result of 32 MB, and what is around it
UNPROVED_MAX_BYTES = 64 * 1024  # of all that a WebSocket sends before its proof
MAX_BODY_BYTES = 4 * 1024 * 1024
PIECE_BYTES = 64 * 1024  # read between two checks of the bounds
FREE_CHUNKS = 1024  # of any size; more of them must have so many bytes in the mean, as each takes a while
MEAN_CHUNK_BYTES = 16
# A body over the limit gets the application's own answer, which is written before so much more has come.
BODY_SLACK_BYTES = 1024 * 1024
# After a refusal the rest of the request is read and dropped for a while: a client that still sends would
# otherwise get a reset in place of the answer.
LINGER_S = 2.0
LINGER_BYTES = 1024 * 1024

_NO_PIPELINE: Any = ()  # a queue in each connection, always empty, would cost it 0.8 KB
_BETWEEN, _HEAD, _BODY = range(3)  # the part of a request that comes next
_CHECKED_FIELDS = frozenset((b"host", b"expect"))
_JSON_HEAD = b"".join(
    [
        STATUS_LINE[200],
        *[f"{name.lower()}: {value}\r\n".encode("latin-1") for name, value in SECURITY_HEADERS],
        b"content-type: application/json\r\ncontent-length: ",
    ]
)


class UvicornServer(uvicorn.Server):
    """Serves until `should_exit`; the gateway handles signals, as its calls must wind down first."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: Any = None) -> None:
        """Listen by acceptors of our own."""
        config = self.config
        await self.lifespan.startup()
        protocol: Any = config.http_protocol_class
        make = functools.partial(protocol, config=config, server_state=self.server_state, app_state={})
        context = TlsContext() if config.ssl_certfile else None
        if context is not None and config.ssl_certfile:
            context.load_cert_chain(config.ssl_certfile, config.ssl_keyfile)
        servers: Any = [Acceptor(one, context, make, self._connections) for one in sockets]
        for server in servers:
            server.start()
        self.servers = servers
        self.started = True


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 over a `CoalescingTransport`, within bounds.

    Requests are not pipelined: one that comes before the response to the last is dropped, and the connection
    ends with that response, as HTTP allows. So a request can always be told that its client has left.
    """

    # In slots, because a dictionary of more than 30 attributes is no longer shared between instances: it
    # would cost every connection 1.4 KB.
    __slots__ = (
        "_body_bytes", "_bounds", "_chunks", "_content_bytes", "_dropped_bytes", "_has_ended", "_has_host",
        "_head_bytes", "_is_deaf", "_max_fields", "_next", "_refusal", "_settings", "_unused_s",
        "_window_bytes", "due", "replaces",
    )  # fmt: skip

    def __init__(self, *args: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*args, **named)
        self.pipeline = _NO_PIPELINE
        self.due = inf
        self.replaces: Callable[[], None] | None = None  # ends the count of the handshake before this
        self._bounds = connections
        self._settings = settings = connections.settings
        self._max_fields = settings.head_fields
        self._unused_s = settings.unused_s
        self._next = _BETWEEN
        self._has_ended = False  # a request ended in the piece that is read
        self._has_host = False
        self._head_bytes = 0
        self._chunks = 0
        self._body_bytes = 0  # with chunk heads and trailers
        self._content_bytes = 0  # without
        self._window_bytes = -1  # of the body before this window; -1: no window has begun
        self._is_deaf = False  # everything that comes is dropped
        self._dropped_bytes = 0
        self._refusal: tuple[int, str] | None = None  # why a callback stopped the parser

    # The life of the connection

    def connection_made(self, transport: Any) -> None:
        """Begin to read requests, if the peer may have another connection; write responses in one piece."""
        super().connection_made(CoalescingTransport(transport))  # pyrefly: ignore[bad-argument-type]
        if self.replaces is not None:
            self.replaces()
        self.due = self.loop.time() + self._settings.head_s
        local: Any = self.server
        peer = user_or_peer(self.client, local) if self.client and local else LOOPBACK
        self.app_state = {**self.app_state, PEER: peer}  # becomes `state` of every scope of this connection
        if not self._bounds.admit(self, peer):
            self._refuse(503, "too many connections from here: close some, or use them again")
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the request that is in progress."""
        self._bounds.leave(self)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Write directly from now on: a WebSocket has no heads that wait for a body."""
        transport: Any = self.transport
        self.transport = transport.plain
        self.due = inf  # the link has clocks of its own
        self._next = _BODY
        make: Any = functools.partial(WebSocketProtocol, on_lost=lambda: self._bounds.leave(self))
        self.ws_protocol_class = make
        super().handle_websocket_upgrade()

    def is_waiting(self) -> bool:
        """Whether the connection waits for a request."""
        return self._next != _BODY and (self.cycle is None or self.cycle.response_complete)

    def is_unused(self) -> bool:
        """Whether no request ever came."""
        return self.cycle is None

    def drop(self) -> None:
        """End at once."""
        self.transport.abort()

    def on_due(self, now: float) -> None:
        """End what takes too long."""
        if self._is_deaf:
            self.due = inf
            self.transport.abort()
        elif self._next == _BODY:
            self._check_rate(now)
        elif self._head_bytes:
            self._refuse(408, f"the head of the request was not whole after {self._settings.head_s:g} s")
        else:
            self.due = inf
            self.transport.close()

    # Bytes

    def data_received(self, data: bytes) -> None:
        """Give bytes to the parser, in pieces that are no longer than a head may be."""
        while data and not self._is_deaf:
            room = PIECE_BYTES if self._next == _BODY else self._settings.head_bytes - self._head_bytes
            piece = data[:room]
            self._has_ended = False
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                if self._should_upgrade():
                    self.handle_websocket_upgrade()
                    return
                room = upgrade.args[0]  # the end of the head
                self._read_without_upgrade()
            except httptools.HttpParserError:
                self._refuse(*(self._refusal or (400, "this is no HTTP/1.1 request")))
                return
            self._count(min(room, len(piece)))
            data = data[room:]
        if data:
            self._drop(len(data))

    def _read_without_upgrade(self) -> None:
        """Read the head once more without the wish for another protocol: none but WebSockets is spoken.

        The parser skips the body of a request with such a wish. It would take the body for the next request.
        """
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.scope["http_version"].encode())]
        for name, value in self.headers:
            if name == b"connection":
                options = [option.strip() for option in value.split(b",")]
                value = b", ".join([option for option in options if option.lower() != b"upgrade"])
            if name != b"upgrade":
                lines.append(b"%b: %b" % (name, value))
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn makes it
        self.parser.feed_data(b"\r\n".join([*lines, b"\r\n"]))

    def _count(self, size: int) -> None:
        """Check the bounds of the request that is not whole yet."""
        if self._next == _BODY:
            self._count_body(size)
        elif not self._has_ended:
            if not self._head_bytes:
                self.due = self.loop.time() + self._settings.head_s
            self._head_bytes += size
            if self._head_bytes >= self._settings.head_bytes:
                self._refuse(431, f"the head of the request is over {self._settings.head_bytes} bytes")

    def _count_body(self, size: int) -> None:
        content = self._content_bytes
        self._body_bytes += size
        if self._window_bytes < 0:
            self._window_bytes = 0
            self.due = self.loop.time() + self._settings.head_s
        if content > self._bounds.max_body_bytes + BODY_SLACK_BYTES:
            self._refuse(413, f"body: over {self._bounds.max_body_bytes} bytes (raise max_body_bytes)")
        elif self._body_bytes > 2 * content + 2 * self._settings.head_bytes:
            self._refuse(400, "the chunks of the body carry more framing than content")

    def _check_rate(self, now: float) -> None:
        least = self._settings.body_rate_bytes
        if self.flow.read_paused or self._body_bytes - self._window_bytes >= least * self._settings.head_s:
            self._window_bytes = self._body_bytes
            self.due = now + self._settings.head_s
        else:
            self._refuse(408, f"the body came with less than {least} bytes a second")

    # The parser's callbacks. They replace those of uvicorn, so that a header costs one call and not two.

    def on_message_begin(self) -> None:
        """A request begins."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop(400, "a request came before the response to the last")
        super().on_message_begin()
        self._next = _HEAD
        self._has_host = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer: those come into a list of their own, which nobody reads."""
        name = name.lower()
        if name in _CHECKED_FIELDS:
            self._check_field(name, value)
        headers = self.headers
        headers.append((name, value))
        if len(headers) > self._max_fields:
            kind = "trailers" if self._next == _BODY else "headers"
            self._stop(431, f"the request has over {self._max_fields} {kind}")

    def _check_field(self, name: bytes, value: bytes) -> None:
        if self._next == _BODY:
            return
        if name == b"host":
            if self._has_host:  # a proxy in front may have checked the other one
                self._stop(400, "header host: stands more than once")
            self._has_host = True
        else:
            if value.lower() != b"100-continue":
                self._stop(417, "header expect: only 100-continue can be met")
            self.expect_100_continue = True

    def on_headers_complete(self) -> None:
        """Start the request, if its target is a path."""
        if not self.url.startswith(b"/"):
            self._stop(400, "the target of a request must be a path, as /mcp")
        parser = self.parser
        version = parser.get_http_version()
        if version != "1.1":
            self.scope["http_version"] = version
        self.scope["method"] = parser.get_method().decode("ascii")
        if parser.should_upgrade():  # it becomes a WebSocket, or is read once more
            if self.scope["method"] == "CONNECT":
                self._stop(400, "this gateway is no proxy")
            return
        self._next = _BODY
        self._head_bytes = self._body_bytes = self._content_bytes = self._chunks = 0
        self._window_bytes = -1
        self._begin_request(version)

    def _begin_request(self, version: str) -> None:
        """Start the application, as uvicorn does it, but with a response that can be sent in one step.

        What is left out are pipelined requests, and a limit of requests at once: neither exists here.
        """
        scope = self.scope
        target = httptools.parse_url(self.url)
        path = target.path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = target.path
        scope["query_string"] = target.query or b""
        self.cycle = ResponseCycle(
            scope, self.transport, self.flow, self.logger, self.access_logger, False,
            self.server_state.default_headers, asyncio.Event(), self.expect_100_continue,
            version != "1.0" and self.parser.should_keep_alive(), self.on_response_complete,
        )  # fmt: skip
        application: Any = self.app
        self._start_asgi_task(self.cycle, application)
        self.headers = []  # for trailers

    def on_chunk_header(self) -> None:
        """A chunk of the body begins."""
        self._chunks += 1
        if self._chunks > FREE_CHUNKS and self._content_bytes < self._chunks * MEAN_CHUNK_BYTES:
            self._stop(400, "the chunks of the body are too small")

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._content_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self.parser.should_upgrade():
            return  # so the parser says behind the head, whether there is a body or not
        self._next = _BETWEEN
        self._has_ended = True
        cycle = self.cycle
        if cycle is not None and cycle.response_complete:
            self.due = self.loop.time() + self._unused_s
        else:
            self.due = inf
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._next == _BETWEEN and not self._head_bytes:
            self.due = self.loop.time() + self._unused_s

    # Refusals

    def _stop(self, status: int, text: str) -> NoReturn:
        """Stop the parser in a callback."""
        self._refusal = status, text
        raise ValueError(text)

    def _refuse(self, status: int, text: str) -> None:
        """Answer with an error in place of the application, and read no more requests."""
        cycle, self._is_deaf = self.cycle, True
        self.due = self.loop.time() + LINGER_S
        if cycle is not None and not cycle.response_complete and self._next != _BODY:
            # The answer to the request before is on its way, and must not be mixed with this one.
            self.due = inf
            cycle.keep_alive = False
            return
        if cycle is not None and self._next == _BODY:
            if cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = True  # the application has nobody to answer any more
            cycle.message_event.set()
        content = text.encode() + b"\n"
        head = [STATUS_LINE[status]]
        for name, value in self.server_state.default_headers:
            head += [name, b": ", value, b"\r\n"]
        head.append(
            b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            % len(content)
        )
        self.transport.write(b"".join(head))
        self.transport.write(content)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _drop(self, size: int) -> None:
        """Drop what comes after a refusal, or before the end of the last response."""
        self._dropped_bytes += size
        if self._dropped_bytes > LINGER_BYTES and self.due < inf:
            self.transport.abort()


class ResponseCycle(RequestResponseCycle, OneStepResponse):
    """A request and its response; a short JSON response is sent in one step."""

    def respond_json(self, body: bytes) -> bool:
        """Send a response with status 200 and this body; False if it must be sent in messages."""
        is_plain = self.keep_alive and not (self.response_started or self.disconnected)
        if not is_plain or self.flow.write_paused or self.scope["method"] == "HEAD":
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.write(b"%b%d\r\n\r\n%b" % (_JSON_HEAD, len(body), body))
        self.message_event.set()
        self.on_response()
        return True


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket; a refused one is a normal answer, and is not logged as a failure.

    Until the application calls the function `afoot.proved` of the scope, little may be sent (S5).
    """

    def __init__(self, *args: Any, on_lost: Callable[[], None], **named: Any) -> None:
        super().__init__(*args, **named)
        self._on_lost = on_lost
        self._unproved_bytes = 0

    def handle_connect(self, event: Any) -> None:
        """Begin, with a function in the scope that says that the peer is known."""
        super().handle_connect(event)
        if not self.close_sent:
            scope: Any = self.scope
            scope[WEBSOCKET_PROVED] = self._prove

    def data_received(self, data: bytes) -> None:
        """Take bytes in, if they are not too many for a peer that has proved nothing."""
        if self._unproved_bytes >= 0:
            self._unproved_bytes += len(data)
            if self._unproved_bytes > UNPROVED_MAX_BYTES:
                self.transport.abort()
                return
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.close_sent:
            self._refuse_head()

    def _refuse_head(self) -> None:
        """Answer a head that no WebSocket may have, as of a POST: uvicorn would leave the connection open."""
        self.handshake_complete = self.close_sent = True
        answer = b"".join(self.conn.data_to_send())
        self.transport.write(answer or STATUS_LINE[400] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting this connection."""
        self._on_lost()
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:
        """Send, and take note of the end of a refusal."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True

    def _prove(self) -> None:
        self._unproved_bytes = -1


class CoalescingTransport:
    """A transport that keeps the head of a response until its body comes, and writes both together."""

    def __init__(self, transport: Any) -> None:
        self._head = b""
        self._transport = self.plain = transport
        self._write = transport.write
        self.is_closing: Callable[[], bool] = transport.is_closing

    def write(self, data: bytes) -> None:
        """Keep a head, or write data behind the head that waits."""
        if self._head:
            data = self._head + data
            self._head = b""
        elif data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n") and b" 100 " not in data[:14]:
            self._head = data
            return
        self._write(data)

    def close(self) -> None:
        """Write what waits, and close."""
        if self._head:
            self._write(self._head)
            self._head = b""
        self._transport.close()
        if self._transport.get_write_buffer_size():  # closing waits for a reader, who may never come
            asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def make_server(
    application: App, tls_cert: str = "", tls_key: str = "", connections: Connections | None = None
) -> UvicornServer:
    """A server for this application; with a certificate it speaks TLS. Servers may share `connections`."""
    bounds = Connections(ConnectionSettings(), MAX_BODY_BYTES) if connections is None else connections
    http: Any = functools.partial(HttpProtocol, connections=bounds)
    config = uvicorn.Config(
        application, interface="asgi3", http=http, ws=WebSocketProtocol,
        ws_max_size=WEBSOCKET_MAX_BYTES, ws_ping_interval=None, ws_per_message_deflate=False,
        lifespan="off", access_log=False, log_config=None,
        server_header=False, date_header=False, proxy_headers=False, timeout_graceful_shutdown=2,
        headers=list(SECURITY_HEADERS), ssl_certfile=tls_cert or None, ssl_keyfile=tls_key or None,
    )  # fmt: skip
    return UvicornServer(config, bounds)
