"""`ClusterSlots` counts the calls of a tool that run at once over all gateways, and keeps one line (D8).

A slot belongs to a call, not to a gateway: a call that is taken over keeps its slot, or its place in line.
All is changed by one script. A slot that becomes free goes at once to the next call in line, whichever
gateway owns that; callers take turns as at a gateway that is alone. A call asks for a slot only after its
opening is on record, and starts only after its start is: so a gateway that was fenced off begins nothing with
a slot that another call has by now.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, msgpack

from afoot.cluster.functions import SERVER
from afoot.config.tables import LOCAL_SERVER
from afoot.core.names import full_name
from afoot.core.ports import Tool
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall
from afoot.errors import StoreError
from afoot.store.redis.journal import RedisJournal

# The servers whose tools any gateway may run. A connection to any other server, and a browser, belong to one
# gateway, and so do the limits of their tools.
SHARED_SERVERS: Final = frozenset({LOCAL_SERVER, SERVER})
LOOK_S: Final = 1.0  # between two looks for slots of calls whose gateway died, while a call waits here
REPEAT_S: Final = 30.0  # between two times that everything is said again
RETRY_S: Final = 0.3
AT_ONCE: Final = 200  # orders in one script, which holds up all others
KEEP_INBOX_S: Final = 3600
SETTLE_S: Final = 1.5  # after a restart of Redis, in which gateways say which slots they have

# Carries out orders of one gateway, in their order, and gives a reply to each. An order:
#   take: a call asks for a slot. Reply: HELD; WAITS and its place; FULL; LOST: it is another gateway's.
#   hold: a call has a slot whether there is one or not, because it runs.
#   leave: a call gives its slot back, or leaves the line.
#   look: what dead gateways have left of calls that are over is removed.
#   mine: all that this gateway has are these calls; others that are noted for it, and are over, are removed.
# {order, tool, call, caller, limit, queue, place, turn}, and for mine: {order, tool, {call, call, …}}.
#
# slots:TOOL    by call: its gateway and its caller
# waiting:TOOL  by call: its gateway, limit, place, turn and caller
# held:TOOL     by caller: the number of its slots
# since:TOOL    by caller: when its last turn was, or when it came into the line if it had none since
# turns:TOOL    callers in line; first is who has the fewest slots, then who waits longest for a turn
# line:DIGEST   the calls of one caller for one tool, by their places
_SLOTS: Final = """
local p, me, keep = ARGV[1], ARGV[2], ARGV[4]
local t = redis.call('TIME')
local now = string.format('%.6f', tonumber(t[1]) + tonumber(t[2]) / 1000000)
local lives, touched, replies = {}, {}, {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'gateways', now, '+inf')) do lives[id] = true end

-- A server that was started anew, or took another one's place, may have lost its newest slots: each gateway
-- has a moment to say which ones it has, before new ones are given.
local told = redis.pcall('INFO', 'server')
local run = type(told) == 'string' and told:match('run_id:(%x+)')
local known, settles = unpack(redis.call('HMGET', p .. 'meta', 'run', 'settles'))
if run and run ~= known then
  settles = known and now + ARGV[5] or 0
  redis.call('HSET', p .. 'meta', 'run', run, 'settles', string.format('%.6f', settles))
end
local is_settled = tonumber(now) >= tonumber(settles or 0)

