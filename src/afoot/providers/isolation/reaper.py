"""`main` is the reaper, the process between a gateway and its fork server.

The reaper forks the fork server and waits for its end. If the fork server is killed, its children become
children of the reaper, which kills them all. The fork server cannot do that for itself, and no other process
is the parent of a descendant that hides in a session of its own.
"""

import os
import shutil
import signal
import sys
from contextlib import suppress

import msgspec

from afoot.providers.isolation import processes
from afoot.providers.isolation.frames import END_SIGNAL, ForkServerConfig


def main() -> None:
    """Run the reaper and, forked from it, the fork server. The gateway writes the configuration to stdin."""
    config = msgspec.json.decode(sys.stdin.buffer.read(), type=ForkServerConfig)
    reaper = os.getpid()
    processes.adopt_orphans()
    fork_server = os.fork()
    if fork_server:
        _wait_for_fork_server(fork_server, config)
    else:
        # Imported here, because the reaper needs nothing of it.
        from afoot.providers.isolation.fork_server import serve

        serve(config, reaper)


def _wait_for_fork_server(fork_server: int, config: ForkServerConfig) -> None:
    """Wait for the end of the fork server; then kill all that it left, remove its folder, and exit."""

    def end(number: int, _: object) -> None:
        # A SIGTERM while the gateway lives was sent to every process there is: the gateway ends its calls
        # itself.
        if number == END_SIGNAL or os.getppid() != config.gateway:
            with suppress(ProcessLookupError):
                os.kill(fork_server, signal.SIGKILL)

    for number in (END_SIGNAL, signal.SIGTERM):
        signal.signal(number, end)
    for number in (signal.SIGINT, signal.SIGHUP):  # of a terminal: the gateway ends its calls itself
        signal.signal(number, signal.SIG_IGN)
    processes.die_with_parent(signal.SIGTERM, config.gateway)
    _, status = os.waitpid(fork_server, 0)
    processes.kill_all_children()
    shutil.rmtree(os.path.dirname(config.address), ignore_errors=True)
    os._exit(abs(os.waitstatus_to_exitcode(status)))
