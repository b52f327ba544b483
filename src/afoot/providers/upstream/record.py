"""What a server did that nobody called for: its words on stderr, and its oddities, counted."""

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from afoot.providers.hygiene import line

LINES: Final = 1000
LINE_LIMIT: Final = 2000
SHOWN: Final = 20  # of each kind of oddity; the rest is only counted

_log = logging.getLogger("afoot.upstream")


class Record:
    """The last lines of one server, and how often it did what it should not."""

    def __init__(self, server: str, clean: Callable[[str], str] = str) -> None:
        self.server = server
        self._clean = clean  # without secrets (S4)
        self.logs: deque[tuple[float, str]] = deque(maxlen=LINES)
        self.counted: dict[str, int] = {}
        self.last_words = ""  # on stderr

    def heard(self, text: str) -> None:
        """A line on stderr."""
        cleaned = line(self._clean(text), LINE_LIMIT)
        if cleaned:
            self.last_words = cleaned
            self.logs.append((time.time(), cleaned))

    def say(self, text: str, level: int = logging.INFO) -> None:
        """A line of our own about the server."""
        said = line(self._clean(text), LINE_LIMIT) or ""
        self.logs.append((time.time(), f"afoot: {said}"))
        _log.log(level, "server %s: %s", self.server, said)

    def odd(self, kind: str, text: str = "") -> None:
        """Something was dropped or repaired: counted always, told while it is new."""
        count = self.counted[kind] = self.counted.get(kind, 0) + 1
        if count <= SHOWN:
            shown = f": {line(text, 200)}" if text else ""
            self.say(f"{kind.replace('_', ' ')} (number {count}){shown}", logging.WARNING)
