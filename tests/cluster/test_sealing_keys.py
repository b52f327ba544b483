"""Sealing keys of a cluster: a rotation refuses nothing that was sealed, and forged ids cost nothing."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from afoot.cluster import sealing_keys
from afoot.cluster.sealing_keys import MAX_KEYS, SharedKeys
from afoot.errors import Conflict, StoreError
from afoot.store.redis.journal import RedisJournal
from tests.cluster.redis_server import RedisServer, redis_server
from tests.cluster.test_gateways import afoot, answered, ask, gateway
from tests.e2e.gateway import until
from tests.e2e.raw_client import Http, call, request


async def test_a_key_that_another_gateway_made_is_read_when_it_is_met(redis: RedisServer, name: str) -> None:
    """D7: and made-up ids cost one read a second at most."""
    async with RedisJournal(redis.url, name) as first, RedisJournal(redis.url, name) as second:
        one, other = SharedKeys(first), SharedKeys(second)
        await one.read()
        await other.read()
        assert one.keys == other.keys and one.arguments_key == other.arguments_key
        made = await one.rotate(60.0, "operator")
        assert other.keys.find(made.id) is None
        await asyncio.sleep(sealing_keys.READ_PAUSE_S + 0.1)
        found = await other.find(made.id)
        assert found is not None and found == one.keys.find(made.id)
        reads, began = other.reads, time.monotonic()
        forged = await asyncio.gather(*(other.find(f"{number:08x}") for number in range(1000)))
        passed_s = time.monotonic() - began
        assert not any(forged) and other.reads - reads <= passed_s / sealing_keys.READ_PAUSE_S
        assert await other.find("not an id") is None
        assert one.arguments_key == other.arguments_key


async def test_made_up_ids_cost_no_more_where_redis_is_away(tmp_path: Path) -> None:
    """D7: one of them waits for Redis, and all are told that the key cannot be read now."""
    with redis_server(tmp_path) as away:
        async with RedisJournal(away.url) as journal:
            keys = SharedKeys(journal)
            await keys.read()
            await asyncio.sleep(sealing_keys.READ_PAUSE_S + 0.1)
            away.kill()
            reads = keys.reads
            finding = [keys.find(f"{number:08x}") for number in range(100)]
            told = await asyncio.gather(*finding, return_exceptions=True)
            assert all(isinstance(one, StoreError) for one in told) and keys.reads == reads + 1
            assert await keys.find("") is not None, "known keys open all the same"


async def test_an_old_key_is_deleted_when_nothing_needs_it(
    redis: RedisServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D7: the key of the digests stays, and a gateway that starts anew makes no second one."""
    monkeypatch.setattr(sealing_keys, "SEALS_AFTER_S", 0.1)
    monkeypatch.setattr(sealing_keys, "MARGIN_S", 0.1)
    async with RedisJournal(redis.url, name) as journal:
        keys = SharedKeys(journal)
        await keys.read()
        first = keys.keys.sealing(time.time())
        made = await keys.rotate(0.3, "operator")
        assert keys.keys.find("") == first, "it opens for a while"
        await asyncio.sleep(0.7)
        again = SharedKeys(journal)
        await again.read()
        assert [one.id for one in again.keys.keys] == [made.id]
        assert again.arguments_key == keys.arguments_key == first.secret
        assert not redis.client().exists(f"{{{name}}}:sealing")


async def test_the_number_of_keys_is_bounded(redis: RedisServer, name: str) -> None:
    """D7: a rotation that would exceed it is refused, and changes nothing."""
    async with RedisJournal(redis.url, name) as journal:
        keys = SharedKeys(journal)
        await keys.read()
        for _ in range(MAX_KEYS - 1):
            await keys.rotate(60.0, "operator")
        with pytest.raises(Conflict, match="still needed"):
            await keys.rotate(60.0, "operator")
        assert len(keys.keys.keys) == MAX_KEYS


def test_retries_and_sessions_survive_a_rotation(redis: RedisServer, tmp_path: Path) -> None:
    """D7, D1, Q1: sealed before, retried at the other gateway after it; and sealed after, and forged."""
    one, other = gateway(tmp_path, redis, 1), gateway(tmp_path, redis, 2)
    try:
        before = ask(one, call("ask_two_in_turn", {"tag": "before"}))
        assert "." not in before["requestState"]
        with Http(one.url) as old_session:
            old_session.shake_hands()
            session = old_session.session
        rotated = afoot(other, "rotate-keys", "--json")
        assert rotated.returncode == 0, rotated.stderr
        made = json.loads(rotated.stdout)
        assert f"sealing key {made['id']} was made, by operator" in other.said()

        def seals_anew() -> bool:
            asked = ask(one, call("ask_two_in_turn", {"tag": "new"}))
            return str(asked["requestState"]).startswith(f"{made['id']}.")

        until(seals_anew, "the new key to seal at the gateway that did not make it")
        done = answered((other, one), "ask_two_in_turn", {"tag": "before"}, before)
        assert "Ann" in json.dumps(done)
        after = ask(one, call("ask_two_in_turn", {"tag": "after"}))
        assert "Ann" in json.dumps(answered((other, one), "ask_two_in_turn", {"tag": "after"}, after))
        with Http(other.url) as http:
            http.session = session
            done = http.ask(request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
            assert done["result"]["structuredContent"] == {"sum": 3}
        state = str(after["requestState"])
        for forged in ("deadbeef" + state[8:], state[9:], f"{made['id']}.{before['requestState']}"):
            with Http(other.url) as http:
                told = http.ask(call("ask_two_in_turn", {"tag": "after"}, requestState=forged))
            assert told["error"]["code"] == -32602 and "requestState" in told["error"]["message"]
    finally:
        for at in (one, other):
            if at.process.poll() is None:
                at.stop()
