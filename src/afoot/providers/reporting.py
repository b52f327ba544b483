"""Reports from wherever a tool's code runs: in its call, or in a process that an isolated tool started (P1).

It loads nothing of afoot, so that such a process costs no more for it.
"""

import json
import os
import socket
import sys
from typing import Any, Final

VARIABLE: Final = "AFOOT_REPORTS"  # the socket of the child that an isolated tool runs in
_line: tuple[str, int, socket.socket] | None = None


def report(progress: float | None = None, total: float | None = None, message: str | None = None) -> None:
    """Say how far the call is that this code belongs to; outside of one, nothing. Never raises or waits."""
    try:
        module: Any = sys.modules.get("afoot.providers.context")
        ctx = module.current.get() if module is not None else None
        if ctx is not None:
            ctx.report(progress, total, message)
        elif address := os.environ.get(VARIABLE):
            _way(address).send(json.dumps([progress, total, message], default=str).encode())
    except Exception:  # full, or nobody is there: it costs an update, never the work (P3)
        return


def _way(address: str) -> socket.socket:
    global _line
    if _line is None or _line[:2] != (address, os.getpid()):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        made.setblocking(False)
        made.connect(address)
        _line = address, os.getpid(), made
    return _line[2]
