"""Hooks that only look on: they are told what happens to calls, and never delay one (K1)."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, Self

from msgspec import Struct

from afoot.core.call import Call
from afoot.core.facts import Asked, Entry, Finished, Logged, Reading, Started
from afoot.core.ports import Clock, Tool
from afoot.providers.hooks import Event, Hooks, told_end, told_progress, told_question
from afoot.providers.hooks_run import Attached

KEPT: Final = 1000  # events that wait for one hook; when there are more, the oldest go
AT_ONCE: Final = 4  # runs of one hook; those about one call come one after the other
PACE_S: Final = 1.0  # between two reports of one call; its last is always told
DRAIN_S: Final = 5.0  # for what still waits when the gateway closes


class Lived(Protocol):
    """A call while it lives."""

    @property
    def call(self) -> Call: ...

    @property
    def tool(self) -> Tool: ...


class Following(Protocol):
    """Somebody who reads along with one call."""

    number: int

    def take(self) -> object: ...

    def close(self) -> None: ...


class Calls(Protocol):
    """Where calls live, as far as somebody who looks on must know it."""

    clock: Any
    watchers: list[Any]

    def __contains__(self, call_id: str) -> bool: ...

    def __getitem__(self, call_id: str) -> Any: ...

    def follow(self, live: Any, ring: Callable[[], object], hz: float | None) -> Any: ...

    def commit(self, live: Any, wish: Any) -> object: ...


class Pace(Struct, eq=False):
    """How far the hooks of one call know of its progress."""

    following: Following
    told: Reading | None = None
    next: float = 0.0
    timer: asyncio.TimerHandle | None = None


class Echoes:
    """Follows every call and tells the hooks. Opened with `async with`, before calls come."""

    def __init__(self, hooks: Hooks, calls: Calls) -> None:
        self._hooks = hooks
        self._calls = calls
        self._lines: dict[Attached, Line] = {}
        self._paces: dict[str, Pace] = {}
        self._notes: dict[str, list[str]] = {}  # for the logs of calls that have not started

    async def __aenter__(self) -> Self:
        self._hooks.load()
        self._hooks.tell = self._tell
        self._calls.watchers.append(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._calls.watchers.remove(self)
        lines = list(self._lines.values())
        await asyncio.gather(*(line.drain(DRAIN_S) for line in lines))

    def see(self, entry: Entry) -> None:
        """A fact was recorded."""
        fact = entry.fact
        if type(fact) in (Started, Asked, Finished) and entry.call in self._calls:
            live: Lived = self._calls[entry.call]
            match fact:
                case Started():
                    self._started(live)
                case Asked() if fact.question.kind != "below":
                    self._put("on_question", live, lambda call: told_question(call, fact.question))
                case Finished():
                    self._finished(live, fact)

    def _started(self, live: Lived) -> None:
        notes = self._notes.pop(live.call.id, ())
        if notes:
            loop = asyncio.get_running_loop()
            for text in notes:  # not now: a fact is being made known
                loop.call_soon(self._tell, live.call.id, text)
        if live.call.id in self._paces or not self._hooks.of("on_progress", live.tool):
            return
        following = self._calls.follow(live, lambda: self._look(live), 1 / PACE_S)
        following.number = 0  # what it reported before this was recorded counts as new
        self._paces[live.call.id] = Pace(following)
        self._look(live)

    def _look(self, live: Lived) -> None:
        """It may have reported."""
        pace = self._paces.get(live.call.id)
        if pace is None:
            return
        pace.following.take()
        if live.call.latest is pace.told or pace.timer is not None:
            return
        clock: Clock = self._calls.clock
        wait_s = pace.next - clock.now()
        if wait_s <= 0:
            self._progress(live, pace)
        else:
            pace.timer = asyncio.get_running_loop().call_later(wait_s, self._progress, live, pace)

    def _progress(self, live: Lived, pace: Pace) -> None:
        reading = live.call.latest
        pace.timer, pace.next = None, self._calls.clock.now() + PACE_S
        if reading is not None and reading is not pace.told:
            pace.told = reading
            self._put("on_progress", live, lambda call: told_progress(call, reading))

    def _finished(self, live: Lived, end: Finished) -> None:
        self._notes.pop(live.call.id, None)
        pace = self._paces.pop(live.call.id, None)
        if pace is not None:
            if pace.timer is not None:
                pace.timer.cancel()
            pace.following.close()
            self._progress(live, pace)
        if live.call.started is not None:
            self._put("after_call", live, lambda call: told_end("after_call", call, end))
        self._put("on_end", live, lambda call: told_end("on_end", call, end))

    def _put(self, on: str, live: Lived, told: Callable[[Call], Event]) -> None:
        for one in self._hooks.of(on, live.tool):
            if one not in self._lines:
                self._lines[one] = Line(self._hooks, one)
            self._lines[one].put(live.call.id, told(live.call))

    def _tell(self, call_id: str, text: str) -> None:
        """A line for the log of a call, now or once it runs; after its end the gateway's log has it."""
        if call_id not in self._calls:
            return
        live: Lived = self._calls[call_id]
        if live.call.started is not None and live.call.released is None:
            self._calls.commit(live, Logged(self._calls.clock.now(), text, "warning", "hooks"))
        elif live.call.end is None:
            self._notes.setdefault(call_id, []).append(text)


class Line:
    """What waits to be told to one hook, in order; several calls at once, one event of a call at a time."""

    def __init__(self, hooks: Hooks, one: Attached) -> None:
        self._hooks = hooks
        self._one = one
        self._waiting: deque[tuple[str, Event]] = deque()
        self._running: dict[str, asyncio.Task[None]] = {}  # by call

    def put(self, call: str, event: Event) -> None:
        """One more; if too many wait the oldest goes, and is counted."""
        if len(self._waiting) >= KEPT:
            self._waiting.popleft()
            self._hooks.counted["dropped"] += 1
        self._waiting.append((call, event))
        self._go()

    async def drain(self, within_s: float) -> None:
        """Wait until everything is told, or the time is over; then what runs is killed."""
        deadline = asyncio.get_running_loop().time() + within_s
        while self._running:
            left_s = deadline - asyncio.get_running_loop().time()
            tasks = list(self._running.values())
            done, _ = await asyncio.wait(tasks, timeout=max(0.0, left_s), return_when="FIRST_COMPLETED")
            if not done:
                self._hooks.counted["dropped"] += len(tasks) + len(self._waiting)
                self._waiting.clear()
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    def _go(self) -> None:
        while len(self._running) < AT_ONCE:
            found = next((item for item in self._waiting if item[0] not in self._running), None)
            if found is None:
                return
            self._waiting.remove(found)
            call, event = found
            task = asyncio.get_running_loop().create_task(self._hooks.show(self._one, call, event))
            self._running[call] = task
            task.add_done_callback(lambda _, call=call: self._done(call))

    def _done(self, call: str) -> None:
        del self._running[call]
        self._go()
