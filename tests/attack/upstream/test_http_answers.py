"""A hostile server behind HTTP: its answers cost little time and memory, and calls end with a clear error."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import json

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.transport import http as transport_http
from tests.providers.fake_run import text_of
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.started_servers import opened, run_tool
from tests.providers.upstream.transport.test_http import OLD, handshake, modern, progress

MB = 1024 * 1024
JSON = "application/json"


@asynccontextmanager
async def passes_of_others() -> AsyncIterator[list[float]]:
    """The passes of the loop that others had meanwhile."""
    passes: list[float] = []

    async def look() -> None:
        while True:
            await asyncio.sleep(0)
            passes.append(asyncio.get_running_loop().time())

    task = asyncio.create_task(look())
    try:
        yield passes
    finally:
        task.cancel()


@pytest.mark.parametrize("seconds", ["9" * 400, "9" * 5000])
async def test_a_retry_after_of_hundreds_of_digits_is_a_day(seconds: str) -> None:
    """S5, E1: a number that callers can read."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.status(503, b"later", retry_after=seconds)

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        with pytest.raises(ToolError, match="503") as caught:
            await run_tool(upstream, "go")
    assert caught.value.retry_after == 86_400


@pytest.mark.parametrize("digits", [400, 5000])
async def test_a_retry_of_hundreds_of_digits_ends_no_stream(
    digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: the stream is resumed after the longest pause, which is short here."""
    monkeypatch.setattr(transport_http, "OWN_RETRY_S", (0.0, 0.01))

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            await reply.stream()
            await reply.event(text(calls[0], "gone"))
        elif not await handshake(asked, reply):
            calls.append(asked)
            await reply.stream()
            await reply.event(progress(asked, 1), id="e1\nretry: " + "9" * digits)

    calls: list[Asked] = []
    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        assert text_of(await run_tool(upstream, "go")) == "gone"


async def test_a_retry_of_0_keeps_nobody_busy() -> None:
    """S5: each resumed stream has a new event and breaks, so that no failure is counted."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            await reply.stream()
            await reply.event(progress(calls[0], len(place.asked)), id=f"e{len(place.asked)}", retry=0)
        elif not await handshake(asked, reply):
            calls.append(asked)
            await reply.stream()
            await reply.event(progress(asked, 1), id="e1", retry=0)

    calls: list[Asked] = []
    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await run_tool(upstream, "go")
        assert len([one for one in place.calls("GET") if "last-event-id" in one.headers]) <= 11


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_bomb_is_not_unpacked(encoding: str) -> None:
    """S5: 400 MB in 400 KB; it ends at the size of a message, and takes little more on its way."""
    packed = gzip.compress(bytes(400 * MB), 9) if encoding == "gzip" else zlib.compress(bytes(400 * MB), 9)

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.status(200, packed, content_type=JSON, content_encoding=encoding)

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        tracemalloc.start()
        try:
            async with passes_of_others() as passes:
                with pytest.raises(ToolError, match="sent more than"):
                    await run_tool(upstream, "go")
            assert len(passes) > 40, "nothing else ran meanwhile"
            assert tracemalloc.get_traced_memory()[1] < 75 * MB  # a message may have 64 MB
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "gzip"])
async def test_content_that_cannot_be_unpacked_ends_the_call(encoding: str) -> None:
    """S5: nobody asked for it."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.status(200, b"nothing packed", content_type=JSON, content_encoding=encoding)

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        with pytest.raises((ToolError, RunnerDied), match="no answer that could be read|broke: "):
            await run_tool(upstream, "go")


async def test_content_that_is_packed_without_need_is_read() -> None:
    """S5: a proxy may do so."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            packed = gzip.compress(json.encode(text(asked, "x" * MB)))
            await reply.status(200, packed, content_type=JSON, content_encoding="gzip")

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        assert text_of(await run_tool(upstream, "go")) == "x" * MB


@pytest.mark.parametrize("kind", [JSON, "text/event-stream"])
async def test_an_answer_that_is_nested_100_000_deep_ends_the_call(kind: str) -> None:
    """S5: whatever the server sends."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            deep = b"[" * 100_000 + b"]" * 100_000
            body = (
                b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":'
                % asked.body["id"]
            )
            whole = body + deep + b"}}}"
            await reply.status(200, whole if kind == JSON else b"data: " + whole + b"\n\n", content_type=kind)

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        with pytest.raises((ToolError, RunnerDied), match="no answer that could be read|without an answer"):
            await run_tool(upstream, "go")
        assert upstream.state == "ready"
