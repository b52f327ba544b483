"""`ChildPool` keeps the child processes of one gateway ready, by module, and hands them out for calls."""

import asyncio
import logging
import signal
from collections import Counter, deque
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Final, Self

from afoot.config.tables import IsolationSettings
from afoot.errors import CallerError, RunnerDied, ToolError
from afoot.providers.exit_status import describe_exit
from afoot.providers.isolation.child_process import END_S, ChildProcess
from afoot.providers.isolation.fork_client import ForkClient, FrameConnection, FrameReceiver
from afoot.providers.isolation.frames import ChildExit, ChildReady, ForkChild, IpcMessage, ToolSource

SPARE_S: Final = 60.0  # an idle child beyond the configured number is kept so long
RETRY_PAUSES_S: Final = (0.1, 1.0, 5.0, 30.0)  # before the next try of a module whose child failed
_log = logging.getLogger("afoot.providers")

is_loading = False
"""Whether this process is a child that is loading its module now. `child_main` sets it."""


class ChildPool:
    """The children of one gateway, on its loop. The first child that is needed starts the fork server."""

    def __init__(self, settings: IsolationSettings = IsolationSettings()) -> None:  # noqa: B008
        self.settings = settings
        self._kept_sources: frozenset[ToolSource] = frozenset()
        self._all: dict[int, ChildProcess] = {}
        self._idle: dict[ToolSource, list[ChildProcess]] = {}
        self._waiters: dict[ToolSource, deque[asyncio.Future[ChildProcess]]] = {}
        self._failures: Counter[ToolSource] = Counter()
        self._retries: dict[ToolSource, asyncio.TimerHandle] = {}
        self._numbers = count(1)
        self._fork_client: ForkClient | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        fork_client = self._fork_client
        self._is_closed = True
        self._kept_sources = frozenset()
        with_lifespan = [child for child in self._all.values() if child.has_lifespan]
        for child in with_lifespan:
            child.end()
        if with_lifespan:
            await asyncio.wait([child.exited for child in with_lifespan], timeout=END_S)
        self.close()
        if fork_client is not None:
            await fork_client.wait_closed()

    def close(self) -> None:
        """End all children and the fork server."""
        self._kept_sources = frozenset()
        self._is_closed = True
        fork_client = self._fork_client
        self._fork_client = None
        if fork_client is not None and fork_client.close():
            self.fork_server_gone("the gateway is closing")

    def keep_ready(self, sources: Iterable[ToolSource]) -> None:
        """Keep children ready for these modules, and for no others."""
        self._kept_sources = frozenset(sources)
        for source in tuple(self._idle):
            while source not in self._kept_sources and self._idle[source]:
                self._idle[source].pop().end()
        for child in tuple(self._all.values()):
            is_needed = child.ready.done() or self._waiters.get(child.source)
            if child.source not in self._kept_sources and not is_needed:
                child.signal(signal.SIGKILL)
        for source in self._kept_sources:
            self._failures.pop(source, None)
            retry = self._retries.pop(source, None)
            if retry is not None:
                retry.cancel()
            self._refill(source)

    def is_ready(self, source: ToolSource) -> bool:
        """Whether a call can begin at once."""
        return any(child.connection is not None for child in self._idle.get(source, ()))

    async def wait_until_ready(self, source: ToolSource, start_s: float) -> None:
        """Wait until a call can begin; raises ToolError or RunnerDied saying why none can."""
        try:
            self._hand_out(await self.acquire(source))
        except asyncio.CancelledError:
            self._kill_slow_starts(source, 2 * start_s)
            raise

    async def acquire(self, source: ToolSource) -> ChildProcess:
        """A child that is ready; raises ToolError or RunnerDied saying why there is none."""
        if self._is_closed:
            raise RunnerDied("no child process: the gateway is closing", began=False)
        idle = self._idle.get(source, [])
        while idle:
            child = idle.pop()
            if child.connection is not None:  # else it is dying, which the fork server will report
                self._refill(source)
                return child
        waiter: asyncio.Future[ChildProcess] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(source, deque()).append(waiter)
        self._refill(source)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._hand_out(waiter.result())
            raise

    def release(self, child: ChildProcess, is_reusable: bool) -> None:
        """Take back a child whose call is over; one that is not reusable was killed by its call."""
        self._failures.pop(child.source, None)
        if is_reusable:
            self._hand_out(child)

    def accept_child(self, connection: FrameConnection, ready: ChildReady) -> FrameReceiver | None:
        """Take the connection of a child that is ready, or the reason why it never will be."""
        child = self._all.get(ready.child)
        if child is None or child.connection is not None or child.ready.done():
            return None
        if ready.error:
            name = child.source.file or child.source.module
            what = "" if name in ready.error else f" cannot load {name}"
            text = f"a child process{what}: {ready.error}"
            child.ready.set_exception(ToolError.internal(text, code="start_failed"))
            return None
        child.connection = connection
        child.has_lifespan = ready.has_lifespan
        child.ready.set_result(None)
        return child

    def receive(self, number: int, message: IpcMessage) -> None:
        """Take a message of the fork server about a child."""
        child = self._all.get(number)
        if child is None:
            return
        if isinstance(message, ChildExit):
            del self._all[number]
            idle = self._idle.get(child.source, [])
            if child in idle:
                idle.remove(child)
                name = child.source.file or child.source.module
                how = describe_exit(message.code)
                self._note_failure(
                    child.source, f"a child process for {name} {how} while it waited for a call"
                )
        child.receive(message)
        if isinstance(message, ChildExit):
            self._refill(child.source)

    def fork_server_gone(self, why: str) -> None:
        """The fork server is gone, and with it every child."""
        self._fork_client = None
        waiters = [waiter for queue in self._waiters.values() for waiter in queue if not waiter.done()]
        self._waiters.clear()
        for waiter in waiters:
            waiter.set_exception(RunnerDied(f"no child process: {why}", began=False))
        for number in tuple(self._all):
            connection = self._all[number].connection
            if connection is not None:
                connection.close()
            self.receive(number, ChildExit(number, -int(signal.SIGKILL), why=why))

    def _hand_out(self, child: ChildProcess) -> None:
        """Give a free child to the first that waits for one, or keep it idle, or end it."""
        if child.exited.done() or child.connection is None:
            return
        waiters = self._waiters.get(child.source, deque())
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(child)
                return
        idle = self._idle.setdefault(child.source, [])
        if child.source not in self._kept_sources:
            child.end()
            return
        idle.append(child)
        if len(idle) > self.settings.warm:
            asyncio.get_running_loop().call_later(SPARE_S, self._kill_if_spare, child)

    def _kill_if_spare(self, child: ChildProcess) -> None:
        """End an idle child that a busy moment needed, and that no call has needed since."""
        idle = self._idle.get(child.source, [])
        if child in idle and len(idle) > self.settings.warm:
            idle.remove(child)
            child.end()

    def _kill_slow_starts(self, source: ToolSource, after_s: float) -> None:
        """Kill the children that have been loading for longer than this, after a start was given up."""
        now = asyncio.get_running_loop().time()
        for child in tuple(self._all.values()):
            if child.source == source and not child.ready.done() and now - child.started_at > after_s:
                child.signal(signal.SIGKILL)

    def _refill(self, source: ToolSource) -> None:
        """Start one child for each waiter, and so many that the configured number is kept."""
        living = [child for child in self._all.values() if child.source == source and not child.is_killed]
        starting = sum(not child.ready.done() for child in living)
        waiting = sum(not waiter.done() for waiter in self._waiters.get(source, ()))
        is_kept = source in self._kept_sources and not self._failures[source]
        kept = self.settings.warm if is_kept else 0
        for _ in range(max(waiting - starting, kept - len(living))):
            self._start_child(source)

    def _start_child(self, source: ToolSource) -> None:
        if is_loading:  # the child would load the module, which starts a child, and so on without end
            told = 'put what starts it below `if __name__ == "__main__":`'
            raise CallerError(f"it starts isolated tools while a child process loads it: {told}")
        if self._fork_client is None:
            self._fork_client = ForkClient(self, self.settings)
        child = ChildProcess(next(self._numbers), source, self._fork_client.send)
        self._all[child.number] = child
        child.ready.add_done_callback(partial(self._on_start, child))
        self._fork_client.send(ForkChild(child.number, source))

    def _on_start(self, child: ChildProcess, ready: "asyncio.Future[None]") -> None:
        error = ready.exception()
        if error is None:
            self._hand_out(child)
            return
        waiters = self._waiters.get(child.source, deque())
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_exception(error)
                if isinstance(error, RunnerDied):  # the next child may start well
                    break
        self._note_failure(child.source, str(error))

    def _note_failure(self, source: ToolSource, why: str) -> None:
        """Try again later, with growing pauses, a limited number of times; a call tries in any case.

        A call that ran resets the count. Failures before the next retry count as one: all idle children may
        have died at once.
        """
        if source in self._kept_sources:
            _log.warning("%s", why)
        if source in self._retries:
            return
        self._failures[source] += 1
        if source in self._kept_sources:
            pause_s = RETRY_PAUSES_S[min(self._failures[source], len(RETRY_PAUSES_S)) - 1]
            loop = asyncio.get_running_loop()
            self._retries[source] = loop.call_later(pause_s, self._retry, source)

    def _retry(self, source: ToolSource) -> None:
        self._retries.pop(source, None)
        is_worth_it = self._failures[source] < len(RETRY_PAUSES_S) and not self.is_ready(source)
        if source in self._kept_sources and is_worth_it:
            self._start_child(source)
