"""Entries in Redis that no gateway of this version has written: they are skipped, and each is told once."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from redis import Redis

from afoot import Gateway
from afoot.config.settings import Settings
from tests.cluster.cluster_tools import seen_by, steps, until
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_workers import gateway_of
from tests.cluster.worker_process import workers

Fields = Mapping[str, bytes]
BAD = b"\xff"
INBOX: Sequence[Fields] = (
    {"z": b"1"}, {"c": BAD}, {"c": b"one", "s": b"no number"}, {"c": b"one", "s": b"9" * 5000},
    {"c": b"one", "w": b"w"}, {"c": b"one", "w": b"w", "a": b"no number"}, {"c": b"", "x": BAD, "f": BAD},
    {"c": b"", "x": b"no body"}, {"m": BAD}, {"c": b"one", "a": b"1", "w": b"w", "f": b"[" * 200_000},
)  # fmt: skip
READINGS: Sequence[Fields] = (
    {"j": b"[]"}, {"o": b"another"}, {"o": BAD, "j": b"[]"}, {"o": b"another", "j": b'[["\xff", 1, {}]]'},
)  # fmt: skip
TAIL: Sequence[Fields] = (
    {"n": b"1"}, {"o": b"another"}, {"o": b"another", "n": b"no number"}, {"o": BAD, "n": b"1"},
    {"o": b"another", "n": b"1"}, {"o": b"another", "n": b"1", "c": b"one", "s": b"1", "b": BAD},
)  # fmt: skip


def put(client: Redis, key: str, fields: Fields, place: str = "*") -> None:
    """Add an entry to a stream."""
    client.execute_command("XADD", key, place, *(part for pair in fields.items() for part in pair))


async def test_entries_that_cannot_be_read_stop_no_gateway(
    redis: RedisServer, settings: Callable[..., Settings], caplog: pytest.LogCaptureFixture
) -> None:
    """D1: the inbox read the same entry again and again, and heard nothing behind it any more."""
    async with Gateway(steps, settings=settings()) as one, Gateway(steps, settings=settings()) as two:
        assert one.cluster is not None
        cluster = settings().cluster
        assert cluster is not None
        client, prefix = redis.client(), f"{{{cluster.name}}}:"
        with caplog.at_level(logging.ERROR, "afoot.cluster"):
            for fields in INBOX:
                put(client, f"{prefix}inbox:{one.cluster.id}", fields)
            for fields in READINGS:
                put(client, f"{prefix}readings", fields)
            for fields in TAIL:
                position = client.hincrby(f"{prefix}meta", "pos", 1)
                put(client, f"{prefix}tail", fields, f"{position}-0")
            call = one.submit("steps", {"n": 3}, caller="operator")
            await seen_by(two, call, lambda now: now.state == "running")
            two.cancel(call, "enough")
            done = await asyncio.wait_for(one.result(call), 15)
        assert done.end is not None and done.end.outcome == "cancelled"
        assert 10 < len(caplog.records) < 2 * (len(INBOX) + len(READINGS) + len(TAIL))


async def test_entries_that_cannot_be_read_stop_no_worker(
    redis: RedisServer, name: str, tmp_path: Path
) -> None:
    """D1: it heard no cancel and no answer any more."""
    with workers(redis, name, tmp_path, 1) as [worker]:
        async with gateway_of(redis, name) as gateway:
            for fields in INBOX:
                put(redis.client(), f"{{{name}}}:inbox:{worker.id}", fields)
            call = gateway.submit("steps", {"n": 3}, caller="operator")
            await until(lambda: gateway.engine[call].call.contents, "its last report")
            now = gateway.engine[call].call
            gateway.cancel(call, "enough")
            await until(lambda: now.released, "its release")
            assert now.released is not None and now.released.how == "stopped"
