"""`Watchdog` notices when a tool blocks the engine's loop, and gives that tool a loop of its own (G4).

It also notices when a tool in another thread keeps the interpreter's lock, as C code may that never gives it
up. Then nothing can run, the watchdog neither, so it says so afterwards.
"""

import asyncio
import logging
import resource
import sys
import threading
import time
import traceback
from collections import Counter
from types import CodeType
from typing import Any, Final, Protocol, Self

from msgspec import Struct

from afoot.providers.functions.context import Context, log_line, note_held_loop

BLOCK_LIMIT_S: Final = 0.25
_TICK_S: Final = 0.05
_SLEEP_AFTER_S: Final = 5.0  # without a running tool for so long, it sleeps until one starts
_MAX_LEFT: Final = 100  # ended threads that are remembered until it looks
_log = logging.getLogger("afoot.providers")


class MovableTool(Protocol):
    """A tool that can be moved off the engine's loop."""

    name: str
    own_loop: bool


class _Observation(Struct, frozen=True):
    """The code that was on the loop at a moment; `tool` is None if it belonged to no tool."""

    tool: MovableTool | None
    ctx: Context | None
    stack: str


class _ToolThread(Struct):
    """A call that runs in a thread of its own, or on a loop of its own."""

    tool: str
    ctx: Context
    native_id: int
    cpu_s: float  # of its thread, when it began or the watchdog last looked
    left_cpu_s: float | None = None  # of its thread, at the end of the call

    def computed_s(self) -> float:
        """Processor time of its thread since the watchdog last looked."""
        now_s = _thread_cpu_s(self.native_id) if self.left_cpu_s is None else self.left_cpu_s
        return now_s - self.cpu_s


