"""Members of a cluster are drained and declared dead: what they do then, and what is refused."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import afoot
from afoot import Gateway
from afoot.cluster.member import ClusterService
from afoot.cluster.operations import Operations
from afoot.config.settings import Settings
from afoot.core.ports import ClusterMemberInfo
from afoot.errors import Ambiguous, CallerError, Conflict, Refused, StoreError, UnknownName
from tests.cluster.cluster_tools import quick, safe, seen_by, unsafe, until
from tests.cluster.redis_server import RedisServer
from tests.cluster.worker_process import workers

SettingsOf = Callable[..., Settings]
TOOLS = (quick, safe, unsafe)


def service(gateway: Gateway) -> ClusterService:
    """A gateway's part in its cluster."""
    assert gateway.cluster is not None
    return gateway.cluster


async def heard(at: Gateway, id: str) -> ClusterMemberInfo:
    """A member, once a gateway has heard of it."""

    def find() -> ClusterMemberInfo | None:
        return next((one for one in service(at).members() if one.id == id), None)

    found: ClusterMemberInfo = await until(find, f"{id} to be heard of")
    return found


async def test_a_gateway_that_is_drained_takes_no_new_calls_and_ends_those_that_it_has(
    settings: SettingsOf, tmp_path: Path
) -> None:
    """D6: at the word of another gateway; and it takes calls again when it is told to."""
    async with Gateway(*TOOLS, settings=settings()) as one, Gateway(*TOOLS, settings=settings()) as two:
        first = service(one).id
        await heard(two, first)
        call = one.submit("unsafe", {"file": str(tmp_path / "marks"), "seconds": 0.5})
        found = await service(two).drain(first, "ann", drains=True)
        assert (found.id, found.draining) == (first, True)
        with pytest.raises(Refused, match="an operator drains this gateway"):
            one.submit("quick")
        assert (await two.call("quick")).end
        done = await one.result(call)
        assert done.end is not None and done.end.outcome == "ok"
        assert not (await service(two).drain(first, "ann", drains=False)).draining
        assert (await one.call("quick")).end


async def test_a_call_below_one_that_runs_is_made_while_its_gateway_is_drained(settings: SettingsOf) -> None:
    """D6: it belongs to work that was accepted before."""

    @afoot.tool
    async def above(ctx: afoot.Context) -> str:
        """Wait for the drain, then call another tool."""
        while gateway.engine.draining is None:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        return str(await ctx.call("quick"))

    async with Gateway(above, quick, settings=settings()) as gateway:
        call = gateway.submit("above")
        await service(gateway).drain(service(gateway).id, "ann", drains=True)
        done = await gateway.result(call)
        assert done.end is not None and done.end.outcome == "ok"


