"""`open_listeners` opens the sockets of a gateway: at its address if that is safe, and on loopback (S2).

`check_certificate` says at the start what is wrong with a certificate. `IdleExit` says when a gateway that
was started for a caller may end.
"""

import asyncio
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from afoot.config.settings import Settings
from afoot.config.tables import (
    EVERYWHERE,
    LOOPBACK,
    access_problem,
    is_secure_url,
    missing_for_listening,
    requires_token,
)
from afoot.core.ports import Clock
from afoot.engine.followers import Wakeup
from afoot.errors import CallerError
from afoot.serve.access.guard import accepted_hosts
from afoot.serve.connections import Connections
from afoot.serve.mcp.asgi import App, Receive, Scope, Send
from afoot.serve.uvicorn_server import UvicornServer, make_server

BACKLOG = 2048  # connections that wait to be accepted
FETCH_S = 10.0
FETCH_MAX_BYTES = 1024 * 1024
WRONG_TIME: Final = {9: "is not valid yet", 10: "has expired"}  # by the numbers of OpenSSL's errors


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


class IdleExit:
    """An application around another that knows when the last request was answered."""

    def __init__(self, application: App, clock: Clock, is_busy: Callable[[], bool]) -> None:
        """`is_busy`: whether something goes on without a request, such as a call or a session."""
        self._application = application
        self._clock = clock
        self._is_busy = is_busy
        self._open = 0
        self._seen = clock.now()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open += 1
        try:
            await self._application(scope, receive, send)
        finally:
            self._open -= 1
            self._seen = self._clock.now()

    async def wait_until_idle(self, idle_s: float) -> None:
        """Wait until there was no request, and nothing went on, for so long."""
        wakeup, clock = Wakeup(), self._clock
        while True:
            now = clock.now()
            if self._open or self._is_busy():
                self._seen = now
            due = self._seen + idle_s
            if now >= due:
                return
            clock.at(min(due, now + idle_s / 10), wakeup.wake)  # calls come and go without a request
            await wakeup.wait()


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


def check_certificate(cert: str, key: str) -> None:
    """Check that a certificate and its key can be used, and are valid now; raises CallerError."""
    for name, file in (("tls_cert", cert), ("tls_key", key)):
        try:
            with open(file, "rb"):
                pass
        except OSError as error:
            raise CallerError(f"access.{name} {file}: cannot be read ({error.strerror})") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise CallerError(f"access.tls_cert {cert}, access.tls_key {key}: cannot be used: {error}") from None
    if why := WRONG_TIME.get(_verify_code(context, cert)):
        raise CallerError(f"access.tls_cert {cert}: {why}; every client would refuse it")


def _verify_code(context: ssl.SSLContext, cert: str) -> int:
    """OpenSSL's number for what a client that trusts this certificate finds wrong with it; 0: nothing."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(cert)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    for _ in range(3):  # a handshake takes no more turns
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_code
            except ssl.SSLError:
                return 0
    return 0


async def fetch(url: str) -> bytes:
    """Fetch a small document from an address that we trust; raises OSError, after FETCH_S at the latest."""
    try:
        async with asyncio.timeout(FETCH_S):
            return await asyncio.to_thread(_get, url, time.monotonic() + FETCH_S)
    except (TimeoutError, HTTPException) as error:
        raise OSError(f"{url}: {str(error) or f'no answer within {FETCH_S:g} s'}") from None


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to an address where others could change the document on its way."""

    def redirect_request(self, *given: Any) -> Any:  # pyrefly: ignore[bad-override]
        """Make the next request; raises OSError."""
        if not is_secure_url(url := given[-1]):
            given[1].close()  # what led there
            raise OSError(f"it leads to {url}, which is not safe")
        return super().redirect_request(*given)


def _get(url: str, due: float) -> bytes:
    """Read the document. It looks at the time itself: nobody can end this thread from outside."""
    body = b""
    with urllib.request.build_opener(_SafeRedirects).open(url, timeout=FETCH_S) as response:
        while piece := response.read1(65_536):
            body += piece
            if len(body) > FETCH_MAX_BYTES:
                raise OSError(f"{url}: over {FETCH_MAX_BYTES} bytes")
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


def _url(scheme: str, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
