"""Gateways that are cut off from Redis: others take their calls, and what they still write is refused."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from afoot import Gateway
from afoot.cluster.lease import Lease
from afoot.cluster.takeover import _TAKE, CALLS_AT_ONCE, LOOK_S
from afoot.config.settings import Settings, make_settings
from afoot.core.facts import Finished, Interrupted, Started
from afoot.store.redis.journal import RedisJournal
from tests.cluster.breakable_link import BreakableLink, breakable_link
from tests.cluster.cluster_tools import ask, careful, safe, seen_by, unsafe, until
from tests.cluster.redis_server import RedisServer
from tests.store.sample_batches import entries, opened, write

SettingsOf = Callable[..., Settings]
TOOLS = (ask, careful, safe, unsafe)


@asynccontextmanager
async def two_gateways(
    redis: RedisServer, name: str, settings: SettingsOf
) -> AsyncIterator[tuple[Gateway, Gateway, BreakableLink]]:
    """A gateway behind a link that can be cut, and another one."""
    async with breakable_link(redis.port) as link:
        behind = make_settings(
            {
                "cluster": {"redis": link.url, "name": name, "lease_s": 1.0},
                "drain_s": 0,
                "unanswerable": "wait",
            }
        )
        async with Gateway(*TOOLS, settings=behind) as one, Gateway(*TOOLS, settings=settings()) as two:
            yield one, two, link
            link.mend()


async def taken_over(gateway: Gateway, call: str) -> None:
    """Wait until a gateway has a call as its own, or has ended it."""
    await until(
        lambda: call not in gateway.engine or gateway.engine.own_call(call), f"{call} to be taken over"
    )


async def outcome(gateway: Gateway, call: str) -> str:
    """The outcome that the history has, once it has one."""
    done = await gateway.result(call)
    assert done.end is not None
    return done.end.outcome


@pytest.mark.parametrize(("tool", "ended"), [("safe", "ok"), ("unsafe", "uncertain")])
async def test_a_running_call_of_a_lost_gateway_goes_on_by_the_rules(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path, tool: str, ended: str
) -> None:
    """D2, D3, U4: a safe one is run again, another one is uncertain; the lost gateway writes nothing more."""
    file = tmp_path / "marks"
    async with two_gateways(redis, name, settings) as (one, two, link):
        call = one.submit(tool, {"file": str(file), "seconds": 2.0}, caller="operator")
        await seen_by(two, call, lambda now: now.started)
        await until(file.exists, "the tool to begin")
        link.cut()
        await taken_over(two, call)
        assert await outcome(two, call) == ended
        assert file.read_text() == ("xx" if tool == "safe" else "x")
        link.mend()
        await until(lambda: one.engine.own_call(call) is None, "the lost gateway to know")
        facts = [entry.fact for entry in await two.engine.journal.facts(call)]
        assert sum(type(fact) is Finished for fact in facts) == 1
        assert sum(type(fact) is Interrupted for fact in facts) == 1


async def test_a_question_of_a_lost_gateway_is_open_at_the_next(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D2, H4: an approval is asked on, and the call then runs once."""
    file = tmp_path / "marks"
    async with two_gateways(redis, name, settings) as (one, two, link):
        call = one.submit("careful", {"file": str(file), "seconds": 0.0}, caller="operator")
        await seen_by(two, call, lambda now: now.open)
        link.cut()
        await taken_over(two, call)
        question = next(iter(two.engine[call].call.open))
        two.answer(question, {"decision": "run"})
        assert await outcome(two, call) == "ok" and file.read_text() == "x"


