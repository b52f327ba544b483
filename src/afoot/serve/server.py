"""uvicorn as this gateway uses it: no signal handlers, no access log, and a response leaves in one piece."""

import contextlib
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from afoot.serve.http import App, Joined


class Server(uvicorn.Server):
    """Serves until `should_exit`; the gateway handles signals, as its calls must wind down first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def server(application: App) -> Server:
    """A server for this application."""
    config = uvicorn.Config(
        application, http=Protocol, ws="none", lifespan="off", access_log=False, log_config=None,
        server_header=False, date_header=False, proxy_headers=False, timeout_graceful_shutdown=2,
    )  # fmt: skip
    return Server(config)


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 whose head and first body travel together: one system call and one packet, not two."""

    def connection_made(self, transport: Any) -> None:
        """Begin, writing through a transport that holds heads back."""
        super().connection_made(Joined(transport))  # pyrefly: ignore[bad-argument-type]
