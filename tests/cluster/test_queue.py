"""The queue to the workers: what waits in it, and workers whose Redis refuses to change it for a while."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

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
