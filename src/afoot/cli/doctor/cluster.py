"""`check_cluster` looks at the Redis or Valkey of a cluster: whether it answers, and what it may lose."""

import asyncio
from collections.abc import Iterator

from afoot.cli.doctor.findings import Finding, fail, ok, warn
from afoot.config.settings import Settings
from afoot.errors import StoreError

INSTALL = 'pip install "afoot[cluster]"'


def check_cluster(settings: Settings) -> Iterator[Finding]:
    """The findings about `[cluster]`; none where a gateway is alone."""
    if not settings.cluster.redis:
        return
    try:
        yield from asyncio.run(_look(settings))
    except ImportError as error:
        yield fail("cluster", f"{error.name} is missing", INSTALL)
    except StoreError as error:
        yield fail("cluster", str(error), "start the server, or mend cluster.redis")


async def _look(settings: Settings) -> list[Finding]:
    # Redis is loaded only for a cluster.
    from afoot.cluster.checks import OLDEST, costs, is_too_old, losses, read_redis_settings
    from afoot.store.redis.journal import RedisJournal

    async with RedisJournal(settings.cluster.redis, settings.cluster.name) as journal:
        found = await read_redis_settings(journal.command)
        place = f"{journal.place}, version {found.version or 'unknown'}"
    if is_too_old(found):
        return [fail("cluster", f"{place} is too old", f"use {'.'.join(map(str, OLDEST))} or newer")]
    told = fail if settings.history == "required" else warn
    problems = [told("cluster", f"{place}: {one.text}", one.fix) for one in losses(found)]
    return problems or [ok("cluster", f"{place}: {costs(found)}")]
