"""`SessionTasks` tells a client of 2025-11-25 of its tasks; here are also its requests about tasks (H3).

In this version the caller asks for a task, may list its tasks, and waits for a result by a request.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from math import inf, isfinite, nextafter
from typing import Protocol

from msgspec import Raw

from afoot.core.ports import CallQuery, CallRow, Tool
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call
from afoot.errors import UnknownName
from afoot.serve.access.guard import STDIO_CALLER
from afoot.serve.caller_presence import requests_of
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.call_request import CallRequest, Era
from afoot.serve.mcp.client_requests_2025 import CallQuestions, TaskAsker
from afoot.serve.mcp.streams import ResponseStream
from afoot.serve.mcp.tasks.notifications import TaskNewsStream, TaskWatch
from afoot.serve.mcp.tasks.requests import find_task, is_kept, task_status
from afoot.wire import results, tasks
from afoot.wire.jsonrpc import Envelope, Id
from afoot.wire.results import Capabilities, ToolCall
from afoot.wire.tasks import TaskSnapshot

PAGE_SIZE = 100  # tasks in a page of a list
SEARCHED = 200  # calls of a caller that are looked through for one
SEARCHED_AT_MOST = 1000  # the same where so many are of one moment that the list would not go on


class TaskClient(Era, Protocol):
    """The client of this era whose tasks they are."""

    caller: str
    capabilities: Capabilities
    level: str | None
    tell_others: Callable[[bytes], object] | None  # other gateways that may have a stream of this client


class SessionTasks:
    """The tasks of one session: it is told of them, and asked by them, on the stream that it holds open."""

    def __init__(
        self, gateway: GatewayState, client: TaskClient, questions: CallQuestions, wakeup: Wakeup
    ) -> None:
        self._gateway = gateway
        self._client = client
        self._questions = questions
        self._askers: dict[str, TaskAsker] = {}  # by task
        self._tokens: dict[str, tuple[Id, int]] = {}  # by task: its request's, and how much was told by it
        self.watch = TaskWatch(gateway, wakeup, self._render)

    async def begin(self, request: CallRequest) -> None:
        """Answer a call with its task, once the call is on record; raises Fault if it cannot be a task."""
        tool_call = request.tool_call
        if request.waits:  # our own tools wait for a call, and are none
            raise tasks.task_support_fault(tool_call.name, "forbidden")
        live = request.live
        request.is_hand_over_recorded("task")  # a call with a key may have been opened as a plain one
        request.detach()  # the request is over, and its call runs on
        await self._gateway.wait_until_recorded()
        await request.stream.finish((), tasks.created_2025(tool_call.id, task_status(self._gateway, live)))
        token = tool_call.token if isinstance(tool_call.token, int | str) else None
        self.follow(live, token)
        if self._client.tell_others is not None:
            self._client.tell_others(tasks.begun_notification(live.call.id, token))

    def follow(self, live: LiveCall, token: Id | None) -> None:
        """Tell of a task from now on; `token`: that of the request which opened it."""
        self.watch.drop_finished()
        if token is not None:
            self._tokens[live.call.id] = token, 0
        self.watch.follow(live)

    def tokens(self) -> set[Id]:
        """The progress tokens of tasks that live; the others may be used again."""
        if not self._tokens:
            return set()
        self._tokens = {task: told for task, told in self._tokens.items() if task in self._gateway.engine}
        return {token for token, _ in self._tokens.values()}

    def _render(self, live: LiveCall) -> list[bytes]:
        """The frames for a task that changed; and what it asks, if no request follows it (Q1)."""
        call, stream = live.call, self.watch.stream
        status = tasks.status_notification_2025(task_status(self._gateway, live), self._client.capabilities)
        frames = [*self._progress(live), status]
        if call.open and stream is not None and not requests_of(live).attached:
            asker = self._askers.get(call.id)
            if asker is None or asker.stream is not stream:
                asker = TaskAsker(live, stream, partial(self.watch.tell_again, live))
                living = [one for one in self._askers.values() if not one.live.call.is_finished]
                self._askers = {one.live.call.id: one for one in (*living, asker)}
            asked = self._questions.put(asker, list(call.open.values()), self._client.capabilities)
            frames += [tasks.with_related_task(frame, call.id) for frame in (*asker.extra_frames, *asked)]
            asker.extra_frames.clear()
        return frames

    def _progress(self, live: LiveCall) -> list[bytes]:
        """Its progress, with the token of the request that opened it: that holds as long as the task."""
        call = live.call
        token, before = self._tokens.get(call.id, (None, 0))
        count = call.readings + call.contents
        if token is None or call.latest is None or count == before:
            return []
        self._tokens[call.id] = token, count
        frame = results.progress_notification(token, requests_of(live).series, call.latest)
        return [tasks.with_related_task(frame, call.id)]


def tools_with_task_support(tools: Iterable[Tool]) -> list[Raw]:
    """The definitions of these tools, and whether each may be a task."""
    return [tasks.with_task_support(bytes(tool.definition), tool.task) for tool in tools]


async def list_tasks(
    gateway: GatewayState, caller: str, cursor: str | None
) -> tuple[list[TaskSnapshot], str | None]:
    """A page of a caller's tasks, newest first, and the cursor of the next page; raises Fault.

    A cursor is the position of a call, by time and id, behind which the next page begins.
    """
    bound = (inf, "") if cursor is None else _read_cursor(cursor)
    before = None if cursor is None else nextafter(bound[0], inf)
    # First those that live: a call that ends meanwhile is found twice, and not never.
    every = {live.call.id: live for live in gateway.engine.calls()}
    for limit in (SEARCHED, SEARCHED_AT_MOST):
        past = CallQuery(state="finished", caller=caller, before=before, limit=limit)
        rows = await gateway.engine.journal.find(past)
        is_part = len(rows) == limit  # of what there is; what lives and is older comes with the rest of it
        end = (rows[-1].opened, rows[-1].id) if is_part else (-inf, "")
        if end < bound:
            break
    every |= await _load_recent(gateway, [row for row in rows if row.id not in every])
    found = [
        live for live in every.values() if _is_task(gateway, live, caller) and end <= _position(live) < bound
    ]
    page = sorted(found, key=_position, reverse=True)[:PAGE_SIZE]
    last = None
    if len(found) > PAGE_SIZE:
        last = _position(page[-1])
    elif is_part and end < bound:
        last = end
    return [task_status(gateway, live) for live in page], None if last is None else _write_cursor(last)


async def answer_task_request_2025(
    gateway: GatewayState, client: TaskClient, message: Envelope, stream: ResponseStream
) -> CallRequest | None:
    """Answer a request about tasks, or return the request that waits for a result; raises Fault."""
    request_id, able = message.id, client.capabilities
    assert isinstance(request_id, int | str)
    if message.method == "tasks/list":
        every, more = await list_tasks(gateway, client.caller, tasks.read_cursor(message))
        await stream.finish((), tasks.list_result_2025(request_id, every, able, more))
        return None
    asked = tasks.read_2025(message)
    live = await find_task(gateway, asked.task, client.caller)
    if message.method == "tasks/result":
        endless = results.CallBudget(wait_s=0)  # whoever asks for a result waits for it
        tool_call = ToolCall(request_id, "", live.arguments, asked.meta.token, client.level, able, endless)
        related = TaskNewsStream(stream, partial(tasks.with_related_task, task=live.call.id))
        return CallRequest.waiting(gateway, tool_call, client.caller, related, client, live)
    if message.method == "tasks/cancel":
        if tasks.is_final_2025(live.call):
            raise tasks.already_over(asked.task)
        gateway.engine.cancel(live, "caller", "the caller cancelled its task")
        await gateway.wait_until_recorded()
    else:
        gateway.decline_unanswerable(live.call.open.values(), able)
    await stream.finish((), tasks.get_result_2025(request_id, task_status(gateway, live), able))
    return None


def _is_task(gateway: GatewayState, live: LiveCall, caller: str) -> bool:
    """Whether a call is to be listed; of a pipe, only what this process began."""
    opened = live.call.opened
    is_own = opened.caller == caller and (caller != STDIO_CALLER or opened.at >= gateway.started_at)
    return live.call.is_task and is_own and is_kept(gateway, live)


async def _load_recent(gateway: GatewayState, rows: list[CallRow]) -> dict[str, LiveCall]:
    """The calls of these rows that ended not too long ago."""
    since = gateway.engine.clock.now() - gateway.settings.task_ttl_s
    found: dict[str, LiveCall] = {}
    for row in rows:
        if (row.finished or 0.0) >= since:
            with suppress(UnknownName):
                # A page of a hundred tasks must not have a hundred large results in memory at once.
                found[row.id] = (await load_call(gateway.engine, row.id)).without_results()
    return found


def _position(live: LiveCall) -> tuple[float, str]:
    return live.call.opened.at, live.call.id


def _write_cursor(position: tuple[float, str]) -> str:
    """The position itself: the call that was there may be gone when the next page is asked for."""
    return f"{position[0]!r}:{position[1]}"


def _read_cursor(cursor: str) -> tuple[float, str]:
    """The position that a cursor means; raises Fault."""
    at, _, call = cursor.partition(":")
    try:
        position = float(at), call
    except ValueError:
        raise tasks.unknown_cursor(cursor) from None
    if not call or not isfinite(position[0]) or _write_cursor(position) != cursor:
        raise tasks.unknown_cursor(cursor)
    return position
