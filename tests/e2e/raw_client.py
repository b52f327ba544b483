"""MCP by hand over sockets and pipes: whatever a client may do, and some of what it should not."""

import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final, Self
from urllib.parse import urlsplit

import pytest

from tests.e2e.gateway import Gateway

MODERN: Final = "2026-07-28"
LATEST: Final = "2025-11-25"
PREFIX: Final = "io.modelcontextprotocol/"
ACCEPT: Final = "application/json, text/event-stream"
EVERYTHING: Final[dict[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}}
WAIT_S: Final = 10.0
Message = dict[str, Any]


def request(method: str, params: Mapping[str, Any] | None = None, id: int | str = 1) -> Message:
    """A request of any era."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": dict(params or {})}


def modern(method: str, params: Mapping[str, Any] | None = None, id: int | str = 1, **meta: Any) -> Message:
    """A request of 2026-07-28; `meta` may hold progressToken, and capabilities in place of all."""
    can = meta.pop("capabilities", EVERYTHING)
    envelope = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": can, **meta}
    return request(method, {**(params or {}), "_meta": envelope}, id)


def call(tool: str, arguments: Mapping[str, Any] | None = None, id: int | str = 1, **rest: Any) -> Message:
    """A `tools/call` of 2026-07-28; rest: requestState, inputResponses, and the meta of `modern`."""
    more = {key: rest.pop(key) for key in ("requestState", "inputResponses") if key in rest}
    return modern("tools/call", {"name": tool, "arguments": dict(arguments or {}), **more}, id, **rest)


def hello(capabilities: Mapping[str, Any]) -> Message:
    """The params of `initialize`."""
    info = {"name": "raw", "version": "1"}
    return {"protocolVersion": LATEST, "capabilities": dict(capabilities), "clientInfo": info}


class Http:
    """One connection; what is sent over it can be as wrong as one likes."""

    def __init__(self, url: str, receive_bytes: int | None = None) -> None:
        """`receive_bytes`: how little the system is to take in before we read."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._path = parts.path
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=WAIT_S)
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(WAIT_S)
        try:
            self.socket.connect((parts.hostname, parts.port or 80))
        except OSError:
            self.socket.close()
            raise
        self._connection.sock = self.socket
        self.session: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave, whatever is under way."""
        self._connection.close()
        self.socket.close()

    def put(self, body: Message | bytes, **changed: str | None) -> None:
        """Send a POST and do not wait; `changed` headers have `_` for `-`, and None to leave one out."""
        headers = self._headers(body) | {key.replace("_", "-"): value for key, value in changed.items()}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._connection.request(
            "POST", self._path, data, {key: value for key, value in headers.items() if value is not None}
        )

    def take(self) -> http.client.HTTPResponse:
        """The head of the answer to what was put."""
        return self._connection.getresponse()

    def post(self, body: Message | bytes, **changed: str | None) -> http.client.HTTPResponse:
        """Put and take."""
        self.put(body, **changed)
        return self.take()

    def ask(self, body: Message | bytes, **changed: str | None) -> Message:
        """The whole answer to a message, as JSON or the last event of a stream."""
        return last(self.post(body, **changed))

    def resume(self, place: str) -> http.client.HTTPResponse:
        """Go on with a stream of this session behind the event with this id."""
        headers = {**self._headers(b""), "accept": "text/event-stream", "last-event-id": place}
        self._connection.request(
            "GET", self._path, headers={k: v for k, v in headers.items() if v is not None}
        )
        return self.take()

    def listen(self) -> http.client.HTTPResponse:
        """Open the stream of this session."""
        headers = {**self._headers(b""), "accept": "text/event-stream"}
        self._connection.request(
            "GET", self._path, headers={k: v for k, v in headers.items() if v is not None}
        )
        return self.take()

    def end_session(self) -> None:
        """End the session, as a client does that leaves."""
        headers = {key: value for key, value in self._headers(b"").items() if value is not None}
        self._connection.request("DELETE", self._path, headers=headers)
        self.take().read()
        self.session = None

    def shake_hands(self, capabilities: Mapping[str, Any] | None = None) -> None:
        """Begin a session of the handshake era; what follows belongs to it."""
        response = self.post(
            request("initialize", hello(capabilities or EVERYTHING)), mcp_protocol_version=None
        )
        assert last(response)["result"]["protocolVersion"] == LATEST
        self.session = response.getheader("mcp-session-id")
        done = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (done.status, done.read()) == (202, b"")

    def _headers(self, body: Message | bytes) -> dict[str, str | None]:
        headers: dict[str, str | None] = {"accept": ACCEPT, "content-type": "application/json"}
        if self.session is not None:
            return {**headers, "mcp-session-id": self.session, "mcp-protocol-version": LATEST}
        headers["mcp-protocol-version"] = MODERN
        if isinstance(body, dict) and isinstance(body.get("method"), str):
            headers["mcp-method"] = body["method"]
            params = body.get("params")
            named = [params.get(key) for key in ("name", "taskId", "uri")] if isinstance(params, dict) else []
            headers["mcp-name"] = next((name for name in named if isinstance(name, str)), None)
        return headers


def events(response: http.client.HTTPResponse) -> Iterator[Message | str]:
    """The events of a stream as they come; a comment is a string."""
    while line := response.readline():
        if line.startswith(b"data:") and line[5:].strip():  # one of nothing says where the stream begins
            yield json.loads(line[5:])
        elif line.startswith(b":"):
            yield line[1:].decode().strip()


def frames(response: http.client.HTTPResponse) -> list[Message]:
    """Every message of an answer, in whichever form it came."""
    if response.getheader("content-type") == "application/json":
        return [json.loads(response.read())]
    return [event for event in events(response) if isinstance(event, dict)]


def last(response: http.client.HTTPResponse) -> Message:
    """The answer itself."""
    found = frames(response)
    if not found:
        pytest.fail(f"no answer, status {response.status}")
    return found[-1]


class Pipe:
    """A gateway on stdio, or a bridge to one; a line a message."""

    def __init__(self, gateway: Gateway, *, bridged: bool = False) -> None:
        self._rest = b""
        environment = gateway.environment
        with gateway.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                gateway.bridge() if bridged else gateway.command("--stdio"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._selector = DefaultSelector()
        self._selector.register(self._out, EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        finally:
            self.process.kill()
            self.process.wait()
            self._selector.close()
            self._out.close()

    def close(self) -> int:
        """Close our end, as a client does that is done; the exit code."""
        if not self._in.closed:
            self._in.close()
        return self.process.wait(WAIT_S)

    def put(self, message: Message | bytes) -> None:
        """Send a line."""
        self._in.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self._in.flush()

    def take(self, wait_s: float = WAIT_S) -> Message:
        """The next line; fails if none comes."""
        end = time.monotonic() + wait_s
        while b"\n" not in self._rest:
            ready = self._selector.select(max(0.0, end - time.monotonic()))
            chunk = os.read(self._out.fileno(), 65536) if ready else b""
            if not chunk:
                pytest.fail(
                    f"no line within {wait_s:g} s, or the other end closed; rest {self._rest[:200]!r}"
                )
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        found: Message = json.loads(line)
        return found

    def ask(self, message: Message) -> Message:
        """The answer to a request; what comes in between is dropped."""
        self.put(message)
        while (found := self.take()).get("id") != message["id"]:
            pass
        return found

    def shake_hands(self) -> None:
        """Begin in the handshake era."""
        hello = {
            "protocolVersion": LATEST,
            "capabilities": EVERYTHING,
            "clientInfo": {"name": "raw", "version": "1"},
        }
        assert self.ask(request("initialize", hello, 0))["result"]["protocolVersion"] == LATEST
        self.put({"jsonrpc": "2.0", "method": "notifications/initialized"})
