"""Reports from wherever a tool's code runs: in its call, or in a process that an isolated tool started (P1).

It loads nothing of afoot, so that such a process costs no more for it.
"""

import json
import math
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Final

VARIABLE: Final = "AFOOT_REPORTS"  # the socket of the child that an isolated tool runs in
_LONGEST: Final = 10_000  # characters of a message; the child cuts it to what is set
_TRIES: Final = 100  # for a report that found no room, one in ten milliseconds


def report(progress: float | None = None, total: float | None = None, message: str | None = None) -> None:
    """Say how far the call is that this code belongs to; outside of one, nothing. Never raises or waits."""
    try:
        module: Any = sys.modules.get("afoot.providers.context")
        ctx = module.current.get() if module is not None else None
        if ctx is not None:
            ctx.report(progress, total, message)
        elif address := os.environ.get(VARIABLE):
            text = None if message is None else f"{message}"[:_LONGEST]
            _way(address).send(json.dumps([_number(progress), _number(total), text]).encode())
    except Exception:  # nobody is there: it costs an update, never the work (P3)
        return


class _Way:
    """From one process to the child. If there is no room the newest report waits for it, and nobody else."""

    def __init__(self, address: str) -> None:
        self.key = address, os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect(address)
        self._lock = threading.RLock()
        self._held: bytes | None = None

    def send(self, said: bytes) -> None:
        """Send it, now or as the newest once there is room."""
        with self._lock:
            is_waiting = self._held is not None
            self._held = said
            if not self._sent() and not is_waiting:
                # No daemon: this process ends once its last report is on its way.
                threading.Thread(target=self._retry, name="afoot-report").start()

    def _sent(self) -> bool:
        with suppress(BlockingIOError):
            if self._held is not None:
                self._socket.send(self._held)
            self._held = None
        return self._held is None

    def _retry(self) -> None:
        for _ in range(_TRIES):
            time.sleep(0.01)
            with self._lock, suppress(OSError):
                if self._sent():
                    return
        self._held = None


_last: _Way | None = None


def _way(address: str) -> _Way:
    global _last
    if _last is None or _last.key != (address, os.getpid()):
        _last = _Way(address)
    return _last


def _number(value: Any) -> float | None:
    """What JSON can say of a number, whatever its type; None for what is none."""
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        plain = value if type(value) is int else float(value)
        return plain if math.isfinite(plain) else None
    except Exception:  # a type of the author's own may raise anything
        return None
