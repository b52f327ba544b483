"""What a tool prints and logs, copied into its call's history; the output itself stays the tool's.

Only code that runs in a call is heard: the call is found by the context variable, which our threads inherit.
"""

import logging
import sys
from threading import Lock, local
from typing import Any, Final

from afoot.providers.context import Context, current, say

LINES: Final = 200
CHARACTERS: Final = 64 * 1024
_LONGEST: Final = 4000  # characters kept of one line
_within = local()  # set while we write through, so that nothing is heard twice
_original = logging.Logger.callHandlers
_format = logging.Formatter().format
_EMIT = logging.StreamHandler.emit.__code__


class Printed:
    """What one call has printed: how much, and the lines that are not yet ended."""

    __slots__ = ("_left_characters", "_left_lines", "_lock", "_open")

    def __init__(self) -> None:
        self._left_lines = LINES
        self._left_characters = CHARACTERS
        self._open = {"stdout": "", "stderr": ""}
        self._lock = Lock()

    def write(self, ctx: Context, text: str, stream: str) -> None:
        """Take in some output; every full line is passed on."""
        with self._lock:
            *done, rest = (self._open[stream] + text).split("\n")
            # A carriage return starts the line anew: of a bar only its last state is kept.
            self._open[stream] = rest[rest.rfind("\r", 0, -1) + 1 :][: 2 * _LONGEST]
        for line in done:
            self.line(ctx, line.rstrip("\r").rpartition("\r")[2], "info", stream)

    def end(self, ctx: Context) -> None:
        """The call is over: what was not ended is a line too."""
        for stream, rest in self._open.items():
            self.line(ctx, rest.rstrip("\r").rpartition("\r")[2], "info", stream)

    def line(self, ctx: Context, text: str, level: str, logger: str) -> None:
        """Pass one line on, until the call has said enough."""
        if not text.strip() or self._left_lines < 0:
            return
        text = text[:_LONGEST]
        self._left_lines -= 1
        self._left_characters -= len(text)
        if self._left_lines >= 0 and self._left_characters >= 0:
            say(ctx, text, level, logger)
        else:
            self._left_lines = -1
            say(ctx, f"output is cut here: over {LINES} lines or {CHARACTERS // 1024} KB", "warning", "afoot")


class Stream:
    """In place of `sys.stdout` or `sys.stderr`: writes through, and lets the current call know."""

    def __init__(self, under: Any, name: str) -> None:
        self._under = under
        self._name = name

    def write(self, text: str) -> int:
        """Write through, whatever happens to the copy."""
        if getattr(_within, "writing", False):
            return self._under.write(text)
        _within.writing = True
        try:
            written = self._under.write(text)
            ctx = current.get()
            # What a logging handler writes is heard as a log record already.
            if ctx is not None and sys._getframe(1).f_code is not _EMIT:
                printed(ctx).write(ctx, text, self._name)
            return written
        finally:
            _within.writing = False

    def writelines(self, lines: Any) -> None:
        """Each of them as if written."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)


def printed(ctx: Context) -> Printed:
    """What this call has printed so far."""
    if ctx._output is None:
        ctx._output = Printed()
    return ctx._output


def install() -> None:
    """Listen to stdout, stderr and every logger. Cheap to repeat; a stream put in between is wrapped anew."""
    for name in ("stdout", "stderr"):
        under = getattr(sys, name)
        if under is not None and type(under) is not Stream:
            setattr(sys, name, Stream(under, name))
    if logging.Logger.callHandlers is not _call_handlers:
        setattr(logging.Logger, "callHandlers", _call_handlers)  # noqa: B010


def uninstall() -> None:
    """Put back what was there."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is Stream:
            setattr(sys, name, stream._under)
    if logging.Logger.callHandlers is _call_handlers:
        setattr(logging.Logger, "callHandlers", _original)  # noqa: B010


# Not a handler on the root: one there would turn the tool's own `logging.basicConfig` into nothing, silence
# the last resort of `logging`, and miss loggers that do not propagate.
def _call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
    ctx = current.get()
    # What afoot itself logs is none of the tool's.
    if ctx is not None and record.name.partition(".")[0] != "afoot":
        try:
            printed(ctx).line(ctx, _format(record), _level(record.levelno), record.name)
        except Exception:
            logging.getLogger("afoot.providers").exception("a log record of call %s was lost", ctx.id)
    _original(logger, record)


def _level(number: int) -> str:
    steps = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"))
    return next((name for least, name in steps if number >= least), "debug")
