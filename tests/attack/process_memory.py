"""The memory of a gateway's process, for attacks that try to fill it."""

import time
from pathlib import Path

from tests.e2e.gateway import Gateway

MB = 1024 * 1024


def resident_mb(gateway: Gateway) -> int:
    """The resident memory of a gateway, in MB."""
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) // 1024


def settled_mb(gateway: Gateway, most: int, limit_s: float = 15.0) -> int:
    """The memory of a gateway once it is below `most`, or when the time is over: the disk may be slow."""
    end = time.monotonic() + limit_s
    while (found := resident_mb(gateway)) > most and time.monotonic() < end:
        time.sleep(0.1)
    return found


def reset_peak(gateway: Gateway) -> None:
    """Let the peak be counted from now on."""
    Path(f"/proc/{gateway.process.pid}/clear_refs").write_text("5")


def peak_mb(gateway: Gateway) -> int:
    """The highest resident memory of a gateway since `reset_peak`, in MB."""
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) // 1024
