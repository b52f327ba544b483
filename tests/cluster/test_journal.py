"""The journal in Redis, where it is more than a journal: several writers, and a server that goes away."""

import asyncio

import pytest
from msgspec.structs import replace

from afoot.core.facts import Finished, Released, Started
from afoot.core.ports import CallQuery
from afoot.errors import StoreError
from afoot.store.redis.journal import RedisJournal
from tests.cluster.redis_server import RedisServer
from tests.store.sample_batches import batch, entries, opened, row, write


async def test_facts_of_a_call_that_another_gateway_has_are_left_out(redis: RedisServer, name: str) -> None:
    """D3: a fenced owner writes nothing; its other calls are written all the same."""
    async with RedisJournal(redis.url, name, "one") as one, RedisJournal(redis.url, name, "two") as two:
        fenced = list[str]()
        two.on_fenced = fenced.append
        await write(one, *entries("a", [opened()]))
        await write(two, *entries("a", [Started(2.0)], 2), *entries("b", [opened()]))
        assert fenced == ["a"]
        assert [entry.seq for entry in await one.facts("a")] == [1]
        assert [entry.seq for entry in await one.facts("b")] == [1]
        assert [pos for pos, _ in await one.since(0)] == [1, 2]


async def test_an_owner_of_an_earlier_turn_writes_nothing(redis: RedisServer, name: str) -> None:
    """D3: the number of the owner grows with each turn, also where it is the same gateway."""
    async with RedisJournal(redis.url, name, "one") as one:
        fenced = list[str]()
        one.on_fenced = fenced.append
        await write(one, *entries("a", [opened()]))
        redis.client().hincrby(f"{one.prefix}call:a", "n", 1)
        await write(one, *entries("a", [Started(2.0)], 2))
        assert fenced == ["a"]
        one.numbers["a"] = 2
        await write(one, *entries("a", [Started(2.0)], 2))
        assert len(await one.facts("a")) == 2


async def test_positions_are_one_series_over_all_gateways(redis: RedisServer, name: str) -> None:
    """D1, H2: so that a reader at any gateway goes on at any other."""
    async with RedisJournal(redis.url, name) as one, RedisJournal(redis.url, name) as two:
        assert one.epoch == two.epoch
        for number in range(5):
            await write(one, *entries(f"a{number}", [opened()]))
            await write(two, *entries(f"b{number}", [opened(), Started(2.0)]))
        found = await two.since(0)
        assert [pos for pos, _ in found] == list(range(1, 16))
        assert found == await one.since(0)


async def test_a_journal_that_is_opened_again_has_everything(redis: RedisServer, name: str) -> None:
    """H1: also the position and the epoch."""
    async with RedisJournal(redis.url, name) as one:
        await write(one, *entries("a", [opened(), Finished(2.0, "ok"), Released(2.0)]), row("a"))
    async with RedisJournal(redis.url, name) as two:
        assert (two.epoch, two.position) == (one.epoch, 3)
        assert await two.find(CallQuery()) == [row("a")]
        assert await two.unfinished() == []


async def test_two_clusters_share_a_server(redis: RedisServer, name: str) -> None:
    """D1: by their names."""
    async with RedisJournal(redis.url, name) as one, RedisJournal(redis.url, f"{name}x") as two:
        await write(one, *entries("a", [opened()]))
        assert await two.since(0) == [] and two.epoch != one.epoch


