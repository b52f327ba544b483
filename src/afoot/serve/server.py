"""uvicorn as this gateway uses it: no signal handlers, no access log, and a response leaves in one piece."""

import contextlib
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from afoot.serve.console import SAFE
from afoot.serve.http import App, Joined

LONGEST_FRAME = 40 * 1024 * 1024  # a result of 32 MB, and what is around it


class Server(uvicorn.Server):
    """Serves until `should_exit`; the gateway handles signals, as its calls must wind down first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def server(application: App, tls_cert: str = "", tls_key: str = "") -> Server:
    """A server for this application; with a certificate it speaks TLS."""
    config = uvicorn.Config(
        application, http=Protocol, ws=Upgrade, ws_max_size=LONGEST_FRAME, ws_ping_interval=None,
        ws_per_message_deflate=False, lifespan="off", access_log=False, log_config=None,
        server_header=False, date_header=False, proxy_headers=False, timeout_graceful_shutdown=2,
        headers=list(SAFE), ssl_certfile=tls_cert or None, ssl_keyfile=tls_key or None,
    )  # fmt: skip
    return Server(config)


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 whose head and first body travel together: one system call and one packet, not two."""

    def connection_made(self, transport: Any) -> None:
        """Begin, writing through a transport that holds heads back."""
        super().connection_made(Joined(transport))  # pyrefly: ignore[bad-argument-type]

    def handle_websocket_upgrade(self) -> None:
        """What becomes a WebSocket has no bodies to wait for."""
        transport: Any = self.transport
        self.transport = transport.plain
        super().handle_websocket_upgrade()


class Upgrade(WebSocketsSansIOProtocol):
    """A WebSocket, or the answer that there will be none, which is no fault of ours to log."""

    async def send(self, message: Any) -> None:
        """Send, and know when everything was answered."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True
