"""`make_server` configures uvicorn for a gateway: no signal handlers, no access log, one packet a response.

`CoalescingTransport` is why a response leaves in one piece. uvicorn writes the head and the body of a
response one after the other, which costs a system call and a packet each. The transport keeps the head until
the body comes, which is always at once.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from afoot.serve.api.console import SECURITY_HEADERS
from afoot.serve.mcp.asgi import App

CLOSE_TIMEOUT_S = 30.0  # how long a closed connection may take to hand over what was written
WEBSOCKET_MAX_BYTES = 40 * 1024 * 1024  # a result of 32 MB, and what is around it


class UvicornServer(uvicorn.Server):
    """Serves until `should_exit`; the gateway handles signals, as its calls must wind down first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 over a `CoalescingTransport`."""

    def connection_made(self, transport: Any) -> None:
        """Begin to read requests, and write responses in one piece."""
        super().connection_made(CoalescingTransport(transport))  # pyrefly: ignore[bad-argument-type]

    def handle_websocket_upgrade(self) -> None:
        """Write directly from now on: a WebSocket has no heads that wait for a body."""
        transport: Any = self.transport
        self.transport = transport.plain
        super().handle_websocket_upgrade()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket; a refused one is a normal answer, and is not logged as a failure."""

    async def send(self, message: Any) -> None:
        """Send, and take note of the end of a refusal."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True


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


def make_server(application: App, tls_cert: str = "", tls_key: str = "") -> UvicornServer:
    """A server for this application; with a certificate it speaks TLS."""
    config = uvicorn.Config(
        application, interface="asgi3", http=HttpProtocol, ws=WebSocketProtocol,
        ws_max_size=WEBSOCKET_MAX_BYTES, ws_ping_interval=None, ws_per_message_deflate=False,
        lifespan="off", access_log=False, log_config=None,
        server_header=False, date_header=False, proxy_headers=False, timeout_graceful_shutdown=2,
        headers=list(SECURITY_HEADERS), ssl_certfile=tls_cert or None, ssl_keyfile=tls_key or None,
    )  # fmt: skip
    return UvicornServer(config)