async def test_a_batch_whose_reply_was_lost_is_not_written_twice(
    redis: RedisServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H1, D2: it was carried out, and the connection broke before the reply."""
    async with RedisJournal(redis.url, name) as journal:
        run, lost = journal.scripts.run, list[int]()

        async def losing(script: str, *arguments: object) -> object:
            reply = await run(script, *arguments)
            if not lost:
                lost.append(1)
                raise ConnectionResetError("the reply is lost")
            return reply

        monkeypatch.setattr(journal.scripts, "run", losing)
        await write(journal, *entries("a", [opened(), Started(2.0)]), row("a"))
        await write(journal, *entries("a", [Finished(3.0, "ok")], 3))
        assert [entry.seq for entry in await journal.facts("a")] == [1, 2, 3]
        assert await journal.find(CallQuery()) == [row("a")] and lost


async def test_a_write_goes_on_after_every_connection_was_cut(redis: RedisServer, name: str) -> None:
    """D2: a broken connection costs a moment, and no fact."""
    async with RedisJournal(redis.url, name) as journal:
        await write(journal, *entries("a", [opened()]))
        redis.client().client_kill_filter(_type="normal", skipme=True)
        await write(journal, *entries("a", [Started(2.0)], 2))
        assert len(await journal.facts("a")) == 2


async def test_a_large_segment_is_in_the_calls_own_stream_alone(redis: RedisServer, name: str) -> None:
    """H8: the tail stays small, and whoever reads it gets the fact all the same."""
    large = b'"' + b"x" * 200_000 + b'"'
    async with RedisJournal(redis.url, name) as journal:
        await write(journal, *entries("a", [opened(1.0, large)]))
        [(_, kept)] = redis.client().execute_command("XRANGE", f"{journal.prefix}tail", "-", "+")
        assert sum(map(len, kept)) < 100
        assert (await journal.since(0))[0][1] == entries("a", [opened(1.0, large)])[0]


async def test_a_history_that_was_emptied_is_told_and_begins_anew(redis: RedisServer, name: str) -> None:
    """H2: readers see by its epoch that their positions mean nothing any more."""
    async with RedisJournal(redis.url, name) as journal:
        await write(journal, *entries("a", [opened()]))
        before = journal.epoch
        client = redis.client()
        client.delete(*client.keys(f"{journal.prefix}*"))
        with pytest.raises(StoreError, match="emptied"):
            await write(journal, *entries("b", [opened()]))
        assert journal.epoch != before
        await write(journal, *entries("b", [opened()]))
        assert [entry.call for _, entry in await journal.since(0)] == ["b"]


async def test_a_server_that_is_not_there_is_told_without_its_password(name: str) -> None:
    """S7: an error names the place, and no login."""
    with pytest.raises(StoreError) as caught:
        async with RedisJournal("redis://ann:secret@127.0.0.1:1/0", name):
            pass
    assert "127.0.0.1:1" in str(caught.value) and "secret" not in str(caught.value)


async def test_a_pause_of_the_server_loses_nothing(redis: RedisServer, name: str) -> None:
    """D2: the write takes as long as the pause, or fails as one that may be tried again."""
    async with RedisJournal(redis.url, name) as journal:
        await write(journal, *entries("a", [opened()]))
        redis.pause()
        done = journal.write(batch(*entries("a", [Started(2.0)], 2)))
        asyncio.get_running_loop().call_later(0.3, redis.go_on)
        await done
        assert len(await journal.facts("a")) == 2


async def test_calls_that_live_are_listed_whoever_has_them(redis: RedisServer, name: str) -> None:
    """D2: and an ended one is nobody's."""
    async with RedisJournal(redis.url, name, "one") as one, RedisJournal(redis.url, name, "two") as two:
        await write(one, *entries("a", [opened(2.0)]))
        await write(two, *entries("b", [replace(opened(1.0), key="k")]))
        assert await one.unfinished() == ["b", "a"]
        await write(two, *entries("b", [Finished(3.0, "ok")], 2))
        assert await one.unfinished() == ["a"]
        assert redis.client().hgetall(f"{one.prefix}owners") == {b"a": b"one"}


async def test_a_lost_reply_is_no_excuse_for_a_fenced_owner(redis: RedisServer, name: str) -> None:
    """D3: facts with the numbers of a later owner's are not taken for our own."""
    async with RedisJournal(redis.url, name, "one") as one, RedisJournal(redis.url, name, "two") as two:
        fenced = list[str]()
        one.on_fenced = fenced.append
        await write(one, *entries("a", [opened()]))
        redis.client().hset(f"{one.prefix}call:a", mapping={"n": 2, "o": "two"})
        two.numbers["a"] = 2
        await write(two, *entries("a", [Started(2.0), Finished(3.0, "ok")], 2))
        one.is_unsure = True
        await write(one, *entries("a", [Started(2.5)], 2))
        assert fenced == ["a"]
