"""A server that writes without end: lists, logs and stderr are bounded in bytes, and the loop stays free."""

import asyncio
import sys
from pathlib import Path

import pytest

from afoot.config.settings import Server, Settings
from afoot.gateway import Gateway
from afoot.providers.upstream.offers import MAX_LIST_BYTES
from afoot.providers.upstream.transport import LOG_BYTES, LOG_LINES, ServerLog

SERVER = Path(__file__).with_name("flooding_server.py")
TICK_S = 0.005
MOST_LATE_S = 0.3  # on a machine that others use too; every line cleaned at once took seconds


def flooded_by(kind: str) -> Settings:
    """Settings with one server, which floods in this way."""
    server = Server(command=sys.executable, args=[str(SERVER), kind], era="2025-11-25", approval="auto")
    return Settings(store=":memory:", servers={"flooding": server})


async def latest_tick() -> float:
    """The longest time that the loop kept us waiting, until this is cancelled."""
    loop, worst_s = asyncio.get_running_loop(), 0.0
    try:
        while True:
            begun = loop.time()
            await asyncio.sleep(TICK_S)
            worst_s = max(worst_s, loop.time() - begun - TICK_S)
    except asyncio.CancelledError:
        return worst_s


async def call_and_listen(kind: str) -> tuple[float, list[str]]:
    """The longest wait of others while a server floods, and the lines that were kept of it."""
    async with Gateway(settings=flooded_by(kind)) as gateway:
        await gateway.servers.wait_until_opened(20)
        ticking = asyncio.create_task(latest_tick())
        await asyncio.sleep(0.05)
        await gateway.call("ping", {})
        ticking.cancel()
        return await ticking, [line for _, line in gateway.servers.get("flooding").connection.logs]


@pytest.mark.parametrize("kind", ["stderr", "logs"])
def test_a_flood_of_lines_keeps_nobody_waiting(kind: str) -> None:
    """H8, G4: 20,000 lines of 500 characters during a call, and its answer behind them."""
    late_s, lines = asyncio.run(call_and_listen(kind))
    assert late_s < MOST_LATE_S
    assert len(lines) <= LOG_LINES and sum(map(len, lines)) <= LOG_BYTES


async def listed_bytes() -> tuple[int, list[str]]:
    """The bytes of the tools that are offered of a list without end, and the server's log."""
    async with Gateway(settings=flooded_by("list")) as gateway:
        await gateway.servers.wait_until_opened(20)
        size = sum(len(tool.definition) for tool in gateway.engine.catalog)
        return size, [line for _, line in gateway.servers.get("flooding").connection.logs]


def test_a_list_without_end_is_cut_by_its_bytes() -> None:
    """H8: pages of 1 MB each; what fits is offered, and the log says so."""
    size, lines = asyncio.run(listed_bytes())
    assert 1_000_000 < size <= MAX_LIST_BYTES + 1_000_000
    assert any("list too large" in line for line in lines)


def test_lines_that_were_left_out_are_counted_where_they_would_stand() -> None:
    """H8: a reader of the log sees that there was more; the last words are known all the same."""
    log = ServerLog("shop")
    kept = [log.add_line(f"line {number}") for number in range(5_000)]
    assert kept.count(True) < 1_000 and not kept[-1]
    assert log.last_words == "line 4999"
