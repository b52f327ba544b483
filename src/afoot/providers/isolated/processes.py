"""Processes as the system shows them: who descends from whom, what they use, and how to end them all.

On Linux by /proc and by being the one to whom orphans fall; elsewhere a process group has to do.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

IS_LINUX: Final = sys.platform == "linux"
PASSES: Final = 50  # looks for what was forked meanwhile, before those that fork are left to the next round
_DYING_S: Final = 1.0  # one that was killed and is still there hangs in the system
_TURN_NS: Final = 500_000
_RESET_ON_FORK: Final = 1
_DEATHSIG: Final = 1
_SUBREAPER: Final = 36
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Usage(Struct, frozen=True):
    """What a process and all below it use together."""

    cpu_s: float = 0
    memory_bytes: int = 0
    processes: int = 0


class Process(Struct, frozen=True):
    """One process."""

    parent: int
    cpu_s: float  # its own, and that of the children it has waited for


def die_with_parent(number: signal.Signals, parent: int) -> None:
    """Get this signal when the parent dies, also if it has died already."""
    if IS_LINUX:
        _prctl(_DEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Become the parent of whatever below loses its own."""
    if IS_LINUX:
        _prctl(_SUBREAPER, 1)


def below(root: int, table: Mapping[int, Process] | None = None) -> list[int]:
    """Everything that descends from a process, itself left out."""
    children: dict[int, list[int]] = {}
    for pid, one in (look() if table is None else table).items():
        children.setdefault(one.parent, []).append(pid)
    found: list[int] = []
    left = [root]
    while left:
        more = children.get(left.pop(), [])
        found += more
        left += more
    return found


def spent(pid: int) -> float:
    """Processor time of one process, and of the children it has waited for."""
    one = _process(str(pid))
    return one.cpu_s if one else 0.0


def usage(root: int, table: Mapping[int, Process]) -> Usage:
    """What a process and everything below it use; nothing where the system does not tell."""
    tree = [pid for pid in [root, *below(root, table)] if pid in table]
    return Usage(sum(table[pid].cpu_s for pid in tree), sum(map(_memory, tree)), len(tree))


def shared_out(root: int) -> int:
    """The memory of a tree with shared pages counted once: exact, and slow to find out."""
    return sum(map(_share, [root, *below(root)]))


def tell_all(root: int, number: int) -> None:
    """A signal for a process and all below it."""
    for pid in [root, *below(root)]:
        _send(pid, number)
    if not IS_LINUX:
        with suppress(OSError):
            os.killpg(root, number)


def kill_all(root: int, *, itself: bool = True) -> None:
    """Kill a process and all below it. They are stopped first: what stands still starts nothing new."""
    if not IS_LINUX:
        with suppress(OSError):
            os.killpg(root, signal.SIGKILL)
    stopped: set[int] = set()
    for _ in range(PASSES):
        fresh = {*([root] if itself else ()), *below(root)} - stopped
        if not fresh:
            break
        for pid in fresh:
            _send(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        _send(pid, signal.SIGKILL)


def sweep(known: Collection[int]) -> tuple[float, bool]:
    """Kill and reap every child of this process that is not known: orphans of one that died.

    Gives the processor time they had used, and whether none is left.
    """
    spent, me = 0.0, os.getpid()
    for _ in range(PASSES):
        orphans = [pid for pid, one in look().items() if one.parent == me and pid not in known]
        if not orphans:
            return spent, True
        for pid in orphans:
            kill_all(pid)
        spent += _reaped(orphans)
    return spent, False


def cpu_of(used: resource.struct_rusage) -> float:
    """Processor time in both modes."""
    return used.ru_utime + used.ru_stime


def close_files() -> None:
    """Close everything but stdin, stdout and stderr; there may be a million descriptors, and few in use."""
    folder = "/proc/self/fd" if IS_LINUX else "/dev/fd"
    os.closerange(3, max(map(int, os.listdir(folder))) + 1)


def go_first() -> None:
    """Be the first to go if the system is out of memory."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as setting:
        setting.write("500")


def step_back(root: int, nice: int) -> None:
    """Have a process and all below it, each thread, leave the processor to others."""
    for pid in [root, *below(root)]:
        with suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as setting:
            setting.write(str(nice))  # the share of its session, where sessions have shares
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), nice)


def look() -> dict[int, Process]:
    """Every process there is; none where the system does not tell."""
    if not IS_LINUX:
        return {}
    found: dict[int, Process] = {}
    for name in os.listdir("/proc"):
        if name[0] in "123456789" and (one := _process(name)):
            found[int(name)] = one
    return found


def _process(pid: str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # Its name stands in brackets, and may contain anything.
            part = stat.read().rpartition(b")")[2].split()
    except OSError:  # it is gone, or this is no Linux
        return None
    return Process(int(part[1]), sum(map(int, part[11:15])) / _TICKS)


def _reaped(orphans: list[int]) -> float:
    spent, end, left = 0.0, time.monotonic() + _DYING_S, orphans
    while left and time.monotonic() < end:
        for pid in tuple(left):
            gone, used = pid, None
            with suppress(ChildProcessError):
                gone, _, used = os.wait4(pid, os.WNOHANG)
            if gone:
                left.remove(pid)
                spent += cpu_of(used) if used else 0
        if left:
            time.sleep(0.001)
    return spent


def _memory(pid: int) -> int:
    """What is its own, and what it shares in memory with others; pages of files are nobody's."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        counted = (line.split() for line in status if line.startswith((b"RssAnon:", b"RssShmem:")))
        return sum(int(words[1]) * 1024 for words in counted)
    return 0


def _share(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
        return sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith(b"Pss:"))
    return 0


def _send(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def take_short_turns() -> None:
    """Have this thread take short turns: it gets no more of a processor, but gets it as soon as it wakes.

    Linux 6.12 and later know the length of turns; earlier ones take no notice. What is forked has usual ones.
    """
    number = {"x86_64": 314, "aarch64": 274, "riscv64": 274}.get(os.uname().machine)
    if IS_LINUX and number is not None and os.sched_getscheduler(0) == os.SCHED_OTHER:
        nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, _TURN_NS, 0, 0)
        ctypes.CDLL(None, use_errno=True).syscall(number, 0, attributes, 0)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
