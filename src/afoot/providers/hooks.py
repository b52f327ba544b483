"""`HookSet` runs the hooks of the settings: they observe calls, or decide before a call starts (K1).

`HookNotifier` follows all calls and tells the hooks that only look on; these never delay a call. One run of
one hook is in `hook_runner`.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, Self

from msgspec import Raw, Struct, json

from afoot.config.settings import Hook
from afoot.core.call import Call, State
from afoot.core.fact_size import result_bytes
from afoot.core.facts import (
    NOTHING,
    Answer,
    Asked,
    Entry,
    Finished,
    Interrupted,
    Logged,
    Question,
    Reading,
    Result,
    Started,
)
from afoot.core.ports import Clock, Tool
from afoot.errors import ToolError
from afoot.providers.hook_runner import (
    BEFORE_CALL,
    BEFORE_QUESTION,
    MAX_OUTPUT_BYTES,
    ActiveHook,
    HookAnswer,
    HookFailed,
)

MAX_QUEUED: Final = 1000  # events that wait for one hook; when there are more, the oldest are dropped
MAX_QUEUED_BYTES: Final = 16 * 1024 * 1024  # of the arguments and results in them
MAX_RUNNING: Final = 4  # runs of one hook at once; those about one call come one after the other
PROGRESS_INTERVAL_S: Final = 1.0  # between two reports of one call; its last one is always told
HOOK: Final = "hook"  # who answers
DRAIN_S: Final = 5.0  # for events that still wait when the gateway closes

Event = dict[str, Any]

log = logging.getLogger("afoot.hooks")


class HookedCall(Protocol):
    """A call that is not over, as the hooks see it."""

    @property
    def call(self) -> Call: ...

    @property
    def tool(self) -> Tool: ...


class HookFollower(Protocol):
    """A follower of one call (`engine.followers`)."""

    number: int

    def take(self) -> object: ...

    def close(self) -> None: ...


class HookedCalls(Protocol):
    """The engine, as far as `HookNotifier` uses it."""

    clock: Any
    watchers: list[Any]

    def __contains__(self, call_id: str) -> bool: ...

    def __getitem__(self, call_id: str) -> Any: ...

    def follow(self, live: Any, wake: Callable[[], object], hz: float | None) -> Any: ...

    def commit(self, live: Any, wish: Any) -> object: ...


class ProgressPace(Struct, eq=False):
    """The last progress that the hooks of one call were told of, and when they may be told again."""

    following: HookFollower
    last_reading: Reading | None = None  # that the hooks were told of
    due: float = 0.0  # when they may be told of the next one
    timer: asyncio.TimerHandle | None = None


class HookSet:
    """The hooks in force. `counted`: how often they ran, failed, refused, amended, answered, lost events."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self._by_event: dict[str, list[ActiveHook]] = {}
        for hook in hooks:
            self._by_event.setdefault(hook.on, []).append(ActiveHook(hook))
        self.counted: Counter[str] = Counter()
        self.log_to_call: Callable[[str, str], object] = lambda call, text: None  # writes to a call's log

    def load(self) -> None:
        """Load the functions. One that cannot be loaded fails at each run; a required one then refuses."""
        for one in (one for some in self._by_event.values() for one in some):
            try:
                one.load()
            except HookFailed as error:
                log.error("%s %s", one.name, error, exc_info=error.__cause__)

    def has(self, on: str) -> bool:
        """Whether there is a hook on this event."""
        return on in self._by_event

    def matching(self, on: str, tool: Tool) -> list[ActiveHook]:
        """Return the hooks on this event of this tool, in the order of the settings."""
        return [one for one in self._by_event.get(on, ()) if one.matches(tool)]

    async def before(self, call: Call, tool: Tool) -> Raw | None:
        """Run the hooks that have a say; each gets the arguments that the one before returned.

        Returns the changed arguments, or None if no hook changed them. Raises ToolError.refused.
        """
        arguments = call.arguments
        for one in self.matching(BEFORE_CALL, tool):
            said = await self._ask(one, call, call_event(BEFORE_CALL, call, arguments))
            if said.refusal is not None:
                self.counted["refused"] += 1
                text = f"{tool.name} was not run: a hook refused it: {said.refusal}"
                raise ToolError.refused(text, code="hook_refused")
            if said.changed:
                self.counted["amended"] += 1
                arguments = said.changed
        return None if arguments is call.arguments else arguments

    async def answer(self, call: Call, tool: Tool, question: Question) -> Answer | None:
        """Let the hooks answer a question, in the order of the settings; None if all leave it to a person."""
        for one in self.matching(BEFORE_QUESTION, tool):
            try:
                said = await one.run(question_event(BEFORE_QUESTION, call, question))
            except HookFailed as error:
                self.note_failure(one, call.id, error)
                continue
            self.counted["run"] += 1
            if said.action is not None:
                self.counted["answered"] += 1
                content = NOTHING if said.content is None else Raw(json.encode(said.content))
                return Answer(said.action, content, by=HOOK, who=one.name)
        return None

    async def _ask(self, one: ActiveHook, call: Call, event: Event) -> HookAnswer:
        """Return the answer of a hook. One that fails has no say, unless it is required: then it refuses."""
        try:
            said = await one.run(event)
        except HookFailed as error:
            self.note_failure(one, call.id, error)
            if not one.hook.required:
                return HookAnswer()
            text = f"{call.opened.tool} was not run: the required {one.name} {error}"
            raise ToolError.refused(text, code="hook_failed") from None
        self.counted["run"] += 1
        return said

    async def run_observer(self, one: ActiveHook, call: str, event: Event) -> None:
        """Run a hook that only looks on; its failure is logged, and changes nothing."""
        try:
            await one.run(event)
        except HookFailed as error:
            self.note_failure(one, call, error)
        else:
            self.counted["run"] += 1

    def note_failure(self, one: ActiveHook, call: str, error: HookFailed) -> None:
        """Count the failure of a hook, and write it to the gateway's log and to that of the call."""
        self.counted["failed"] += 1
        log.warning("call %s: %s %s", call, one.name, error)
        self.log_to_call(call, f"{one.name} {error}")


