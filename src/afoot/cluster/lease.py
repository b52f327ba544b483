"""`Lease` says every few seconds, from a thread of its own, that this gateway or worker lives.

A gateway whose lease has run out may be dead: another one takes its calls over. The thread keeps the lease
also while the loop is busy. The time is that of Redis; two machines' clocks are never compared.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from redis.exceptions import RedisError

from afoot.store.redis.connect import ThreadClient, connect_thread, store_error

RENEWALS: Final = 5  # in a lease: some may be late, or lost
FORGET_S: Final = 60.0  # after its lease, for which a dead gateway is still listed

ROLES: Final = ("gateway", "worker")

# Renews the lease of a gateway or a worker. Gives the time, how many members have left the list, and of every
# member its id, lease, description.
_RENEW = """
local p, me, lease, info, forget = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local role = ARGV[6]
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1000000
local function forget_member(kind, id)
  redis.call('ZREM', p .. kind .. 's', id)
  redis.call('HDEL', p .. kind, id)
  redis.call('DEL', p .. 'inbox:' .. id)
  redis.call('HINCRBY', p .. 'meta', 'left', 1)
end
if lease > 0 and redis.call('EXISTS', p .. 'dead:' .. me) == 1 then return {'DEAD'} end
if lease > 0 then
  redis.call('ZADD', p .. role .. 's', string.format('%.6f', now + lease), me)
  redis.call('HSET', p .. role, me, info)
else
  forget_member(role, me)
