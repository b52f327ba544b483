"""Ctrl-C, and being told to stop, handled where it suits and not where it hits."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals(
    handle: Callable[[signal.Signals], None], which: Iterable[signal.Signals] = STOPPING
) -> Iterator[None]:
    """These signals as calls of `handle` while the block lasts."""
    before = {one: signal.signal(one, lambda number, _: handle(signal.Signals(number))) for one in which}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
