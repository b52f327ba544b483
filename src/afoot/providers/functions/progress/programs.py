"""`run` runs a program and turns its lines into reports (P10): percentages, "3 of 7", redrawn bars."""

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
from afoot.providers.content import clean_line as cleaned
from afoot.providers.exit_status import describe_exit
from afoot.providers.functions.context import Context
from afoot.providers.functions.threads import CancelToken, run_blocking

TAIL_LINES: Final = 200  # lines that `ProgramResult.output` has
MAX_LINE: Final = 4000
TERMINATE_S: Final = 2.0  # between SIGTERM and SIGKILL
_TICK_S: Final = 0.05
_REPORT_INTERVAL_S: Final = 0.05  # between two reports with numbers: a person reads no faster
_NUMBER: Final = r"(\d[\d,]*(?:\.\d+)?)"
_UNIT: Final = r"(?:\s?([kKMGTP]?)i?[bB]?(?:ytes)?\b)?"
_FRACTION: Final = re.compile(
    rf"(?<![\w.:/-]){_NUMBER}{_UNIT}\s*(?:/|\bof\b)\s*{_NUMBER}(?![\w.:-]*/){_UNIT}"
)
_PERCENT: Final = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)\s?%")
_DIGIT: Final = re.compile(r"\d")
_PREFIXES: Final = "KMGTP"
_MAX_AFTER_EXIT: Final = 1024 * 1024  # bytes that are read after the program's end: a pipe holds fewer

LineReading = tuple[float | None, float | None, str | None]


class ProgramResult(Struct, frozen=True):
    """The end of a program: its exit code (negative: a signal), and its last lines."""

    command: str
    code: int
    output: str

    def check(self) -> "ProgramResult":
        """Return this result; raises ToolError if the exit code is not 0."""
        if self.code:
            last = self.output.strip().splitlines()[-5:]
            words = f"; its last words: {' | '.join(last)}" if last else ""
            raise ToolError.internal(f"{self.command} {describe_exit(self.code)}{words}", code="program")
        return self


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    read: Callable[[str], LineReading | None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    tty: bool = False,
) -> Any:
    """Run a program, report its lines, and return a `ProgramResult`. Async tools await it; others block.

    `read` turns a line into progress, total and message, or into None to ignore it; the default knows
    percentages and "n of m". `tty` gives the program a terminal, as some show progress only there. When the
    call is cancelled, the program is ended with its whole process group, and ToolError.cancelled is raised.
    """
    words = [os.fspath(word) for word in command]
    popen_options = {"cwd": cwd, "env": None if env is None else dict(env)}
    program = RunningProgram(words, read or read_progress, popen_options, tty)
    return run_blocking(program.run)


def read_progress(text: str) -> LineReading | None:
    """The progress in a line, and the line as the message; None for an empty one."""
    text = text.strip()
    if not text:
        return None
    if not _DIGIT.search(text):
        return None, None, text
    if found := _FRACTION.search(text):
        done, total = (float(part.replace(",", "")) for part in found.group(1, 3))
        done *= _unit_ratio(found[2], found[4])
        if done <= total and total:
            return done, total, text
    if (found := _PERCENT.search(text)) and float(found[1]) <= 100:
        return float(found[1]), 100.0, text
    return None, None, text


def _unit_ratio(one: str | None, other: str | None) -> float:
    """The first unit in terms of the second, for lines such as "900 kB of 2 GB"."""
    if not one or not other:
        return 1.0
    return 1000.0 ** (_PREFIXES.index(one.upper()) - _PREFIXES.index(other.upper()))


class RunningProgram:
    """A program while it runs."""

    def __init__(
        self,
        command: list[str],
        read: Callable[[str], LineReading | None],
        popen_options: Mapping[str, Any],
        tty: bool,
    ) -> None:
        self._command = command
        self._read = read
        self._popen_options = popen_options
        self._tty = tty
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._due = 0.0
        self._pending: LineReading | None = None

    def run(self, ctx: Context | None, token: CancelToken) -> ProgramResult:
        """Run the program to its end; raises ToolError.not_found, or ToolError.cancelled."""
        token.raise_if_cancelled()
        process, source = self._start()
        try:
            for text in self._lines(source, process, token):
                self._report_line(ctx, text)
            if self._pending is not None and ctx is not None:
                ctx.report(*self._pending)
            while process.poll() is None:  # it closed its output, but runs on
                token.raise_if_cancelled()
                time.sleep(_TICK_S)
        finally:
            os.close(source)
            _terminate(process)
        return ProgramResult(self._command[0], process.returncode, "\n".join(self._tail))

    def _start(self) -> tuple[subprocess.Popen[bytes], int]:
        source, sink = pty.openpty() if self._tty else os.pipe()
        try:
            made: subprocess.Popen[bytes] = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                **self._popen_options,
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

    def _lines(self, source: int, process: "subprocess.Popen[bytes]", token: CancelToken) -> Iterator[str]:
        """Each line, and each state of a line that is redrawn."""
        rest = b""
        quiet_since = 0.0
        left = _MAX_AFTER_EXIT
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while True:
                token.raise_if_cancelled()
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
                rest = rest[-MAX_LINE:]
                yield from (part[-MAX_LINE:].decode("utf-8", "replace") for part in done if part.strip())
        if rest.strip():
            yield rest.decode("utf-8", "replace")

    def _report_line(self, ctx: Context | None, text: str) -> None:
        # Most lines need no cleaning, and there may be millions.
        text = text.strip() if text.isprintable() else cleaned(text, MAX_LINE) or ""
        if not text:
            return
        self._tail.append(text)
        reading = self._read(text)
        if reading is None or ctx is None:
            return
        if self._pending is not None and reading[0] is None:
            reading = (*self._pending[:2], reading[2])  # the newest text with the newest numbers
        now = time.monotonic()
        if now < self._due:
            self._pending = reading
            return
        ctx.report(*reading)
        self._pending = None
        self._due = now + _REPORT_INTERVAL_S


def _terminate(process: "subprocess.Popen[bytes]") -> None:
    """End the program and its process group: first by SIGTERM, then by SIGKILL."""
    if process.poll() is None:
        _signal_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATE_S)
    _signal_group(process, signal.SIGKILL)  # also processes of its group that outlived it
    process.wait()


def _signal_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
