"""Processes as the system shows them, with the lists of children that Linux may have, and without."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from afoot.providers.isolation import processes
from tests.providers.isolation.isolated_provider import is_dead

PATIENCE_S = 20.0
# Two below the first one, in another session; the last of them is over, and nobody has waited for it.
FAMILY = """
import os, sys, time
kept = bytearray(b"x") * 50_000_000
if not os.fork():
    os.setsid()
    if not os.fork():
        os._exit(0)
    print("there", flush=True)
time.sleep(600)
"""

# Enough descriptors for one pipe, and not for two.
FEW = """
import os, resource
from afoot.providers.isolation.fork_server import ChildOutput
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
def free():
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        return taken
for number in free()[-3:]:
    os.close(number)
try:
    ChildOutput()
except OSError:
    print(len(free()))
"""


@pytest.fixture(params=[True, False], ids=["with lists", "without"])
def root(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A process with others below it."""
    monkeypatch.setattr(processes, "HAS_CHILDREN_FILES", request.param and processes.HAS_CHILDREN_FILES)
    process = subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, process_group=0)
    assert process.stdout is not None
    process.stdout.readline()
    below = processes.descendants(process.pid)
    yield process.pid
    for pid in (process.pid, *below):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.stdout.close()
    process.wait()


def happens(what: str, root: int, count: int) -> processes.TreeUsage:
    """What a family uses once it has so many processes."""
    end = time.monotonic() + PATIENCE_S
    while (used := processes.tree_usage(root)).processes != count:
        assert time.monotonic() < end, f"{what}: {used}"
        time.sleep(0.01)
    return used


def test_who_descends_from_whom_is_found_in_sessions_of_their_own(root: int) -> None:
    """G1: and nobody else."""
    tree = processes.descendants(root)
    assert len(tree) == 2 and root not in tree and os.getpid() not in tree
    assert processes.descendants(tree[0]) == tree[1:] and processes.process_info(tree[0]).parent == root


def test_a_family_uses_what_all_of_it_use_and_the_dead_count_for_little(root: int) -> None:
    """G1: time, memory that is shared counts for each at most, processes that live."""
    used = happens("one is over", root, 2)
    assert used.cpu_s > 0 and used.memory_bytes > 100_000_000
    assert processes.process_info(0) == processes.ProcessInfo(0, 0.0, 0)


def test_memory_that_is_shared_counts_once_before_anybody_is_killed_for_it(root: int) -> None:
    """G1: two that share fifty megabytes do not have a hundred."""
    happens("one is over", root, 2)  # while it ends, its share is nobody's
    assert processes.uses_more_memory(root, 40_000_000) and not processes.uses_more_memory(root, 100_000_000)


def test_a_system_that_lets_nobody_choose_a_processor_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G1: a tool then runs on any; as where those that there were a moment ago are gone."""
    before = os.sched_getaffinity(0)

    def gone(_: int) -> set[int]:
        return {100_000, 100_001}

    with monkeypatch.context() as patched:
        patched.setattr(os, "sched_getaffinity", gone)
        with pytest.raises(OSError):
            os.sched_setaffinity(0, {100_001})
        processes.leave_processors_free(1)
    assert os.sched_getaffinity(0) == before


def test_output_that_finds_no_descriptors_keeps_none() -> None:
    """G1: a fork server that had too few for a moment has as many as before."""
    ran = subprocess.run([sys.executable, "-c", FEW], capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.stdout == "3\n", ran.stderr


def test_all_of_a_family_are_killed_and_nobody_else(root: int) -> None:
    """G1: those in another session, too; whoever starts them goes on."""
    family = [root, *processes.descendants(root)]
    processes.kill_tree(root)
    end = time.monotonic() + PATIENCE_S
    while not all(map(is_dead, family)):
        assert time.monotonic() < end
        time.sleep(0.01)
