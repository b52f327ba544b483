"""Functions on workers report, ask and stop as at a gateway; one that dies costs no call its truth."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from afoot import Gateway
from afoot.cluster.function_worker import CONFIRM_S
from afoot.cluster.runs import BEGIN_RUN, WANT
from afoot.config.settings import Settings, make_settings
from afoot.core.facts import Finished, Opened, Reported, Started
from afoot.store.redis.journal import RedisJournal
from tests.cluster.cluster_tools import WAIT_S, until
from tests.cluster.redis_server import RedisServer
from tests.cluster.worker_process import WorkerProcess, workers
from tests.store.sample_batches import entries, opened, write

SHARED = "shared"  # the cluster of the workers that most tests use


@pytest.fixture(scope="module")
def two_workers(
    redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[WorkerProcess]]:
    """Two workers that no test kills."""
    with workers(redis, SHARED, tmp_path_factory.mktemp("workers"), 2) as started:
        yield started


def of(redis: RedisServer, name: str = SHARED) -> Settings:
    """Settings of a gateway of this cluster."""
    cluster = {"redis": redis.url, "name": name, "lease_s": 1.0}
    return make_settings({"cluster": cluster, "drain_s": 0, "unanswerable": "wait", "cancel_grace_s": 2})


@asynccontextmanager
async def gateway_of(redis: RedisServer, name: str = SHARED) -> AsyncIterator[Gateway]:
    """A gateway that has no functions of its own."""
    gateway = Gateway(settings=of(redis, name))
    gateway.bare = True
    async with gateway:
        await until(
            lambda: any(tool.name == "quick" for tool in gateway.tools()), "the functions of the workers"
        )
        yield gateway


async def ended(gateway: Gateway, call: str) -> Finished:
    """The end of a call."""
    done = await asyncio.wait_for(gateway.result(call), WAIT_S)
    assert done.end is not None
    return done.end


async def test_a_function_runs_on_a_worker(redis: RedisServer, two_workers: list[WorkerProcess]) -> None:
    """D1: it is offered and called as any other; its history says that it was started once."""
    async with gateway_of(redis) as gateway:
        end = await ended(gateway, gateway.submit("quick"))
        assert end.result is not None and b"hello" in bytes(end.result.content)
        call = gateway.submit("in_thread", {"n": 20}, caller="operator")
        items = [item async for item in gateway.follow(call)]
        assert [type(item) for item in items if isinstance(item, Opened | Started | Finished)] == [
            Opened, Started, Finished,
        ]  # fmt: skip
        assert sum(isinstance(item, Reported) and bool(item.checkpoint) for item in items) == 20
        last = items[-1]
        assert isinstance(last, Finished) and last.result is not None
        told = json.loads(bytes(last.result.structured))
        assert told["counted"] == 20


async def test_a_result_is_sent_once(redis: RedisServer, two_workers: list[WorkerProcess]) -> None:
    """D1: the look whether it is on record sends it no second time; results may be large."""
    async with gateway_of(redis) as gateway:
        assert gateway.cluster is not None
        inbox = f"{{{SHARED}}}:inbox:{gateway.cluster.id}"
        assert (await ended(gateway, gateway.submit("in_thread", {"n": 1}))).outcome == "ok"
        said = entries_added(redis, inbox)
        await asyncio.sleep(CONFIRM_S + 1.0)
        assert said and entries_added(redis, inbox) == said


def entries_added(redis: RedisServer, stream: str) -> int:
    """How many entries a stream has ever had."""
    told: Any = redis.client().execute_command("XINFO", "STREAM", stream)
    found = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))
    return int(
        {str(key, "utf8") if isinstance(key, bytes) else key: n for key, n in found.items()}["entries-added"]
    )


async def test_a_function_asks_and_is_answered(redis: RedisServer, two_workers: list[WorkerProcess]) -> None:
    """D1, Q1: straight-line code on a worker, and an answer given at any gateway."""
    async with gateway_of(redis) as one, gateway_of(redis) as two:
        call = one.submit("ask", caller="operator")
        await until(
            lambda: call in two.engine and two.engine[call].call.open, "the question at the other gateway"
        )
        two.answer(next(iter(two.engine[call].call.open)), {"name": "Ann"})
        end = await ended(one, call)
        assert end.result is not None and b"hello Ann" in bytes(end.result.content)


async def test_a_function_is_cancelled(redis: RedisServer, two_workers: list[WorkerProcess]) -> None:
    """D1, X1: the worker's task really stops, and says so within the grace."""
    async with gateway_of(redis) as gateway:
        call = gateway.submit("steps", {"n": 5}, caller="operator")
        await until(lambda: gateway.engine[call].call.contents, "its last report")
        live = gateway.engine[call]
        assert live.call.readings and live.call.latest is not None and live.call.latest.total == 5
        gateway.cancel(call, "enough")
        end = await ended(gateway, call)
        assert end.outcome == "cancelled"
        await until(lambda: live.call.released, "its release")
        assert live.call.released is not None and live.call.released.how == "stopped"


