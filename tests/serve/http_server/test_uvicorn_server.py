"""The bounds of a request, on a server in this process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from afoot.config.tables import ConnectionSettings
from afoot.serve.http_server.connections import Connections
from afoot.serve.http_server.uvicorn_server import make_server
from afoot.serve.mcp.asgi import Receive, Scope, Send

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """An application that says what it was asked, and keeps the headers."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the body."""
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        self.headers = list(scope["headers"])
        await self.answers.wait()
        head = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(application: Echo, bounds: ConnectionSettings, max_body: int = 1000) -> AsyncIterator[Ends]:
    """A connection to a server with these bounds."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    server = make_server(application, connections=Connections(bounds, max_body))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await task


async def exchange(ends: Ends, *pieces: bytes) -> bytes:
    """Everything that comes back until the connection ends."""
    reader, writer = ends
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    return await asyncio.wait_for(reader.read(), 20)


def padded(size: int) -> bytes:
    """A request whose head has this size."""
    begin, end = b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx: ", b"\r\n\r\n"
    return begin + b"v" * (size - len(begin) - len(end)) + end


async def test_a_head_may_be_as_large_as_the_bound_and_no_larger() -> None:
    """S5: also if it comes in pieces, or has a body behind it."""
    bounds = ConnectionSettings(head_bytes=1000)
    for size, status in ((1000, b"200"), (1001, b"431")):
        head = padded(size)
        for pieces in ([head], [head[:500], head[500:]], [head + b"rest" * 1000]):
            async with serving(Echo(), bounds) as ends:
                answer = await exchange(ends, *pieces)
                assert answer.startswith(b"HTTP/1.1 " + status), (size, answer)


async def test_a_trailer_is_no_header() -> None:
    """S5: the application would take it for one, as it comes into the same list."""
    application = Echo()
    head = b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    async with serving(application, ConnectionSettings()) as ends:
        answer = await exchange(ends, head, b"2\r\nhi\r\n0\r\nauthorization: Bearer x\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nhi")
    assert b"authorization" not in dict(application.headers)


async def test_a_second_request_before_the_answer_ends_the_connection_behind_it() -> None:
    """S5: the answer says so, also if the second one is broken."""
    for second in (
        b"GET /second HTTP/1.1\r\nhost: h\r\n\r\n",
        b"\0\0\0",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200,
    ):
        application = Echo()
        application.answers.clear()
        async with serving(application, ConnectionSettings()) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
            writer.write(second)
            await writer.drain()
            await asyncio.sleep(0.01)
            application.answers.set()
            answer = await asyncio.wait_for(reader.read(), 20)
        assert (
            answer.count(b"HTTP/1.1 ") == 1 and b"HTTP/1.1 200" in answer and b"connection: close" in answer
        )


async def test_a_connection_serves_many_requests_with_bodies_up_to_the_bound() -> None:
    """S5: the counts begin anew with each request."""
    async with serving(Echo(), ConnectionSettings(head_bytes=300, head_fields=5), 5000) as (reader, writer):
        for _ in range(10):
            writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5000\r\n\r\n" + b"b" * 5000)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            assert head.startswith(b"HTTP/1.1 200 ")
            assert await reader.readexactly(5000) == b"b" * 5000
