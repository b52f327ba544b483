"""Callers that can be seen to leave: what servers keep for one of them alone goes when it has gone (U1)."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from afoot.engine.bell import Bell
from afoot.engine.engine import Engine
from afoot.providers.servers import Servers

LOOK_S = 1.0  # how often it is looked whether the calls of one that has gone are over


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
