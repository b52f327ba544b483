"""`Engine` owns every call; its method `commit` is the one door through which a call changes.

The parts of the work lie in modules of their own, which know nothing of the engine: each gets the clock,
`commit` and what else it needs. `Attempt` is what a provider sees of a call that runs.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from itertools import groupby
from operator import attrgetter
from secrets import token_hex
from typing import Self

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.config.redactor import make_redactor
from afoot.config.settings import Settings
from afoot.config.tables import QuotaSettings
from afoot.core.call import GATEWAY_DIED, Call, State, evolve, note, note_cpu
from afoot.core.fact_size import result_bytes
from afoot.core.facts import (
    NOTHING,
    Admitted,
    Amended,
    Answer,
    Asked,
    CancelRequested,
    Entry,
    Fact,
    Failure,
    Finished,
    HandedOver,
    Hindered,
    Logged,
    Opened,
    Question,
    Reading,
    Redefined,
    Released,
    Reported,
    Result,
    Started,
    Trace,
)
from afoot.core.names import full_name, own_name
from afoot.core.owner_commands import (
    AnswerCommand,
    CancelCommand,
    FollowCommand,
    HandOverCommand,
    OwnerCommand,
)
from afoot.core.ports import (
    BeforeCallHooks,
    CallOrigin,
    Journal,
    MessageLog,
    OtherGateways,
    Report,
    RunnerStart,
    Tool,
)
from afoot.core.rate_limit import RateLimit
from afoot.core.redaction import Redactor, declared_in_tool
from afoot.core.rules import Tick, decide, outcome_of_dead, with_circumstances
from afoot.core.trace import child_trace, outgoing_trace
from afoot.engine import failures
from afoot.engine.admission import Slots, needs_approval, wait_for_approval
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.engine.approval.question import is_own_approval
from afoot.engine.catalog import MIN_RUN_S, Catalog, Durations, EffectiveSettings, lower_limits
from afoot.engine.child_calls import MAX_DEPTH, ChildCalls
from afoot.engine.deadlines import Deadlines, LoopClock
from afoot.engine.followers import Follower, Wakeup, Watcher
from afoot.engine.live_call import SAMPLE_S, Claim, LiveCall, Mirror, Submission
from afoot.engine.mirrors import Mirrors
from afoot.engine.questions import Questions
from afoot.engine.quota import Quota, RefusalCounts
from afoot.engine.recorder import Recorder
from afoot.engine.wire_log import WireLog
from afoot.errors import MissingScope, Refused, RunnerDied, StoreError, ToolError, UnknownName

MAX_WEIGHT = 1e9  # a weight that sums to a number, whatever a caller sends
MAX_REASON_CHARS = 1000  # of a cancel: it is told to everybody who watches, and stands in the end of the call
MAX_LATE_LINES = 512  # logged after a call's end; a runaway tool fills no history
# Of the log of one call. Taking secrets out costs the loop about 0.2 µs a character, so a tool that logs as
# fast as it can would keep all others waiting: 20,000 lines of 500 characters took 160 ms at a time.
LOG_BURST_BYTES = 96 * 1024
LOG_BYTES_PER_S = 64 * 1024
LINE_BYTES = 128  # that every line counts besides its own
OWNER_S = 15.0  # the longest wait for an owner to take an answer: it may have died, and another comes
RETRY_ELSEWHERE_S = 1.0  # after which a caller may try again: a load balancer then knows of the drain
CUT_OFF = "this gateway was cut off"
RETRY_HISTORY_S = 5.0  # after which a caller may try again whether the history can be written

_REPORTS = {Reported}
_call_of: Callable[[Entry], str] = attrgetter("call")
_fact_of: Callable[[Entry], Fact] = attrgetter("fact")

log = logging.getLogger("afoot.engine")


class Engine:
    """Runs calls. Opened with `async with`; leaving it ends every call that still runs."""

    recorder: Recorder
    closing: str | None = None  # why no new calls are taken, and all streams end
    draining: str | None = None  # why no new calls are taken, while all else goes on
    takes_staying_until: float = 0.0  # calls that stay are taken so long all the same
    hooks: BeforeCallHooks | None = None
    quota: Quota | None = None
    others: OtherGateways | None = None  # in a cluster
    wire_log: WireLog | None = None  # where the settings want one
    default_trace: Trace | None = None  # of a call whose caller sent none; set where spans are made (V3)
    _loop: asyncio.AbstractEventLoop
    _idle_waiter: asyncio.Future[None] | None = None

    def __init__(self, journal: Journal, catalog: Catalog | None = None, slots: Slots | None = None) -> None:
        self.journal = journal
        self.catalog = catalog or Catalog()
        self.slots = slots or Slots()
        self.policy = ApprovalPolicy()
        self.require_history = False  # whether calls are refused while the history cannot be written
        self.write_ahead = False  # whether a tool runs only once it is on record that it does
        self.max_attempts = 3
        self.max_result_bytes = 32 * 1024 * 1024
        self.max_data_bytes = 64 * 1024
        self.reporters: set[str] = set()  # tools that are known to report, as server/name (C1)
        self.durations = Durations()
        self.quota_refusals = RefusalCounts()
        self.ran_past_grace = 0  # tools that did not stop in their grace
        self.watchers: list[Watcher] = []  # of the calls of this gateway
        self.observers: list[Watcher] = []  # of all calls, in a cluster also those of other gateways
        self.resource_listeners: list[Callable[[str], object]] = []  # told which of our resources changed
        self._live: dict[str, LiveCall] = {}
        self._resumed: set[str] = set()  # calls whose work goes on, and has not been entered yet
        self.clock = LoopClock()
        self.deadlines = Deadlines(self.clock, self.commit, self._stop, self._live)
        self.child_calls = ChildCalls(
            clock=self.clock,
            deadlines=self.deadlines,
            commit=self.commit,
            report=self._report_from_children,
            calls=self._live,
        )
        self.mirrors = Mirrors(self._live, self.catalog, self._publish)
        self.questions = Questions(
            clock=self.clock,
            deadlines=self.deadlines,
            child_calls=self.child_calls,
            catalog=self.catalog,
            commit=self.commit,
            find=self.__getitem__,
            send=self._send_to_owner,
        )
        self.catalog.listen(self._withdraw_outdated)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self.clock.start(self._loop)
        self.recorder = Recorder(self.journal, self._publish)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close("the gateway is shutting down")
        if tasks := [live.task for live in self.calls() if live.task is not None]:
            grace_s = max(live.call.opened.limits.grace_s for live in self.calls())
            await asyncio.wait(tasks, timeout=grace_s)
        self.end_grace_of_all()
        await self.recorder.close()

    def __getitem__(self, call_id: str) -> LiveCall:
        """A call that lives; raises UnknownName."""
        if call_id not in self._live:
            raise UnknownName("call", call_id)
        return self._live[call_id]

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._live

    def calls(self) -> list[LiveCall]:
        """Every call that lives, oldest first."""
        return list(self._live.values())

    def own_calls(self) -> list[LiveCall]:
        """The calls that live and are this gateway's own, oldest first."""
        return [live for live in self._live.values() if live.mirror is None]

    def own_call(self, call_id: str) -> LiveCall | None:
        """A call that lives and is this gateway's own."""
        live = self._live.get(call_id)
        return None if live is None or live.mirror is not None else live

    def adopt(self, live: LiveCall) -> None:
        """Take in a call that was loaded from the journal, or taken over from another gateway."""
        live.mirror = None
        self._live[live.call.id] = live

    @property
    def redactor(self) -> Redactor:
        """The rules for secrets that are in force."""
        return self.catalog.effective_settings.redactor

    # Settings

    def apply_settings(self, settings: Settings) -> None:
        """Go by these settings from now on; calls that run go on as they are."""
        redactor = make_redactor(settings)
        redactor.take_over(self.redactor)
        self.catalog.effective_settings = EffectiveSettings(
            settings.tools,
            settings.servers,
            settings.approval,
            settings.policy,
            settings.max_idle_s,
            settings.max_ceiling_s,
            redactor,
        )
        self._apply_quotas(settings.quota)
        if not settings.record_wire:
            self.wire_log = None
        elif self.wire_log is None:
            self.record_wire()
        self.write_ahead = settings.durable == "full"
        self.require_history = settings.history == "required"
        self.max_result_bytes = settings.max_result_bytes
        self.max_data_bytes = settings.max_data_bytes
        self.max_attempts = settings.max_attempts
        self.questions.max_questions = settings.max_questions
        self.policy.ask_by = settings.ask_by
        self.policy.waits = settings.unanswerable == "wait"

    def record_wire(self) -> WireLog:
        """Keep the messages on the wires of calls from now on."""
        self.wire_log = WireLog(self.clock, self.catalog, self._live)
        return self.wire_log

    def _apply_quotas(self, tables: dict[str, QuotaSettings]) -> None:
        """Apply these quotas; earlier use still counts."""
        before = self.quota
        if before is not None and before.tables == tables:
            return
        self.quota = None
        if before is not None:
            before.close()
        if tables:
            used = None if before is None else before.used
            self.quota = Quota(tables, self.watchers, self._caller_of, self.quota_refusals, used)
        self.slots.per_caller = None if self.quota is None else self.quota.concurrency
        if self.closing is None:
            self.slots.admit_waiting()

    def _caller_of(self, call_id: str) -> str:
        return self[call_id].call.opened.caller

    # The life of a call, from its opening to its end

    def submit(self, want: Submission) -> LiveCall:
        """Open a call and start it as soon as it may; raises UnknownName, Refused."""
        is_stopping = self.closing is not None or self.draining is not None
        if is_stopping or self.quota or (self.require_history and self.recorder.degraded):
            self._check_acceptance(want)
        provider, tool = want.offer or self.catalog.known.get(want.tool) or self.catalog.get(want.tool)
        if tool.scopes and (lacking := want.origin.lacks(tool.scopes)):
            raise MissingScope(tool.name, want.caller, lacking)
        is_lowered = want.idle_s is not None or want.ceiling_s is not None
        limits = tool.limits
        if is_lowered:
            limits = lower_limits(limits, want.idle_s, want.ceiling_s, by_caller=True)
        opened = Opened(
            self.clock.now(), tool.name, tool.server, want.caller, want.arguments, limits,
            tool.read_only, tool.idempotent, digest=tool.digest, trace=want.trace or self.default_trace,
            can_ask=want.can_ask,
        )  # fmt: skip
        # A free call waits for nobody, so it is started here, without a task that brings it to its start.
        is_free = tool.plain and not (tool.concurrency or self.slots.per_server or self.quota or self.hooks)
        if not tool.plain or want.parent or want.rerun_of or want.claim or tool.suspects(want.arguments):
            opened = self._complete_opening(opened, want, tool)
        # Time first, so that calls of one moment lie side by side in the journal; then 128 random bits.
        call = Call(f"{int(opened.at * 1000):x}{token_hex(16)}", opened)
        live = self._live[call.id] = LiveCall(
            call, tool, want.arguments, dict(want.answers), want.more, want.origin
        )
        if opened.arguments is not want.arguments or want.origin.secrets:
            self.redactor.lend(live.secrets())
        if want.parent is not None:
            live.inner = want.inner
            self.child_calls.attach(live)
        try:
            if is_lowered and (limits.ceiling_s <= 0 or limits.idle_s == 0):
                raise failures.spent_budget(tool)
            live.provider, live.work = provider, provider.prepare(tool.inner or tool.name, want.arguments)
        except BaseException as error:  # an author's own check of arguments may raise anything
            self.recorder.fact(Entry(call.id, 1, opened), live)
            failure = failures.failure_from_error(error, live, self.redactor)
            outcome = "refused" if failure.code == failures.SPENT_BUDGET else "failed"
            self.end(live, self.make_end(live, outcome, failure))
            return live
        if is_free and not (self.write_ahead or want.claim):
            # Before its first fact: the write then comes right behind the tool's first step, and has it all.
            live.task = self._loop.create_task(self._supervise(live))
        self.recorder.fact(Entry(call.id, 1, opened), live)
        if is_free and not want.claim:
            self.start(live)
        else:
            self.admit(live)
        return live

    def _check_acceptance(self, want: Submission) -> None:
        """Raise Refused if no call may be opened now, or not by this caller."""
        if self.closing is not None:
            raise Refused(f"no new calls: {self.closing}")
        is_taken = want.stays and self.clock.now() < self.takes_staying_until
        # A call below one that runs belongs to it.
        if self.draining is not None and not (is_taken or want.inner):
            raise Refused(f"no new calls: {self.draining}", RETRY_ELSEWHERE_S)
        if self.require_history and (why := self.recorder.degraded) is not None:
            raise Refused(f"no new calls while the history cannot be written: {why}", RETRY_HISTORY_S)
        if self.quota is not None and not want.inner:
            self.quota.take(want.caller, self.clock.now(), lambda: self._count_calls_of(want.caller))

    def _count_calls_of(self, caller: str) -> int:
        return sum(live.call.opened.caller == caller and not live.inner for live in self.calls())

    def _complete_opening(self, opened: Opened, want: Submission, tool: Tool) -> Opened:
        """The first fact of a call that is not plain: with its parent, its approval, its idempotency key."""
        limits = opened.limits
        if limits.patient and full_name(tool) in self.reporters:
            limits = replace(limits, patient=False)
        kept = want.arguments
        if tool.suspects(kept):
            kept = self.redact_arguments(tool, kept)
        above = None if want.parent is None else self._live.get(want.parent)
        is_anothers = above is not None and above.call.opened.caller != want.caller
        return replace(
            opened,
            arguments=kept,
            limits=limits,
            parent=None if is_anothers else want.parent,  # nobody puts calls below somebody else's (S3)
            weight=want.weight if 0 <= want.weight <= MAX_WEIGHT else 1.0,
            approval=self._approval(tool, want.arguments, want.caller, opened.at),
            trusted=tool.trusted,
            rerun_of=want.rerun_of,
            key=want.claim.key if want.claim else "",
            task=want.claim is not None and want.claim.task,
            more=self.redactor.value(want.more),
            inner=tool.inner if tool.inner != tool.name else "",
            arguments_mac=want.claim.arguments_mac if want.claim else "",
        )

    def _approval(self, tool: Tool, arguments: Raw, caller: str, now: float) -> str:
        """The approval that a call needs: that of its tool, unless the allowlist covers the call."""
        if tool.approval == "ask" and self.policy.allows(tool, arguments, caller, now):
            return "allowlist"
        return tool.approval

    def redact_arguments(self, tool: Tool, arguments: Raw) -> Raw:
        """The arguments as they are kept and shown: without secrets (S4)."""
        return self.redactor.value(arguments, declared_in_tool(tool.definition))

    def commit(self, live: LiveCall, wish: Fact | Tick) -> tuple[Fact, ...]:
        """The door: decide what follows, let the call take it in, and record it.

        A fact is seen by others once it is recorded. Raises IllegalFact, AlreadyAnswered.
        """
        if live.mirror is not None:
            return ()  # its owner alone writes facts of it
        call = live.call
        facts = decide(call, wish)
        for fact in facts:
            evolve(call, fact)
            kind = type(fact)
            if (kind is Finished or (kind is Asked and self.others is not None)) and (
                call.readings > live.sampled_number
            ):
                self.recorder.sample(
                    live, call.heard
                )  # the newest reading is always kept, and seen before it
            self.recorder.fact(Entry(call.id, call.seq, fact), live)
        return facts

    def _publish(self, entries: list[Entry], was_recorded: bool) -> None:
        """Show facts to followers and watchers, now that they are recorded or wait in memory to be."""
        for call_id, group in groupby(entries, _call_of):  # all facts of a short call come together
            live = self._live.get(call_id)
            if live is None:
                continue
            new = [entry for entry in group if entry.seq > live.recorded]
            if not new:
                continue
            live.recorded = new[-1].seq
            if not was_recorded:
                live.unrecorded = True
            kinds = set(map(type, map(_fact_of, new)))
            if Reported in kinds or Logged in kinds:
                live.remember_content(new)
            else:
                live.backlog.extend(new)
            for follower in live.followers:
                if Reported in kinds:
                    follower.on_content()
                if kinds != _REPORTS:
                    follower.wake()
            if self.observers:
                _show(new, self.observers)
            if self.watchers and live.mirror is None:
                _show(new, self.watchers)
            if Released in kinds:
                del self._live[call_id]
        if self._idle_waiter is not None and not self.own_calls():
            self._idle_waiter.set_result(None)
            self._idle_waiter = None

    def admit(self, live: LiveCall) -> None:
        """Bring a call, new or loaded, to its start: hooks, approval, slot, and what it runs on."""
        waits = live.call.definition.approval == "ask" or live.call.questions or live.call.opened.key
        if not (waits or self.hooks) and _is_runner_up(live) and self.slots.take(live):
            self.start(live)
        else:
            live.task = self._loop.create_task(self.admit_and_run(live))

    async def admit_and_run(self, live: LiveCall) -> None:
        """Bring a call to its start, and run it; or end it where somebody or something says no."""
        try:
            self.deadlines.arm(live)
            # The arguments may not change any more once somebody was asked (A6): the hooks have seen them.
            if self.hooks is not None and not (live.call.questions or live.call.attempt or live.call.amended):
                await self._run_hooks(live, self.hooks)
            is_ready = False
            while not is_ready:
                await self._wait_for_approval(live)
                await self.slots.wait(live, self.deadlines.arm)
                await self._start_runner(live)
                is_ready = not self._update_tool(live) or not self._gives_way(live)
            if live.call.attempt and not live.call.may_repeat:
                died = RunnerDied(f"{GATEWAY_DIED}, and its tool has changed since")
                self.end(live, self._end_of_dead(live, died))
                return
            self.start(live)
            # The history says that it waits: a gateway that dies now would have it run a second time.
            # A slot of the cluster is for one gateway alone, and only the record says which one that is.
            if self.write_ahead or not live.call.is_safe or self.slots.is_shared(live):
                await self._start_recorded()
        except asyncio.CancelledError:
            self.end(live, self.cancelled_end(live))
        except BaseException as error:  # a hook or an author's own check of arguments may raise anything
            if _is_closed_from_outside(error):
                raise
            is_refusal = isinstance(error, ToolError) and error.category == "refused"
            failure = failures.failure_from_error(error, live, self.redactor)
            self.end(live, self.make_end(live, "refused" if is_refusal else "failed", failure))
        else:
            if live.call.state is State.RUNNING and live.mirror is None:
                await self._supervise(live)

    async def _start_recorded(self) -> None:
        """Wait until the start of a call is on record.

        In a cluster that must be so: another gateway may take the call over, and it starts again what was not
        started. Alone, the call goes on while the history is away.
        """
        if self.others is None:
            await self.recorder.recorded()
            return
        await self.recorder.written()

    async def _wait_for_approval(self, live: LiveCall) -> None:
        if live.call.definition.approval != "auto":
            await wait_for_approval(
                live, self.policy, self.questions, self.catalog, self.clock, self._update_tool
            )

    def _update_tool(self, live: LiveCall) -> bool:
        """Have a call judged and run by its tool as it is now; gives whether that has changed (A7).

        Raises ToolError where its arguments do not fit any more.
        """
        found = self.catalog.newest(live.tool)
        if found is None or found[1].digest == live.tool.digest:
            return False
        provider, tool = found
        live.work = provider.prepare(own_name(tool), live.arguments)
        live.provider, live.tool = provider, tool
        self._withdraw_approvals(live)
        call, now = live.call, self.clock.now()
        approval = self._approval(tool, live.arguments, call.opened.caller, now)
        safety = tool.read_only, tool.idempotent, tool.trusted
        self.commit(live, Redefined(now, tool.digest, call.attempt, approval, *safety))
        return True

    def _gives_way(self, live: LiveCall) -> bool:
        """Whether a call must be asked about once more; others have its slot meanwhile."""
        if not needs_approval(live, self.policy, self.clock.now()):
            return False
        self.slots.free(live)
        self.slots.admit_waiting()
        return True

    def _withdraw_outdated(self) -> None:
        """Withdraw the approvals that are open for tools which have another definition now (A7)."""
        for live in self.calls():
            if live.call.open and live.provider is not None:
                found = self.catalog.newest(live.tool)
                if found is not None and found[1].digest != live.tool.digest:
                    self._withdraw_approvals(live)

    def _withdraw_approvals(self, live: LiveCall) -> None:
        for asked in [one for one in live.call.open.values() if is_own_approval(one)]:
            self.questions.withdraw(live, asked)

    async def _run_hooks(self, live: LiveCall, hooks: BeforeCallHooks) -> None:
        """Let the hooks see a call; they may refuse it, or change its arguments."""
        assert live.provider is not None
        # A hook that has a say is shown what will run, secrets and all.
        real = replace(live.call, opened=replace(live.call.opened, arguments=live.arguments))
        changed = await hooks.before(real, live.tool)
        if changed is not None:
            try:
                live.work = live.provider.prepare(own_name(live.tool), changed)
            except ToolError as error:  # the caller's own arguments fitted (E4)
                raise ToolError.validation(f"a hook changed the arguments: {error.message}") from error
            live.arguments = changed
            kept = self.redact_arguments(live.tool, changed)
            self.commit(live, Amended(self.clock.now(), kept, "hook"))
            self.redactor.lend(live.secrets())

    async def _start_runner(self, live: LiveCall) -> None:
        """Start the tool's server, child process or tab, if needed; the start limit counts meanwhile (C1)."""
        start = _runner_start(live) if live.tool.starts else None
        if start is not None:
            self.commit(live, Admitted(self.clock.now(), start.what))
            self.deadlines.arm(live)
            try:
                await start.done()
            except RunnerDied as died:
                raise ToolError.unavailable(f"{start.what}: {died}", code="start_failed") from died

    def start(self, live: LiveCall, *, unsent: bool = False, why: str = "") -> None:
        """Begin the next attempt of a call that has its slot; answers to the last one still count."""
        call = live.call
        if call.attempt:
            why = why or GATEWAY_DIED
        now = live.heard = self.clock.now()
        spent_s = call.on_clock(now) if call.attempt else None
        self.commit(live, Started(now, call.attempt + 1, unsent=unsent, why=why, spent_s=spent_s))
        self.deadlines.begin(live, now)
        if live.task is not None:
            return
        # The start is on record before a server, a child process or a tab gets the call.
        if self.write_ahead or (live.tool.starts and not call.is_safe):
            when = self.recorder.then if self.others is None else self.recorder.once_written
            when(lambda: self._launch(live))
        else:
            live.task = self._loop.create_task(self._supervise(live))

    def resume(self, live: LiveCall) -> None:
        """Go on with an attempt whose tool has run on while nobody owned its call; it has its work again.

        No fact is written: the attempt is the same. The time without an owner is no silence of the tool.
        """
        live.heard = self.clock.now()
        self.slots.hold(live)
        live.task = self._loop.create_task(self._supervise(live))
        if live.call.state is State.CANCELLING:
            self.deadlines.arm_grace(live, lambda: self._grace_over(live))
        # Behind the first step of the work, which takes in what the tool has said meanwhile.
        self._resumed.add(live.call.id)
        self._loop.call_soon(self._after_resumption, live)

    def _after_resumption(self, live: LiveCall) -> None:
        self._resumed.discard(live.call.id)
        if live.call.state is not State.CANCELLING:
            self.deadlines.arm(live)

    def _launch(self, live: LiveCall) -> None:
        if live.call.state is State.RUNNING and live.mirror is None:
            live.task = self._loop.create_task(self._supervise(live))

    async def _supervise(self, live: LiveCall) -> None:
        """Run the work of a call to its end, whatever that is. All that a tool raises is caught here."""
        assert live.work is not None
        call = live.call
        try:
            run = Attempt(self, live, call.attempt, call.id, call.opened.caller, self.wire_log)
            result = await live.work(run)
        except asyncio.CancelledError:
            end = self.cancelled_end(live)
        except RunnerDied as died:
            end = await self._restart(live, died)
            if end is None:
                await self._supervise(live)
                return
        except BaseException as error:  # KeyboardInterrupt and SystemExit would end the gateway
            if _is_closed_from_outside(error):
                raise
            failure = failures.failure_from_error(error, live, self.redactor)
            end = self.make_end(live, "failed", failure)
        else:
            size = result_bytes(result)
            if size > self.max_result_bytes:
                end = self.make_end(live, "failed", failures.too_large(size, self.max_result_bytes))
            elif result.is_error:
                end = self.make_end(live, "failed", failures.reported_error(live.tool))
                end = replace(end, result=result)
            else:
                end = Finished(self.clock.now(), "ok", result, None, call.cpu_s)
        self.end(live, end)

    async def _restart(self, live: LiveCall, died: RunnerDied) -> Finished | None:
        """Begin another attempt of a call whose runner died; gives its end where that may not be (U4)."""
        call, start_s = live.call, live.call.opened.limits.start_s
        if call.cancel is not None or call.end is not None:
            return self.cancelled_end(live)
        if call.attempt >= self.max_attempts or (died.began and not call.is_safe):
            return self._end_of_dead(live, died)
        live.heard = self.clock.now() + start_s  # a start is no silence of the tool (C1)
        live.orphaned = len(call.questions)
        why = ""
        try:
            async with asyncio.timeout(start_s):
                await self._start_again(live)
            self._update_tool(live)
            await self._wait_for_approval(live)
        except asyncio.CancelledError:
            return self.cancelled_end(live)
        except TimeoutError:
            why = f"it did not start again in {start_s:g} s (raise start_limit_s)"
        except Exception as error:  # whatever a start raises, the call must have its end
            if isinstance(error, ToolError) and error.category == "refused":
                failure = failures.failure_from_error(error, live, self.redactor)
                return self.make_end(live, "refused", failure)
            why = f"and again: {error}"
        if not why and died.began and not call.may_repeat:
            why = "its tool has changed since"
        if why:
            return self._end_of_dead(live, RunnerDied(f"{died}; {why}", began=died.began, code=died.code))
        self.start(live, unsent=not died.began, why=str(died))
        return None

    async def _start_again(self, live: LiveCall) -> None:
        """Start what a call runs on; a server that says when to try again is waited for (U4)."""
        while True:
            try:
                if (start := _runner_start(live)) is not None:
                    await start.done()
                return
            except ToolError as error:
                if error.retry_after is None:
                    raise
                await asyncio.sleep(error.retry_after)

    def _end_of_dead(self, live: LiveCall, died: RunnerDied) -> Finished:
        outcome, failure = failures.runner_death(live, died, self.redactor)
        end = self.make_end(live, outcome, failure)
        if died.began or live.call.begun or end.failure is None:
            return end
        return replace(end, failure=replace(end.failure, side_effects="none"))

    def end(self, live: LiveCall, end: Finished | None, how: str = "stopped") -> None:
        """Write the end of a call whose work is over, if it has none yet, and free its slot."""
        call = live.call
        # It held the loop, so that no timer could fire.
        if self.clock.holder is live and call.end is None and self.clock.now() >= live.due:
            self.commit(live, Tick(self.clock.now(), live.heard))
        if call.end is not None:
            if end is not None and end.result is not None:  # too late, and kept as late
                late = Reported(self.clock.now(), call.attempt, partial=end.result.content, late=True)
                self.commit(live, late)
        elif end is not None:
            if call.cancel is not None and end.outcome != "cancelled":
                end = replace(self.cancelled_end(live), result=end.result)
            if live.lines_left_out:
                self.mark_lines_left_out(live)
            if live.below is not None and end.outcome == "ok":
                self.child_calls.complete(live)
            self.commit(live, end)
        self.deadlines.deferred.pop(live, None)
        if live.timer is not None:
            live.timer.cancel()
            live.timer = None
        if call.released is None:
            self._release(live, how)

    def mark_lines_left_out(self, live: LiveCall) -> None:
        """Record that lines are missing here, if the call has logged more of them than are taken."""
        if live.lines_left_out:
            text = f"{live.lines_left_out} lines were left out: the tool logs too many"
            live.lines_left_out = 0
            self.commit(live, Logged(self.clock.now(), text, "warning", "afoot"))

    def _release(self, live: LiveCall, how: str) -> None:
        """Free the slot of a call whose work is over, end its children, and learn from it."""
        call = live.call
        self.commit(live, Released(self.clock.now(), how, call.cpu_s))
        if call.spent_s >= MIN_RUN_S and call.end is not None and call.end.outcome == "ok":
            self.durations.add(full_name(live.tool), call.spent_s)
        if self.slots.holders or self.slots.shared is not None:
            if live.mirror is None:  # else its slot is that of its next owner
                self.slots.free(live)
            if self.closing is None:
                self.slots.admit_waiting()
        if live.below is not None:
            for child in list(live.below.children.values()):
                self.cancel(child, "parent", "the call above it is over")
        if live.parent is not None:
            self.child_calls.on_end(live)
        if live.tool.limits.patient and (call.readings or call.contents):
            self.reporters.add(full_name(live.tool))

    def make_end(self, live: LiveCall, outcome: str, failure: Failure) -> Finished:
        """An end that says how far the call had come."""
        now = self.clock.now()
        return Finished(now, outcome, None, with_circumstances(live.call, failure, now), live.call.cpu_s)

    def cancelled_end(self, live: LiveCall) -> Finished:
        """The end of a call that was told to stop."""
        reason = live.call.cancel.reason if live.call.cancel else "the gateway is shutting down"
        return self.make_end(live, "cancelled", Failure(f"cancelled: {reason}", "cancelled", "cancelled"))

    # Cancelling and closing

    def drain(self, why: str | None, staying_s: float = 0.0) -> None:
        """Take no new calls, for this reason, or take them again; those that stay are taken so long still."""
        self.draining = why
        self.takes_staying_until = self.clock.now() + staying_s

    def cancel(self, live: LiveCall, by: str, reason: str, who: str = "") -> None:
        """Ask a call to stop; it has its grace to leave a partial result. Nothing happens if it is over."""
        if live.call.state in (State.CANCELLING, State.FINISHED):
            return
        if by == "disconnect" and live.followed_at and self._is_followed_elsewhere(live):
            return
        if len(reason) > MAX_REASON_CHARS:
            reason = f"{reason[:MAX_REASON_CHARS]}…"
        if live.mirror is not None:
            self._send_to_owner(live, CancelCommand(by, reason, who))
            return
        self.commit(live, CancelRequested(self.clock.now(), by, reason, who))
        self._stop(live)

    def _stop(self, live: LiveCall) -> None:
        """Tell the work of a call to stop."""
        if live.call.id in self._resumed:  # its tool runs, and hears of it once its work has been entered
            self._loop.call_soon(self._stop, live)
            return
        if live.parent is not None:
            self.child_calls.close_questions_of(live)
        if live.task is not None and _is_not_entered(live.task):
            live.task.cancel()  # it was never entered, so nothing in it can say that it ended
            live.task = None
        if live.task is None:
            self.end_grace(live)
            return
        self.deadlines.arm_grace(live, lambda: self._grace_over(live))
        cancel = live.call.cancel
        live.task.cancel(cancel.reason if cancel else None)

    def _grace_over(self, live: LiveCall) -> None:
        log.warning("call %s: tool %s did not stop in its grace, and runs on", live.call.id, live.tool.name)
        self.end_grace(live)

    def end_grace(self, live: LiveCall) -> None:
        """End a call whose work has stopped, or had the time to."""
        self.ran_past_grace += live.task is not None
        self.end(live, self.cancelled_end(live), "grace" if live.task is not None else "stopped")

    def end_grace_of_all(self) -> None:
        """End every call that still lives, whether its work has stopped or not."""
        for live in self.own_calls():
            self.end_grace(live)

    def close(self, reason: str) -> None:
        """Take no new calls, and cancel those that run."""
        self.closing = reason
        for live in self.own_calls():
            self.cancel(live, "shutdown", reason)

    async def idle(self, within_s: float) -> None:
        """Return when no call lives any more, or the time is over."""
        if self.own_calls():
            self._idle_waiter = self._idle_waiter or self._loop.create_future()  # one for all who wait
            await asyncio.wait([self._idle_waiter], timeout=within_s)

    # Following, answering, and calling from within a call

    def follow(self, live: LiveCall, wake: Callable[[], object], hz: float | None) -> Follower:
        """Read along from here on; `hz` None: without readings."""
        return Follower(live, wake, self.clock, hz)

    async def wait_for_end(self, live: LiveCall) -> Finished:
        """Return the end of a call once it is recorded."""
        wakeup = Wakeup()
        with self.follow(live, wakeup.wake, None) as follower:
            follower.seq = 0
            while not any(type(fact) is Finished for fact in follower.take().items):
                await wakeup.wait()
        assert live.call.end is not None
        return live.call.end

    def answer(self, question_id: str, answer: Answer) -> LiveCall:
        """Answer an open question; raises UnknownName, AlreadyAnswered, ToolError.validation."""
        live = self[question_id.partition(".")[0]]
        waiting = self.questions.answer(question_id, answer)
        if waiting is not None:
            self.admit(waiting)  # its gateway died while it waited; it is safe, so it runs again (Q1 h)
        return live

    async def call_below(
        self, parent: LiveCall, tool: str, arguments: Raw, weight: float, key: str = ""
    ) -> Result:
        """Call a tool below this call and wait for its end; raises UnknownName, Refused, ToolError."""
        above = parent.call
        if above.state is not State.RUNNING:
            raise ToolError.cancelled(above.cancel.reason if above.cancel else "the call above it is over")
        if parent.depth >= MAX_DEPTH:
            raise ToolError.refused(f"{tool} was not called: over {MAX_DEPTH} calls below one another")
        child = self.submit(
            Submission(
                tool,
                arguments,
                above.opened.caller,
                ceiling_s=max(0.001, above.opened.limits.ceiling_s - above.on_clock(self.clock.now())),
                parent=above.id,
                weight=weight,
                can_ask=parent.can_ask,
                trace=child_trace(above, self.default_trace is not None),
                inner=True,
                claim=Claim(key) if key else None,
                origin=parent.origin,
            )
        )
        return await self.result_below(child)

    async def result_below(self, child: LiveCall) -> Result:
        """Wait for the end of a call that was made below another one; raises ToolError."""
        try:
            end = await self.wait_for_end(child)
        finally:
            self.cancel(child, "parent", "the call above it is over")
        if end.outcome == "ok" and end.result is not None:
            return end.result
        raise failures.child_error(child.tool.name, end)

    def _report_from_children(
        self, parent: LiveCall, done: float, total: float | None, message: str | None
    ) -> None:
        call = parent.call
        run = Attempt(self, parent, call.attempt, call.id, call.opened.caller)
        run.report(done, total, message, source="below")

    # Calls that other gateways of a cluster own

    def tell_followed(self, live: LiveCall, is_followed: bool) -> None:
        """Tell the owner of a call whether requests of its caller follow it here."""
        if live.mirror is not None and self.others is not None and not live.call.is_finished:
            with suppress(
                StoreError
            ):  # too much waits for Redis: a leave may then cancel what is followed here
                self._send_to_owner(live, FollowCommand(self.others.id, is_followed))

    def _is_followed_elsewhere(self, live: LiveCall) -> bool:
        return self.others is not None and any(map(self.others.lives, live.followed_at))

    def _send_to_owner(self, live: LiveCall, command: OwnerCommand) -> None:
        if self.others is not None:
            self.others.send(live.call.id, command)

    def obey(self, live: LiveCall, command: OwnerCommand) -> None:
        """Carry out a command that another gateway sent for a call of ours; raises what its method raises."""
        match command:
            case CancelCommand():
                if command.by == "disconnect" and live.caller_requests and live.caller_requests.is_followed:
                    return  # its caller has left another gateway
                self.cancel(live, command.by, command.reason, command.who)
            case AnswerCommand():
                self.answer(command.question, command.answer)
            case HandOverCommand():
                self.hand_over(live, command.what)
            case FollowCommand():
                live.followed_at.discard(command.gateway)
                # It may be our own word, to the owner before us.
                if command.is_followed and self.others is not None and command.gateway != self.others.id:
                    live.followed_at.add(command.gateway)

    def hand_over(self, live: LiveCall, what: str) -> None:
        """Write that a request of the caller ends before its call, and how the caller finds the call."""
        if live.mirror is not None:
            self._send_to_owner(live, HandOverCommand(what))
        elif not live.call.is_finished:
            self.commit(live, HandedOver(self.clock.now(), what))

    async def wait_until_taken(self, live: LiveCall) -> None:
        """Wait until the owner of a call has taken the answers that were given here, but not for ever."""
        mirror = live.mirror
        if mirror is None or not mirror.answered:
            return
        wakeup = Wakeup()
        timer = self.clock.at(self.clock.now() + OWNER_S, wakeup.close)
        with self.follow(live, wakeup.wake, None):
            while live.mirror is mirror and not wakeup.closed and mirror.answered & live.call.open.keys():
                await wakeup.wait()
        timer.cancel()
        mirror.answered.clear()

    def abandon(self, call_id: str, owner: str = "", why: str = CUT_OFF) -> None:
        """Let go of a call that another gateway has taken over, or is to take over.

        Its work is told to stop, and its followers here hear that it is lost to them. Nothing of this is
        written: the history is the new owner's.
        """
        live = self._live.get(call_id)
        if live is None or live.mirror is not None:
            return
        log.warning("call %s goes to another gateway: %s", call_id, why)
        del self._live[call_id]
        if live.timer is not None:
            live.timer.cancel()
        self.slots.leave_to_next_owner(live)
        call = live.call
        if call.end is None:
            outcome = outcome_of_dead(call, began=call.started is not None)
            text = f"{outcome}: {why}, and another one has taken the call over"
            end = self.make_end(live, outcome, Failure(text, "unavailable", outcome, retryable=call.is_safe))
            evolve(call, end)
            live.backlog.append(Entry(call_id, call.seq, end))
            live.unrecorded = True
        live.recorded = call.seq
        live.mirror = Mirror(owner)
        for follower in live.followers:
            follower.wake()
        if live.task is not None:
            live.task.cancel("another gateway has taken the call over")

    def redact_log_line(self, text: str, call_id: str) -> str:
        """A line of the gateway's own log, without secrets (S4); `call_id`: the call that logged it."""
        live = self._live.get(call_id)
        if live is None:
            return self.redactor.text_of_any_call(text)
        return self.redactor.text(text, live.secrets())


