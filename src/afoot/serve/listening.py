"""Where a gateway listens: at its address if that is safe, and on loopback for this machine's own (S2)."""

import asyncio
import socket
import ssl
import urllib.request
from urllib.parse import urlsplit

from msgspec import Struct

from afoot.config import Settings
from afoot.core.access import LOOPBACK, Access, is_closed, lacking, wrong
from afoot.errors import CallerError
from afoot.serve.guard import hosts
from afoot.serve.http import App
from afoot.serve.server import Server, server

BACKLOG = 2048
FETCH_S = 10.0
MOST_BYTES = 1024 * 1024


class Listening(Struct, frozen=True):
    """The sockets. `inner` is loopback's own, where the address is not or speaks TLS."""

    outer: socket.socket
    inner: socket.socket | None
    url: str  # for this machine's own commands
    public: str  # for everybody else
    hosts: frozenset[str]  # the Host headers that mean us
    is_closed: bool  # whether callers must prove who they are

    def servers(self, application: App, access: Access) -> list[tuple[Server, socket.socket]]:
        """What serves an application at each of them."""
        found = [(server(application, access.tls_cert, access.tls_key), self.outer)]
        return found if self.inner is None else [*found, (server(application), self.inner)]


def listen(settings: Settings, is_known: bool) -> Listening:
    """Open the sockets; raises CallerError saying what is missing. `is_known`: callers have tokens."""
    access, (host, port) = settings.access, _address(settings.http)
    if problem := wrong(access):
        raise CallerError(problem)
    is_known = is_known or bool(settings.mcp_token)
    if missing := lacking(host, access, is_known, settings.allow_hosts):
        raise CallerError(f"http {settings.http}: before others may reach it, it needs {missing}")
    if access.has_tls:
        _certificate(access.tls_cert, access.tls_key)
    outer = _bound(settings.http, host, port)
    is_plain = host in LOOPBACK and not access.has_tls
    inner = None if is_plain else _bound("127.0.0.1:0", "127.0.0.1", 0)
    own = _named("https" if access.has_tls else "http", outer)
    url = own if inner is None else _named("http", inner)
    names = [own, url, access.public_url]
    named = [urlsplit(one).netloc for one in names if one] + settings.allow_hosts
    closed = is_closed(host, access, settings.mcp_token)
    mean_us = hosts(_port(outer), named) | (hosts(_port(inner), ()) if inner is not None else frozenset())
    return Listening(outer, inner, url, access.public_url.rstrip("/") or own, mean_us, closed)


async def fetch(url: str) -> bytes:
    """What stands at an address of somebody we trust; raises OSError."""

    def get() -> bytes:
        with urllib.request.urlopen(url, timeout=FETCH_S) as response:
            body: bytes = response.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise OSError(f"{url}: over {MOST_BYTES} bytes")
        return body

    return await asyncio.to_thread(get)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    try:
        return host.strip("[]") or "127.0.0.1", int(port)
    except ValueError:
        raise CallerError(f"http {text}: must be HOST:PORT") from None


def _certificate(cert: str, key: str) -> None:
    """Say at the start what is wrong with them, not at the first connection."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise CallerError(f"access.tls_cert {cert}, access.tls_key {key}: cannot be used: {error}") from None


def _bound(address: str, host: str, port: int) -> socket.socket:
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise CallerError(
            f"http {address}: cannot listen there: {error}; name another port, or 0 for any"
        ) from None
    listener.setblocking(False)
    return listener


def _named(scheme: str, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
