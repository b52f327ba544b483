"""The fake clock: an event loop whose time jumps to the next timer, and a way to run on it."""

import asyncio
import math
import selectors
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Final, TypeVar

from afoot.providers import capture

TOOLS: Final = ("afoot-tool", "afoot-loop")  # how the names of tools' threads begin
_POLL_S: Final = 0.002  # how long a wait for threads lasts before the clock looks again
_T = TypeVar("_T")


class Deadlock(AssertionError):
    """Nothing is ready, no timer is set and no thread runs: the test would wait for ever."""


class FakeClock(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while anything runs, and else jumps to the next timer.

    It waits really, in short polls, while a thread is busy: a tool's, one given to `hold`, or an executor's.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self.until = 0.0  # so far it may jump while threads are busy
        self._executing = 0
        self._held: list[threading.Thread] = []
        self._older = frozenset(threading.enumerate())
        self.is_busy: Callable[[threading.Thread], bool] = lambda thread: thread.name.startswith(TOOLS)
        super().__init__(_Jumping(self))

    def time(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    def hold(self, thread: threading.Thread) -> None:
        """Do not jump while this thread lives."""
        self._held.append(thread)

    @property
    def is_held(self) -> bool:
        """Whether a thread is busy, so that time may not jump."""
        return self._executing > 0 or any(map(self._holds, threading.enumerate()))

    def jump(self, seconds: float | None, files: int, is_held: bool) -> bool:
        """Go on by up to this much, None if no timer is set; False if first something real must happen."""
        if seconds is None:
            if is_held or files > 1:  # besides the loop's own pipe there is a socket or a file
                return False
            waiting = "; ".join(map(repr, asyncio.all_tasks(self)))
            raise Deadlock(f"nothing is ready, no timer is set and no thread runs; these wait: {waiting}")
        step = min(seconds, self.until - self._now if is_held else math.inf)
        self._now += max(0.0, step)
        return step > 0

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., _T], *args: Any
    ) -> "asyncio.Future[_T]":
        """Work in a thread that time waits for."""
        future = super().run_in_executor(executor, func, *args)
        self._executing += 1
        future.add_done_callback(self._executed)
        return future

    async def shutdown_default_executor(self, *_: object) -> None:
        """End the threads, however long that really takes."""
        self._executing += 1
        await super().shutdown_default_executor()
        self._executing -= 1

    def _executed(self, _: object) -> None:
        self._executing -= 1

    def _holds(self, thread: threading.Thread) -> bool:
        return thread in self._held or (thread not in self._older and self.is_busy(thread))


class _Jumping(selectors.DefaultSelector):
    """Looks for what is ready; where the loop would wait for a timer, time jumps instead."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        wait_s = 0.0
        while (
            True
        ):  # who is busy is asked first: a thread's last word is then seen before time goes on without it
            is_held = self._clock.is_held
            found = super().select(wait_s)
            if found or (timeout is not None and timeout <= 0):
                return found
            if self._clock.jump(timeout, len(self.get_map()), is_held):
                return found
            wait_s = _POLL_S


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine on a fake clock of its own; raises Deadlock where it would wait for ever."""
    with asyncio.Runner(loop_factory=FakeClock) as runner:
        try:
            return runner.run(main)
        finally:
            capture.uninstall()


async def advance(seconds: float) -> None:
    """Let time pass, also while a tool's thread is busy; every timer on the way fires at its own instant."""
    clock = asyncio.get_running_loop()
    assert isinstance(clock, FakeClock), "advance() needs the fake clock: use run() or try_tool()"
    clock.until = max(clock.until, clock.time() + seconds)
    await asyncio.sleep(seconds)
