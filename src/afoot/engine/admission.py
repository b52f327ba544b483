"""The waits between the opening of a call and its start: for an approval, and for a slot.

`wait_for_approval` asks until it is decided (A2, A5), about the tool as it is now (A7). `Slots` counts the
calls that may run at once; a full queue is an answer, not a wait (C8).
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import Literal, Protocol

from msgspec.structs import replace

from afoot.core.call import INSTEAD, Call, State
from afoot.core.facts import Answered, Question
from afoot.core.names import full_name, titled
from afoot.core.ports import Clock, Tool
from afoot.engine.approval.allowlist import allowlist_entry
from afoot.engine.approval.policy import BY_HOST, ApprovalPolicy
from afoot.engine.approval.question import (
    ANYBODY,
    HOST,
    INSTEAD_S,
    OPERATOR,
    Decision,
    answered_instead,
    approval_question,
    decision_of,
    instead_question,
    is_own_approval,
    refusal_error,
)
from afoot.engine.live_call import LiveCall
from afoot.engine.questions import ENGINE, Questions
from afoot.errors import AfootError, ToolError

CHANGED = "its definition has changed since it was called"
CHANGED_AFTER_ATTEMPT = "its definition has changed since the attempt before, which may have run"

log = logging.getLogger("afoot.engine")


async def wait_for_approval(
    live: LiveCall,
    policy: ApprovalPolicy,
    questions: Questions,
    tools: Iterable[Tool],
    clock: Clock,
    update_tool: Callable[[LiveCall], object],
) -> None:
    """Ask until somebody says yes or no, if it must be asked at all; raises ToolError.refused for a no.

    `tools` are all that are on offer: an answer may allow every tool of a server. `update_tool` gives the
    call its tool as it is now, before each question and after each answer.
    """
    update_tool(live)
    answered = None
    while needs_approval(live, policy, clock.now()) and (answered := _deciding_answer(live.call)) is None:
        await _ask(live, policy, questions, clock.now())
        update_tool(live)
    if answered is None:
        return
    decision = decision_of(answered.answer)
    if decision.decision in ("run", "always") and answered.answer.by == OPERATOR:
        _remember(live, policy, answered.at)
    is_by_anybody = answered.answer.by != OPERATOR and live.call.opened.caller == ANYBODY
    if decision.decision == "always" and not is_by_anybody:
        _allow(live, policy, tools, decision, answered)
    elif decision.decision not in ("run", "always"):
        if decision.decision == "reject" and not decision.instead and answered.answer.by != OPERATOR:
            decision = replace(decision, instead=await _ask_instead(live, questions))
        raise refusal_error(live.tool, decision)


def needs_approval(live: LiveCall, policy: ApprovalPolicy, now: float) -> bool:
    """Whether the call needs an approval: one for some arguments is none for those of a hook (A6).

    An attempt that has begun had its yes, which holds for the next one if the tool is still the same (A7).
    """
    call, approval = live.call, live.call.definition.approval
    if call.started is not None and not call.is_redefined:
        return False
    if approval != "allowlist" or call.amended is None:
        return approval == "ask"
    return not policy.allows(live.tool, live.arguments, call.opened.caller, now)


async def _ask(live: LiveCall, policy: ApprovalPolicy, questions: Questions, now: float) -> None:
    call, tool = live.call, live.tool
    still_open = next((one for one in call.open.values() if is_own_approval(one)), None)
    if still_open is not None:  # it waited through a restart
        await questions.wait(live, still_open)
        return
    asked_before = [one for one in call.approvals if not _is_withdrawn(call, one)]
    last = call.answers.get(asked_before[-1].id) if asked_before else None
    try:
        if asked_before:
            to = policy.whom_to_ask_next(tool, now, None if last is None else last.answer)
        else:
            is_unknown = live.is_recovered and live.caller_requests is None
            to = policy.whom_to_ask(tool, None if is_unknown else live.can_ask, now)
    except ToolError as error:
        log.warning("call %s: %s; %s", call.id, error.message, error.hint)
        raise
    why = CHANGED_AFTER_ATTEMPT if call.attempt else CHANGED if call.is_redefined else ""
    caller = call.opened.caller
    why = why or policy.reason_to_ask(tool, caller)
    if last is not None and last.answer.surface == HOST:
        why = f"{why}; {BY_HOST}"
    await questions.ask(live, approval_question(tool, call.arguments, to, caller, why))


async def _ask_instead(live: LiveCall, questions: Questions) -> str:
    """The words of a caller that has rejected its call, about what to do instead; "" if it says nothing.

    The call is rejected whatever comes of this question, so it has a limit of its own (A8).
    """
    call = live.call
    asked = next((one for one in call.questions.values() if one.key == INSTEAD), None)
    if asked is not None and asked.id not in call.open:
        return answered_instead(call)
    try:
        async with asyncio.timeout(min(INSTEAD_S, call.opened.limits.answer_s / 2)):
            if asked is None:
                await questions.ask(live, instead_question(live.tool))
            else:  # it waited through a restart
                await questions.wait(live, asked)
    except TimeoutError:
        log.info("call %s: nobody said what to do instead", call.id)
    return answered_instead(call)


def _deciding_answer(call: Call) -> Answered | None:
    """The answer that counts, if there is one; a caller's cancel decides nothing, the operator's is a no."""
    asked = {one.id for one in call.approvals}
    for answered in reversed(call.answers.values()):
        answer = answered.answer
        if answered.question in asked:
            return answered if answer.action != "cancel" or answer.by == OPERATOR else None
    return None


def _is_withdrawn(call: Call, question: Question) -> bool:
    """Whether nobody was to answer a question any more, as its tool had changed."""
    answered = call.answers.get(question.id)
    return answered is not None and answered.answer.by == ENGINE


def _remember(live: LiveCall, policy: ApprovalPolicy, at: float) -> None:
    """Keep what was approved, for the next reviewer; a call does not fail because that cannot be kept."""
    try:
        policy.past.remember(live.tool, live.call.arguments, at)
    except AfootError as error:
        log.error("call %s: what was approved could not be stored: %s", live.call.id, error)


def _allow(
    live: LiveCall, policy: ApprovalPolicy, tools: Iterable[Tool], decision: Decision, answered: Answered
) -> None:
    """Add to the allowlist what this answer allows: the tool, or every tool its server has now.

    Of a browser's tools it means those of the same page or plugin: each is a stranger to the others (A1).
    """
    tool, call = live.tool, live.call
    allowed = [tool]
    if decision.scope == "server":
        whose = tool.server, tool.source
        allowed = [one for one in tools if (one.server, one.source) == whose] or [tool]
    entry = allowlist_entry(
        decision,
        allowed,
        answered.answer,
        call.opened.caller,
        live.arguments,
        answered.at,
        call.arguments,
    )
    try:
        policy.allow(entry)
    except AfootError as error:  # it was said, and holds; but only while this gateway runs
        log.error("call %s: what was allowed could not be stored: %s", call.id, error)


class SharedSlots(Protocol):
    """The slots of tools whose limit counts over all gateways of a cluster (D8)."""

    def counts(self, tool: Tool) -> bool:
        """Whether the limit of a tool counts over the cluster."""
        ...

    def take(self, live: LiveCall) -> Awaitable[Literal["held", "waits", "full"]]:
        """Ask for a slot; a call that waits is in line until it has one, or is freed."""
        ...

    def granted(self, live: LiveCall) -> Awaitable[None]:
        """Wait until a call in line has its slot."""
        ...

    def give_back(self, live: LiveCall) -> None:
        """Give a slot to the next call; this one keeps its place in line for when it asks again."""
        ...

    def hold(self, live: LiveCall) -> None:
        """Count a call that runs already, if its tool is counted."""
        ...

    def free(self, live: LiveCall) -> None:
        """Give back the slot of a call, or its place in line, if it has one."""
        ...

    def forget(self, live: LiveCall) -> None:
        """Leave the slot of a call, or its place in line, to its next owner."""
        ...


class Slots:
    """Counts running calls by tool, by server and by caller, and keeps the queue of waiting calls."""

    def __init__(self, per_server: int = 0) -> None:
        self.per_server = per_server  # for servers without a limit of their own; 0: no limit
        self.shared: SharedSlots | None = None  # in a cluster
        # Calls at once on the workers of a cluster, by server, or by server and label.
        self.on_workers: dict[str, int] = {}
        self.per_caller: Callable[[str], int] | None = None  # calls at once of a caller; None: nobody has one
        self.holders: dict[str, list[str]] = {}  # by call: what it took; a recovered one has nothing
        self._taken: dict[str, int] = {}
        self._line: deque[LiveCall] = deque()
        self._callers = Counter[str]()  # that hold slots, and how many
        # Of callers in line: when their last turn was, or when they came if they had none since.
        self._since: dict[str, int] = {}
        self._turns = count(1)

    def most_at_once(self, tools: Iterable[Tool]) -> int | None:
        """The number of calls of these tools that can run at once; None if any server has no limit.

        A limit is one of the server, of its workers, or of every tool that it has.
        """
        by_server = dict[str, list[Tool]]()
        for tool in tools:
            by_server.setdefault(tool.server, []).append(tool)
        total = 0
        for server, offered in by_server.items():
            limits = [offered[0].server_concurrency or self.per_server, self.on_workers.get(server, 0)]
            if all(tool.concurrency for tool in offered):
                limits.append(sum(tool.concurrency for tool in offered))
            known = [limit for limit in limits if limit]
            if not known:
                return None
            total += min(known)
        return total or None

    def take(self, live: LiveCall) -> bool:
        """Take a slot for this call, if its tool, its server and its caller have one."""
        if self.shared is not None and self.is_shared(live):
            return False
        return self._take_here(live)

    def is_shared(self, live: LiveCall) -> bool:
        """Whether the limit of this call's tool counts over the cluster; such a call waits for a reply."""
        return live.tool.concurrency > 0 and self.shared is not None and self.shared.counts(live.tool)

    def _take_here(self, live: LiveCall) -> bool:
        limits = self._limits(live)
        if not limits:
            return True
        if any(self._taken.get(key, 0) >= limit for key, limit in limits.items()):
            return False
        self._hold(live, list(limits))
        return True

    def hold(self, live: LiveCall) -> None:
        """Count a call that runs already, whether there is a slot for it or not."""
        self._hold(live, list(self._limits(live)))
        if self.shared is not None:
            self.shared.hold(live)

    async def wait(self, live: LiveCall, arm: Callable[[LiveCall], None]) -> None:
        """Return once this call has its slot; raises ToolError.unavailable if the queue is full.

        `arm` sets the timer of a call that has to wait.
        """
        shared = self.shared
        if shared is None or not self.is_shared(live):
            await self._wait_here(live, arm)
            return
        try:
            await self._wait_in_cluster(live, arm, shared)
        except BaseException:
            shared.free(live)
            self._free_here(live)
            raise

    async def _wait_in_cluster(
        self, live: LiveCall, arm: Callable[[LiveCall], None], shared: SharedSlots
    ) -> None:
        """Wait for a slot of the cluster, and for those of this gateway: its servers, workers and callers.

        A call that waits for one kind holds none of the other meanwhile, which another call could use.
        """
        arm(live)
        may_be_refused = True
        while True:
            await self._wait_here(live, arm, may_be_refused=may_be_refused)
            told = await shared.take(live)
            if told == "held":
                return
            self._free_here(live)
            self.admit_waiting()
            if told == "full":
                raise _full_queue(live.tool)
            await shared.granted(live)
            if self._take_here(live):
                return
            shared.give_back(live)
            may_be_refused = False  # it has been let into the line

    async def _wait_here(
        self, live: LiveCall, arm: Callable[[LiveCall], None], *, may_be_refused: bool = True
    ) -> None:
        if self._take_here(live):
            return
        name = full_name(live.tool)
        waiting = sum(1 for other in self._line if full_name(other.tool) == name)
        if may_be_refused and waiting >= live.tool.queue:
            raise _full_queue(live.tool)
        live.gate = asyncio.get_running_loop().create_future()
        self._line.append(live)
        self._since.setdefault(live.call.opened.caller, next(self._turns))
        arm(live)
        await live.gate

    def free(self, live: LiveCall) -> None:
        """Give back the slot of this call, if it has one, even if the limits have changed since."""
        self._free_here(live)
        if self.shared is not None:
            self.shared.free(live)

    def leave_to_next_owner(self, live: LiveCall) -> None:
        """Count a call no more that another gateway has, or is to have, with its slot over the cluster."""
        self._free_here(live)
        if self.shared is not None:
            self.shared.forget(live)

    def _free_here(self, live: LiveCall) -> None:
        held = self.holders.pop(live.call.id, ())
        if held:
            caller = live.call.opened.caller
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]
        for key in held:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]  # callers come and go

    def _by_turns(self) -> list[LiveCall]:
        callers = {live.call.opened.caller for live in self._line}
        if len(callers) < 2:
            return list(self._line)
        turns = Counter(self._callers)
        ranked = list[tuple[int, int, int, LiveCall]]()
        for at, live in enumerate(self._line):
            caller = live.call.opened.caller
            ranked.append((turns[caller], self._since[caller], at, live))
            turns[caller] += 1
        return [one[-1] for one in sorted(ranked, key=lambda one: one[:-1])]

    def _limits(self, live: LiveCall) -> dict[str, int]:
        """The limits that count for this call, by what they limit."""
        tool = live.tool
        limits = {
            f"tool:{full_name(tool)}": 0
            if self.shared is not None and self.is_shared(live)
            else tool.concurrency,
            f"server:{tool.server}": tool.server_concurrency or self.per_server,
        }
        place = f"{tool.server} {tool.worker}" if tool.worker else tool.server
        if place in self.on_workers:
            limits[f"workers:{place}"] = self.on_workers[place]
        if self.per_caller is not None and not live.inner:
            caller = live.call.opened.caller
            limits[f"caller:{caller}"] = self.per_caller(caller)
        return {key: limit for key, limit in limits.items() if limit}

    def _hold(self, live: LiveCall, keys: list[str]) -> None:
        for key in keys:
            self._taken[key] = self._taken.get(key, 0) + 1
        if keys:
            self.holders[live.call.id] = keys
            self._callers[live.call.opened.caller] += 1

    def admit_waiting(self) -> None:
        """Let calls in line go on that can have a slot now.

        Callers take turns: who has fewer slots is first, then who waits longest for a turn, and the calls of
        one caller keep their order. So a caller with a thousand calls in line keeps nobody else waiting for
        all of them.
        """
        if not self._line:
            return
        for live in self._by_turns():
            if live.call.state is not State.QUEUED:
                self._line.remove(live)
            elif self._take_here(live):
                self._line.remove(live)
                self._since[live.call.opened.caller] = next(self._turns)
                if live.gate is not None and not live.gate.done():
                    live.gate.set_result(None)
        waiting = {live.call.opened.caller for live in self._line}
        self._since = {caller: since for caller, since in self._since.items() if caller in waiting}


def _full_queue(tool: Tool) -> ToolError:
    return ToolError.unavailable(
        f"the queue of {titled(tool.name)} is full ({tool.queue} calls); try again later", code="queue_full"
    )
