"""Processes as the system shows them: who descends from whom, what they use, and how to end them all.

On Linux by /proc and by being the one to whom orphans fall; elsewhere a process group has to do.
"""

import ctypes
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from msgspec import Struct

IS_LINUX: Final = sys.platform == "linux"
PASSES: Final = 50  # looks for what was forked meanwhile, before those that fork are left to the next round
_DEAD: Final = 16  # so many dead ones that nobody waited for count as one process
_DYING_S: Final = 1.0  # one that was killed and is still there hangs in the system
_DEATHSIG: Final = 1
_SUBREAPER: Final = 36
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = resource.getpagesize()
HAS_CHILDREN: Final = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


class Usage(Struct, frozen=True):
    """What a process and all below it use together."""

    cpu_s: float = 0
    memory_bytes: int = 0  # at most: what they share counts for each
    processes: int = 0


class Process(Struct, frozen=True):
    """One process."""

    parent: int
    cpu_s: float  # its own, and that of the children it has waited for
    memory_bytes: int  # pages of files and shared ones among them
    is_dead: bool = False  # and nobody has waited for it


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


def below(root: int) -> list[int]:
    """Everything that descends from a process, itself left out."""
    children = _children()
    found: list[int] = []
    left = [root]
    while left:
        more = children(left.pop())
        found += more
        left += more
    return found


def process(pid: int) -> Process:
    """What one process uses; nothing if it is gone."""
    return _process(str(pid)) or Process(0, 0.0, 0)


def usage(root: int) -> Usage:
    """What a process and everything below it use; nothing where the system does not tell."""
    tree = [one for pid in [root, *below(root)] if (one := _process(str(pid)))]
    dead = sum(one.is_dead for one in tree)
    count = len(tree) - dead + dead // _DEAD
    return Usage(sum(one.cpu_s for one in tree), sum(one.memory_bytes for one in tree), count)


def is_beyond(root: int, memory_bytes: int) -> bool:
    """Whether a tree uses more memory than this. What they share is counted once, which is slow."""
    tree = [root, *below(root)]
    return sum(map(_own, tree)) > memory_bytes and sum(map(_share, tree)) > memory_bytes


def tell_all(root: int, number: int) -> None:
    """A signal for a process and all below it."""
    for pid in [root, *below(root)]:
        _send(pid, number)
    if not IS_LINUX:
        with suppress(OSError):
            os.killpg(root, number)


def kill_all(root: int, *, itself: bool = True) -> None:
    """Kill a process and all below it. They are stopped first: what stands still starts nothing new."""
    stopped: set[int] = set()
    groups = {os.getpgrp()}  # none of theirs
    for _ in range(PASSES):
        count, left = len(stopped), [root]
        children = _children()
        while left:
            pid = left.pop()
            if pid not in stopped and (itself or pid != root):
                _stop(pid, groups)
                stopped.add(pid)
            left += children(pid)  # once it stands still: then they are all there
        if len(stopped) == count:
            break
    for pid in stopped:
        _send(pid, signal.SIGKILL)
    if not IS_LINUX:
        with suppress(OSError):
            os.killpg(root, signal.SIGKILL)


def sweep(known: Collection[int]) -> tuple[float, bool]:
    """Kill and reap every child of this process that is not known: orphans of one that died.

    Gives the processor time they had used, and whether none is left.
    """
    spent, me = 0.0, os.getpid()
    for _ in range(PASSES):
        orphans = [pid for pid in _children()(me) if pid not in known]
        if not orphans:
            return spent, True
        for pid in orphans:
            kill_all(pid)
        spent += _reaped(orphans)
    return spent, False


def sweep_all(limit_s: float) -> None:
    """Kill and reap every child of this process, whatever they start meanwhile."""
    end = time.monotonic() + limit_s
    while not sweep(())[1] and time.monotonic() < end:
        pass


def cpu_of(used: resource.struct_rusage) -> float:
    """Processor time in both modes."""
    return used.ru_utime + used.ru_stime


def close_files() -> None:
    """Close everything but stdin, stdout and stderr; there may be a million descriptors, and few in use."""
    try:
        last = max(map(int, os.listdir("/proc/self/fd" if IS_LINUX else "/dev/fd")))
    except OSError:  # a system that does not tell
        last = 65_535
    os.closerange(3, last + 1)


def go_first() -> None:
    """Be the first to go if the system is out of memory."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as setting:
        setting.write("500")


def spare(count: int) -> None:
    """Leave so many processors to others, with all that this process will start; it needs one itself."""
    if IS_LINUX and count:
        ours = sorted(os.sched_getaffinity(0))
        with suppress(OSError):  # not every system lets one choose, and a tool may run on any
            os.sched_setaffinity(0, ours[count:] or ours[-1:])


def step_back(root: int, nice: int) -> None:
    """Have a process and all below it, each thread, leave the processor to others."""
    for pid in [root, *below(root)]:
        with suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as setting:
            setting.write(str(nice))  # the share of its session, where sessions have shares
        for thread in _threads(pid):
            with suppress(OSError):  # this one is gone
                os.setpriority(os.PRIO_PROCESS, thread, nice)


def _children() -> Callable[[int], list[int]]:
    """Who tells the children of a process: the system, or a table of all there are now."""
    return _listed if HAS_CHILDREN else _table().__getitem__


def _listed(pid: int) -> list[int]:
    """The children of a process, each thread's own."""
    found: list[int] = []
    for thread in _threads(pid):
        with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as children:
            found += map(int, children.read().split())
    return found


def _threads(pid: int) -> list[int]:
    with suppress(OSError):  # it is gone
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    return []


def _table() -> dict[int, list[int]]:
    """The children of every process there is, for a system that does not list those of one."""
    found: dict[int, list[int]] = defaultdict(list)
    with suppress(OSError):  # a system that does not tell
        for name in os.listdir("/proc") if IS_LINUX else ():
            if name[0] in "123456789" and (one := _process(name)):
                found[one.parent].append(int(name))
    return found


def _process(pid: str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # Its name stands in brackets, and may contain anything.
            part = stat.read().rpartition(b")")[2].split()
    except OSError:  # it is gone, or this is no Linux
        return None
    cpu_s, memory_bytes = sum(map(int, part[11:15])) / _TICKS, int(part[21]) * _PAGE
    return Process(int(part[1]), cpu_s, memory_bytes, part[0] == b"Z")


def _reaped(orphans: list[int]) -> float:
    spent, end, left = 0.0, time.monotonic() + _DYING_S, orphans
    while left and time.monotonic() < end:
        there = []
        for pid in left:
            gone, used = pid, None
            with suppress(ChildProcessError):
                gone, _, used = os.wait4(pid, os.WNOHANG)
            if not gone:
                there.append(pid)
            spent += cpu_of(used) if used else 0
        left = there
        if left:
            time.sleep(0.001)
    return spent


def _own(pid: int) -> int:
    """What is its own, and what it shares in memory with others; pages of files are nobody's."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        counted = (line.split() for line in status if line.startswith((b"RssAnon:", b"RssShmem:")))
        return sum(int(words[1]) * 1024 for words in counted)
    return 0


def _share(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
        return sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith(b"Pss:"))
    return 0


def _stop(pid: int, known: set[int]) -> None:
    """Stop a process, with its whole group: that takes effect at once, however fast they fork."""
    with suppress(OSError):
        if (group := os.getpgid(pid)) not in known:
            known.add(group)
            os.killpg(group, signal.SIGSTOP)
    _send(pid, signal.SIGSTOP)


def _send(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
