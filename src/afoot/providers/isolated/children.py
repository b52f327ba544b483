"""All child processes of one gateway: kept ready by module, taken for a call, replaced when they are gone."""

import asyncio
import logging
import signal
from collections import Counter, deque
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Final, Self

from afoot.core.isolation import Isolation
from afoot.errors import CallerError, RunnerDied, ToolError
from afoot.providers.exits import ended
from afoot.providers.isolated.child import Child
from afoot.providers.isolated.frames import Died, Fork, Frame, Hello, Source
from afoot.providers.isolated.line import Ear, Line
from afoot.providers.isolated.nursery import Nursery

SPARE_S: Final = 60.0  # so long a child is kept that only a busy moment needed
PAUSE_S: Final = (0.1, 1.0, 5.0, 30.0)  # before the next try of a module whose child came to nothing
_log = logging.getLogger("afoot.providers")

is_loading = False
"""Whether this is a child that loads its module just now."""


class Children:
    """The children of one gateway, on its loop. The first that is wanted starts their keeper."""

    def __init__(self, settings: Isolation = Isolation()) -> None:  # noqa: B008
        self.settings = settings
        self._wanted: frozenset[Source] = frozenset()
        self._all: dict[int, Child] = {}
        self._idle: dict[Source, list[Child]] = {}
        self._waiters: dict[Source, deque[asyncio.Future[Child]]] = {}
        self._failures: Counter[Source] = Counter()
        self._retries: dict[Source, asyncio.TimerHandle] = {}
        self._numbers = count(1)
        self._nursery: Nursery | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        nursery = self._nursery
        self.close()
        if nursery is not None:
            await nursery.ended()

    def close(self) -> None:
        """End all of them, and the keeper."""
        self._wanted, self._is_closed = frozenset(), True
        nursery, self._nursery = self._nursery, None
        if nursery is not None and nursery.close():
            self.orphaned("the gateway is closing")

    def follow(self, sources: Iterable[Source]) -> None:
        """Keep children ready for these modules, and for no others."""
        self._wanted = frozenset(sources)
        for source in tuple(self._idle):
            while source not in self._wanted and self._idle[source]:
                self._idle[source].pop().signal(signal.SIGKILL)
        for child in tuple(self._all.values()):
            if child.source not in self._wanted and not (
                child.ready.done() or self._waiters.get(child.source)
            ):
                child.signal(signal.SIGKILL)
        for source in self._wanted:
            self._failures.pop(source, None)
            if (retry := self._retries.pop(source, None)) is not None:
                retry.cancel()
            self._refill(source)

    def is_ready(self, source: Source) -> bool:
        """Whether a call can begin at once."""
        return any(one.line is not None for one in self._idle.get(source, ()))

    async def ready(self, source: Source, start_s: float) -> None:
        """Wait until a call can begin; raises ToolError or RunnerDied saying why none can."""
        try:
            self._put(await self.take(source))
        except asyncio.CancelledError:
            self._give_up(source, 2 * start_s)
            raise

    async def take(self, source: Source) -> Child:
        """A child that is ready; raises ToolError or RunnerDied saying why there is none."""
        if self._is_closed:
            raise RunnerDied("no child process: the gateway is closing", began=False)
        idle = self._idle.get(source, [])
        while idle:
            child = idle.pop()
            if child.line is not None:  # else it is dying, which its keeper will say
                self._refill(source)
                return child
        waiter: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(source, deque()).append(waiter)
        self._refill(source)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._put(waiter.result())
            raise

    def give_back(self, child: Child, is_fit: bool) -> None:
        """A call is over in it; one that is not fit is ended by whoever had it."""
        self._failures.pop(child.source, None)
        if is_fit:
            self._put(child)

    def find(self, line: Line, hello: Hello) -> Ear | None:
        """A child calls in: it is ready, or says why it will never be."""
        child = self._all.get(hello.child)
        if child is None or child.line is not None or child.ready.done():
            return None
        if hello.error:
            name = child.source.file or child.source.module
            what = "" if name in hello.error else f" cannot load {name}"
            text = f"a child process{what}: {hello.error}"
            child.ready.set_exception(ToolError.internal(text, code="start_failed"))
            return None
        child.line = line
        child.ready.set_result(None)
        return child

    def hear(self, number: int, said: Frame) -> None:
        """From the keeper, about a child."""
        child = self._all.get(number)
        if child is None:
            return
        if isinstance(said, Died):
            del self._all[number]
            if child in (idle := self._idle.get(child.source, [])):
                idle.remove(child)
                name = child.source.file or child.source.module
                what = f"a child process for {name} {ended(said.code)} while it waited for a call"
                self._failed(child.source, what)
        child.hear(said)
        if isinstance(said, Died):
            self._refill(child.source)

    def orphaned(self, why: str) -> None:
        """The keeper is gone, and with it every child."""
        self._nursery = None
        waiters = [one for waiting in self._waiters.values() for one in waiting if not one.done()]
        self._waiters.clear()
        for waiter in waiters:
            waiter.set_exception(RunnerDied(f"no child process: {why}", began=False))
        for number in tuple(self._all):
            if (line := self._all[number].line) is not None:
                line.close()
            self.hear(number, Died(number, -int(signal.SIGKILL), why=why))

    def _put(self, child: Child) -> None:
        """Give it to who waits for one, or keep it ready, or end it."""
        if child.gone.done() or child.line is None:
            return
        waiters = self._waiters.get(child.source, deque())
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(child)
                return
        idle = self._idle.setdefault(child.source, [])
        if child.source not in self._wanted:
            child.signal(signal.SIGKILL)
            return
        idle.append(child)
        if len(idle) > self.settings.warm:
            asyncio.get_running_loop().call_later(SPARE_S, self._retire, child)

    def _retire(self, child: Child) -> None:
        """One that a busy moment needed, and that nobody has needed since."""
        idle = self._idle.get(child.source, [])
        if child in idle and len(idle) > self.settings.warm:
            idle.remove(child)
            child.signal(signal.SIGKILL)

    def _give_up(self, source: Source, after_s: float) -> None:
        """Somebody has waited in vain: what has been loading for so long hangs."""
        now = asyncio.get_running_loop().time()
        for child in tuple(self._all.values()):
            if child.source == source and not child.ready.done() and now - child.born > after_s:
                child.signal(signal.SIGKILL)

    def _refill(self, source: Source) -> None:
        """Have one on its way for each who waits, and as many in all as are to be kept."""
        there = [one for one in self._all.values() if one.source == source and not one.is_doomed]
        on_the_way = sum(not one.ready.done() for one in there)
        waiting = sum(not one.done() for one in self._waiters.get(source, ()))
        kept = self.settings.warm if source in self._wanted and not self._failures[source] else 0
        for _ in range(max(waiting - on_the_way, kept - len(there))):
            self._start(source)

    def _start(self, source: Source) -> None:
        if is_loading:  # it would start a child that loads it, and so on without end
            told = 'put what starts it below `if __name__ == "__main__":`'
            raise CallerError(f"it starts isolated tools while a child process loads it: {told}")
        if self._nursery is None:
            self._nursery = Nursery(self, self.settings)
        child = Child(next(self._numbers), source, self._nursery.tell)
        self._all[child.number] = child
        child.ready.add_done_callback(partial(self._came, child))
        self._nursery.tell(Fork(child.number, source))

    def _came(self, child: Child, ready: "asyncio.Future[None]") -> None:
        error = ready.exception()
        if error is None:
            self._put(child)
            return
        waiters = self._waiters.get(child.source, deque())
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_exception(error)
                if isinstance(error, RunnerDied):  # another may have more luck
                    break
        self._failed(child.source, str(error))

    def _failed(self, source: Source, why: str) -> None:
        """Try again later, and not for ever; a call tries in any case, and once one has run all is well.

        What fails until then is of the same try: all that were kept ready may have gone at once.
        """
        if source in self._wanted:
            _log.warning("%s", why)
        if source in self._retries:
            return
        self._failures[source] += 1
        if source in self._wanted:
            pause_s = PAUSE_S[min(self._failures[source], len(PAUSE_S)) - 1]
            loop = asyncio.get_running_loop()
            self._retries[source] = loop.call_later(pause_s, self._again, source)

    def _again(self, source: Source) -> None:
        self._retries.pop(source, None)
        if source in self._wanted and self._failures[source] < len(PAUSE_S) and not self.is_ready(source):
            self._start(source)
