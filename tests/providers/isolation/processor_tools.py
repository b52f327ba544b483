"""Isolated tools that tell which processors they have, and how far they stand back."""

import os
import subprocess
import sys
import threading
import time

import afoot


@afoot.tool(isolate=True)
def processors() -> list[int]:
    """Those that a program of this call may use."""
    program = "import os; print(*sorted(os.sched_getaffinity(0)))"
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout
    return list(map(int, said.split()))


@afoot.tool(isolate=True)
def works_until_it_steps_back(nice: int) -> list[int]:
    """The priorities of its threads and of a program of its own, when they have fallen."""
    other = threading.Thread(target=time.sleep, args=(60,), daemon=True)
    other.start()
    with subprocess.Popen(["sleep", "60"]) as program:
        looked, found = (os.getpid(), other.native_id or 0, program.pid), list[int]()
        end = time.monotonic() + 20
        while found != [nice] * len(looked) and time.monotonic() < end:
            found = [os.getpriority(os.PRIO_PROCESS, one) for one in looked]
        program.kill()
        return found
