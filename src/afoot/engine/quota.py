"""What a caller may use: calls and processor time in a while, calls at once; and when it may again (G2)."""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from math import ceil
from typing import TYPE_CHECKING

from msgspec import Struct, field

from afoot.core.facts import Finished, Released
from afoot.engine.watch import Watcher
from afoot.errors import OverQuota
from afoot.tables import QuotaSettings

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

OPERATOR = "operator"  # whom only a table of this very name binds
MOST = 10_000  # callers that are remembered; who was silent longest makes room
MOST_NAMED = 300  # callers whose refusals are counted for each; those beyond are counted together
OTHER = "_OTHER"
SOON_S = 1.0  # after which it is worth asking again whether another call has ended


class Refusal(Struct, frozen=True):
    """A call that was over a quota: when, and which limit it was that it was over."""

    at: float
    limit: str


class Refusals(Counter[str]):
    """How many calls were over a quota, by caller; it outlives every change of the quotas."""

    def add(self, caller: str) -> None:
        """One more of this caller's."""
        self[caller if caller in self or len(self) < MOST_NAMED else OTHER] += 1


class Used(Struct):
    """What one caller has used within the while of its quota, and how often it wanted more."""

    calls: deque[float] = field(default_factory=deque)  # when
    cpu: deque[tuple[float, float]] = field(default_factory=deque)  # when, and how much
    cpu_s: float = 0.0  # all of it; summing up anew would take longer with every call
    refused: int = 0
    last: Refusal | None = None  # the newest of those

    def forget(self, before: float) -> None:
        """What was used before no longer counts."""
        while self.calls and self.calls[0] <= before:
            self.calls.popleft()
        while self.cpu and self.cpu[0][0] <= before:
            self.cpu_s -= self.cpu.popleft()[1]
        if not self.cpu:
            self.cpu_s = 0.0  # and not what is left of it by rounding

    def spend(self, at: float, cpu_s: float) -> None:
        """So much processor time was used."""
        self.cpu.append((at, cpu_s))
        self.cpu_s += cpu_s


class Quota:
    """The quotas in force, and what was used of them."""

    def __init__(self, tables: Mapping[str, QuotaSettings], engine: "Engine") -> None:
        self.tables = tables
        self._engine = engine
        self.used: dict[str, Used] = {}
        self._told: dict[str, float] = {}  # by call: the processor time that is counted already
        self._watcher = Watcher(engine.watchers, self._see)
        if any(one.cpu_s for one in tables.values()):
            self._watcher.__enter__()

    def close(self) -> None:
        """Count no more."""
        if self._watcher in self._engine.watchers:
            self._watcher.__exit__()

    def of(self, caller: str) -> QuotaSettings | None:
        """What is set for a caller: by its name, else by the first pattern that means it."""
        if caller in self.tables or caller == OPERATOR:
            return self.tables.get(caller)
        return next((one for pattern, one in self.tables.items() if fnmatchcase(caller, pattern)), None)

    def concurrency(self, caller: str) -> int:
        """How many calls of a caller run at once; others wait in the queue (C8). 0: any number."""
        return 0 if (limits := self.of(caller)) is None else limits.concurrency

    def take(self, caller: str, now: float, living: Callable[[], int]) -> None:
        """Count one more call of a caller; raises OverQuota, and then it is not counted."""
        limits = self.of(caller)
        if limits is None:
            return
        used = self.spent(caller, now, limits)
        if (why := over(limits, used, now, living)) is not None:
            what, after_s = why
            used.refused, used.last = used.refused + 1, Refusal(now, what)
            self._engine.refused.add(caller)
            raise OverQuota(f"{caller} is over its quota: {what}; try again in {_told(after_s)} s", after_s)
        if limits.calls:
            used.calls.append(now)

    def spent(self, caller: str, now: float, limits: QuotaSettings) -> Used:
        """What a caller has used that still counts."""
        used = self.used.pop(caller, None) or Used()
        self.used[caller] = used  # the last to be heard of
        if len(self.used) > MOST:
            del self.used[next(iter(self.used))]
        used.forget(now - limits.per_s)
        return used

    def _see(self) -> None:
        """A fact was recorded: an end may tell of processor time."""
        for entry in self._watcher.take():
            fact = entry.fact
            if not isinstance(fact, Finished | Released):
                continue
            before = self._told.pop(entry.call, 0.0)
            caller = self._engine[entry.call].call.opened.caller
            limits = self.of(caller)
            if limits is not None and limits.cpu_s and fact.cpu_s > before:
                self.spent(caller, fact.at, limits).spend(fact.at, fact.cpu_s - before)
            if isinstance(fact, Finished):
                self._told[entry.call] = fact.cpu_s


def over(
    limits: QuotaSettings, used: Used, now: float, living: Callable[[], int]
) -> tuple[str, float] | None:
    """What there is too much of, and after how long there is less."""
    if limits.calls and len(used.calls) >= limits.calls:
        after_s = used.calls[len(used.calls) - limits.calls] + limits.per_s - now
        return f"{limits.calls} calls in {_told(limits.per_s)} s", max(0.001, after_s)
    if limits.cpu_s and (spent := used.cpu_s) >= limits.cpu_s:
        for at, one in used.cpu:
            spent -= one
            if spent < limits.cpu_s:
                told = f"{_told(limits.cpu_s)} s of processor time in {_told(limits.per_s)} s"
                return told, max(0.001, at + limits.per_s - now)
    if limits.concurrent and living() >= limits.concurrent:
        return f"{limits.concurrent} calls at once", SOON_S
    return None


def _told(seconds: float) -> str:
    """Seconds as people read them: never as a power of ten."""
    return f"{seconds:.3g}" if seconds < 100 else f"{ceil(seconds)}"