async def test_an_answer_that_its_owner_never_took_reaches_the_next_owner(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D1, D2: a command is kept beside its call until somebody has carried it out."""
    file = tmp_path / "marks"
    async with two_gateways(redis, name, settings) as (one, two, link):
        call = one.submit("careful", {"file": str(file), "seconds": 0.0}, caller="operator")
        seen = await seen_by(two, call, lambda now: now.open)
        link.cut()
        two.answer(next(iter(seen.open)), {"decision": "run"})
        assert await outcome(two, call) == "ok" and file.read_text() == "x"


async def test_a_call_that_waits_starts_at_one_gateway_alone(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D3: approved where nothing can be written, it does not start before its start is on record."""
    file = tmp_path / "marks"
    async with two_gateways(redis, name, settings) as (one, two, link):
        call = one.submit("careful", {"file": str(file), "seconds": 0.0}, caller="operator")
        seen = await seen_by(two, call, lambda now: now.open)
        question = next(iter(seen.open))
        link.cut()
        one.answer(question, {"decision": "run"})
        await taken_over(two, call)
        assert not file.exists()
        two.answer(question, {"decision": "run"})
        assert await outcome(two, call) == "ok"
        link.mend()
        await until(lambda: one.engine.own_call(call) is None, "the lost gateway to know")
        assert file.read_text() == "x"
        starts = [entry for entry in await two.engine.journal.facts(call) if type(entry.fact) is Started]
        assert len(starts) == 1


async def test_a_short_cut_costs_nothing(
    redis: RedisServer, name: str, settings: SettingsOf, tmp_path: Path
) -> None:
    """D2: connections that break are opened again, and the call stays with its gateway."""
    file = tmp_path / "marks"
    async with two_gateways(redis, name, settings) as (one, two, link):
        call = one.submit("unsafe", {"file": str(file), "seconds": 0.5}, caller="operator")
        await seen_by(two, call, lambda now: now.started)
        link.cut()
        link.mend()
        assert await outcome(one, call) == "ok"
        await one.engine.recorder.recorded()
        assert await outcome(two, call) == "ok" and file.read_text() == "x"


class GoneGateway:
    """Calls of a gateway that is not in this process; `stop` gives its lease back, so that it is gone."""

    def __init__(self, redis: RedisServer, name: str) -> None:
        self._redis = redis
        self._name = name
        self.lease = Lease(redis.url, f"{{{name}}}:", "gone", 1.0)

    async def open_calls(self, count: int = 1) -> list[str]:
        """Write the facts of calls that run."""
        await asyncio.to_thread(self.lease.start)
        calls = [f"call{number:03}" for number in range(count)]
        async with RedisJournal(self._redis.url, self._name, "gone") as journal:
            for call in calls:
                await write(journal, *entries(call, [opened(), Started(2.0)]))
        return calls

    async def stop(self) -> None:
        """Leave the calls behind."""
        await asyncio.to_thread(self.lease.stop)


async def all_uncertain(gateway: Gateway, calls: list[str]) -> None:
    """Wait until calls have ended as those of a gateway that died, and are nobody's."""
    journal = gateway.engine.journal

    async def ended() -> bool:
        return not set(calls) & set(await journal.unfinished())

    async with asyncio.timeout(15):
        while not await ended():  # noqa: ASYNC110 - the history is in Redis
            await asyncio.sleep(0.05)
    for call in calls:
        assert await outcome(gateway, call) == "uncertain"


async def heard_of(gateway: Gateway, *, gone: bool) -> None:
    """Wait until a gateway has heard of the other one, or that it is gone."""
    assert gateway.cluster is not None
    cluster = gateway.cluster
    await until(lambda: any(one.id == "gone" for one in cluster.members()) is not gone, "the other gateway")


async def test_however_many_calls_of_gateways_that_are_long_gone_are_taken_over(
    redis: RedisServer, name: str, settings: SettingsOf
) -> None:
    """D2: at the start, when nobody is listed any more, and more than are taken at once."""
    gone = GoneGateway(redis, name)
    calls = await gone.open_calls(CALLS_AT_ONCE + 20)
    await gone.stop()
    async with Gateway(*TOOLS, settings=settings()) as gateway:
        await all_uncertain(gateway, calls)


async def test_calls_that_were_left_to_a_drained_gateway_are_taken_over_once_it_takes_calls_again(
    redis: RedisServer, name: str, settings: SettingsOf
) -> None:
    """D2, D6: they do not wait for ever because nobody looked when their gateway left."""
    gone = GoneGateway(redis, name)
    calls = await gone.open_calls()
    async with Gateway(*TOOLS, settings=settings()) as gateway:
        await heard_of(gateway, gone=False)
        assert gateway.cluster is not None
        await gateway.cluster.drain(gateway.cluster.id, "ann", drains=True)
        await gone.stop()
        await heard_of(gateway, gone=True)
        await asyncio.sleep(2 * LOOK_S)
        await gateway.cluster.drain(gateway.cluster.id, "ann", drains=False)
        await all_uncertain(gateway, calls)


@pytest.mark.parametrize("key", ["owners", "facts:call000"])
async def test_calls_are_taken_over_after_a_look_that_failed(
    redis: RedisServer, name: str, settings: SettingsOf, key: str
) -> None:
    """D2: whether they could not be taken, or were taken and could not be read."""
    gone, client = GoneGateway(redis, name), redis.client()
    key = f"{{{name}}}:{key}"
    async with Gateway(*TOOLS, settings=settings()) as gateway:
        calls = await gone.open_calls(3)
        await heard_of(gateway, gone=False)
        client.rename(key, "aside")
        client.set(key, "of another type, so that it cannot be read")
        await gone.stop()
        await heard_of(gateway, gone=True)
        await asyncio.sleep(2 * LOOK_S)
        client.rename("aside", key)
        await all_uncertain(gateway, calls)


async def test_calls_are_taken_over_although_the_reply_to_that_is_lost(
    redis: RedisServer, name: str, settings: SettingsOf
) -> None:
    """D2: they are ours in Redis then, and nobody else would ever take them."""
    async with two_gateways(redis, name, settings) as (behind, other, link):
        assert behind.cluster is not None and other.cluster is not None
        await other.cluster.drain(other.cluster.id, "ann", drains=True)
        redis.client().script_load(_TAKE)
        gone = GoneGateway(redis, name)
        calls = await gone.open_calls(3)
        await heard_of(behind, gone=False)
        link.loses_reply_to = hashlib.sha1(_TAKE.encode(), usedforsecurity=False).hexdigest().encode()
        await gone.stop()
        await all_uncertain(behind, calls)
        assert link.loses_reply_to == b""
