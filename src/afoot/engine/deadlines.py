"""Time: the clock of a running gateway, and the one lazy timer of each call."""

import asyncio
import time
from collections.abc import Callable

from afoot.core.ports import Handle
from afoot.core.rules import due
from afoot.engine.live import Live


class LoopClock:
    """The loop's time, counted from 1970: wall time that never jumps, and fake where the loop's is."""

    __slots__ = ("_loop", "_offset")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._offset = time.time() - loop.time()

    def now(self) -> float:
        return self._loop.time() + self._offset

    def at(self, when: float, then: Callable[[], object]) -> Handle:
        return self._loop.call_at(when - self._offset, then)


def arm(live: Live, clock: LoopClock, tick: Callable[[Live], None]) -> None:
    """Set the call's timer to its next deadline; hearing the tool touches no timer."""
    if live.timer is not None:
        live.timer.cancel()
        live.timer = None
    when = due(live.call, live.heard)
    if when is not None:
        live.timer = clock.at(when, lambda: tick(live))


def arm_grace(live: Live, clock: LoopClock, over: Callable[[Live], None]) -> None:
    """Give a call that was told to stop its grace."""
    if live.timer is not None:
        live.timer.cancel()
    grace_s = live.call.opened.limits.grace_s
    live.timer = clock.at(clock.now() + grace_s, lambda: over(live))


def disarm(live: Live) -> None:
    """The call needs no timer any more."""
    if live.timer is not None:
        live.timer.cancel()
        live.timer = None


__all__ = ["LoopClock", "arm", "arm_grace", "disarm"]
