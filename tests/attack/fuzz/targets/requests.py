"""Targets for requests over HTTP: the head before anybody is known, and all surfaces behind it.

The protocol of the server runs on a transport in memory, so that no socket and no time is needed.
"""

import asyncio
import json
import logging
import re
from collections.abc import Coroutine
from typing import Any, TypeVar

from afoot.config.tables import ConnectionSettings
from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.api.router import ApiApp
from afoot.serve.http_server.connections import Connections
from afoot.serve.http_server.uvicorn_server import make_server
from afoot.serve.mcp.asgi import App, Receive, Scope, Send
from afoot.serve.mcp.http import McpHttp
from afoot.serve.mcp.sessions_2025 import Sessions2025
from afoot.serve.router import Router
from afoot.testing import run
from tests.attack.fuzz.target import Target, pieces
from tests.attack.fuzz.targets.wire import META, message
from tests.engine.fake_engine import text
from tests.serve.extension.fake_extension import Peer, linked
from tests.serve.fake_gateway import TOKEN, Run, site_of
from tests.serve.raw_transports import HOST

T = TypeVar("T")
HEAD_BYTES = 1000
BODY_BYTES = 2000
BOUNDS = ConnectionSettings(head_bytes=HEAD_BYTES, head_fields=20)
ANSWERED_S = 0.5  # on the fake clock, before the client goes
GONE_S = 300.0  # until nothing may be left of it
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class MemoryTransport(asyncio.Transport):
    """The gateway's end of a connection whose other end is a list of bytes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 23668)})
        self.sent = b""
        self.is_closed = False
        self.protocol: Any = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def write_eof(self) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Complaints(logging.Handler):
    """Errors that were logged: each is a defect, because a stranger's bytes are no fault of ours."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


class Echo:
    """An application that answers with the body, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, list[tuple[bytes, bytes]], bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        body, is_whole = b"", False
        while not is_whole:
            part = await receive()
            if part["type"] != "http.request":
                return
            body += part["body"]
            is_whole = not part["more_body"]
        self.asked.append((scope["method"], scope["path"], list(scope["headers"]), body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


def heads(data: bytes) -> None:
    """A request head, in one piece and in many: the same requests arrive, within the bounds."""
    whole, cut = (_run(_echo(parts)) for parts in ([data], list(pieces(data))))
    for asked, sent in (whole, cut):
        for _, path, headers, body in asked:
            names = [name for name, _ in headers]
            assert path.startswith("/") and names.count(b"host") <= 1 and len(names) <= BOUNDS.head_fields
            assert len(body) <= BODY_BYTES + (1 << 20)
        assert not sent or sent.startswith(b"HTTP/1.1 "), sent[:50]
        assert b"500" not in _STATUS.findall(sent)
    first, other = whole[0][:1], cut[0][:1]
    assert not (first and other) or first == other, "the request depends on how it was cut"


def requests(data: bytes) -> None:
    """A whole request of somebody who has the operator's token, to any surface of a gateway."""
    sent = _run(_serve(data.replace(b"TOKEN", TOKEN_HEADER)))
    assert sent.startswith(b"HTTP/1.1 ") or not sent
    sent.decode()  # everything that is sent is UTF-8
    assert b"500" not in _STATUS.findall(sent), sent[:500]


def link_sessions(data: bytes) -> None:
    """Frames of a browser that has proved itself, one in each line."""
    _run(_link([line.decode("utf-8", "replace") for line in data.split(b"\n")]))


def _run(main: Coroutine[Any, Any, T]) -> T:
    """Run on a fake clock; an error that is logged, or lost in a callback, is raised."""
    complaints = Complaints()
    root = logging.getLogger()
    root.addHandler(complaints)
    try:
        found = run(main)
    finally:
        root.removeHandler(complaints)
    assert not complaints.found, complaints.found[0]
    return found


async def _feed(application: App, parts: list[bytes], bounds: ConnectionSettings = BOUNDS) -> bytes:
    """Everything that is sent back for these bytes."""
    server = make_server(application, connections=Connections(bounds, BODY_BYTES))
    server.config.load()
    make: Any = server.config.http_protocol_class
    transport = MemoryTransport()
    transport.protocol = make(config=server.config, server_state=server.server_state, app_state={})
    transport.protocol.connection_made(transport)
    for part in parts:
        if not transport.is_closed:
            transport.protocol.data_received(part)
            await asyncio.sleep(0)
    await asyncio.sleep(ANSWERED_S)
    transport.protocol.connection_lost(None)
    await asyncio.sleep(GONE_S)
    assert not server.server_state.tasks, "a request is served whose client has gone"
    return transport.sent


