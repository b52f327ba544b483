"""Calls go to the workers that their tools ask for, and callers take turns (D1, C8)."""

import asyncio
from pathlib import Path

from afoot.cluster.functions import SERVER
from tests.cluster.cluster_tools import until
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_workers import ended, gateway_of
from tests.cluster.worker_process import WorkerProcess, workers


async def test_a_tool_runs_on_the_workers_of_its_label(redis: RedisServer, name: str, tmp_path: Path) -> None:
    """D1: what waits for one kind of workers holds up no other."""
    special = WorkerProcess(redis, name, tmp_path / "gpu", slots=1, label="gpu")
    try:
        special.wait_until_ready()
        with workers(redis, name, tmp_path, 1, slots=2):
            async with gateway_of(redis, name) as gateway:
                await until(lambda: any(t.name == "on_gpu" for t in gateway.tools()), "the labelled tool")
                wanted = {f"{SERVER} gpu": 1, SERVER: 2}
                await until(lambda: gateway.engine.slots.on_workers == wanted, "the slots of both kinds")
                waiting = [gateway.submit("on_gpu", {"seconds": 0.3}, caller="operator") for _ in range(4)]
                quick = await ended(gateway, gateway.submit("in_thread", {"n": 1}, caller="operator"))
                assert quick.outcome == "ok" and gateway.engine[waiting[-1]].call.end is None
                ends = [await ended(gateway, call) for call in waiting]
                told = {bytes(end.result.content) for end in ends if end.result is not None}
                assert len(told) == 1 and quick.result is not None
                assert str(special.pid).encode() in told.pop()
                assert str(special.pid).encode() not in bytes(quick.result.structured)
    finally:
        special.kill()


async def test_a_caller_with_many_calls_keeps_nobody_waiting(
    redis: RedisServer, name: str, tmp_path: Path
) -> None:
    """D1, C8: another caller's call is among the next that run, however many came before it."""
    with workers(redis, name, tmp_path, 1, slots=2):
        async with gateway_of(redis, name) as gateway:
            await until(lambda: gateway.engine.slots.on_workers.get(SERVER) == 2, "the slots")
            many = [gateway.submit("in_thread", {"n": 1}, caller="session:many") for _ in range(300)]
            single = gateway.submit("in_thread", {"n": 1}, caller="session:single")
            assert (await asyncio.wait_for(gateway.result(single), 20)).end is not None
            assert sum(call in gateway.engine for call in many) > 250
