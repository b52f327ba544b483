"""What a call may use in this process, what it has used, and whether it left something of itself behind."""

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

from afoot.providers.isolated.frames import Limits
from afoot.providers.isolated.processes import IS_LINUX, cpu_of

OURS: Final = ("afoot-tool-", "afoot-loop-")  # threads that run a call
WAKING_S: Final = 0.002  # for a thread that was just given work to take it up
MOMENT_S: Final = 0.05  # for a thread whose work is done to come to rest
_WAIT: Final = threading.Condition.wait.__code__  # below events, queues and semaphores, too
_POOL: Final = ThreadPoolExecutor.submit.__code__.co_filename
_MEMORY: Final = resource.RLIMIT_DATA if IS_LINUX else resource.RLIMIT_AS
_SET: Final = {_MEMORY, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU}  # anew for each call
_ALL: Final = {number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}

Thread = threading.Thread
Task = asyncio.Task[Any]
Loops = Iterable[asyncio.AbstractEventLoop]


class Place:
    """Where this process was before its first call, and what the system let it have: so each call begins."""

    def __init__(self) -> None:
        self._folder = "."
        with suppress(OSError):  # it was removed
            self._folder = os.getcwd()
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._bounds = _bounds()

    def restore(self) -> bool:
        """Be there again; False if a call gave up for good what the system would let others have."""
        os.umask(self._mask)
        with suppress(OSError):
            os.chdir(self._folder)
        return _bounds() == self._bounds


def _bounds() -> dict[int, tuple[int, ...]]:
    found = {what: resource.getrlimit(what) for what in _ALL}
    return {what: both[1:] if what in _SET else both for what, both in found.items()}


def limit(limits: Limits, spent_s: float) -> None:
    """The system's own limits, for each process of the call; the keeper looks at all of them together.

    Memory by RLIMIT_DATA, which counts what is written to: address space alone, as RLIMIT_AS has it, is
    reserved by the hundred gigabytes in some runtimes and means nothing.
    """
    wanted = {
        _MEMORY: limits.memory_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: math.ceil(spent_s + limits.cpu_s) + 1 if limits.cpu_s else 0,
    }
    for what, most in wanted.items():
        hard = resource.getrlimit(what)[1]
        soft = hard if not most else most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(what, (soft, hard))


def cpu_s() -> float:
    """Processor time of this process, and of those it has waited for."""
    return sum(cpu_of(resource.getrusage(who)) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def has_left(before: set[Thread | Task], loops: Loops) -> bool:
    """Whether a call left processes behind, or threads and tasks at work that were not `at_work` before."""
    if _has_children():
        return True
    if _others():
        time.sleep(WAKING_S)
    end = time.monotonic() + MOMENT_S
    while at_work(loops) - before:
        if time.monotonic() > end:
            return True
        time.sleep(0.001)
    return False


def at_work(loops: Loops = ()) -> set[Thread | Task]:
    """The threads here that do something, or will without being asked, but for those that run a call; and
    the tasks of these loops."""
    others = _others()
    tops = sys._current_frames() if others else {}
    threads = {one for one in others if not (_is_at_rest(tops.get(one.ident or 0)) or _is_idle_monitor(one))}
    return {*threads, *(task for loop in loops for task in asyncio.all_tasks(loop))}


def _others() -> list[Thread]:
    main = threading.main_thread()
    return [one for one in threading.enumerate() if one is not main and not one.name.startswith(OURS)]


def _has_children() -> bool:
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_at_rest(top: FrameType | None) -> bool:
    """Whether a thread goes on only if another has it do so; a wait that has an end is no rest."""
    if top is None:
        return True
    code, names = top.f_code, top.f_locals
    if code is _WAIT:  # it may be woken already, and wait for its turn
        waiters = getattr(names.get("self"), "_waiters", ())
        return names.get("timeout") is None and names.get("waiter") in waiters
    if (code.co_filename, code.co_name) == (_POOL, "_worker"):
        return names["work_queue"].empty()
    return False


def _is_idle_monitor(thread: Any) -> bool:
    """The thread that tqdm leaves running for ever: without an open bar it has nothing to say."""
    return type(thread).__module__ == "tqdm._monitor" and not thread.get_instances()
