"""Somebody who watches: what came since it last looked, of one call or of all."""

from collections import deque
from collections.abc import Callable
from typing import Protocol, Self

from msgspec import Struct

from afoot.core.facts import Entry, Fact, Reading

KEPT = 10_000  # facts kept for a watcher that lags; the oldest go first, and the history has them


class Noticing(Protocol):
    """Somebody who wants to know of every reading of a call."""

    def notice(self, now: float) -> None:
        """A reading came."""
        ...


class Taken(Struct, frozen=True):
    """What is new to a follower, in the order it happened; `gap` counts facts it was too slow for."""

    items: list[Fact | Reading]
    gap: int = 0


class Watcher:
    """Reads along with every call. A slow one misses the oldest facts, and delays nobody."""

    __slots__ = ("_all", "_ring", "entries")

    def __init__(self, watchers: "list[Watcher]", ring: Callable[[], object]) -> None:
        self._all = watchers
        self._ring = ring
        self.entries: deque[Entry] = deque(maxlen=KEPT)

    def see(self, entry: Entry) -> None:
        """A fact was recorded."""
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
