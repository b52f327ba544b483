"""Redis comes back without its newest facts: calls that live go on, and those that were over end again."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from afoot import Gateway
from afoot.config.settings import Settings
from tests.cluster.cluster_tools import ask, quick, safe, seen_by, unsafe, until
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_workers import ended, gateway_of
from tests.cluster.worker_process import workers

SettingsOf = Callable[..., Settings]


async def test_a_function_on_a_worker_goes_on_although_its_call_was_lost(
    redis: RedisServer, name: str, tmp_path: Path
) -> None:
    """D2: it is not stopped as one that nobody wants, and its end is on record."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 1):
        async with gateway_of(redis, name) as gateway:
            redis.keep_copy()
            call = gateway.submit("unsafe", {"file": str(file), "seconds": 3.0}, caller="operator")
            await until(file.exists, "the function to begin")
            await gateway.engine.recorder.recorded()
            await asyncio.to_thread(redis.restart_from_copy)
            assert (await ended(gateway, call)).outcome == "ok" and file.read_text() == "x"
            await gateway.engine.recorder.written()
            assert call not in await gateway.engine.journal.unfinished()


async def test_a_function_that_was_queued_is_queued_again(
    redis: RedisServer, name: str, tmp_path: Path
) -> None:
    """D2: its call, and that it waits for a worker, were lost."""
    with workers(redis, name, tmp_path, 1) as [worker]:
        async with gateway_of(redis, name) as gateway:
            redis.keep_copy()
            os.kill(worker.pid, signal.SIGSTOP)  # it is taken for alive until its lease has run out
            try:
                call = gateway.submit("quick", caller="operator")
                key = f"{{{name}}}:call:{call}"
                await until(lambda: redis.client().hexists(key, "want"), "the call to be queued")
                await asyncio.to_thread(redis.restart_from_copy)
            finally:
                os.kill(worker.pid, signal.SIGCONT)
            assert (await ended(gateway, call)).outcome == "ok"


async def test_a_call_that_was_lost_is_found_by_commands_and_by_the_next_owner(
    redis: RedisServer, settings: SettingsOf, tmp_path: Path
) -> None:
    """D1, D2: Redis did not know any more that it lives."""
    async with Gateway(ask, settings=settings()) as one, Gateway(ask, settings=settings()) as two:
        redis.keep_copy()
        call = one.submit("ask", caller="operator")
        seen = await seen_by(two, call, lambda now: now.open)
        await asyncio.to_thread(redis.restart_from_copy)
        two.answer(next(iter(seen.open)), {"name": "Ann"})
        done = await asyncio.wait_for(one.result(call), 15)
        assert done.end is not None and done.end.outcome == "ok"


async def test_a_call_whose_end_was_lost_ends_again(
    redis: RedisServer, settings: SettingsOf, tmp_path: Path
) -> None:
    """D2, U4: nobody had it any more, and the history said for ever that it runs."""
    file = tmp_path / "marks"
    async with Gateway(quick, safe, unsafe, settings=settings()) as gateway:
        call = gateway.submit("unsafe", {"file": str(file), "seconds": 0.5}, caller="operator")
        await until(file.exists, "the tool to begin")
        await gateway.engine.recorder.recorded()
        redis.keep_copy()
        assert (await ended(gateway, call)).outcome == "ok"
        await until(lambda: call not in gateway.engine, "its release")
        await asyncio.to_thread(redis.restart_from_copy)
        await until(lambda: gateway.cluster and gateway.cluster.figures.taken_over, "the call to be found")
        assert (await ended(gateway, call)).outcome == "uncertain" and file.read_text() == "x"
        assert call not in await gateway.engine.journal.unfinished()
