"""`Quota` counts what callers use: calls and processor time in a window of time, calls at once (G2).

A caller that is over its quota is told after how long it may call again.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from math import ceil

from msgspec import Struct, field

from afoot.config.tables import QuotaSettings
from afoot.core.facts import Finished, Released
from afoot.engine.followers import Watcher
from afoot.errors import OverQuota

OPERATOR = "operator"  # whom only a table of this very name binds
MAX_CALLERS = 10_000  # that are remembered; the one that was silent longest makes room
MAX_NAMED_CALLERS = 300  # whose refusals are counted for each; those beyond are counted together
OTHER = "_OTHER"
SOON_S = 1.0  # after which it is worth asking again whether another call has ended


class QuotaRefusal(Struct, frozen=True):
    """A call that was over a quota: when, and which limit it was that it was over."""

    at: float
    limit: str


class RefusalCounts(Counter[str]):
    """The number of calls over a quota, by caller; it outlives every change of the quotas."""

    def add(self, caller: str) -> None:
        """Count one more refusal of this caller."""
        self[caller if caller in self or len(self) < MAX_NAMED_CALLERS else OTHER] += 1


class QuotaUsage(Struct):
    """The calls and processor time of one caller in the window of its quota, and its refusals."""

    calls: deque[float] = field(default_factory=deque)  # when
    cpu: deque[tuple[float, float]] = field(default_factory=deque)  # when, and how much
    cpu_s: float = 0.0  # all of it; summing up anew would take longer with every call
    refused: int = 0
    last: QuotaRefusal | None = None  # the newest of those

    def forget(self, before: float) -> None:
        """Forget all that was used before this instant."""
        while self.calls and self.calls[0] <= before:
            self.calls.popleft()
        while self.cpu and self.cpu[0][0] <= before:
            self.cpu_s -= self.cpu.popleft()[1]
        if not self.cpu:
            self.cpu_s = 0.0  # and not what is left of it by rounding

    def spend(self, at: float, cpu_s: float) -> None:
        """Count so much processor time."""
        self.cpu.append((at, cpu_s))
        self.cpu_s += cpu_s


class Quota:
    """The quotas in force, and what was used of them.

    `watchers` are those of the engine, `caller_of` gives the caller of a living call, and `refusals` counts
    what is refused. `used` is what a quota before this one has counted, which still counts.
    """

    def __init__(
        self,
        tables: Mapping[str, QuotaSettings],
        watchers: list[Watcher],
        caller_of: Callable[[str], str],
        refusals: RefusalCounts,
        used: dict[str, QuotaUsage] | None = None,
    ) -> None:
        self.tables = tables
        self.used = used or {}
        self._watchers = watchers
        self._caller_of = caller_of
        self._refusals = refusals
        self._counted: dict[str, float] = {}  # by call: the processor time that is counted already
        self._watcher = Watcher(watchers, self._on_facts)
        if any(one.cpu_s for one in tables.values()):
            self._watcher.__enter__()

    def close(self) -> None:
        """Count no more."""
        if self._watcher in self._watchers:
            self._watcher.__exit__()

    def limits_of(self, caller: str) -> QuotaSettings | None:
        """The limits of a caller: by its name, else by the first pattern that means it."""
        if caller in self.tables or caller == OPERATOR:
            return self.tables.get(caller)
        return next((one for pattern, one in self.tables.items() if fnmatchcase(caller, pattern)), None)

    def concurrency(self, caller: str) -> int:
        """The number of calls of a caller that run at once; others wait in the queue (C8). 0: no limit."""
        return 0 if (limits := self.limits_of(caller)) is None else limits.concurrency

    def take(self, caller: str, now: float, living: Callable[[], int]) -> None:
        """Count one more call of a caller; raises OverQuota, and then it is not counted.

        `living` counts the calls of this caller that live.
        """
        limits = self.limits_of(caller)
        if limits is None:
            return
        used = self.spent(caller, now, limits)
        if (why := exceeded_limit(limits, used, now, living)) is not None:
            what, after_s = why
            used.refused += 1
            used.last = QuotaRefusal(now, what)
            self._refusals.add(caller)
            text = f"{caller} is over its quota: {what}; try again in {_seconds(after_s)} s"
            raise OverQuota(text, after_s)
        if limits.calls:
            used.calls.append(now)

    def spent(self, caller: str, now: float, limits: QuotaSettings) -> QuotaUsage:
        """The usage of a caller that still counts."""
        used = self.used.pop(caller, None) or QuotaUsage()
        self.used[caller] = used  # the last to be heard of
        if len(self.used) > MAX_CALLERS:
            del self.used[next(iter(self.used))]
        used.forget(now - limits.per_s)
        return used

    def _on_facts(self) -> None:
        """Count the processor time that the ends of calls tell of."""
        for entry in self._watcher.take():
            fact = entry.fact
            if not isinstance(fact, Finished | Released):
                continue
            before = self._counted.pop(entry.call, 0.0)
            caller = self._caller_of(entry.call)
            limits = self.limits_of(caller)
            if limits is not None and limits.cpu_s and fact.cpu_s > before:
                self.spent(caller, fact.at, limits).spend(fact.at, fact.cpu_s - before)
            if isinstance(fact, Finished):
                self._counted[entry.call] = fact.cpu_s


def exceeded_limit(
    limits: QuotaSettings, used: QuotaUsage, now: float, living: Callable[[], int]
) -> tuple[str, float] | None:
    """The limit that is used up, in words, and the seconds until it is no more; None if none is."""
    if limits.calls and len(used.calls) >= limits.calls:
        after_s = used.calls[len(used.calls) - limits.calls] + limits.per_s - now
        return f"{limits.calls} calls in {_seconds(limits.per_s)} s", max(0.001, after_s)
    if limits.cpu_s and (spent := used.cpu_s) >= limits.cpu_s:
        for at, one in used.cpu:
            spent -= one
            if spent < limits.cpu_s:
                text = f"{_seconds(limits.cpu_s)} s of processor time in {_seconds(limits.per_s)} s"
                return text, max(0.001, at + limits.per_s - now)
    if limits.concurrent and living() >= limits.concurrent:
        return f"{limits.concurrent} calls at once", SOON_S
    return None


def _seconds(seconds: float) -> str:
    """Seconds as people read them: never as a power of ten."""
    return f"{seconds:.3g}" if seconds < 100 else f"{ceil(seconds)}"
