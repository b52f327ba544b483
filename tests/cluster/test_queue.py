"""The queue to the workers: what waits in it, and workers whose Redis refuses to change it for a while."""

import asyncio
import errno
import gc
from collections.abc import Callable
from pathlib import Path

import pytest
from redis.asyncio.client import PubSub

from afoot.cluster.queue import FunctionQueue
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_outage import has_no_memory, refuses_writes
from tests.cluster.test_workers import ended, gateway_of
from tests.cluster.worker_process import workers

TROUBLE_S = 3.0  # longer than the looks of a worker at its queue


async def test_what_waits_is_counted_before_the_first_worker_came(redis: RedisServer, name: str) -> None:
    """D1: that there is no worker yet does not mean that Redis cannot be read."""
    async with FunctionQueue(redis.url, name) as queue:
        assert await queue.waiting() == 0
        await queue.add("call", 1, "{}")
        assert await queue.waiting() == 1


@pytest.mark.timeout(20)
async def test_a_worker_goes_on_when_the_system_gives_a_connection_up(redis: RedisServer, name: str) -> None:
    """D2: as after a long cut, in which nobody said that the connection is broken."""
    ran, until = asyncio.Queue[str](), asyncio.Event()

    async def run(call: str, attempt: int, body: str) -> None:
        ran.put_nowait(call)

    async with FunctionQueue(redis.url, name, run) as queue:
        serving = asyncio.create_task(queue.serve("worker", 1, 1.0, until))
        await queue.add("before", 1, "{}")
        assert await ran.get() == "before"
        connections = [one.connection for one in gc.get_objects() if isinstance(one, PubSub)]
        readers = [one._reader for one in connections if one is not None]
        assert readers
        for reader in readers:
            assert reader is not None
            reader.set_exception(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
        await asyncio.sleep(0.2)
        await queue.add("after", 1, "{}")
        assert await asyncio.wait_for(ran.get(), 10) == "after"
        until.set()
        await serving


@pytest.mark.parametrize("trouble", [refuses_writes, has_no_memory])
async def test_a_worker_serves_on_after_redis_refused_all_writes(
    redis: RedisServer, name: str, tmp_path: Path, trouble: Callable[[RedisServer], Callable[[], object]]
) -> None:
    """D2: it ends by no error of Redis, and calls of before and after run."""
    with workers(redis, name, tmp_path, 1):
        async with gateway_of(redis, name) as gateway:
            before = gateway.submit("unsafe", {"file": str(tmp_path / "marks"), "seconds": 1.0})
            end_trouble = await asyncio.to_thread(trouble, redis)
            try:
                await asyncio.sleep(TROUBLE_S)
            finally:
                await asyncio.to_thread(end_trouble)
            assert (await ended(gateway, before)).outcome in ("ok", "uncertain")
            assert (await ended(gateway, gateway.submit("quick"))).outcome == "ok"
