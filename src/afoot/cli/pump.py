"""Events from another thread, for a main thread that also waits for a person to type."""

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

from afoot.cli.ending import LOST, Stop
from afoot.core.facts import Entry
from afoot.observe.scene import Snapshot
from afoot.serve.view import ReadingEvent

Item = Entry | ReadingEvent | Snapshot
T = TypeVar("T")
MOST = 1000  # items that wait; the source waits with the rest
CALM_S = 0.5  # between what is to be approved and the first key that counts


class Pump(Generic[T]):
    """Runs an iterator of items in a thread; `take` waits for them, and for a line of stdin if asked.

    `beside`: another iterator, whose end or failure is no news.
    """

    def __init__(
        self, source: Callable[[], Iterator[T]], beside: Callable[[], Iterator[T]] | None = None
    ) -> None:
        self._source = source
        self._beside = beside
        self._items: deque[T | Stop | None] = deque()
        self._room = threading.Semaphore(MOST)
        self._reader, self._writer = os.pipe()
        self._typed = b""
        self._woken = -1

    def __enter__(self) -> Self:
        # A signal wakes whoever waits here, whichever thread the system has it interrupt.
        os.set_blocking(self._writer, False)
        self._woken = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for run in (self._run, self._run_beside):
            threading.Thread(target=run, daemon=True, name="afoot-pump").start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._woken)
        os.close(self._reader)
        # The thread may still want to write; it finds the pipe closed and ends.

    def fileno(self) -> int:
        """Ready to read when something has come."""
        return self._reader

    def take(self, wait_s: float | None = None) -> Iterator[T | None]:
        """Wait, so long at most, then give what has come; None is the end. Raises Stop if it failed."""
        ready, _, _ = select.select([self._reader], (), (), wait_s)
        if ready:
            yield from self._come()

    def poke(self) -> None:
        """Wake whoever waits, with nothing to take."""
        with contextlib.suppress(BlockingIOError):  # full of reasons to wake
            os.write(self._writer, b".")

    def forget(self) -> None:
        """Drop what was typed up to now, and for a moment more: it was meant for something else."""
        time.sleep(CALM_S)
        self._typed = b""
        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def line(self, asking: Callable[[], bool], handle: Callable[[T | None], None]) -> str | None:
        """A line that a person types; items are handled meanwhile. None: stdin ended. Raises StopAsking."""
        stdin = sys.stdin.fileno()
        while b"\n" not in self._typed:
            ready, _, _ = select.select([self._reader, stdin], (), ())
            if self._reader in ready:
                for item in self._come():
                    handle(item)
                if not asking():
                    raise StopAsking
            if stdin in ready:
                more = os.read(stdin, 4096)
                if not more:
                    return None
                self._typed += more
        text, _, self._typed = self._typed.partition(b"\n")
        return text.decode(errors="replace").rstrip("\r")

    def _come(self) -> Iterator[T | None]:
        os.read(self._reader, 4096)
        while self._items:
            item = self._items.popleft()
            self._room.release()
            if isinstance(item, Stop):
                raise item
            yield item

    def _run(self) -> None:
        try:
            for item in self._source():
                self._put(item)
            self._put(None)
        except Stop as stop:
            self._put(stop)
        except BaseException as error:
            self._put(Stop(LOST, f"following the call failed: {error}"))

    def _run_beside(self) -> None:
        with contextlib.suppress(Exception):
            for item in self._beside() if self._beside is not None else ():
                self._put(item)

    def _put(self, item: T | Stop | None) -> None:
        self._room.acquire()
        self._items.append(item)
        with contextlib.suppress(OSError):
            os.write(self._writer, b".")


class StopAsking(Exception):
    """The question needs no answer any more."""
