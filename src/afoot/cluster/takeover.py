"""`TakeOver` finds the calls of dead gateways and continues them here (D2, U4).

A call is taken in one step in Redis: its owner's lease has run out, and from then on the number of its owner
is one higher. Facts that the old owner still writes are refused by that number.
"""

import logging
from typing import Final

from afoot.cluster.adoption import adopt
from afoot.cluster.functions import WorkerFunctions
from afoot.engine.engine import Engine
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call, recover
from afoot.errors import AfootError
from afoot.store.redis.journal import RedisJournal

CALLS_AT_ONCE: Final = 100  # so that gateways that live share the calls of one that died
LOOK_S: Final = 1.0

# Takes calls whose owner's lease has run out; gives each with the dead owner and the new number.
_TAKE = """
local p, me, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1000000
local lives, found = {}, {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'gateways', now, '+inf')) do lives[id] = true end
if not lives[me] then return found end
local owners = redis.call('HGETALL', p .. 'owners')
for n = 1, #owners, 2 do
  local call, owner = owners[n], owners[n + 1]
  if not lives[owner] then
    local number = redis.call('HINCRBY', p .. 'call:' .. call, 'n', 1)
    redis.call('HSET', p .. 'call:' .. call, 'o', me)
    redis.call('HSET', p .. 'owners', call, me)
    found[#found + 1] = {call, owner, number}
    if #found == most then break end
  end
end
return found
"""

_log = logging.getLogger("afoot.cluster")


async def take_over(engine: Engine, journal: RedisJournal, functions: WorkerFunctions) -> list[str]:
    """Go on with calls of gateways that died, or end them; gives their ids. Raises StoreError."""
    found = await journal.run(_TAKE, journal.owner, CALLS_AT_ONCE)
    taken, interrupted = list[str](), list[str]()
    for name, owner, number in sorted(found):  # by time: a call comes before those that it has made
        call = name.decode()
        journal.numbers[call] = int(number)
        _log.warning("call %s: taken over from gateway %s, which died", call, owner.decode())
        try:
            live = await _catch_up(engine, journal, call)
            if not await adopt(engine, journal, functions, live):
                interrupted.append(call)
        except AfootError as error:
            _log.error("call %s of a gateway that died cannot be read: %s", call, error)
            continue
        taken.append(call)
    if interrupted:
        await recover(engine, calls=interrupted)
    return taken


async def _catch_up(engine: Engine, journal: RedisJournal, call: str) -> LiveCall:
    """A call that becomes our own, with every fact that its dead owner wrote."""
    live = await load_call(engine, call)
    if live.mirror is not None:
        known = engine.mirrors.newest(call) or 0
        engine.mirrors.load(live.mirror.owner, await journal.facts(call, known), await journal.samples(call))
    return live
