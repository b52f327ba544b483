"""Where a gateway listens, and what it reads from those that it trusts."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from afoot.config.settings import Settings
from afoot.config.tables import AccessSettings
from afoot.errors import CallerError
from afoot.serve import listen
from tests.e2e.access.test_off_loopback import certified

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """A server that answers like this."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/keys"
        finally:
            server.shutdown()  # or its thread turns for ever


def fetched(answer: Answer) -> bytes:
    """What is read from there."""
    with answering(answer) as url:
        return asyncio.run(listen.fetch(url))


def whole(body: bytes) -> Answer:
    """Everything at once."""

    def answer(page: BaseHTTPRequestHandler) -> None:
        page.send_response(200)
        page.send_header("content-length", str(len(body)))
        page.end_headers()
        page.wfile.write(body)

    return answer


def drips(page: BaseHTTPRequestHandler) -> None:
    """A byte now and then, without end."""
    page.send_response(200)
    page.end_headers()
    try:
        while True:
            page.wfile.write(b" ")
            page.wfile.flush()
            time.sleep(0.01)
    except OSError:
        pass  # nobody reads on


def raves(page: BaseHTTPRequestHandler) -> None:
    """No HTTP at all."""
    page.wfile.write(b"nonsense\r\n\r\n")


def leads_astray(page: BaseHTTPRequestHandler) -> None:
    """Somewhere that is not safe."""
    page.send_response(302)
    page.send_header("location", "http://keys.example/")
    page.end_headers()


def test_a_page_is_read_whole() -> None:
    """S2: what an issuer publishes."""
    assert fetched(whole(b'{"keys": []}')) == b'{"keys": []}'


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (whole(b"x" * (listen.FETCH_MAX_BYTES + 1)), "over 1048576 bytes"),
        (drips, "not whole|no answer"),
        (raves, "nonsense"),
        (leads_astray, "not safe"),
    ],
)
def test_a_page_that_cannot_be_had_is_an_error_in_time(
    answer: Answer, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2: too much, too slow, no HTTP, or not from where it was promised."""
    if answer is drips:
        monkeypatch.setattr(listen, "FETCH_S", 0.3)
    with pytest.raises(OSError, match=why):
        fetched(answer)


def opened(settings: Settings) -> listen.Listeners:
    """The sockets of a gateway that has tokens, closed again."""
    found = listen.open_listeners(settings, True)
    found.outer.close()
    if found.inner is not None:
        found.inner.close()
    return found


def test_who_listens_everywhere_is_known_by_a_name(tmp_path: Path) -> None:
    """S2: clients are sent to where they can come, for their tokens too."""
    made = certified(tmp_path)
    access = AccessSettings(tls_cert=made["tls_cert"], tls_key=made["tls_key"])
    found = opened(Settings(http="0.0.0.0:0", allow_hosts=["gate.example:8443", "b.example"], access=access))
    assert found.public == "https://gate.example:8443" and found.is_closed
    assert {"gate.example:8443", "b.example"} <= found.hosts
    named = opened(Settings(http="[::]:0", access=AccessSettings(public_url="https://gate.example/")))
    assert named.public == "https://gate.example" and named.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("http", ["127.0.0.1:0", "localhost:0", "[::1]:0", ":0"])
def test_loopback_by_each_of_its_names_is_open(http: str) -> None:
    """S1: and is its own address."""
    found = opened(Settings(http=http))
    assert not found.is_closed and found.inner is None and found.url == found.public


@pytest.mark.parametrize("http", ["0.0.0.0:0", "[::]:0", "0:0", "[::ffff:127.0.0.1]:0", "LOCALHOST:0"])
def test_what_is_not_surely_loopback_needs_more(http: str) -> None:
    """S2: whatever it is called."""
    with pytest.raises(CallerError, match="before others may reach it"):
        opened(Settings(http=http))


@pytest.mark.parametrize(
    ("hours", "why"), [((-2, -1), "has expired"), ((1, 2), "is not valid yet"), ((-1, 1), "")]
)
def test_a_certificate_must_be_of_this_time(tmp_path: Path, hours: tuple[int, int], why: str) -> None:
    """S2: it is said at the start, by name."""
    made = certified(tmp_path, hours)
    files = made["tls_cert"], made["tls_key"]
    if not why:
        listen.check_certificate(*files)
        return
    with pytest.raises(CallerError, match=f"access.tls_cert .*cert.pem: {why}"):
        listen.check_certificate(*files)


def test_files_of_a_certificate_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    """S2: one that is not there, one that belongs to another, one that is none."""
    (tmp_path / "other").mkdir()
    cert, key = certified(tmp_path).values()
    other = certified(tmp_path / "other")["tls_key"]
    with pytest.raises(CallerError, match=r"access.tls_key .*no\.pem: cannot be read \(No such file"):
        listen.check_certificate(cert, str(tmp_path / "no.pem"))
    for wrong in (other, __file__):
        with pytest.raises(CallerError, match="cannot be used"):
            listen.check_certificate(cert, wrong)
    listen.check_certificate(cert, key)
