"""The real program in a pseudo-terminal, as a person would use it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyte
import pytest

LIMIT_S = 30.0
_STEERING = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\r")


class _Screen(pyte.Screen):
    """A screen whose cursor stays on the last column until the next character, as in real terminals."""

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        self.cursor.x = min(self.cursor.x, self.columns - 1)
        super().erase_in_line(how, private)


class Terminal:
    """One run of the program, what it wrote so far, and a keyboard."""

    def __init__(
        self,
        words: list[str],
        environment: Mapping[str, str],
        size: tuple[int, int] = (80, 24),
        stdin: str = "",
    ) -> None:
        self._master, self._slave = pty.openpty()
        self.screen = _Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self._set_size(*size)
        self.modes = termios.tcgetattr(self._slave)  # before the program touched them
        typed = os.open(stdin, os.O_RDONLY) if stdin else os.dup(self._slave)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "afoot", *words],
            stdin=typed, stdout=self._slave, stderr=self._slave,
            env={"TERM": "xterm", "LC_ALL": "C.UTF-8", **environment},
            start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(typed)
        self.raw = b""

    @property
    def text(self) -> str:
        """What is on the screen and above it, without colours and moves."""
        return _STEERING.sub(b"", self.raw).decode(errors="replace")

    def until(self, text: str, times: int = 1) -> None:
        """Read until the program has written this so many times."""
        end = time.monotonic() + LIMIT_S
        while self.text.count(text) < times:
            if not self._read(end):
                pytest.fail(f"{text!r} was not written, but:\n{self.text}")

    @property
    def shown(self) -> str:
        """What a person sees on the screen now, a line a line."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def see(self, what: str | Callable[[str], bool]) -> str:
        """Read until this is on the screen, or the screen is so; and give what is on it."""
        end = time.monotonic() + LIMIT_S
        while not (what in self.shown if isinstance(what, str) else what(self.shown)):
            if not self._read(end):
                pytest.fail(f"{what!r} is not on the screen, but:\n{self.shown}")
        return self.shown

    def wait(self, seconds: float) -> None:
        """Read for a while, whatever comes."""
        end = time.monotonic() + seconds
        while self._read(end):
            pass

    def resize(self, wide: int, high: int) -> None:
        """The person changes the size of the window."""
        self.screen.resize(high, wide)
        self._set_size(wide, high)
        os.killpg(self._process.pid, signal.SIGWINCH)

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        self._process.send_signal(number)

    def is_restored(self) -> bool:
        """Whether the terminal is as it was: its modes, its cursor, its own screen, its line ends."""
        modes, raw = termios.tcgetattr(self._slave), self.raw
        is_out = raw.count(b"\x1b[?1049h") == raw.count(b"\x1b[?1049l")
        is_wrapping = raw.rfind(b"\x1b[?7h") >= raw.rfind(b"\x1b[?7l")
        return modes == self.modes and not self.screen.cursor.hidden and is_out and is_wrapping

    def _set_size(self, wide: int, high: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", high, wide, 0, 0))

    def type(self, text: str) -> None:
        """Type something; "\\x03" is Ctrl-C, "\\x04" Ctrl-D."""
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Wait for the program's end, and give its exit code."""
        end = time.monotonic() + LIMIT_S
        while self._process.poll() is None:
            if time.monotonic() > end:
                pytest.fail(f"it did not end:\n{self.text}")
            self._read(min(end, time.monotonic() + 0.05))
        while self._read(time.monotonic()):
            pass
        return self._process.returncode

    def close(self) -> None:
        """End it with force, if it still runs."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._master], (), (), max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            more = os.read(self._master, 65536)
        except OSError:  # the other side was closed
            return False
        self.raw += more
        self._stream.feed(more)
        return bool(more)


@contextmanager
def terminal(
    words: list[str], environment: Mapping[str, str], size: tuple[int, int] = (80, 24), stdin: str = ""
) -> Iterator[Terminal]:
    """A terminal in which the program runs; whatever is left of it is ended with the block."""
    opened = Terminal(words, environment, size, stdin)
    try:
        yield opened
    finally:
        opened.close()


def _take_terminal() -> None:
    """In the child: make the terminal its own, so that Ctrl-C reaches it, and is not ignored.

    A shell without job control has everything in its background ignore it, and that is inherited.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)
