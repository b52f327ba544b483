"""Callers: what servers keep for one alone goes when it has gone (U1), and which calls they mean again."""

import asyncio
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from itertools import islice

from msgspec import Struct

from afoot.engine.bell import Bell
from afoot.engine.engine import Engine
from afoot.providers.servers import Servers

MOST = 10_000  # keys kept in mind
LOOK_S = 1.0  # how often it is looked whether the calls of one that has gone are over


class Keys(Struct):
    """Which call each caller means by which key: read from the history, where it stands, too (X3)."""

    calls: dict[tuple[str, str], str] = {}
    looked: set[tuple[str, str]] = set()  # callers and tools whose history was looked through
    looking: dict[tuple[str, str], asyncio.Future[bool]] = {}  # those whose history just is
    pushed: set[int] = set()  # hashes of keys that were in mind, and are only in the history now

    def is_sure(self, caller: str, tool: str, key: str) -> bool:
        """Whether what is in mind is all that there is to know of a key."""
        known = caller, key
        return known in self.calls or ((caller, tool) in self.looked and hash(known) not in self.pushed)

    def note(self, caller: str, key: str, call: str, living: Container[str]) -> None:
        """This is what the caller means from now on; beyond MOST the oldest of calls that are over go.

        That they were there is kept in mind, so that a key that is new is known to be, and costs no look.
        """
        self.calls.pop((caller, key), None)
        self.calls[caller, key] = call
        if len(self.calls) > MOST:
            over = (known for known, meant in self.calls.items() if meant not in living)
            gone = list(islice(over, len(self.calls) - MOST + MOST // 10))
            for known in gone:
                del self.calls[known]
            self.pushed.update(map(hash, gone))
        if len(self.pushed) > 10 * MOST:  # the history is looked through again, of whoever has a key
            self.pushed.clear()
            self.looked.clear()


class Callers:
    """Who is there, by the streams that are held open for nothing else."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def present(self, caller: str, servers: Servers | None) -> Iterator[None]:
        """As long as this lasts, the caller is there."""
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]
                self.left(caller, servers)

    def left(self, caller: str, servers: Servers | None) -> None:
        """This caller will not come again."""
        if servers is None or not any(one.wanted.server.per_caller for one in servers.list()):
            return
        task = asyncio.create_task(self._forget(caller, servers))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget(self, caller: str, servers: Servers) -> None:
        """Its calls may run on without it; then nobody needs its connections."""
        bell, clock = Bell(), self._engine.clock
        while any(live.call.opened.caller == caller for live in self._engine.calls()):
            clock.at(clock.now() + LOOK_S, bell.ring)
            await bell.wait()
        if caller not in self._open:
            await servers.forget(caller)
