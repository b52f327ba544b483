"""`SessionMessages` passes on what clients of the handshake era say to a gateway that has not asked (D1).

Answers and cancels of a session are requests of their own. Without affinity a load balancer may send them to
a gateway that has not asked, or does not serve the request: it passes them on to all others that live, and
the one that knows them takes them. The end of a session is also kept, for gateways that hear of it later.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from math import ceil
from typing import Final

from afoot.engine.followers import Wakeup
from afoot.errors import StoreError
from afoot.store.redis.journal import RedisJournal

MAX_WAITING: Final = 10_000  # messages that wait for Redis; more are dropped
KEEP_S: Final = 3600  # for which an inbox that nobody reads is kept
RETRY_S: Final = 0.5

# Puts a message into the inbox of every other gateway that lives. A gateway of an older version looks into
# `c` for a call, and finds none.
_PASS_ON: Final = """
local p, me = ARGV[1], ARGV[2]
local t = redis.call('TIME')
local now = string.format('%.6f', tonumber(t[1]) + tonumber(t[2]) / 1000000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'gateways', now, '+inf')) do
  if id ~= me then
    redis.call('XADD', p .. 'inbox:' .. id, '*', 'c', '', 'x', ARGV[3], 'f', ARGV[4])
    redis.call('EXPIRE', p .. 'inbox:' .. id, ARGV[5])
  end
end
return 1
"""

_log = logging.getLogger("afoot.cluster")


class SessionMessages:
    """The messages of sessions to and from other gateways (`core.ports.SharedSessions`).

    `run` sends until it is cancelled; while Redis is away, messages wait.
    """

    def __init__(self, journal: RedisJournal) -> None:
        self._journal = journal
        self._waiting = deque[tuple[str, bytes]]()
        self._wakeup = Wakeup()
        self._take: Callable[[str, bytes], object] = lambda session, message: None

    def listen(self, take: Callable[[str, bytes], object]) -> None:
        """Give messages of other gateways to this function."""
        self._take = take

    def pass_on(self, session: str, message: bytes) -> None:
        """Pass a message on to all other gateways. A session is named by a digest: its id is a secret."""
        if len(self._waiting) >= MAX_WAITING:
            _log.warning("over %d messages of sessions wait for Redis; one is dropped", MAX_WAITING)
            return
        self._waiting.append((session, message))
        self._wakeup.wake()

    async def end(self, session: str, keep_s: float) -> None:
        """Tell all gateways that a session is over, also those that start later; raises StoreError."""
        await self._journal.command("SET", self._ended_key(session), 1, "EX", max(1, ceil(keep_s)))
        self.pass_on(session, b"")

    async def has_ended(self, session: str) -> bool:
        """Whether a session was ended at any gateway; raises StoreError."""
        return bool(await self._journal.command("EXISTS", self._ended_key(session)))

    def receive(self, fields: Mapping[bytes, bytes]) -> None:
        """Take a message of another gateway."""
        self._take(fields[b"x"].decode(), fields[b"f"])

    async def run(self) -> None:
        """Send messages as they come, in their order."""
        while True:
            await self._wakeup.wait()
            while self._waiting:
                session, message = self._waiting[0]
                try:
                    await self._journal.run(_PASS_ON, self._journal.owner, session, message, KEEP_S)
                except StoreError as error:
                    _log.warning("what a client said waits for Redis: %s", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                self._waiting.popleft()

    def _ended_key(self, session: str) -> str:
        return f"{self._journal.prefix}ended:{session}"
