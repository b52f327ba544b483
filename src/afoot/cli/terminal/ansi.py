"""`FullScreen` and `LiveRegion` draw styled lines with ANSI sequences.

`FullScreen` takes the whole screen, `LiveRegion` redraws a few lines at the end of the output. Both leave
the terminal as it was.
"""

import os
import time
from collections.abc import Mapping, Sequence
from typing import IO

from afoot.cli.terminal.call_words import ASCII_SHAPES
from afoot.cli.terminal.live.call_rows import StyledLine
from afoot.cli.terminal.text import to_ascii

STYLES = {"bold": "1", "dim": "2", "bad": "31", "good": "32", "warn": "33", "live": "36"}
_COLOURS = {"bad", "good", "warn", "live"}
FRAME_S = 0.1  # the least time between two drawings
# While `?7` (wrap) is off, the terminal cuts long lines itself, however wide it draws a character.
_ENTER_FULL_SCREEN = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J\x1b[H"
_LEAVE_FULL_SCREEN = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"


def is_terminal(stream: IO[str]) -> bool:
    """Whether the stream is a terminal whose cursor can be moved."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "")


def terminal_width(stream: IO[str]) -> int:
    """The current width of the terminal."""
    return _size(stream.fileno())[0]


def has_ascii_only(environment: Mapping[str, str]) -> bool:
    """Whether the terminal shows ASCII alone, by its locale; a console of Linux lacks most shapes, too."""
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "").lower().replace("-", "")
    return environment.get("TERM") == "linux" or bool(locale) and "utf8" not in locale


def to_ansi(line: StyledLine) -> str:
    """A line as text with ANSI sequences; NO_COLOR keeps bold and dim and drops the colours."""
    plain = bool(os.environ.get("NO_COLOR"))
    if has_ascii_only(os.environ):
        line = [(to_ascii(text, ASCII_SHAPES), style) for text, style in line]
    return "".join(
        text
        if not (code := STYLES.get(style)) or (plain and style in _COLOURS)
        else f"\x1b[{code}m{text}\x1b[0m"
        for text, style in line
    )


class FullScreen:
    """The whole screen, taken and given back by `with`. Only changed lines are drawn."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out.fileno()
        self._lines: list[str] = []
        self._size = (0, 0)
        self._cursor: tuple[int, int] | None = None

    def __enter__(self) -> "FullScreen":
        self._size = (0, 0)  # the next drawing draws everything
        _write(self._out, _ENTER_FULL_SCREEN)
        return self

    def __exit__(self, *_: object) -> None:
        _write(self._out, _LEAVE_FULL_SCREEN)

    def size(self) -> tuple[int, int]:
        """The current columns and lines."""
        return _size(self._out)

    def draw(self, lines: Sequence[StyledLine], cursor: tuple[int, int] | None = None) -> None:
        """Show these lines from the top, and the cursor at a line and column; None hides it."""
        width, height = self.size()
        parts: list[str] = []
        if (width, height) != self._size:
            self._size = (width, height)
            self._lines = []
            parts.append("\x1b[0m\x1b[2J")
        new = [to_ansi(line) for line in lines[:height]]
        for number in range(max(len(new), len(self._lines))):
            text = new[number] if number < len(new) else ""
            if number >= len(self._lines) or text != self._lines[number]:
                # Erase first: after a line as wide as the screen, erasing would take its last character.
                parts.append(f"\x1b[{number + 1};1H\x1b[K{text}")
        self._lines = new
        if parts or cursor != self._cursor:
            shown = f"\x1b[{cursor[0] + 1};{cursor[1] + 1}H\x1b[?25h" if cursor is not None else ""
            _write(self._out, "".join(["\x1b[?25l", *parts, shown]))
        self._cursor = cursor


class LiveRegion:
    """A few lines at the end of the output, redrawn in place; printed text goes above them."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out.fileno()
        self._lines: list[str] = []
        self._drawn_at = 0.0

    def is_due(self) -> bool:
        """Whether the screen is due to be drawn again."""
        return time.monotonic() - self._drawn_at >= FRAME_S

    def width(self) -> int:
        """The current number of columns."""
        return _size(self._out)[0]

    def draw(self, lines: Sequence[StyledLine]) -> None:
        """Show these lines in place of the ones before."""
        self._drawn_at = time.monotonic()
        new = [to_ansi(line) for line in lines]
        if new != self._lines:
            _write(self._out, self._erase_sequence() + "\x1b[?25l\x1b[?7l" + "\r\n".join(new) + "\x1b[?7h")
            self._lines = new

    def say(self, text: str) -> None:
        """Print a text above the lines; it stays."""
        lines = "\r\n".join(self._lines)
        again = f"\x1b[?7l{lines}\x1b[?7h" if lines else ""
        _write(self._out, f"{self._erase_sequence()}{text}\n{again}")

    def clear(self) -> None:
        """Remove the lines and show the cursor again."""
        if self._lines:
            _write(self._out, f"{self._erase_sequence()}\x1b[?25h")
            self._lines = []

    def _erase_sequence(self) -> str:
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
