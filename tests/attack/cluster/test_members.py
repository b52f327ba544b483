"""Members and keys in Redis that no gateway has written: they are left out, and all others go on."""

import asyncio
import time
from collections.abc import Callable

from afoot import Gateway
from afoot.config.settings import Settings
from tests.cluster.cluster_tools import quick, until
from tests.cluster.redis_server import RedisServer

DESCRIPTIONS = (
    b"",
    b"{{",
    b'{"host":"\xff"}',
    b'{"tools":' + b"[" * 100_000,
    b'{"slots":-99999999999999999999}',
)
KEYS = {
    b"junk": "junk",
    b"no hex": "zz 0 0",
    b"\xff": "00 0 0",
    b"deadbeef": "000 0 0",
    b"deadbee0": "00 nan 0",
}


async def test_members_that_cannot_be_read_end_no_lease(
    redis: RedisServer, settings: Callable[..., Settings]
) -> None:
    """D1, D6: the thread of the lease ended, of every gateway, and all took each other for dead."""
    async with Gateway(quick, settings=settings()) as one, Gateway(quick, settings=settings()) as two:
        cluster = settings().cluster
        assert cluster is not None and one.cluster is not None and two.cluster is not None
        client, prefix = redis.client(), f"{{{cluster.name}}}:"
        client.hset(f"{prefix}meta", "left", "no number")
        for number, told in enumerate(DESCRIPTIONS):
            for role in ("gateway", "worker"):
                client.zadd(f"{prefix}{role}s", {b"\xff%d" % number: time.time() + 1000})
                client.hset(f"{prefix}{role}", b"\xff%d" % number, told)
        await asyncio.sleep(2 * cluster.lease_s)
        for gateway in (one, two):
            assert gateway.cluster is not None
            members = {member.id: member.left_s for member in gateway.cluster.members()}
            assert members[one.cluster.id] > 0 and members[two.cluster.id] > 0
            assert len(members) > len(DESCRIPTIONS)


async def test_a_worker_s_tool_that_is_none_keeps_no_other_from_being_offered(
    redis: RedisServer, settings: Callable[..., Settings]
) -> None:
    """D1: no change of any tool was offered any more."""
    deep = '{"a":' * 5000 + "{}" + "}" * 5000
    definitions = {
        "afoot_call_wait": "7", "no_object": '{"name":"no_object","inputSchema":5}', "": "null",
        "deep": f'{{"name":"deep","inputSchema":{deep}}}',
        "good": '{"name":"good","inputSchema":{"type":"object"}}',
    }  # fmt: skip
    async with Gateway(quick, settings=settings()) as one:
        cluster = settings().cluster
        assert cluster is not None
        client, prefix = redis.client(), f"{{{cluster.name}}}:"
        for name, definition in definitions.items():
            tool = f'{{"name":"{name}","definition":{definition},"digest":"d"}}'
            client.zadd(f"{prefix}workers", {f"w{name}": time.time() + 1000})
            client.hset(f"{prefix}worker", f"w{name}", f'{{"speaks":2,"slots":1,"tools":[{tool}]}}')
        await until(
            lambda: {tool.name for tool in one.tools()} == {"quick", "good"}, "the tool of the others"
        )


async def test_keys_that_cannot_be_read_keep_no_key_from_being_replaced(
    redis: RedisServer, settings: Callable[..., Settings]
) -> None:
    """D1: no gateway read its keys any more, and none could start."""
    async with Gateway(quick, settings=settings()) as one:
        cluster = settings().cluster
        assert cluster is not None and one.cluster is not None
        for id, key in KEYS.items():
            redis.client().hset(f"{{{cluster.name}}}:sealing-keys", id, key)
        made = await one.cluster.rotate_keys(60.0, "test")
        async with Gateway(quick, settings=settings()) as two:
            service = two.cluster
            assert service is not None
            await until(lambda: service.sealing_keys.find(made.id), "the new key")
            assert service.sealing_keys.find("") is not None
