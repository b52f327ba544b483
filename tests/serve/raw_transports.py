"""HTTP and stdio by hand on the fake clock: what a client sends, and everything that comes back."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import App, Scope
from afoot.serve.mcp.http import McpHttp
from afoot.serve.mcp.sessions_2025 import Sessions2025
from afoot.serve.mcp.stdio import StdioServer
from afoot.wire.framing import EventParser, ServerSentEvent
from tests.serve.fake_gateway import TOKEN, Message, now

HOST = "127.0.0.1:23668"
PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"


def request(method: str, params: object = None, id: int | str = 1) -> Message:
    """A request of any era."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def modern(method: str, params: Mapping[str, Any] | None = None, id: int | str = 1, **meta: Any) -> Message:
    """A request of 2026-07-28; `meta` may hold capabilities in place of all."""
    can = meta.pop("capabilities", {"elicitation": {}, "sampling": {}, "roots": {}})
    envelope = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": can, **meta}
    return request(method, {**(params or {}), "_meta": envelope}, id)


def call(id: int | str = 1, **rest: Any) -> Message:
    """A `tools/call` of 2026-07-28 of "tool"; rest: requestState, inputResponses, arguments, and meta."""
    keys = ("requestState", "inputResponses", "arguments")
    more = {key: rest.pop(key) for key in keys if key in rest}
    return modern("tools/call", {"name": "tool", **more}, id, **rest)


def older(id: int | str = 1, **meta: Any) -> Message:
    """A `tools/call` of the handshake era."""
    return request("tools/call", {"name": "tool", "_meta": meta}, id)


def hello(**capabilities: object) -> Message:
    """An `initialize`."""
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
    return request("initialize", params, "hello")


def cancelled(id: int | str, reason: str = "enough") -> Message:
    """A cancel."""
    params = {"requestId": id, "reason": reason}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


class Exchange:
    """One HTTP request by hand; its reader takes nothing while `reads` is clear."""

    def __init__(self, application: App, scope: Scope, body: Sequence[bytes], is_cut: bool) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: list[tuple[float, bytes]] = []
        self.is_whole = False
        self.reads = asyncio.Event()
        self.reads.set()
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for number, piece in enumerate(body, 1):
            more = is_cut or number < len(body)
            self._inbox.put_nowait({"type": "http.request", "body": piece, "more_body": more})
        self.task = asyncio.ensure_future(application(scope, self._inbox.get, self._send))

    async def _send(self, message: Any) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            assert not self.status, "a response begins once"
            self.status = message["status"]
            self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
            return
        assert self.status and not self.is_whole, "a body is between its head and its end"
        self.chunks.append((now(), message["body"]))
        self.is_whole = not message.get("more_body", False)

    def say(self, rest: bytes) -> None:
        """The client sends the end of what it began."""
        self._inbox.put_nowait({"type": "http.request", "body": rest, "more_body": False})

    def leave(self) -> None:
        """The client closes its connection."""
        self._inbox.put_nowait({"type": "http.disconnect"})

    async def done(self) -> "Exchange":
        """The whole exchange."""
        await self.task
        return self

    @property
    def body(self) -> bytes:
        """Everything that came."""
        return b"".join(data for _, data in self.chunks)

    @property
    def is_stream(self) -> bool:
        """Whether it was answered as a stream of events."""
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def messages(self) -> list[Message]:
        """What was said, in either form."""
        if not self.is_stream:
            return [json.loads(self.body)]
        return [json.loads(event.data) for event in self.events if event.data]

    @property
    def events(self) -> list[ServerSentEvent]:
        """Every event of a stream, also the one that only says where it begins."""
        return list(EventParser().feed(self.body))


class Web:
    """The ASGI application of a site, and what a client sends it."""

    def __init__(self, gateway: GatewayState, *, origins: Sequence[str] = (), mcp_token: str = "") -> None:
        guard = Guard(accepted_hosts(23668, []), frozenset(origins), mcp_token, TOKEN)
        self.sessions = Sessions2025(gateway)
        self.application = McpHttp(gateway, guard, self.sessions)
        self.session = ""

    def open(
        self, method: str, message: object = None, *, pieces: int = 1, path: str = "/mcp", **headers: str
    ) -> Exchange:
        """Send a request, in 0 pieces without its end; headers have `_` for `-`, an empty one is left out."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        size = -(-len(body) // max(1, pieces))
        sent = {"host": HOST, "mcp-session-id": self.session} | self._usual(message, method)
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        encoded = [(key.encode(), value.encode()) for key, value in sent.items() if value]
        scope: Scope = {"type": "http", "method": method, "path": path, "headers": encoded}
        whole = [body[at : at + size] for at in range(0, len(body), size)]
        return Exchange(self.application, scope, whole, not pieces)

    def post(self, message: object, **headers: Any) -> Exchange:
        """Send a POST."""
        return self.open("POST", message, **headers)

    async def ask(self, message: object, **headers: Any) -> Exchange:
        """Send a POST and wait for all of its answer."""
        return await self.post(message, **headers).done()

    async def shake_hands(self, **capabilities: object) -> None:
        """Open a session."""
        welcome = await self.ask(hello(**capabilities))
        self.session = welcome.headers["mcp-session-id"]

    def _usual(self, message: object, method: str) -> dict[str, str]:
        accept = "text/event-stream" if method == "GET" else "application/json, text/event-stream"
        usual = {"content-type": "application/json", "accept": accept}
        if isinstance(message, dict) and f"{PREFIX}protocolVersion" in json.dumps(message.get("params")):
            usual |= {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
            named = [message["params"].get(key) for key in ("name", "uri", "taskId")]
            usual["mcp-name"] = next((name for name in named if name), "")
        return usual


class _Sink(asyncio.WriteTransport):
    """The client's end of a pipe."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.waiting = 0
        self._is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += bytes(data)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._is_closed = True


class Pipe:
    """A site on stdin and stdout, by hand."""

    def __init__(self, gateway: GatewayState) -> None:
        self._reader = asyncio.StreamReader(limit=gateway.settings.max_body_bytes)
        self._sink = _Sink()
        self._flow = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        loop = asyncio.get_running_loop()
        self._writer = asyncio.StreamWriter(self._sink, self._flow, None, loop)  # kept, as the process would
        self.task = asyncio.create_task(StdioServer(gateway, self._reader, self._writer).run())

    def put(self, *messages: Message | bytes) -> None:
        """Write lines in one go."""
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        self._reader.feed_data(b"".join(line + b"\n" for line in lines))

    async def ask(self, message: Message | bytes, within_s: float = 0.01) -> Message:
        """Write a line, and take the one line that comes soon."""
        before = len(self.said)
        self.put(message)
        await asyncio.sleep(within_s)
        [answer] = self.said[before:]
        return answer

    @property
    def said(self) -> list[Message]:
        """What was written to stdout, line by line."""
        assert self._sink.data.endswith(b"\n") or not self._sink.data, "whole lines only"
        return [json.loads(line) for line in self._sink.data.splitlines()]

    def block(self) -> None:
        """Read nothing from now on."""
        self._sink.waiting = 65_537
        self._flow.pause_writing()

    async def close(self, rest: bytes = b"") -> None:
        """Close stdin, maybe in the middle of a line, and wait for the end."""
        self._reader.feed_data(rest)
        self._reader.feed_eof()
        await self.task
        self._writer.close()


async def client(gateway: GatewayState, **capabilities: object) -> Web:
    """A client with a session."""
    web = Web(gateway)
    await web.shake_hands(**capabilities)
    return web
