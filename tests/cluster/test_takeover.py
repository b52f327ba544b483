"""Gateways that are cut off from Redis: others take their calls, and what they still write is refused."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from afoot import Gateway
from afoot.config.settings import Settings, make_settings
from afoot.core.facts import Finished, Interrupted, Started
from tests.cluster.breakable_link import BreakableLink, breakable_link
from tests.cluster.cluster_tools import ask, careful, safe, seen_by, unsafe, until
from tests.cluster.redis_server import RedisServer

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
