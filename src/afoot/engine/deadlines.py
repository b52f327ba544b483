"""Deadlines: the one lazy timer of each call."""

import logging
from collections.abc import Callable
from math import inf

from afoot.core.call import State
from afoot.core.rules import due
from afoot.engine.live import Live, LoopClock

log = logging.getLogger("afoot.engine")


def arm(live: Live, clock: LoopClock, tick: Callable[[Live], None]) -> None:
    """Set the call's timer to its next deadline; hearing the tool touches no timer."""
    if live.timer is not None:
        live.timer.cancel()
        live.timer = None
    call = live.call
    when = due(call, live.heard)
    live.due = inf if when is None else when
    if call.is_patient and call.state is State.RUNNING:
        live.due = 0.0  # its first report begins another clock
    if when is not None:
        live.timer = clock.at(when, lambda: tick(live))


def arm_grace(live: Live, clock: LoopClock, over: Callable[[Live], None]) -> None:
    """Give a call that was told to stop its grace."""
    if live.timer is not None:
        live.timer.cancel()
    live.due = inf  # no other clock runs any more, and none may take this timer's place
    grace_s = live.call.opened.limits.grace_s
    live.timer = clock.at(clock.now() + grace_s, lambda: _over(live, over))


def _over(live: Live, over: Callable[[Live], None]) -> None:
    log.warning("call %s: tool %s did not stop in its grace, and runs on", live.call.id, live.tool.name)
    over(live)
