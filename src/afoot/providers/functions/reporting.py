"""`report` reports progress from any code of a tool, even in a process that an isolated tool started (P1).

The module imports nothing of afoot, so that it adds little to such a process.
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

SOCKET_VARIABLE: Final = "AFOOT_REPORTS"  # has the path of the report socket of the child process
_MAX_MESSAGE: Final = 10_000  # characters of a message; the child cuts it to the configured length
_MAX_TRIES: Final = 100  # for a report that found no room, ten milliseconds apart


def report(progress: float | None = None, total: float | None = None, message: str | None = None) -> None:
    """Report progress of the call that this code belongs to, if any. Never raises, never waits."""
    try:
        module: Any = sys.modules.get("afoot.providers.functions.context")
        ctx = module.current_context.get() if module is not None else None
        if ctx is not None:
            ctx.report(progress, total, message)
        elif address := os.environ.get(SOCKET_VARIABLE):
            text = None if message is None else f"{message}"[:_MAX_MESSAGE]
            _report_socket(address).send(
                json.dumps([_json_number(progress), _json_number(total), text]).encode()
            )
    except Exception:  # a lost report costs an update, never the work (P3)
        return


class _ReportSocket:
    """A socket from this process to the child. While it is full, the newest report waits in a thread."""

    def __init__(self, address: str) -> None:
        self.key = address, os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect(address)
        self._lock = threading.RLock()
        self._pending: bytes | None = None

    def send(self, report_bytes: bytes) -> None:
        """Send a report, now or as the newest once there is room."""
        with self._lock:
            is_waiting = self._pending is not None
            self._pending = report_bytes
            if not self._try_send() and not is_waiting:
                # No daemon: the process ends only after its last report is sent.
                threading.Thread(target=self._retry, name="afoot-report").start()

    def _try_send(self) -> bool:
        with suppress(BlockingIOError):
            if self._pending is not None:
                self._socket.send(self._pending)
            self._pending = None
        return self._pending is None

    def _retry(self) -> None:
        for _ in range(_MAX_TRIES):
            time.sleep(0.01)
            with self._lock, suppress(OSError):
                if self._try_send():
                    return
        self._pending = None


_cached_socket: _ReportSocket | None = None


def _report_socket(address: str) -> _ReportSocket:
    global _cached_socket
    if _cached_socket is None or _cached_socket.key != (address, os.getpid()):
        _cached_socket = _ReportSocket(address)
    return _cached_socket


def _json_number(value: Any) -> float | None:
    """A number as JSON can have it, whatever its type; None for anything else."""
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        plain = value if type(value) is int else float(value)
        return plain if math.isfinite(plain) else None
    except Exception:  # a type of the author's own may raise anything
        return None