end
local left = tonumber(redis.call('HGET', p .. 'meta', 'left') or 0) or 0
local found = {string.format('%.6f', now), string.format('%.0f', left)}
for _, kind in ipairs({'gateway', 'worker'}) do
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. kind .. 's', '-inf', now - forget)) do
    forget_member(kind, id)
  end
  local all = redis.call('ZRANGE', p .. kind .. 's', 0, -1, 'WITHSCORES')
  for n = 1, #all, 2 do
    found[#found + 1] = kind
    found[#found + 1] = all[n]
    found[#found + 1] = all[n + 1]
    found[#found + 1] = redis.call('HGET', p .. kind, all[n]) or '{}'
  end
end
return found
"""

# Declares a member dead: its lease has run out, and cannot be renewed. Gives 0 if there is no such member.
DECLARE_DEAD = """
local p, role, id, by, keep = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if not redis.call('ZSCORE', p .. role .. 's', id) then return 0 end
local t = redis.call('TIME')
redis.call('SET', p .. 'dead:' .. id, by, 'EX', keep)
redis.call('ZADD', p .. role .. 's', string.format('%.6f', tonumber(t[1]) + tonumber(t[2]) / 1000000), id)
return 1
"""
KEEP_DEAD_S: Final = 86_400

_log = logging.getLogger("afoot.cluster")


class GatewayInfo(Struct, frozen=True, omit_defaults=True):
    """A gateway of the cluster, as it describes itself."""

    host: str = ""
    pid: int = 0
    url: str = ""
    version: str = ""
    calls: int = 0  # that live there
    draining: bool = False  # it takes no new calls
    lag: int = 0  # facts of the cluster that it does not know yet


class Member(Struct, frozen=True):
    """A gateway or a worker of the cluster, and the seconds that its lease has left.

    Below 0 it may be dead.
    """

    id: str
    left_s: float
    description: bytes

    @property
    def lives(self) -> bool:
        """Whether its lease has not run out."""
        return self.left_s > 0


class Lease:
    """Keeps the lease of one gateway or worker, from `start` to `stop`."""

    def __init__(self, url: str, prefix: str, owner: str, lease_s: float, role: str = "gateway") -> None:
        self.describe: Callable[[], bytes] = lambda: b"{}"  # this member for the others; called in the thread
        self.gateways: Sequence[Member] = ()
        self.workers: Sequence[Member] = ()
        self.departures = 0  # members that have left the list; one may have left calls to others
        self._role = role
        self.skew_s = 0.0  # by which the clock of Redis is ahead of this machine's
        self.has_lapsed = False  # it had run out since this was last set to False
        self._lease_s = lease_s
        self._client: ThreadClient = connect_thread(url, lease_s / RENEWALS)
        self._prefix = prefix
        self._owner = owner
        self.is_declared_dead = False  # by an operator: it is never renewed again
        self.on_declared_dead: Callable[[], object] = lambda: None  # called in the thread, once
        self._heard = 0.0  # of the monotonic clock: when the others were heard of last
        self._until = 0.0  # of the monotonic clock: the lease holds at least to here
        self._stop = threading.Event()
        self._soon = threading.Event()  # it is to be renewed now, or to stop
        self._thread = threading.Thread(target=self._run, name="afoot-lease", daemon=True)

    @property
    def holds(self) -> bool:
        """Whether the lease has not run out, as far as this machine knows."""
        return time.monotonic() < self._until

    @property
    def heard_ago_s(self) -> float:
        """The seconds since the others were heard of."""
        return time.monotonic() - self._heard

    @property
    def has_others(self) -> bool:
        """Whether another gateway of the cluster lives."""
        return any(one.lives and one.id != self._owner for one in self.gateways)

    def start(self) -> None:
        """Take the lease, then keep it; blocks for the first time, at most for a lease. Raises StoreError."""
        for tries_left in reversed(range(RENEWALS)):  # each has a short time, and a server may be busy
            try:
                self._renew(self._lease_s)
                break
            except (RedisError, OSError) as error:
                if not tries_left:
                    raise store_error(error, f"the lease of this {self._role} could not be taken") from error
        self._thread.start()

    def renew_soon(self) -> None:
        """Tell the others what has changed here, and hear what has changed there, without a wait."""
        self._soon.set()

    def stop(self) -> None:
        """Give the lease back, so that nobody waits for it to run out. Blocks for a moment."""
        self._stop.set()
        self._soon.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._renew(-1.0)
        except (RedisError, OSError) as error:
            _log.warning("the lease of this %s was not given back, and runs out: %s", self._role, error)
        self._client.close()

    def _run(self) -> None:
        had = True
        while not self._stop.is_set():
            self._soon.wait(self._lease_s / RENEWALS)
            self._soon.clear()
            if self._stop.is_set() or self.is_declared_dead:
                return
            try:
                self._renew(self._lease_s)
            except (RedisError, OSError) as error:
                if had and not self.holds:
                    had = False
                    _log.error(
                        "the lease of this %s has run out; others may take its calls: %s", self._role, error
                    )
                continue
            if not had:
                _log.warning("the lease of this %s is back", self._role)
            had = True

    def _renew(self, lease_s: float) -> None:
        began, wall = time.monotonic(), time.time()
        self.has_lapsed = self.has_lapsed or 0 < self._until < began
        arguments = self._prefix, self._owner, lease_s, self.describe(), FORGET_S, self._role
        found = self._client.execute_command("EVAL", _RENEW, 1, f"{self._prefix}meta", *arguments)
        if found == [b"DEAD"]:
            if not self.is_declared_dead:
                self.is_declared_dead = True
                self._until = 0.0
                self.gateways = [one for one in self.gateways if one.id != self._owner]
                _log.error("this %s was declared dead by an operator: others have its calls", self._role)
                self.on_declared_dead()
            return
        # The lease counts from before the request: it may have been renewed at any time since.
        self._until = began + lease_s
        self._heard = began
        now = float(found[0])
        took_s = time.monotonic() - began
        self.skew_s = now - (wall + took_s / 2)
        members: dict[str, list[Member]] = {role: [] for role in ROLES}
        for role, name, until, told in zip(found[2::4], found[3::4], found[4::4], found[5::4], strict=True):
            # An id that somebody else wrote may be anything; this thread must go on.
            members[role.decode()].append(Member(name.decode(errors="replace"), float(until) - now, told))
        self.gateways, self.workers = (members[role] for role in ROLES)
        self.departures = int(found[1])
