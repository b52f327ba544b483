"""What is said of a call beside its progress: lines that its tool logs, and what slows or stops it."""

from contextlib import suppress
from typing import TYPE_CHECKING

from afoot.core.call import State
from afoot.core.facts import Hindered, Logged
from afoot.engine.endings import discreet
from afoot.errors import UnknownName

if TYPE_CHECKING:
    from afoot.engine.engine import Engine
    from afoot.engine.live import Live

LATE_LINES = 512  # after a call's end; a runaway tool fills no history


def logged(engine: "Engine", live: "Live", text: str, level: str, logger: str) -> None:
    """Its tool logged a line."""
    live.late += live.call.end is not None
    if live.call.started is not None and live.late <= LATE_LINES:
        engine.commit(live, Logged(engine.clock.now(), discreet(engine, live, text), level, logger))


def written(engine: "Engine", call: str, text: str) -> str:
    """A line of the gateway's own log, without secrets; `call`: whose tool logged it, if one did (S4)."""
    with suppress(UnknownName):  # none, or one that is over
        return discreet(engine, engine[call], text)
    return discreet(engine, None, text)


def hindered(engine: "Engine", live: "Live", attempt: int, by: str, hint: str) -> None:
    """Something slows what it runs on, or no more; only what is new is a fact."""
    call = live.call
    before = "" if call.hindered is None else call.hindered.by
    if call.state is State.RUNNING and call.attempt == attempt and by != before:
        engine.commit(live, Hindered(engine.clock.now(), by, hint))
