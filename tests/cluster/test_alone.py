"""A gateway without `[cluster]` knows nothing of a cluster."""

import subprocess
import sys

SCRIPT = """
import asyncio, sys
import afoot.gateway.app
from afoot import Gateway

async def hello() -> str:
    return "hello"

async def main() -> None:
    async with Gateway(hello) as gateway:
        done = await gateway.call("hello")
        assert done.end.outcome == "ok" and gateway.member is None

asyncio.run(main())
cluster = ("redis", "hiredis", "docket", "afoot.cluster", "afoot.store.redis")
print([name for name in cluster if name in sys.modules])
"""


def test_a_gateway_that_is_alone_imports_nothing_of_a_cluster() -> None:
    """D1: so it starts as fast, and needs no extra."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout.strip() == "[]"