class Attempt(Struct, eq=False):
    """One attempt of a call, as its provider sees it (`core.ports.Run`)."""

    engine: Engine
    live: LiveCall
    attempt: int
    id: str
    caller: str
    wire_log: MessageLog | None = None

    def __repr__(self) -> str:
        return (
            f"<attempt {self.attempt} of call {self.id}>"  # a tool may log it: nothing of the caller is in it
        )

    @property
    def origin(self) -> CallOrigin:
        return self.live.origin

    @property
    def cancelled(self) -> str | None:
        return None if (cancel := self.live.call.cancel) is None else cancel.reason

    @property
    def resumed_from(self) -> Raw:
        return self.live.call.checkpoint

    @property
    def more(self) -> Raw:
        return self.live.more

    @property
    def trace(self) -> dict[str, str]:
        return outgoing_trace(self.live.call, self.attempt, self.engine.default_trace is not None)

    def budget(self) -> tuple[float | None, float]:
        limits, call = self.live.call.opened.limits, self.live.call
        return limits.idle_s, limits.ceiling_s - call.on_clock(self.engine.clock.now())

    def report(
        self, progress: float | None, total: float | None, message: str | None, *, source: str = "tool"
    ) -> None:
        """Note a reading: it is seen at once, and one a second is taken into the history."""
        # A tool may report in a tight loop, so a reading is no fact: nothing is decided, encoded or awaited
        # here, and a follower is woken once until it has taken the newest reading. Measured from the tool's
        # call of `report` on: 1.2 µs.
        live = self.live
        call = live.call
        now = self.engine.clock.now()
        if now >= live.due:  # the loop was late (G4), or this first report begins another clock
            self.engine.deadlines.hear_late(live)
        if call.end is not None or call.attempt != self.attempt:
            self.content(Report(progress, total, message))
            return
        live.heard = now
        if message and message != live.clean_message:
            message = self._redact(message)
        reading = Reading(now, progress, total, message, source)
        note(call, reading)
        if live.readings is not None:
            live.readings.append(reading)
        if now - live.sampled >= SAMPLE_S:
            self.engine.recorder.sample(live, now)
        for listener in live.watchers:
            listener.on_reading(now)
        if live.parent is not None or live.below is not None:
            self.engine.child_calls.on_report(live, reading)

    def _redact(self, message: str) -> str:
        """Return a message without secrets; one that has none is not searched again while it repeats."""
        live, redactor = self.live, self.engine.redactor
        is_given = (  # secrets, maybe
            live.arguments is not live.call.opened.arguments or live.said or live.origin.secrets
        )
        if is_given or redactor.may_hide(message):
            clean = redactor.prose(message, live.secrets())
            if clean != message:
                return clean
        live.clean_message = message
        return message

    def content(self, report: Report) -> None:
        """Record a report that is more than numbers, or that comes too late."""
        live, now = self.live, self._note_sign_of_life()
        if live.call.end is not None:
            if now - live.late_at < SAMPLE_S and not report.partial:
                return  # a runaway tool fills no history
            live.late_at = now
        engine = self.engine
        fit = failures.drop_oversized(report, live.call, engine.max_result_bytes, engine.max_data_bytes)
        redactor, own = engine.redactor, live.secrets()
        numbers = fit.progress, fit.total, fit.message and redactor.prose(fit.message, own)
        fact = Reported(
            now, self.attempt, *numbers, redactor.without_known(fit.data, own), fit.partial, fit.checkpoint,
            more=fit.more, children=fit.children,
        )  # fmt: skip
        engine.commit(live, fact)
        is_next = not live.points or live.call.on_clock(now) - live.points[-1][0] >= SAMPLE_S
        if live.call.end is None and fit.progress is not None and is_next:
            engine.recorder.sample(live, now, is_fact=True)
        if live.parent is not None or live.below is not None or fact.children:
            engine.child_calls.on_report(live, fact)

    def alive(self) -> None:
        """Note a heartbeat: it re-arms the idle limit and is no advance (C5)."""
        self._note_sign_of_life()

    def _note_sign_of_life(self) -> float:
        """Note that the tool was heard, if that still counts."""
        live, now = self.live, self.engine.clock.now()
        if now >= live.due:
            self.engine.deadlines.hear_late(live)
        if live.call.end is None and live.call.attempt == self.attempt:
            live.heard = now
            if live.parent is not None:
                self.engine.child_calls.on_sign_of_life(live, now)
        return now

    def log(self, text: str, level: str, logger: str, more: Raw = NOTHING) -> None:
        """Record a line that the tool logged."""
        live, call = self.live, self.live.call
        live.late += call.end is not None
        has_run = call.started is not None and call.state is not State.QUEUED
        if has_run and live.late <= MAX_LATE_LINES:
            rate = live.log_rate = live.log_rate or RateLimit(LOG_BURST_BYTES, LOG_BYTES_PER_S)
            if not rate.take(self.engine.clock.now(), LINE_BYTES + len(text) + len(more)):
                live.lines_left_out += 1
                return
            self.engine.mark_lines_left_out(live)
            clean = self.engine.redactor.text(text, live.secrets())
            kept = self.engine.redactor.value(more) if clean == text else NOTHING  # it may say the same
            self.engine.commit(live, Logged(self.engine.clock.now(), clean, level, logger, kept))

    async def ask(self, question: Question) -> Answer:
        return await self.engine.questions.ask(self.live, question)

    def waiting(self, message: str | None) -> None:
        self.engine.questions.wait_upstream(self.live, message)

    def hindered(self, by: str, hint: str) -> None:
        """Record that something slows the tool, or that it has stopped doing so; only a change is a fact."""
        call = self.live.call
        before = "" if call.hindered is None else call.hindered.by
        if call.state is State.RUNNING and call.attempt == self.attempt and by != before:
            self.engine.commit(self.live, Hindered(self.engine.clock.now(), by, hint))

    def holds_loop(self) -> None:
        self.engine.clock.holder = self.live

    def resource_changed(self, uri: str) -> None:
        for listener in self.engine.resource_listeners:
            listener(uri)

    def spent(self, cpu_s: float) -> None:
        note_cpu(self.live.call, cpu_s)

    async def call(self, tool: str, arguments: Raw, weight: float, key: str = "") -> Result:
        return await self.engine.call_below(self.live, tool, arguments, weight, key)


def _runner_start(live: LiveCall) -> RunnerStart | None:
    """The start that the tool of this call needs before it can run, if any."""
    if live.provider is None:
        return None
    return live.provider.start(own_name(live.tool), live.call.opened.caller)


def _is_runner_up(live: LiveCall) -> bool:
    """Whether nothing must be started before this call; an error is raised again where the start is made."""
    try:
        return not live.tool.starts or _runner_start(live) is None
    except Exception:  # whatever a provider raises, the call must have its end
        return False


def _show(entries: list[Entry], watchers: list[Watcher]) -> None:
    for entry in entries:
        for watcher in watchers:
            watcher.on_fact(entry)


def _is_closed_from_outside(error: BaseException) -> bool:
    """Whether a coroutine is being closed after its loop has ended, and nothing raised this error."""
    if not isinstance(error, GeneratorExit):
        return False
    try:
        return asyncio.current_task() is None
    except RuntimeError:  # no loop runs here
        return True


def _is_not_entered(task: asyncio.Task[None]) -> bool:
    """Whether a task has not taken its first step: cancelled now, it never will, and cannot say so."""
    coroutine = task.get_coro()
    return iscoroutine(coroutine) and getcoroutinestate(coroutine) == CORO_CREATED