local function line_of(name, caller)
  return p .. 'line:' .. redis.sha1hex(#name .. ' ' .. name .. caller)
end

local function rank(name, caller)
  if redis.call('EXISTS', line_of(name, caller)) == 0 then
    redis.call('ZREM', p .. 'turns:' .. name, caller)
    redis.call('HDEL', p .. 'since:' .. name, caller)
    return
  end
  local held = math.min(tonumber(redis.call('HGET', p .. 'held:' .. name, caller) or '0'), 8000)
  local since = tonumber(redis.call('HGET', p .. 'since:' .. name, caller))
  redis.call('ZADD', p .. 'turns:' .. name, string.format('%.0f', held * 2 ^ 40 + since), caller)
end

local function put_waiting(name, call, caller, gateway, limit, place, turn)
  local entry = string.format('%s %.0f %.0f %.0f %s', gateway, limit, place, turn, caller)
  redis.call('HSET', p .. 'waiting:' .. name, call, entry)
  redis.call('ZADD', line_of(name, caller), place, call)
  redis.call('HSETNX', p .. 'since:' .. name, caller, string.format('%.0f', place))
  rank(name, caller)
end

local function waiting(name, call)
  local entry = redis.call('HGET', p .. 'waiting:' .. name, call)
  if entry then return entry:match('^(%S+) (%S+) (%S+) (%S+) (.*)$') end
end

local function drop_waiting(name, call)
  local _, _, _, _, caller = waiting(name, call)
  if not caller then return end
  redis.call('HDEL', p .. 'waiting:' .. name, call)
  redis.call('ZREM', line_of(name, caller), call)
  rank(name, caller)
end

local function put_held(name, call, caller, gateway)
  if redis.call('HSET', p .. 'slots:' .. name, call, gateway .. ' ' .. caller) == 1 then
    redis.call('HINCRBY', p .. 'held:' .. name, caller, 1)
    rank(name, caller)
  end
end

local function held(name, call)
  local entry = redis.call('HGET', p .. 'slots:' .. name, call)
  if entry then return entry:match('^(%S+) (.*)$') end
end

local function drop_held(name, call)
  local _, caller = held(name, call)
  if not caller then return end
  redis.call('HDEL', p .. 'slots:' .. name, call)
  if redis.call('HINCRBY', p .. 'held:' .. name, caller, -1) <= 0 then
    redis.call('HDEL', p .. 'held:' .. name, caller)
  end
  rank(name, caller)
end

local function drop_where(name, is_wrong)
  for _, kind in ipairs({'slots:', 'waiting:'}) do
    local all = redis.call('HGETALL', p .. kind .. name)
    for n = 1, #all, 2 do
      if is_wrong(all[n], all[n + 1]:match('^%S+')) then
        if kind == 'slots:' then drop_held(name, all[n]) else drop_waiting(name, all[n]) end
      end
    end
  end
end

local function sweep(name)
  drop_where(name, function(call, gateway)
    return not lives[gateway] and redis.call('HEXISTS', p .. 'owners', call) == 0
  end)
end

-- The first call in line whose owner lives. That of a dead one keeps its place for who takes it over.
local function next_call(name)
  for n = 0, redis.call('ZCARD', p .. 'turns:' .. name) - 1 do
    local line = line_of(name, redis.call('ZRANGE', p .. 'turns:' .. name, n, n)[1])
    for m = 0, redis.call('ZCARD', line) - 1 do
      local call = redis.call('ZRANGE', line, m, m)[1]
      local gateway, limit, _, turn, caller = waiting(name, call)
      gateway = redis.call('HGET', p .. 'owners', call) or gateway
      if lives[gateway] then return call, gateway, tonumber(limit), turn, caller end
    end
  end
end

local function serve(name, mine)
  while is_settled do
    local call, gateway, limit, turn, caller = next_call(name)
    if not call or redis.call('HLEN', p .. 'slots:' .. name) >= limit then return end
    redis.call('HSET', p .. 'since:' .. name, caller, redis.call('HINCRBY', p .. 'meta', 'place', 1))
    drop_waiting(name, call)
    put_held(name, call, caller, gateway)
    if call ~= mine then
      redis.call('XADD', p .. 'inbox:' .. gateway, '*', 'c', call, 's', turn)
      redis.call('EXPIRE', p .. 'inbox:' .. gateway, keep)
    end
  end
end

local function take(name, call, caller, limit, queue, place, turn)
  local owner = redis.call('HGET', p .. 'owners', call)
  if owner and owner ~= me then return {'LOST'} end
  if held(name, call) then
    put_held(name, call, caller, me)
    return {'HELD'}
  end
  local _, _, known = waiting(name, call)
  if place == 0 and known then place = tonumber(known) end
  local is_new = place == 0
  if is_new and is_settled and lives[me] and redis.call('HLEN', p .. 'waiting:' .. name) == 0
    and redis.call('HLEN', p .. 'slots:' .. name) < limit then
    put_held(name, call, caller, me)
    return {'HELD'}
  end
  local last = tonumber(redis.call('HGET', p .. 'meta', 'place') or '0')
  if is_new then place = last + 1 end
  if place > last then redis.call('HSET', p .. 'meta', 'place', string.format('%.0f', place)) end
  put_waiting(name, call, caller, me, limit, place, turn)
  serve(name, call)
  if is_new and redis.call('HLEN', p .. 'waiting:' .. name) > queue and not held(name, call) then
    sweep(name)
    serve(name, call)
    if redis.call('HLEN', p .. 'waiting:' .. name) > queue and not held(name, call) then
      drop_waiting(name, call)
      return {'FULL'}
    end
  end
  if held(name, call) then return {'HELD'} end
  return {'WAITS', place}
end

local function leave(name, call)
  local owner = redis.call('HGET', p .. 'owners', call)
  if owner and owner ~= me then return end
  if owner or held(name, call) == me then drop_held(name, call) end
  if owner or waiting(name, call) == me then drop_waiting(name, call) end
end

for n, o in ipairs(cmsgpack.unpack(ARGV[3])) do
  local order, name, call = o[1], o[2], o[3]
  touched[name] = true
  replies[n] = {'DONE'}
  if order == 'take' then
    replies[n] = take(name, call, o[4], o[5], o[6], o[7], o[8])
  elseif order == 'hold' then
    local owner = redis.call('HGET', p .. 'owners', call)
    if not owner or owner == me then
      drop_waiting(name, call)
      put_held(name, call, o[4], me)
    end
  elseif order == 'leave' then
    leave(name, call)
  elseif order == 'look' then
    sweep(name)
  elseif order == 'mine' then
    local known = {}
    for _, one in ipairs(call) do known[one] = true end
    drop_where(name, function(one, gateway)
      return gateway == me and not known[one] and redis.call('HGET', p .. 'owners', one) ~= me
    end)
  end
end
for name in pairs(touched) do serve(name) end
return replies
"""

_log = logging.getLogger("afoot.cluster")


class Record(Protocol):
    """The record of the calls of this gateway (`engine.recorder.Recorder`)."""

    def written(self) -> Awaitable[None]: ...


class _Wish(Struct, eq=False):
    """What a call of this gateway wants, or has."""

    tool: str
    caller: str
    limit: int
    queue: int
    is_held: bool = False
    is_asked: bool = False  # whether it is in line, or wants to be: else it has given its slot back
    place: int = 0  # in the line; 0: it had none yet
    turn: int = 0  # how often it has asked: a slot of an earlier turn is none
    reply: asyncio.Future[Literal["held", "waits", "full"]] | None = None
    gate: asyncio.Future[None] | None = None  # opened when it has its slot


class ClusterSlots:
    """The slots of tools whose calls any gateway may run (`engine.admission.SharedSlots`).

    `run` sends orders until it is cancelled. While Redis is away they wait.
    """

    def __init__(self, journal: RedisJournal, record: Record) -> None:
        self._journal = journal
        self._record = record
        self._wishes: dict[str, _Wish] = {}
        self._tools = set[str]()  # of which this gateway ever asked for a slot
        self._orders = deque[list[Any]]()
        self._wakeup = Wakeup()
        self._is_unsure = False  # whether Redis may have lost what it was told
        self._repeat_at = 0.0

    def counts(self, tool: Tool) -> bool:
        """Whether the limit of a tool counts over the cluster."""
        return tool.concurrency > 0 and tool.server in SHARED_SERVERS and not tool.per_process

    async def take(self, live: LiveCall) -> Literal["held", "waits", "full"]:
        """Ask for a slot. If the call waits, `granted` says when it has one; `free` ends that."""
        call = live.call
        wish = self._wishes.get(call.id) or self._wish(live)
        await self._record.written()
        loop = asyncio.get_running_loop()
        wish.reply, wish.gate = loop.create_future(), loop.create_future()
        wish.is_asked = True
        wish.turn += 1
        self._send(_take(call.id, wish))
        return await wish.reply

    async def granted(self, live: LiveCall) -> None:
        """Wait until a call in line has its slot."""
        gate = self._wishes[live.call.id].gate
        assert gate is not None
        await gate

    def give_back(self, live: LiveCall) -> None:
        """Give a slot to the next call in line. This one keeps its place for the next time that it asks."""
        wish = self._wishes[live.call.id]
        wish.is_held = wish.is_asked = False
        self._send(["leave", wish.tool, live.call.id])

    def hold(self, live: LiveCall) -> None:
        """Count a call that runs already, whether there is a slot for it or not."""
        if not self.counts(live.tool):
            return
        wish = self._wish(live)
        wish.is_held = True
        self._send(["hold", wish.tool, live.call.id, wish.caller])

    def free(self, live: LiveCall) -> None:
        """Give back what a call has: its slot, or its place in the line."""
        call = live.call
        wish = self._wishes.pop(call.id, None)
        if wish is not None:
            self._send(["leave", wish.tool, call.id])
        elif self._journal.number(call.id) > 1 and live.tool.server in SHARED_SERVERS:
            self._send(
                ["leave", full_name(live.tool), call.id]
            )  # its owner before may have got a slot for it

    def forget(self, live: LiveCall) -> None:
        """Leave what a call has to its next owner."""
        self._wishes.pop(live.call.id, None)

    def receive(self, call: str, turn: int) -> None:
        """Take in that a call which waits has its slot now."""
        wish = self._wishes.get(call)
        if wish is not None and wish.is_asked and wish.turn == turn:
            _open(wish)

    def look_again(self) -> None:
        """Say again who has slots and who waits: Redis may have lost it."""
        self._is_unsure = True
        self._wakeup.wake()

    async def run(self) -> None:
        """Send orders as they come, and look after the line while a call of this gateway is in it."""
        loop = asyncio.get_running_loop()
        is_away = False
        while True:
            await self._wait_for_orders()
            is_due = self._wishes and loop.time() >= self._repeat_at
            if (self._is_unsure or is_due) and not is_away:
                self._is_unsure = False
                self._repeat_at = loop.time() + REPEAT_S
                self._orders.extend(self._all_orders())
            orders = [self._orders[n] for n in range(min(AT_ONCE, len(self._orders)))]
            if not orders:
                continue
            try:
                replies = await self._journal.run(
                    _SLOTS, self._journal.owner, msgpack.encode(orders), KEEP_INBOX_S, SETTLE_S
                )
            except StoreError as error:
                if not is_away:
                    _log.warning("calls wait for their slots, which are counted in Redis: %s", error)
                is_away = True
                await asyncio.sleep(RETRY_S)
                continue
            if is_away:
                is_away, self._is_unsure = False, True
            for order, reply in zip(orders, replies, strict=True):
                self._orders.popleft()
                if order[0] == "take":
                    self._take_reply(order, reply)

    async def _wait_for_orders(self) -> None:
        """Return when there is something to send: at the latest after a moment, while calls wait here."""
        while not (self._orders or self._is_unsure):
            lines = {one.tool for one in self._wishes.values() if one.is_asked and not one.is_held}
            if not lines:
                await self._wakeup.wait()
                continue
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._wakeup.wait()
            except TimeoutError:
                self._orders.extend(["look", tool] for tool in lines)

    def _wish(self, live: LiveCall) -> _Wish:
        caller = live.call.opened.caller.encode(errors="replace").decode()  # a lone surrogate cannot be sent
        wish = _Wish(full_name(live.tool), caller, live.tool.concurrency, live.tool.queue)
        self._wishes[live.call.id] = wish
        self._tools.add(wish.tool)
        return wish

    def _send(self, order: list[Any]) -> None:
        self._orders.append(order)
        self._wakeup.wake()

    def _all_orders(self) -> list[list[Any]]:
        """Everything that Redis should know of this gateway."""
        orders = list[list[Any]]()
        mine: dict[str, list[str]] = {tool: [] for tool in self._tools}
        for call, wish in self._wishes.items():
            if wish.is_held:
                orders.append(["hold", wish.tool, call, wish.caller])
            elif wish.is_asked:
                orders.append(_take(call, wish))
            if wish.is_held or wish.is_asked:
                mine[wish.tool].append(call)
        return [*orders, *(["mine", tool, calls] for tool, calls in mine.items())]

    def _take_reply(self, order: list[Any], reply: list[Any]) -> None:
        wish = self._wishes.get(order[2])
        if wish is None or not wish.is_asked or wish.turn != order[7]:
            return  # it has left since, which was sent too
        match reply[0]:
            case b"HELD":
                _open(wish)
            case b"FULL":
                wish.is_asked = False
                _tell(wish, "full")
            case b"WAITS":
                wish.place = int(reply[1])
                if not wish.is_held:  # else the slot was heard of before this reply
                    _tell(wish, "waits")
            case _:  # another gateway has the call: soon this one hears so
                _tell(wish, "waits")


def _take(call: str, wish: _Wish) -> list[Any]:
    return ["take", wish.tool, call, wish.caller, wish.limit, wish.queue, wish.place, wish.turn]


def _open(wish: _Wish) -> None:
    """Note that a call has its slot."""
    wish.is_held = True
    _tell(wish, "held")
    if wish.gate is not None and not wish.gate.done():
        wish.gate.set_result(None)


def _tell(wish: _Wish, reply: Literal["held", "waits", "full"]) -> None:
    if wish.reply is not None and not wish.reply.done():
        wish.reply.set_result(reply)