async def test_a_worker_that_is_drained_ends_what_it_has_and_begins_nothing(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D6: a call that comes meanwhile waits, and runs once the worker takes calls again."""
    with workers(redis, name, tmp_path) as [worker]:
        async with Gateway(quick, settings=settings()) as gateway:
            await until(lambda: "unsafe" in gateway.engine.catalog.known, "the worker's tools")
            running = gateway.submit("unsafe", {"file": str(tmp_path / "one"), "seconds": 1.0})
            await until((tmp_path / "one").exists, "the function to begin")
            assert (await service(gateway).drain(worker.id, "ann", drains=True)).draining
            waiting = gateway.submit("unsafe", {"file": str(tmp_path / "two"), "seconds": 0.0})
            done = await gateway.result(running)
            assert done.end is not None and done.end.outcome == "ok"
            await asyncio.sleep(0.3)
            assert not (tmp_path / "two").exists()
            assert not (await service(gateway).drain(worker.id, "ann", drains=False)).draining
            done = await gateway.result(waiting)
            assert done.end is not None and done.end.outcome == "ok"
            assert (tmp_path / "two").read_text() == "x"


@pytest.mark.parametrize(("tool", "ended", "marks"), [("safe", "ok", "xx"), ("unsafe", "uncertain", "x")])
async def test_the_calls_of_a_gateway_that_is_declared_dead_are_taken_over_at_once(
    settings: SettingsOf, tmp_path: Path, tool: str, ended: str, marks: str
) -> None:
    """D3, D6: long before its lease has run out; it lives, so it lets go of them and takes no more."""
    long = {"cluster": {**_cluster(settings()), "lease_s": 60.0}}
    file = tmp_path / "marks"
    async with Gateway(*TOOLS, settings=settings(**long)) as one:
        async with Gateway(*TOOLS, settings=settings(**long)) as two:
            first = service(one).id
            told = asyncio.Event()
            service(one).on_declared_dead = told.set
            call = one.submit(tool, {"file": str(file), "seconds": 3.0}, caller="operator")
            await seen_by(two, call, lambda now: now.started)
            await until(file.exists, "the tool to begin")
            service(two)._lease.renew_soon()
            await heard(two, first)
            with pytest.raises(Conflict, match="lives"):
                await service(two).declare_dead(first, "ann", force=False)
            member, count = await service(two).declare_dead(first, "ann", force=True)
            assert (member.id, count) == (first, 1) and member.left_s <= 0
            done = await two.result(call)
            assert done.end is not None and done.end.outcome == ended
            service(one)._lease.renew_soon()
            await asyncio.wait_for(told.wait(), 10)
            assert one.engine.own_calls() == []
            with pytest.raises(Refused, match="declared this gateway dead"):
                one.submit("quick")
            assert file.read_text() == marks
            assert service(two).figures.taken_over == 1


def _cluster(settings: Settings) -> dict[str, object]:
    return {"redis": settings.cluster.redis, "name": settings.cluster.name}


async def test_the_functions_of_a_worker_that_is_declared_dead_run_elsewhere(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D6, U4: one that hangs holds its lease back from running out no longer; it ends when it hears of it."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 2, slots=1) as both:
        async with Gateway(quick, settings=settings()) as gateway:
            await until(lambda: "safe" in gateway.engine.catalog.known, "the workers' tools")
            call = gateway.submit("safe", {"file": str(file), "seconds": 2.0}, caller="operator")
            await until(file.exists, "the function to begin")
            await until(
                lambda: any(one.role == "worker" and one.calls for one in service(gateway).members()),
                "the worker to say that it runs a function",
            )
            busy = next(one for one in service(gateway).members() if one.role == "worker" and one.calls)
            await service(gateway).declare_dead(busy.id, "ann", force=True)
            done = await gateway.result(call)
            assert done.end is not None and done.end.outcome == "ok" and file.read_text() == "xx"
            dead = next(one for one in both if one.id == busy.id)
            assert await asyncio.to_thread(dead.wait) == 0


@pytest.mark.parametrize(("tool", "ended", "marks"), [("safe", "ok", "xx"), ("unsafe", "uncertain", "x")])
async def test_a_function_that_outlasts_the_stop_of_its_worker_goes_by_the_rules(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path, tool: str, ended: str, marks: str
) -> None:
    """D6, U4: after `drain_s` a safe one runs at another worker, and any other one is uncertain."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path) as [leaving]:
        async with Gateway(quick, settings=settings()) as gateway:
            await until(lambda: tool in gateway.engine.catalog.known, "the worker's tools")
            call = gateway.submit(tool, {"file": str(file), "seconds": 60.0}, caller="operator")
            await until(file.exists, "the function to begin")
            with workers(redis, name, tmp_path / "next"):
                assert await asyncio.to_thread(leaving.stop) == 0
                done = await asyncio.wait_for(gateway.result(call), 15)
            assert done.end is not None and done.end.outcome == ended
            assert file.read_text() == marks


async def test_orders_that_cannot_be_carried_out_say_why(settings: SettingsOf) -> None:
    """D6: an unknown name, the gateway that is asked itself, a member that is silent."""
    async with Gateway(quick, settings=settings()) as one:
        own = service(one)
        with pytest.raises(UnknownName, match="unknown member 'nobody'"):
            await own.drain("nobody", "ann", drains=True)
        with pytest.raises(CallerError, match="ask another gateway"):
            await own.declare_dead(own.id, "ann", force=True)
        assert own._operations.find(own.id[:6]).id == own.id
        assert own._operations.find(own.members()[0].host).id == own.id
        with pytest.raises(UnknownName):
            own._operations.find(own.id[:3])
        async with Gateway(quick, settings=settings()) as two:
            await heard(one, service(two).id)
            with pytest.raises(Ambiguous):
                own._operations.find(own.members()[0].host)


async def test_a_gateway_that_ends_while_its_calls_are_taken_over_is_known(settings: SettingsOf) -> None:
    """D6: it is not listed any more then, as it obeyed; that is no unknown member."""
    async with Gateway(quick, settings=settings()) as one, Gateway(quick, settings=settings()) as two:
        first = service(one).id
        await heard(two, first)
        journal, lease = service(two)._member.journal, service(two)._lease

        async def take_over_slowly() -> list[str]:
            await asyncio.to_thread(service(one)._lease.stop)
            await until(lambda: all(each.id != first for each in service(two).members()), "its end")
            return []

        operations = Operations(journal, lease, service(two).members, take_over_slowly)
        member, count = await operations.declare_dead(first, "ann", force=True)
        assert (member.id, count) == (first, 0) and member.left_s <= 0


async def test_a_silent_member_is_not_waited_for(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D6: a worker whose process stands still obeys nothing; that is said, and its lease then runs out."""
    with workers(redis, name, tmp_path) as [worker]:
        async with Gateway(quick, settings=settings()) as gateway:
            await heard(gateway, worker.id)
            os.kill(worker.pid, signal.SIGSTOP)
            try:
                with pytest.raises((StoreError, UnknownName)):
                    await service(gateway).drain(worker.id, "ann", drains=True)
                with pytest.raises(Conflict, match="silent"):
                    await service(gateway).drain(worker.id, "ann", drains=True)
                member, count = await service(gateway).declare_dead(worker.id, "ann", force=False)
                assert (member.id, count) == (worker.id, 0)
            finally:
                os.kill(worker.pid, signal.SIGCONT)
