"""A file of tools for a gateway that measures the passes of its own loop, in processor time.

`loop_passes.py` reads the figures; both share a few bytes of a file.
"""

import asyncio
import mmap
import os
import struct
import time
from collections import deque
from pathlib import Path
from typing import Final

import afoot

PASSES_A_REQUEST: Final = 3
POLL_S: Final = 0.005  # how often a gateway looks whether it is to measure
STATE: Final = struct.Struct("=ddd")  # whether to measure (1), whether this was seen, and the longest work


@afoot.tool(read_only=True)
async def measured() -> bool:
    """Says that this gateway measures its loop: a file of tools needs one."""
    return True


def shared_bytes(folder: Path) -> mmap.mmap:
    """The bytes that a gateway and its test share."""
    file = folder / "loop-passes"
    if not file.exists():
        file.write_bytes(bytes(STATE.size))
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), STATE.size)


class Meter:
    """Measures the loop of this process, while it is told to."""

    def __init__(self, loop: asyncio.AbstractEventLoop, shared: mmap.mmap) -> None:
        self._loop = loop
        self._shared = shared
        self._begun = 0.0
        self._last: deque[float] = deque(maxlen=PASSES_A_REQUEST)
        self._longest = 0.0

    def poll(self) -> None:
        """Begin, if it is wanted."""
        if self._shared[:8] == bytes(8):
            self._loop.call_later(POLL_S, self.poll)
            return
        self._last.clear()
        self._longest = 0.0
        self._begun = time.thread_time()
        self._shared[8:16] = struct.pack("=d", 1)
        self._loop.call_soon(self._on_pass)

    def _on_pass(self) -> None:
        """Take the time of one pass; being called soon again, this keeps the loop from sleeping."""
        now = time.thread_time()
        self._last.append(now - self._begun)
        self._begun = now
        self._longest = max(self._longest, sum(self._last))
        if self._shared[:8] == bytes(8):
            self._shared[8:] = struct.pack("=dd", 0, self._longest)
            self._loop.call_later(POLL_S, self.poll)
        else:
            self._loop.call_soon(self._on_pass)


def _measure_this_process() -> None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # a test
    loop.call_soon(Meter(loop, shared_bytes(Path(os.environ["E2E_MARKS"]))).poll)


_measure_this_process()
