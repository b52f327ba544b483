"""A wall clock that a soak can set: `time.time` and `time.time_ns` are ahead by a number in a mapped file.

Python imports this module at its start, if this folder is in PYTHONPATH. Nothing else is changed: a monotonic
clock never jumps.
"""

import mmap
import os
import struct
import time

_FILE = os.environ.get("SOAK_CLOCK")
if _FILE is not None:
    with open(_FILE, "rb") as _opened:
        _mapped = mmap.mmap(_opened.fileno(), 8, access=mmap.ACCESS_READ)
    _time, _time_ns, _unpack = time.time, time.time_ns, struct.Struct("d").unpack_from

    def _ahead_s() -> float:
        found: float = _unpack(_mapped)[0]
        return found

    time.time = lambda: _time() + _ahead_s()
    time.time_ns = lambda: _time_ns() + int(_ahead_s() * 1e9)
