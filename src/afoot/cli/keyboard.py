"""Single keys of a person at a terminal, and a line that is typed among other things on the screen."""

import codecs
import os
import re
import sys
import termios
import tty

_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|\x1b|)", re.DOTALL)
_NAMES = {
    "\x1b": "escape", "\x1b\x1b": "escape", "\r": "enter", "\n": "enter", "\x7f": "back", "\x08": "back",
    "\x04": "ctrl-d", "\x15": "ctrl-u", "\x17": "ctrl-w", "\x0c": "ctrl-l",
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[5~": "page up", "\x1b[6~": "page down",
}  # fmt: skip
LONGEST = 10_000  # characters of one line


class Keyboard:
    """Keys as they are pressed, unseen; the terminal is as before when the block is left."""

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
        """The keys pressed since; call it when there are some. None: nobody is there any more."""
        try:
            more = os.read(self.fd, 4096)
        except OSError:
            return None
        return keys(self._decoder.decode(more)) if more else None


def keys(text: str) -> list[str]:
    """What was pressed: a letter as itself, other keys by their names; what is unknown is left out."""
    found: list[str] = []
    place = 0
    while place < len(text):
        sequence = _SEQUENCE.match(text, place)
        one = sequence[0] if sequence else text[place]
        place += len(one)
        if one in _NAMES:
            found.append(_NAMES[one])
        elif one.isprintable():
            found.append(one)
    return found


class Typing:
    """A line while it is typed."""

    def __init__(self) -> None:
        self.text = ""

    def press(self, key: str) -> None:
        """Take in a key that is a letter or changes the line."""
        if key == "back":
            self.text = self.text[:-1]
        elif key == "ctrl-u":
            self.text = ""
        elif key == "ctrl-w":
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif len(key) == 1 and len(self.text) < LONGEST:
            self.text += key
