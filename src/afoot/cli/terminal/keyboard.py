"""`Keyboard` reads single keys of a terminal, whose mode it restores; `LineEditor` edits a line with them."""

import codecs
import os
import re
import sys
import termios
import tty

MAX_LINE_CHARS = 10_000  # of a line that is typed
_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|\x1b|)", re.DOTALL)
_KEY_NAMES = {
    "\x1b": "escape", "\x1b\x1b": "escape", "\r": "enter", "\n": "enter", "\x7f": "back", "\x08": "back",
    "\x04": "ctrl-d", "\x15": "ctrl-u", "\x17": "ctrl-w", "\x0c": "ctrl-l",
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[5~": "page up", "\x1b[6~": "page down",
}  # fmt: skip


class Keyboard:
    """Keys as they are pressed, without echo; `with` restores the terminal's mode at its end."""

    def __init__(self) -> None:
        self.fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self.fd)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> "Keyboard":
        tty.setcbreak(self.fd, termios.TCSANOW)
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(self.fd, termios.TCSADRAIN, self._before)

    def read(self) -> list[str] | None:
        """The keys pressed since the last read; None if the terminal is gone. Waits if there are none."""
        try:
            more = os.read(self.fd, 4096)
        except OSError:
            return None
        return parse_keys(self._decoder.decode(more)) if more else None


def parse_keys(text: str) -> list[str]:
    """The keys in a text: characters as they are, other keys by name; unknown sequences are left out."""
    found: list[str] = []
    place = 0
    while place < len(text):
        sequence = _ESCAPE_SEQUENCE.match(text, place)
        one = sequence[0] if sequence else text[place]
        place += len(one)
        if one in _KEY_NAMES:
            found.append(_KEY_NAMES[one])
        elif one.isprintable():
            found.append(one)
    return found


class LineEditor:
    """The line that is being typed."""

    def __init__(self) -> None:
        self.text = ""

    def press(self, key: str) -> None:
        """Apply a key that adds a character or edits the line."""
        if key == "back":
            self.text = self.text[:-1]
        elif key == "ctrl-u":
            self.text = ""
        elif key == "ctrl-w":
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif len(key) == 1 and len(self.text) < MAX_LINE_CHARS:
            self.text += key
