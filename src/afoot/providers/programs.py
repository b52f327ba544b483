"""Lines of a child program as reports (P10): percentages, "3 of 7" and bars that draw themselves anew."""

import os
import pty
import re
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from afoot.errors import ToolError
from afoot.providers.beside import Stop, beside
from afoot.providers.context import Context
from afoot.providers.exits import ended
from afoot.providers.hygiene import line as cleaned

TAIL: Final = 200  # lines that are kept for whoever asked for them
LONGEST: Final = 4000
GRACE_S: Final = 2.0  # between asking a program to end and killing it
_TICK_S: Final = 0.05
_EVERY_S: Final = 0.05  # a bar is for eyes: between two reports with numbers
_NUMBER: Final = r"(\d[\d,]*(?:\.\d+)?)"
_UNIT: Final = r"(?:\s?([kKMGTP]?)i?[bB]?(?:ytes)?\b)?"
_PART: Final = re.compile(rf"(?<![\w.:/-]){_NUMBER}{_UNIT}\s*(?:/|\bof\b)\s*{_NUMBER}(?![\w.:-]*/){_UNIT}")
_PERCENT: Final = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)\s?%")
_DIGIT: Final = re.compile(r"\d")
_PREFIXES: Final = "KMGTP"
_AFTER: Final = 1024 * 1024  # bytes that are still read after its end: a pipe holds fewer

Numbers = tuple[float | None, float | None, str | None]


class Ran(Struct, frozen=True):
    """A program that has ended: its exit code (negative: a signal), and its last lines."""

    command: str
    code: int
    output: str

    def check(self) -> "Ran":
        """Itself; raises ToolError if the program did not end well."""
        if self.code:
            last = self.output.strip().splitlines()[-5:]
            words = f"; its last words: {' | '.join(last)}" if last else ""
            raise ToolError.internal(f"{self.command} {ended(self.code)}{words}", code="program")
        return self


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    read: Callable[[str], Numbers | None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    tty: bool = False,
) -> Any:
    """Run a program whose lines become reports; gives a `Ran`. Awaited in async code, blocking elsewhere.

    `read` makes numbers and a message of a line, or None of one that says nothing; left out, it knows
    percentages and "n of m". `tty` gives it a terminal, for programs that show progress only there. Once the
    call is cancelled it is ended with all of its process group, and ToolError.cancelled is raised.
    """
    words = [os.fspath(word) for word in command]
    program = Program(words, read or reading, {"cwd": cwd, "env": None if env is None else dict(env)}, tty)
    return beside(program.run)


def reading(text: str) -> Numbers | None:
    """What a line says of progress; one without numbers is a message."""
    text = text.strip()
    if not text:
        return None
    if not _DIGIT.search(text):
        return None, None, text
    if found := _PART.search(text):
        done, total = (float(part.replace(",", "")) for part in found.group(1, 3))
        done *= _apart(found[2], found[4])
        if done <= total and total:
            return done, total, text
    if (found := _PERCENT.search(text)) and float(found[1]) <= 100:
        return float(found[1]), 100.0, text
    return None, None, text


def _apart(one: str | None, other: str | None) -> float:
    """What the first unit is in the second: "900 kB of 2 GB"."""
    if not one or not other:
        return 1.0
    return 1000.0 ** (_PREFIXES.index(one.upper()) - _PREFIXES.index(other.upper()))


class Program:
    """One program while it runs."""

    def __init__(
        self, command: list[str], read: Callable[[str], Numbers | None], place: Mapping[str, Any], tty: bool
    ) -> None:
        self._command, self._read, self._place, self._tty = command, read, place, tty
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._due = 0.0
        self._held: Numbers | None = None

    def run(self, ctx: Context | None, stop: Stop) -> Ran:
        """To its end; raises ToolError.not_found, or ToolError.cancelled."""
        stop.check()
        process, source = self._start()
        try:
            for text in self._lines(source, process, stop):
                self._tell(ctx, text)
            if self._held is not None and ctx is not None:
                ctx.report(*self._held)
            while process.poll() is None:  # it closed its output, and goes on
                stop.check()
                time.sleep(_TICK_S)
        finally:
            os.close(source)
            _end(process)
        return Ran(self._command[0], process.returncode, "\n".join(self._tail))

    def _start(self) -> tuple[subprocess.Popen[bytes], int]:
        source, sink = pty.openpty() if self._tty else os.pipe()
        try:
            made: subprocess.Popen[bytes] = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                **self._place,
            )
        except BaseException as error:
            os.close(source)
            if not isinstance(error, OSError):
                raise
            is_there = not isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
            failed = ToolError.unavailable if is_there else ToolError.not_found
            raise failed(f"{self._command[0]} cannot be started: {error}", code="program") from None
        finally:
            os.close(sink)
        return made, source

    def _lines(self, source: int, process: "subprocess.Popen[bytes]", stop: Stop) -> Iterator[str]:
        """Each line, and each state of one that is drawn anew."""
        rest, quiet_since, left = b"", 0.0, _AFTER
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while True:
                stop.check()
                if not selector.select(_TICK_S):
                    # A grandchild may hold the pipe open for ever.
                    quiet_since = quiet_since or time.monotonic()
                    if process.poll() is not None and time.monotonic() - quiet_since > 2 * _TICK_S:
                        break
                    continue
                quiet_since = 0.0
                data = b""
                with suppress(OSError):  # the end of a terminal
                    data = os.read(source, 65_536)
                left -= len(data) if process.poll() is not None else 0
                if not data or left < 0:  # a grandchild may write for ever
                    break
                *done, rest = re.split(rb"[\r\n\b]+", rest + data)
                rest = rest[-LONGEST:]
                yield from (part[-LONGEST:].decode("utf-8", "replace") for part in done if part.strip())
        if rest.strip():
            yield rest.decode("utf-8", "replace")

    def _tell(self, ctx: Context | None, text: str) -> None:
        # Most lines are clean, and there may be millions.
        text = text.strip() if text.isprintable() else cleaned(text, LONGEST) or ""
        if not text:
            return
        self._tail.append(text)
        said = self._read(text)
        if said is None or ctx is None:
            return
        if self._held is not None and said[0] is None:
            said = (*self._held[:2], said[2])  # the newest words, and the newest numbers
        now = time.monotonic()
        if now < self._due:
            self._held = said
            return
        ctx.report(*said)
        self._held, self._due = None, now + _EVERY_S


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program and its group: asked first, then killed."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    _signal(process, signal.SIGKILL)  # what it started in its group
    process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
