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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

LIMIT_S = 15.0
_STEERING = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\r")


class Terminal:
    """One run of the program, what it wrote so far, and a keyboard."""

    def __init__(self, words: list[str], environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "afoot", *words],
            stdin=slave, stdout=slave, stderr=slave, env={**environment, "TERM": "xterm"},
            start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(slave)
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

    def type(self, text: str) -> None:
        """Type something; "\\x03" is Ctrl-C, "\\x04" Ctrl-D."""
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Wait for the program's end, and give its exit code."""
        end = time.monotonic() + LIMIT_S
        while self._read(end):
            pass
        try:
            return self._process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pytest.fail(f"it did not end:\n{self.text}")

    def close(self) -> None:
        """End it with force, if it still runs."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._master], (), (), max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            more = os.read(self._master, 65536)
        except OSError:  # the other side was closed
            return False
        self.raw += more
        return bool(more)


@contextmanager
def terminal(words: list[str], environment: Mapping[str, str]) -> Iterator[Terminal]:
    """A terminal in which the program runs; whatever is left of it is ended with the block."""
    opened = Terminal(words, environment)
    try:
        yield opened
    finally:
        opened.close()


def _take_terminal() -> None:
    """In the child: make the terminal its own, so that Ctrl-C reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
