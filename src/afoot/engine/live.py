"""A call while it lives: its work, its newest facts, and those who read along.

A follower is one flag and one position; it never delays the call. Here everything a tool raises is caught.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Set
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Self

from msgspec import Raw, Struct, field

from afoot.core.call import Call, Series
from afoot.core.facts import Answer, Entry, Fact, Finished, Question, Reading, Released, Reported, Result
from afoot.core.ports import Clock, Handle, Provider, Report, Tapes, Tool, Work
from afoot.core.trace import onward
from afoot.engine import remarks
from afoot.engine.endings import bad, crashed, fitting, told, too_large
from afoot.engine.watch import Noticing, Taken
from afoot.errors import RunnerDied, ToolError

if TYPE_CHECKING:
    from afoot.engine.engine import Engine
    from afoot.engine.trees import Below

BACKLOG = 1024  # facts, and readings at progress_hz 0, kept for followers that lag
SAMPLE_S = 1.0  # at most one reading a second goes into the history


class LoopClock:
    """The loop's time, counted from 1970: wall time that never jumps, and fake where the loop's is."""

    __slots__ = ("_loop", "offset")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.offset = time.time() - loop.time()

    def now(self) -> float:
        return self._loop.time() + self.offset

    def at(self, when: float, then: Callable[[], object]) -> Handle:
        return self._loop.call_at(when - self.offset, then)


class Live(Struct, eq=False):
    """A call, its work, its newest facts and its followers."""

    call: Call
    tool: Tool
    arguments: Raw = Raw()  # what the tool gets; in the facts are those that may be kept (S4)
    given: dict[str, Answer] = {}  # answers that came before their questions
    can_ask: bool | None = False  # whether its caller can be asked with a form; None: who knew is dead
    said: dict[str, Answer] = {}  # by question: answers not kept as they were given (S4), or come late
    secrets: tuple[tuple[Raw, Raw, int], Set[str]] | None = None  # of what it was given, what is not kept
    orphaned: int = 0  # how many of its questions, the first ones, were asked by attempts that died
    work: Work | None = None
    task: asyncio.Task[None] | None = None
    timer: Handle | None = None
    heard: float = 0.0
    due: float = inf  # no clock fires before; later a report counts only once they were looked at
    sampled: float = 0.0
    left_out: int = 0
    # Of those sampled: seconds on the clock, what was done, of what, and the seconds since the one before.
    points: list[tuple[float, float, float | None, float]] = []
    late_at: float = 0.0
    late: int = 0  # lines that it has logged since its end
    recorded: int = 0  # the seq of the last fact that may be seen
    unrecorded: bool = False
    backlog: deque[Entry] = field(default_factory=partial(deque, maxlen=BACKLOG))
    readings: deque[Reading] | None = None  # kept only while somebody wants every one
    followers: "list[Follower]" = []
    watchers: list[Noticing] = []  # who wants readings
    waiters: dict[str, asyncio.Future[Answer]] = {}
    series: Series = field(default_factory=Series)  # the numbers that callers have been sent (P4)
    round: int = 0
    attached: int = 0  # requests of the newest round that follow this call
    awaited: float = 0.0  # until when its caller is to come back from a round that asked nothing
    told: tuple[int, int] = (0, 0)  # how many facts and readings the request before had taken
    request: tuple[int | str, str] | None = None  # the id of the one that opened it, and its era's version
    provider: Provider | None = None
    gate: asyncio.Future[None] | None = None  # opened when it has its slot
    inner: bool = False  # made by a call of ours: its caller has paid for that one (G2)
    parent: "Live | None" = None
    below: "Below | None" = None  # once it has called a tool itself


class Follower:
    """Reads along with one call. `ring` is called when there is something to take."""

    __slots__ = ("_armed", "_clock", "_every", "_gap_s", "_next", "_wants", "live", "number", "ring", "seq")

    def __init__(self, live: Live, ring: Callable[[], object], clock: Clock, hz: float | None) -> None:
        """`hz` None: facts only; 0: every reading; else at most that many wakes a second for readings."""
        self.live = live
        self.seq, self.number = live.recorded, live.call.readings
        self.ring = ring
        self._clock, self._every, self._gap_s = clock, hz == 0, 1 / hz if hz else 0.0
        self._next, self._armed, self._wants = 0.0, False, hz is not None
        live.followers.append(self)
        if self._wants:
            live.watchers.append(self)
            if self._every and live.readings is None:
                live.readings = deque(maxlen=BACKLOG)

    def notice(self, now: float) -> None:
        """A reading came."""
        if self._armed:
            return
        self._armed = True
        if now >= self._next:
            self.ring()
        else:
            self._clock.at(self._next, self._due)

    def _due(self) -> None:
        self._armed = False
        self.ring()

    def take(self) -> Taken:
        """Everything since the last take: every fact, and the newest reading."""
        live = self.live
        facts: list[Fact | Reading] = []
        gap = 0
        if live.recorded > self.seq:
            facts = [entry.fact for entry in live.backlog if entry.seq > self.seq]
            gap = live.recorded - self.seq - len(facts)
            self.seq = live.recorded
        fresh = live.call.readings - self.number
        # A reading made after a fact waits until that fact may be seen, so that order is kept.
        if fresh and live.recorded == live.call.seq and self._wants:
            now = self._clock.now()
            if now < self._next and live.call.end is None:
                self.notice(now)  # woken by a fact, too early for the next reading
                return Taken(facts, gap)
            self.number += fresh
            self._next = now + self._gap_s
            newest: list[Fact | Reading] = [live.call.latest] if live.call.latest is not None else []
            if self._every and live.readings is not None:
                newest = list[Fact | Reading](live.readings)[-fresh:]
            merged: list[Fact | Reading] = []
            for fact in facts:  # at the same instant a reading comes after what opened, before what ended
                while newest and (newest[0].at < fact.at or type(fact) in (Finished, Released)):
                    merged.append(newest.pop(0))
                merged.append(fact)
            facts = merged + newest
        self._armed = False
        return Taken(facts, gap)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Read along no more."""
        self.live.followers.remove(self)
        if self._wants:
            self.live.watchers.remove(self)


