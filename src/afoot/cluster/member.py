"""`ClusterMember` is this gateway in its cluster: its history, its lease, its inbox and its outbox.

It is opened before the engine, which needs the history, and serves the engine once that runs.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Set
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from typing import Final, Self

from msgspec import json
from msgspec.structs import replace

from afoot.cluster.checks import LossyRedis, losses, read_redis_settings
from afoot.cluster.functions import Queue, WorkerFunctions
from afoot.cluster.inbox import Inbox
from afoot.cluster.lease import GatewayInfo, Lease, Member
from afoot.cluster.operations import DrainOrder, Operations
from afoot.cluster.outbox import Outbox, send_readings
from afoot.cluster.runs import UNREADABLE, WorkerInfo, read_worker
from afoot.cluster.sealing_keys import SharedKeys
from afoot.cluster.session_messages import SessionMessages
from afoot.cluster.slots import ClusterSlots
from afoot.cluster.takeover import LOOK_S, TakeOver
from afoot.config.tables import ClusterSettings
from afoot.core.ports import ClusterFigures, ClusterMemberInfo, KeyRotation
from afoot.core.sealing_keys import SealingKey, SealingKeys
from afoot.engine.engine import Engine
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import is_wanted, may_be_handed_over
from afoot.errors import StoreError
from afoot.store.redis.journal import RedisJournal

WORKERS_LOOK_S: Final = 0.3  # between two looks at the workers that were heard of
INSTALL: Final = 'pip install "afoot[cluster]"'
DRAINS: Final = "an operator drains this gateway"
DECLARED_DEAD: Final = "an operator declared this gateway dead"
# A load balancer looks every second whether a gateway is ready. Until it knows of a drain, it sends calls
# of sessions there. Status 503 would send them elsewhere, but some clients take it for the end of a session.
NOTICE_S: Final = 2.0
CANCEL_S: Final = 0.5  # after which a task that is still there is cancelled again

_log = logging.getLogger("afoot.cluster")


class ClusterMember:
    """One gateway of a cluster. `async with` opens the history and takes the lease."""

    def __init__(
        self, settings: ClusterSettings, version: str = "", *, is_history_required: bool = False
    ) -> None:
        self.id = secrets.token_hex(8)
        self.info = GatewayInfo()
        self.settings = settings
        self.journal = RedisJournal(settings.redis, settings.name, self.id)
        self.keys = SharedKeys(self.journal)
        self._version = version
        self._is_history_required = is_history_required
        self._lease = Lease(settings.redis, self.journal.prefix, self.id, settings.lease_s)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.journal)
            found = losses(await read_redis_settings(self.journal.command))
            for one in found:
                _log.warning("Redis may lose history: %s", one.text)
            if found and self._is_history_required:
                raise LossyRedis(found)
            await self.keys.read()
            host = socket.gethostname()
            self.info = GatewayInfo(host, os.getpid(), version=self._version)
            self._lease.describe = lambda: json.encode(self.info)
            await asyncio.to_thread(self._lease.start)
            stack.push_async_callback(asyncio.to_thread, self._lease.stop)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def members(self) -> list[ClusterMemberInfo]:
        """The gateways and workers of the cluster, as they were heard of last."""
        lease, ago_s = self._lease, self._lease.heard_ago_s
        gateways = [_gateway_info(one, ago_s) for one in lease.gateways]
        return [*gateways, *(_worker_info(one, ago_s) for one in lease.workers)]

    @property
    def has_others(self) -> bool:
        """Whether another gateway of the cluster lives."""
        return self._lease.has_others

    def announce(self, url: str) -> None:
        """Tell the others the address of this gateway."""
        self.info = replace(self.info, url=url)

    def serve(self, engine: Engine) -> "ClusterService":
        """Let an engine know the calls of the others, and the others its own, while the block lasts."""
        return ClusterService(self, engine, self._lease)


def _gateway_info(one: Member, ago_s: float) -> ClusterMemberInfo:
    info = _read_gateway(one)
    return ClusterMemberInfo(
        one.id, "gateway", round(one.left_s - ago_s, 1), info.host, info.pid, info.version,
        info.url, info.calls, draining=info.draining, lag=info.lag,
    )  # fmt: skip


def _takes_calls(one: Member) -> bool:
    """Whether a gateway lives, and is neither drained nor about to stop."""
    return one.lives and not _read_gateway(one).draining


def _read_gateway(one: Member) -> GatewayInfo:
    try:
        return json.decode(one.description, type=GatewayInfo)
    except UNREADABLE:  # of another version
        return GatewayInfo()


def _worker_info(one: Member, ago_s: float) -> ClusterMemberInfo:
    info = read_worker(one.description) or WorkerInfo()
    return ClusterMemberInfo(
        one.id, "worker", round(one.left_s - ago_s, 1), info.host, info.pid, info.version, "", info.running,
        info.slots, info.draining,
    )  # fmt: skip


class ClusterService:
    """The tasks beside the engine of a cluster: inbox, outbox, readings, and the search for dead gateways."""

    _inbox: Inbox
    _functions: WorkerFunctions
    _taking: TakeOver
    _slots: ClusterSlots
    sessions: SessionMessages

    def __init__(self, member: ClusterMember, engine: Engine, lease: Lease) -> None:
        self._member = member
        self._engine = engine
        self._lease = lease
        self._tasks: list[asyncio.Task[None]] = []
        self._queues: dict[str, Queue] = {}  # by the label of their workers
        self._opening = asyncio.Lock()
        self._has_docket = True
        self.figures = ClusterFigures(is_heard=True)  # this gateway was opened with it
        self.on_declared_dead: Callable[[], object] = lambda: None
        self._departures = 0  # as they were counted at the last look
        self._with_commands = dict[str, None]()  # calls that were taken over, and may have commands that wait
        self._operations = Operations(member.journal, lease, member.members, self.take_over)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        engine, journal = self._engine, self._member.journal
        engine.clock.follow(self._lease.skew_s)
        outbox = Outbox(journal, self._lives)
        self._functions = WorkerFunctions(
            journal, self._open_queue, engine.recorder, lambda call: engine.own_call(call) is not None
        )
        self._taking = TakeOver(engine, journal, self._functions)
        slots = self._slots = ClusterSlots(journal, engine.recorder)
        self.sessions = SessionMessages(journal)
        inbox = self._inbox = Inbox(engine, journal, self._functions, slots, self.sessions, self._obey)
        inbox.on_return = self._taking.look_for_own  # calls whose ends were lost are ours, and unknown here
        loop = asyncio.get_running_loop()
        self._lease.on_declared_dead = lambda: loop.call_soon_threadsafe(self._end_all)
        engine.others = outbox
        engine.slots.shared = slots
        journal.follows_tail = True
        journal.on_fenced = engine.abandon
        await inbox.load()
        await self._take_workers()
        self._run(inbox.run)
        self._run(outbox.run)
        self._run(slots.run)
        self._run(self.sessions.run)
        self._run(self._watch_workers)
        self._run(self._follow_keys)
        self._run(lambda: send_readings(engine, journal, lambda: self._lease.has_others))
        return self

    async def __aexit__(self, *_: object) -> None:
        running: set[asyncio.Task[None]] = set(self._tasks)
        while running:
            for task in running:
                task.cancel()  # again, if need be: the client library may take a cancel for a lost connection
            running = (await asyncio.wait(running, timeout=CANCEL_S))[1]
        self._engine.others = None
        self._engine.slots.shared = None
        await self._stack.aclose()

    @property
    def id(self) -> str:
        """The id of this gateway."""
        return self._member.id

    def members(self) -> list[ClusterMemberInfo]:
        """The gateways and workers of the cluster, as they were heard of last."""
        return self._member.members()

    async def drain(self, name: str, by: str, *, drains: bool) -> ClusterMemberInfo:
        """Have a gateway or a worker take no new calls, or take them again.

        Raises UnknownName, Conflict, StoreError.
        """
        return await self._operations.drain(name, by, drains=drains)

    async def declare_dead(self, name: str, by: str, *, force: bool) -> tuple[ClusterMemberInfo, int]:
        """Take over the calls of a member that is gone; gives it, and how many of its calls came here.

        Raises UnknownName, CallerError, StoreError; Conflict for one that lives, unless it is forced.
        """
        return await self._operations.declare_dead(name, by, force=force)

    @property
    def sealing_keys(self) -> SealingKeys:
        """The keys that seal what clients keep, as this gateway read them last."""
        return self._member.keys.keys

    async def find_key(self, id: str) -> SealingKey | None:
        """The key with this id, which another gateway may have made just now; raises StoreError."""
        return await self._member.keys.find(id)

    async def rotate_keys(self, keep_s: float, by: str) -> KeyRotation:
        """Make a new sealing key; raises Conflict, StoreError."""
        return await self._member.keys.rotate(keep_s, by)

    async def _follow_keys(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(StoreError):  # the keys that are known go on; the outage is told elsewhere
                await self._member.keys.read()

    async def hand_over(self) -> None:
        """Leave the calls that can go on elsewhere to other gateways, as this one stops; raises StoreError.

        They are taken like those of a gateway that died: calls that wait go on to wait, functions on workers
        run on, and other safe ones run again.
        """
        engine = self._engine
        if not any(one.id != self.id and _takes_calls(one) for one in self._lease.gateways):
            return
        await engine.recorder.recorded()
        calls = engine.own_calls()
        run_on = set[str]()
        for live in calls:  # oldest first: a call comes before those that it has made
            if self._runs_on(live, run_on):
                run_on.add(live.call.id)
        for live in calls:  # in one step: no call is cancelled because the one above it has left
            if live.call.id in run_on or may_be_handed_over(live, engine.max_attempts):
                engine.abandon(live.call.id, why="this gateway stops")

    def _runs_on(self, live: LiveCall, run_on: Set[str]) -> bool:
        """Whether the function of a call goes on at its worker, and somebody can find the call again.

        `run_on`: calls of which that is known. One that was made below another one is found by that.
        """
        call = live.call
        if call.end is not None or call.cancel is not None:
            return False
        if not self._functions.goes_on(call.id, call.attempt):
            return False
        return call.opened.parent in run_on if live.inner else is_wanted(live)

    def _obey(self, order: DrainOrder) -> None:
        """Take no new calls from now on, or take them again."""
        _log.warning("this gateway %s, by %s", "drains" if order.drain else "takes calls again", order.by)
        self._engine.drain(DRAINS if order.drain else None, NOTICE_S)
        self._describe()
        self._lease.renew_soon()

    def _end_all(self) -> None:
        """Let go of all calls: this gateway was declared dead, and others have them."""
        self._engine.drain(DECLARED_DEAD)
        for live in self._engine.own_calls():
            self._engine.abandon(live.call.id)
        self.on_declared_dead()

    async def take_over(self) -> list[str]:
        """Go on with the calls of gateways that died; gives their ids. Raises StoreError."""
        taken = await self._taking.run()
        self.figures = replace(self.figures, taken_over=self.figures.taken_over + len(taken))
        self._with_commands |= dict.fromkeys(taken)
        for call in list(self._with_commands):
            await self._inbox.take_commands(call)  # which the dead owner had not carried out
            self._with_commands.pop(call, None)
        return taken

    def look_for_dead(self) -> None:
        """Look for calls of gateways that died, from now on."""
        self._run(self._look)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self._count()
            self._describe()
            before, self._departures = self._departures, self._lease.departures
            has_left = self._departures != before  # it may have left calls to others
            is_silent = any(not one.lives for one in self._lease.gateways)
            if is_silent or has_left or self._with_commands:
                self._taking.has_more = True  # until a look has found them all, however late that is
            if self._taking.has_more and not self._is_draining:
                try:
                    await self.take_over()
                except StoreError as error:
                    _log.warning("calls of a gateway that died wait: %s", error)
            await self._let_go_of_lost()
            self._forget_ended()

    async def _let_go_of_lost(self) -> None:
        """Look whether calls of ours were taken over while the lease had run out, as in a stopped process."""
        if self._lease.has_lapsed and self._lease.holds:
            try:
                await self._inbox.load()
            except StoreError as error:
                _log.warning("it is not known yet which calls other gateways have: %s", error)
            else:
                self._lease.has_lapsed = False
                self._functions.look_again()  # nothing was sent to a gateway that was taken for dead
                self._slots.look_again()

    def _lives(self, gateway: str) -> bool:
        return any(one.id == gateway and one.lives for one in self._lease.gateways)

    @property
    def _is_draining(self) -> bool:
        return self._engine.closing is not None or self._engine.draining is not None

    def _describe(self) -> None:
        """Say of this gateway what the others may know."""
        calls = len(self._engine.own_calls())
        self._member.info = replace(
            self._member.info, calls=calls, draining=self._is_draining, lag=self.figures.lag
        )

    async def _count(self) -> None:
        """Look how far this gateway is behind, and how much waits for a worker."""
        journal = self._member.journal
        self.figures = replace(self.figures, skew_s=self._lease.skew_s)
        try:
            newest = int(await journal.command("HGET", f"{journal.prefix}meta", "pos") or 0)
            waiting = sum([await queue.waiting() for queue in list(self._queues.values())])
        except StoreError:
            self.figures = replace(self.figures, is_heard=False)
            return
        lag = max(0, newest - journal.position)
        self.figures = replace(self.figures, is_heard=True, lag=lag, waiting=waiting)

    async def _watch_workers(self) -> None:
        while True:
            await asyncio.sleep(WORKERS_LOOK_S)
            await self._take_workers()

    async def _take_workers(self) -> None:
        """Offer the functions of the workers that were heard of; calls wait for a worker that left."""
        if not (self._lease.workers or self._functions.tools()) or not self._has_docket:
            return
        try:
            await self._open_queue()
        except ImportError as error:
            self._has_docket = False
            _log.error("the functions of workers are not offered: %s is missing; %s", error.name, INSTALL)
            return
        if self._functions.look(self._lease.workers):
            self._engine.catalog.put(self._functions)
        slots = self._engine.slots
        if slots.on_workers != self._functions.slots:
            slots.on_workers = dict(self._functions.slots)
            slots.admit_waiting()

    async def _open_queue(self, label: str = "") -> Queue:
        """The queue to the workers of a label. It is loaded beside the loop: that takes over a second."""
        async with self._opening:
            if label not in self._queues:
                module = await asyncio.to_thread(import_module, "afoot.cluster.queue")
                settings = self._member.settings
                queue = module.FunctionQueue(settings.redis, settings.name, label=label)
                self._queues[label] = await self._stack.enter_async_context(queue)
        return self._queues[label]

    def _forget_ended(self) -> None:
        """Drop the mirrors of calls that have ended, and whose owner died before their work had stopped."""
        lives = {one.id for one in self._lease.gateways if one.lives}
        for live in self._engine.calls():
            if live.mirror is not None and live.call.end is not None and live.mirror.owner not in lives:
                self._engine.mirrors.drop(live)

    def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(_logged(work)))


async def _logged(work: Callable[[], Awaitable[None]]) -> None:
    """Run this work while the gateway runs; an unexpected error is logged, and the work starts again."""
    while True:
        try:
            await work()
            return
        except Exception:
            _log.exception("a part of the cluster failed, and begins anew")
            await asyncio.sleep(LOOK_S)
