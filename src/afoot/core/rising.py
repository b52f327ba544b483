"""Progress that only rises: what the tool said, made fit for a protocol that demands it (P4)."""

import math

from afoot.core.facts import Reading

STEP = 1e-6  # small enough that a day of messages does not use up the tool's next whole number


class Series:
    """One rising series of numbers; a call has one, carried on over rounds and attempts."""

    __slots__ = ("last", "repaired", "total")

    def __init__(self, last: float | None = None, total: float | None = None) -> None:
        self.last = last
        self.total = total
        self.repaired = 0

    def fork(self) -> "Series":
        """A second series that goes on from here."""
        return Series(self.last, self.total)

    def rise(self, reading: Reading) -> tuple[float, float | None]:
        """The progress and total to send for this reading."""
        value = reading.progress
        last = self.last
        if last is None:
            wire = 0.0 if value is None else value
        elif value is not None and value > last:
            wire = value
        else:
            wire = step(last)
            self.repaired += value is not None
        self.last = wire
        if reading.source == "engine" and value is None:
            return wire, self.total if self.total is not None and wire < self.total else None
        if reading.total is not None or value is not None:
            self.total = reading.total
        return wire, self._over(wire)

    def _over(self, wire: float) -> float | None:
        """The total, raised to the progress where that has passed it."""
        if self.total is None or wire <= self.total:
            return self.total
        return wire


def step(last: float) -> float:
    """The smallest useful step up from `last`: never lost in the float, never a whole number's worth."""
    up = last + max(STEP, 4 * math.ulp(last))
    return round(up, 6) if up < 1e9 else up
