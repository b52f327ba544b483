"""`CallRequest` is one request that follows one call until its last frame, in any era, on any transport.

A request comes to its call in one of five ways, and each has a constructor: it opens the call (of a tool, or
of a resource or prompt of our own), it retries a round that asked something, it joins a call that another
request opened, it resumes a stream that broke, or it waits for a call that was handed over. How the caller is
asked, and what its leaving means, is up to its `Era`; where the frames go, to its `ResponseStream`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol, Self

from msgspec import UNSET, Raw, Struct, field

from afoot.core.call import ProgressSeries
from afoot.core.fact_size import fact_bytes, result_bytes
from afoot.core.facts import (
    NOTHING,
    Answered,
    Asked,
    ChildSummary,
    Fact,
    Finished,
    HandedOver,
    Logged,
    Opened,
    Question,
    Reading,
    Released,
    Reported,
    Started,
)
from afoot.core.notices import answer_place, lifecycle_stages, notice, within_stage
from afoot.core.ports import Provider, TimerHandle, Tool
from afoot.engine.approval.question import without_haste
from afoot.engine.child_calls import MAX_CHANGES_AT_ONCE
from afoot.engine.engine import Submission
from afoot.engine.followers import Follower, Wakeup
from afoot.engine.live_call import SAMPLE_S, LiveCall
from afoot.engine.questions import keep_answer, questions_open_at
from afoot.errors import AfootError, CallerError, ToolError
from afoot.serve.api.views import call_eta, eta_range, usual_gap_s
from afoot.serve.caller_presence import CallerRequests, requests_of
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp import handle_tools
from afoot.serve.mcp.app.tools import is_app_tool, run_app_tool
from afoot.serve.mcp.idempotency import abandoned_twin, call_of_key
from afoot.serve.mcp.streams import EVENT_MAX_BYTES, ResponseStream, record_request
from afoot.serve.mcp.tasks import requests as task_requests
from afoot.serve.unread_results import LARGE_RESULT_BYTES
from afoot.wire import resources as wire_resources
from afoot.wire import results
from afoot.wire.handle_tools import NO_FIELDS, handle_result, text_result
from afoot.wire.jsonrpc import INTERNAL_ERROR, Fault
from afoot.wire.results import ErrorMeta, FrameMeta, ProgressMeta, ResultMeta, ToolCall

READINGS_LAG_S = 0.15  # by which a gateway may hear of another one's readings later
FIRST_NOTICE_S = 2.0  # no notice of ours before a call is this old (T5)
AFTER_FORM_S = 1.0  # a call that runs on after a form is handed over no sooner than this
FIRST_ESTIMATE_S = 1.0  # no estimate before a request is this old: most are over by then
_NOT_YET: Any = None  # set by each constructor
_WITHOUT_FRAME = (
    Opened,
    Started,
    HandedOver,
    Released,
    Finished,
)  # facts that are no frame, unless they are stages


class Era(Protocol):
    """An era of the protocol: how its callers are asked, and what their leaving means.

    `capped`: a large result cannot go on a stream. `modern`: it is 2026-07-28 or later.
    """

    capped: bool
    modern: bool
    version: str  # of the protocol

    def ask(self, request: "CallRequest", asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """Return the frames that ask, and the last frame if asking ends this request."""
        ...

    def may_ask(self, request: "CallRequest", asked: Question) -> bool:
        """Return whether the caller can be asked this."""
        ...

    def has_open_form(self, request: "CallRequest") -> bool:
        """Return whether a form that this request asked for is open at the caller."""
        ...

    def defer_large_result(self, request: "CallRequest") -> bytes:
        """Return the last frame in place of a result that is too large for the stream."""
        ...

    def may_hand_over(self, request: "CallRequest") -> bool:
        """Return whether a request can end before its call, for a caller that cannot wait longer."""
        ...

    def hand_over(self, request: "CallRequest") -> bytes | None:
        """Return the last frame for a caller that cannot wait longer; its call runs on (H5).

        None: not yet, because the hand-over is not on record (`CallRequest.is_hand_over_recorded`).
        """
        ...

    def withdraw_questions(self, request: "CallRequest", answered: Answered | None = None) -> list[bytes]:
        """Return the frames that take back questions which this caller need not answer any more.

        `answered`: only the one that somebody has answered; None: all, as the request is over.
        """
        ...

    def client_left(self, request: "CallRequest") -> None:
        """Take notice that the caller went away before the last frame."""
        ...


class CallRequest(Struct, eq=False):
    """Follows a call for one request until its last frame. Make it with one of its constructors."""

    gateway: GatewayState
    tool_call: ToolCall
    caller: str
    stream: ResponseStream
    era: Era
    live: LiveCall = _NOT_YET
    requests: CallerRequests = _NOT_YET
    series: ProgressSeries = _NOT_YET  # the progress numbers that this request sends
    wakeup: Wakeup = field(default_factory=Wakeup)
    round: int = 0
    stopped: bool = False
    waits: bool = False  # for a call that another request opened; leaving is then no cancel
    joins_call: bool = False  # that another request of its caller opened
    as_task: bool = False  # unless it is over soon, or asks first, its request ends with a task
    may_become_task: bool = False  # its request may end with a task late, behind progress
    extra_frames: list[bytes] = []  # frames that no fact of the call stands for
    has_own_deadline: bool = False  # the caller said itself when to end at the latest
    _called_by_handle: bool = False  # one of our handle tools says which call, once it is followed
    _after: int | None = None  # the fact behind which a stream that broke goes on
    _mark: Callable[[int, int], None] | None = None
    _due: float = inf  # when to end at the latest, whatever the call does (H5)
    _form_since: float | None = None  # a form is open at the caller since
    _handed_over_at: int | None = None  # the fact that must be on record before it is handed over
    _owes_handle: bool = False  # it ends with a handle as soon as that is on record
    _knows_call: bool = False  # whether the caller knows the id of its call
    _large_frames: list[bytes] | None = None  # those before a large result, once that is there
    _missed: int = 0  # facts that this reader was too slow for, and does not know of yet
    _data_since: float = 0.0
    _data_sent: int = 0  # reports with data in the second that began then
    _shows_stages: bool = False
    _known_children: dict[str, int] = {}  # what the caller knows of the calls below
    _last_children: list[ChildSummary] = []  # for the last reading
    _is_past_first_moment: bool = False
    _timer: TimerHandle | None = None
    _begun: float = 0.0
    _sent: float = 0.0
    _next_estimate: float = 0.0  # when the caller is next told how long it takes

    def __post_init__(self) -> None:
        self._begun = self._sent = self.gateway.engine.clock.now()
        self._next_estimate = self._begun + FIRST_ESTIMATE_S

    @classmethod
    def opening(
        cls,
        gateway: GatewayState,
        tool_call: ToolCall,
        caller: str,
        stream: ResponseStream,
        era: Era,
        headers: Mapping[str, str] | None = None,
        deadline: float = inf,
    ) -> Self:
        """Open a call, or join one that was abandoned, or call a handle tool; raises Fault.

        `headers`: where arguments may be mirrored. `deadline`: when the request ends at the latest.
        """
        request = cls(gateway, tool_call, caller, stream, era)
        request._due = deadline
        found = gateway.engine.catalog.known.get(tool_call.name)
        if found is None and _is_own_tool(gateway, tool_call):
            request.waits = request._called_by_handle = True
            return request
        # As `Capabilities.can`, but inline: this is the hot path. A tool that waits for an approval, a slot
        # or a start is opened here, too: that it waits is the engine's affair.
        forms = tool_call.capabilities.elicitation
        can_ask = forms is not None and ("form" in forms or not forms)
        is_special = (
            tool_call.answers
            or tool_call.parent
            or tool_call.task
            or tool_call.key
            or tool_call.capabilities.extensions
        )
        if (
            is_special
            or found is None
            or found[1].requires
            or found[1].join
            or found[1].task == "required"
            or b"x-mcp-header" in bytes(found[1].definition)
        ):
            request._open_special(headers)
        else:
            if len(tool_call.arguments) > gateway.settings.max_arguments_bytes:
                raise gateway.arguments_too_large()
            budget = tool_call.budget
            submission = Submission(
                tool_call.name, tool_call.arguments, caller, budget.idle_s, budget.left_s,
                can_ask=can_ask, trace=tool_call.trace,
                more=NOTHING if found[1].plain else tool_call.unknown_params(),
                origin=stream.origin.of_client(tool_call.client, tool_call.client_version),
                stays=not era.modern,
            )  # fmt: skip
            try:
                request.live = gateway.engine.submit(submission)
            except CallerError as error:
                raise gateway.refusal(error) from None
        opened_by = tool_call.id, era.version, tool_call.token
        if request.joins_call:
            request.requests = _requests_here(gateway, request.live)
            request.requests.reopened(opened_by, can_ask=can_ask)
            request.round = request.requests.round
        else:
            request.requests = request.live.caller_requests = CallerRequests(can_ask, opened_by, 1)
        return request

    @classmethod
    def opening_lookup(
        cls,
        gateway: GatewayState,
        tool_call: ToolCall,
        caller: str,
        stream: ResponseStream,
        era: Era,
        offer: tuple[Provider, Tool],
    ) -> Self:
        """Open the call that reads a resource of ours, or fills in a prompt of ours; raises Fault (F3)."""
        request = cls(gateway, tool_call, caller, stream, era)
        if len(tool_call.arguments) > gateway.settings.max_arguments_bytes:
            raise gateway.arguments_too_large()
        can_ask = tool_call.capabilities.can("form")
        budget = tool_call.budget
        submission = Submission(
            tool_call.name, tool_call.arguments, caller, budget.idle_s, budget.left_s,
            can_ask=can_ask, trace=tool_call.trace, offer=offer,
            origin=stream.origin.of_client(tool_call.client, tool_call.client_version),
            stays=not era.modern,
        )  # fmt: skip
        try:
            request.live = gateway.engine.submit(submission)
        except CallerError as error:
            raise gateway.refusal(error) from None
        opened_by = tool_call.id, era.version, tool_call.token
        request.requests = request.live.caller_requests = CallerRequests(can_ask, opened_by, 1)
        return request

    @classmethod
    async def opening_by_key(
        cls,
        gateway: GatewayState,
        tool_call: ToolCall,
        caller: str,
        stream: ResponseStream,
        era: Era,
        headers: Mapping[str, str] | None = None,
        deadline: float = inf,
    ) -> Self:
        """Join the call that has this idempotency key, or open it; raises Fault."""
        if _is_own_tool(gateway, tool_call):
            return cls.opening(gateway, tool_call, caller, stream, era, headers, deadline)
        # Requests with one key take turns: the second finds the call that the first has opened.
        async with gateway.turn_of_key(caller, tool_call.key):
            live = await call_of_key(gateway, tool_call, caller)
            if live is None:
                request = cls.opening(gateway, tool_call, caller, stream, era, headers, deadline)
                if gateway.engine.others is not None:
                    await gateway.wait_until_recorded()  # the other gateways find it from here on
                return request
        return cls.joining(gateway, tool_call, caller, stream, era, live, deadline)

    @classmethod
    def joining(
        cls,
        gateway: GatewayState,
        tool_call: ToolCall,
        caller: str,
        stream: ResponseStream,
        era: Era,
        live: LiveCall,
        deadline: float = inf,
    ) -> Self:
        """Follow a call that another request of this caller opened; raises Fault."""
        request = cls(gateway, tool_call, caller, stream, era)
        request._due = deadline
        request._choose_task(live.tool)
        request.live = live
        request.joins_call = True
        request.requests = _requests_here(gateway, live)
        request.requests.joined(can_ask=tool_call.capabilities.can("form"))
        request.round = request.requests.round
        return request

    @classmethod
    async def retrying(
        cls,
        gateway: GatewayState,
        tool_call: ToolCall,
        caller: str,
        stream: ResponseStream,
        era: Era,
        deadline: float = inf,
    ) -> Self:
        """Go on with the call whose last request ended with a round, and take its answers; raises Fault."""
        request = cls(gateway, tool_call, caller, stream, era)
        request._due = deadline
        live, state = await gateway.find_retried_call(tool_call, caller)
        request.live = live
        request.requests = _requests_here(gateway, live)
        request.round = state.round
        if state.told is not None:  # another gateway may have sent it
            request.requests.merge_series(ProgressSeries(state.told, state.total))
        request.requests.taken = max(request.requests.taken, state.taken)
        request._take_answers(state.asked, gateway.engine.clock.now() - state.at)
        await gateway.engine.wait_until_taken(live)
        if handle_tools.is_handle_tool(tool_call.name):
            request.waits = request._called_by_handle = True
            return request
        request._choose_task(live.tool)
        request.requests.retried(state.round, can_ask=tool_call.capabilities.can("form"))
        return request

    @classmethod
    def resuming(
        cls,
        gateway: GatewayState,
        tool_call: ToolCall,
        caller: str,
        stream: ResponseStream,
        era: Era,
        live: LiveCall,
        after: int,
    ) -> Self:
        """Go on with a stream that broke, behind the fact `after`. It follows the call from `resume` on."""
        request = cls(gateway, tool_call, caller, stream, era)
        request.live = live
        request.joins_call = True
        request.requests = _requests_here(gateway, live)
        request._after = after
        return request

    @classmethod
    def waiting(
        cls,
        gateway: GatewayState,
        tool_call: ToolCall,
        caller: str,
        stream: ResponseStream,
        era: Era,
        live: LiveCall,
    ) -> Self:
        """Wait for a call that was handed over, as a task is."""
        request = cls(gateway, tool_call, caller, stream, era)
        request._wait_for(live)
        return request

    def cancel(self, by: str, reason: str) -> None:
        """End the request without an answer, and cancel its call if this request opened it."""
        if not self.waits and not (by == "disconnect" and self.live.tool.on_disconnect == "detach"):
            self.gateway.engine.cancel(self.live, by, reason)
        self.stop()

    def stop(self) -> None:
        """End this request without an answer: its caller has cancelled it."""
        self.stopped = True
        self.wakeup.wake()

    def detach(self) -> bool:
        """Follow no longer; True if the call now runs for nobody."""
        return not self.waits and self.requests.left(self.round)

    @property
    def is_over(self) -> bool:
        """Whether no more can come: its call has ended, or a handle tool has not named one."""
        return self._called_by_handle or self.live.call.is_finished

    @property
    def age_s(self) -> float:
        """Seconds since this request came."""
        return self.gateway.engine.clock.now() - self._begun

    @property
    def after(self) -> int | None:
        """The fact behind which a stream that broke goes on; None for a request that is new."""
        return self._after

    def is_hand_over_recorded(self, what: str) -> bool:
        """Write that the caller finds its call again by a task, a handle or a round; True once on record.

        A gateway that dies behind the last frame must leave a call that its caller can still find (H4).
        """
        live = self.live
        call = live.call
        if self._handed_over_at is None:
            is_known = call.is_task or (what != "task" and call.handed_over is not None)
            if not (is_known or call.is_finished):
                self.gateway.engine.hand_over(live, what)
            self._handed_over_at = call.seq + (live.mirror is not None)  # its owner writes it, and tells us
        if live.mirror is not None:
            return call.handed_over is not None or call.is_task or call.is_finished
        return live.recorded >= self._handed_over_at

    def handle_result(self) -> bytes:
        """Return the last frame with the handle by which the caller finds its call again."""
        info = self.gateway.info if self.era.modern else NOTHING
        now = self.gateway.engine.clock.now()
        live = self.live
        return handle_result(self.tool_call, live.call, now, live.heard, info, self._answer_place())

    def on_frames(self, mark: Callable[[int, int], None]) -> None:
        """Call `mark(count, seq)` when the next `count` frames contain the facts up to `seq`."""
        self._mark = mark

    async def follow(self) -> None:
        """Send what the call has to say until it ends, or asks in a way that ends this request."""
        if self._called_by_handle and not await self._run_handle_tool():
            return
        live = self.live
        engine = self.gateway.engine
        if self.waits and engine.others is not None:
            await self._skip_told()
        if engine.wire_log is not None:
            self.stream = record_request(self.stream, engine.wire_log, self.tool_call, live.call.id)
        is_new = not (self.round or self.waits or self.joins_call or live.call.end or live.call.open)
        self.series = ProgressSeries() if is_new else self.requests.new_series()
        self._shows_stages = live.tool.lifecycle == "stages"
        hz = None if self.tool_call.token is UNSET else self.gateway.settings.progress_hz
        follower = Follower(live, self.wakeup.wake, engine.clock, hz)
        # Most calls end within DEFER_S. Only the others get a timer and a watch on their caller: both cost
        # more than a short call itself.
        engine.deadlines.defer(self, self._outlive_first_moment)
        try:
            done = not is_new and await self._begin(follower)
            while not done:
                if not self.stream.gone:  # else nobody took the last frames, and nobody wakes us for that
                    await self.wakeup.wait()
                done = await self._send_new(follower)
        finally:
            follower.close()  # also of a call that is forgotten: it and its followers would be a cycle
            if live.call.released is None:
                self.requests.merge_series(self.series)
            engine.deadlines.deferred.pop(self, None)
            if self._timer is not None:
                self._timer.cancel()
            if self.series.repaired:
                self.requests.series.repaired += self.series.repaired
                self.gateway.count("reports repaired", self.series.repaired)
        if self._large_frames is not None:
            del live, follower  # neither may keep the result while it waits
            await self._send_large_result(self._large_frames)

    async def resume(self) -> None:
        """Follow the call, as one more request, for a stream that broke; first comes what it has missed.

        Raises StoreError where the history cannot be read.
        """
        self.requests.joined(can_ask=self.tool_call.capabilities.can("form"))
        self.series = self.requests.new_series()
        self._shows_stages = self.live.tool.lifecycle == "stages"
        await self.stream.keep_alive()
        await self._send_from_history()

    def render(self, item: Fact | Reading, frames: list[bytes], asked: list[Question]) -> None:
        """Add the frames that this item means to this caller, or the question that it is."""
        if isinstance(item, Asked) and item.question.id in self.live.call.open:
            asked.append(item.question)
        elif isinstance(item, Answered):
            frames += self.era.withdraw_questions(self, item)
        elif isinstance(item, Logged):
            if results.is_log_wanted(self.tool_call.level, item.level):
                frames.append(results.log_notification(item))
        elif isinstance(item, Reported):
            self._add_content(item, frames)
        elif self._shows_stages and not isinstance(item, Reading):
            for stage in lifecycle_stages(item):
                self._add_progress(stage, FrameMeta(progress=ProgressMeta(source="engine")), frames)
        # Questions come behind all the others. Most facts of a short call make no frame, and need no number.
        if frames and self._mark is not None and not asked:
            self._mark(len(frames), next((one.seq for one in self.live.backlog if one.fact is item), 0))

    def _open_special(self, headers: Mapping[str, str] | None) -> None:
        """Open a call that wants more than the ordinary, or join one of the same arguments; raises Fault."""
        gateway = self.gateway
        tool_call = self.tool_call
        tool = gateway.tool(tool_call.name)
        self._choose_task(tool)
        tool_call.task = self.as_task
        joined = None
        if tool is not None and tool.join and not tool_call.key:
            joined = abandoned_twin(gateway, tool_call, tool, self.caller)
        self.live = joined or gateway.open(
            tool_call, self.caller, self.stream.origin, headers, stays=not self.era.modern
        )
        self.joins_call = joined is not None

    def _choose_task(self, tool: Tool | None) -> None:
        """Decide whether this request ends with a task, soon or late; raises Fault."""
        if self.tool_call.is_lookup:  # only calls of tools can be tasks
            return
        is_modern = self.era.modern
        self.as_task = task_requests.runs_as_task(self.gateway, self.tool_call, tool, modern=is_modern)
        self.may_become_task = is_modern and task_requests.may_become_task(self.gateway, self.tool_call, tool)

    def _wait_for(self, live: LiveCall) -> None:
        """Follow a call that another request opened; leaving it is no cancel."""
        self.waits = True
        self.live = live
        self.requests = requests_of(live)
        self.requests.waited(can_ask=self.tool_call.capabilities.can("form"))

    async def _skip_told(self) -> None:
        """Leave out the readings that another gateway has told, so that numbers only rise (P4)."""
        live = self.live
        if live.mirror is not None and live.call.end is None:
            await asyncio.sleep(READINGS_LAG_S)  # that one may be ahead of this one
        if (latest := live.call.latest) is not None:
            seq, number = self.requests.taken
            self.requests.taken = seq, max(number, live.call.readings)
            self.requests.merge_series(ProgressSeries(latest.progress, latest.total))

    def _take_answers(self, had: int, open_s: float) -> None:
        """Answer the questions still open; an answer that is missing or does not fit is asked for again.

        Only the first `had` questions are meant: one that was asked since may have the same key. `open_s`:
        how long their forms were open at the caller.
        """
        tool_call = self.tool_call
        for asked in questions_open_at(self.live, had):
            given = tool_call.answers.get(asked.key)
            if given is None or not tool_call.capabilities.may_answer(asked):
                continue
            try:
                answer = without_haste(asked, results.read_answer(asked, given, self.caller), open_s)
                if asked.id in self.live.call.open:
                    self.gateway.engine.answer(asked.id, answer)
                else:
                    keep_answer(self.live, asked, answer)
            except (AfootError, Fault):  # it does not fit, or the call is being cancelled
                self.gateway.count("answers refused")

    async def _run_handle_tool(self) -> bool:
        """Run a tool of our own; True if the request is to follow a call now, else it is answered."""
        is_for_app = is_app_tool(self.gateway, self.tool_call)
        run = run_app_tool if is_for_app else handle_tools.run_handle_tool
        try:
            outcome = await run(self.gateway, self.tool_call, self.caller)
        except ToolError as error:
            meta = ErrorMeta(error.category, error.code or error.category)
            await self._answer_text(error.message, NO_FIELDS, meta)
            return False
        if self.stopped:  # meanwhile, and nothing follows a cancel
            await self.stream.finish((), None)
            return False
        if isinstance(outcome, handle_tools.HandleText):
            await self._answer_text(outcome.text, outcome.fields, None)
            return False
        self._called_by_handle = False
        self._wait_for(outcome.live)
        if outcome.seconds is not None:
            self._due = self._begun + outcome.seconds
            self.has_own_deadline = True
            if not outcome.seconds:
                self.wakeup.wake()
        return True

    async def _answer_text(self, text: str, fields: Mapping[str, object], error: ErrorMeta | None) -> None:
        info = self.gateway.info if self.era.modern else NOTHING
        meta = ResultMeta(token=self.tool_call.token, error=error, server=info)
        await self.stream.finish((), text_result(self.tool_call, text, meta, fields))

    def _outlive_first_moment(self) -> None:
        """Watch the caller, and mind the call's silence: it is not one of the many that end at once."""
        self._is_past_first_moment = True
        self.stream.watch(self.wakeup.wake)
        share_s = 0.0 if self.as_task else handle_tools.TIMEOUT_SHARE * self._client_timeout()
        if self.era.may_hand_over(self):
            self._due = min(self._due, self._begun + share_s)
        if self.may_become_task and self._after is None:
            self._due = min(self._due, self.live.call.opened.at + self.gateway.settings.task_after_s)
        self._arm_timer()

    async def _begin(self, follower: Follower) -> bool:
        """Send the state of a call that is not new: its end, or its open questions."""
        call = self.live.call
        if self._after is not None:
            return await self._continue_after(follower, self._after)
        self._catch_up(follower)
        if not (call.end or call.open):
            return False
        if call.end is None and self.live.recorded < call.seq:  # the answers it came with are on record first
            await self.gateway.wait_until_recorded()
        frames, last = list[bytes](), None
        if call.open:
            last = self._pause(list(call.open.values()), follower, frames)
        elif call.end is not None and any(type(entry.fact) is Finished for entry in self.live.backlog):
            if fact_bytes(call.end) >= LARGE_RESULT_BYTES:
                self._large_frames = frames
                return True
            last = self._last_frame(call.end, self.stream.streaming)
        if last is not None:
            await self.stream.finish(frames, last)
        elif frames:
            await self.stream.send(frames)
        return last is not None

    def _catch_up(self, follower: Follower) -> None:
        """Treat the facts as new that were added while no request followed the call."""
        live = self.live
        seq, number = self.requests.taken
        if seq and not self.waits:
            follower.seq = min(follower.seq, seq)
        follower.number = min(follower.number, number)
        if follower.seq < live.recorded or follower.number < live.call.readings:
            self.wakeup.wake()

    async def _continue_after(self, follower: Follower, after: int) -> bool:
        """Go on behind the fact that the caller had last; ask what it does not know to be asked."""
        call = self.live.call
        follower.seq = min(follower.seq, after)
        follower.number = min(follower.number, max(0, call.readings - 1))
        self.wakeup.wake()
        if call.open and (frames := self.era.ask(self, list(call.open.values()))[0]):
            await self.stream.send(frames)
        ends = [entry.seq for entry in self.live.backlog if type(entry.fact) is Finished]
        if ends and ends[0] <= after:  # it had everything
            await self.stream.finish((), None)
        return bool(ends) and ends[0] <= after

    async def _send_from_history(self) -> None:
        """Send what has fallen out of memory since the stream broke; the rest comes as ever."""
        live = self.live
        after = self._after or 0
        first = live.backlog[0].seq if live.backlog else live.recorded + 1
        if after + 1 >= first:
            return
        entries = await self.gateway.engine.journal.facts(live.call.id, after)
        frames: list[bytes] = []
        for entry in entries:
            if entry.seq < first:
                self.render(entry.fact, frames, [])
                if self._mark is not None:
                    self._mark(len(frames), entry.seq)
        self._after = first - 1
        self.requests.series.last = self.series.last
        self.requests.series.total = self.series.total
        if frames:
            await self.stream.send(frames)

    async def _send_new(self, follower: Follower) -> bool:
        """Send what is new; True when that was the last."""
        if self.stopped or self.stream.gone:
            return await self._leave()
        update = follower.take()
        frames = self.extra_frames
        asked = list[Question]()
        self.extra_frames = list[bytes]()
        self._missed += update.gap
        last, token = None, self.tool_call.token
        plain_token = token if isinstance(token, int | str) and not self._shows_stages else None
        items = update.items if not self.live.call.contents else self._within_data_rate(update.items)
        if self.live.below is not None and self.live.call.end is not None:
            self._tell_last_of_child_calls(items, frames)
        for item in items:
            kind = type(item)
            if kind is not Reading:
                if kind not in _WITHOUT_FRAME or self._shows_stages:
                    self.render(item, frames, asked)
                if type(item) is Finished:
                    if item.result is not None and result_bytes(item.result) >= LARGE_RESULT_BYTES:
                        self._large_frames = frames
                        return True
                    last = self._last_frame(item, bool(frames) or self.stream.streaming)
            elif plain_token is not None and isinstance(item, Reading):
                # As in `_add_progress`, written out: readings are most of what a call says.
                meta = None if self._knows_call else FrameMeta(self.live.call.id)
                meta = meta if self.live.below is None else self._with_child_calls(meta)
                meta = meta if item.at < self._next_estimate else self._with_estimate(item.at, meta)
                frames.append(results.progress_notification(plain_token, self.series, item, meta))
                self._knows_call = True
            elif isinstance(item, Reading):
                self._add_progress(item, None, frames)
        if last is None and (asked or self._owes_handle or self._due < inf):
            last = self._pause(asked, follower, frames)
        if last is not None:
            await self._finish(frames, last)
        elif frames:
            await self.stream.send(frames)
            self._sent = self.gateway.engine.clock.now()
        if last is None and self._is_past_first_moment and self._timer is None:
            await self._break_silence()
        return last is not None

    async def _finish(self, frames: list[bytes], last: bytes) -> None:
        """Withdraw the open questions, and then send the last frame."""
        if self.live.call.questions:
            frames += self.era.withdraw_questions(self)
        await self.stream.finish(frames, last)

    def _within_data_rate(self, items: list[Fact | Reading]) -> list[Fact | Reading]:
        """Leave out the oldest reports with data, if there are more than `data_hz` a second (P14).

        The newest one always stays, and the next one that is sent says how many were left out. Reports from
        before this request are owed to a stream that broke, so they do not count.
        """
        hz, now = self.gateway.settings.data_hz, self.gateway.engine.clock.now()
        wants_partial = self.tool_call.partial
        reports = [
            one
            for one in items
            if type(one) is Reported and one.at >= self._begun and not (one.partial and wants_partial)
        ]
        if not hz or not reports:
            return items
        if now >= self._data_since + 1.0:
            self._data_since, self._data_sent = now, 0
        room = max(1, int(hz) - self._data_sent)
        self._data_sent += min(room, len(reports))
        left_out = {id(one) for one in reports[:-room]}
        self._missed += len(left_out)
        return [one for one in items if id(one) not in left_out]

    def _pause(self, asked: list[Question], follower: Follower, frames: list[bytes]) -> bytes | None:
        """Ask the caller in the way of its era, or hand over; the last frame, if that ends this request."""
        before = self.requests.taken
        if self.era.modern:  # if it ends, its state says how far it came
            self._add_held_progress(asked, follower, frames)
            self.requests.taken = follower.seq, follower.number
        more, last = self.era.ask(self, asked) if asked else ([], None)
        has_form = self._hold_due()
        # Whoever leaves is to find it again, so it is on record first.
        if last is None and self.live.recorded and not has_form:
            if self.gateway.engine.clock.now() >= self._due:
                last = self.era.hand_over(self)
            elif asked:
                last = self._tell_answer_place(frames)
            elif self._owes_handle:
                last = self._hand_over_question()
        call = self.live.call
        if last is not None and call.latest is not None and follower.number < call.readings:
            follower.number = call.readings
            self._add_progress(call.latest, None, frames)  # the rate had held it back
        # The next request goes on there.
        self.requests.taken = before if last is None else (follower.seq, follower.number)
        frames += more
        if more and self._mark is not None:
            self._mark(len(frames), follower.seq)
        return last

    def _add_held_progress(self, asked: list[Question], follower: Follower, frames: list[bytes]) -> None:
        """Add the reading that the rate has held back, if this request is about to end with a round."""
        is_due = bool(self.live.recorded) and self.gateway.engine.clock.now() >= self._due
        latest, number = self.live.call.latest, self.live.call.readings
        if latest is None or follower.number >= number:
            return
        if is_due or any(self.era.may_ask(self, one) for one in asked):
            follower.number = number
            self._add_progress(latest, None, frames)

    def _hold_due(self) -> bool:
        """Return whether a form is open at the caller: nothing is handed over meanwhile (H5).

        The limit of some callers stands still while a form is open. Others have at least a moment after it.
        """
        is_open, since = self.era.has_open_form(self), self._form_since
        now = self.gateway.engine.clock.now()
        if is_open and since is None:
            self._form_since = now
        elif not is_open and since is not None:
            self._form_since = None
            if handle_tools.is_paused_by_forms(self.tool_call.client):
                self._due += now - since
            else:
                self._due = max(self._due, now + AFTER_FORM_S)
            if self._timer is not None:  # it was armed without regard to when this request is due
                self._timer.cancel()
                self._timer = None
        return is_open

    def _tell_answer_place(self, frames: list[bytes]) -> bytes | None:
        """Tell a caller that cannot be asked where a person can answer, at once (Q5).

        A notification tells its person. Its model reads results alone: where it has the tool to wait for the
        call, the first such question ends the request with a handle.
        """
        place = self._answer_place()
        if not place:
            return None
        live, now = self.live, self.gateway.engine.clock.now()
        told = notice(live.call, now, live.heard, where=place)
        if isinstance(self.tool_call.token, int | str):
            self._add_progress(told, results.frame_meta(told, live.call, False), frames)
        elif results.is_log_wanted(self.tool_call.level, "warning"):
            frames.append(results.log_notification(Logged(now, str(told.message), "warning", "afoot")))
        is_known = self.waits or self.as_task or self.requests.told_place or self.tool_call.is_lookup
        self.requests.told_place = True
        if is_known or self._client_timeout() == inf:
            return None
        return self._hand_over_question()

    def _hand_over_question(self) -> bytes | None:
        """Return the handle that says where a person can answer; None if it is answered, or not on record."""
        is_open = bool(self._answer_place())
        self._owes_handle = is_open and not self.is_hand_over_recorded("handle")
        if self._owes_handle or not is_open:
            return None
        self.detach()
        return self.handle_result()

    def _answer_place(self) -> str:
        """Return where a person can answer what the call asks, if its caller cannot be asked."""
        asked = next(iter(self.live.call.open.values()), None)
        if asked is None or self.era.may_ask(self, asked):
            return ""
        return answer_place(asked, self.gateway.engine.policy.console)

    def _client_timeout(self) -> float:
        return handle_tools.client_timeout(self.gateway, self.tool_call.budget, self.tool_call.client)

    async def _leave(self) -> bool:
        """End without an answer: nobody is there any more, or the caller wants none."""
        if not self.waits and not (self.stopped and self.live.call.cancel):
            self.era.client_left(self)  # also if it is stopped and its call is not: that runs for nobody now
        await self.stream.finish(self.era.withdraw_questions(self), None)
        return True

    def _last_frame(self, end: Finished, streamed: bool) -> bytes:
        """Return the result; one that is too large for the stream is fetched by another request.

        Raises Fault for a lookup that failed before anything was streamed.
        """
        live = self.live
        era = self.era
        info = self.gateway.info if era.modern else NOTHING
        if self.tool_call.is_lookup:
            last = self._lookup_frame(end, info, streamed)
        else:
            last = results.call_result(
                self.tool_call,
                live.call,
                end,
                modern=info,
                unrecorded=live.unrecorded,
                structures_errors=end.failure is not None and self._takes_structured_errors(),
            )
        if len(last) > EVENT_MAX_BYTES and streamed and era.capped:
            return era.defer_large_result(self)
        if live.call.released is None:
            self.requests.left(self.round)
        return last

    def _lookup_frame(self, end: Finished, info: Raw, streamed: bool) -> bytes:
        """Return the contents of a resource, the messages of a prompt, or the error; raises Fault."""
        call, tool_call = self.live.call, self.tool_call
        if end.failure is None:
            return wire_resources.own_result(tool_call, call, end, info, unrecorded=self.live.unrecorded)
        fault = wire_resources.own_failure(tool_call.method, call, end.failure, modern=self.era.modern)
        if not streamed:
            raise fault
        return results.error_response(fault, tool_call.id)

    def _takes_structured_errors(self) -> bool:
        """Return whether the caller takes errors of ours as structured content.

        The TypeScript SDK up to 1.32 checks that of errors, too: it has to fit the output schema of the tool,
        which allows it where the schema was widened for a caller with a limit.
        """
        name = self.tool_call.name
        if handle_tools.is_handle_tool(name) or self._client_timeout() < inf:
            return True
        tool = self.gateway.tool(name) or self.live.tool
        return b'"outputSchema"' not in bytes(tool.definition)

    async def _send_large_result(self, frames: list[bytes]) -> None:
        """Send the result when its caller has read enough of those before; raises Fault.

        While it waits, only the history has it.
        """
        live = self.live
        unread = self.gateway.unread
        assert live.call.end is not None
        size = fact_bytes(live.call.end)
        if not unread.take(self.caller, size):
            # A history that cannot be written may never have it: it waits in memory then, within a bound.
            held = size if live.unrecorded and unread.hold(size) else 0
            try:
                if not held:
                    self.live = live.without_results()
                del live
                has_room = await self._wait_for_room(size)
            finally:
                unread.hold(-held)
            if not has_room:
                await self._leave()
                return
            live = self.live if held else await self._load_again(size)
        try:
            end = live.call.end
            if end is None:
                raise Fault(INTERNAL_ERROR, f"the result of call {live.call.id} is not there any more")
            self.live = live
            last = self._last_frame(end, bool(frames) or self.stream.streaming)
            self.live = live.without_results()
            del live, end  # the frame has it all
            await self._finish(frames, last)
        finally:
            unread.free(self.caller, size)

    async def _wait_for_room(self, size: int) -> bool:
        """Wait until a result of this size may be sent; False if nobody waits for it any more."""
        unread = self.gateway.unread
        self.stream.watch(self.wakeup.wake)
        unread.await_room(self.wakeup.wake)
        try:
            while not (self.stopped or self.stream.gone):
                if unread.take(self.caller, size):
                    return True
                await self.wakeup.wait()
            return False
        finally:
            unread.leave(self.wakeup.wake)

    async def _load_again(self, size: int) -> LiveCall:
        """Load the call whose result has waited in the history; raises Fault if it was deleted meanwhile."""
        call_id = self.live.call.id
        try:
            return await self.gateway.own_call(call_id, self.live.call.opened.caller)
        except AfootError as error:
            self.gateway.unread.free(self.caller, size)
            text = f"the result of call {call_id} is not there any more: {error}"
            raise Fault(INTERNAL_ERROR, text) from None

    async def _break_silence(self) -> None:
        """Open the stream, or say that the call still lives: nothing came for a while (C6)."""
        now = self.gateway.engine.clock.now()
        settings = self.gateway.settings
        if not self.stream.streaming and now >= self._begun + settings.sse_after_s:
            await self.stream.keep_alive()
        # The same sum as in `_arm_timer`, to the bit.
        if now >= self._sent + min(settings.notice_s, settings.keepalive_s):
            frames: list[bytes] = []
            if now - self.live.call.opened.at >= FIRST_NOTICE_S:
                live = self.live
                told = notice(
                    live.call, now, live.heard, usual_gap_s(live), live.advanced, self._answer_place()
                )
                self._add_progress(told, results.frame_meta(told, self.live.call, False), frames)
            if frames:
                await self.stream.send(frames)
            else:
                await self.stream.keep_alive()
            self._sent = now
        self._arm_timer()

    def _arm_timer(self) -> None:
        """Set the one timer of this request; when it fires, `_send_new` sees whether anything is due."""
        settings = self.gateway.settings
        due = self._sent + min(settings.notice_s, settings.keepalive_s)
        if not self.stream.streaming:
            due = min(due, self._begun + settings.sse_after_s)
        is_recorded = self.live.recorded >= (self._handed_over_at or 1)
        if is_recorded and self._form_since is None:  # else it is woken by that
            due = min(due, self._due)
        self._timer = self.gateway.engine.clock.at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.wakeup.wake()

    def _add_content(self, item: Reported, frames: list[bytes]) -> None:
        """Add a report that has content: data, or a partial result."""
        meta = results.frame_meta(item, self.live.call, self.tool_call.partial)
        is_empty = meta is None and item.progress is None and item.message is None and not item.more
        if item.late or is_empty:
            return
        if self._missed:
            meta = meta or FrameMeta()
            meta.progress = meta.progress or ProgressMeta()
            meta.progress.missed = self._missed
            self._missed = 0
        reading = Reading(item.at, item.progress, item.total, item.message)
        self._add_progress(reading, meta, frames, item.more)

    def _add_progress(
        self, reading: Reading, meta: FrameMeta | None, frames: list[bytes], more: Raw = NOTHING
    ) -> None:
        """Add a progress notification, for a caller that sent a token."""
        token = self.tool_call.token
        if not isinstance(token, int | str):
            return
        if not self._knows_call:  # the first frame says which call this is, for whoever loses the stream
            self._knows_call = True
            meta = meta or FrameMeta()
            meta.call = self.live.call.id
        own = reading
        if self._shows_stages and reading.source != "engine":
            reading = within_stage(reading)
            if own.progress is not None:
                meta = meta or FrameMeta()
                meta.progress = meta.progress or ProgressMeta()
                meta.progress.progress, meta.progress.total = own.progress, own.total
        if self.live.below is not None:
            meta = self._with_child_calls(meta)
        if reading.at >= self._next_estimate:
            meta = self._with_estimate(reading.at, meta)
        frames.append(results.progress_notification(token, self.series, reading, meta, more))

    def _with_child_calls(self, meta: FrameMeta | None) -> FrameMeta | None:
        """Add the child calls that have changed since the last frame (P8)."""
        changed, self._last_children = self._last_children, list[ChildSummary]()
        if not changed:
            changed = self.gateway.engine.child_calls.changed(self.live, self._known_children)
        if changed:
            meta = meta or FrameMeta()
            meta.progress = meta.progress or ProgressMeta()
            meta.progress.children = changed
        return meta

    def _tell_last_of_child_calls(self, items: list[Fact | Reading], frames: list[bytes]) -> None:
        """Tell the last state of all child calls of a call that has ended, up to its last reading."""
        token = self.tool_call.token
        rest = self.gateway.engine.child_calls.rest(self.live, self._known_children)
        if not rest or not isinstance(token, int | str):
            return
        now = self.gateway.engine.clock.now()
        parts = [rest[at : at + MAX_CHANGES_AT_ONCE] for at in range(0, len(rest), MAX_CHANGES_AT_ONCE)]
        if any(isinstance(item, Reading) for item in items):
            self._last_children = parts.pop()
        for part in parts:
            meta = FrameMeta(progress=ProgressMeta(source="engine", children=part))
            frames.append(
                results.progress_notification(token, self.series, Reading(now, source="engine"), meta)
            )

    def _with_estimate(self, now: float, meta: FrameMeta | None) -> FrameMeta | None:
        """Add how long the call still takes, if that is known (P9)."""
        self._next_estimate = now + SAMPLE_S
        eta = call_eta(self.gateway.engine, self.live, now)
        if eta is not None:
            meta = meta or FrameMeta()
            meta.progress = meta.progress or ProgressMeta()
            meta.progress.eta_s, meta.progress.eta_range_s = eta.left_s, eta_range(eta)
        return meta


def _requests_here(gateway: GatewayState, live: LiveCall) -> CallerRequests:
    """The requests that follow a call here; another gateway that owns it is told whether there are any."""
    found = requests_of(live)
    if live.mirror is not None and found.tell_owner is None:
        found.tell_owner = partial(gateway.engine.tell_followed, live)
    return found


def _is_own_tool(gateway: GatewayState, tool_call: ToolCall) -> bool:
    """Whether this is a tool of the gateway's own, for calls that run on or for our app."""
    return handle_tools.is_handle_tool(tool_call.name) or is_app_tool(gateway, tool_call)
