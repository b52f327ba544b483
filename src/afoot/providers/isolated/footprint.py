"""What a call may use in this process, what it has used, and whether it left something running."""

import math
import os
import resource
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Queue
from types import FrameType
from typing import Final

from afoot.providers.isolated.frames import Limits
from afoot.providers.isolated.processes import IS_LINUX, cpu_of

OURS: Final = ("afoot-tool-", "afoot-loop-")  # threads that run a call
# Where a thread waits that has nothing to do.
_AT_REST: Final = {
    one.__code__.co_filename for one in (threading.Event.wait, Queue.get, ThreadPoolExecutor.submit)
}


def limit(limits: Limits, spent_s: float) -> None:
    """The system's own limits, for each process of the call; the keeper looks at all of them together.

    Memory by RLIMIT_DATA, which counts what is written to: address space alone, as RLIMIT_AS has it, is
    reserved by the hundred gigabytes in some runtimes and means nothing.
    """
    wanted = {
        resource.RLIMIT_DATA if IS_LINUX else resource.RLIMIT_AS: limits.memory_bytes,
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


def has_left(before: set[threading.Thread]) -> bool:
    """Whether a call left processes behind, or threads that were not there before and do something."""
    return _has_children() or _is_at_work(before)


def _has_children() -> bool:
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_at_work(before: set[threading.Thread]) -> bool:
    new = [one for one in threading.enumerate() if one not in before and not one.name.startswith(OURS)]
    tops = sys._current_frames() if new else {}
    return any(_file(tops.get(one.ident or 0)) not in (None, *_AT_REST) for one in new)


def _file(top: FrameType | None) -> str | None:
    return None if top is None else top.f_code.co_filename
