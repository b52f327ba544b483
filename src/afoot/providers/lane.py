"""The one queue on which everything said off the engine's loop travels to it, in order.

Its bound and what happens when it is full: plain readings wait outside, the newest of each call only; content
is refused; a partial result waits for room, which only holds back the generator that made it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context
from threading import Event, Lock, get_ident
from typing import Any, Final

BOUND: Final = 10_000
_PASS: Final = 2_000  # items delivered before the loop may do something else
_log = logging.getLogger("afoot.providers")

Reading = tuple[Callable[..., object], tuple[Any, ...]]


class Lane:
    """Into one loop, from any thread. Made on that loop; `ident` is its thread."""

    __slots__ = ("_awake", "_context", "_held", "_items", "_lock", "ident", "loop", "replaced")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.ident = get_ident()
        self._items: deque[Reading] = deque()
        self._held: dict[object, Reading] = {}  # by call, used only while the queue is full
        self._lock = Lock()
        self._awake = False
        self._context = Context()
        self.replaced = 0  # readings that a newer one overtook while the queue was full

    def __len__(self) -> int:
        return len(self._items) + len(self._held)

    def reading(self, call: object, deliver: Callable[..., object], *values: Any) -> None:
        """Pass a reading on. If the queue is full it replaces the one of this call that waits."""
        if len(self._items) < BOUND and not self._held:
            self._items.append((deliver, values))
        else:
            with self._lock:
                self.replaced += call in self._held
                self._held[call] = (deliver, values)
        if not self._awake:
            self._wake()

    def put(self, call: object, deliver: Callable[..., object], *values: Any) -> None:
        """Pass anything on, after all that this call said before; never refused."""
        if self._held:
            with self._lock:
                held = self._held.pop(call, None)
                if held is not None:
                    self._items.append(held)
        self._items.append((deliver, values))
        if not self._awake:
            self._wake()

    def offer(self, call: object, deliver: Callable[..., object], *values: Any) -> bool:
        """Pass content on, unless the queue is full."""
        if len(self._items) >= BOUND:
            return False
        self.put(call, deliver, *values)
        return True

    def settle(self, call: object) -> None:
        """Wait, on a thread, until the queue has room again. Returns at once if it has."""
        if len(self._items) < BOUND:
            return
        arrived = Event()
        self.put(call, arrived.set)
        while not arrived.wait(1.0) and not self.loop.is_closed():
            pass

    def _wake(self) -> None:
        self._awake = True
        try:
            # In no call's context, least of all in that of the thread that happens to wake it.
            self.loop.call_soon_threadsafe(self._drain, context=self._context)
        except RuntimeError:  # the loop is closed: nobody is left to hear it
            self._items.clear()
            self._held.clear()
            self._awake = False

    def _drain(self) -> None:
        # First lower the flag, then count: what is appended later wakes us again.
        self._awake = False
        items = self._items
        for _ in range(min(len(items), _PASS)):
            _deliver(items.popleft())
        if self._held and not items:
            with self._lock:
                held = list(self._held.values())
                self._held.clear()
            for item in held:
                _deliver(item)
        if (items or self._held) and not self._awake:
            self._awake = True
            self.loop.call_soon(self._drain, context=self._context)


def _deliver(item: Reading) -> None:
    deliver, values = item
    try:
        deliver(*values)
    except Exception:  # one that fails must not take the others with it
        _log.exception("something said off the loop could not be delivered")
