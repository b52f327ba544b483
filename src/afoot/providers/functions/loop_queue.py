"""`LoopQueue` is the one queue on which reports from other threads travel to the engine's loop, in order.

Its capacity, and what happens when it is full: plain readings wait outside, only the newest of each call;
content is refused; the thread that sent a partial result waits for room, which holds back only the generator
that made it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context
from threading import Event, Lock, get_ident
from time import monotonic
from typing import Any, Final

CAPACITY: Final = 10_000
_BATCH: Final = 2_000  # deliveries before the loop may do something else
_SLICE_S: Final = 0.005  # or this time: a line of a log may cost much
_log = logging.getLogger("afoot.providers")

Delivery = tuple[Callable[..., object], tuple[Any, ...]]


class LoopQueue:
    """A queue into one loop, from any thread. It is made on that loop; `thread_id` is the loop's thread."""

    __slots__ = ("_context", "_items", "_lock", "_newest", "is_scheduled", "loop", "thread_id")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread_id = get_ident()
        self._items: deque[Delivery] = deque()
        self._newest: dict[object, Delivery] = {}  # by call, used only while the queue is full
        self._lock = Lock()
        self.is_scheduled = False  # whether anything waits for the loop
        self._context = Context()

    def __len__(self) -> int:
        return len(self._items) + len(self._newest)

    # The methods below take no lock while the queue has room: `deque.append` and `popleft` are atomic, and a
    # lock taken for each reading would make threads that report at full speed wait for each other.

    def put_reading(self, call: object, deliver: Callable[..., object], *values: Any) -> None:
        """Add a reading. If the queue is full, it replaces the reading of this call that waits."""
        if len(self._items) < CAPACITY and not self._newest:
            self._items.append((deliver, values))
        else:
            with self._lock:
                self._newest[call] = (deliver, values)
        if not self.is_scheduled:
            self._schedule()

    def put(self, call: object, deliver: Callable[..., object], *values: Any) -> None:
        """Add anything, after all that this call sent before; never refused."""
        if self._newest:
            with self._lock:
                reading = self._newest.pop(call, None)
                if reading is not None:
                    self._items.append(reading)
        self._items.append((deliver, values))
        if not self.is_scheduled:
            self._schedule()

    def try_put(self, call: object, deliver: Callable[..., object], *values: Any) -> bool:
        """Add content; False if the queue is full."""
        if len(self._items) >= CAPACITY:
            return False
        self.put(call, deliver, *values)
        return True

    def wait_for_room(self, call: object) -> None:
        """Wait, on a thread, until the queue has room again. Returns at once if it has."""
        if len(self._items) < CAPACITY:
            return
        arrived = Event()
        self.put(call, arrived.set)
        while not arrived.wait(1.0) and not self.loop.is_closed():
            pass

    def deliver_now(self, call: object) -> None:
        """Deliver the reports that other threads have sent, so that the end of a call comes after them."""
        with self._lock:
            newest = self._newest.pop(call, None)
        if newest is not None:
            self._items.append(newest)
        for _ in range(len(self._items)):
            self._context.run(_deliver, self._items.popleft())

    def _schedule(self) -> None:
        self.is_scheduled = True
        try:
            # In an empty context: not in the one of the thread that happens to schedule it, which has a call.
            self.loop.call_soon_threadsafe(self._drain, context=self._context)
        except RuntimeError:  # the loop is closed: nobody receives this any more
            self._items.clear()
            self._newest.clear()
            self.is_scheduled = False

    def _drain(self) -> None:
        # First lower the flag, then count: an item that is appended later schedules the next drain.
        self.is_scheduled = False
        items = self._items
        until = monotonic() + _SLICE_S
        for count in range(min(len(items), _BATCH)):
            _deliver(items.popleft())
            if count % 16 == 15 and monotonic() > until:
                break
        if self._newest and not items:
            with self._lock:
                newest = list(self._newest.values())
                self._newest.clear()
            for item in newest:
                _deliver(item)
        if (items or self._newest) and not self.is_scheduled:
            self.is_scheduled = True
            self.loop.call_soon(self._drain, context=self._context)


def _deliver(item: Delivery) -> None:
    deliver, values = item
    try:
        deliver(*values)
    except Exception:  # one that fails must not take the others with it
        _log.exception("a report from another thread could not be delivered")
