"""`EventThread` reads events in another thread, for a main thread that also waits for a person to type.

The main thread waits with `select` on a pipe: the reading thread, `wake` and every signal write a byte to
it.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Self, TypeVar

from afoot.cli.client import LOST, CliError
from afoot.cli.terminal.live.live_state import LiveSnapshot
from afoot.core.facts import Entry
from afoot.serve.api.views import ReadingEvent

T = TypeVar("T")
StreamItem = Entry | ReadingEvent | LiveSnapshot
MAX_WAITING = 1000  # items in the queue; when it is full, the source is not read any further
IGNORE_KEYS_S = 0.5  # how long keys are ignored after an approval is shown


class StopAsking(Exception):
    """The question needs no answer any more."""


class EventThread(Generic[T]):
    """Runs an iterator of items in a thread; `take` waits for items, `read_line` also for a line of stdin.

    `secondary` is a second iterator. Its items arrive in the same queue, but its end or failure is ignored.
    """

    def __init__(
        self, source: Callable[[], Iterator[T]], secondary: Callable[[], Iterator[T]] | None = None
    ) -> None:
        self._source = source
        self._secondary = secondary
        self._items: deque[T | CliError | None] = deque()
        self._capacity = threading.Semaphore(MAX_WAITING)
        self._reader, self._writer = os.pipe()
        self._typed = b""
        self._previous_wakeup_fd = -1

    def __enter__(self) -> Self:
        # The system may interrupt any thread with a signal; the byte in the pipe wakes the main thread.
        os.set_blocking(self._writer, False)
        self._previous_wakeup_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for run in (self._run, self._run_secondary):
            threading.Thread(target=run, daemon=True, name="afoot-events").start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._previous_wakeup_fd)
        os.close(self._reader)
        # The writing end stays open: the thread may still write to it, and ends with the process.

    def fileno(self) -> int:
        """The descriptor that is ready to read when an item or a wake-up has come."""
        return self._reader

    def take(self, wait_s: float | None = None) -> Iterator[T | None]:
        """Wait at most `wait_s`, then yield the items that have come; None is the end.

        Raises CliError if the source failed.
        """
        ready, _, _ = select.select([self._reader], (), (), wait_s)
        if ready:
            yield from self._drain()

    def wake(self) -> None:
        """Wake the main thread without an item."""
        with contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups already
            os.write(self._writer, b".")

    def drop_typed(self) -> None:
        """Drop all keys typed up to now and for IGNORE_KEYS_S more: they were meant for something else."""
        time.sleep(IGNORE_KEYS_S)
        self._typed = b""
        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def read_line(self, is_open: Callable[[], bool], handle: Callable[[T | None], None]) -> str | None:
        """Read a line of stdin; None at its end. Items are handled meanwhile.

        Raises StopAsking once `is_open` is false.
        """
        stdin = sys.stdin.fileno()
        while b"\n" not in self._typed:
            ready, _, _ = select.select([self._reader, stdin], (), ())
            if self._reader in ready:
                for item in self._drain():
                    handle(item)
                if not is_open():
                    raise StopAsking
            if stdin in ready:
                more = os.read(stdin, 4096)
                if not more:
                    return None
                self._typed += more
        text, _, self._typed = self._typed.partition(b"\n")
        return text.decode(errors="replace").rstrip("\r")

    def _drain(self) -> Iterator[T | None]:
        os.read(self._reader, 4096)
        while self._items:
            item = self._items.popleft()
            self._capacity.release()
            if isinstance(item, CliError):
                raise item
            yield item

    def _run(self) -> None:
        try:
            for item in self._source():
                self._put(item)
            self._put(None)
        except CliError as stop:
            self._put(stop)
        except BaseException as error:
            self._put(CliError(LOST, f"following the call failed: {error}"))

    def _run_secondary(self) -> None:
        with contextlib.suppress(Exception):
            for item in self._secondary() if self._secondary is not None else ():
                self._put(item)

    def _put(self, item: T | CliError | None) -> None:
        self._capacity.acquire()
        self._items.append(item)
        with contextlib.suppress(OSError):
            os.write(self._writer, b".")
