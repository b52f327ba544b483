"""Resources of a call inside its child process: `set_rlimits`, `process_cpu_s` and `has_leftovers`."""

import asyncio
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from afoot.providers.isolation.frames import ResourceLimits
from afoot.providers.isolation.processes import IS_LINUX, total_cpu_s

CALL_THREAD_PREFIXES: Final = ("afoot-tool-", "afoot-loop-")  # names of threads that run a call
WAKE_UP_S: Final = 0.002  # for a thread that was just given work to begin it
COME_TO_REST_S: Final = 0.05  # for a thread whose work is done to wait for more
_WAIT_CODE: Final = threading.Condition.wait.__code__  # events, queues and semaphores wait in it, too
_POOL_FILE: Final = ThreadPoolExecutor.submit.__code__.co_filename
_MEMORY_RLIMIT: Final = resource.RLIMIT_DATA if IS_LINUX else resource.RLIMIT_AS
_PER_CALL_RLIMITS: Final = {_MEMORY_RLIMIT, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU}
_ALL_RLIMITS: Final = {number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}

Thread = threading.Thread
Task = asyncio.Task[Any]
Loops = Iterable[asyncio.AbstractEventLoop]


class ProcessState:
    """The working folder, umask and rlimits of this process before its first call; each call begins so."""

    def __init__(self) -> None:
        self._folder = "."
        with suppress(OSError):  # it was removed
            self._folder = os.getcwd()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._rlimits = _rlimits()

    def restore(self) -> bool:
        """Restore the state; False if a call lowered an rlimit for good."""
        os.umask(self._umask)
        with suppress(OSError):
            os.chdir(self._folder)
        return _rlimits() == self._rlimits


def set_rlimits(limits: ResourceLimits, spent_s: float) -> None:
    """Set the kernel's limits for each process of the call; the fork server enforces those for all of them.

    Memory is limited by RLIMIT_DATA, which counts memory that is written to. RLIMIT_AS counts address space,
    of which some runtimes reserve hundreds of gigabytes without using them.
    """
    wanted = {
        _MEMORY_RLIMIT: limits.memory_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: math.ceil(spent_s + limits.cpu_s) + 1 if limits.cpu_s else 0,
    }
    for number, most in wanted.items():
        hard = resource.getrlimit(number)[1]
        if not most:
            soft = hard
        elif hard == resource.RLIM_INFINITY:
            soft = most
        else:
            soft = min(most, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(number, (soft, hard))


def process_cpu_s() -> float:
    """Processor time of this process, and of the children it has waited for."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(total_cpu_s(resource.getrusage(one)) for one in who)


def has_leftovers(before: set[Thread | Task], loops: Loops) -> bool:
    """Whether a call left processes behind, or threads and tasks at work that are not in `before`."""
    if _has_children():
        return True
    if _other_threads():
        time.sleep(WAKE_UP_S)
    end = time.monotonic() + COME_TO_REST_S
    while active_work(loops) - before:
        if time.monotonic() > end:
            return True
        time.sleep(0.001)
    return False


def active_work(loops: Loops = ()) -> set[Thread | Task]:
    """The threads that are at work, without those that run a call, and the tasks of these loops.

    A thread that waits with a timeout counts as at work, as it will go on by itself.
    """
    others = _other_threads()
    frames = sys._current_frames() if others else {}
    active: set[Thread | Task] = set()
    for thread in others:
        if not (_is_at_rest(frames.get(thread.ident or 0)) or _is_idle_monitor(thread)):
            active.add(thread)
    for loop in loops:
        active |= asyncio.all_tasks(loop)
    return active


def _rlimits() -> dict[int, tuple[int, ...]]:
    """All rlimits by number; of those that each call sets anew, the hard one only."""
    found: dict[int, tuple[int, ...]] = {}
    for number in _ALL_RLIMITS:
        soft, hard = resource.getrlimit(number)
        found[number] = (hard,) if number in _PER_CALL_RLIMITS else (soft, hard)
    return found


def _other_threads() -> list[Thread]:
    main = threading.main_thread()
    threads = threading.enumerate()
    return [one for one in threads if one is not main and not one.name.startswith(CALL_THREAD_PREFIXES)]


def _has_children() -> bool:
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_at_rest(top: FrameType | None) -> bool:
    """Whether a thread goes on only if another thread makes it; a wait with a timeout is no rest."""
    if top is None:
        return True
    code = top.f_code
    names = top.f_locals
    if code is _WAIT_CODE:  # it may have been notified already, and wait for the interpreter
        waiters = getattr(names.get("self"), "_waiters", ())
        return names.get("timeout") is None and names.get("waiter") in waiters
    if (code.co_filename, code.co_name) == (_POOL_FILE, "_worker"):
        return names["work_queue"].empty()
    return False


def _is_idle_monitor(thread: Any) -> bool:
    """Whether this is the thread that tqdm leaves running for ever, and no bar is open."""
    return type(thread).__module__ == "tqdm._monitor" and not thread.get_instances()
