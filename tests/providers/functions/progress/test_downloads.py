"""Bytes of HTTP transfers as reports."""

import asyncio
import gzip
import os
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests

from afoot.errors import ToolError
from afoot.providers.functions.progress.downloads import download, track_bytes
from afoot.providers.functions.tool import tool
from tests.providers.fake_run import ScriptedRun, call, decoded, text_of
from tests.providers.isolation.isolated_provider import happens

BODY = bytes(range(256)) * 2000


class Site(BaseHTTPRequestHandler):
    """/file, /packed, /short and /packed/short (end too early), /slow (never ends), /missing, /pieces."""

    def do_GET(self) -> None:
        if self.path == "/pieces":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Content-Length", str(9 * len(BODY)))  # which counts for nothing then
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY))
            return
        is_packed = self.path.startswith("/packed")
        body = gzip.compress(BODY) if is_packed else BODY
        self.send_response(404 if self.path == "/missing" else 200)
        if is_packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:1000] if self.path.endswith(("/short", "/slow")) else body)
        if self.path == "/slow":
            self.wfile.flush()
            self.server.let_go.wait(20)  # pyrefly: ignore[missing-attribute]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    """The address of a site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.let_go = threading.Event()  # pyrefly: ignore[missing-attribute]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.let_go.set()  # pyrefly: ignore[missing-attribute]
        server.shutdown()
        thread.join()
        server.server_close()


@tool
async def fetch(url: str, path: str) -> str:
    return str(await download(url, path))


@tool
def fetch_in_a_thread(url: str, path: str) -> str:
    return str(download(url, path))


@pytest.mark.parametrize("function", [fetch, fetch_in_a_thread])
async def test_a_download_reports_its_bytes_and_appears_when_it_is_whole(
    function: Any, tmp_path: Path
) -> None:
    """P10: total from Content-Length, the file's name as the message."""
    run, target = ScriptedRun(), tmp_path / "data.bin"
    with serving() as site:
        assert text_of(await call(function, {"url": f"{site}/file", "path": str(target)}, run)) == str(target)
    assert target.read_bytes() == BODY and os.listdir(tmp_path) == ["data.bin"]
    assert run.readings[0] == (0, len(BODY), "data.bin")
    assert run.readings[-1] == (len(BODY), len(BODY), "data.bin")


@pytest.mark.parametrize(
    ("path", "category", "words"),
    [
        ("/missing", "not_found", "404"),
        ("/short", "unavailable", "1000 of 512000"),
        ("/packed/short", "unavailable", "1000 of "),
    ],
)
async def test_a_download_that_fails_leaves_nothing(
    path: str, category: str, words: str, tmp_path: Path
) -> None:
    """P10, E1: by its status, or by what is missing; packed or not."""
    with serving() as site, pytest.raises(ToolError, match=words) as caught:
        await call(fetch, {"url": site + path, "path": str(tmp_path / "x")})
    assert caught.value.category == category and not os.listdir(tmp_path)


async def test_a_transfer_in_pieces_is_whole_when_it_says_so(tmp_path: Path) -> None:
    """P10, P4: whatever length its head speaks of besides, which is no total either."""
    run, path = ScriptedRun(), tmp_path / "x"
    with serving() as site:
        await call(fetch, {"url": f"{site}/pieces", "path": str(path)}, run)
    assert path.read_bytes() == BODY and run.readings[-1] == (len(BODY), None, "x")


async def test_what_is_wrong_with_the_file_is_said_as_it_is(tmp_path: Path) -> None:
    """E1: trying again would not help."""
    with serving() as site, pytest.raises(FileNotFoundError, match="nowhere"):
        await call(fetch, {"url": f"{site}/file", "path": str(tmp_path / "nowhere" / "x")})


async def test_two_that_fetch_to_one_place_do_not_mix(tmp_path: Path) -> None:
    """P10: the last that is whole stays."""
    target = tmp_path / "x"
    with serving() as site:
        slow = asyncio.create_task(call(fetch, {"url": f"{site}/slow", "path": str(target)}))
        await happens(lambda: os.listdir(tmp_path))
        await call(fetch, {"url": f"{site}/file", "path": str(target)})
        assert len(os.listdir(tmp_path)) == 2
        slow.cancel()
        await asyncio.wait([slow], timeout=0.2)
    with pytest.raises(asyncio.CancelledError):
        await slow
    await happens(lambda: os.listdir(tmp_path) == ["x"])
    assert target.read_bytes() == BODY


async def test_only_http_is_fetched(tmp_path: Path) -> None:
    """E4: no files of this machine."""
    with pytest.raises(ToolError, match="no http or https address"):
        await call(fetch, {"url": "file:///etc/passwd", "path": str(tmp_path / "x")})


@tool
def by_urllib(url: str) -> int:
    with urllib.request.urlopen(url) as response:
        return sum(map(len, track_bytes(response, message="by urllib")))


@tool
def by_httpx(url: str) -> int:
    with httpx2.Client() as client, client.stream("GET", url) as response:
        return sum(map(len, track_bytes(response)))


@tool
async def by_httpx_async(url: str) -> int:
    async with httpx2.AsyncClient() as client, client.stream("GET", url) as response:
        return sum([len(chunk) async for chunk in track_bytes(response)])


@tool
def by_requests(url: str) -> int:
    with requests.get(url, stream=True, timeout=20) as response:
        return sum(map(len, track_bytes(response)))


@pytest.mark.parametrize("function", [by_urllib, by_httpx, by_httpx_async, by_requests])
async def test_a_response_of_any_client_is_tracked(function: Any) -> None:
    """P10: the same chunks, and where they are."""
    run = ScriptedRun()
    with serving() as site:
        result = await call(function, {"url": f"{site}/file"}, run)
    assert decoded(result.structured) == {"result": len(BODY)}
    assert run.readings[-1][:2] == (len(BODY), len(BODY))


@pytest.mark.parametrize("function", [by_httpx, by_httpx_async])
async def test_a_packed_response_counts_what_came_over_the_wire(function: Any) -> None:
    """P10: never more than the total."""
    run, packed = ScriptedRun(), len(gzip.compress(BODY))
    with serving() as site:
        result = await call(function, {"url": f"{site}/packed"}, run)
    assert decoded(result.structured) == {"result": len(BODY)}
    assert run.readings[-1][:2] == (packed, packed)


async def test_a_packed_response_whose_bytes_nobody_counts_has_no_total() -> None:
    """P10, P4: better none than one that is passed."""
    run = ScriptedRun()
    with serving() as site:
        await call(by_requests, {"url": f"{site}/packed"}, run)
    assert run.readings[-1][:2] == (len(BODY), None)


async def test_an_iterable_of_bytes_is_tracked_too() -> None:
    """P10: whatever gives chunks; a total may be said."""

    @tool
    def chunks() -> int:
        return len(list(track_bytes([b"ab", b"c"], total=3)))

    run = ScriptedRun()
    await call(chunks, None, run)
    assert run.readings == [(0, 3, None), (2, 3, None), (3, 3, None)]


async def test_a_transfer_that_hangs_can_be_cancelled(tmp_path: Path) -> None:
    """X1: what it had begun goes, too."""
    run = ScriptedRun()
    with serving() as site:
        task = asyncio.create_task(call(fetch, {"url": f"{site}/slow", "path": str(tmp_path / "x")}, run))
        await happens(lambda: any(reading[0] for reading in run.readings))
        task.cancel()
        await asyncio.wait([task], timeout=0.2)
    with pytest.raises(asyncio.CancelledError):
        await task
    await happens(lambda: not os.listdir(tmp_path))
