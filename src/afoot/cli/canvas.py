"""Where lines are drawn in a terminal: the whole screen, or a few lines at its end; always left as it was."""

import os
import time
from collections.abc import Sequence
from typing import IO

from afoot.observe.row import Line

STYLES = {"bold": "1", "dim": "2", "bad": "31", "good": "32", "warn": "33", "live": "36"}
_COLOURS = {"bad", "good", "warn", "live"}
FRAME_S = 0.1  # between two drawings at least

# While `?7` is off the terminal cuts lines that are too long, whatever it thinks of a character's width.
_WHOLE = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J\x1b[H"
_LEFT = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"


def is_terminal(stream: IO[str]) -> bool:
    """Whether a cursor can be moved there."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "")


def columns_of(stream: IO[str]) -> int:
    """How wide the terminal is now."""
    return _size(stream.fileno())[0]


def painted(line: Line) -> str:
    """A line with its styles; NO_COLOR leaves those that are no colours."""
    plain = bool(os.environ.get("NO_COLOR"))
    return "".join(
        text
        if not (code := STYLES.get(style)) or (plain and style in _COLOURS)
        else f"\x1b[{code}m{text}\x1b[0m"
        for text, style in line
    )


class Canvas:
    """The whole screen, taken and given back by `with`; only lines that changed are drawn."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out.fileno()
        self._lines: list[str] = []
        self._size = (0, 0)
        self._cursor: tuple[int, int] | None = None

    def __enter__(self) -> "Canvas":
        self._size = (0, 0)  # all is to be drawn
        _write(self._out, _WHOLE)
        return self

    def __exit__(self, *_: object) -> None:
        _write(self._out, _LEFT)

    def size(self) -> tuple[int, int]:
        """Columns and lines, now."""
        return _size(self._out)

    def draw(self, lines: Sequence[Line], cursor: tuple[int, int] | None = None) -> None:
        """Show these lines from the top; the cursor at a line and column, or hidden."""
        wide, high = self.size()
        parts: list[str] = []
        if (wide, high) != self._size:
            self._size = (wide, high)
            self._lines = []
            parts.append("\x1b[0m\x1b[2J")
        new = [painted(line) for line in lines[:high]]
        for number in range(max(len(new), len(self._lines))):
            text = new[number] if number < len(new) else ""
            if number >= len(self._lines) or text != self._lines[number]:
                # Erased first: behind a line as wide as the screen it would take the last character.
                parts.append(f"\x1b[{number + 1};1H\x1b[K{text}")
        self._lines = new
        if parts or cursor != self._cursor:
            shown = f"\x1b[{cursor[0] + 1};{cursor[1] + 1}H\x1b[?25h" if cursor is not None else ""
            _write(self._out, "".join(["\x1b[?25l", *parts, shown]))
        self._cursor = cursor


class Region:
    """A few lines behind all that was printed, drawn again where they stand; text goes above them."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out.fileno()
        self._lines: list[str] = []
        self._drawn = 0.0

    def is_due(self) -> bool:
        """Whether it is time to draw again."""
        return time.monotonic() - self._drawn >= FRAME_S

    def wide(self) -> int:
        """Columns, now."""
        return _size(self._out)[0]

    def draw(self, lines: Sequence[Line]) -> None:
        """Show these lines in place of those before."""
        self._drawn = time.monotonic()
        new = [painted(line) for line in lines]
        if new != self._lines:
            _write(self._out, self._erased() + "\x1b[?25l\x1b[?7l" + "\r\n".join(new) + "\x1b[?7h")
            self._lines = new

    def say(self, text: str) -> None:
        """A text of its own, above the lines; it stays."""
        lines = "\r\n".join(self._lines)
        again = f"\x1b[?7l{lines}\x1b[?7h" if lines else ""
        _write(self._out, f"{self._erased()}{text}\n{again}")

    def clear(self) -> None:
        """Take the lines away, and give the cursor back."""
        if self._lines:
            _write(self._out, f"{self._erased()}\x1b[?25h")
            self._lines = []

    def _erased(self) -> str:
        if not self._lines:
            return ""
        up = len(self._lines) - 1
        return "\r" + (f"\x1b[{up}A" if up else "") + "\x1b[J"


def _size(out: int) -> tuple[int, int]:
    try:
        found = os.get_terminal_size(out)
    except OSError:
        return 80, 24
    return found.columns or 80, found.lines or 24


def _write(out: int, text: str) -> None:
    data = text.encode(errors="replace")
    while data:
        data = data[os.write(out, data) :]
