"""`FunctionWorker` runs functions for the gateways of a cluster: it reports to them, and owns no call (D1).

Docket delivers a task at least once. Before a function is entered, Redis says whether this delivery is the
first of its attempt; a second one runs nothing.
"""

import asyncio
import logging
import os
import secrets
import socket
import traceback
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, Protocol

from msgspec import json
from msgspec.structs import replace
from redis.exceptions import RedisError

from afoot.cluster.functions import STOPPED
from afoot.cluster.lease import Lease
from afoot.cluster.operations import DrainOrder, read_order
from afoot.cluster.queue import FunctionQueue
from afoot.cluster.runs import (
    BEGIN_RUN,
    KEEP_S,
    LARGE_BODY,
    TELL_OWNER,
    UNREADABLE,
    OfferedTool,
    OpenRequests,
    OwnerChanged,
    WorkerInfo,
    offer,
    read_to_worker,
)
from afoot.config.tables import ClusterSettings
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import AfootError, StoreError
from afoot.providers.isolation.frames import (
    AskQuestion,
    CallDone,
    CancelCall,
    Heartbeat,
    InvokeTool,
    IpcMessage,
    ProgressReading,
    RemoteError,
    RequestReply,
    RunCall,
    WithdrawRequest,
)
from afoot.providers.isolation.worker_run import WorkerRun, encodable_result, to_remote_error
from afoot.store.redis.connect import connect
from afoot.store.redis.journal import RedisJournal

BLOCK_S: Final = 2.0
RETRY_S: Final = 0.3
READINGS_GAP_S: Final = 0.05  # between two messages of one function that hold only readings
MAX_PENDING: Final = (
    1000  # messages of one function that wait for Redis, before only the newest reading is kept
)
LOST_S: Final = 30.0  # for which a call is waited for that Redis may have lost: its owner notes it again
CONFIRM_S, MAX_CONFIRM_S = 2.0, 30.0  # between two looks whether the end of a function is on record
_MAX_TRACE: Final = 64_000

_log = logging.getLogger("afoot.cluster")


class Functions(Protocol):
    """The functions that a worker runs (`core.ports.Provider`, without a name)."""

    def tools(self) -> Iterable[Tool]: ...

    def prepare(self, tool: str, arguments: Any) -> Work: ...

    def start(self, tool: str, caller: str) -> RunnerStart | None: ...


