"""What the engine holds of a call while it lives, and those who read along.

A follower is one flag and one position; it never delays the call.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

from msgspec import Struct

from afoot.core.call import Call
from afoot.core.facts import Answer, Entry, Fact, Finished, Reading, Released
from afoot.core.ports import Clock, Handle, Row, Tool, Work
from afoot.core.rising import Series

BACKLOG = 1024  # facts, and readings at progress_hz 0, kept for followers that lag


class Live:
    """A call, its work, its newest facts and its followers."""

    __slots__ = (
        "attached", "backlog", "call", "followers", "given", "heard", "late_at", "left_out", "readings",
        "recorded", "round", "sampled", "series", "task", "timer", "tool", "unrecorded", "waiters",
        "watchers", "work",
    )  # fmt: skip

    def __init__(self, call: Call, tool: Tool, work: Work | None) -> None:
        self.call = call
        self.tool = tool
        self.work = work
        self.task: asyncio.Task[None] | None = None
        self.timer: Handle | None = None
        self.heard = call.heard
        self.sampled = 0.0
        self.left_out = 0
        self.late_at = 0.0
        self.recorded = 0  # the seq of the last fact that may be seen
        self.unrecorded = False
        self.backlog: deque[Entry] = deque(maxlen=BACKLOG)
        self.readings: deque[Reading] | None = None  # kept only while somebody wants every one
        self.followers: list[Follower] = []
        self.watchers: list[Follower] = []  # those of them who want readings
        self.waiters: dict[str, asyncio.Future[Answer]] = {}
        self.given: dict[str, Answer] = {}  # answers that came before their questions
        self.series = Series()  # the numbers that callers have been sent (P4)
        self.round = 0
        self.attached = 0  # requests of the newest round that follow this call


class Taken(Struct, frozen=True):
    """What is new to a follower, in the order it happened; `gap` counts facts it was too slow for."""

    items: list[Fact | Reading]
    gap: int = 0


class Follower:
    """Reads along with one call. `ring` is called when there is something to take."""

    __slots__ = ("_armed", "_clock", "_every", "_gap_s", "_next", "_ring", "_wants", "live", "number", "seq")

    def __init__(self, live: Live, ring: Callable[[], object], clock: Clock, hz: float | None) -> None:
        """`hz` None: facts only; 0: every reading; else at most that many wakes a second for readings."""
        self.live = live
        self.seq = live.recorded
        self.number = live.call.readings
        self._ring = ring
        self._clock = clock
        self._every = hz == 0
        self._gap_s = 1 / hz if hz else 0.0
        self._next = 0.0
        self._armed = False
        self._wants = hz is not None
        live.followers.append(self)
        if self._wants:
            live.watchers.append(self)
            if self._every and live.readings is None:
                live.readings = deque(maxlen=BACKLOG)

    def notice(self, now: float) -> None:
        """A reading came."""
        if self._armed:
            return
        self._armed = True
        if now >= self._next:
            self._ring()
        else:
            self._clock.at(self._next, self._due)

    def _due(self) -> None:
        self._armed = False
        self._ring()

    def wake(self) -> None:
        """A fact was recorded."""
        self._ring()

    def take(self) -> Taken:
        """Everything since the last take: every fact, and the newest reading."""
        live = self.live
        facts: list[Fact | Reading] = []
        gap = 0
        if live.recorded > self.seq:
            facts = [entry.fact for entry in live.backlog if entry.seq > self.seq]
            gap = live.recorded - self.seq - len(facts)
            self.seq = live.recorded
        fresh = live.call.readings - self.number
        # A reading made after a fact waits until that fact may be seen, so that order is kept.
        if fresh and live.recorded == live.call.seq and self._wants:
            now = self._clock.now()
            if now < self._next and not live.call.is_finished:
                self.notice(now)  # woken by a fact, too early for the next reading
                return Taken(facts, gap)
            self.number += fresh
            self._next = now + self._gap_s
            readings = self._newest(fresh)
            facts = sorted(facts + readings, key=_at) if facts else readings
        self._armed = False
        return Taken(facts, gap)

    def _newest(self, fresh: int) -> list[Fact | Reading]:
        kept, latest = self.live.readings, self.live.call.latest
        if self._every and kept is not None:
            newest: list[Fact | Reading] = [*kept]
            return newest[-fresh:]
        return [] if latest is None else [latest]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.live.followers.remove(self)
        if self._wants:
            self.live.watchers.remove(self)


def _at(item: Fact | Reading) -> tuple[float, bool]:
    """A reading of the very instant of the end was made before it."""
    return item.at, type(item) in (Finished, Released)


def row(live: Live) -> Row:
    """The call as a line of a list."""
    call, opened, latest, end = live.call, live.call.opened, live.call.latest, live.call.end
    return Row(
        call.id, opened.tool, opened.server, opened.caller, opened.at, call.state,
        end.outcome if end else None, end.at if end else None,
        latest.progress if latest else None, latest.total if latest else None,
        latest.message if latest else None,
    )  # fmt: skip


class Bell:
    """One waiter, many who may ring: a follower, a disconnect, a timer."""

    __slots__ = ("_future", "_loop", "_rung")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._rung = False

    def ring(self) -> None:
        """Wake the waiter, now or at its next wait."""
        self._rung = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        """Return when it has rung since the last wait."""
        if not self._rung:
            self._future = self._loop.create_future()
            await self._future
            self._future = None
        self._rung = False
