"""Calls as tasks: when there is one, requests about tasks, and `TaskWatch`, which tells of changes (H3).

A task is no thing of its own: getting it reads its call, updating it answers, cancelling it cancels. On a
stream that is held open each task is told of when it changes, at most once a second.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Self

from afoot.core.facts import Logged, Released
from afoot.core.names import full_name
from afoot.core.ports import CallOrigin, Tool
from afoot.engine.approval.question import without_haste
from afoot.engine.followers import Follower, Wakeup
from afoot.engine.live_call import LiveCall
from afoot.errors import AfootError, ToolError, UnknownName
from afoot.observe.eta import describe_eta, quantile
from afoot.serve.access.guard import STDIO_CALLER, is_bridge
from afoot.serve.api.views import call_eta, eta_range
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.streams import EVENT_MAX_BYTES, ResponseStream
from afoot.wire import mcp_2026, results, tasks
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, Id, read_params
from afoot.wire.mcp_2026 import ListenFilter
from afoot.wire.results import Capabilities, ToolCall
from afoot.wire.tasks import TaskMethodParams, TaskSnapshot

MIN_RUNS = 5  # of a tool, before how long it usually takes is known
NEWS_HZ = 1.0  # people read it
MAX_WATCHED = 1000  # tasks that one listener may follow
_NOT_TOLD = (Logged, Released)  # facts that change nothing in a task

Render = Callable[[LiveCall], list[bytes]]


def runs_as_task(gateway: GatewayState, tool_call: ToolCall, tool: Tool | None, *, modern: bool) -> bool:
    """Whether the call becomes a task; raises Fault if its tool and its caller do not agree.

    In 2025-11-25 the caller says so, and the list of tools tells it whether it may. In 2026-07-28 the gateway
    decides: by the tool, else by how long the tool usually takes.
    """
    support = "forbidden" if tool is None else tool.task
    if not modern:
        if tool is not None and (
            support == "required" and not tool_call.task or support == "forbidden" and tool_call.task
        ):
            raise tasks.task_support_fault(tool.name, support)
        return tool_call.task
    if not tool_call.capabilities.tasks:
        if support == "required":
            raise tasks.undeclared_extension()
        return False
    if support:
        return support != "forbidden"
    least_s = gateway.settings.task_after_s
    took = list[float]() if tool is None else gateway.engine.durations.of(full_name(tool))
    return least_s > 0 and len(took) >= MIN_RUNS and quantile(took, 0.5) >= least_s


def may_become_task(gateway: GatewayState, tool_call: ToolCall, tool: Tool | None) -> bool:
    """Whether a call of 2026-07-28 that is none yet may become a task while its request is open (H7).

    The extension lets the server decide for each request, a client that declares it must take a task in
    place of any result, and nothing binds the time of that. Progress belongs to the request until then.
    """
    is_forbidden = tool is None or tool.task == "forbidden"
    return tool_call.capabilities.tasks and not is_forbidden and gateway.settings.task_after_s > 0


def task_status(gateway: GatewayState, live: LiveCall) -> TaskSnapshot:
    """The task that a call is now, with its ETA."""
    now = gateway.engine.clock.now()
    eta = call_eta(gateway.engine, live, now)
    left_s = None if eta is None else eta.left_s
    ttl_s = gateway.settings.task_ttl_s
    console = gateway.engine.policy.console
    return TaskSnapshot(live.call, now, live.heard, left_s, eta_range(eta), describe_eta(eta), ttl_s, console)


def created_result(gateway: GatewayState, request_id: Id, live: LiveCall) -> bytes:
    """The task in place of the result, for a caller of 2026-07-28."""
    return tasks.created_2026(request_id, task_status(gateway, live), gateway.info)


async def find_task(gateway: GatewayState, task: str, caller: str) -> LiveCall:
    """A call of this caller's own; raises Fault, the same whether it is unknown or somebody else's."""
    try:
        live = await gateway.own_call(task, caller)
    except UnknownName:
        raise tasks.unknown_task(task) from None
    if not is_kept(gateway, live):
        raise tasks.expired_task(task)
    return live


def is_kept(gateway: GatewayState, live: LiveCall) -> bool:
    """Whether a call may still be asked for: it runs, or ended not too long ago."""
    end = live.call.end
    return end is None or gateway.engine.clock.now() <= end.at + gateway.settings.task_ttl_s


async def answer_task_request(
    gateway: GatewayState, message: Envelope, headers: Mapping[str, str] | None, caller: str
) -> bytes:
    """Answer a request about a task (2026-07-28); raises Fault."""
    asked, can = tasks.read_2026(message, headers)
    request_id = message.id
    assert isinstance(request_id, int | str)
    live = await find_task(gateway, asked.task, caller)
    if message.method == "tasks/update":
        await _take_answers(gateway, live, asked, can, caller)
    elif message.method == "tasks/cancel":
        gateway.engine.cancel(live, "caller", "the caller cancelled its task")
        await gateway.wait_until_recorded()
    else:
        gateway.decline_unanswerable(live.call.open.values(), can)
        return tasks.get_result_2026(request_id, task_status(gateway, live), can, gateway.info)
    return mcp_2026.complete_result(request_id, gateway.info)


async def _take_answers(
    gateway: GatewayState, live: LiveCall, asked: TaskMethodParams, can: Capabilities, caller: str
) -> None:
    """Take the answers to what is still asked, and ignore other keys; raises Fault for a misfit."""
    wrong: Fault | None = None
    for name, question in tasks.caller_questions(live.call, can).items():
        given = (asked.answers or {}).get(name)
        if given is None:
            continue
        try:
            open_s = gateway.engine.clock.now() - live.call.asked_at[question.id]
            answer = without_haste(question, results.read_answer(question, given, caller), open_s)
            gateway.engine.answer(question.id, answer)
        except (ToolError, Fault) as error:
            gateway.count("answers refused")
            why = str(error).removeprefix(f"inputResponses.{question.key}: ")  # here it has another name
            wrong = wrong or tasks.bad_input_response(name, why)
        except AfootError:
            gateway.count("answers too late")
    await gateway.wait_until_recorded()
    if wrong is not None:
        raise wrong


class TaskWatch:
    """The tasks that one listener follows, and the stream on which it is told of their changes."""

    def __init__(
        self, gateway: GatewayState, wakeup: Wakeup, render: Render, most: float = EVENT_MAX_BYTES
    ) -> None:
        """`most`: bytes of a frame that its reader takes."""
        self._gateway = gateway
        self._wakeup = wakeup
        self._render = render
        self._most = most
        self._untold: set[str] = set()  # to be told of, whatever happens to them
        self._followed: dict[str, Follower] = {}
        self.stream: TaskNewsStream | None = None  # where news go now, or went last

    def follow(self, live: LiveCall) -> None:
        """Tell of this call from now on, and how it is now."""
        if live.call.id not in self._followed:
            follower = Follower(live, self._wakeup.wake, self._gateway.engine.clock, NEWS_HZ)
            self._followed[live.call.id] = follower
            self._untold.add(live.call.id)
            self._wakeup.wake()

    def over(self, stream: ResponseStream) -> "TaskNewsStream":
        """Tell of changes on this stream, between what else goes there; first of each task how it is now."""
        self.stream = TaskNewsStream(stream, news=self.take)
        self._untold = set(self._followed)
        if self._untold:
            self._wakeup.wake()
        return self.stream

    def drop_finished(self) -> None:
        """Follow tasks that are over no longer, if nobody listens."""
        if self.stream is None or self.stream.gone:
            for task, follower in list(self._followed.items()):
                if follower.live.call.is_finished:
                    self._drop(task)

    def tell_again(self, live: LiveCall) -> None:
        """Tell of this call once more, though nothing happened to it."""
        self._untold.add(live.call.id)
        self._wakeup.wake()

    def take(self) -> list[bytes]:
        """The frames for the tasks that changed since the last time."""
        frames: list[bytes] = []
        for task, follower in list(self._followed.items()):
            news = [item for item in follower.take().items if not isinstance(item, _NOT_TOLD)]
            live = follower.live
            if news or task in self._untold:
                self._untold.discard(task)
                frames += [frame for frame in self._render(live) if len(frame) <= self._most]
            if live.call.is_finished and follower.seq >= live.recorded:
                self._drop(task)
        return frames

    def _drop(self, task: str) -> None:
        self._followed.pop(task).close()
        self._untold.discard(task)

    def close(self) -> None:
        """Follow nothing any more."""
        for follower in self._followed.values():
            follower.close()
        self._followed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TaskNewsStream:
    """A stream that tells of tasks: `name` adds to a frame which task it is of, `news` come between."""

    def __init__(
        self,
        stream: ResponseStream,
        name: Callable[[bytes], bytes] = bytes,
        news: Callable[[], list[bytes]] = list,
    ) -> None:
        self._stream = stream
        self._name = name
        self._news = news

    @property
    def gone(self) -> bool:
        return self._stream.gone

    @property
    def streaming(self) -> bool:
        return self._stream.streaming

    @property
    def origin(self) -> CallOrigin:
        return self._stream.origin

    def watch(self, wake: Callable[[], object]) -> None:
        self._stream.watch(wake)

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send these frames, and news of tasks behind them."""
        await self._stream.send([*map(self._name, frames), *self._news()])

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last frames."""
        named = [*map(self._name, frames)]
        await self._stream.finish(named, None if last is None else self._name(last))

    async def keep_alive(self) -> None:
        """Send news of tasks; if there are none, keep the stream alive."""
        if news := self._news():
            await self._stream.send(news)
        else:
            await self._stream.keep_alive()


async def watch_tasks(
    gateway: GatewayState, message: Envelope, wanted: ListenFilter, caller: str, wakeup: Wakeup
) -> TaskWatch:
    """Follow the tasks that a listener of 2026-07-28 wants; `wanted` keeps only those that are its own."""
    if len(wanted.taskIds) > MAX_WATCHED:
        raise Fault(INVALID_PARAMS, f"params.notifications.taskIds: over {MAX_WATCHED}")
    request_id, meta = message.id, read_params(message, mcp_2026.PLAIN_DECODER).meta
    assert isinstance(request_id, int | str) and isinstance(meta, mcp_2026.RequestMeta2026)
    able = meta.capabilities if isinstance(meta.capabilities, Capabilities) else Capabilities()

    def render(live: LiveCall) -> list[bytes]:
        gateway.decline_unanswerable(live.call.open.values(), able)
        return [tasks.status_notification_2026(request_id, task_status(gateway, live), able, gateway.info)]

    is_pipe = caller == STDIO_CALLER or is_bridge(caller)  # which takes a line of any length
    watch = TaskWatch(gateway, wakeup, render, inf if is_pipe else EVENT_MAX_BYTES)
    known: list[str] = []
    for task in dict.fromkeys(wanted.taskIds):
        try:
            watch.follow(await find_task(gateway, task, caller))
        except Fault:
            continue
        known.append(task)
    wanted.taskIds = known
    return watch
