"""The Lua scripts that change a history in Redis, each whole or not at all, and the names of its keys.

All keys of a cluster of gateways are on one server, so a script may use keys that it finds out by itself.
They begin with the name of the cluster in braces, as no other program's keys do by accident.
"""

import hashlib
from typing import Any

from redis.exceptions import NoScriptError

from afoot.store.redis.connect import Client

# Appends the segments of a batch. A segment is refused if the call belongs to another owner, or to a later
# turn of the same one (it was fenced off): then it is left out and named in the reply. A segment that does
# not begin behind the last one of its call is a conflict, and nothing of the batch is written.
# A segment: {call, facts, last seq, argument with its body, owner number, opened at or '', ended, claimed}.
# A place: {call, owner number, place, the next one}: the facts have what its function said up to there.
# Bodies are arguments of their own: the decoder of MessagePack in Redis knows no bytes, only text.
APPEND = """
local p, me, epoch = ARGV[1], ARGV[2], ARGV[3]
local given = cmsgpack.unpack(ARGV[4])
local large, most = tonumber(ARGV[5]), ARGV[6]
if redis.call('HGET', p .. 'meta', 'epoch') ~= epoch then return {'EPOCH'} end
local fenced, kept = {}, {}
for _, s in ipairs(given.facts) do
  local h = redis.call('HMGET', p .. 'call:' .. s[1], 's', 'o', 'n')
  if h[2] and (h[2] ~= me or tonumber(h[3]) ~= s[5]) then
    fenced[#fenced + 1] = s[1]
  elseif h[1] and tonumber(h[1]) > s[3] - s[2] then
    return {'CONFLICT', s[1]}
  else
    kept[#kept + 1] = s
  end
end
local newest = {}
for _, s in ipairs(given.samples) do newest[s[1]] = s end
local pos, bytes = tonumber(redis.call('HGET', p .. 'meta', 'pos') or '0'), 0
for _, s in ipairs(kept) do
  local call = s[1]
  local id = string.format('%.0f-0', pos + s[2])
  local key = p .. 'call:' .. call
  pos = pos + s[2]
  local body = ARGV[s[4]]
  bytes = bytes + #body
  redis.call('XADD', p .. 'facts:' .. call, string.format('%.0f-0', s[3]), 'b', body, 'p', id)
  local entry = {'XADD', p .. 'tail', 'MAXLEN', '~', most, id, 'c', call, 's', s[3], 'n', s[2], 'o', me}
  if #body <= large then
    entry[#entry + 1] = 'b'
    entry[#entry + 1] = body
  end
  local reading = newest[call]  -- that was made before the last of these facts
  if reading then
    entry[#entry + 1] = 'r'
    entry[#entry + 1] = string.format('%.0f ', reading[2]) .. ARGV[reading[4]]
  end
  redis.call(unpack(entry))
  redis.call('HSET', key, 's', s[3], 'o', me, 'n', s[5])
  redis.call('HINCRBY', key, 'b', #body)
  if s[8] then redis.call('HSET', key, 'k', 1) end
  if s[2] == s[3] then redis.call('ZADD', p .. 'order', id:sub(1, -3), call) end
  if s[7] then
    redis.call('HSET', key, 'e', 1)
    redis.call('ZREM', p .. 'live', call)
    redis.call('HDEL', p .. 'owners', call)
    redis.call('DEL', p .. 'said:' .. call, p .. 'task:' .. call)
  elseif s[6] ~= '' then
    redis.call('ZADD', p .. 'live', s[6], call)
    redis.call('HSET', p .. 'owners', call, me)
  end
end
for _, s in ipairs(given.places) do
  local h = redis.call('HMGET', p .. 'call:' .. s[1], 'o', 'n')
  if h[1] == me and tonumber(h[2]) == s[2] then
    redis.call('HSET', p .. 'call:' .. s[1], 'heard', s[3])
    redis.call('XTRIM', p .. 'said:' .. s[1], 'MINID', s[4])
  end
end
for _, s in ipairs(given.samples) do
  redis.call('HSET', p .. 'samples:' .. s[1], s[2], s[3] .. ' ' .. ARGV[s[4]])
  bytes = bytes + #ARGV[s[4]]
end
for _, r in ipairs(given.rows) do
  redis.call('HSET', p .. 'row', r[1], ARGV[r[2]])
  redis.call('ZADD', p .. 'rows', r[3], r[1])
  if r[4] ~= '' then redis.call('ZADD', p .. 'keyed:' .. r[4], r[3], r[1]) end
  if r[5] ~= '' then redis.call('HSET', p .. 'below:' .. r[5], r[1], r[6]) end
  bytes = bytes + #ARGV[r[2]]
end
redis.call('HSET', p .. 'meta', 'pos', string.format('%.0f', pos))
redis.call('HINCRBY', p .. 'meta', 'bytes', bytes)
return {'OK', pos, bytes, fenced}
"""

