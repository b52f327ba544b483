"""`install` makes prints and logs of a tool part of its call's history; the output itself stays as before.

Only code that runs in a call is captured. The call is found by the context variable, which our threads
inherit.
"""

import logging
import sys
from threading import Lock, local
from typing import Any, Final

from afoot.providers.functions.context import Context, current_context, log_line

MAX_LINES: Final = 200
MAX_CHARACTERS: Final = 64 * 1024
_MAX_LINE: Final = 4000  # characters kept of one line
_this_thread = local()  # `writing` is set while a stream writes through, so that nothing is captured twice
_original_call_handlers = logging.Logger.callHandlers
_format = logging.Formatter().format
_EMIT_CODE = logging.StreamHandler.emit.__code__


class CapturedOutput:
    """The output of one call: how much more is kept, and the lines that no newline has ended yet."""

    __slots__ = ("_left_characters", "_left_lines", "_lock", "_unfinished")

    def __init__(self) -> None:
        self._left_lines = MAX_LINES
        self._left_characters = MAX_CHARACTERS
        self._unfinished = {"stdout": "", "stderr": ""}
        self._lock = Lock()

    def write(self, ctx: Context, text: str, stream: str) -> None:
        """Add output; each line that is complete goes to the history."""
        with self._lock:
            *done, rest = (self._unfinished[stream] + text).split("\n")
            # A carriage return starts the line anew: of a progress bar only its last state is kept.
            self._unfinished[stream] = rest[rest.rfind("\r", 0, -1) + 1 :][: 2 * _MAX_LINE]
        for line in done:
            self.write_line(ctx, line.rstrip("\r").rpartition("\r")[2], "info", stream)

    def end(self, ctx: Context) -> None:
        """End the output of a call that is over: an unfinished line counts, too."""
        for stream, rest in self._unfinished.items():
            self.write_line(ctx, rest.rstrip("\r").rpartition("\r")[2], "info", stream)

    def write_line(self, ctx: Context, text: str, level: str, logger: str) -> None:
        """Write one line to the history, until the limit is reached."""
        if not text.strip() or self._left_lines < 0:
            return
        text = text[:_MAX_LINE]
        self._left_lines -= 1
        self._left_characters -= len(text)
        if self._left_lines >= 0 and self._left_characters >= 0:
            log_line(ctx, text, level, logger)
        else:
            self._left_lines = -1
            log_line(
                ctx,
                f"output is cut here: over {MAX_LINES} lines or {MAX_CHARACTERS // 1024} KB",
                "warning",
                "afoot",
            )


class CapturingStream:
    """A stand-in for `sys.stdout` or `sys.stderr`: writes through, and captures for the current call."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name

    def write(self, text: str) -> int:
        """Write through, and add to the current call's output."""
        if getattr(_this_thread, "writing", False):
            return self._stream.write(text)
        _this_thread.writing = True
        try:
            written = self._stream.write(text)
            ctx = current_context.get()
            # A logging handler's text is captured as a log record already.
            if ctx is not None and sys._getframe(1).f_code is not _EMIT_CODE:
                captured_output(ctx).write(ctx, text, self._name)
            return written
        finally:
            _this_thread.writing = False

    def writelines(self, lines: Any) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def captured_output(ctx: Context) -> CapturedOutput:
    """The output of this call so far."""
    if ctx._output is None:
        ctx._output = CapturedOutput()
    return ctx._output


def install() -> None:
    """Capture stdout, stderr and every logger. Cheap to repeat; a stream that replaced ours is wrapped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and type(stream) is not CapturingStream:
            setattr(sys, name, CapturingStream(stream, name))
    if logging.Logger.callHandlers is not _call_handlers:
        setattr(logging.Logger, "callHandlers", _call_handlers)  # noqa: B010


def uninstall() -> None:
    """Restore the streams and loggers."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is CapturingStream:
            setattr(sys, name, stream._stream)
    if logging.Logger.callHandlers is _call_handlers:
        setattr(logging.Logger, "callHandlers", _original_call_handlers)  # noqa: B010


# This replaces `Logger.callHandlers`. A handler on the root logger would disable the tool's own
# `logging.basicConfig`, silence the handler of last resort, and miss loggers that do not propagate.
def _call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
    ctx = current_context.get()
    # Records of afoot itself are not the tool's.
    if ctx is not None and record.name.partition(".")[0] != "afoot":
        try:
            captured_output(ctx).write_line(ctx, _format(record), _level_name(record.levelno), record.name)
        except Exception:
            logging.getLogger("afoot.providers").exception("a log record of call %s was lost", ctx.id)
    _original_call_handlers(logger, record)


def _level_name(number: int) -> str:
    steps = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"))
    return next((name for least, name in steps if number >= least), "debug")