class Attempt(Struct, eq=False):
    """A run as the engine gives it to a provider (`core.ports.Run`)."""

    engine: "Engine"
    live: Live
    attempt: int
    tapes: Tapes | None = None

    @property
    def id(self) -> str:
        return self.live.call.id

    @property
    def cancelled(self) -> str | None:
        return None if (cancel := self.live.call.cancel) is None else cancel.reason

    @property
    def resumed_from(self) -> Raw:
        return self.live.call.checkpoint

    @property
    def trace(self) -> dict[str, str]:
        return onward(self.live.call, self.attempt, self.engine.trees.trace is not None)

    @property
    def caller(self) -> str:
        return self.live.call.opened.caller

    def budget(self) -> tuple[float | None, float]:
        limits, call = self.live.call.opened.limits, self.live.call
        return limits.idle_s, limits.ceiling_s - call.on_clock(self.engine.clock.now())

    def report(
        self, progress: float | None, total: float | None, message: str | None, *, source: str = "tool"
    ) -> None:
        """Note a reading: seen at once, sampled into the history; nothing waits, nothing is encoded."""
        live, call, now = self.live, self.live.call, self.engine.clock.now()
        if now >= live.due:  # the loop was blocked, and a clock may have fired meanwhile (G4)
            self.engine.tick(live)
        if call.end is not None or call.attempt != self.attempt:
            self.content(Report(progress, total, message))
            return
        live.heard = now
        reading = Reading(now, progress, total, message, source)
        call.latest = reading
        call.readings += 1
        if live.readings is not None:
            live.readings.append(reading)
        if now - live.sampled >= SAMPLE_S:
            self.engine.recorder.sample(live, now)
        else:
            live.left_out += 1
        for follower in live.watchers:
            follower.notice(now)
        if live.parent is not None or live.below is not None:
            self.engine.trees.reported(live, reading)

    def content(self, report: Report) -> None:
        """Record a report that is more than numbers, or that comes too late."""
        live, now = self.live, self._heard()
        if live.call.end is not None:
            if now - live.late_at < SAMPLE_S and not report.partial:
                return  # a runaway tool fills no history
            live.late_at = now
        fit = fitting(report, self.engine, live.call)
        numbers = fit.progress, fit.total, fit.message
        fact = Reported(now, self.attempt, *numbers, fit.data, fit.partial, fit.checkpoint)
        self.engine.commit(live, fact)
        is_next = not live.points or live.call.on_clock(now) - live.points[-1][0] >= SAMPLE_S
        if live.call.end is None and fit.progress is not None and is_next:
            self.engine.recorder.sample(live, now, is_fact=True)
        if live.parent is not None or live.below is not None:
            self.engine.trees.reported(live, fact)

    def alive(self) -> None:
        """A heartbeat: it re-arms the idle limit and is no advance (C5)."""
        self._heard()

    def _heard(self) -> float:
        """The tool gave a sign of life, if it still counts; clocks that fired meanwhile come first."""
        live, now = self.live, self.engine.clock.now()
        if now >= live.due:
            self.engine.tick(live)
        if live.call.end is None and live.call.attempt == self.attempt:
            live.heard = now
            if live.parent is not None:
                self.engine.trees.heard(live, now)
        return now

    def log(self, text: str, level: str, logger: str) -> None:
        remarks.logged(self.engine, self.live, text, level, logger)

    async def ask(self, question: Question) -> Answer:
        return await self.engine.ask(self.live, question)

    def waiting(self, message: str | None) -> None:
        self.engine.trees.waiting(self.live, message)

    def hindered(self, by: str, hint: str) -> None:
        remarks.hindered(self.engine, self.live, self.attempt, by, hint)

    def spent(self, cpu_s: float) -> None:
        self.live.call.cpu_s += cpu_s

    async def call(self, tool: str, arguments: Raw, weight: float) -> Result:
        return await self.engine.trees.call(self.live, tool, arguments, weight)


async def supervise(engine: "Engine", live: Live) -> None:
    """Run the call's work to its end, whatever that is, and say how it ended."""
    assert live.work is not None
    call = live.call
    try:
        result = await live.work(Attempt(engine, live, call.attempt, engine.tapes))
    except asyncio.CancelledError:
        end = engine.cancelled(live)
    except RunnerDied as died:
        end = await engine.revived(live, died)
        if end is None:
            await supervise(engine, live)
            return
    except ToolError as error:
        end = engine.ending(live, "failed", told(engine, live, error))
    except (Exception, SystemExit) as error:
        end = engine.ending(live, "failed", crashed(engine, live, error))
    else:
        size = len(bytes(result.content)) + len(bytes(result.structured))
        if size > engine.max_result_bytes:
            end = too_large(engine, live, size)
        elif result.is_error:
            end = bad(engine, live, result)
        else:
            end = Finished(engine.clock.now(), "ok", result, None, call.cpu_s)
    engine.end(live, end)
