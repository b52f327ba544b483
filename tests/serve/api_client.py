"""The operator's API over plain sockets, as a program that does not speak MCP would use it."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from afoot.wire.framing import EventParser, ServerSentEvent
from tests.e2e.gateway import Gateway, until

WAIT_S: Final = 10.0


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def error(self) -> dict[str, Any]:
        """The error in it."""
        return dict(self.body["error"])


class Api:
    """One gateway's API, with the operator's token."""

    def __init__(self, gateway: Gateway) -> None:
        self.url = gateway.url.removesuffix("/mcp")
        self.token = (gateway.folder / "home" / "token").read_text().strip()

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for something."""
        return self.send("GET", path, None, headers)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        """Have something done."""
        return self.send(
            "POST", path, json.dumps(body).encode(), {"content-type": "application/json", **headers}
        )

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Send anything."""
        with self.open(method, path, body, headers) as (_, response):
            data = response.read()
        kind = response.getheader("content-type", "")
        found = json.loads(data) if kind == "application/json" else data.decode()
        return Answer(response.status, found, {key.lower(): value for key, value in response.getheaders()})

    def start(self, tool: str, **arguments: object) -> str:
        """Start a call and give its id."""
        answer = self.post("/api/calls", {"tool": tool, "arguments": arguments}, prefer="respond-async")
        assert answer.status == 202, answer
        return str(answer.body["id"])

    def call(self, call: str) -> dict[str, Any]:
        """A call with everything that is known of it."""
        answer = self.get(f"/api/calls/{call}")
        assert answer.status == 200, answer
        return dict(answer.body)

    def question(self, call: str) -> dict[str, Any] | None:
        """The open question of a call, if there is one."""
        asked = self.get("/api/questions").body["questions"]
        return next((dict(one) for one in asked if one["call"] == call), None)

    def asked(self, call: str) -> dict[str, Any]:
        """The question of a call, as soon as it asks."""
        return until(lambda: self.question(call) or {}, "a question")

    def ended(self, call: str) -> dict[str, Any]:
        """A call as soon as it is over."""
        return until(lambda: found if (found := self.call(call))["outcome"] else {}, "its end")

    @contextmanager
    def stream(self, path: str, body: object = None, **headers: str) -> Iterator[Iterator[ServerSentEvent]]:
        """The events of a stream, while the block lasts."""
        data = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"content-type": "application/json"}
        method = "GET" if body is None else "POST"
        with self.open(method, path, data, {**kind, **headers}) as (_, response):
            assert response.status == 200, response.read()
            assert response.getheader("content-type") == "text/event-stream"
            yield _events(response)

    @contextmanager
    def open(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[tuple[HTTPConnection, HTTPResponse]]:
        """A request and its answer, while the block lasts."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT_S)
        sent = {"authorization": f"Bearer {self.token}"}
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        with closing(connection):
            connection.request(method, path, body, {key: value for key, value in sent.items() if value})
            with connection.getresponse() as response:
                yield connection, response


class Recorder:
    """Reads a stream in a thread, and keeps what came."""

    def __init__(self, api: Api, path: str, **headers: str) -> None:
        self.events: list[ServerSentEvent] = []
        self._api, self._path, self._headers = api, path, headers
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Recorder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            with suppress(OSError):  # the gateway may have ended it
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join(WAIT_S)

    @property
    def facts(self) -> list[tuple[str, int]]:
        """Call and number of every fact that came in changes."""
        found = [json.loads(event.data) for event in list(self.events) if event.event == "changes"]
        return [(fact["call"], fact["seq"]) for changes in found for fact in changes["facts"]]

    def kinds(self, call: str) -> list[str]:
        """The kinds of facts of one call."""
        found = [json.loads(event.data) for event in list(self.events) if event.event == "changes"]
        return [one["fact"]["type"] for changes in found for one in changes["facts"] if one["call"] == call]

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return self._thread.is_alive()

    @property
    def last(self) -> str:
        """The last id that came."""
        return next((event.id for event in reversed(self.events) if event.id), "")

    def _run(self) -> None:
        with self._api.open("GET", self._path, None, self._headers) as (connection, response):
            self._socket = connection.sock
            for event in _events(response):
                self.events.append(event)


def silent_reader(api: Api, path: str) -> socket.socket:
    """A connection that asks for a stream and then reads nothing at all."""
    parts = urlsplit(api.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((parts.hostname, parts.port))
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nhost: {parts.netloc}\r\nauthorization: Bearer {api.token}\r\n\r\n".encode()
    )
    return connection


def _events(response: HTTPResponse) -> Iterator[ServerSentEvent]:
    parser = EventParser()
    with suppress(IncompleteRead):  # cut off
        while chunk := response.read1(65536):
            yield from parser.feed(chunk)
