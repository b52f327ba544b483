"""Purging a history in Redis: which calls a rule names, and how they are deleted, a few at a time (H6)."""

from collections.abc import AsyncIterator
from math import inf
from typing import Final

from msgspec import msgpack

from afoot.core.ports import CallRow, PurgeRule
from afoot.store.redis.rows import Command, key_digest, read_rows
from afoot.store.redis.scripts import DELETE, Scripts

# Calls that one script deletes: everybody waits while it runs.
STEP_CALLS: Final = 100
STEP_BYTES: Final = 8 * 1024 * 1024  # that one script deletes, unless a single call has more
MAX_CANDIDATES: Final = 10_000  # calls that are looked at for one step; if all are spared, none is deleted


async def purge(command: Command, scripts: Scripts, prefix: str, rule: PurgeRule) -> int:
    """Delete the next calls that a rule names; gives how many. Raises StoreError, RedisError."""
    most = float(STEP_BYTES)
    if rule.most_bytes is not None:
        used = int(await command("HGET", f"{prefix}meta", "bytes") or 0)
        most = min(most, used - rule.most_bytes)
        if most <= 0:
            return 0
    chosen = list[tuple[str, str, str]]()
    size = 0
    async for row in _candidates(command, prefix, rule):
        if row.id in rule.spare:
            continue
        bytes_, claimed = await command("HMGET", f"{prefix}call:{row.id}", "b", "k")
        if claimed and row.finished is not None and row.finished >= rule.claimed:
            continue
        digest = key_digest(row.caller, row.key) if row.key else ""
        chosen.append((row.id, digest, row.parent))
        size += int(bytes_ or 0)
        if len(chosen) == STEP_CALLS or size >= most:
            break
    return int(await scripts.run(DELETE, msgpack.encode(chosen))) if chosen else 0


async def _candidates(command: Command, prefix: str, rule: PurgeRule) -> AsyncIterator[CallRow]:
    """The calls that a rule is about, oldest first by their place, those that it spares among them."""
    if rule.calls:
        for row in await read_rows(command, prefix, [call.encode() for call in rule.calls]):
            yield row
        return
    if rule.keep is None and rule.before is None and rule.most_bytes is None:
        return
    before = inf if rule.before is None else rule.before
    left = inf
    if rule.keep is not None:
        left = int(await command("ZCARD", f"{prefix}rows")) - rule.keep
    offset = 0
    while left > 0 and offset < MAX_CANDIDATES:
        page: list[bytes] = await command("ZRANGE", f"{prefix}order", offset, offset + STEP_CALLS - 1)
        if not page:
            return
        offset += len(page)
        for row in await read_rows(command, prefix, page):
            if left <= 0:
                return
            left -= 1
            if row.finished is not None and max(row.opened, row.finished) < before:
                yield row
