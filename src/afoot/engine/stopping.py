"""Stopping the work of a call: it is told, has its grace, and is then counted as what did not stop."""

from functools import partial
from typing import TYPE_CHECKING

from afoot.engine.deadlines import arm_grace
from afoot.engine.endings import is_new
from afoot.engine.live import Live

if TYPE_CHECKING:
    from afoot.engine.engine import Engine


def stop(engine: "Engine", live: Live) -> None:
    """Tell the work to stop."""
    if live.parent is not None:
        engine.trees.settled(live)  # nobody can answer it any more
    if live.task is not None and is_new(live.task):
        live.task.cancel()  # it was never entered, so nothing in it can say that it ended
        live.task = None
    if live.task is None:
        grace_over(engine, live)
        return
    cancel = live.call.cancel
    arm_grace(live, engine.clock, partial(grace_over, engine))
    live.task.cancel(cancel.reason if cancel else None)


def grace_over(engine: "Engine", live: Live) -> None:
    """The work has stopped, or had the time to."""
    engine.unstopped += live.task is not None
    engine.end(live, engine.cancelled(live), "grace" if live.task is not None else "stopped")
