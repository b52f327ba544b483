"""A small MCP server behind HTTP, without any SDK, whose every answer a test may write itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct, field, json

TOOLS = [{"name": "go", "inputSchema": {"type": "object"}}]
INFO = {"name": "site", "version": "1"}


class Asked(Struct):
    """A request that came."""

    verb: str
    path: str
    headers: dict[str, str]
    body: Any = None

    @property
    def method(self) -> str:
        return self.body.get("method", "") if isinstance(self.body, dict) else ""


class Reply:
    """The way back. What is never ended is closed when the handler returns."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def status(self, status: int, body: bytes = b"", **headers: str) -> None:
        lines = {"content-length": str(len(body)), "connection": "close"}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        await self._send(status, lines, body)

    async def json(self, value: object, status: int = 200, **headers: str) -> None:
        await self.status(status, json.encode(value), content_type="application/json", **headers)

    async def result(self, asked: Asked, **headers: str) -> None:
        """The usual answer to any request."""
        await self.json({"jsonrpc": "2.0", "id": asked.body["id"], "result": usual(asked)}, 200, **headers)

    async def stream(self) -> None:
        await self._send(200, {"content-type": "text/event-stream", "connection": "close"}, b"")

    async def event(self, message: object = None, id: str = "", retry: int | None = None) -> None:
        head = (f"id: {id}\n" if id else "") + (f"retry: {retry}\n" if retry is not None else "")
        data = b"" if message is None else json.encode(message)
        self._writer.write(head.encode() + b"data: " + data + b"\n\n")
        await self._writer.drain()

    async def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._writer.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)
        await self._writer.drain()


Handler = Callable[[Asked, Reply], Awaitable[None]]


class Site(Struct):
    """An address, and everything that was asked there."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    server: asyncio.Server | None = None

    def calls(self, method: str) -> list[Asked]:
        return [one for one in self.asked if method in (one.method, one.verb)]


def text(asked: Asked, said: str) -> dict[str, Any]:
    """The answer to a tool call."""
    result = {"content": [{"type": "text", "text": said}], "resultType": "complete"}
    return {"jsonrpc": "2.0", "id": asked.body["id"], "result": result}


def usual(asked: Asked) -> dict[str, Any]:
    """What a good server says."""
    if asked.method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    if asked.method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
    return {"tools": TOOLS, "resultType": "complete"}


async def close(server: asyncio.Server) -> None:
    """Ends a server. One that is closed drops whom it was letting in, so first it lets in nobody else."""
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(5):  # as many turns as it takes to connect the last
        await asyncio.sleep(0)
    server.close()


@asynccontextmanager
async def site(handler: Handler, at: int = 0) -> AsyncIterator[Site]:
    """A server for one test; `at` is its port, 0 any."""
    made, serving = Site(), dict[asyncio.StreamWriter, asyncio.Task[None]]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving[writer] = asyncio.create_task(serve(reader, writer))  # which may be ended before it begins

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await read(reader)
            made.asked.append(asked)
            await handler(asked, Reply(writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    made.server = await asyncio.start_server(connected, "127.0.0.1", at)
    port = made.server.sockets[0].getsockname()[1]
    made.url = f"http://127.0.0.1:{port}/mcp"
    try:
        yield made
    finally:
        await close(made.server)
        for writer, task in serving.items():
            task.cancel()
            writer.transport.abort()
        ends = [writer.wait_closed() for writer in serving]
        await asyncio.gather(*serving.values(), *ends, return_exceptions=True)


async def read(reader: asyncio.StreamReader) -> Asked:
    """One request."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    verb, path, _ = first.split(" ")
    if "urlencoded" in headers.get("content-type", ""):
        return Asked(verb, path, headers, dict(parse_qsl(body.decode())))
    return Asked(verb, path, headers, json.decode(body) if body else None)
