"""The limit of a tool counts over all gateways: one line, in which callers take turns (D8)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from afoot import Gateway
from afoot.cluster.functions import SERVER
from afoot.cluster.slots import ClusterSlots
from afoot.config.settings import Settings
from afoot.core.call import State
from afoot.core.facts import Finished
from tests.cluster.breakable_link import breakable_link
from tests.cluster.cluster_tools import WAIT_S, add_line, cramped, crash, narrow, quick, until
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_gateways import gateway
from tests.cluster.test_workers import gateway_of
from tests.cluster.worker_process import TOOLS as TOOLS_FILE
from tests.cluster.worker_process import workers
from tests.e2e.gateway import Gateway as GatewayProcess
from tests.serve.api_client import Api

SettingsOf = Callable[..., Settings]
TOOLS = (cramped, narrow, quick)


@asynccontextmanager
async def two_gateways(settings: SettingsOf, **more: Any) -> AsyncIterator[tuple[Gateway, Gateway]]:
    """Two gateways, each with the tools itself."""
    async with (
        Gateway(*TOOLS, settings=settings(**more)) as one,
        Gateway(*TOOLS, settings=settings(**more)) as two,
    ):
        yield one, two


def submit(
    gateway: Gateway, file: Path, who: str, seconds: float = 0.05, tool: str = "narrow", caller: str = ""
) -> str:
    """Call a tool that marks its beginning and its end."""
    arguments = {"file": str(file), "who": who, "seconds": seconds}
    return gateway.submit(tool, arguments, caller=caller or f"session:{who}")


async def ended(gateway: Gateway, call: str) -> Finished:
    """The end of a call."""
    done = await asyncio.wait_for(gateway.result(call), WAIT_S)
    assert done.end is not None
    return done.end


def marks(file: Path) -> list[str]:
    """The beginnings and ends, in their order."""
    return file.read_text().split() if file.exists() else []


def began(file: Path) -> list[str]:
    """Who has begun, in this order."""
    return [mark[1:] for mark in marks(file) if mark[0] == "+"]


def most_at_once(file: Path) -> int:
    """The largest number of calls that ran at once."""
    now = most = 0
    for mark in marks(file):
        now += 1 if mark[0] == "+" else -1
        most = max(most, now)
    return most


def kept(redis: RedisServer, name: str, what: str) -> Sequence[str]:
    """The keys of a kind that Redis has for this cluster."""
    keys = redis.client().execute_command("KEYS", f"{{{name}}}:{what}:*")
    return [key.decode() for key in keys]


def left_over(redis: RedisServer, name: str) -> Sequence[str]:
    """All that Redis keeps of slots and lines."""
    kinds = "slots", "waiting", "held", "since", "turns", "line"
    return [key for kind in kinds for key in kept(redis, name, kind)]


@pytest.mark.parametrize(("tool", "most"), [("narrow", 1), ("cramped", 2)])
async def test_a_tool_runs_at_most_so_often_at_once_over_all_gateways(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path, tool: str, most: int
) -> None:
    """D8: functions of the gateways themselves. All slots come back, and nothing is left in Redis."""
    file = tmp_path / "marks"
    async with two_gateways(settings) as both:
        calls = [
            (at, submit(at, file, str(n), tool=tool)) for n, at in zip(range(5), cycle(both), strict=False)
        ]
        assert [(await ended(at, call)).outcome for at, call in calls] == ["ok"] * 5
        assert most_at_once(file) == most and len(began(file)) == 5
        await until(lambda: not left_over(redis, name), "all slots to be given back")


async def test_a_function_on_workers_runs_at_most_so_often_at_once(
    redis: RedisServer, name: str, tmp_path: Path
) -> None:
    """D8: two gateways and three workers with room for all calls. It is offered without slots of its own."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 3):
        async with gateway_of(redis, name) as one, gateway_of(redis, name) as two:
            for at in (one, two):
                await until(lambda at=at: at.engine.slots.on_workers.get(SERVER) == 12, "all three workers")
            calls = [
                (at, submit(at, file, str(n))) for n, at in zip(range(6), cycle((one, two)), strict=False)
            ]
            assert [(await ended(at, call)).outcome for at, call in calls] == ["ok"] * 6
    assert most_at_once(file) == 1 and sorted(began(file)) == list("012345")