class HookNotifier:
    """Follows every call and tells the hooks that only look on. It is opened before calls come."""

    def __init__(self, hooks: HookSet, calls: HookedCalls) -> None:
        self._hooks = hooks
        self._calls = calls
        self._queues: dict[ActiveHook, HookQueue] = {}
        self._paces: dict[str, ProgressPace] = {}
        self._notes: dict[str, list[str]] = {}  # lines for the logs of calls that have not started

    async def __aenter__(self) -> Self:
        self._hooks.load()
        self._hooks.log_to_call = self._log_to_call
        self._calls.watchers.append(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._calls.watchers.remove(self)
        queues = list(self._queues.values())
        await asyncio.gather(*(queue.drain(DRAIN_S) for queue in queues))

    def on_fact(self, entry: Entry) -> None:
        """Tell the hooks of a fact that was recorded."""
        fact = entry.fact
        if type(fact) in (Started, Interrupted, Asked, Finished) and entry.call in self._calls:
            live: HookedCall = self._calls[entry.call]
            match fact:
                case Started():
                    if fact.attempt > 1:
                        self._put("on_recovery", live, lambda call: recovery_event(call, fact))
                    self._on_started(live)
                case Interrupted():
                    self._put("on_recovery", live, lambda call: recovery_event(call, fact))
                case Asked() if fact.question.kind != "below" and not _is_answered_by_hook(
                    live.call, fact.question
                ):
                    self._put(
                        "on_question", live, lambda call: question_event("on_question", call, fact.question)
                    )
                case Finished():
                    self._on_finished(live, fact)

    def _on_started(self, live: HookedCall) -> None:
        notes = self._notes.pop(live.call.id, ())
        if notes:
            loop = asyncio.get_running_loop()
            for text in notes:  # not now: a fact is being published
                loop.call_soon(self._log_to_call, live.call.id, text)
        if live.call.id in self._paces or not self._hooks.matching("on_progress", live.tool):
            return
        following = self._calls.follow(live, lambda: self._on_progress(live), 1 / PROGRESS_INTERVAL_S)
        following.number = 0  # reports that came before this fact was recorded count as new
        self._paces[live.call.id] = ProgressPace(following)
        self._on_progress(live)

    def _on_progress(self, live: HookedCall) -> None:
        """Tell the hooks of new progress, now or when the interval is over."""
        pace = self._paces.get(live.call.id)
        if pace is None:
            return
        pace.following.take()
        if live.call.latest is pace.last_reading or pace.timer is not None:
            return
        clock: Clock = self._calls.clock
        wait_s = pace.due - clock.now()
        if wait_s <= 0:
            self._tell_progress(live, pace)
        else:
            pace.timer = asyncio.get_running_loop().call_later(wait_s, self._tell_progress, live, pace)

    def _tell_progress(self, live: HookedCall, pace: ProgressPace) -> None:
        reading = live.call.latest
        pace.timer = None
        pace.due = self._calls.clock.now() + PROGRESS_INTERVAL_S
        if reading is not None and reading is not pace.last_reading:
            pace.last_reading = reading
            self._put("on_progress", live, lambda call: progress_event(call, reading))

    def _on_finished(self, live: HookedCall, end: Finished) -> None:
        self._notes.pop(live.call.id, None)
        pace = self._paces.pop(live.call.id, None)
        if pace is not None:
            if pace.timer is not None:
                pace.timer.cancel()
            pace.following.close()
            self._tell_progress(live, pace)
        if live.call.started is not None:
            self._put("after_call", live, lambda call: end_event("after_call", call, end))
        self._put("on_end", live, lambda call: end_event("on_end", call, end))

    def _put(self, on: str, live: HookedCall, make_event: Callable[[Call], Event]) -> None:
        for one in self._hooks.matching(on, live.tool):
            if one not in self._queues:
                self._queues[one] = HookQueue(self._hooks, one)
            self._queues[one].put(live.call.id, make_event(live.call))

    def _log_to_call(self, call_id: str, text: str) -> None:
        """Write a line to the log of a call, now or once it runs; a call that is over gets none."""
        if call_id not in self._calls:
            return
        live: HookedCall = self._calls[call_id]
        if (
            live.call.started is not None
            and live.call.state is not State.QUEUED
            and live.call.released is None
        ):
            self._calls.commit(live, Logged(self._calls.clock.now(), text, "warning", "hooks"))
        elif live.call.end is None:
            self._notes.setdefault(call_id, []).append(text)


class HookQueue:
    """The events that wait for one hook.

    Those of several calls are told at once, those of one call in order.
    """

    def __init__(self, hooks: HookSet, hook: ActiveHook) -> None:
        self._hooks = hooks
        self._hook = hook
        self._waiting: deque[tuple[str, Event]] = deque()
        self._waiting_bytes = 0
        self._running: dict[str, asyncio.Task[None]] = {}  # by call

    def put(self, call: str, event: Event) -> None:
        """Add an event; if too many or too large ones wait, the oldest are dropped and counted."""
        self._waiting.append((call, event))
        self._waiting_bytes += event_bytes(event)
        while len(self._waiting) > MAX_QUEUED or (
            self._waiting_bytes > MAX_QUEUED_BYTES and len(self._waiting) > 1
        ):
            self._waiting_bytes -= event_bytes(self._waiting.popleft()[1])
            self._hooks.counted["dropped"] += 1
        self._start_runs()

    async def drain(self, within_s: float) -> None:
        """Wait until everything is told, or the time is over; then the runs are cancelled."""
        deadline = asyncio.get_running_loop().time() + within_s
        while self._running:
            left_s = deadline - asyncio.get_running_loop().time()
            tasks = list(self._running.values())
            done, _ = await asyncio.wait(tasks, timeout=max(0.0, left_s), return_when="FIRST_COMPLETED")
            if not done:
                self._hooks.counted["dropped"] += len(tasks) + len(self._waiting)
                self._waiting.clear()
                self._waiting_bytes = 0
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    def _start_runs(self) -> None:
        while len(self._running) < MAX_RUNNING:
            found = next((item for item in self._waiting if item[0] not in self._running), None)
            if found is None:
                return
            self._waiting.remove(found)
            call, event = found
            self._waiting_bytes -= event_bytes(event)
            task = asyncio.get_running_loop().create_task(self._hooks.run_observer(self._hook, call, event))
            self._running[call] = task
            task.add_done_callback(lambda _, call=call: self._on_run_done(call))

    def _on_run_done(self, call: str) -> None:
        del self._running[call]
        self._start_runs()


def call_event(on: str, call: Call, arguments: Raw | None = None) -> Event:
    """Return the event with what every hook is told of a call."""
    opened = call.opened
    name = opened.inner or opened.tool
    about = {
        "id": call.id, "tool": opened.tool, "server": opened.server, "name": name, "caller": opened.caller,
    }  # fmt: skip
    if opened.parent is not None:
        about["parent"] = opened.parent
    given = (arguments or call.arguments) or Raw(b"{}")
    # A copy: these bytes may be a part of a much larger message.
    return {"hook": on, "call": about, "arguments": given.copy()}


def event_bytes(event: Event) -> int:
    """About the bytes of an event in memory."""
    size = len(event["arguments"])
    if isinstance(result := event.get("result"), Result):
        size += result_bytes(result)
    if isinstance(question := event.get("question"), Question):
        size += len(question.body) + len(question.message) + len(question.more)
    return size


def progress_event(call: Call, reading: Reading) -> Event:
    """Return the event of a report of progress, with the tool's own numbers."""
    numbers = {"progress": reading.progress, "total": reading.total, "message": reading.message}
    return call_event("on_progress", call) | numbers


def question_event(on: str, call: Call, question: Question) -> Event:
    """Return the event of a question."""
    return call_event(on, call) | {"question": question}


def recovery_event(call: Call, fact: Started | Interrupted) -> Event:
    """Return the event of a call whose gateway died, or which is begun again because its runner died."""
    event = call_event("on_recovery", call)
    if isinstance(fact, Interrupted):
        return event | {"what": "interrupted", "why": "the gateway died", "attempt": call.attempt}
    return event | {"what": "started again", "why": fact.why or "the gateway died", "attempt": fact.attempt}


def end_event(on: str, call: Call, end: Finished) -> Event:
    """Return the event of an end; `duration_s` counts from the tool's start."""
    began = end.at if call.started is None else call.started
    event = call_event(on, call) | {"outcome": end.outcome, "duration_s": round(end.at - began, 6)}
    if end.failure is not None:
        event["failure"] = end.failure
    if end.result is not None:
        size = result_bytes(end.result)
        # Events wait in a queue, which must not fill the memory.
        event |= {"result": end.result} if size <= MAX_OUTPUT_BYTES else {"result_bytes": size}
    return event


def _is_answered_by_hook(call: Call, question: Question) -> bool:
    """Whether a hook has answered a question, so that nobody is asked."""
    answered = call.answers.get(question.id)
    return answered is not None and answered.answer.by == HOOK
