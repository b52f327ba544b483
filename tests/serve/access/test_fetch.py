"""Documents of issuers that a gateway trusts: read whole, in time, and from nowhere else."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from afoot.serve.access import fetch

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
        return asyncio.run(fetch.fetch(url))


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
        (whole(b"x" * (fetch.FETCH_MAX_BYTES + 1)), "over 1048576 bytes"),
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
        monkeypatch.setattr(fetch, "FETCH_S", 0.3)
    with pytest.raises(OSError, match=why):
        fetched(answer)
