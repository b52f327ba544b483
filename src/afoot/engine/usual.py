"""How long each tool usually takes: what its newest runs took that ended well (P9)."""

from collections import deque
from collections.abc import Sequence

from afoot.core.call import Call
from afoot.core.ports import Row

RUNS = 200  # of each tool


class Usual:
    """Durations by the names of tools, in seconds."""

    def __init__(self) -> None:
        self._took: dict[str, deque[float]] = {}

    def learn(self, tool: str, took_s: float) -> None:
        """One more run that ended well; the oldest beyond RUNS is forgotten."""
        self._took.setdefault(tool, deque(maxlen=RUNS)).append(took_s)

    def ended(self, call: Call) -> None:
        """Learn from a call that is over, if it ended well; the time that people took is left out."""
        if call.end is not None and call.end.outcome == "ok" and call.released is None:
            self.learn(call.opened.tool, call.spent_s)

    def recall(self, rows: Sequence[Row]) -> None:
        """Learn from lines of the history, newest first; they do not tell what time people took."""
        for row in reversed(rows):
            if row.outcome == "ok" and row.started is not None and row.finished is not None:
                self.learn(row.tool, row.finished - row.started)

    def of(self, tool: str) -> list[float]:
        """How long its newest runs took, shortest first."""
        return sorted(self._took.get(tool, ()))
