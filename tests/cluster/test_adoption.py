"""Functions on workers go on undisturbed when the gateway that owns their call is lost."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from afoot import Gateway
from afoot.cluster.lease import Lease
from afoot.cluster.runs import TELL_OWNER, TELL_WORKER, UNWANT, WANT
from afoot.config.settings import make_settings
from afoot.core.facts import Answered, Asked, Finished, Interrupted, Logged, Reported, Started
from afoot.store.redis.journal import RedisJournal
from tests.cluster.breakable_link import BreakableLink, breakable_link
from tests.cluster.cluster_tools import WAIT_S, until
from tests.cluster.redis_server import RedisServer
from tests.cluster.worker_process import WorkerProcess, workers
from tests.store.sample_batches import entries, opened, write

SHARED = "adopting"  # the cluster of the workers that most tests use
LEASE_S = 1.0


@pytest.fixture(scope="module")
def two_workers(
    redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[WorkerProcess]]:
    """Two workers that no test kills."""
    with workers(redis, SHARED, tmp_path_factory.mktemp("workers"), 2, 8) as started:
        yield started


@asynccontextmanager
async def pair(
    redis: RedisServer, name: str = SHARED, **more: object
) -> AsyncIterator[tuple[Gateway, Gateway, BreakableLink]]:
    """A gateway behind a link that can be cut, and another one; neither has the functions itself."""
    async with breakable_link(redis.port) as link:
        made = list[Gateway]()
        for url in (link.url, redis.url):
            cluster = {"redis": url, "name": name, "lease_s": LEASE_S}
            settings = {"cluster": cluster, "drain_s": 0, "unanswerable": "wait", "cancel_grace_s": 2}
            made.append(Gateway(settings=make_settings({**settings, **more})))
            made[-1].bare = True
        async with made[0] as one, made[1] as two:
            for gateway in made:
                await until(lambda of=gateway: any(t.name == "quick" for t in of.tools()), "the functions")
            try:
                yield one, two, link
            finally:
                link.mend()


async def adopted(gateway: Gateway, call: str) -> None:
    """Wait until a gateway has a call as its own, or its end."""
    await until(
        lambda: gateway.engine.own_call(call) or (call in gateway.engine and gateway.engine[call].call.end),
        f"{call} to be taken over",
    )


async def ended(gateway: Gateway, call: str) -> Finished:
    """The end of a call, once a gateway knows it."""
    done = await asyncio.wait_for(gateway.result(call), WAIT_S)
    assert done.end is not None
    return done.end


async def is_seen(gateway: Gateway, call: str) -> None:
    """Wait until a gateway sees a call of another one run."""
    await until(lambda: call in gateway.engine and gateway.engine[call].call.started, f"{call} to be seen")


async def kinds(gateway: Gateway, call: str) -> Counter[type]:
    """How many facts of each kind the history has of a call."""
    return Counter(type(entry.fact) for entry in await gateway.engine.journal.facts(call))


@pytest.mark.parametrize("tool", ["safe", "unsafe"])
async def test_a_function_outlives_the_gateway_that_owned_its_call(
    redis: RedisServer, two_workers: list[WorkerProcess], tmp_path: Path, tool: str
) -> None:
    """D2: no second attempt, no break: it ends well, once, and the lost gateway writes nothing more."""
    file = tmp_path / "marks"
    async with pair(redis) as (one, two, link):
        call = one.submit(tool, {"file": str(file), "seconds": 4.0}, caller="operator")
        await is_seen(two, call)
        await until(file.exists, "the function to begin")
        link.cut()
        await adopted(two, call)
        assert two.engine[call].call.end is None
        assert (await ended(two, call)).outcome == "ok"
        link.mend()
        await until(lambda: one.engine.own_call(call) is None, "the lost gateway to know")
        assert file.read_text() == "x"
        found = await kinds(two, call)
        assert (found[Started], found[Interrupted], found[Finished]) == (1, 0, 1)


async def test_an_end_that_nobody_heard_is_kept_for_the_next_owner(
    redis: RedisServer, two_workers: list[WorkerProcess], tmp_path: Path
) -> None:
    """D2: the function ended before its call had an owner again, and its result is not lost."""
    file = tmp_path / "marks"
    async with pair(redis) as (one, two, link):
        call = one.submit("unsafe", {"file": str(file), "seconds": 0.4}, caller="operator")
        await is_seen(two, call)
        await until(file.exists, "the function to begin")
        link.cut()
        end = await ended(two, call)
        assert end.outcome == "ok" and end.result is not None and b"done" in bytes(end.result.content)
        assert file.read_text() == "x"
        left = redis.client().keys(f"{{{SHARED}}}:said:{call}") + redis.client().keys(
            f"{{{SHARED}}}:task:{call}"
        )
        assert left == []


async def test_no_report_is_lost_or_repeated_by_the_change_of_owners(
    redis: RedisServer, two_workers: list[WorkerProcess]
) -> None:
    """D2, H1: also those that were made while nobody owned the call."""
    async with pair(redis) as (one, two, link):
        call = one.submit("count_slowly", {"n": 80}, caller="operator")
        await is_seen(two, call)
        await until(lambda: two.engine[call].call.contents > 5, "some reports")
        link.cut()
        assert (await ended(two, call)).outcome == "ok"
        facts = [entry.fact for entry in await two.engine.journal.facts(call)]
        told = [json.loads(bytes(fact.data))["at"] for fact in facts if isinstance(fact, Reported)]
        assert told == list(range(80))


async def test_a_question_that_was_open_is_answered_at_the_next_owner(
    redis: RedisServer, two_workers: list[WorkerProcess]
) -> None:
    """D2, Q1: it is the same question, asked once, and the answer reaches the function."""
    async with pair(redis) as (one, two, link):
        call = one.submit("ask", caller="operator")
        await is_seen(two, call)
        await until(lambda: two.engine[call].call.open, "the question")
        link.cut()
        await adopted(two, call)
        assert len(two.engine[call].call.open) == 1
        two.answer(next(iter(two.engine[call].call.open)), {"name": "Ann"})
        end = await ended(two, call)
        assert end.result is not None and b"hello Ann" in bytes(end.result.content)
        found = await kinds(two, call)
        assert (found[Asked], found[Answered], found[Started]) == (1, 1, 1)


async def test_a_question_that_was_asked_of_nobody_is_asked_by_the_next_owner(
    redis: RedisServer, two_workers: list[WorkerProcess]
) -> None:
    """D2, Q1: its owner was gone when the function asked."""
    async with pair(redis) as (one, two, link):
        call = one.submit("ask_later", {"seconds": 0.4}, caller="operator")
        await is_seen(two, call)
        link.cut()
        await adopted(two, call)
        await until(lambda: two.engine[call].call.open, "the question")
        two.answer(next(iter(two.engine[call].call.open)), {"name": "Bob"})
        end = await ended(two, call)
        assert end.result is not None and b"hello Bob" in bytes(end.result.content)
        assert (await kinds(two, call))[Asked] == 1


async def test_a_question_that_the_function_gave_up_is_closed(
    redis: RedisServer, two_workers: list[WorkerProcess], tmp_path: Path
) -> None:
    """D2, Q1: while nobody owned the call, the function stopped waiting; nobody is asked in vain."""
    file = tmp_path / "marks"
    async with pair(redis) as (one, two, link):
        call = one.submit("ask_impatiently", {"file": str(file)}, caller="operator")
        await is_seen(two, call)
        await until(lambda: two.engine[call].call.open, "the question")
        link.cut()
        await adopted(two, call)
        await until(lambda: not two.engine[call].call.open, "the question to be closed")
        assert two.engine[call].call.end is None
        assert (await ended(two, call)).outcome == "ok"


async def test_an_adopted_function_is_cancelled(redis: RedisServer, two_workers: list[WorkerProcess]) -> None:
    """D2, X1: the cancel of the new owner reaches it, and it says that it has stopped."""
    async with pair(redis) as (one, two, link):
        call = one.submit("steps", {"n": 3}, caller="operator")
        await is_seen(two, call)
        link.cut()
        await adopted(two, call)
        live = two.engine[call]
        two.cancel(call, "enough")
        assert (await ended(two, call)).outcome == "cancelled"
        await until(lambda: live.call.released, "its release")
        assert live.call.released is not None and live.call.released.how == "stopped"


async def test_a_cancel_that_its_owner_could_not_finish_is_finished_by_the_next(
    redis: RedisServer, two_workers: list[WorkerProcess], tmp_path: Path
) -> None:
    """D2, X1: a command that waited for the lost owner stops the function."""
    async with pair(redis) as (one, two, link):
        call = one.submit("steps", {"n": 3}, caller="operator")
        await is_seen(two, call)
        link.cut()
        two.cancel(call, "enough")
        assert (await ended(two, call)).outcome == "cancelled"


async def test_the_time_without_an_owner_is_no_silence_of_the_function(
    redis: RedisServer, two_workers: list[WorkerProcess], tmp_path: Path
) -> None:
    """D2, C1: its idle limit is shorter than the time in which nobody heard it."""
    file = tmp_path / "marks"
    async with pair(redis) as (one, two, link):
        wanted = {"file": str(file), "seconds": 20.0}
        call = one.submit("unsafe", wanted, caller="operator", idle_s=2.0)
        await is_seen(two, call)
        began = asyncio.get_running_loop().time()
        link.cut()
        await adopted(two, call)
        assert (await ended(two, call)).outcome == "timed_out"
        passed_s = asyncio.get_running_loop().time() - began
        assert passed_s > LEASE_S * 0.8 + 2.0  # it began anew when the call had an owner again


async def test_secrets_of_an_adopted_function_stay_out_of_the_history(
    redis: RedisServer, two_workers: list[WorkerProcess]
) -> None:
    """D2, S4: the next owner knows them, though no fact has them, and takes them out of each line."""
    secret, pin = "hunter2-hunter2", "pin-4711-4711"
    async with pair(redis) as (one, two, link):
        call = one.submit("log_in", {"password": secret}, caller="operator")
        await is_seen(two, call)
        await until(lambda: two.engine[call].call.open, "the question")
        one.answer(next(iter(one.engine[call].call.open)), {"pin": pin})
        # An answer with a secret that had not reached the function would be asked for again.
        await until(lambda: any(type(one.fact) is Logged for one in two.engine[call].backlog), "a line")
        link.cut()
        assert (await ended(two, call)).outcome == "ok"
        facts = [entry.fact for entry in await two.engine.journal.facts(call)]
        lines = [fact.text for fact in facts if isinstance(fact, Logged) and fact.logger != "afoot"]
        assert len(lines) == 30 and not any(secret in line or pin in line for line in lines), lines[-1]
    assert redis.client().keys(f"{{{SHARED}}}:task:{call}") == []


async def test_a_call_below_goes_on_and_is_not_made_twice(
    redis: RedisServer, two_workers: list[WorkerProcess], tmp_path: Path
) -> None:
    """D2, P8: both are taken over, and the upper function gets the result of the lower one."""
    file = tmp_path / "marks"
    async with pair(redis) as (one, two, link):
        call = one.submit("call_unsafe", {"file": str(file), "seconds": 4.0}, caller="operator")
        await is_seen(two, call)
        await until(file.exists, "the lower function to begin")
        await until(lambda: len(two.engine.calls()) == 2, "both calls to be seen")
        link.cut()
        await adopted(two, call)
        end = await ended(two, call)
        assert end.outcome == "ok" and end.result is not None and b"below: done" in bytes(end.result.content)
        assert file.read_text() == "x"


async def test_a_call_that_nobody_can_find_again_is_cancelled(
    redis: RedisServer, two_workers: list[WorkerProcess]
) -> None:
    """D2, X1: its caller was connected to the lost gateway; the function is stopped, and this is told."""
    async with pair(redis) as (one, two, link):
        call = one.submit("steps", {"n": 3}, caller="local")
        await is_seen(two, call)
        link.cut()
        end = await ended(two, call)
        assert end.outcome == "cancelled" and end.failure is not None
        assert "gateway that died" in end.failure.message


@pytest.mark.parametrize(("tool", "outcome", "marks"), [("safe", "ok", "xx"), ("unsafe", "uncertain", "x")])
async def test_a_worker_that_dies_with_the_owner_of_its_call(
    redis: RedisServer, name: str, tmp_path: Path, tool: str, outcome: str, marks: str
) -> None:
    """D2, U4: by the rules for a worker: a safe call runs again, any other is uncertain."""
    file = tmp_path / "marks"
    with workers(redis, name, tmp_path, 1) as [doomed]:
        async with pair(redis, name) as (one, two, link):
            call = one.submit(tool, {"file": str(file), "seconds": 30.0}, caller="operator")
            await is_seen(two, call)
            await until(file.exists, "the function to begin")
            with workers(redis, name, tmp_path / "more", 1):
                link.cut()
                doomed.kill()
                end = await ended(two, call)
                assert (end.outcome, file.read_text()) == (outcome, marks)


async def test_words_of_an_earlier_owner_are_refused(redis: RedisServer, name: str) -> None:
    """D3: by the number of its turn; the worker of another attempt is not heard either."""
    async with RedisJournal(redis.url, name, "old") as journal:
        await write(journal, *entries("a", [opened(), Started(2.0)]))
        assert await journal.run(WANT, "a", "old", 1, 1, b"{}") == 1
        key = f"{journal.prefix}call:a"
        await journal.command("HSET", key, "run", "1 w d")
        say = ("a", 1, "w", "1", b"[]", 60, 0, 1000)
        assert await journal.run(TELL_OWNER, *say) == 1
        assert await journal.run(TELL_OWNER, *say) == 1
        assert await journal.command("XLEN", f"{journal.prefix}said:a") == 1
        assert await journal.run(TELL_OWNER, "a", 1, "other", "1", b"[]", 60, 0, 1000) == 0
        await journal.command("HSET", key, "o", "new", "n", 2)
        await journal.command("HSET", f"{journal.prefix}owners", "a", "new")
        reply = (1, b"{}", 60, "", b"")
        assert await journal.run(TELL_WORKER, "w", "a", "old", 1, *reply) == 0
        assert await journal.run(TELL_WORKER, "w", "a", "new", 2, *reply) == 1
        assert await journal.run(WANT, "a", "old", 1, 2, b"{}") == 0
        assert await journal.run(UNWANT, "a", "old", 1, 1) == 0
        assert await journal.run(UNWANT, "a", "new", 2, 1) == 0  # it was begun
        assert await journal.run(WANT, "a", "new", 2, 2, b"{}") == 1
        assert await journal.run(TELL_OWNER, *say) == 0
        assert await journal.run(UNWANT, "a", "new", 2, 2) == 1


async def test_nothing_is_sent_to_a_dead_owner(redis: RedisServer, name: str) -> None:
    """D2: its inbox would grow as long as no other gateway is there; the facts are kept for the next."""
    async with RedisJournal(redis.url, name, "doomed") as journal:
        lease = Lease(redis.url, journal.prefix, "doomed", 1.0)
        await asyncio.to_thread(lease.start)
        await write(journal, *entries("a", [opened(), Started(2.0)]))
        await journal.run(WANT, "a", "doomed", 1, 1, b"{}")
        await journal.command("HSET", f"{journal.prefix}call:a", "run", "1 w d")

        async def said_and_sent(number: int) -> tuple[int, int]:
            assert await journal.run(TELL_OWNER, "a", 1, "w", str(number), b"[]", 60, 0, 1000) == 1
            streams = f"{journal.prefix}said:a", f"{journal.prefix}inbox:doomed"
            said, sent = [await journal.command("XLEN", stream) for stream in streams]
            return said, sent

        assert await said_and_sent(1) == (1, 1)
        lease._stop.set()  # it dies: its lease is not given back
        await asyncio.sleep(2.1)
        assert await said_and_sent(2) == (2, 1)
        await asyncio.to_thread(lease.stop)
