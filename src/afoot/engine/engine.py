"""The engine: it owns every call, and `commit` is the one door through which a call changes."""

import asyncio
from collections.abc import Callable
from functools import partial
from math import inf
from secrets import token_hex
from typing import Self

from msgspec.structs import replace

from afoot.core.call import Call, State, evolve
from afoot.core.facts import (
    Answer,
    CancelRequested,
    Entry,
    Fact,
    Failure,
    Finished,
    Opened,
    Question,
    Released,
    Reported,
    Started,
)
from afoot.core.ports import Hooks, Journal
from afoot.core.rules import Tick, decide, explained
from afoot.engine import questions
from afoot.engine.admission import admit, revive
from afoot.engine.catalog import Catalog
from afoot.engine.deadlines import arm
from afoot.engine.endings import failed
from afoot.engine.live import Follower, Live, LoopClock, supervise
from afoot.engine.policy import Policy
from afoot.engine.quota import Quota, Refusals
from afoot.engine.recorder import Recorder
from afoot.engine.slots import Slots
from afoot.engine.stopping import grace_over, stop
from afoot.engine.submission import Submission, check, special
from afoot.engine.tapes import Tapes
from afoot.engine.terms import lower
from afoot.engine.trees import Trees
from afoot.engine.usual import Usual
from afoot.engine.watch import Watcher
from afoot.errors import RunnerDied, UnknownName

YOUNG_S = 0.05  # a call gets its timer at this age, unless its clocks are as short


