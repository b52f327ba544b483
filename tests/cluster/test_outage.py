"""Redis goes away while calls run: they wait or go on, and nothing that was recorded is lost."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from redis.exceptions import RedisError

from afoot import Gateway
from afoot.cluster.lease import Lease
from afoot.config.settings import Settings
from afoot.core.facts import Entry
from afoot.errors import Refused
from tests.cluster.cluster_tools import ask, quick, seen_by, until
from tests.cluster.redis_server import RedisServer

SettingsOf = Callable[..., Settings]


def restarts(redis: RedisServer) -> Callable[[], object]:
    """Kill the server; it comes back with what its file has."""
    redis.kill()
    return redis.start


def pauses(redis: RedisServer) -> Callable[[], object]:
    """Stop the server for a while; connections stay open."""
    redis.pause()
    return redis.go_on


def refuses_writes(redis: RedisServer) -> Callable[[], object]:
    """Let the server be one that takes no writes, as a replica or after a failover."""
    redis.client().config_set("min-replicas-to-write", 1)
    return lambda: redis.client().config_set("min-replicas-to-write", 0)


def has_no_memory(redis: RedisServer) -> Callable[[], object]:
    """Let the server be out of memory."""
    redis.client().config_set("maxmemory", 1)
    return lambda: redis.client().config_set("maxmemory", 0)


def cuts(redis: RedisServer) -> Callable[[], object]:
    """Cut every connection, once."""
    with suppress(RedisError):
        redis.client().client_kill_filter(_type="normal", skipme=True)
    return lambda: None


@pytest.mark.parametrize("trouble", [restarts, pauses, refuses_writes, has_no_memory, cuts])
async def test_calls_go_on_through_an_outage(
    redis: RedisServer, settings: SettingsOf, trouble: Callable[[RedisServer], Callable[[], object]]
) -> None:
    """D2, H1: a call that waited for a person gets its answer later, and every fact is in the history."""
    async with Gateway(ask, quick, settings=settings()) as one, Gateway(ask, settings=settings()) as two:
        waiting = one.submit("ask", caller="operator")
        seen = await seen_by(two, waiting, lambda now: now.open)
        end_trouble = await asyncio.to_thread(trouble, redis)
        try:
            during = await asyncio.wait_for(one.call("quick"), 10)
        finally:
            await asyncio.to_thread(end_trouble)
        assert during.end and during.end.outcome == "ok"
        await until(lambda: one.engine.recorder.degraded is None, "the history to be back")
        # Its lease may have run out meanwhile; then the call is between two owners for a moment.
        owner = await until(
            lambda: next((at for at in (one, two) if at.engine.own_call(waiting)), None),
            "an owner of the call",
        )
        await until(
            lambda: owner.engine[waiting].recorded == owner.engine[waiting].call.seq, "facts to be kept"
        )
        owner.answer(next(iter(seen.open)), {"name": "Ann"})
        done = await asyncio.wait_for(owner.result(waiting), 10)
        assert done.end and done.end.outcome == "ok"
        for gateway in (one, two):
            await gateway.engine.recorder.recorded()
        for call in (waiting, during.id):
            assert _is_whole(await two.engine.journal.facts(call)), call


async def test_a_required_history_refuses_new_calls_while_redis_is_away(
    redis: RedisServer, settings: SettingsOf
) -> None:
    """D2, D5: and takes them again once it is back."""
    async with Gateway(quick, settings=settings(history="required")) as gateway:
        await gateway.call("quick")
        redis.client().config_set("min-replicas-to-write", 1)
        try:
            await gateway.call("quick")  # what was begun is not refused
            await until(lambda: gateway.engine.recorder.degraded, "the outage to be noticed")
            with pytest.raises(Refused, match="history cannot be written"):
                await gateway.call("quick")
        finally:
            redis.client().config_set("min-replicas-to-write", 0)
        await until(lambda: gateway.engine.recorder.degraded is None, "the history to be back")
        done = await gateway.call("quick")
        assert done.end and done.end.outcome == "ok"


async def test_a_lease_is_taken_from_a_server_that_is_late(redis: RedisServer, name: str) -> None:
    """D2: a gateway starts although one reply takes longer than the time of a renewal."""
    lease = Lease(redis.url, f"{{{name}}}:", "late", 1.0)
    redis.pause()
    asyncio.get_running_loop().call_later(0.5, redis.go_on)
    await asyncio.to_thread(lease.start)
    assert lease.holds
    await asyncio.to_thread(lease.stop)


def _is_whole(entries: list[Entry]) -> bool:
    """Whether a history has all facts of a call, each once."""
    return bool(entries) and [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
