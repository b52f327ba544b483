"""Tools that make a bad day for the gateway they run in: its disk is full, its clock is set."""

import os
import resource
import time
from pathlib import Path

import afoot
from tests.e2e.tools import LONG_S

_real = time.time
_ahead_s = [0.0]
_endless = resource.getrlimit(resource.RLIMIT_FSIZE)
time.time = lambda: _real() + _ahead_s[0]  # before the gateway takes it


@afoot.tool
def fill_disk(store: str) -> str:
    """From now on no file of this process may grow beyond what the store's log has."""
    most = os.path.getsize(f"{store}-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, _endless[1]))
    return "full"


@afoot.tool
async def free_disk() -> str:
    """There is space again."""
    resource.setrlimit(resource.RLIMIT_FSIZE, _endless)
    return "free"


@afoot.tool
async def set_clock(by_s: float) -> str:
    """Set the time of day of this process."""
    _ahead_s[0] += by_s
    return "set"


@afoot.tool(idle=None)
def until_file(file: str) -> str:
    """Runs until there is such a file."""
    until = time.monotonic() + LONG_S
    while not Path(file).exists() and time.monotonic() < until:
        time.sleep(0.02)
    return "seen"
