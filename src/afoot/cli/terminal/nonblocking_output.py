"""`NonblockingOutput` is stdout or stderr of a gateway: a write to a pipe that nobody reads never blocks it.

A host may start a gateway with a pipe for its stderr and never read it. When such a pipe is full, an ordinary
write blocks, and with it the event loop and everybody's calls. Here the text is dropped, and when somebody
reads again, a line says how much is missing.
"""

import asyncio
import os
import select
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TextIO

PIECE_BYTES: Final = 4096  # a pipe that is ready for writing takes so many without blocking (PIPE_BUF)
WAIT_S: Final = 1.0  # a thread waits so long for a slow reader; the event loop never does


class NonblockingOutput:
    """A text stream that drops what cannot be written now; all else is that of the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._file = stream.fileno()
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLOUT)
        self._lock = Lock()
        self._dropped = 0  # bytes since somebody has read last

    def write(self, text: str) -> int:
        """Write the text, or drop what does not fit; return its length."""
        data = text.encode(self._stream.encoding or "utf-8", "replace")
        with self._lock:
            if self._dropped and self._is_ready(0.0):
                missing, self._dropped = self._dropped, 0
                data = f"\n[{missing} bytes are missing here: nobody read this output]\n".encode() + data
            wait_s = 0.0 if self._dropped or _is_event_loop() else WAIT_S
            written = 0
            while written < len(data) and self._is_ready(wait_s):
                try:
                    written += os.write(self._file, data[written : written + PIECE_BYTES])
                except BlockingIOError:  # the other end has made it non-blocking
                    break
            self._dropped += len(data) - written
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: nothing is kept back."""

    def _is_ready(self, wait_s: float) -> bool:
        """Whether a write returns at once: there is room, or no reader is left and the write fails."""
        return bool(self._poll.poll(wait_s * 1000))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def nonblocking(stream: TextIO) -> TextIO:
    """The stream as one that never blocks the event loop; as it is, if it has no file."""
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()
        return NonblockingOutput(stream)  # type: ignore[return-value]
    return stream


def _is_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
