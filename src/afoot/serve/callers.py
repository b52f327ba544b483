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

    def note(self, caller: str, key: str, call: str, living: Container[str]) -> None:
        """This is what the caller means from now on; beyond MOST the oldest of calls that are over go.

        Several at once, because the history of their callers is then looked through again.
        """
        self.calls.pop((caller, key), None)
        self.calls[caller, key] = call
        if len(self.calls) > MOST:
            over = (known for known, meant in self.calls.items() if meant not in living)
            gone = list(islice(over, len(self.calls) - MOST + MOST // 10))
            for known in gone:
                del self.calls[known]
            callers = {known[0] for known in gone}
            self.looked = {known for known in self.looked if known[0] not in callers}


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
