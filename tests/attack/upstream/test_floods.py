"""A server that writes without end: lists, logs and stderr are bounded in bytes, and the loop stays free."""

import asyncio
import gzip
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
import uvloop
from msgspec import Raw, json

from afoot.config.settings import Server, Settings
from afoot.gateway import Gateway
from afoot.providers.upstream.server_lists import (
    MAX_LIST_BYTES,
    MAX_TOOLS,
    REFRESH_PAUSE_S,
    SLICE_BYTES,
    SLICE_ENTRIES,
    refresh_pause,
    slices,
)
from afoot.providers.upstream.transport.server_log import LOG_BYTES, LOG_LINES, ServerLog
from tests.attack.measured_loop import PASSES_A_REQUEST
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.transport.test_http import modern

SERVER = Path(__file__).with_name("flooding_server.py")
OTHERS_WAIT_S = 0.02
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def flooding(kind: str) -> Server:
    """A server that floods in this way."""
    return Server(command=sys.executable, args=[str(SERVER), kind], era="2025-11-25", approval="auto")


async def longest_work() -> float:
    """The longest work that a request had to wait for, in processor time, until this is cancelled."""
    last: deque[float] = deque(maxlen=PASSES_A_REQUEST)
    longest_s, begun = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            last.append(now - begun)
            begun, longest_s = now, max(longest_s, sum(last))
    except asyncio.CancelledError:
        return longest_s


async def call_and_listen(server: Server) -> tuple[float, list[str]]:
    """The longest work that others wait for while a server floods, and the lines that were kept of it."""
    async with Gateway(settings=Settings(store=":memory:", servers={"flooding": server})) as gateway:
        await gateway.servers.wait_until_opened(20)
        measuring = asyncio.create_task(longest_work())
        await asyncio.sleep(0.05)
        await gateway.call(next(iter(gateway.engine.catalog)).name, {})
        measuring.cancel()
        return await measuring, [line for _, line in gateway.servers.get("flooding").connection.logs]


@pytest.mark.parametrize("kind", ["stderr", "short stderr", "logs", "short stdout"])
@pytest.mark.parametrize(
    "factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def test_a_flood_of_lines_keeps_nobody_waiting(kind: str, factory: LoopFactory) -> None:
    """H8, G4: 20,000 lines of 500 characters during a call, or 500,000 short ones, and its answer behind."""
    with asyncio.Runner(loop_factory=factory) as runner:
        work_s, lines = runner.run(call_and_listen(flooding(kind)))
    assert work_s < OTHERS_WAIT_S
    assert len(lines) <= LOG_LINES and sum(map(len, lines)) <= LOG_BYTES


@contextmanager
def event_flood(event: bytes, times: int, *, packed: bool) -> Iterator[Server]:
    """A server behind HTTP, in a thread of its own, that sends an event so often before its answer."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if await modern(asked, reply):
            return
        body = event * times + b"data: " + json.encode(text(asked, "done")) + b"\n\n"
        encoding = {"content_encoding": "gzip"} if packed else {}
        packed_body = gzip.compress(body) if packed else body
        await reply.status(200, packed_body, content_type="text/event-stream", **encoding)

    async def serve() -> None:
        async with site(answer) as place:
            places.put((place.url, asyncio.get_running_loop()))
            await over.wait()

    over = asyncio.Event()
    places: Queue[tuple[str, asyncio.AbstractEventLoop]] = Queue()
    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    url, loop = places.get(timeout=20)
    try:
        yield Server(url=url, era="2026-07-28", approval="auto")
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


LOG_EVENT = b"data: " + json.encode(
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "y" * 500}}
) + b"\n\n"  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("event", "times"),
    [(LOG_EVENT, 20_000), (b"data:x\n\n", 200_000), (b":\n\n", 200_000)],
    ids=["logs", "garbage", "comments"],
)
def test_a_flood_of_events_keeps_nobody_waiting(event: bytes, times: int, packed: bool) -> None:
    """H8, G4: the same over HTTP, where one packed read becomes megabytes of events."""
    with event_flood(event, times, packed=packed) as server:
        work_s, lines = asyncio.run(call_and_listen(server))
    assert work_s < OTHERS_WAIT_S
    assert len(lines) <= LOG_LINES and sum(map(len, lines)) <= LOG_BYTES


@asynccontextmanager
async def listed(kind: str) -> AsyncIterator[Gateway]:
    """A gateway that has read the lists of a server."""
    settings = Settings(store=":memory:", servers={"flooding": flooding(kind)})
    async with Gateway(settings=settings) as gateway:
        await gateway.servers.wait_until_opened(20)
        yield gateway


async def listed_bytes() -> tuple[int, list[str]]:
    """The bytes of the tools that are offered of a list without end, and the server's log."""
    async with listed("list") as gateway:
        size = sum(len(tool.definition) for tool in gateway.engine.catalog)
        return size, [line for _, line in gateway.servers.get("flooding").connection.logs]


def test_a_list_without_end_is_cut_by_its_bytes() -> None:
    """H8: pages of 1 MB each; what fits is offered, and the log says so."""
    size, lines = asyncio.run(listed_bytes())
    assert 1_000_000 < size <= MAX_LIST_BYTES + 1_000_000
    assert any("list too large" in line for line in lines)


async def listed_tools(kind: str) -> tuple[int, Mapping[str, int]]:
    """The number of tools that are offered of a server whose lists were read three times, and its faults."""
    async with listed(kind) as gateway:
        connection = gateway.servers.get("flooding").connection
        for _ in range(2):
            await connection.open()  # which reads the lists of one that is open again
        return sum(tool.server == "flooding" for tool in gateway.engine.catalog), connection.counted


def test_a_list_of_many_small_tools_is_cut_by_its_entries() -> None:
    """H8: 20,000 tools in a page; those that fit are offered, and a list that stays the same is read once."""
    offered, counted = asyncio.run(listed_tools("many"))
    assert offered == MAX_TOOLS - 1
    assert counted == {"list_too_large": 3, "bad_tool": 1}


def test_a_page_of_countless_entries_is_not_taken_apart() -> None:
    """H8: telling the entries of a page apart takes time before they can be counted."""
    offered, counted = asyncio.run(listed_tools("tiny"))
    assert offered == 0
    assert counted == {"list_too_large": 3}


def test_a_list_is_read_in_slices() -> None:
    """H8: between two slices, all others have their turn."""
    small, large = Raw(b"{}"), Raw(b"x" * SLICE_BYTES)
    assert [len(part) for part in slices([small] * (2 * SLICE_ENTRIES + 1))] == [*[SLICE_ENTRIES] * 2, 1]
    assert [len(part) for part in slices([large, large, small, large])] == [1, 1, 2]


def test_a_list_that_keeps_changing_takes_a_twentieth_of_the_time() -> None:
    """H8: the pause before the next reading grows with the work of the last one, without a bound."""
    assert refresh_pause(10.0, 0.001, is_calm=True) == REFRESH_PAUSE_S[0]
    assert refresh_pause(1.0, 0.001, is_calm=False) == 2.0
    assert refresh_pause(0.1, 3.0, is_calm=False) == 60.0


def test_lines_that_were_left_out_are_counted_where_they_would_stand() -> None:
    """H8: a reader of the log sees that there was more; the last words are known all the same."""
    log = ServerLog("shop")
    kept = [log.add_line(f"line {number}") for number in range(5_000)]
    assert kept.count(True) < 1_000 and not kept[-1]
    assert log.last_words == "line 4999"