# Deletes calls whole, those that are over; gives how many.
# A call: {id, digest of its key or '', parent or ''}.
DELETE = """
local p = ARGV[1]
local gone, bytes = 0, 0
for _, c in ipairs(cmsgpack.unpack(ARGV[2])) do
  local call = c[1]
  local key = p .. 'call:' .. call
  if not redis.call('ZSCORE', p .. 'live', call) and redis.call('EXISTS', p .. 'facts:' .. call) == 1 then
    for _, entry in ipairs(redis.call('XRANGE', p .. 'facts:' .. call, '-', '+')) do
      redis.call('XDEL', p .. 'tail', entry[2][4])
    end
    bytes = bytes + tonumber(redis.call('HGET', key, 'b') or '0')
    for _, sample in ipairs(redis.call('HVALS', p .. 'samples:' .. call)) do bytes = bytes + #sample end
    bytes = bytes + redis.call('HSTRLEN', p .. 'row', call)
    redis.call('DEL', key, p .. 'facts:' .. call, p .. 'samples:' .. call, p .. 'commands:' .. call)
    redis.call('DEL', p .. 'said:' .. call, p .. 'task:' .. call)
    redis.call('HDEL', p .. 'row', call)
    redis.call('ZREM', p .. 'rows', call)
    redis.call('ZREM', p .. 'order', call)
    if c[2] ~= '' then redis.call('ZREM', p .. 'keyed:' .. c[2], call) end
    if c[3] ~= '' then redis.call('HDEL', p .. 'below:' .. c[3], call) end
    gone = gone + 1
  end
end
redis.call('HINCRBY', p .. 'meta', 'bytes', -bytes)
return gone
"""

# `own(call, me, number)`: whether a call lives and is ours. One that Redis has lost, or of which it has lost
# that it was opened, is noted again: its owner alone asks, and knows that it lives.
OWN = """
local p = ARGV[1]
local function own(call, me, number)
  local h = redis.call('HMGET', p .. 'call:' .. call, 'o', 'n', 'e')
  if h[1] and (h[1] ~= me or tonumber(h[2]) ~= number) then return false, h[1] end
  if h[3] then return false, me end
  if redis.call('HSETNX', p .. 'owners', call, me) == 1 then
    local now = redis.call('TIME')
    redis.call('HSET', p .. 'call:' .. call, 'o', me, 'n', number)
    redis.call('ZADD', p .. 'live', now[1] .. '.' .. string.format('%06d', now[2]), call)
  end
  return true, me
end
"""

# Notes again that a call of ours lives, if Redis has lost that; gives who has it.
PUT_BACK = (
    OWN
    + """
local _, owner = own(ARGV[2], ARGV[3], tonumber(ARGV[4]))
return owner
"""
)

# Gives the epoch of this history, which is made with the first use.
BEGIN = """
redis.call('HSETNX', ARGV[1] .. 'meta', 'epoch', ARGV[2])
return redis.call('HMGET', ARGV[1] .. 'meta', 'epoch', 'pos')
"""


class Scripts:
    """Runs scripts by their digest; one that the server does not know any more is sent again."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._digests: dict[str, str] = {}

    async def run(self, script: str, *arguments: Any) -> Any:
        """Run a script; its first argument is the prefix of all keys. Raises RedisError, OSError."""
        digest = self._digests.get(script)
        if digest is None:
            digest = self._digests[script] = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
        key = f"{self._prefix}meta"
        try:
            return await self._client.execute_command("EVALSHA", digest, 1, key, self._prefix, *arguments)
        except NoScriptError:
            return await self._client.execute_command("EVAL", script, 1, key, self._prefix, *arguments)
