"""`Outbox` sends messages to other gateways: commands for the owners of calls, and the newest readings.

A command is kept beside its call until the owner, whoever that is by then, has carried it out. A reading is
sent once, at most twenty times a second for all calls together, and only while another gateway lives.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from msgspec import json

from afoot.core.facts import Reading
from afoot.core.owner_commands import OwnerCommand
from afoot.engine.engine import Engine
from afoot.engine.followers import Wakeup
from afoot.errors import StoreError
from afoot.store.redis.journal import RedisJournal
from afoot.store.redis.rows import key_digest

READINGS_PER_S: Final = 20
READINGS_KEPT: Final = 200  # messages with readings; who lags further gets the newest
KEEP_COMMANDS_S: Final = 86_400
MAX_COMMANDS: Final = 10_000  # that wait for Redis; more are refused
RETRY_S: Final = 0.5
TURN_S: Final = 10.0  # of a request that opens a call with a key; one that dies in it holds up no longer
TURN_PAUSE_S: Final = 0.01
CAUGHT_UP_S: Final = 2.0  # for which what another gateway has just recorded is waited for

# Keeps a command beside its call, and tells the owner; gives 0 for a call that is over. If Redis has lost
# that a call lives, its owner looks for commands once it has noted that again.
SEND = """
local p, call = ARGV[1], ARGV[2]
local owner = redis.call('HGET', p .. 'owners', call)
if not owner and redis.call('HEXISTS', p .. 'call:' .. call, 'e') == 1 then return 0 end
redis.call('RPUSH', p .. 'commands:' .. call, ARGV[3])
redis.call('EXPIRE', p .. 'commands:' .. call, ARGV[4])
if not owner then return 1 end
redis.call('XADD', p .. 'inbox:' .. owner, '*', 'c', call)
redis.call('EXPIRE', p .. 'inbox:' .. owner, ARGV[4])
return 1
"""

# Ends a turn, unless it had run out and somebody else has it now.
_END_TURN = """
if redis.call('GET', ARGV[2]) == ARGV[3] then redis.call('DEL', ARGV[2]) end
return 1
"""

_log = logging.getLogger("afoot.cluster")


class Outbox:
    """The messages to other gateways (`core.ports.OtherGateways`). `run` sends until it is cancelled."""

    def __init__(self, journal: RedisJournal, lives: Callable[[str], bool] = lambda gateway: True) -> None:
        self.id = journal.owner
        self.lives = lives
        self._journal = journal
        self._commands: deque[tuple[str, OwnerCommand]] = deque()
        self._wakeup = Wakeup()
        self._waiting: list[asyncio.Future[None]] = []

    def send(self, call: str, command: OwnerCommand) -> None:
        """Send a command to the owner of a call, in the order in which they were given."""
        if len(self._commands) >= MAX_COMMANDS:
            raise StoreError(f"call {call}: over {MAX_COMMANDS} commands wait for Redis")
        self._commands.append((call, command))
        self._wakeup.wake()

    async def sent(self) -> None:
        """Wait until the commands so far are kept."""
        if self._commands:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(done)
            await done

    @asynccontextmanager
    async def turn(self, caller: str, key: str) -> AsyncIterator[None]:
        """Let requests with one idempotency key take turns; raises StoreError where Redis cannot say."""
        journal, loop = self._journal, asyncio.get_running_loop()
        name = f"{journal.prefix}turn:{key_digest(caller, key)}"
        mine = secrets.token_hex(8)
        until = loop.time() + TURN_S
        while not await journal.command("SET", name, mine, "NX", "PX", int(TURN_S * 1000)):
            if loop.time() > until:
                raise StoreError("another request with this key is being opened, and does not end")
            await asyncio.sleep(TURN_PAUSE_S)
        try:
            await self.caught_up(until - loop.time())
            yield
        finally:
            await journal.run(_END_TURN, name, mine)

    async def caught_up(self, within_s: float = CAUGHT_UP_S) -> None:
        """Wait until all is known here that was recorded before, but not for long; raises StoreError."""
        journal, loop = self._journal, asyncio.get_running_loop()
        until = loop.time() + within_s
        # What was recorded before is in the tail; it is known here once the reader of that is there.
        newest = int(await journal.command("HGET", f"{journal.prefix}meta", "pos") or 0)
        while journal.position < newest and loop.time() < until:  # noqa: ASYNC110 - it is milliseconds
            await asyncio.sleep(TURN_PAUSE_S)

    async def run(self) -> None:
        """Send commands as they come. While Redis is away they wait."""
        while True:
            await self._wakeup.wait()
            while self._commands:
                call, command = self._commands[0]
                body = json.encode(command)
                try:
                    await self._journal.run(SEND, call, body, KEEP_COMMANDS_S)
                except StoreError as error:
                    _log.warning("call %s: a command waits for Redis: %s", call, error)
                    await asyncio.sleep(RETRY_S)
                    continue
                self._commands.popleft()
            waiting, self._waiting = self._waiting, list[asyncio.Future[None]]()
            for done in waiting:
                if not done.done():
                    done.set_result(None)


async def send_readings(engine: Engine, journal: RedisJournal, has_others: Callable[[], bool]) -> None:
    """Send the newest readings of our calls, again and again, until it is cancelled."""
    sent: dict[str, int] = {}
    while True:
        await asyncio.sleep(1 / READINGS_PER_S)
        if not has_others():
            continue
        news = list[tuple[str, int, Reading]]()
        known: dict[str, int] = {}
        for live in engine.own_calls():
            call = live.call
            known[call.id] = call.readings
            if call.latest is not None and call.readings != sent.get(call.id, 0):
                news.append((call.id, call.readings, call.latest))
        sent = known
        if news:
            key = f"{journal.prefix}readings"
            try:
                await journal.command(
                    "XADD", key, "MAXLEN", "~", READINGS_KEPT, "*", "o", journal.owner, "j", json.encode(news)
                )
            except StoreError:
                sent = {}  # they are sent again once Redis is back
