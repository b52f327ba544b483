"""`add_signal_handler` handles a signal in this process, and not in processes that a tool forks from it.

A forked process inherits the handlers of a loop and its file for signals. So a SIGTERM that a tool sends to
its own process, as `multiprocessing.Pool` does at its end, would not end that process. It would arrive here
instead, and stop a gateway.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

_handled: Final = set[signal.Signals]()
_this_thread = threading.local()  # `mask`: the signals that it blocked before it forked
_registered: Final = threading.Event()


def add_signal_handler(number: signal.Signals, handler: Callable[..., object], *args: Any) -> None:
    """Call a handler on the running loop at this signal; it is called on the main thread."""
    asyncio.get_running_loop().add_signal_handler(number, handler, *args)
    _handled.add(number)
    if not _registered.is_set():
        _registered.set()
        os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_reset)


def _block() -> None:
    """Let the signals wait while this thread forks: the new process has the handlers of this one at first."""
    _this_thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handled)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _this_thread.mask)


def _reset() -> None:
    """Let the new process end by these signals.

    By SIGINT as well: a KeyboardInterrupt would be lost if it was raised here.
    """
    signal.set_wakeup_fd(-1)
    for number in _handled:
        signal.signal(number, signal.SIG_DFL)
    _unblock()