class FunctionWorker:
    """One worker. `run` serves until `stop` is set, then finishes what runs within `drain_s`."""

    def __init__(
        self,
        settings: ClusterSettings,
        functions: Functions,
        slots: int,
        version: str = "",
        drain_s: float = 10.0,
        label: str = "",
    ) -> None:
        self.id = secrets.token_hex(8)
        self.stop = asyncio.Event()
        self._settings = settings
        self._functions = functions
        self._slots = slots
        self._version = version
        self._drain_s = drain_s
        self._label = label
        self._journal = RedisJournal(settings.redis, settings.name, self.id)
        self._lease = Lease(settings.redis, self._journal.prefix, self.id, settings.lease_s, "worker")
        self._runs: dict[tuple[str, int], FunctionRun] = {}
        self._confirming = set[asyncio.Task[None]]()
        self._offered: list[OfferedTool] = []
        self._is_draining = False
        self._changed = asyncio.Event()  # whether it takes calls

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Serve; `ready` is set once this worker takes calls. Raises StoreError."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._journal)
            queue = FunctionQueue(self._settings.redis, self._settings.name, self._run_function, self._label)
            await stack.enter_async_context(queue)
            self._offered = [
                offer(tool)
                for tool in self._functions.tools()
                if not tool.gone and tool.worker == self._label
            ]
            self._lease.describe = self._description
            await asyncio.to_thread(self._lease.start)
            stack.push_async_callback(asyncio.to_thread, self._lease.stop)
            reading = asyncio.create_task(self._read_inbox())
            loop = asyncio.get_running_loop()
            self._lease.on_declared_dead = lambda: loop.call_soon_threadsafe(self._end_all)
            serving = asyncio.create_task(self._serve(queue))
            if ready is not None:
                ready.set()
            stopping = asyncio.create_task(self.stop.wait())
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            self._changed.set()
            await asyncio.wait([serving], timeout=self._drain_s)
            for run in list(self._runs.values()):
                run.end_for_stop()
            await asyncio.wait([serving])
            rest = {reading, *self._confirming}
            while rest:
                for task in rest:
                    task.cancel()  # again, if need be: the client library may take it for a lost connection
                rest = (await asyncio.wait(rest, timeout=RETRY_S))[1]
            serving.result()

    async def _serve(self, queue: FunctionQueue) -> None:
        """Take calls, except while this worker is drained."""
        while not self.stop.is_set():
            self._changed.clear()
            if self._is_draining:
                await self._changed.wait()
            else:
                await queue.serve(self.id, self._slots, self._settings.lease_s, self._changed)

    def _obey(self, order: DrainOrder) -> None:
        """Take no new calls from now on, or take them again."""
        _log.warning("this worker %s, by %s", "drains" if order.drain else "takes calls again", order.by)
        self._is_draining = order.drain
        self._changed.set()
        self._lease.renew_soon()

    def _end_all(self) -> None:
        """End at once: this worker was declared dead, and its functions run elsewhere."""
        self._drain_s = 0.0
        self.stop.set()

    def _description(self) -> bytes:
        """Describe this worker to the gateways; called in the thread of the lease."""
        info = WorkerInfo(
            socket.gethostname(),
            os.getpid(),
            self._version,
            slots=self._slots,
            label=self._label,
            running=len(self._runs),
            draining=self._is_draining or self.stop.is_set(),
            tools=self._offered,
        )
        return json.encode(info)

    async def _run_function(self, call: str, attempt: int, body: str) -> None:
        """The task that Docket delivers: run one attempt of a call, unless another delivery has begun it."""
        message = json.decode(body, type=RunCall)
        delivery = secrets.token_hex(4)
        begun = await self._begin(call, attempt, delivery)
        if begun is None or begun.decode() != f"{self.id} {delivery}":
            _log.info("call %s: attempt %d is over, or runs elsewhere", call, attempt)
            return
        run = FunctionRun(message, self._journal, self._functions)
        self._runs[call, attempt] = run
        running = asyncio.create_task(run.run())
        try:
            while not running.done():
                try:
                    await asyncio.shield(running)
                except asyncio.CancelledError:  # by Docket; its owner still waits for its end
                    run.receive(CancelCall("cancelled"))
        finally:
            del self._runs[call, attempt]
        confirming = asyncio.create_task(run.confirm())
        self._confirming.add(confirming)
        confirming.add_done_callback(self._confirming.discard)

    async def _begin(self, call: str, attempt: int, delivery: str) -> bytes | None:
        """The worker and the delivery that have this attempt; None: nobody wants it any more."""
        while True:
            try:
                found: bytes | None = await self._journal.run(BEGIN_RUN, call, attempt, self.id, delivery)
                return found
            except StoreError as error:
                _log.warning("call %s waits for Redis before it begins: %s", call, error)
                await asyncio.sleep(RETRY_S)

    async def _read_inbox(self) -> None:
        """Take answers and cancels for the functions that run here, until cancelled."""
        key, place = f"{self._journal.prefix}inbox:{self.id}", "0-0"
        client = connect(self._settings.redis, BLOCK_S + 5.0)
        try:
            while True:
                try:
                    found = await client.execute_command(
                        "XREAD", "COUNT", 100, "BLOCK", int(BLOCK_S * 1000), "STREAMS", key, place
                    )
                except (RedisError, OSError) as error:
                    _log.warning("the gateways of the cluster cannot be heard: %s", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                for _, entries in found.items() if isinstance(found, dict) else found or ():
                    for name, fields in entries:
                        place = name.decode()
                        try:
                            self._take(
                                fields
                                if isinstance(fields, dict)
                                else dict(zip(fields[::2], fields[1::2], strict=True))
                            )
                        except Exception:  # else nothing behind it would be read
                            _log.exception("%s %s cannot be read, and is skipped", key, place)
        finally:
            await client.aclose()

    def _take(self, fields: dict[bytes, bytes]) -> None:
        if b"m" in fields:
            if (order := read_order(fields[b"m"])) is not None:
                self._obey(order)
            return
        run = self._runs.get((fields[b"c"].decode(), int(fields[b"a"])))
        if run is None:
            return
        try:
            message = read_to_worker(fields[b"f"])
        except UNREADABLE as error:
            _log.error("a message for a function cannot be read: %s", error)
            return
        if isinstance(message, OwnerChanged):
            run.send_open_requests()
        else:
            run.receive(message)


class FunctionRun:
    """One attempt of a call on this worker, and the way of what it says to the call's owner (`RunPipe`)."""

    def __init__(self, message: RunCall, journal: RedisJournal, functions: Functions) -> None:
        self._message = message
        self._journal = journal
        self._functions = functions
        self._remote = WorkerRun(message, self)
        self._task: asyncio.Task[CallDone] | None = None
        self._pending: list[IpcMessage] = []
        self._sent = 0  # messages that are kept in Redis, in so many parts
        self._newest: ProgressReading | None = None
        self._asked = Counter[str]()  # questions, by key
        self._open: dict[int, AskQuestion | InvokeTool] = {}  # requests without a reply
        self._news = asyncio.Event()
        self._is_over = False
        self._last: tuple[list[IpcMessage], str] | None = None  # its end, and the number of that part
        self._stop_reason = ""

    @property
    def is_full(self) -> bool:
        """Whether so much waits for Redis that only the newest reading is kept."""
        return len(self._pending) >= MAX_PENDING

    def send_reading(self, reading: ProgressReading) -> None:
        """Send the newest reading: it replaces one that still waits."""
        self._newest = reading
        self._news.set()

    def send(self, message: IpcMessage) -> None:
        """Send a message, after all earlier ones."""
        if isinstance(message, AskQuestion):
            key = message.question.key
            message = replace(message, place=self._asked[key])
            self._asked[key] += 1
        if isinstance(message, AskQuestion | InvokeTool):
            self._open[message.number] = message
        elif isinstance(message, WithdrawRequest):
            self._open.pop(message.number, None)
        self._put_newest()
        self._pending.append(message)
        self._news.set()

    def receive(self, message: CancelCall | RequestReply) -> None:
        """Take an answer, or the word to stop."""
        if isinstance(message, RequestReply):
            self._open.pop(message.number, None)
        self._remote.receive(message)
        if isinstance(message, CancelCall) and self._task is not None:
            self._task.cancel(message.reason)

    def send_open_requests(self) -> None:
        """Tell the next owner of the call for which requests the function waits."""
        if not self._is_over:
            waiting = list(self._open.values())
            asked = [one for one in waiting if isinstance(one, AskQuestion)]
            self.send(OpenRequests(asked, [one for one in waiting if isinstance(one, InvokeTool)]))

    def end_for_stop(self) -> None:
        """Stop the function because this worker stops: by the rules for a worker that died (U4)."""
        self._stop_reason = "its worker was stopped"
        if self._task is not None:
            self._task.cancel(self._stop_reason)

    async def run(self) -> None:
        """Run the function, and send what it says, until its end is with the owner of the call."""
        self._task = asyncio.create_task(self._call_function())
        sending = asyncio.create_task(self._send_all())
        self.send(Heartbeat())  # the owner learns which worker has begun it
        await asyncio.wait([self._task])
        self._remote.is_over = True
        self._is_over = True
        self.send(self._task.result())
        await sending

    async def _call_function(self) -> CallDone:
        message = self._message
        try:
            start = self._functions.start(message.tool, message.caller)
            if start is not None:
                await start.done()
            run: Run = self._remote
            result = await self._functions.prepare(message.tool, message.arguments)(run)
            return CallDone(encodable_result(result))
        except asyncio.CancelledError:
            kind = STOPPED if self._stop_reason else "CancelledError"
            return CallDone(trouble=RemoteError(self._stop_reason or "cancelled", kind=kind))
        except BaseException as error:  # a tool may raise anything, and no tool ends its worker
            return CallDone(trouble=_trouble_of(error))

    def _put_newest(self) -> None:
        if self._newest is not None:
            self._pending.append(self._newest)
            self._newest = None

    async def _send_all(self) -> None:
        """Send in order what waits; what was not taken by Redis is sent again, until it is."""
        while True:
            await self._news.wait()
            self._news.clear()
            self._put_newest()
            while part := self._next_part():
                number = ""
                if any(not isinstance(one, ProgressReading | Heartbeat) for one in part):
                    self._sent += 1
                    number = str(self._sent)
                if isinstance(part[-1], CallDone):
                    self._last = part, number
                    await self._send(part, number)
                    return
                await self._send(part, number)
                if isinstance(part[-1], ProgressReading) and len(part) == 1:
                    await asyncio.sleep(READINGS_GAP_S)

    async def confirm(self) -> None:
        """Tell the end again until it is on record: Redis may have lost it, or its owner may have died."""
        pause_s, key = CONFIRM_S, f"{self._journal.prefix}call:{self._message.id}"
        while self._last is not None:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_CONFIRM_S)
            with suppress(StoreError):  # then it is asked again
                if await self._journal.command("HEXISTS", key, "e"):
                    self._last = None
                else:
                    await self._send(*self._last)

    def _next_part(self) -> list[IpcMessage]:
        """The messages that are sent next, together.

        The end of a call goes alone: it is kept until it is on record, and all before it only until they are.
        """
        part = self._pending
        self._pending = []
        is_end = bool(part) and isinstance(part[-1], CallDone)
        if is_end and any(not isinstance(one, ProgressReading | Heartbeat) for one in part[:-1]):
            self._pending = [part.pop()]
        return part

    async def _send(self, messages: list[IpcMessage], number: str) -> None:
        """Send a part until Redis has it; the same one again changes nothing."""
        message = self._message
        words: tuple[object, ...] = (
            message.id,
            message.attempt,
            self._journal.owner,
            number,
            _encode(messages),
        )
        is_end = int(isinstance(messages[-1], CallDone))
        loop = asyncio.get_running_loop()
        until = loop.time() + LOST_S
        while True:
            try:
                taken = await self._journal.run(TELL_OWNER, *words, KEEP_S, is_end, LARGE_BODY)
                if taken >= 0 or loop.time() > until:
                    break
            except StoreError as error:
                _log.warning("call %s: what its function says waits for Redis: %s", message.id, error)
                until = loop.time() + LOST_S
            await asyncio.sleep(RETRY_S)
        if taken != 1:
            self._last = None
        if taken != 1 and self._task is not None and not self._task.done():
            self._task.cancel("the call is over")  # nobody waits for it any more


def _encode(messages: list[IpcMessage]) -> bytes:
    try:
        return json.encode(messages)
    except Exception as error:  # a value that a tool returned, and that is no JSON
        trouble = to_remote_error(error)
        return json.encode(
            [CallDone(trouble=trouble) if isinstance(one, CallDone) else one for one in messages]
        )


def _trouble_of(error: BaseException) -> RemoteError:
    found = to_remote_error(error)
    if isinstance(error, AfootError):
        return found
    text = "".join(traceback.format_exception(error))[-_MAX_TRACE:]
    with suppress(UnicodeEncodeError):
        text.encode()
        return RemoteError(
            found.message, found.category, found.code, kind=found.kind or "Exception", trace=text
        )
    return found
