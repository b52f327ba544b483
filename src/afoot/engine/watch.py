"""Somebody who watches everything: which facts came, and which calls have a newer reading."""

from collections import deque
from collections.abc import Callable
from typing import Self

from afoot.core.facts import Entry

KEPT = 10_000  # facts kept for a watcher that lags; past that it starts anew from a snapshot


class Watcher:
    """Reads along with every call. A slow one misses facts, is told so, and delays nobody."""

    __slots__ = ("_all", "_ring", "entries", "overrun")

    def __init__(self, watchers: "list[Watcher]", ring: Callable[[], object]) -> None:
        self._all = watchers
        self._ring = ring
        self.entries: deque[Entry] = deque()
        self.overrun = False

    def see(self, entry: Entry) -> None:
        """A fact was recorded."""
        if len(self.entries) >= KEPT:
            self.entries.clear()
            self.overrun = True
        self.entries.append(entry)
        self._ring()

    def take(self) -> list[Entry]:
        """The facts since the last take."""
        entries = list(self.entries)
        self.entries.clear()
        return entries

    def __enter__(self) -> Self:
        self._all.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._all.remove(self)
