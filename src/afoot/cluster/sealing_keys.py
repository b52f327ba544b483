"""`SharedKeys` are the keys of a cluster that seal what clients keep; they are in Redis, and can be replaced.

A new key opens at once and seals some seconds later, when every gateway that hears Redis has read it. An old
key is deleted by the clock of Redis, when nothing that it sealed can be alive.
"""

import asyncio
import logging
import re
import secrets
import time
from typing import Final

from afoot.core.ports import KeyRotation
from afoot.core.sealing_keys import SealingKey, SealingKeys
from afoot.errors import Conflict, StoreError
from afoot.store.redis.journal import RedisJournal

KEY_BYTES: Final = 32
SEALS_AFTER_S: Final = 5.0  # after a key was made; gateways read the keys every second
READ_PAUSE_S: Final = 1.0  # between two reads, however many unknown ids arrive
MARGIN_S: Final = 3600.0  # an old key lives longer by this: a gateway that was cut off may have sealed late
MAX_KEYS: Final = 32

# Makes the first key where there is none, deletes those that are over, and gives the rest: id, secret, start.
_READ = """
local p, keys = ARGV[1], ARGV[1] .. 'sealing-keys'
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1000000
if redis.call('HLEN', keys) == 0 then
  redis.call('SET', p .. 'sealing', ARGV[2], 'NX')
  redis.call('SET', p .. 'arguments-key', redis.call('GET', p .. 'sealing'), 'NX')
  redis.call('HSET', keys, '', redis.call('GET', p .. 'sealing') .. ' 0 0')
end
local found = {redis.call('GET', p .. 'arguments-key') or ''}
local all = redis.call('HGETALL', keys)
for n = 1, #all, 2 do
  local secret, from, expires = string.match(all[n + 1], '^(%x+) ([%d.]+) ([%d.]+)$')
  if not expires or #secret % 2 == 1 or all[n]:find('[^%x]') then
    -- no gateway has written it
  elseif tonumber(expires) > 0 and tonumber(expires) <= now then
    redis.call('HDEL', keys, all[n])
    if all[n] == '' then redis.call('DEL', p .. 'sealing') end
  else
    found[#found + 1] = all[n]
    found[#found + 1] = secret
    found[#found + 1] = from
  end
end
return found
"""

# Adds a key that seals after some seconds, and says when the others expire. Gives the number of keys, or 0.
_ROTATE = """
local keys = ARGV[1] .. 'sealing-keys'
local count = redis.call('HLEN', keys)
local is_new = redis.call('HEXISTS', keys, ARGV[2]) == 0  -- the script may be run twice
if is_new and (count == 0 or count >= tonumber(ARGV[6])) then return 0 end
local t = redis.call('TIME')
local from = tonumber(t[1]) + tonumber(t[2]) / 1000000 + tonumber(ARGV[4])
local all = redis.call('HGETALL', keys)
for n = 1, #all, 2 do
  local secret, since, expires = string.match(all[n + 1], '^(%x+) ([%d.]+) ([%d.]+)$')
  if expires and tonumber(expires) == 0 then
    expires = string.format('%.6f', from + tonumber(ARGV[5]))
    redis.call('HSET', keys, all[n], secret .. ' ' .. since .. ' ' .. expires)
  end
end
redis.call('HSET', keys, ARGV[2], ARGV[3] .. ' ' .. string.format('%.6f', from) .. ' 0')
return redis.call('HLEN', keys)
"""

_ID = re.compile(r"[0-9a-f]{8}")
_log = logging.getLogger("afoot.cluster")


class SharedKeys:
    """The keys of one cluster, as this gateway read them last."""

    def __init__(self, journal: RedisJournal) -> None:
        self.keys = SealingKeys((SealingKey("", b""),))
        self.arguments_key = b""  # of digests in the history: it is never replaced
        self.reads = 0
        self._journal = journal
        self._read_at = float("-inf")  # of the monotonic clock: when the last read began
        self._failed_at = float("-inf")  # when a read for an unknown id failed
        self._reading = asyncio.Lock()

    async def read(self) -> None:
        """Read the keys, and make the first one where there is none; raises StoreError."""
        began = time.monotonic()
        self.reads += 1
        arguments_key, *found = await self._journal.run(_READ, secrets.token_hex(KEY_BYTES))
        keys = [
            SealingKey(id.decode(), bytes.fromhex(secret.decode()), float(since))
            for id, secret, since in zip(found[::3], found[1::3], found[2::3], strict=True)
        ]
        if not (keys and arguments_key):
            raise StoreError("the keys of the cluster were not kept by Redis")
        self.keys = SealingKeys(tuple(keys))
        self.arguments_key = bytes.fromhex(arguments_key.decode())
        self._read_at = began

    async def find(self, id: str) -> SealingKey | None:
        """The key with this id; the keys are read if it is unknown here. Raises StoreError.

        Keys that were read within the last second are not read again: a key seals nothing in its first
        seconds, so it is among them. Made-up ids thus cost one read a second, however many there are.
        """
        if (known := self.keys.find(id)) is not None or not _ID.fullmatch(id):
            return known
        async with self._reading:
            if time.monotonic() - self._failed_at < READ_PAUSE_S:
                raise StoreError("the keys of the cluster cannot be read")
            if time.monotonic() - self._read_at > READ_PAUSE_S:
                try:
                    await self.read()
                except StoreError:
                    self._failed_at = time.monotonic()
                    raise
                self._failed_at = float("-inf")
        return self.keys.find(id)

    async def rotate(self, keep_s: float, by: str) -> KeyRotation:
        """Make a new key; the old ones open for so long after it begins to seal.

        Raises Conflict, StoreError.
        """
        id, secret = secrets.token_hex(4), secrets.token_hex(KEY_BYTES)
        keep_s += MARGIN_S
        count = int(await self._journal.run(_ROTATE, id, secret, SEALS_AFTER_S, keep_s, MAX_KEYS))
        if not count:
            raise Conflict(f"{MAX_KEYS} sealing keys are still needed; rotate again when some have expired")
        _log.warning("sealing key %s was made, by %s; older keys open for %.0f s more", id, by, keep_s)
        await self.read()
        return KeyRotation(id, SEALS_AFTER_S, keep_s, count)
