"""`WorkerFunctions` offers the functions of all workers of a cluster, and has their calls run there (D1).

It is a provider like any other: the engine's clocks, questions and end of a call are the owner's. A call that
no worker has begun yet is no silence of its tool.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from msgspec import Raw, json

from afoot.cluster.lease import Member
from afoot.cluster.runs import (
    KEEP_S,
    TELL_WORKER,
    UNREADABLE,
    UNWANT,
    WANT,
    FromWorker,
    OfferedTool,
    OpenRequests,
    OwnerChanged,
    WorkerInfo,
    read_from_worker,
    read_worker,
    tool_of,
)
from afoot.core.facts import NOTHING, Answer, Result
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import RunnerDied, StoreError, UnknownName
from afoot.providers.arguments import check_arguments
from afoot.providers.isolation.child_process import error_for_trouble
from afoot.providers.isolation.frames import (
    AskQuestion,
    CallDone,
    CancelCall,
    InvokeTool,
    IpcMessage,
    RequestReply,
    ResourceLimits,
    RunCall,
    WithdrawRequest,
)
from afoot.providers.isolation.relay import RunRelay
from afoot.store.redis.journal import RedisJournal

SERVER: Final = "worker"  # the server whose tools are functions on workers
LOOK_S: Final = 0.5  # between two looks whether the worker of a call lives, or which one has begun it
KEEP_OFFER_S: Final = 60.0  # for which a tool is offered whose workers have all left
PARTS: Final = 100  # of what a function said, that are read at once
STOPPED: Final = "WorkerStopped"  # the kind of the error of a function that its worker ended by itself

_log = logging.getLogger("afoot.cluster")


class Queue(Protocol):
    """The queue to the workers (`cluster.queue.FunctionQueue`)."""

    async def add(self, call: str, attempt: int, body: str) -> None: ...

    async def withdraw(self, call: str, attempt: int) -> None: ...

    async def waiting(self) -> int: ...


class Record(Protocol):
    """The record of the calls of this gateway (`engine.recorder.Recorder`)."""

    def place(self, call: str, place: str) -> None: ...

    async def written(self) -> None: ...


class Resumption(Protocol):
    """A call that was taken over while its function ran (`cluster.adoption.Adopted`)."""

    def claim(self, asked: Sequence[AskQuestion]) -> None:
        """Take note of the questions that the function waits for; close the others."""
        ...

    async def ask(self, asked: AskQuestion) -> Answer: ...

    async def invoke(self, invoked: InvokeTool, key: str) -> Result: ...


class WorkerFunctions:
    """The functions of all workers. `look` takes in which workers there are."""

    def __init__(
        self,
        journal: RedisJournal,
        open_queue: Callable[[str], Awaitable[Queue]],
        record: Record,
        is_own: Callable[[str], bool],
    ) -> None:
        self.journal = journal
        self.record = record
        self.is_own = is_own  # whether a call lives here, and no other gateway has it
        self.open_queue = open_queue
        self.is_deaf = False  # whether Redis is away, so that nothing is heard of workers
        self._workers: dict[str, WorkerInfo] = {}
        self._living: set[str] = set()
        self._descriptions: list[tuple[str, bytes]] = []
        self._left_s: dict[str, float] = {}  # of the leases of all that are listed
        self._seen: dict[str, tuple[OfferedTool, float]] = {}  # and when it was seen last
        self._offered: dict[str, OfferedTool] = {}
        self._offer_before = list[OfferedTool]()
        self.slots: dict[str, int] = {}  # of all workers that take calls, by server, or server and label
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
        self._living = {one.id for one in members if one.lives}
        self._left_s = {one.id: one.left_s for one in members}
        descriptions = sorted((one.id, one.description) for one in members)
        if descriptions != self._descriptions:
            self._descriptions = descriptions
            found = {name: read_worker(description) for name, description in descriptions}
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

    def receive(self, call: str, fields: Mapping[bytes, bytes]) -> None:
        """Take messages of a function; those of an attempt that is not waited for are dropped."""
        found = self._calls.get((call, int(fields[b"a"])))
        if found is not None:
            found.receive(fields[b"w"].decode(), int(fields.get(b"k") or 0), fields.get(b"f"))

    def look_again(self) -> None:
        """Read what functions have said while this gateway did not hear them."""
        for call in self._calls.values():
            call.look_again()

    def goes_on(self, call: str, attempt: int) -> bool:
        """Whether this attempt goes on without its owner: a worker runs it, or will."""
        found = self._calls.get((call, attempt))
        return found is not None and found.is_wanted

    def is_dead(self, worker: str) -> bool:
        """Whether the lease of a worker has run out, or was given back."""
        return worker not in self._living

    async def resume(self, message: RunCall, worker: str, taken: int, resumption: Resumption) -> Work:
        """The work of a call whose function runs on, or waits in the queue; raises StoreError.

        `worker` has begun it; empty: none has. `taken`: the last part of what it said that the facts have.
        """
        call = WorkerCall(message, self, resumption)
        self._calls[message.id, message.attempt] = call  # from here on it hears its function
        try:
            await call.prefetch(worker, taken)
        except BaseException:
            del self._calls[message.id, message.attempt]
            raise
        return partial(self._work, message.tool, message.arguments)

    def _renew(self) -> bool:
        """Offer what the workers have, and for a while what those had that left: the next may be starting.

        While workers have two versions of a tool, that of the last ready one by its id is offered: with the
        order of their leases, which changes with each renewal, every call would meet another tool.
        """
        now = asyncio.get_running_loop().time()
        for name in sorted(self._workers, key=lambda name: (self._is_ready(name), name)):
            at = now + min(0.0, self._left_s[name])  # of a dead one: when its lease ran out
            for one in self._workers[name].tools:
                if one.name not in self._seen or at >= self._seen[one.name][1]:
                    self._seen[one.name] = one, at
        self._offered = {name: one for name, (one, at) in self._seen.items() if now - at < KEEP_OFFER_S}
        ready = [info for name, info in self._workers.items() if self._is_ready(name)]
        slots = {_place(one.worker): 1 for one in self._offered.values()}  # one may wait for a worker
        slots |= {_place(info.label): 0 for info in ready}
        for info in ready:
            slots[_place(info.label)] += info.slots
        self.slots = slots
        offer_now = list(self._offered.values())
        has_changed = offer_now != self._offer_before
        if has_changed:
            self._offer_before = offer_now
            self._tools = tuple(tool_of(one, SERVER) for one in self._offered.values())
        return has_changed

    async def queue_of(self, tool: str) -> Queue:
        """The queue to the workers that run a tool."""
        seen = self._seen.get(tool)
        return await self.open_queue("" if seen is None else seen[0].worker)

    def _is_ready(self, worker: str) -> bool:
        return worker in self._living and not self._workers[worker].draining

    def _has_worker(self, tool: str) -> bool:
        return any(
            self._is_ready(name) and any(one.name == tool for one in info.tools)
            for name, info in self._workers.items()
        )

    async def _wait_for_worker(self, tool: str) -> None:
        while not self._has_worker(tool):
            await self._came.wait()

    async def _work(self, tool: str, arguments: Raw, run: Run) -> Result:
        call = self._calls.get((run.id, run.attempt))  # one that was taken over while it ran
        if call is None:
            saved = run.resumed_from if bytes(run.resumed_from) else NOTHING
            message = RunCall(tool, arguments, run.id, run.attempt, run.caller, saved, origin=run.origin)
            call = self._calls[run.id, run.attempt] = WorkerCall(message, self)
        try:
            return await call.work(run)
        finally:
            del self._calls[run.id, run.attempt]


class WorkerCall:
    """One attempt of a call on a worker, at the gateway that owns the call.

    It is known before its run, so that nothing that the function says to this gateway is missed. `taken` is
    the number of the last part that the facts have; parts that come without those before them are read from
    the stream in which Redis keeps them.
    """

    def __init__(
        self, message: RunCall, owner: "WorkerFunctions", resumption: "Resumption | None" = None
    ) -> None:
        self._message = message
        self._functions = owner
        self._journal = owner.journal
        self._resumption = resumption
        self._run: Run | None = None
        self._relay: RunRelay | None = None
        self.is_wanted = resumption is not None  # whether Redis has noted that the attempt is to be run
        self._worker = ""  # that has begun it
        self._taken = 0
        self._parts: list[tuple[int, bytes]] = []  # that came before the run
        self._is_unsure = False  # whether Redis was away, and may have lost that it is queued
        self._awaits_open = False  # whether the function is still to say which requests are open
        self._asked: dict[int, AskQuestion] = {}
        self._done: CallDone | None = None
        self._over = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._outbox: list[IpcMessage] = []

    async def prefetch(self, worker: str, taken: int) -> None:
        """Read, before there is a run, what the function has said that no facts have; raises StoreError."""
        self._worker, self._taken = worker, taken
        self._awaits_open = bool(worker)
        await self.catch_up()

    async def work(self, run: Run) -> Result:
        """Run the function on a worker to its end; raises the tool's error, or RunnerDied."""
        self._run = run
        message = self._message
        self._relay = RunRelay(run, self._send, f"{message.id}.{message.attempt}")
        parts, self._parts = self._parts, list[tuple[int, bytes]]()
        for number, body in parts:
            self._take(number, body)
        try:
            try:
                if self._done is None:
                    await self._begin()
                    await self._wait_for_end()
            except asyncio.CancelledError:
                if run.cancelled is None:
                    raise  # the call goes to another gateway, and its function goes on
                await self._stop()
                if self._done is None or self._done.result is None:
                    raise
        finally:
            self._relay.close()
            if self._fetching is not None:
                self._fetching.cancel()
        assert self._done is not None
        if self._done.result is not None:
            return self._done.result  # also of a call that was cancelled: it may be a part
        trouble = self._done.trouble
        assert trouble is not None
        if trouble.kind == STOPPED:
            raise RunnerDied(trouble.message)
        raise error_for_trouble(message.tool, ResourceLimits(), trouble)

    def receive(self, worker: str, number: int, body: bytes | None) -> None:
        """Take what the function said: a part that is kept, with its number, or readings, with 0."""
        self._worker = worker
        if number == 0:
            if body is not None and self._run is not None:
                self._read(body)
        elif number == self._taken + 1 and body is not None:
            self._put(number, body)
        elif number > self._taken:
            self.look_again()

    def look_again(self) -> None:
        """Read what is kept and was not heard. What Redis has lost is queued again."""
        self._is_unsure = True
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._try_to_catch_up())

    async def catch_up(self) -> None:
        """Take the parts that are kept and were not taken; raises StoreError."""
        message = self._message
        key, is_more = f"{self._journal.prefix}said:{message.id}", True
        while is_more:
            place = f"({message.attempt}-{self._taken}"
            found = await self._journal.command("XRANGE", key, place, message.attempt, "COUNT", PARTS)
            is_more = len(found) == PARTS
            for name, flat in found:
                number = int(name.partition(b"-")[2])
                if number > self._taken:
                    fields = flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))
                    self._put(number, fields[b"f"])

    async def _try_to_catch_up(self) -> None:
        while self._journal.is_open:  # else this gateway is closing
            try:
                await self.catch_up()
                return
            except StoreError as error:
                _log.warning("call %s: what its function said is not read yet: %s", self._message.id, error)
                await asyncio.sleep(LOOK_S)

    def _put(self, number: int, body: bytes) -> None:
        self._taken = number
        if self._run is None:
            self._parts.append((number, body))
        else:
            self._take(number, body)

    def _take(self, number: int, body: bytes) -> None:
        """Take one part. The end of a call is on record only later, so its part is kept until then.

        What a call says that was let go of is kept for its next owner.
        """
        self._read(body)
        if self._done is None and self._functions.is_own(self._message.id):
            self._functions.record.place(self._message.id, f"{self._message.attempt}-{number}")

    def _read(self, body: bytes) -> None:
        try:
            messages = read_from_worker(body)
        except UNREADABLE as error:
            _log.error("call %s: its worker said what cannot be read: %s", self._message.id, error)
            return
        for message in messages:
            self._receive(message)

    def _receive(self, message: FromWorker) -> None:
        assert self._run is not None and self._relay is not None
        match message:
            case CallDone():
                self._run.spent(message.cpu_s)
                self._done = message
                self._over.set()
            case OpenRequests():
                self._reply_to_open(message)
            case AskQuestion() | InvokeTool() | WithdrawRequest() if self._awaits_open:
                pass  # asked of the owner before, who may have done it: the open ones are told again
            case _:
                if isinstance(message, AskQuestion):
                    self._asked[message.number] = message
                self._relay.receive(message)

    def _reply_to_open(self, requests: OpenRequests) -> None:
        """Reply to the requests that had no reply when this gateway took the call over."""
        if not self._awaits_open or self._resumption is None or self._relay is None:
            return
        self._awaits_open = False
        self._resumption.claim(requests.asked)
        for asked in requests.asked:
            self._asked[asked.number] = asked
            self._relay.reply(asked.number, partial(self._resumption.ask, asked))
        for invoked in requests.invoked:
            key = self._relay.key_of(invoked.number)
            self._relay.reply(invoked.number, partial(self._resumption.invoke, invoked, key))

    async def _begin(self) -> None:
        """Queue the attempt, unless a worker has begun it."""
        if self._run is not None and self._run.cancelled is not None:
            raise asyncio.CancelledError  # it was told to stop before this gateway took it over
        if self._worker:
            if self._awaits_open:
                self._send(OwnerChanged())
            await self._try_to_catch_up()  # what was said between the first look and this one
        else:
            await self._submit()

    async def _submit(self) -> None:
        """Queue the attempt. Its start is on record before: what runs is known to whoever takes it over."""
        message = self._message
        written = asyncio.ensure_future(self._functions.record.written())
        try:
            while not (await asyncio.wait([written], timeout=LOOK_S))[0]:
                self._say_alive()
        finally:
            written.cancel()
        body = json.encode(message)
        try:
            queue = await self._functions.queue_of(message.tool)
            me = self._journal.owner, self._journal.number(message.id)
            if not await self._journal.run(WANT, message.id, *me, message.attempt, body):
                self._journal.on_fenced(message.id)
                raise RunnerDied("another gateway has its call")
            self.is_wanted = True
        except StoreError as error:
            raise RunnerDied(f"{error}", began=False) from error
        try:
            await queue.add(message.id, message.attempt, body.decode())
        except StoreError as error:  # it may be queued all the same, so no other attempt may follow
            _log.warning("call %s: %s; it is queued again", message.id, error)
            self._is_unsure = True

    async def _wait_for_end(self) -> None:
        while not self._over.is_set():
            try:
                await asyncio.wait_for(self._over.wait(), LOOK_S)
            except TimeoutError:
                await self._look()
            # The client library may have taken the cancel for a lost connection.
            if self._run is not None and self._run.cancelled is not None and not self._over.is_set():
                raise asyncio.CancelledError

    async def _look(self) -> None:
        """Look whether the worker lives; nobody is silent before one has begun. Raises RunnerDied."""
        functions = self._functions
        if self._awaits_open:
            self._send(OwnerChanged())  # the first may be lost; a second reply changes nothing
        if functions.is_deaf:
            self._say_alive()  # the silence is that of Redis
        elif not self._worker:
            self._say_alive()
            try:
                key = f"{self._journal.prefix}call:{self._message.id}"
                want, begun = await self._journal.command("HMGET", key, "want", "run")
            except StoreError:
                return
            self._worker = worker_of(begun, self._message.attempt)
            if self._worker:
                self.look_again()
            elif want is None or self._is_unsure:
                self._is_unsure = False
                try:
                    await self._submit()
                except RunnerDied:
                    self._is_unsure = True
        elif functions.is_dead(self._worker) and not self._over.is_set():
            try:
                await self.catch_up()  # it may have told its end before
            except StoreError:
                return
            if not self._over.is_set():
                raise RunnerDied(f"worker {self._worker} died")

    def _say_alive(self) -> None:
        if self._run is not None:
            self._run.alive()

    async def _stop(self) -> None:
        """Cancel the function, and wait until it has stopped; the engine's grace ends that wait."""
        assert self._run is not None
        await self._look_once()
        if not self._worker:
            await self._withdraw()
            await self._look_once()  # one may have begun it meanwhile
        if not self._worker:
            return
        self._send(CancelCall(self._run.cancelled or "cancelled"))
        while self._journal.is_open and not (self._over.is_set() or self._functions.is_dead(self._worker)):
            try:
                await asyncio.wait_for(self._over.wait(), LOOK_S)
            except TimeoutError:
                continue

    async def _withdraw(self) -> None:
        """Take an attempt that no worker has begun back, if this gateway still owns the call."""
        message = self._message
        try:
            me = self._journal.owner, self._journal.number(message.id)
            if await self._journal.run(UNWANT, message.id, *me, message.attempt):
                await (await self._functions.queue_of(message.tool)).withdraw(message.id, message.attempt)
        except StoreError as error:
            _log.warning("%s", error)

    async def _look_once(self) -> None:
        """Look, but queue nothing any more."""
        try:
            if self._worker:
                await self._look()
            else:
                key = f"{self._journal.prefix}call:{self._message.id}"
                with suppress(StoreError):
                    begun = await self._journal.command("HGET", key, "run")
                    self._worker = worker_of(begun, self._message.attempt)
        except RunnerDied:
            self._over.set()

    def _send(self, message: IpcMessage) -> None:
        """Send a message to the worker, behind all that were sent before.

        What follows from letting go of a call is not for its function, which goes on.
        """
        if not self._functions.is_own(self._message.id):
            return
        self._outbox.append(message)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        """Send what waits. What led to it is on record before, so that the next owner knows of it."""
        call = self._message.id
        while self._outbox:
            message = self._outbox[0]
            field, value = self._kept_answer(message)
            try:
                body = json.encode(message)
                await self._functions.record.written()
                me = self._journal.owner, self._journal.number(call)
                is_owner = await self._journal.run(
                    TELL_WORKER, self._worker, call, *me, self._message.attempt, body, KEEP_S, field, value
                )
            except StoreError as error:
                _log.warning("call %s: its worker is not told yet: %s", call, error)
                await asyncio.sleep(LOOK_S)
                if self._over.is_set() or not self._journal.is_open:
                    break
                continue
            if not is_owner:
                self._outbox.clear()
                self._over.set()
                self._journal.on_fenced(call)
                break
            self._outbox.pop(0)
        self._sending = None

    def _kept_answer(self, message: IpcMessage) -> tuple[str, bytes]:
        """An answer on its way to the function, as the next owner finds it: it may have secrets (S4)."""
        if isinstance(message, RequestReply) and message.answer is not None:
            asked = self._asked.get(message.number)
            if asked is not None:
                field = f"{self._message.attempt} {asked.place} {asked.question.key}"
                return field, json.encode(message.answer)
        return "", b""


def _place(label: str) -> str:
    """The workers of a label, as `engine.admission.Slots` counts their calls."""
    return f"{SERVER} {label}" if label else SERVER


def worker_of(run: bytes | None, attempt: int) -> str:
    """The worker that has begun this attempt, as Redis notes it; empty: none has."""
    begun, _, worker = (run or b"").decode().partition(" ")
    return worker.partition(" ")[0] if begun == str(attempt) else ""
