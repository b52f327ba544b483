"""Process trees: `descendants`, `tree_usage`, `kill_tree`, and settings of the own process.

On Linux it reads /proc, and a process becomes the parent of orphans below it (`adopt_orphans`). On other
systems only the process group can be signalled, and nothing is measured.
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
CLEANUP_S: Final = 5.0  # for processes that do not die at once
MAX_PASSES: Final = 50  # over a tree that goes on forking, before the rest is left to the next round
_ZOMBIES_PER_PROCESS: Final = 16  # so many zombies count as one process
_REAP_S: Final = 1.0  # for a killed process; one that is still there then hangs in the kernel
_DEATHSIG: Final = 1
_SUBREAPER: Final = 36
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = resource.getpagesize()
HAS_CHILDREN_FILES: Final = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


ProcessId = tuple[int, int]  # a pid, and when the process started: pids are used again


class TreeUsage(Struct, frozen=True):
    """The resources that a process and all below it use together."""

    cpu_s: float = 0
    memory_bytes: int = 0  # an upper bound: shared memory counts for each process
    processes: int = 0


class ProcessInfo(Struct, frozen=True):
    """One process."""

    parent: int
    cpu_s: float  # its own, and that of the children it has waited for
    memory_bytes: int  # with file pages and shared pages
    is_zombie: bool = False  # dead, and not waited for


def die_with_parent(number: signal.Signals, parent: int) -> None:
    """Have this signal sent to this process when its parent dies, also if that has died already."""
    if IS_LINUX:
        _prctl(_DEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own (a child subreaper)."""
    if IS_LINUX:
        _prctl(_SUBREAPER, 1)


def descendants(root: int) -> list[int]:
    """The pids of all processes below this one, without itself."""
    children = _child_lookup()
    found: list[int] = []
    left = [root]
    while left:
        more = children(left.pop())
        found += more
        left += more
    return found


def process_info(pid: int) -> ProcessInfo:
    """The state of one process; zeros if it is gone."""
    return _read_stat(str(pid)) or ProcessInfo(0, 0.0, 0)


def tree_usage(root: int) -> TreeUsage:
    """The resources that a process and all below it use; zeros where the system does not tell."""
    tree = [one for pid in [root, *descendants(root)] if (one := _read_stat(str(pid)))]
    dead = sum(one.is_zombie for one in tree)
    count = len(tree) - dead + dead // _ZOMBIES_PER_PROCESS
    return TreeUsage(sum(one.cpu_s for one in tree), sum(one.memory_bytes for one in tree), count)


def uses_more_memory(root: int, memory_bytes: int) -> bool:
    """Whether a tree uses more memory than this. Shared memory is counted once, which is slow."""
    tree = [root, *descendants(root)]
    return (
        sum(map(_anonymous_bytes, tree)) > memory_bytes and sum(map(_proportional_bytes, tree)) > memory_bytes
    )


def signal_tree(root: int, number: int) -> None:
    """Send a signal to a process and all below it."""
    for pid in [root, *descendants(root)]:
        _send(pid, number)
    if not IS_LINUX:
        with suppress(OSError):
            os.killpg(root, number)


def kill_tree(root: int, *, itself: bool = True) -> None:
    """Kill a process and all below it. They are stopped first, as a stopped process forks no other."""
    stopped: set[int] = set()
    groups = {os.getpgrp()}  # our own group must not be stopped
    for _ in range(MAX_PASSES):
        count = len(stopped)
        left = [root]
        children = _child_lookup()
        while left:
            pid = left.pop()
            if pid not in stopped and (itself or pid != root):
                _stop(pid, groups)
                stopped.add(pid)
            left += children(pid)  # read after the stop: no more can appear
        if len(stopped) == count:
            break
    for pid in stopped:
        _send(pid, signal.SIGKILL)
    if not IS_LINUX:
        with suppress(OSError):
            os.killpg(root, signal.SIGKILL)


def kill_orphans(known: Collection[int]) -> tuple[float, bool]:
    """Kill and reap every child of this process that is not `known`: orphans of a child that died.

    Gives the processor time that they had used, and whether none is left.
    """
    spent = 0.0
    me = os.getpid()
    for _ in range(MAX_PASSES):
        orphans = [pid for pid in _child_lookup()(me) if pid not in known]
        if not orphans:
            return spent, True
        for pid in orphans:
            kill_tree(pid)
        spent += _reap(orphans)
    return spent, False


def kill_all_children() -> None:
    """Kill and reap every child of this process, also those that appear meanwhile, for up to `CLEANUP_S`."""
    end = time.monotonic() + CLEANUP_S
    while not kill_orphans(())[1] and time.monotonic() < end:
        pass


def tree_members(root: int) -> set[ProcessId]:
    """All processes below this one, so that they can be found again when it is gone."""
    return {(pid, start) for pid in descendants(root) if (start := _start_time(pid))}


