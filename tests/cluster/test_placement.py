"""Calls go to the workers that their tools ask for, and callers take turns (D1, C8)."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from afoot import Gateway
from afoot.cluster import functions
from afoot.cluster.functions import SERVER
from afoot.cluster.lease import Lease
from afoot.cluster.runs import OfferedTool, WorkerInfo
from afoot.config.settings import Settings
from tests.cluster.cluster_tools import until
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_workers import ended, gateway_of
from tests.cluster.worker_process import WorkerProcess, workers

DEFINITION = Raw(b'{"name":"export","inputSchema":{"type":"object"}}')


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


async def test_two_versions_of_a_tool_do_not_take_turns(
    redis: RedisServer, name: str, settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """D1: in a rolling upgrade; one of a worker that is ready counts, and one of a dead one not for long."""
    monkeypatch.setattr(functions, "KEEP_OFFER_S", 1.0)
    infos = [
        WorkerInfo(slots=1, tools=[OfferedTool("export", DEFINITION, digest)]) for digest in ("old", "new")
    ]
    leases = [Lease(redis.url, f"{{{name}}}:", f"worker{number}", 1.0, "worker") for number in range(2)]
    for number, lease in enumerate(leases):
        lease.describe = lambda number=number: json.encode(infos[number])
    gateway = Gateway(settings=settings())
    gateway.bare = True
    async with gateway:

        def offered() -> str:
            found = gateway.engine.catalog.known.get("export")
            return "" if found is None else found[1].digest

        for lease in leases:
            await asyncio.to_thread(lease.start)
        try:
            await until(lambda: offered() == "new", "the tool of the last worker")
            changes = list[str]()
            stop_listening = gateway.engine.catalog.listen(lambda: changes.append(offered()))
            await asyncio.sleep(3.0)
            stop_listening()
            assert changes == []
            infos[1] = replace(infos[1], draining=True)
            await until(lambda: offered() == "old", "the tool of the worker that takes calls")
            for lease in leases:
                lease._stop.set()  # it dies: its lease is not given back
            await until(lambda: not offered(), "the tool not to be offered any more")
            assert gateway.cluster is not None and len(gateway.cluster.members()) == 3
        finally:
            for lease in leases:
                await asyncio.to_thread(lease.stop)
