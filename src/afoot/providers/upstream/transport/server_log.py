"""`ServerLog` keeps lines that a server wrote to stderr or logged for no call, and counts its anomalies."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from afoot.core.rate_limit import RateLimit
from afoot.providers.content import clean_line

LOG_LINES: Final = 1000  # of one server that are kept
LOG_BYTES: Final = 256 * 1024  # of these lines together
LOG_LINE_CHARS: Final = 2000
MAX_READ_CHARS: Final = 16 * 1024  # of a line in which secrets are looked for; the rest is dropped
LOG_BURST: Final = 40  # lines that a server may write at once
LOG_LINES_PER_S: Final = 100  # and then in a second; more are left out, and counted where they would stand
LAST_LINES: Final = 100  # of those left out in which the last words are looked for
ANOMALIES_LOGGED: Final = 20  # of each kind; more are only counted

_log = logging.getLogger("afoot.upstream")


class ServerLog:
    """The last log lines of one server, and how often it broke the protocol, by kind."""

    def __init__(self, server: str, clean: Callable[[str], str] = str) -> None:
        self.server = server
        self.logs: deque[tuple[float, str]] = deque()
        self.counted: dict[str, int] = {}
        self._clean = clean  # takes secrets out (S4)
        self._bytes = 0  # of the lines that are kept
        self._last_line = ""  # as the server wrote it
        self._rate = RateLimit(LOG_BURST, LOG_LINES_PER_S)
        self._left_out = 0  # lines since the last one that was kept

    @property
    def last_words(self) -> str:
        """The last line of the server's own."""
        return clean_line(self._clean(self._last_line), LOG_LINE_CHARS) or ""

    def add_line(self, text: str) -> bool:
        """Keep a line of the server's own: from stderr, or a log message that belongs to no call.

        False if it was left out, because the server writes too many: taking secrets out of each would
        keep all others waiting.
        """
        text = text[:MAX_READ_CHARS]
        if text and not text.isspace():
            self._last_line = text
        now = time.time()
        if not self._rate.take(now):
            self._left_out += 1
            return False
        if self._left_out:
            self._keep(now, f"afoot: {self._left_out} lines were left out")
            self._left_out = 0
        if cleaned := clean_line(self._clean(text), LOG_LINE_CHARS):
            self._keep(now, cleaned)
        return True

    def add_lines(self, lines: Sequence[bytes]) -> None:
        """Keep lines that came together. After the first one that is left out, the others are only counted.

        A read of 256 KB can hold 130,000 lines: handled one by one they would take 200 ms.
        """
        for number, line in enumerate(lines, 1):
            if not self.add_line(line.decode("utf-8", "replace")):
                self._left_out += len(lines) - number
                last = next((one for one in reversed(lines[-LAST_LINES:]) if one.strip()), b"")
                self._last_line = last.decode("utf-8", "replace") or self._last_line
                break

    def note(self, text: str, level: int = logging.INFO) -> None:
        """Keep a line of ours about the server, and write it to the gateway's log."""
        said = clean_line(self._clean(text[:MAX_READ_CHARS]), LOG_LINE_CHARS) or ""
        self._keep(time.time(), f"afoot: {said}")
        _log.log(level, "server %s: %s", self.server, said)

    def _keep(self, now: float, line: str) -> None:
        """Keep a line; the oldest go where there are too many, or too large ones."""
        self.logs.append((now, line))
        self._bytes += len(line)
        while len(self.logs) > LOG_LINES or self._bytes > LOG_BYTES:
            self._bytes -= len(self.logs.popleft()[1])

    def count_anomaly(self, kind: str, text: str = "") -> bool:
        """Count a message that was dropped or repaired; returns whether it is one of the first of its kind.

        Those are logged, too.
        """
        count = self.counted[kind] = self.counted.get(kind, 0) + 1
        if count > ANOMALIES_LOGGED:
            return False
        shown = f": {clean_line(text, 200)}" if text else ""
        self.note(f"{kind.replace('_', ' ')} (number {count}){shown}", logging.WARNING)
        return True