async def _echo(parts: list[bytes]) -> tuple[list[tuple[str, str, list[tuple[bytes, bytes]], bytes]], bytes]:
    application = Echo()
    sent = await _feed(application, parts)
    return application.asked, sent


async def _answer(run: Run) -> object:
    return text("done")


async def _serve(data: bytes) -> bytes:
    async with site_of(_answer) as gateway, linked(gateway) as (links, _):
        guard = Guard(accepted_hosts(23668, []), frozenset(), "", TOKEN)
        mcp = McpHttp(gateway, guard, Sessions2025(gateway))
        data = data.replace(b"EPOCH", gateway.engine.journal.epoch.encode())
        return await _feed(Router(guard, mcp, links, ApiApp(gateway, guard)), [data], ConnectionSettings())


async def _link(frames: list[str]) -> None:
    async with site_of(_answer) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        for frame in frames:
            peer.raw(frame)
        await asyncio.sleep(0.1)
        assert not peer.task.done() or peer.closed is not None
        peer.leave()
        await peer.end()


TOKEN_HEADER = f"authorization: Bearer {TOKEN}".encode()


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    """A request to a gateway; TOKEN becomes the operator's token."""
    head = [f"{method} {path} HTTP/1.1", f"host: {HOST}", "TOKEN", *headers]
    if body:
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


_ACCEPT = "accept: application/json, text/event-stream"
_CALL = message("tools/call", {"name": "tool", "arguments": {}, "_meta": META})
_HELLO = message(
    "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
)
_MODERN = ("mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: tool", _ACCEPT)

LINK_MESSAGES: tuple[tuple[str, dict[str, object]], ...] = (
    ("tab.opened", {"room": {"id": "a", "tab": "1"}}),
    ("tool.progress", {"room": "a", "run": "r", "seq": 1, "reports": [{"progress": 1}]}),
    ("panel.watch", {"on": True}),
    ("panel.answer", {"question": "q", "content": {}}),
    ("panel.cancel", {"call": "c"}),
    ("link.hello", {"version": "1", "profile": "p"}),
    ("ping", {}),
)

TARGETS = (
    Target(
        "heads",
        heads,
        (
            b"GET / HTTP/1.1\r\nhost: h\r\n\r\n",
            b"POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello",
            b"POST /a HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx: y\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n",
            b"GET /link HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        ),
        (
            b"\r\n",
            b"\r\n\r\n",
            b"host: h\r\n",
            b"content-length: 0\r\n",
            b"transfer-encoding: chunked\r\n",
            b"0\r\n\r\n",
            b"x: y\r\n",
            b"GET ",
            b"PRI * HTTP/2.0",
            b"OPTIONS *",
            b"http://h/",
            b"\xff",
            b"%",
        ),
        max_bytes=3000,
        examples=30,
        is_quick=False,
    ),
    Target(
        "requests",
        requests,
        (
            request("POST", "/mcp", _CALL, *_MODERN),
            request("POST", "/mcp", _HELLO, _ACCEPT),
            request("GET", "/mcp", b"", "accept: text/event-stream", "last-event-id: EPOCH.c.1.WzFd"),
            request("GET", "/api/calls?limit=5&before=1.5&state=finished"),
            request("GET", "/api/calls/c1/events?after=5"),
            request("GET", "/api/events", b"", "last-event-id: EPOCH:5"),
            request("POST", "/api/calls", b'{"tool":"tool","arguments":{"a":"b"}}'),
            request("GET", "/healthz"),
            request("GET", "/api/tools"),
            request("POST", "/api/questions/q1", b'{"action":"accept","content":{}}'),
            request("GET", "/api/proof?key=a&nonce=" + "a" * 64),
            request("DELETE", "/mcp", b"", "mcp-session-id: a"),
        ),
        (
            b"last-event-id: ",
            b"mcp-session-id: ",
            b"?limit=",
            b"&before=nan",
            b"?q=%00",
            b"/api/history",
            b"/api/servers",
            b"/api/browsers",
            b"afoot-caller: connect-",
            b"origin: null",
            b"?after=",
            b"HEAD",
            b"cookie: a=b",
            b"/.well-known/oauth-protected-resource",
            b"/api/allowlist",
            b"/api/stats",
        ),
        examples=25,
        is_quick=False,
    ),
    Target(
        "link_sessions",
        link_sessions,
        tuple(json.dumps({"method": method, "params": params}).encode() for method, params in LINK_MESSAGES),
        (b"\n", b'"panel.answer"', b'"tab.list"', b'"action":"decline"'),
        examples=25,
        is_quick=False,
    ),
)
