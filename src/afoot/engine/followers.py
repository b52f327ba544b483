"""`Follower` reads the news of one call, `Watcher` those of all calls; `Wakeup` wakes their readers.

A follower is one flag and one position; it never delays the call.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

from msgspec import Struct

from afoot.core.call import precedes
from afoot.core.fact_size import fact_bytes
from afoot.core.facts import Entry, Fact, Reading, Reported
from afoot.core.ports import Clock
from afoot.engine.live_call import BACKLOG, LiveCall

MAX_QUEUED_FACTS = 10_000  # kept for a watcher that lags; the oldest go first, and the history has them
MAX_QUEUED_BYTES = 16 * 1024 * 1024  # of these together


class Wakeup:
    """One waiter, and many who may wake it: a follower, a disconnect, a timer."""

    __slots__ = ("_future", "_is_set", "_loop", "closed")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._is_set = False
        self.closed = False  # whether the waiter is to wait no more

    def close(self) -> None:
        """Wake the waiter for the last time."""
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Wake the waiter, now or at its next wait."""
        if self._is_set:  # by another fact of the same write, as a rule
            return
        self._is_set = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        """Wait until `wake` was called since the last wait."""
        if not self._is_set:
            self._future = self._loop.create_future()
            await self._future
            self._future = None
        self._is_set = False


class FollowerUpdate(Struct, frozen=True):
    """The news for a follower, in the order it happened; `gap` counts facts it was too slow for."""

    items: list[Fact | Reading]
    gap: int = 0


class Follower:
    """Reads along with one call. `wake` is called when there is something to take."""

    __slots__ = ("_armed", "_clock", "_every", "_gap_s", "_next", "_wants", "live", "number", "seq", "wake")

    def __init__(self, live: LiveCall, wake: Callable[[], object], clock: Clock, hz: float | None) -> None:
        """`hz` None: facts only; 0: every reading; else at most that many wakes a second for reports."""
        self.live = live
        self.seq = live.recorded
        self.number = live.call.readings
        self.wake = wake
        self._clock = clock
        self._every = hz == 0
        self._gap_s = 1 / hz if hz else 0.0
        self._next = 0.0  # no reading before
        self._armed = False  # whether it was woken, or will be, for readings that it has not taken
        self._wants = hz is not None
        live.followers.append(self)
        if self._wants:
            live.watchers.append(self)
            if self._every and live.readings is None:
                live.readings = deque(maxlen=BACKLOG)

    def on_reading(self, now: float) -> None:
        """Wake the reader for a reading, at once or when its rate allows it."""
        if self._armed:
            return
        self._armed = True
        if now >= self._next:
            self.wake()
        else:
            self._clock.at(self._next, self._wake_later)

    def on_content(self) -> None:
        """Wake the reader for a report with content that was recorded, when its rate allows it.

        None is left out: those that come meanwhile are taken together. Every other fact wakes at once.
        """
        if self._wants:
            self.on_reading(self._clock.now())

    def _wake_later(self) -> None:
        self._armed = False
        self.wake()

    def take(self) -> FollowerUpdate:
        """Return everything since the last call of this method: every fact, and the newest reading."""
        live = self.live
        facts: list[Fact] = []
        newest: list[Reading] = []
        gap = 0
        if live.recorded > self.seq:
            facts = [entry.fact for entry in live.backlog if entry.seq > self.seq]
            gap = live.recorded - self.seq - len(facts)
            self.seq = live.recorded
        fresh = live.call.readings - self.number
        # A reading made after a fact waits until that fact may be seen, so that order is kept.
        if fresh and live.recorded == live.call.seq and self._wants:
            now = self._clock.now()
            if now < self._next and live.call.end is None:
                self.on_reading(now)  # woken by a fact, too early for the next reading
                return FollowerUpdate(list[Fact | Reading](facts), gap)
            self.number += fresh
            self._next = now + self._gap_s
            newest = [live.call.latest] if live.call.latest is not None else []
            if self._every and live.readings is not None:
                newest = list(live.readings)[-fresh:]
        items = list[Fact | Reading](facts)
        if newest:
            items.clear()
            for fact in facts:
                while newest and precedes(newest[0], fact):
                    items.append(newest.pop(0))
                items.append(fact)
            items += newest
        if live.call.contents and self._gap_s and any(type(fact) is Reported for fact in facts):
            self._next = self._clock.now() + self._gap_s
        self._armed = False
        return FollowerUpdate(items, gap)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Read along no more."""
        self.live.followers.remove(self)
        if self._wants:
            self.live.watchers.remove(self)


class Watcher:
    """Reads along with every call. A slow one misses the oldest facts, and delays nobody."""

    __slots__ = ("_all", "_bytes", "_wake", "entries")

    def __init__(self, watchers: "list[Watcher]", wake: Callable[[], object]) -> None:
        self._all = watchers
        self._wake = wake
        self.entries: deque[Entry] = deque()
        self._bytes = 0

    def on_fact(self, entry: Entry) -> None:
        """Queue a fact that was recorded, and wake the reader."""
        entries = self.entries
        entries.append(entry)
        self._bytes += fact_bytes(entry.fact)
        while len(entries) > MAX_QUEUED_FACTS or (self._bytes > MAX_QUEUED_BYTES and len(entries) > 1):
            self._bytes -= fact_bytes(entries.popleft().fact)
        self._wake()

    def take(self) -> list[Entry]:
        """The facts since the last take."""
        entries = list(self.entries)
        self.entries.clear()
        self._bytes = 0
        return entries

    def __enter__(self) -> Self:
        self._all.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._all.remove(self)
