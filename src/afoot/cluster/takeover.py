"""`TakeOver` finds the calls of dead gateways and continues them here (D2, U4).

A call is taken in one step in Redis: its owner's lease has run out, and from then on the number of its owner
is one higher. Facts that the old owner still writes are refused by that number.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from afoot.cluster.adoption import adopt
from afoot.cluster.functions import WorkerFunctions
from afoot.engine.engine import Engine
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import UNREADABLE, load_call, recover_loaded
from afoot.errors import DamagedCall, StoreError
from afoot.store.redis.journal import RedisJournal

CALLS_AT_ONCE: Final = 100  # so that gateways that live share the calls of one that died
LOOK_S: Final = 1.0

# Takes calls whose owner's lease has run out; gives each with the dead owner and the new number. If it is
# asked for them, also the calls that are ours already, without an owner before.
_TAKE = """
local p, me, most, with_own = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1000000
local lives, found, taken = {}, {}, 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'gateways', now, '+inf')) do lives[id] = true end
if not lives[me] then return found end
local owners = redis.call('HGETALL', p .. 'owners')
for n = 1, #owners, 2 do
  local call, owner = owners[n], owners[n + 1]
  if with_own and owner == me then
    found[#found + 1] = {call, '', tonumber(redis.call('HGET', p .. 'call:' .. call, 'n') or '1')}
  elseif not lives[owner] and taken < most then
    local number = redis.call('HINCRBY', p .. 'call:' .. call, 'n', 1)
    redis.call('HSET', p .. 'call:' .. call, 'o', me)
    redis.call('HSET', p .. 'owners', call, me)
    found[#found + 1] = {call, owner, number}
    taken = taken + 1
  end
end
return found
"""

_log = logging.getLogger("afoot.cluster")


class TakeOver:
    """Takes over the calls of dead gateways. `has_more`: whether some may be left, so that it must run again.

    A call may be taken in Redis and not get into the engine: the reply is lost, or Redis goes away before its
    facts are read. So after a failure the next run looks also for calls that are ours and unknown here.
    """

    def __init__(self, engine: Engine, journal: RedisJournal, functions: WorkerFunctions) -> None:
        self.has_more = True  # nobody may have looked since the last gateway died
        self._engine = engine
        self._journal = journal
        self._functions = functions
        self._lacks_own = False  # whether calls may be ours that the engine does not know
        self._unreadable = set[str]()
        self._turn = asyncio.Lock()

    def look_for_own(self) -> None:
        """Look in the next run for calls that are ours and unknown here, too."""
        self.has_more = self._lacks_own = True

    async def run(self) -> list[str]:
        """Go on with calls of gateways that died, or end them; gives their ids. Raises StoreError."""
        async with self._turn:
            with_own = self._lacks_own
            self.look_for_own()  # until all is done
            found = await self._journal.run_once(_TAKE, self._journal.owner, CALLS_AT_ONCE, int(with_own))
            taken, is_whole = await self._take_in(sorted(found))  # a call comes before those that it has made
            self._lacks_own = not is_whole
            self.has_more = self._lacks_own or len(found) >= CALLS_AT_ONCE
            return taken

    async def _take_in(self, found: Sequence[tuple[bytes, bytes, int]]) -> tuple[list[str], bool]:
        """Bring calls that were taken into the engine; gives those that are, and whether no other is left."""
        calls = list[str]()
        for name, owner, number in found:
            call = name.decode()
            if owner:
                _log.warning("call %s: taken over from gateway %s, which died", call, owner.decode())
            elif not self._is_unknown(call):
                continue
            self._journal.numbers[call] = number
            calls.append(call)
        taken, interrupted, is_whole = list[str](), list[LiveCall](), True
        for call in calls:
            try:
                live = await self._catch_up(call)
                if live.call.end is not None:  # written while it was looked for
                    continue
                if not await adopt(self._engine, self._journal, self._functions, live):
                    interrupted.append(live)
                taken.append(call)
            except UNREADABLE as error:
                if isinstance(error, StoreError) and not isinstance(error, DamagedCall):
                    _log.warning("call %s of a dead gateway waits, with those behind it: %s", call, error)
                    is_whole = False
                    break
                _log.error("call %s of a gateway that died cannot be read: %s", call, error)
                self._unreadable.add(call)
        await recover_loaded(self._engine, interrupted)
        return taken, is_whole

    def _is_unknown(self, call: str) -> bool:
        """Whether a call is ours in Redis, but not in the engine, nor waiting for its end to be written."""
        engine = self._engine
        is_known = engine.own_call(call) is not None or call in engine.recorder.waiting()
        return not is_known and call not in self._unreadable

    async def _catch_up(self, call: str) -> LiveCall:
        """A call that becomes our own, with every fact that its dead owner wrote."""
        journal, mirrors = self._journal, self._engine.mirrors
        live = await load_call(self._engine, call)
        if live.mirror is not None:
            entries = await journal.facts(call, mirrors.newest(call) or 0)
            mirrors.load(live.mirror.owner, entries, await journal.samples(call))
        return live
