"""`GatewayClient` is the HTTP client of the commands; `run_command` turns errors into exit codes.

It uses the standard library only, so that a command starts fast. `connect` finds the gateway,
`read_events` reads its event streams, `handle_signals` delivers signals to the main loop of a command.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from afoot.errors import AfootError
from afoot.wire.framing import EventParser, ServerSentEvent

OK, FAILED, USAGE, TIMED_OUT, CANCELLED, REFUSED, LOST = range(7)
INTERRUPTED = 130
# The exit code of a call, by its outcome.
EXIT_BY_OUTCOME = {
    "ok": OK,
    "failed": FAILED,
    "timed_out": TIMED_OUT,
    "cancelled": CANCELLED,
    "refused": REFUSED,
    "lost": LOST,
    "uncertain": LOST,
}
_EXIT_BY_STATUS = {401: REFUSED, 403: REFUSED, 421: REFUSED, 500: LOST, 503: REFUSED}
CONNECT_S = 5.0
ANSWER_S = 30.0
ALIVE = "alive"  # the name of an event that says no more than that its stream lives
STREAM_SILENCE_S = 60.0  # a stream sends a keep-alive every 15 s
CHUNK_BYTES = 1 << 20
MAX_PROOF_BYTES = 1 << 16
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CliError(Exception):
    """Ends the command with an exit code and one line on stderr; `details` go into the JSON of --json."""

    def __init__(self, code: int, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def run_command(run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run a command and return its exit code; every error that is raised on purpose prints one line."""
    _open_missing_streams()
    try:
        code = run(words)
        sys.stdout.flush()
        return code
    except CliError as error:
        return print_error(error, words)
    except AfootError as error:
        return print_error(CliError(USAGE, str(error)), words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has gone. Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


class GatewayClient:
    """The API of one gateway. Every method raises CliError."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/").removesuffix("/mcp").rstrip("/")
        self._token = token

    def get(self, path: str, **query: object) -> Any:
        """The JSON of a GET."""
        values = {key: value for key, value in query.items() if value not in (None, "")}
        given = urlencode(values, errors="surrogateescape")
        return json.loads(self._request("GET", f"{path}?{given}" if given else path))

    def fetch(self, path: str) -> bytes:
        """The body of a GET as it came."""
        return self._request("GET", path)

    def post(self, path: str, body: object, timeout_s: float = ANSWER_S, prefer: str = "") -> Any:
        """The JSON of a POST; `timeout_s` is the longest silence, `prefer` a header of that name."""
        headers = {"prefer": prefer} if prefer else {}
        return json.loads(self._request("POST", path, body, timeout_s, headers))

    def delete(self, path: str) -> Any:
        """The JSON of a DELETE."""
        return json.loads(self._request("DELETE", path))

    def open_stream(self, method: str, path: str, body: object = None, last: str = "") -> HTTPResponse:
        """Open an event stream, after the event `last` if one is named."""
        response = self._send(method, path, body, {"last-event-id": last} if last else {}, STREAM_SILENCE_S)
        if response.status >= 400:
            raise _error_of_response(response.status, response.read())
        return response

    def _request(
        self,
        method: str,
        path: str,
        body: object = None,
        timeout_s: float = ANSWER_S,
        headers: Mapping[str, str] = {},
    ) -> bytes:
        response = self._send(method, path, body, headers, timeout_s)
        try:
            data = response.read()
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from None
        if response.status >= 400:
            raise _error_of_response(response.status, data)
        return data

    def _send(
        self, method: str, path: str, body: object, headers: Mapping[str, str], timeout_s: float
    ) -> HTTPResponse:
        connection = self._connection()
        connection.auto_open = 0  # a new connection would have proved nothing
        sent = {"authorization": f"Bearer {self._token}", "afoot-surface": "terminal", "connection": "close"}
        sent |= headers
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent["content-type"] = "application/json"
        try:
            connection.connect()
            self._check_gateway(connection)
            connection.sock.settimeout(timeout_s)
            connection.request(method, path, data, sent)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from None

    def _check_gateway(self, connection: HTTPConnection) -> None:
        """Let the other end of this connection prove that it knows our token (S6); over TLS it has done so.

        Raises CliError, OSError, HTTPException.
        """
        from afoot.wire.gateway_proof import NONCE_BYTES, make_challenge

        parts = urlsplit(self.url)
        if parts.scheme == "https":
            return
        asked = make_challenge(parts.netloc.rpartition("@")[2], self._token, os.urandom(NONCE_BYTES))
        connection.request("GET", asked.target, headers={"host": asked.host})
        response = connection.getresponse()
        data = response.read(MAX_PROOF_BYTES)
        if response.status == 200 and asked.is_met(data):
            return
        connection.close()
        if response.status == 404:
            text = f"the gateway at {self.url} does not know this token, which was not sent; set AFOOT_TOKEN"
            raise CliError(REFUSED, text, status=401)
        if response.status == 200:
            text = f"another program than the gateway answers at {self.url}, so the token was not sent"
            raise CliError(LOST, f"{text}; start the gateway, or find out what listens there")
        raise _error_of_response(response.status, data)

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme == "https":
            from http.client import HTTPSConnection

            return HTTPSConnection(parts.hostname or "", parts.port, timeout=CONNECT_S)
        return HTTPConnection(parts.hostname or "", parts.port, timeout=CONNECT_S)

    def _unreachable(self, error: Exception) -> CliError:
        return CliError(
            LOST, f"the gateway at {self.url} does not answer ({error}); start one: afoot serve tools.py"
        )


def connect(at: str = "") -> GatewayClient:
    """A client of the gateway that --at or AFOOT_URL names, or that runs on this machine; raises CliError."""
    from afoot.config.state_folder import running_demo, running_gateway

    named = at or os.environ.get("AFOOT_URL", "")
    address = running_gateway() or running_demo()
    if not named:
        if address is None:
            raise CliError(
                LOST,
                "no gateway is running; start one: afoot serve tools.py (or name one: --at URL, AFOOT_URL)",
            )
        return GatewayClient(address.mcp, os.environ.get("AFOOT_TOKEN") or address.token)
    url = named if "://" in named else f"http://{named}"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise CliError(USAGE, f"{named!r} is no address; it looks like http://127.0.0.1:23668")
    return GatewayClient(url, os.environ.get("AFOOT_TOKEN") or _token_of_running_gateway(url))


def read_events(response: HTTPResponse, *, with_alive: bool = False) -> Iterator[ServerSentEvent]:
    """The events of a stream as they come; it ends with the stream, or where that breaks off.

    `with_alive`: whatever else arrives, such as a keep-alive, is an event ALIVE.
    """
    parser = EventParser()
    parts: list[bytes] = []
    try:
        while chunk := response.read1(CHUNK_BYTES):
            # The pieces of a long event are joined once, when its end has come.
            joined = (parts[-1][-1:] if parts else b"") + chunk
            parts.append(chunk)
            if b"\n\n" in joined:
                yield from parser.feed(b"".join(parts))
                parts = []
            if with_alive:
                yield ServerSentEvent("", ALIVE)
    except (OSError, HTTPException, ValueError):
        return  # the stream broke off; the caller sees that the last event is missing


def path_segment(name: str) -> str:
    """A name as one segment of a URL path."""
    return quote(name, safe="", errors="surrogateescape")


@contextmanager
def handle_signals(
    handle: Callable[[signal.Signals], None], which: Iterable[signal.Signals] = STOP_SIGNALS
) -> Iterator[None]:
    """Call `handle` for each of these signals while the block lasts."""
    before = {one: signal.signal(one, lambda number, _: handle(signal.Signals(number))) for one in which}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_missing_streams() -> None:
    """Open a closed standard stream on /dev/null; else the next opened file would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def print_error(error: CliError, words: list[str]) -> int:
    """Print an error as one line, with --json also as JSON; returns its exit code."""
    if error.message:
        from afoot.cli.terminal.text import clean
        from afoot.core.redaction import DEFAULT_REDACTOR

        message = DEFAULT_REDACTOR.prose(error.message)  # of a setting or a typed word, there may be a secret
        print(f"afoot: {clean(message, keep=chr(10))}", file=sys.stderr)  # a tool's text may be in it
        if "--json" in words and words[:1] != ["serve"]:
            body = {"error": {"message": message, "exit": error.code, **error.details}}
            print(json.dumps(body), flush=True)
    return error.code


def _token_of_running_gateway(url: str) -> str:
    """The token of the gateway on this machine, if `url` is that gateway: a secret goes nowhere else."""
    from afoot.config.state_folder import running_demo, running_gateway

    address = running_gateway() or running_demo()
    if address is not None and urlsplit(address.mcp).netloc == urlsplit(url).netloc:
        return address.token
    raise CliError(USAGE, f"the token for {url} is not known here; set AFOOT_TOKEN")


def _error_of_response(status: int, data: bytes) -> CliError:
    try:
        error: dict[str, Any] = json.loads(data)["error"]
        message = str(error.pop("message"))
    except (ValueError, KeyError, TypeError):
        return CliError(LOST, f"the gateway answered with HTTP {status}")
    return CliError(_EXIT_BY_STATUS.get(status, USAGE), message, status=status, **error)
