"""`open_listeners` opens the sockets of a gateway: at its address if that is safe, and on loopback (S2)."""

import socket
from urllib.parse import urlsplit

from msgspec import Struct

from afoot.config.settings import Settings
from afoot.config.tables import (
    EVERYWHERE,
    LOOPBACK,
    access_problem,
    missing_for_listening,
    requires_token,
)
from afoot.errors import CallerError
from afoot.serve.access.guard import accepted_hosts
from afoot.serve.http_server.certificate import check_certificate
from afoot.serve.http_server.connections import Connections
from afoot.serve.http_server.uvicorn_server import UvicornServer, make_server
from afoot.serve.mcp.asgi import App

BACKLOG = 2048  # connections that wait to be accepted


class Listeners(Struct, frozen=True):
    """The sockets of a gateway. `inner` is on loopback, where `outer` is not, or speaks TLS."""

    outer: socket.socket
    inner: socket.socket | None
    url: str  # for this machine's own commands
    public: str  # for everybody else
    hosts: frozenset[str]  # the Host headers that mean us
    is_closed: bool  # whether callers must prove who they are

    def servers(self, application: App, settings: Settings) -> list[tuple[UvicornServer, socket.socket]]:
        """A server for each socket; they count their connections together."""
        access = settings.access
        bounds = Connections(settings.connections, settings.max_body_bytes)
        outer = make_server(application, access.tls_cert, access.tls_key, connections=bounds)
        if self.inner is None:
            return [(outer, self.outer)]
        return [(outer, self.outer), (make_server(application, connections=bounds), self.inner)]


def open_listeners(settings: Settings, is_known: bool) -> Listeners:
    """Open the sockets; raises CallerError, which says what is missing. `is_known`: callers have tokens."""
    access = settings.access
    host, port = _address(settings.http)
    if problem := access_problem(access):
        raise CallerError(problem)
    is_known = is_known or bool(settings.mcp_token)
    if missing := missing_for_listening(host, access, is_known, settings.allow_hosts):
        raise CallerError(f"http {settings.http}: before others may reach it, it needs {missing}")
    if access.has_tls:
        check_certificate(access.tls_cert, access.tls_key)
    outer = _bound(settings.http, host, port)
    is_plain = host in LOOPBACK and not access.has_tls
    inner = None if is_plain else _bound("127.0.0.1:0", "127.0.0.1", 0)
    scheme = "https" if access.has_tls else "http"
    own = _url(scheme, outer)
    url = own if inner is None else _url("http", inner)
    names = [own, url, access.public_url]
    named = [urlsplit(one).netloc for one in names if one] + settings.allow_hosts
    closed = requires_token(host, access, settings.mcp_token)
    accepted = accepted_hosts(_port(outer), named)
    if inner is not None:
        accepted |= accepted_hosts(_port(inner), ())
    # The address of a gateway that listens everywhere is no name for it: clients use its first host name.
    known = f"{scheme}://{settings.allow_hosts[0]}" if host in EVERYWHERE and settings.allow_hosts else own
    return Listeners(outer, inner, url, access.public_url.rstrip("/") or known, accepted, closed)


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


def _url(scheme: str, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