class Engine:
    """Runs calls. Opened with `async with`; leaving it ends every call that still runs."""

    clock: LoopClock
    recorder: Recorder
    closing: str | None = None
    hooks: Hooks | None = None
    quota: Quota | None = None
    tapes: Tapes | None = None  # of what is said on the wires, where that is wanted
    _loop: asyncio.AbstractEventLoop
    _emptied: asyncio.Future[None] | None = None

    def __init__(self, journal: Journal, catalog: Catalog | None = None, slots: Slots | None = None) -> None:
        self.journal, self.catalog, self.slots = journal, catalog or Catalog(), slots or Slots()
        self.require_history, self.max_attempts = False, 3
        self.write_ahead = False  # whether a tool runs only once it is on record that it does
        self.max_result_bytes, self.max_data_bytes, self.max_questions = 32 * 1024 * 1024, 64 * 1024, 100
        self.policy, self.trees, self.usual = Policy(), Trees(self), Usual()
        self.reporters: set[str] = set()  # tools that are known to report (C1)
        self.watchers: list[Watcher] = []
        self._live: dict[str, Live] = {}
        self.young: dict[int, Callable[[], object]] = {}  # what those need who outlive their first moment
        self.aging, self.unstopped = False, 0  # tools that ran on after their grace
        self.refused = Refusals()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self.clock = LoopClock(self._loop)
        self.recorder = Recorder(self.journal, self._publish)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close("the gateway is shutting down")
        if tasks := [live.task for live in self.calls() if live.task is not None]:
            grace_s = max(live.call.opened.limits.grace_s for live in self.calls())
            await asyncio.wait(tasks, timeout=grace_s)
        for live in self.calls():
            grace_over(self, live)
        await self.recorder.close()

    def __getitem__(self, call_id: str) -> Live:
        """A call that lives; raises UnknownName."""
        if call_id not in self._live:
            raise UnknownName("call", call_id)
        return self._live[call_id]

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._live

    def adopt(self, live: Live) -> None:
        """Take in a call that was remembered."""
        self._live[live.call.id] = live

    def calls(self) -> list[Live]:
        """Every call that lives, oldest first."""
        return list(self._live.values())

    def submit(self, want: Submission) -> Live:
        """Open a call and start it as soon as it may; raises UnknownName, Refused."""
        if self.closing is not None or self.quota or (self.require_history and self.recorder.degraded):
            check(self, want)
        provider, tool = self.catalog.known.get(want.tool) or self.catalog.get(want.tool)
        is_lowered = want.idle_s is not None or want.ceiling_s is not None
        limits = lower(tool.limits, want.idle_s, want.ceiling_s) if is_lowered else tool.limits
        opened = Opened(
            self.clock.now(), tool.name, tool.server, want.caller, want.arguments, limits,
            tool.read_only, tool.idempotent, digest=tool.digest, trace=want.trace or self.trees.trace,
        )  # fmt: skip
        is_free = tool.plain and not (tool.concurrency or self.slots.per_server or self.quota or self.hooks)
        if not tool.plain or want.parent or want.rerun_of or want.claim or tool.suspects(want.arguments):
            opened = special(self, want, tool, opened)
        # Time first, so that calls of one moment lie side by side in the journal; then 128 random bits.
        call = Call(f"{int(opened.at * 1000):x}{token_hex(16)}", opened)
        live = self._live[call.id] = Live(call, tool, want.arguments, dict(want.answers), want.can_ask)
        if want.parent is not None:
            self.trees.join(live, want.inner)
        try:
            live.provider, live.work = provider, provider.prepare(tool.inner or tool.name, want.arguments)
        except Exception as error:  # an author's own check of arguments may raise anything
            self.recorder.fact(Entry(call.id, 1, opened), live)
            self.end(live, self.ending(live, "failed", failed(self, live, error)))
            return live
        if is_free and not (self.write_ahead or want.claim):
            # Before its first fact: the write then comes right behind the tool's first step, and has it all.
            live.task = self._loop.create_task(supervise(self, live))
        self.recorder.fact(Entry(call.id, 1, opened), live)
        (self.start if is_free and not want.claim else self.admit)(live)
        return live

    def commit(self, live: Live, wish: Fact | Tick) -> tuple[Fact, ...]:
        """The door: what may follow is decided, taken in, and recorded; it is seen once it is recorded."""
        call = live.call
        facts = decide(call, wish)
        for fact in facts:
            evolve(call, fact)
            if type(fact) is Finished and live.left_out:
                live.left_out -= 1  # the newest reading is kept after all
                self.recorder.sample(live, call.heard)
            self.recorder.fact(Entry(call.id, call.seq, fact), live)
        return facts

    def follow(self, live: Live, ring: Callable[[], object], hz: float | None) -> Follower:
        """Read along from here on; `hz` None: without readings."""
        return Follower(live, ring, self.clock, hz)

    def cancel(self, live: Live, by: str, reason: str, who: str = "") -> None:
        """Ask a call to stop; it has its grace to leave a partial result. Nothing happens if it is over."""
        if live.call.state in (State.CANCELLING, State.FINISHED):
            return
        self.commit(live, CancelRequested(self.clock.now(), by, reason, who))
        stop(self, live)

    async def ask(self, live: Live, question: Question) -> Answer:
        """Open a question and wait for its answer; a known key is answered at once."""
        return await questions.ask(self, live, question)

    def answer(self, question_id: str, answer: Answer) -> Live:
        """Answer an open question; raises UnknownName, AlreadyAnswered, ToolError.validation."""
        live = self[question_id.partition(".")[0]]
        if questions.answer(self, live, question_id, answer):
            self.admit(live)  # its gateway died while it waited; it is safe, so it runs again (Q1 h)
        return live

    def end(self, live: Live, end: Finished | None, how: str = "stopped") -> None:
        """The work of a call is over: write its end, if it has none yet, and free its slot."""
        call = live.call
        if call.end is None and self.clock.now() >= live.due:  # a clock fired while the loop was blocked
            self.commit(live, Tick(self.clock.now(), live.heard))
        if call.end is not None:
            if end is not None and end.result is not None:  # too late, and kept as late
                late = Reported(self.clock.now(), call.attempt, partial=end.result.content, late=True)
                self.commit(live, late)
        elif end is not None:
            if call.cancel is not None and end.outcome != "cancelled":
                end = replace(self.cancelled(live), result=end.result)
            self.commit(live, end)
        self.young.pop(id(live), None)
        if live.timer is not None:  # it has outlived its first moment
            live.timer.cancel()
            live.timer = None
            self.usual.ended(call)
        if call.released is not None:
            return
        self.commit(live, Released(self.clock.now(), how, call.cpu_s))
        if self.slots.holders:
            self.slots.free(live)
            while self.closing is None and self.slots.next() is not None:
                pass  # it was told, and goes on by itself
        if live.parent is not None or live.below is not None:
            self.trees.ended(live)
        if live.tool.limits.patient and (call.readings or call.contents):
            self.reporters.add(live.tool.name)

    def cancelled(self, live: Live) -> Finished:
        """The end of a call that was told to stop."""
        reason = live.call.cancel.reason if live.call.cancel else "the gateway is shutting down"
        return self.ending(live, "cancelled", Failure(f"cancelled: {reason}", "cancelled", "cancelled"))

    def ending(self, live: Live, outcome: str, failure: Failure) -> Finished:
        """An end that says how far the call had come."""
        now = self.clock.now()
        return Finished(now, outcome, None, explained(live.call, failure, now), live.call.cpu_s)

    async def idle(self, within_s: float) -> None:
        """Return when no call lives any more, or the time is over."""
        if self._live:
            self._emptied = self._emptied or self._loop.create_future()  # one for all who wait
            await asyncio.wait([self._emptied], timeout=within_s)

    def close(self, reason: str) -> None:
        """Take no new calls, and cancel those that run."""
        self.closing = reason
        for live in self.calls():
            self.cancel(live, "shutdown", reason)

    def admit(self, live: Live) -> None:
        """Bring a call, new or remembered, to its start: hooks, approval, slot, and what it runs on."""
        waits = live.call.opened.approval == "ask" or live.call.questions or live.call.opened.key
        if not (waits or self.hooks or live.tool.starts) and self.slots.take(live):
            self.start(live)
        else:
            live.task = self._loop.create_task(admit(self, live))

    def start(self, live: Live, *, unsent: bool = False, why: str = "") -> None:
        """Begin the next attempt; it must have its slot. What was answered to the last is not asked again."""
        if live.call.attempt:
            why = why or "the gateway died"
        now = live.heard = self.clock.now()
        spent_s = live.call.on_clock(now) if live.call.attempt else None
        self.commit(live, Started(now, live.call.attempt + 1, unsent=unsent, why=why, spent_s=spent_s))
        limits = live.call.opened.limits
        live.due = now + min(limits.ceiling_s, inf if limits.idle_s is None else limits.idle_s)
        if limits.patient and live.call.is_patient:
            live.due = 0.0  # its first report begins another clock
        if live.timer or limits.ceiling_s < 1 or (limits.idle_s is not None and limits.idle_s < 1):
            arm(live, self.clock, self.tick)
        self.young[id(live)] = partial(self.tick, live, young=True)
        if not self.aging:
            self.age()
        if live.task is None and self.write_ahead:
            self.recorder.then(lambda: self._launch(live))
        elif live.task is None:
            live.task = self._loop.create_task(supervise(self, live))

    async def revived(self, live: Live, died: RunnerDied) -> Finished | None:
        """What ran a tool died: None once it runs again, else its end (U4)."""
        return await revive(self, live, died)

    def _launch(self, live: Live) -> None:
        if live.call.state is State.RUNNING:
            live.task = self._loop.create_task(supervise(self, live))

    def age(self) -> None:
        """See, in a moment, who of the young has outlived it."""
        self.aging = True
        self._loop.call_later(YOUNG_S, self._age)

    def _age(self) -> None:
        """Those who have outlived their first moment get their timers and watches; nearly all have not."""
        young, self.young, self.aging = self.young, dict[int, Callable[[], object]](), False
        for settle in young.values():
            settle()

    def tick(self, live: Live, *, young: bool = False) -> None:
        """A timer of this call fired: apply its clocks, or set it anew. The young may have one already."""
        if young and live.timer is not None:
            return
        if self.commit(live, Tick(self.clock.now(), live.heard)):
            stop(self, live)
            return
        arm(live, self.clock, self.tick)
        if not live.due:  # a first report is being noted: the clock it begins can be set only after it
            self._loop.call_soon(arm, live, self.clock, self.tick)

    def _publish(self, entries: list[Entry], was_recorded: bool) -> None:
        for entry in entries:
            live = self._live.get(entry.call)
            if live is None or entry.seq <= live.recorded:
                continue
            live.recorded = entry.seq
            live.unrecorded = live.unrecorded or not was_recorded
            live.backlog.append(entry)
            for follower in live.followers:
                follower.ring()
            for watcher in self.watchers:
                watcher.see(entry)
            if type(entry.fact) is Released:
                del self._live[entry.call]
        if not self._live and self._emptied is not None:
            self._emptied.set_result(None)
            self._emptied = None
