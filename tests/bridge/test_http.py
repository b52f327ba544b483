"""The little HTTP client: heads, bodies in every form, events cut anywhere, and connections that break."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.bridge.http import (
    BrokenConnection,
    EventData,
    GatewayResponse,
    HttpTarget,
    Unreachable,
    parse_target,
    send_request,
)

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def answered(*pieces: bytes, method: str = "POST") -> tuple[bytes, int, list[list[bytes]]]:
    """What a server that says this got, and how its answer is read."""

    async def talk() -> tuple[bytes, int, list[list[bytes]]]:
        got = bytearray()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            got.extend(await reader.readuntil(b"\r\n\r\n"))
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0.001)
            writer.close()

        return await with_server(serve, lambda to: read(to, method, got))

    return asyncio.run(talk())


async def read(to: HttpTarget, method: str, got: bytearray) -> tuple[bytes, int, list[list[bytes]]]:
    """Ask and read everything."""
    answer: GatewayResponse = await send_request(
        to, method, {"x-one": "1"}, b"{}" if method == "POST" else b""
    )
    try:
        return bytes(got), answer.status, [frames async for frames in answer.messages()]
    finally:
        answer.close()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Read = Callable[[HttpTarget], Awaitable[tuple[bytes, int, list[list[bytes]]]]]


async def with_server(serve: Serve, then: Read) -> tuple[bytes, int, list[list[bytes]]]:
    """Do something with a server of our own."""
    writers: list[asyncio.StreamWriter] = []

    async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(noted, "127.0.0.1", 0)
    try:
        return await then(HttpTarget("127.0.0.1", server.sockets[0].getsockname()[1]))
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def test_a_body_of_known_length_is_one_message() -> None:
    """P6: as one line, whatever breaks it has."""
    got, status, found = answered(OK + b"content-length: 9\r\n\r\n{", b'"a":\n1}\n')
    assert (status, found) == (200, [[b'{"a": 1} ']])
    assert b"x-one: 1\r\n" in got and b"content-length: 2\r\n" in got and b"connection: close\r\n" in got


def test_a_body_may_end_with_its_connection() -> None:
    """P6: or come in chunks."""
    assert answered(OK + b"\r\n{}")[2] == [[b"{}"]]
    chunked = OK + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n"
    assert answered(chunked)[2] == [[b"{}"]]
    assert answered(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", method="DELETE")[1:] == (202, [])
    assert answered(b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 2\r\n\r\n{}")[1] == 200


def test_events_come_as_they_are_sent() -> None:
    """P6: comments are no events."""
    first, second = b'event: message\ndata: {"n":1}\n\n', b': alive\n\ndata: {"n":2}\n\n'
    pieces = [b"%x\r\n%s\r\n" % (len(data), data) for data in (first, second)]
    assert answered(STREAM, *pieces, b"0\r\n\r\n")[2] == [[b'{"n":1}'], [b'{"n":2}']]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-",
        b"nonsense\r\n\r\n",
        OK + b"content-length: 9\r\n\r\n{}",
        OK + b"content-length: nine\r\n\r\n{}",
        STREAM + b"5\r\nab",
        STREAM + b"zz\r\n",
        b"x" * 100_000,
    ],
)
def test_an_answer_that_is_cut_or_wrong_is_broken(said: bytes) -> None:
    """H4: and nothing else is raised."""
    with pytest.raises(BrokenConnection):
        answered(said)


def test_where_nobody_listens_nothing_was_sent() -> None:
    """H4: so it may be sent elsewhere."""
    with pytest.raises(Unreachable):
        asyncio.run(send_request(HttpTarget("127.0.0.1", 9), "POST", {}, b"{}"))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 40))
def test_events_may_be_cut_anywhere(numbers: list[int], size: int) -> None:
    """P6: all of them, in order, with either line end."""
    for end in (b"\n", b"\r\n"):
        text = b"".join(b"event: message%sdata: {%d}%s%s" % (end, n, end, end) for n in numbers)
        events = EventData()
        found = [data for at in range(0, len(text), size) for data in events.feed(text[at : at + size])]
        assert found == [b"{%d}" % n for n in numbers]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:7/mcp", HttpTarget("127.0.0.1", 7)),
        ("localhost:7", HttpTarget("localhost", 7)),
        ("http://[::1]:7/", HttpTarget("::1", 7)),
        ("https://gateway.example/x/mcp", HttpTarget("gateway.example", 443, "/x/mcp", True)),
    ],
)
def test_a_url_names_a_target(url: str, expected: HttpTarget) -> None:
    """S1: with the path it says, or ours."""
    assert parse_target(url) == expected


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "http://x:0", "http://x:port", "http://x:99999"])
def test_what_is_no_url_is_refused(url: str) -> None:
    """S1: before anything is sent."""
    with pytest.raises(ValueError):
        parse_target(url)


def test_a_host_header_names_the_port() -> None:
    """S1: as a gateway's guard wants it."""
    assert HttpTarget("::1", 7).netloc == "[::1]:7"
