"""`Lease` says every few seconds, from a thread of its own, that this gateway lives.

A gateway whose lease has run out may be dead: another one takes its calls over. The thread keeps the lease
also while the loop is busy. The time is that of Redis; two machines' clocks are never compared.
"""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final

from msgspec import DecodeError, Struct, json
from redis.exceptions import RedisError

from afoot.store.redis.connect import ThreadClient, connect_thread, store_error

RENEWALS: Final = 5  # in a lease: some may be late, or lost
FORGET_S: Final = 60.0  # after its lease, for which a dead gateway is still listed

# Renews the lease of a gateway. Gives the time, and of every gateway its id, its lease, its description.
_RENEW = """
local p, me, lease, info, forget = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1000000
if lease > 0 then
  redis.call('ZADD', p .. 'gateways', string.format('%.6f', now + lease), me)
  redis.call('HSET', p .. 'gateway', me, info)
elseif lease < 0 then
  redis.call('ZREM', p .. 'gateways', me)
  redis.call('HDEL', p .. 'gateway', me)
  redis.call('DEL', p .. 'inbox:' .. me)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'gateways', '-inf', now - forget)) do
  redis.call('ZREM', p .. 'gateways', id)
  redis.call('HDEL', p .. 'gateway', id)
  redis.call('DEL', p .. 'inbox:' .. id)
end
local found = {string.format('%.6f', now)}
local all = redis.call('ZRANGE', p .. 'gateways', 0, -1, 'WITHSCORES')
for n = 1, #all, 2 do
  found[#found + 1] = all[n]
  found[#found + 1] = all[n + 1]
  found[#found + 1] = redis.call('HGET', p .. 'gateway', all[n]) or '{}'
end
return found
"""

_log = logging.getLogger("afoot.cluster")


class GatewayInfo(Struct, frozen=True, omit_defaults=True):
    """A gateway of the cluster, as it describes itself."""

    host: str = ""
    pid: int = 0
    url: str = ""
    version: str = ""
    started: float = 0.0
    calls: int = 0  # that live there
    draining: bool = False  # it takes no new calls


class ClusterGateway(Struct, frozen=True):
    """A gateway of the cluster, and the seconds that its lease has left; below 0: it may be dead."""

    id: str
    left_s: float
    info: GatewayInfo

    @property
    def lives(self) -> bool:
        """Whether its lease has not run out."""
        return self.left_s > 0


class Lease:
    """Keeps the lease of one gateway while the block lasts; `describe` is called in the thread."""

    def __init__(self, url: str, prefix: str, owner: str, lease_s: float) -> None:
        self.info = GatewayInfo()
        self.gateways: Sequence[ClusterGateway] = ()
        self.skew_s = 0.0  # by which the clock of Redis is ahead of this machine's
        self._lease_s = lease_s
        self._client: ThreadClient = connect_thread(url, lease_s / RENEWALS)
        self._prefix = prefix
        self._owner = owner
        self._until = 0.0  # of the monotonic clock: the lease holds at least to here
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="afoot-lease", daemon=True)

    @property
    def holds(self) -> bool:
        """Whether the lease has not run out, as far as this machine knows."""
        return time.monotonic() < self._until

    @property
    def has_others(self) -> bool:
        """Whether another gateway of the cluster lives."""
        return any(one.lives and one.id != self._owner for one in self.gateways)

    def start(self) -> None:
        """Take the lease, then keep it; blocks for the first time. Raises StoreError."""
        try:
            self._renew(self._lease_s)
        except (RedisError, OSError) as error:
            raise store_error(error, "the lease of this gateway could not be taken") from error
        self._thread.start()

    def stop(self) -> None:
        """Give the lease back, so that nobody waits for it to run out. Blocks for a moment."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._renew(-1.0)
        except (RedisError, OSError) as error:
            _log.warning("the lease of this gateway was not given back, and runs out: %s", error)
        self._client.close()

    def _run(self) -> None:
        had = True
        while not self._stop.wait(self._lease_s / RENEWALS):
            try:
                self._renew(self._lease_s)
            except (RedisError, OSError) as error:
                if had and not self.holds:
                    had = False
                    _log.error("the lease of this gateway has run out; others may take its calls: %s", error)
                continue
            if not had:
                _log.warning("the lease of this gateway is back")
            had = True

    def _renew(self, lease_s: float) -> None:
        began, wall = time.monotonic(), time.time()
        info = json.encode(self.info)
        found = self._client.execute_command(
            "EVAL", _RENEW, 1, f"{self._prefix}meta", self._prefix, self._owner, lease_s, info, FORGET_S
        )
        # The lease counts from before the request: it may have been renewed at any time since.
        self._until = began + lease_s
        now = float(found[0])
        took_s = time.monotonic() - began
        self.skew_s = now - (wall + took_s / 2)
        self.gateways = [
            ClusterGateway(id_.decode(), float(until) - now, _info(described))
            for id_, until, described in zip(found[1::3], found[2::3], found[3::3], strict=True)
        ]


def _info(body: bytes) -> GatewayInfo:
    try:
        return json.decode(body, type=GatewayInfo)
    except DecodeError:
        return GatewayInfo()
