"""Follows every call for telemetry, beside its path: notes on what lives, and tells of what has ended."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol, Self

from afoot.core.facts import Entry, Finished, Opened, Released
from afoot.observe.pulse import Pulse

KEPT = 10_000  # calls that are over and not told of yet; when there are more, the oldest go
AT_ONCE = 20  # told of in one go, so that nobody waits for it
REST_S = 0.25  # after a call ended: what its requests still count comes in
LOOK_S = 2.0  # between two looks whether calls still advance


class Calls(Protocol):
    """Where calls live, as far as somebody who looks on must know it."""

    clock: Any
    watchers: list[Any]
    trees: Any

    @property
    def refused(self) -> Mapping[str, int]:
        """By caller, how many were over its quota."""
        ...

    def __contains__(self, call_id: str, /) -> bool: ...

    def __getitem__(self, call_id: str, /) -> Any: ...


class Ledger(Protocol):
    """What is told of calls."""

    def opened(self, pulse: Pulse) -> None: ...

    def finished(self, pulse: Pulse) -> None: ...

    def ended(self, pulse: Pulse) -> None: ...


class Following:
    """Reads along with all calls. Opened with `async with`, before calls come."""

    def __init__(self, calls: Calls, ledger: Ledger) -> None:
        self._calls = calls
        self._ledger = ledger
        self._pulses: dict[str, Pulse] = {}
        self._over: deque[Pulse] = deque(maxlen=KEPT)
        self._bell = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._calls.watchers.append(self)
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._look())]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._calls.watchers.remove(self)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._over.extend(self._pulses.values())
        while self._over:
            self._some()

    def see(self, entry: Entry) -> None:
        """A fact was recorded."""
        pulse = self._pulses.get(entry.call)
        if pulse is None:
            if type(entry.fact) is Released or entry.call not in self._calls:
                return
            live = self._calls[entry.call]
            pulse = self._pulses[entry.call] = Pulse(live)
            live.watchers.append(pulse)
            self._ledger.opened(pulse)
        if type(entry.fact) is Opened:
            return
        pulse.take(entry.fact)
        if type(entry.fact) is Finished:
            self._ledger.finished(pulse)
        elif type(entry.fact) is Released:
            del self._pulses[entry.call]
            self._over.append(pulse)
            self._bell.set()

    async def _tell(self) -> None:
        """Tell of what ended, a little at a time."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            await asyncio.sleep(REST_S)
            while self._over:
                self._some()
                await asyncio.sleep(0)

    def _some(self) -> None:
        for _ in range(min(AT_ONCE, len(self._over))):
            self._ledger.ended(self._over.popleft())

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now = self._calls.clock.now()
            for pulse in self._pulses.values():
                pulse.look(now)
