"""A client command's way to the running gateway: found, asked, and its streams read; stdlib only."""

import json
import os
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from afoot.cli.ending import LOST, REFUSED, USAGE, Stop
from afoot.wire.sse import Event, Parser

CONNECT_S = 5.0
ANSWER_S = 30.0
SILENT_S = 60.0  # a stream says that it lives every fifteen
CHUNK = 1 << 20

_CODES = {401: REFUSED, 403: REFUSED, 421: REFUSED, 500: LOST, 503: REFUSED}


class Client:
    """One gateway's API."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/").removesuffix("/mcp").rstrip("/")
        self._token = token

    def get(self, path: str, **query: object) -> Any:
        """Ask for something; raises Stop."""
        given = urlencode({key: value for key, value in query.items() if value not in (None, "")})
        return self._answer("GET", f"{path}?{given}" if given else path)

    def fetch(self, path: str) -> bytes:
        """The body of an answer as it came; raises Stop."""
        return self._body("GET", path)

    def post(self, path: str, body: object, silent_s: float = ANSWER_S) -> Any:
        """Have something done; raises Stop."""
        return self._answer("POST", path, body, silent_s)

    def delete(self, path: str) -> Any:
        """Have something taken away; raises Stop."""
        return self._answer("DELETE", path)

    def open(self, method: str, path: str, body: object = None, last: str = "") -> HTTPResponse:
        """Begin to read a stream; raises Stop."""
        response = self._send(method, path, body, {"last-event-id": last} if last else {}, SILENT_S)
        if response.status >= 400:
            raise _wrong(response.status, response.read())
        return response

    def _answer(self, method: str, path: str, body: object = None, silent_s: float = ANSWER_S) -> Any:
        return json.loads(self._body(method, path, body, silent_s))

    def _body(self, method: str, path: str, body: object = None, silent_s: float = ANSWER_S) -> bytes:
        response = self._send(method, path, body, {}, silent_s)
        try:
            data = response.read()
        except (OSError, HTTPException) as error:
            raise self._gone(error) from None
        if response.status >= 400:
            raise _wrong(response.status, data)
        return data

    def _send(
        self, method: str, path: str, body: object, headers: dict[str, str], silent_s: float
    ) -> HTTPResponse:
        connection = self._connection()
        sent = {"authorization": f"Bearer {self._token}", "afoot-surface": "terminal", **headers}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent["content-type"] = "application/json"
        try:
            connection.connect()
            connection.sock.settimeout(silent_s)
            connection.request(method, path, data, sent)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            raise self._gone(error) from None

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme == "https":
            from http.client import HTTPSConnection

            return HTTPSConnection(parts.hostname or "", parts.port, timeout=CONNECT_S)
        return HTTPConnection(parts.hostname or "", parts.port, timeout=CONNECT_S)

    def _gone(self, error: Exception) -> Stop:
        return Stop(
            LOST, f"the gateway at {self.url} does not answer ({error}); start one: afoot serve tools.py"
        )


def connect(at: str = "") -> Client:
    """The gateway that is named by --at or AFOOT_URL, or that runs here; raises Stop."""
    from afoot.state import demo, running

    named = at or os.environ.get("AFOOT_URL", "")
    address = running() or demo()
    if not named:
        if address is None:
            raise Stop(
                LOST,
                "no gateway is running; start one: afoot serve tools.py (or name one: --at URL, AFOOT_URL)",
            )
        return Client(address.mcp, os.environ.get("AFOOT_TOKEN") or address.token)
    url = named if "://" in named else f"http://{named}"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise Stop(USAGE, f"{named!r} is no address; it looks like http://127.0.0.1:23668")
    return Client(url, os.environ.get("AFOOT_TOKEN") or _own_token(url))


def events(response: HTTPResponse) -> Iterator[Event]:
    """The events of a stream as they come; ends when the stream does."""
    parser = Parser()
    parts: list[bytes] = []
    try:
        while chunk := response.read1(CHUNK):
            # A long event is put together once, not again with every piece of it.
            joined = (parts[-1][-1:] if parts else b"") + chunk
            parts.append(chunk)
            if b"\n\n" in joined:
                yield from parser.feed(b"".join(parts))
                parts = []
    except (OSError, HTTPException, ValueError):
        return  # cut off: whoever reads sees that the end is missing


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


def _own_token(url: str) -> str:
    """The token of the gateway that runs here, if that is the one meant: a secret goes nowhere else."""
    from afoot.state import demo, running

    address = running() or demo()
    if address is not None and urlsplit(address.mcp).netloc == urlsplit(url).netloc:
        return address.token
    raise Stop(USAGE, f"the token for {url} is not known here; set AFOOT_TOKEN")


def _wrong(status: int, data: bytes) -> Stop:
    try:
        error: dict[str, Any] = json.loads(data)["error"]
        message = str(error.pop("message"))
    except (ValueError, KeyError, TypeError):
        return Stop(LOST, f"the gateway answered with HTTP {status}")
    return Stop(_CODES.get(status, USAGE), message, status=status, **error)