def kill_stragglers(members: Collection[ProcessId], mark: tuple[str, str]) -> None:
    """Kill what is left of a tree whose root is gone: its known members, and processes with its mark.

    `mark` is a variable that the root had in its environment, and a part of its value. It finds a daemon,
    which left its session and its parent, as long as it did not clear its environment.
    """
    for pid in [pid for pid, start in members if _start_time(pid) == start]:
        kill_tree(pid)
    for _ in range(MAX_PASSES):
        left = _marked_processes(mark)
        if not left:
            return
        for pid in left:
            kill_tree(pid)
        time.sleep(0.001)


def total_cpu_s(used: resource.struct_rusage) -> float:
    """Processor time in user and system mode together."""
    return used.ru_utime + used.ru_stime


def close_files() -> None:
    """Close all descriptors but stdin, stdout and stderr. Only those in use: the limit may be a million."""
    try:
        last = max(map(int, os.listdir("/proc/self/fd" if IS_LINUX else "/dev/fd")))
    except OSError:  # a system that does not tell
        last = 65_535
    os.closerange(3, last + 1)


def prefer_as_oom_victim() -> None:
    """Let the kernel kill this process before others if the system is out of memory."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as setting:
        setting.write("500")


def leave_processors_free(count: int) -> None:
    """Leave so many processors to others, here and in all processes below; at least one is used."""
    if IS_LINUX and count:
        ours = sorted(os.sched_getaffinity(0))
        with suppress(OSError):  # not every system allows it; then any processor may be used
            os.sched_setaffinity(0, ours[count:] or ours[-1:])


def lower_priority(root: int, nice: int) -> None:
    """Raise the nice value of each thread of a process and of all below it."""
    for pid in [root, *descendants(root)]:
        with suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as setting:
            setting.write(str(nice))  # the share of its session, where the scheduler groups by session
        for thread in _threads(pid):
            with suppress(OSError):  # the thread is gone
                os.setpriority(os.PRIO_PROCESS, thread, nice)


def _child_lookup() -> Callable[[int], list[int]]:
    """A function from a pid to its children: by the kernel's list, or by a table of all processes now."""
    return _children_from_proc if HAS_CHILDREN_FILES else _children_by_parent().__getitem__


def _children_from_proc(pid: int) -> list[int]:
    """The children of a process. The kernel lists them for each thread."""
    found: list[int] = []
    for thread in _threads(pid):
        with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as children:
            found += map(int, children.read().split())
    return found


def _threads(pid: int) -> list[int]:
    with suppress(OSError):  # it is gone
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    return []


def _children_by_parent() -> dict[int, list[int]]:
    """The children of every process, for a kernel that does not list those of one."""
    found: dict[int, list[int]] = defaultdict(list)
    with suppress(OSError):  # a system that does not tell
        for name in os.listdir("/proc") if IS_LINUX else ():
            if name[0] in "123456789" and (one := _read_stat(name)):
                found[one.parent].append(int(name))
    return found


def _read_stat(pid: str) -> ProcessInfo | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The name of the process is in brackets, and may contain anything.
            part = stat.read().rpartition(b")")[2].split()
    except OSError:  # it is gone, or this is no Linux
        return None
    cpu_s = sum(map(int, part[11:15])) / _TICKS
    memory_bytes = int(part[21]) * _PAGE
    return ProcessInfo(int(part[1]), cpu_s, memory_bytes, part[0] == b"Z")


def _start_time(pid: int) -> int:
    """The start time of a process, in ticks since the system started; 0 if it has ended or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            part = stat.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if part[0] in b"ZX" else int(part[19])


def _marked_processes(mark: tuple[str, str]) -> list[int]:
    """The living processes of this user that have this part in this variable of their environment."""
    name, part = f"{mark[0]}=".encode(), mark[1].encode()
    found: list[int] = []
    for entry in os.listdir("/proc") if IS_LINUX else ():
        if entry[0] not in "123456789":
            continue
        with suppress(OSError), open(f"/proc/{entry}/environ", "rb") as environ:  # others' cannot be read
            variables = environ.read().split(b"\0")
            if any(one.startswith(name) and part in one for one in variables) and _start_time(int(entry)):
                found.append(int(entry))
    return found


def _reap(orphans: list[int]) -> float:
    """Wait for processes that were killed; gives the processor time that they had used."""
    spent = 0.0
    end = time.monotonic() + _REAP_S
    left = orphans
    while left and time.monotonic() < end:
        living = []
        for pid in left:
            gone = pid
            used = None
            with suppress(ChildProcessError):
                gone, _, used = os.wait4(pid, os.WNOHANG)
            if not gone:
                living.append(pid)
            spent += total_cpu_s(used) if used else 0
        left = living
        if left:
            time.sleep(0.001)
    return spent


def _anonymous_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process; file pages belong to no process."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        counted = (line.split() for line in status if line.startswith((b"RssAnon:", b"RssShmem:")))
        return sum(int(words[1]) * 1024 for words in counted)
    return 0


def _proportional_bytes(pid: int) -> int:
    """The memory of a process, in which each shared page is divided among those that share it."""
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
        return sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith(b"Pss:"))
    return 0


def _stop(pid: int, known: set[int]) -> None:
    """Stop a process with its whole group: that takes effect at once, however fast the group forks."""
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