async def test_callers_take_turns_whichever_gateway_they_use(settings: SettingsOf, tmp_path: Path) -> None:
    """D8: two callers with twenty calls each over two gateways; one came before the other."""
    file = tmp_path / "marks"
    async with two_gateways(settings) as both:
        calls = list[tuple[Gateway, str]]()
        for who in ("early", "late"):
            calls += [(at, submit(at, file, who, 0.005)) for at in both for _ in range(10)]
            await until(lambda: all(_waits_in_redis(at) for at in both), "the calls to be in line")
        for at, call in calls:
            assert (await ended(at, call)).outcome == "ok"
    order = began(file)
    from_then = order[order.index("late") :]
    assert len(order) == 40 and most_at_once(file) == 1
    # While both wait they take turns, whichever gateway the next call is at.
    paired = from_then[: 2 * min(from_then.count("early"), from_then.count("late"))]
    assert paired == ["late", "early"] * (len(paired) // 2) and len(paired) >= 20


async def test_the_queue_of_a_tool_counts_over_all_gateways(settings: SettingsOf, tmp_path: Path) -> None:
    """D8, C8: over its bound a call is refused wherever it comes in, and one that leaves makes room."""
    file = tmp_path / "marks"
    async with two_gateways(settings) as (one, two):
        running = [submit(at, file, "runs", 60, "cramped") for at in (one, two)]
        await until(lambda: len(began(file)) == 2, "two to run")
        waiting = [submit(at, file, "waits", 0, "cramped") for at in (one, two, one)]
        await until(lambda: all(_waits_in_redis(at) for at in (one, two)), "the others to be in line")
        end = await ended(two, submit(two, file, "refused", 0, "cramped"))
        assert end.failure and (end.outcome, end.failure.code) == ("failed", "queue_full")
        assert end.failure.side_effects == "none" and "is full (3 calls)" in end.failure.message
        one.cancel(waiting[0])
        assert (await ended(one, waiting[0])).outcome == "cancelled"
        last = submit(two, file, "in time", 0, "cramped")
        for at, call in zip((one, two), running, strict=True):
            at.cancel(call)
        assert (await ended(two, last)).outcome == "ok"
        assert (await ended(two, waiting[1])).outcome == "ok"
        assert "refused" not in began(file)


async def test_a_slot_of_a_killed_gateway_comes_free(redis: RedisServer, tmp_path: Path) -> None:
    """D8, D2: after its lease; its own call that waits keeps its place before that of the other gateway."""
    file = tmp_path / "marks"
    doomed, other = (gateway_process(tmp_path, redis, number, TOOLS_FILE) for number in (1, 2))
    try:
        start(doomed, file, "first", 60)
        await until(lambda: began(file) == ["first"], "the first to run")
        second = start(doomed, file, "second", 0)
        third = start(other, file, "third", 0)
        await until(lambda: queued(other, 2), "two to wait")
        doomed.kill()
        add_line(str(file), "-first")  # a killed process says nothing
        ends = [await asyncio.to_thread(Api(other).ended, call) for call in (second, third)]
        assert [end["outcome"] for end in ends] == ["ok", "ok"]
        assert began(file) == ["first", "second", "third"] and most_at_once(file) == 1
    finally:
        doomed.kill()
        other.stop()


async def test_a_function_that_outlives_its_gateway_keeps_its_slot(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D8, D2: the slot is the call's. Whoever takes the call over frees it when the function is over."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 1):
        async with breakable_link(redis.port) as link, gateway_of(redis, name) as two:
            behind = RedisServer(tmp_path)
            behind.url = link.url
            async with gateway_of(behind, name) as one:
                call = submit(one, file, "lasting", 3.0, caller="operator")
                await until(lambda: began(file) == ["lasting"], "it to run")
                waiting = submit(two, file, "waiting", 0)
                await until(lambda: _waits_in_redis(two), "the other to be in line")
                link.cut()
                await until(lambda: two.engine.own_call(call), "it to be taken over")
                assert (await ended(two, call)).outcome == "ok"
                assert (await ended(two, waiting)).outcome == "ok"
                assert marks(file) == ["+lasting", "-lasting", "+waiting", "-waiting"]
                link.mend()
                await until(lambda: one.engine.own_call(call) is None, "the lost gateway to know")
            await until(lambda: not left_over(redis, name), "all slots to be given back")


async def test_a_function_keeps_its_slot_while_its_gateways_are_stopped_in_turn(
    redis: RedisServer, name: str, tmp_path: Path
) -> None:
    """D6, D8: also by an owner that has taken its call over, and leaves it to the next."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 1):
        async with gateway_of(redis, name) as last:
            async with gateway_of(redis, name) as second:
                async with gateway_of(redis, name) as first:
                    clusters = [one.cluster for one in (first, second, last) if one.cluster is not None]
                    for cluster in clusters:
                        await until(lambda of=cluster: len(of.members()) == 4, "all to be heard of")
                    call = submit(first, file, "first", 6.0)
                    await until(lambda: began(file), "the function to begin")
                    later = submit(last, file, "later")
                    last.engine.drain("it is not the next one")
                    await clusters[0].hand_over()
                await until(lambda: second.engine.own_call(call), "the call to be taken over")
                last.engine.drain(None)
                await clusters[1].hand_over()
                await asyncio.sleep(0.3)  # for all that it has to say of the call
            await until(lambda: last.engine.own_call(call), "the call to be taken over again")
            assert [(await ended(last, each)).outcome for each in (call, later)] == ["ok", "ok"]
            assert most_at_once(file) == 1


async def test_a_gateway_that_was_cut_off_starts_nothing_that_another_one_has(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D8, D3: its call waits in line, is taken over there with its place, and runs once."""
    file = tmp_path / "marks"
    async with breakable_link(redis.port) as link:
        cluster = {"redis": link.url, "name": name, "lease_s": 1.0}
        behind = settings(cluster=cluster)
        async with (
            Gateway(*TOOLS, settings=behind) as one,
            Gateway(*TOOLS, settings=settings()) as two,
        ):
            first = submit(two, file, "first", 4.0)
            await until(lambda: began(file) == ["first"], "the first to run")
            waiting = submit(one, file, "waiting", 0, caller="operator")
            await until(lambda: _waits_in_redis(one), "the other to be in line")
            link.cut()
            await until(lambda: two.engine.own_call(waiting), "it to be taken over")
            link.mend()
            await until(lambda: one.engine.own_call(waiting) is None, "the lost gateway to know")
            assert (await ended(two, first)).outcome == "ok"
            assert (await ended(two, waiting)).outcome == "ok"
            assert marks(file) == ["+first", "-first", "+waiting", "-waiting"]
            await until(lambda: not left_over(redis, name), "all slots to be given back")


@pytest.mark.parametrize("loss", ["of slots and lines", "of the end of a call"])
async def test_a_redis_that_lost_its_newest_second_gives_no_slot_twice(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path, loss: str
) -> None:
    """D8: nor keeps one for ever: it hears from each gateway who has slots before it gives new ones."""
    file = tmp_path / "marks"
    client = redis.client()
    async with two_gateways(settings) as (one, two):
        running = submit(one, file, "runs", 60)
        await until(lambda: began(file) == ["runs"], "the first to run")
        if loss == "of slots and lines":
            waiting = submit(two, file, "waits", 0)
            await until(lambda: _waits_in_redis(two), "the other to be in line")
            client.delete(*left_over(redis, name))
        else:
            key = kept(redis, name, "slots")[0]
            before = [part for pair in client.hgetall(key).items() for part in pair]
            one.cancel(running)
            await until(lambda: not kept(redis, name, "slots"), "the slot to be given back")
            client.execute_command("HSET", key, *before)
            waiting = submit(two, file, "waits", 0)
            await until(lambda: _waits_in_redis(two), "the other to be in line")
        await asyncio.sleep(1.1)  # what is older than a second is on the disk
        await asyncio.to_thread(redis.kill)
        await asyncio.to_thread(redis.start)
        if loss == "of slots and lines":
            await until(lambda: kept(redis, name, "slots") and kept(redis, name, "waiting"), "all to be said")
            assert began(file) == ["runs"]
            one.cancel(running)
        assert (await ended(two, waiting)).outcome == "ok"
        assert marks(file) == ["+runs", "-runs", "+waits", "-waits"]


async def test_calls_in_line_wait_through_a_restart_of_redis(
    redis: RedisServer, settings: SettingsOf, tmp_path: Path
) -> None:
    """D8, D2: a slot that comes free meanwhile is given once Redis is back."""
    file = tmp_path / "marks"
    async with two_gateways(settings) as (one, two):
        running = submit(one, file, "runs", 0.5)
        await until(lambda: began(file) == ["runs"], "the first to run")
        waiting = submit(two, file, "waits", 0)
        await until(lambda: _waits_in_redis(two), "the other to be in line")
        await asyncio.sleep(1.1)  # what is older than a second is on the disk
        await asyncio.to_thread(redis.kill)
        during = submit(one, file, "new", 0)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(redis.start)
        ends = [await ended(at, call) for at, call in ((one, running), (two, waiting), (one, during))]
        assert [end.outcome for end in ends] == ["ok"] * 3
        assert most_at_once(file) == 1 and len(began(file)) == 3


async def test_a_call_that_waits_for_the_cluster_holds_no_slot_of_its_gateway(
    settings: SettingsOf, tmp_path: Path
) -> None:
    """D8, C8: nor the other way round: the limit of the gateway's server is another one."""
    file = tmp_path / "marks"
    async with two_gateways(settings, server_concurrency=1) as (one, two):
        running = submit(two, file, "runs", 60)
        await until(lambda: began(file) == ["runs"], "the first to run")
        waiting = submit(one, file, "waits", 0)
        await until(lambda: _waits_in_redis(one), "the other to be in line")
        assert (await one.call("quick")).end  # the slot of its gateway is free
        busy = submit(one, file, "busy", 60, "cramped")
        await until(lambda: "busy" in began(file), "the gateway to be busy")
        two.cancel(running)
        third = submit(two, file, "third", 0)  # may run although another one came before
        assert (await ended(two, third)).outcome == "ok"
        one.cancel(busy)
        assert (await ended(one, waiting)).outcome == "ok"
        assert began(file) == ["runs", "busy", "third", "waits"]


async def test_the_default_limit_of_isolated_tools_counts_at_each_gateway(settings: SettingsOf) -> None:
    """D8: it is what one machine bears; a limit that somebody has set counts over all."""
    tools = {"quick": {"isolate": True}, "crash": {"isolate": True, "concurrency": 3}}
    async with Gateway(quick, crash, settings=settings(tools=tools)) as gateway:
        offered = {tool.name: tool for tool in gateway.tools()}
        assert offered["quick"].concurrency > 0 and not _slots(gateway).counts(offered["quick"])
        assert _slots(gateway).counts(offered["crash"])


def gateway_process(folder: Path, redis: RedisServer, number: int, tools: Path) -> GatewayProcess:
    """A gateway in a process of its own, which can be killed."""
    return gateway(folder, redis, number, tools)


def start(at: GatewayProcess, file: Path, who: str, seconds: float) -> str:
    """Call the tool that runs alone, as the operator, who finds the call again."""
    return Api(at).start("narrow", file=str(file), who=who, seconds=seconds)


def queued(at: GatewayProcess, number: int) -> bool:
    """Whether so many calls of the cluster wait."""
    return len(Api(at).get("/api/calls?state=queued").body["calls"]) == number


def _slots(gateway: Gateway) -> ClusterSlots:
    shared = gateway.engine.slots.shared
    assert isinstance(shared, ClusterSlots)
    return shared


def _waits_in_redis(gateway: Gateway) -> bool:
    """Whether every call that waits at a gateway has its place in the line."""
    queued = [live for live in gateway.engine.own_calls() if live.call.state is State.QUEUED]
    wishes = [_slots(gateway)._wishes.get(live.call.id) for live in queued]
    return all(wish is not None and (wish.place > 0 or wish.is_held) for wish in wishes)
