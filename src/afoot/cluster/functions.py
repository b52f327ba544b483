"""`WorkerFunctions` offers the functions of all workers of a cluster, and has their calls run there (D1).

It is a provider like any other: the engine's clocks, questions and end of a call are the owner's. A call that
no worker has begun yet is no silence of its tool.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

from msgspec import DecodeError, Raw, json

from afoot.cluster.lease import Member
from afoot.cluster.runs import (
    KEEP_S,
    TELL_WORKER,
    WANT,
    OfferedTool,
    WorkerInfo,
    read_from_worker,
    read_worker,
    tool_of,
)
from afoot.core.facts import NOTHING, Result
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import RunnerDied, StoreError, UnknownName
from afoot.providers.arguments import check_arguments
from afoot.providers.isolation.child_process import error_for_trouble
from afoot.providers.isolation.frames import (
    CallDone,
    CancelCall,
    FromChild,
    IpcMessage,
    ResourceLimits,
    RunCall,
)
from afoot.providers.isolation.relay import RunRelay
from afoot.store.redis.journal import RedisJournal

SERVER: Final = "worker"  # the server whose tools are functions on workers
LOOK_S: Final = 0.5  # between two looks whether the worker of a call lives, or which one has begun it
KEEP_OFFER_S: Final = 60.0  # for which a tool is offered whose workers have all left
STOPPED: Final = "WorkerStopped"  # the kind of the error of a function that its worker ended by itself

_log = logging.getLogger("afoot.cluster")


class Queue(Protocol):
    """The queue to the workers (`cluster.queue.FunctionQueue`)."""

    async def add(self, call: str, attempt: int, body: str) -> None: ...

    async def withdraw(self, call: str, attempt: int) -> None: ...

    async def waiting(self) -> int: ...


class WorkerFunctions:
    """The functions of all workers. `look` takes in which workers there are."""

    def __init__(self, journal: RedisJournal, open_queue: Callable[[], Awaitable[Queue]]) -> None:
        self._journal = journal
        self._open_queue = open_queue
        self._queue: Queue | None = None
        self._workers: dict[str, WorkerInfo] = {}
        self._dead: set[str] = set()
        self._descriptions: list[bytes] = []
        self._seen: dict[str, tuple[OfferedTool, float]] = {}  # and when it was seen last
        self._offered: dict[str, OfferedTool] = {}
        self._offer_before: tuple[int, list[str]] = (0, [])
        self._tools: tuple[Tool, ...] = ()
        self._calls: dict[tuple[str, int], WorkerCall] = {}
        self._came = asyncio.Event()

    @property
    def name(self) -> str:
        return SERVER

    def tools(self) -> Sequence[Tool]:
        return self._tools

    def look(self, members: Sequence[Member]) -> bool:
        """Take in the workers that were heard of; True if the tools on offer have changed."""
        self._dead = {one.id for one in members if not one.lives}
        descriptions = [one.description for one in members]
        if descriptions != self._descriptions:
            self._descriptions = descriptions
            found = {one.id: read_worker(one.description) for one in members}
            self._workers = {name: info for name, info in found.items() if info is not None}
        if any(self._is_ready(name) for name in self._workers):
            self._came.set()
            self._came = asyncio.Event()
        return self._renew()

    def prepare(self, tool: str, arguments: Raw) -> Work:
        offered = self._offered.get(tool)
        if offered is None:
            raise UnknownName("tool", tool, self._offered)
        schema = json.decode(offered.definition, type=dict[str, Raw]).get("inputSchema", Raw(b"{}"))
        check_arguments(bytes(schema), arguments)
        return partial(self._work, tool, arguments)

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        if self._has_worker(tool):
            return None
        return RunnerStart(f"waiting for a worker with {tool}", partial(self._wait_for_worker, tool))

    def receive(self, call: str, attempt: int, worker: str, body: bytes) -> None:
        """Take messages of a function; those of an attempt that is not waited for are dropped."""
        found = self._calls.get((call, attempt))
        if found is None:
            return
        try:
            messages = read_from_worker(body)
        except DecodeError as error:
            _log.error("call %s: its worker said what cannot be read: %s", call, error)
            return
        found.begun_at(worker)
        for message in messages:
            found.receive(message)

    def is_dead(self, worker: str) -> bool:
        """Whether the lease of a worker has run out, or was given back."""
        return worker in self._dead or worker not in self._workers

    def _renew(self) -> bool:
        """Offer what the workers have, and for a while what those had that left: the next may be starting."""
        now = asyncio.get_running_loop().time()
        self._seen |= {one.name: (one, now) for info in self._workers.values() for one in info.tools}
        self._offered = {name: one for name, (one, at) in self._seen.items() if now - at < KEEP_OFFER_S}
        slots = sum(info.slots for name, info in self._workers.items() if self._is_ready(name)) or 1
        offer_now = slots, [one.digest for one in self._offered.values()]
        has_changed = offer_now != self._offer_before
        if has_changed:
            self._offer_before = offer_now
            self._tools = tuple(tool_of(one, SERVER, slots) for one in self._offered.values())
        return has_changed

    def _is_ready(self, worker: str) -> bool:
        return worker not in self._dead and not self._workers[worker].draining

    def _has_worker(self, tool: str) -> bool:
        return any(
            self._is_ready(name) and any(one.name == tool for one in info.tools)
            for name, info in self._workers.items()
        )

    async def _wait_for_worker(self, tool: str) -> None:
        while not self._has_worker(tool):
            await self._came.wait()

    async def _work(self, tool: str, arguments: Raw, run: Run) -> Result:
        if self._queue is None:
            self._queue = await self._open_queue()
        saved = run.resumed_from if bytes(run.resumed_from) else NOTHING
        message = RunCall(tool, arguments, run.id, run.attempt, run.caller, saved, origin=run.origin)
        call = WorkerCall(run, message, self._journal, self._queue, self.is_dead)
        self._calls[run.id, run.attempt] = call
        try:
            return await call.work()
        finally:
            del self._calls[run.id, run.attempt]


class WorkerCall:
    """One attempt of a call on a worker, at the gateway that owns the call."""

    def __init__(
        self,
        run: Run,
        message: RunCall,
        journal: RedisJournal,
        queue: Queue,
        is_dead: Callable[[str], bool],
    ) -> None:
        self._run = run
        self._message = message
        self._journal = journal
        self._queue = queue
        self._is_dead = is_dead
        self._relay = RunRelay(run, self._send)
        self._worker = ""  # that has begun it
        self._done: CallDone | None = None
        self._over = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._outbox: list[IpcMessage] = []

    async def work(self) -> Result:
        """Run the function on a worker to its end; raises the tool's error, or RunnerDied."""
        try:
            try:
                await self._submit()
                await self._wait_for_end()
            except asyncio.CancelledError:
                await self._stop()
                if self._done is None or self._done.result is None:
                    raise
        finally:
            self._relay.close()
        assert self._done is not None
        if self._done.result is not None:
            return self._done.result  # also of a call that was cancelled: it may be a part
        trouble = self._done.trouble
        assert trouble is not None
        if trouble.kind == STOPPED:
            raise RunnerDied(trouble.message)
        raise error_for_trouble(self._message.tool, ResourceLimits(), trouble)

    def begun_at(self, worker: str) -> None:
        """Note which worker has begun it."""
        self._worker = worker

    def receive(self, message: FromChild) -> None:
        """Take a message of the function."""
        if not self._relay.receive(message) and isinstance(message, CallDone):
            self._run.spent(message.cpu_s)
            self._done = message
            self._over.set()

    async def _submit(self) -> None:
        run = self._run
        try:
            await self._journal.run(WANT, run.id, self._journal.owner, run.attempt)
            await self._queue.add(run.id, run.attempt, json.encode(self._message).decode())
        except StoreError as error:
            raise RunnerDied(f"{error}", began=False) from error

    async def _wait_for_end(self) -> None:
        while not self._over.is_set():
            try:
                await asyncio.wait_for(self._over.wait(), LOOK_S)
            except TimeoutError:
                await self._look()

    async def _look(self) -> None:
        """Look whether the worker lives; nobody is silent before one has begun. Raises RunnerDied."""
        if not self._worker:
            self._run.alive()
            try:
                begun = await self._journal.command(
                    "HGET", f"{self._journal.prefix}call:{self._run.id}", "run"
                )
            except StoreError:
                return
            attempt, _, worker = (begun or b"").decode().partition(" ")
            if attempt == str(self._run.attempt):
                self._worker = worker
        elif self._is_dead(self._worker) and not self._over.is_set():
            raise RunnerDied(f"worker {self._worker} died")

    async def _stop(self) -> None:
        """Cancel the function, and wait until it has stopped; the engine's grace ends that wait."""
        await self._look_once()
        if not self._worker:
            try:
                await self._queue.withdraw(self._run.id, self._run.attempt)
            except StoreError as error:
                _log.warning("%s", error)
            await self._look_once()  # one may have begun it meanwhile
        if not self._worker:
            return
        self._send(CancelCall(self._run.cancelled or "cancelled"))
        while not (self._over.is_set() or self._is_dead(self._worker)):
            try:
                await asyncio.wait_for(self._over.wait(), LOOK_S)
            except TimeoutError:
                continue

    async def _look_once(self) -> None:
        try:
            await self._look()
        except RunnerDied:
            self._over.set()

    def _send(self, message: IpcMessage) -> None:
        """Send a message to the worker, behind all that were sent before."""
        self._outbox.append(message)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        run = self._run
        while self._outbox:
            message = self._outbox[0]
            try:
                body = json.encode(message)
                await self._journal.run(TELL_WORKER, self._worker, run.id, run.attempt, body, KEEP_S)
            except StoreError as error:
                _log.warning("call %s: its worker is not told yet: %s", run.id, error)
                await asyncio.sleep(LOOK_S)
                if self._over.is_set():
                    break
                continue
            self._outbox.pop(0)
        self._sending = None
