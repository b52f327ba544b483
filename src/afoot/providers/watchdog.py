"""The watchdog: notices when a tool blocks the engine's loop, and gives that tool a loop of its own (G4)."""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections import Counter
from types import CodeType
from typing import Any, Final, Protocol, Self

from msgspec import Struct

from afoot.providers.context import Context, say

LIMIT_S: Final = 0.25
_TICK_S: Final = 0.05
_REST_S: Final = 5.0  # without a running tool for so long, it sleeps until one starts
_log = logging.getLogger("afoot.providers")


class Blocker(Protocol):
    """A tool that can be moved off the engine's loop."""

    name: str
    own_loop: bool


class _Sight(Struct, frozen=True):
    """Who was on the loop at a moment; `tool` is None when it was no tool."""

    tool: Blocker | None
    ctx: Context | None
    stack: str


class Watchdog:
    """A thread that asks the loop for a sign of life while tools run on it.

    Enter it on the loop's own thread. Before that, and after `close`, it does nothing.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.active: int = 0  # tools on the loop now
        self.is_asleep = False
        self.blocks: Counter[str] = Counter()  # by tool; "" is whatever else blocked the loop
        self.codes: set[CodeType] = set()  # frames whose locals `function` and `ctx` say who runs
        self._limit_s = limit_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ident = 0
        self._event = threading.Event()
        self._sent: float | None = None
        self._seen: _Sight | None = None
        self._blamed = False

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._ident = threading.get_ident()
        threading.Thread(target=self._run, args=(self._loop,), name="afoot-watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop watching."""
        self._loop = None
        self._event.set()

    def wake(self) -> None:
        """A tool starts while it sleeps."""
        self.is_asleep = False
        self._event.set()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        idle_since = time.monotonic()
        while self._loop is loop and not loop.is_closed():
            before = time.monotonic()
            if self._is_busy():
                idle_since = before
            elif before - idle_since > _REST_S:
                self.is_asleep = True
                # Look again: a tool that started just now saw it awake, and did not wake it.
                self._event.wait(_TICK_S if self._is_busy() else None)
                self.is_asleep = False
                idle_since = before = time.monotonic()
            spent = _spent(self._ident)
            self._event.wait(_TICK_S)
            self._event.clear()
            waited = time.monotonic() - before
            if waited < self._limit_s:
                self._look(loop, time.monotonic())
            else:
                self._look_back(waited, _spent(self._ident) - spent)

    def _is_busy(self) -> bool:
        return self.active > 0 or self._sent is not None

    def _look(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        if self._sent is None:
            if self.active:
                self._seen, self._blamed, self._sent = None, False, now
                try:
                    loop.call_soon_threadsafe(self._answered)
                except RuntimeError:
                    self._loop = None
            return
        waited = now - self._sent
        if waited < self._limit_s / 2 or self._blamed:
            return
        sight, before = self._sight(), self._seen
        self._seen = sight
        # Seen twice before the loop came round: it never left.
        if waited >= self._limit_s and before is not None and sight.ctx is before.ctx:
            self._blame(sight, waited)

    def _look_back(self, waited: float, spent: float) -> None:
        """This thread could not run itself, for so long.

        If the loop's thread was computing, it kept the interpreter's lock and gave it up just now, so it is
        still where it was. If it was not, the machine slept.
        """
        sight = self._sight()
        if spent > waited / 2 and sight.tool is not None and not self._blamed:
            self._blame(sight, waited)
        self._seen = None

    def _answered(self) -> None:
        """The loop came round."""
        sent, self._sent = self._sent, None
        if self._blamed and sent is not None and self._seen is not None:
            name = self._seen.tool.name if self._seen.tool else "something"
            _log.warning("%s held the loop for %.2f s", name, time.monotonic() - sent)

    def _sight(self) -> _Sight:
        frames = [frame for frame, _ in traceback.walk_stack(sys._current_frames().get(self._ident))]
        # Who it is comes first: looking at source files lets the other thread run on.
        runner = next((frame for frame in frames if frame.f_code in self.codes), None)
        found: dict[str, Any] = dict(runner.f_locals) if runner else {}
        stack = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in reversed(frames[:30]))
        return _Sight(found.get("function"), found.get("ctx"), "".join(stack.format()))

    def _blame(self, sight: _Sight, waited: float) -> None:
        self._blamed = True
        if sight.tool is None:
            self.blocks[""] += 1
            _log.warning("the loop is blocked for %.2f s, by no tool:\n%s", waited, sight.stack)
            return
        self.blocks[sight.tool.name] += 1
        sight.tool.own_loop = True
        text = (
            f"tool {sight.tool.name} blocks the loop for {waited:.2f} s; from now on it has a loop of its own"
        )
        _log.warning("%s:\n%s", text, sight.stack)
        if sight.ctx is not None:
            say(sight.ctx, f"{text}\n{sight.stack}", "warning", "afoot")


def _spent(ident: int) -> float:
    """Seconds of processor time that a thread has used, where the system tells."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return 0.0
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(ident))
    except OSError:
        return 0.0
