"""`Retention` deletes the calls that are not kept any longer, a few at a time, beside all other work (H6)."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from typing import Self

from afoot.config.settings import Settings
from afoot.core.ports import Journal, PurgeRule
from afoot.engine.engine import Engine
from afoot.errors import StoreError

LOOK_S = 60.0  # between two looks whether calls are to go
GROWTH_LOOK_S = 1.0  # between two looks whether the history has grown so much that calls are to go sooner
GROWTH_SHARE = 16  # of `retain.bytes`, by which it may grow between two purges
PAUSE_S = 0.05  # between two steps, so that writers have their turn
DAY_S = 86_400.0

log = logging.getLogger("afoot.engine")


class Retention:
    """Has calls go by age, count and size, as long as the block lasts; `settings` are those of now."""

    def __init__(self, engine: Engine, settings: Callable[[], Settings]) -> None:
        self._engine = engine
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._purged_at = 0  # bytes that were written when calls were last looked at

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
            await self._wait_for_growth()
            self.follow_wall_clock()
            try:
                count = await self.purge()
            except StoreError as error:
                log.warning("calls that are to go stay for now: %s", error)
            else:
                if count:
                    log.info("%d calls are kept no longer", count)

    async def _wait_for_growth(self) -> None:
        """Wait until the next look is due, by time or because much was written."""
        journal, left_s = self._engine.journal, LOOK_S
        while left_s > 0:
            await asyncio.sleep(GROWTH_LOOK_S)
            left_s -= GROWTH_LOOK_S
            most = self._settings().retain.bytes
            if most and journal.written_bytes - self._purged_at >= most // GROWTH_SHARE:
                break
        self._purged_at = journal.written_bytes

    async def purge(self) -> int:
        """Have all go that are to go; how many went. Raises StoreError."""
        count = 0
        for rule in self.rules():
            count += await purge(self._engine.journal, rule, PAUSE_S)
        return count

    def rules(self) -> Iterator[PurgeRule]:
        """The rules that the settings mean now.

        A call that lives is spared, also one whose end has been told. So is what its caller may still ask
        for: a task, or a call with a key, which would be run a second time.
        """
        settings, now = self._settings(), self._engine.clock.now()
        retain = settings.retain
        spare, claimed = LiveCallIds(self._engine), now - settings.task_ttl_s
        if retain.days:
            yield PurgeRule(before=now - retain.days * DAY_S, spare=spare, claimed=claimed)
        if retain.calls:
            yield PurgeRule(keep=retain.calls, spare=spare, claimed=claimed)
        if retain.bytes:
            yield PurgeRule(most_bytes=retain.bytes, spare=spare, claimed=claimed)

    def follow_wall_clock(self) -> None:
        """Follow the time of day where it ran ahead, as while a machine sleeps; no living call may notice."""
        if not self._engine.own_calls():
            clock = self._engine.clock
            clock.offset = max(clock.offset, time.time() + clock.skew_s - asyncio.get_running_loop().time())


class LiveCallIds(Set[str]):
    """The ids of the calls that live now: a purge may take long, and meanwhile they come and go.

    A call of which facts wait in memory is among them: written after it was purged, they would be all of it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __contains__(self, call: object) -> bool:
        return isinstance(call, str) and (call in self._engine or call in self._engine.recorder.waiting())

    def __iter__(self) -> Iterator[str]:
        return (live.call.id for live in self._engine.calls())

    def __len__(self) -> int:
        return len(self._engine.calls())


async def purge(journal: Journal, rule: PurgeRule, pause_s: float = 0.0) -> int:
    """Have all calls go that a rule means, step by step; how many went. Raises StoreError."""
    count = 0
    while went := await journal.purge(rule):
        count += went
        await asyncio.sleep(pause_s)
    return count
