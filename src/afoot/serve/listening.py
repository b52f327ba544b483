"""Where a gateway listens: at its address if that is safe, and on loopback for this machine's own (S2)."""

import asyncio
import socket
import time
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from afoot.config import Settings
from afoot.core.access import EVERYWHERE, LOOPBACK, Access, is_closed, is_sound, lacking, wrong
from afoot.errors import CallerError
from afoot.serve import certificate
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
        certificate.check(access.tls_cert, access.tls_key)
    outer = _bound(settings.http, host, port)
    is_plain = host in LOOPBACK and not access.has_tls
    inner = None if is_plain else _bound("127.0.0.1:0", "127.0.0.1", 0)
    scheme = "https" if access.has_tls else "http"
    own = _named(scheme, outer)
    url = own if inner is None else _named("http", inner)
    names = [own, url, access.public_url]
    named = [urlsplit(one).netloc for one in names if one] + settings.allow_hosts
    closed = is_closed(host, access, settings.mcp_token)
    mean_us = hosts(_port(outer), named) | (hosts(_port(inner), ()) if inner is not None else frozenset())
    # Where it listens everywhere, its own address is nobody's: clients know it by the first name it has.
    known = f"{scheme}://{settings.allow_hosts[0]}" if host in EVERYWHERE and settings.allow_hosts else own
    return Listening(outer, inner, url, access.public_url.rstrip("/") or known, mean_us, closed)


async def fetch(url: str) -> bytes:
    """What stands at an address of somebody we trust; raises OSError, and after FETCH_S at the latest."""
    try:
        async with asyncio.timeout(FETCH_S):
            return await asyncio.to_thread(_get, url, time.monotonic() + FETCH_S)
    except (TimeoutError, HTTPException) as error:
        raise OSError(f"{url}: {str(error) or f'no answer within {FETCH_S:g} s'}") from None


class _Careful(urllib.request.HTTPRedirectHandler):
    """Follows nobody to where what stands there could be changed on its way."""

    def redirect_request(self, *given: Any) -> Any:  # pyrefly: ignore[bad-override]
        """The next request; raises OSError."""
        if not is_sound(url := given[-1]):
            given[1].close()  # what led there
            raise OSError(f"it leads to {url}, which is not safe")
        return super().redirect_request(*given)


def _get(url: str, due: float) -> bytes:
    """All of it, if it is not too large, and in time: this is a thread that nobody can end from outside."""
    body = b""
    with urllib.request.build_opener(_Careful).open(url, timeout=FETCH_S) as response:
        while piece := response.read1(65_536):
            body += piece
            if len(body) > MOST_BYTES:
                raise OSError(f"{url}: over {MOST_BYTES} bytes")
            if time.monotonic() > due:
                raise TimeoutError(f"not whole within {FETCH_S:g} s")
    return body


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    try:
        return host.strip("[]") or "127.0.0.1", int(port)
    except ValueError:
        raise CallerError(f"http {text}: must be HOST:PORT") from None


def _bound(address: str, host: str, port: int) -> socket.socket:
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise CallerError(
            f"http {address}: cannot listen there: {error};"
            " name another with --http HOST:PORT, as --http 127.0.0.1:0 for any port that is free"
        ) from None
    listener.setblocking(False)
    return listener


def _named(scheme: str, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