async def test_wrong_arguments_and_crashes_are_told_as_at_a_gateway(
    redis: RedisServer, two_workers: list[WorkerProcess]
) -> None:
    """D1, E3, E4: the field is named before anything runs; a crash is a clean message."""
    async with gateway_of(redis) as gateway:
        wrong = await ended(gateway, gateway.submit("steps", {"n": "many"}))
        assert wrong.failure is not None and wrong.failure.category == "validation"
        assert "n" in wrong.failure.message and wrong.failure.side_effects == "none"
        crashed = await ended(gateway, gateway.submit("crash"))
        assert crashed.failure is not None and "ZeroDivisionError" in crashed.failure.message
        assert "Traceback" not in crashed.failure.message and "oh no" in crashed.failure.trace


async def test_calls_are_shared_by_workers(redis: RedisServer, two_workers: list[WorkerProcess]) -> None:
    """D1: more at once than one worker takes; each runs once."""
    async with gateway_of(redis) as gateway:
        calls = [gateway.submit("in_thread", {"n": 3}) for _ in range(40)]
        ends = [await ended(gateway, call) for call in calls]
        told = [json.loads(bytes(end.result.structured)) for end in ends if end.result is not None]
        assert len(told) == 40 and len({one["pid"] for one in told}) == 2


@pytest.mark.parametrize(("tool", "outcome", "marks"), [("safe", "ok", "xx"), ("unsafe", "uncertain", "x")])
async def test_a_worker_that_is_killed(
    redis: RedisServer, name: str, tmp_path: Path, tool: str, outcome: str, marks: str
) -> None:
    """D2, U4: a safe call runs again at another worker, any other is uncertain, and runs once."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 1) as [doomed]:
        async with gateway_of(redis, name) as gateway:
            call = gateway.submit(tool, {"file": str(file), "seconds": 30.0}, caller="operator")
            await until(file.exists, "the function to begin")
            with workers(redis, name, tmp_path / "more", 1 if tool == "safe" else 0):
                doomed.kill()
                began = asyncio.get_running_loop().time()
                end = await ended(gateway, call)
                assert (end.outcome, file.read_text()) == (outcome, marks)
                assert asyncio.get_running_loop().time() - began < 20


async def test_a_worker_that_is_stopped_finishes_and_the_next_one_takes_over(
    redis: RedisServer, name: str, tmp_path: Path
) -> None:
    """D1, U4: what runs there ends well, and a call that comes meanwhile waits for a worker."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 1) as [leaving]:
        async with gateway_of(redis, name) as gateway:
            call = gateway.submit("unsafe", {"file": str(file), "seconds": 0.5}, caller="operator")
            await until(file.exists, "the function to begin")
            stopping = asyncio.create_task(asyncio.to_thread(leaving.stop))
            assert (await ended(gateway, call)).outcome == "ok"
            assert await stopping == 0
            later = gateway.submit("quick", caller="operator")
            await until(lambda: gateway.engine[later].call.admitted, "the call to wait")
            with workers(redis, name, tmp_path / "more", 1):
                assert (await ended(gateway, later)).outcome == "ok"


async def test_a_function_goes_on_through_a_pause_of_redis(
    redis: RedisServer, two_workers: list[WorkerProcess], tmp_path: Path
) -> None:
    """D2: its end waits until Redis is back, and it has run once."""
    file = tmp_path / "marks"
    async with gateway_of(redis) as gateway:
        call = gateway.submit("unsafe", {"file": str(file), "seconds": 0.3}, caller="operator")
        await until(file.exists, "the function to begin")
        redis.pause()
        asyncio.get_running_loop().call_later(0.6, redis.go_on)
        assert (await ended(gateway, call)).outcome == "ok" and file.read_text() == "x"


async def test_an_attempt_begins_once(redis: RedisServer, name: str) -> None:
    """D3: a second delivery, one of an older attempt, and one of a call that is over run nothing."""
    async with RedisJournal(redis.url, name, "gateway") as journal:
        await write(journal, *entries("a", [opened(), Started(2.0)]))
        await journal.run(WANT, "a", "gateway", 1, 1, b"{}")
        assert await journal.run(BEGIN_RUN, "a", 1, "one", "d1") == b"one d1"
        assert await journal.run(BEGIN_RUN, "a", 1, "two", "d2") == b"one d1"
        assert await journal.run(BEGIN_RUN, "a", 1, "one", "d3") == b"one d1"
        await journal.run(WANT, "a", "gateway", 1, 2, b"{}")
        assert await journal.run(BEGIN_RUN, "a", 1, "two", "d4") is None
        assert await journal.run(BEGIN_RUN, "a", 2, "two", "d5") == b"two d5"
        await write(journal, *entries("a", [Finished(3.0, "ok")], 3))
        assert await journal.run(BEGIN_RUN, "a", 2, "three", "d6") is None