class Watchdog:
    """A thread that sends the loop a probe while tools run on it, and observes it if no answer comes.

    Enter it on the loop's own thread. Before that, and after `close`, it does nothing.
    """

    def __init__(self, limit_s: float = BLOCK_LIMIT_S) -> None:
        self.active: int = 0  # tools on the loop now
        self.is_asleep = False
        self.blocks: Counter[str] = Counter()  # by tool; "" for code that belongs to no tool
        self.codes: set[CodeType] = (
            set()
        )  # the locals `function` and `ctx` of their frames say which tool runs
        self.locks: Counter[str] = Counter()  # by tool: how often it kept the interpreter's lock
        self._in_threads: dict[Context, _ToolThread] = {}
        self._left_threads: list[_ToolThread] = []  # since the watchdog last looked
        self._limit_s = limit_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._native_id = 0
        self._woken = 0.0, 0.0  # when it was last woken, and the processor time of the loop's thread then
        self._event = threading.Event()
        self._probe_sent_at: float | None = None
        self._last_observation: _Observation | None = None
        self._has_reported = False

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._native_id = threading.get_native_id()
        threading.Thread(target=self._run, args=(self._loop,), name="afoot-watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop watching."""
        self._loop = None
        self._event.set()

    def wake(self) -> None:
        """Wake the watchdog: a tool starts while it sleeps."""
        self.is_asleep = False
        self._woken = time.monotonic(), _thread_cpu_s(self._native_id)
        self._event.set()

    def enter_thread(self, tool: str, ctx: Context) -> None:
        """Watch this thread, in which a call begins."""
        self._in_threads[ctx] = _ToolThread(tool, ctx, threading.get_native_id(), time.thread_time())
        if self.is_asleep:
            self.wake()

    def leave_thread(self, ctx: Context) -> None:
        """Stop watching this thread, because its call ends. The watchdog still checks its last moments."""
        left = self._in_threads.pop(ctx)
        if len(self._left_threads) < _MAX_LEFT and self._loop is not None:
            left.left_cpu_s = time.thread_time()
            self._left_threads.append(left)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        idle_since = time.monotonic()
        while self._loop is loop and not loop.is_closed():
            before, cpu_before_s = time.monotonic(), _thread_cpu_s(self._native_id)
            for thread in list(self._in_threads.values()):
                thread.cpu_s = _thread_cpu_s(thread.native_id)
            self._left_threads.clear()
            switches = _own_switches()
            if self._is_busy():
                idle_since = before
            elif before - idle_since > _SLEEP_AFTER_S:
                self.is_asleep = True
                # Look again: a tool that started just now saw it awake, and did not wake it.
                if not self._is_busy():
                    self._event.wait()
                    # The tool that woke it may have kept the lock since.
                    before, cpu_before_s = self._woken
                self.is_asleep = False
                idle_since = before
            self._event.wait(_TICK_S)
            self._event.clear()
            waited_s = time.monotonic() - before
            if self._loop is None:
                return
            if waited_s < self._limit_s:
                self._probe(loop, time.monotonic())
                continue
            # A thread that waits for the lock wakes at each switch interval. One of a stopped process, or of
            # a machine that sleeps or is too busy, does not.
            waits = (_own_switches() - switches) * sys.getswitchinterval()
            holders = self._lock_holders(waited_s) if waits > waited_s / 3 else []
            self._check_own_delay(waited_s, _thread_cpu_s(self._native_id) - cpu_before_s, holders)

    def _is_busy(self) -> bool:
        return self.active > 0 or self._probe_sent_at is not None or bool(self._in_threads)

    def _probe(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Send the loop a probe, or find out what blocks it if it has not answered the last one."""
        if self._probe_sent_at is None:
            if self.active:
                self._last_observation = None
                self._has_reported = False
                self._probe_sent_at = now
                try:
                    loop.call_soon_threadsafe(self._probe_answered)
                except RuntimeError:
                    self._loop = None
            return
        waited_s = now - self._probe_sent_at
        if waited_s < self._limit_s / 2 or self._has_reported:
            return
        before = self._last_observation
        observation = self._last_observation = self._observe()
        # The same call was seen twice and the loop did not answer in between: it never left.
        if waited_s >= self._limit_s and before is not None and observation.ctx is before.ctx:
            self._report_block(observation, waited_s)

    def _check_own_delay(self, waited_s: float, cpu_s: float, holders: list[_ToolThread]) -> None:
        """Find out what runs after this thread itself could not run for so long.

        If the loop's thread was computing meanwhile, it held the interpreter's lock and released it just now,
        so it is still at the same place. If it was not computing, another thread held the lock, or the
        machine slept.
        """
        observation = self._observe()
        if cpu_s > waited_s / 2:
            if observation.tool is not None and not self._has_reported:
                self._report_block(observation, waited_s)
        elif holders:
            self._report_lock(holders, waited_s)
        self._last_observation = None

    def _lock_holders(self, waited_s: float) -> list[_ToolThread]:
        """The calls that may have kept the interpreter's lock for so long: the one that computed, else all.

        C code that waits for something with the lock in its hand does not compute.
        """
        threads = [*self._in_threads.values(), *self._left_threads]
        busy = [one for one in threads if one.computed_s() > waited_s / 2]
        return busy or threads

    def _probe_answered(self) -> None:
        """Note that the loop is no longer blocked; called on the loop."""
        sent_at = self._probe_sent_at
        self._probe_sent_at = None
        if self._has_reported and sent_at is not None and self._last_observation is not None:
            tool = self._last_observation.tool
            name = tool.name if tool else "something"
            _log.warning("%s held the loop for %.2f s", name, time.monotonic() - sent_at)

    def _observe(self) -> _Observation:
        frames = [frame for frame, _ in traceback.walk_stack(sys._current_frames().get(self._thread_id))]
        # The tool first: formatting the stack reads source files, which lets the other thread run on.
        runner = next((frame for frame in frames if frame.f_code in self.codes), None)
        found: dict[str, Any] = dict(runner.f_locals) if runner else {}
        stack = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in reversed(frames[:30]))
        return _Observation(found.get("function"), found.get("ctx"), "".join(stack.format()))

    def _report_block(self, observation: _Observation, waited_s: float) -> None:
        self._has_reported = True
        if observation.ctx is not None:
            note_held_loop(observation.ctx)
        tool = observation.tool
        if tool is None:
            self.blocks[""] += 1
            _log.warning("the loop is blocked for %.2f s, by no tool:\n%s", waited_s, observation.stack)
            return
        self.blocks[tool.name] += 1
        tool.own_loop = True
        text = f"tool {tool.name} blocks the loop for {waited_s:.2f} s; from now on it has a loop of its own"
        _log.warning("%s:\n%s", text, observation.stack)
        if observation.ctx is not None:
            log_line(observation.ctx, f"{text}\n{observation.stack}", "warning", "afoot")

    def _report_lock(self, holders: list[_ToolThread], waited_s: float) -> None:
        """Name the tool that kept the interpreter's lock. Several that may have are named in the log only."""
        names = sorted({one.tool for one in holders})
        who = f"tool {names[0]}" if len(names) == 1 else f"one of the tools {', '.join(names)}"
        text = (
            f"{who} kept the interpreter's lock for {waited_s:.2f} s, so that nothing else could run; "
            "isolate=True gives a tool a process of its own"
        )
        _log.warning("%s", text)
        if len(names) == 1:
            self.locks[names[0]] += 1
        if len(holders) == 1:
            log_line(holders[0].ctx, text, "warning", "afoot")


def _thread_cpu_s(native_id: int) -> float:
    """Processor time of a thread in seconds; 0 where the system does not tell, or the thread has ended.

    The clock is named by its number in the kernel: `pthread_getcpuclockid` may crash for an ended thread.
    """
    if sys.platform != "linux":
        return 0.0
    try:
        return time.clock_gettime((~native_id << 3) | 6)
    except OSError:
        return 0.0


def _own_switches() -> int:
    """The number of times this thread has waited; 0 if the system does not count them."""
    if sys.platform != "linux":
        return 0
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
