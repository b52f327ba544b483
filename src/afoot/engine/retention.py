"""Calls that are kept no longer: they go a few at a time, while everything else goes on (H6)."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from typing import Self

from afoot.config import Settings
from afoot.core.ports import Journal, Purge
from afoot.engine.engine import Engine
from afoot.errors import StoreError

LOOK_S = 60.0  # how often it is looked whether some are to go
PAUSE_S = 0.05  # between two steps, so that whoever writes has its turn
DAY_S = 86_400.0

log = logging.getLogger("afoot.engine")


class Retention:
    """Has calls go by age, count and size, as long as the block lasts; `settings` are those of now."""

    def __init__(self, engine: Engine, settings: Callable[[], Settings]) -> None:
        self._engine = engine
        self._settings = settings
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            catch_up(self._engine)
            try:
                count = await self.look()
            except StoreError as error:
                log.warning("calls that are to go stay for now: %s", error)
            else:
                if count:
                    log.info("%d calls are kept no longer", count)

    async def look(self) -> int:
        """Have all go that are to go; how many went. Raises StoreError."""
        count = 0
        for rule in rules(self._settings(), self._engine):
            count += await purge(self._engine.journal, rule, PAUSE_S)
        return count


def catch_up(engine: Engine) -> None:
    """Follow the time of day where it ran ahead, as while a machine sleeps; no living call may notice."""
    if not engine.calls():
        ahead = time.time() - asyncio.get_running_loop().time()
        engine.clock.offset = max(engine.clock.offset, ahead)


class Living(Set[str]):
    """The calls that live, whenever it is looked: a purge may take long, and meanwhile they come and go.

    One of which facts wait in memory is among them: written once it has gone, they would be all of it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __contains__(self, call: object) -> bool:
        return isinstance(call, str) and (call in self._engine or call in self._engine.recorder.waiting())

    def __iter__(self) -> Iterator[str]:
        return (live.call.id for live in self._engine.calls())

    def __len__(self) -> int:
        return len(self._engine.calls())


def rules(settings: Settings, engine: Engine) -> Iterator[Purge]:
    """What the settings mean now.

    A call that lives is spared, also one whose end has been told. So is what its caller may still ask for:
    a task, or a call with a key, which would be run a second time.
    """
    retain, now = settings.retain, engine.clock.now()
    spare, claimed = Living(engine), now - settings.task_ttl_s
    if retain.days:
        yield Purge(before=now - retain.days * DAY_S, spare=spare, claimed=claimed)
    if retain.calls:
        yield Purge(keep=retain.calls, spare=spare, claimed=claimed)
    if retain.bytes:
        yield Purge(most_bytes=retain.bytes, spare=spare, claimed=claimed)


async def purge(journal: Journal, rule: Purge, pause_s: float = 0.0) -> int:
    """Have all go that a rule means, step by step; how many went. Raises StoreError."""
    count = 0
    while went := await journal.purge(rule):
        count += went
        await asyncio.sleep(pause_s)
    return count
