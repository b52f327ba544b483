"""The web site of the browser tests: pages of a folder, under several names, with any headers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec import Struct

PAGES = Path(__file__).parent / "pages"
KINDS = {".html": "text/html", ".js": "text/javascript", ".json": "application/json", ".css": "text/css"}
# Loopback addresses are other sites to each other, and secure; shop.test is insecure, and found only by the
# browsers of tests/browser/chromium.py.
ADDRESSES = ("127.0.0.1", "127.0.0.2")


class Seen(Struct, frozen=True):
    """A request that came."""

    path: str
    headers: dict[str, str]


class Site:
    """A server on one port of all the addresses. `?header=Name:Value` adds a header, as often as you like."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.pages: dict[str, str] = {}  # path to text: pages that a test made up
        self._servers: list[ThreadingHTTPServer] = []
        self.port = 0

    def start(self) -> None:
        """Listen; a request gets a thread."""
        site = self

        class Answer(BaseHTTPRequestHandler):
            """One request."""

            def do_GET(self) -> None:
                """Answer it."""
                site.answer(self)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        for address in ADDRESSES:
            server = ThreadingHTTPServer((address, self.port), Answer)
            self.port = server.server_address[1]
            self._servers.append(server)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def url(self, path: str, *headers: str, host: str = "127.0.0.1") -> str:
        """The address of a page; hosts: 127.0.0.1, 127.0.0.2, localhost, NAME.test."""
        query = "&".join(f"header={quote(header)}" for header in headers)
        return f"http://{host}:{self.port}/{path}" + (f"?{query}" if query else "")

    def origin(self, host: str = "127.0.0.1") -> str:
        """The origin of a host."""
        return f"http://{host}:{self.port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Send a page with the headers it asks for."""
        self.seen.append(Seen(request.path, dict(request.headers.items())))
        parts = urlsplit(request.path)
        name = parts.path.strip("/")
        file = PAGES / name
        made = self.pages.get(name)
        is_there = made is not None or (PAGES in file.resolve().parents and file.is_file())
        body = made.encode() if made is not None else file.read_bytes() if is_there else b"no such page"
        request.send_response(200 if is_there else 404)
        request.send_header("Content-Type", KINDS.get(file.suffix, "text/html") + "; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        for key, value in parse_qsl(parts.query):
            if key == "header":
                header, _, text = value.partition(":")
                request.send_header(header, text.strip())
        request.end_headers()
        request.wfile.write(body)


@contextmanager
def served() -> Iterator[Site]:
    """A site that stops with the block."""
    site = Site()
    site.start()
    try:
        yield site
    finally:
        site.stop()
