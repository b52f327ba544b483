"""`LoopPasses` tells for how much work of the gateway others had to wait while somebody attacked.

A wall clock would measure the other work of the machine too, so this is processor time of the gateway's loop.
A request needs at most `PASSES_A_REQUEST` passes: one reads it, one starts its task, one writes the answer.
Nobody waits for more work than there is in the longest passes that follow each other.
"""

import struct
import time
from pathlib import Path
from typing import Final

from tests.attack.measured_loop import POLL_S, STATE, shared_bytes
from tests.e2e.gateway import Gateway

MEASURED_LOOP: Final = Path(__file__).with_name("measured_loop.py")  # a file of tools for the gateway
OTHERS_WAIT_S: Final = 0.05


class LoopPasses:
    """The longest work that a request had to wait for during a block; the gateway has `MEASURED_LOOP`."""

    def __init__(self, gateway: Gateway) -> None:
        self._shared = shared_bytes(gateway.folder)
        self.longest_s = 0.0

    def __enter__(self) -> "LoopPasses":
        self._shared[:] = STATE.pack(1, 0, 0)
        self._await_seen(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._shared[:8] = struct.pack("=d", 0)
        self._await_seen(0)
        self.longest_s = STATE.unpack(self._shared[:])[2]

    def check(self) -> None:
        """Fail if others had to wait for longer than is promised."""
        assert 0 < self.longest_s < OTHERS_WAIT_S, f"others waited for {self.longest_s * 1000:.1f} ms of work"

    def _await_seen(self, wanted: float) -> None:
        end = time.monotonic() + 20
        while STATE.unpack(self._shared[:])[1] != wanted:
            assert time.monotonic() < end, "the gateway does not measure"
            time.sleep(POLL_S)
