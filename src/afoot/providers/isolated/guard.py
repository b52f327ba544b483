"""The guard: the process between a gateway and its keeper. If that is killed, all that it kept falls here.

The keeper cannot see to that itself, and nobody else is the parent of what hides in a session of its own.
"""

import os
import shutil
import signal
import sys
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from afoot.providers.isolated import processes

SWEEP_S: Final = 5.0  # for what does not die at once
END: Final = signal.SIGUSR1  # how a gateway ends it that can say nothing to the keeper


class Errand(Struct, frozen=True):
    """What a keeper is told when it is started."""

    address: str  # of the gateway's socket
    secret: str
    gateway: int  # its pid
    nice: int
    spare: int


def reports_to(address: str, child: int) -> str:
    """Where the processes of a child's tools report."""
    return f"{address}.{child}"


def main() -> None:
    """What a gateway runs: the errand comes on stdin."""
    errand, guard = msgspec.json.decode(sys.stdin.buffer.read(), type=Errand), os.getpid()
    processes.adopt_orphans()
    keeper = os.fork()
    if keeper:
        _stand(keeper, errand)
    else:
        from afoot.providers.isolated.keeper import keep  # what it loads is not needed here

        keep(errand, guard)


def _stand(keeper: int, errand: Errand) -> None:
    """Wait for the end of the keeper; then nothing of it stays."""

    def end(number: int, _: object) -> None:
        # A SIGTERM while the gateway lives was for all that there is: it sees to its calls itself.
        if number == END or os.getppid() != errand.gateway:
            with suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGKILL)

    for number in (END, signal.SIGTERM):
        signal.signal(number, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    processes.die_with_parent(signal.SIGTERM, errand.gateway)
    _, status = os.waitpid(keeper, 0)
    processes.sweep_all(SWEEP_S)
    shutil.rmtree(os.path.dirname(errand.address), ignore_errors=True)
    os._exit(abs(os.waitstatus_to_exitcode(status)))
