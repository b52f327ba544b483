"""A call as an MCP task: the 2026-07-28 extension, and the tasks of 2025-11-25 (H3).

The task's id is the call's id, and everything about the task is read from the call: nothing else is kept.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Raw, Struct, field, json

from afoot.core.call import Call, State
from afoot.core.fact_size import fact_bytes
from afoot.core.facts import Finished, Question
from afoot.core.large_json import encode_sized
from afoot.core.notices import notice, waiting_on
from afoot.wire import mcp_2026, results
from afoot.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Envelope,
    Fault,
    Id,
    read_params,
)
from afoot.wire.results import (
    TASKS_EXTENSION,
    Capabilities,
    ErrorBody,
    Notification,
    ProgressMeta,
    Response,
    ToolCall,
    encode,
    failure_meta,
    failure_text,
)

BEGUN = "afoot/task"
METHODS_2026 = ("tasks/get", "tasks/update", "tasks/cancel")
METHODS_2025 = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
RELATED_TASK = "io.modelcontextprotocol/related-task"
CAPABILITY: dict[str, object] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}

# Suggested poll interval: a share of the call's age, within these bounds.
MIN_POLL_S = 0.5
MAX_POLL_S = 10.0
POLL_SHARE = 1 / 20
_GATEWAY_OUTCOMES = ("lost", "uncertain")  # outcomes that the gateway caused, not the tool


class TaskMethodParams(Struct):
    """The params of every request about a task, in either era."""

    task: str = field(name="taskId")
    answers: dict[str, Raw] | None = field(name="inputResponses", default=None)
    meta: mcp_2026.RequestMeta2026 = field(name="_meta", default_factory=mcp_2026.RequestMeta2026)


class TaskBegun(Struct):
    """A task of a session that began at another gateway."""

    task: str
    token: Id | None = None


_begun_decoder = json.Decoder(TaskBegun)


class TaskSnapshot(Struct, frozen=True):
    """A call at one moment, with what its facts alone do not say."""

    call: Call
    now: float
    heard: float = 0.0
    eta_s: float | None = None
    eta_range_s: tuple[float, float] | None = None
    left: str = ""  # the remaining time, in words
    ttl_s: float = 0.0  # how long the task is kept after its end
    console: str | None = ""  # the address where a person can answer


class TaskListParams(Struct):
    """The params of `tasks/list`."""

    cursor: str | None = None


class _ResponseBody(Struct):
    result: Raw


_task_method_decoder = json.Decoder(TaskMethodParams)
_task_list_decoder = json.Decoder(TaskListParams)


def read_2026(message: Envelope, headers: Mapping[str, str] | None) -> tuple[TaskMethodParams, Capabilities]:
    """A request of the extension; raises Fault, also for a caller that did not declare the extension."""
    mcp_2026.read_plain(message, headers)
    asked = read_params(message, _task_method_decoder)
    assert isinstance(asked.meta.capabilities, Capabilities)  # it was checked before
    if not asked.meta.capabilities.tasks:
        raise undeclared_extension()
    if message.method == "tasks/update" and asked.answers is None:
        raise Fault(INVALID_PARAMS, "params.inputResponses: missing", status=200)
    return asked, asked.meta.capabilities


def read_2025(message: Envelope) -> TaskMethodParams:
    """A request about one task of 2025-11-25; raises Fault."""
    return read_params(message, _task_method_decoder)


def read_cursor(message: Envelope) -> str | None:
    """The cursor of a `tasks/list` of 2025-11-25: the task behind which the list goes on; raises Fault."""
    return read_params(message, _task_list_decoder).cursor


def undeclared_extension() -> Fault:
    """The error for a caller that did not declare the tasks extension."""
    data: dict[str, object] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    return Fault(
        mcp_2026.MISSING_CAPABILITY, f"this needs a client that declares {TASKS_EXTENSION}", data=data
    )


def unknown_task(task: str) -> Fault:
    """The error for an unknown task; the task of another caller gets the very same."""
    return Fault(INVALID_PARAMS, f"params.taskId: no task {task[:100]!r} of yours is known", status=200)


def expired_task(task: str) -> Fault:
    """The error for a task that is no longer kept."""
    return Fault(INVALID_PARAMS, f"params.taskId: task {task} has expired (task_ttl_s)", status=200)


def bad_input_response(name: str, why: str) -> Fault:
    """The error for an input response that does not fit its question."""
    return Fault(INVALID_PARAMS, f"params.inputResponses.{name}: {why}", status=200)


def already_over(task: str) -> Fault:
    """The error for a cancel that comes too late, in 2025-11-25."""
    return Fault(INVALID_PARAMS, f"params.taskId: task {task} is over already", status=200)


def unknown_cursor(cursor: str) -> Fault:
    """The error for a cursor that we cannot have made."""
    return Fault(INVALID_PARAMS, f"params.cursor: none of ours: {cursor[:100]!r}", status=200)


def task_support_fault(name: str, support: str) -> Fault:
    """The error for a call of 2025-11-25 that is a task and may not be one, or must be one and is none."""
    what = "runs only as a task: send params.task" if support == "required" else "does not run as a task"
    return Fault(METHOD_NOT_FOUND, f"tool {name} {what}", status=200)


def task_status(call: Call, can: Capabilities, *, modern: bool) -> str:
    """The protocol's status of a call. A question that only the operator can answer counts as working."""
    if call.end is None:
        if call.state is State.CANCELLING and not modern:
            return "cancelled"  # this status is final, whatever the tool still does
        return "input_required" if caller_questions(call, can) and call.cancel is None else "working"
    is_late = (
        not modern and call.cancel is not None and call.end.outcome in _GATEWAY_OUTCOMES
    )  # it died while it stopped
    if call.end.outcome == "cancelled" or is_late:
        return "cancelled"
    if modern:
        return "failed" if _is_gateway_failure(call.end) else "completed"
    is_error = call.end.failure is not None or (call.end.result is not None and call.end.result.is_error)
    return "failed" if is_error else "completed"


def is_final_2025(call: Call) -> bool:
    """Whether the task's status of 2025-11-25 cannot change any more."""
    return call.state in (State.CANCELLING, State.FINISHED)


def caller_questions(call: Call, can: Capabilities) -> dict[str, Question]:
    """The open questions that this caller can answer, by keys that are used once in the life of a task."""
    return {question_key(one): one for one in call.open.values() if can.may_answer(one)}


def question_key(asked: Question) -> str:
    """A question's own number: a tool may use the same key twice, a task may not."""
    return asked.id.rpartition(".")[2]


def status_message(of: TaskSnapshot, can: Capabilities) -> str:
    """The status in words: `37/120 · page 37, about 2 min left`; or who is waited for, or how it ended."""
    call = of.call
    if call.end is not None:
        return failure_text(call.end.failure) if call.end.failure is not None else "done"
    latest, said = call.latest, ""
    if latest is not None and not call.open and call.state is State.RUNNING:
        number = "" if latest.progress is None else f"{latest.progress:.12g}"
        if number and latest.total is not None:
            number += f"/{latest.total:.12g}"
        said = " · ".join(part for part in (number, latest.message) if part)
    where = results.place_of_answer(call, can, of.console)
    said = said or str(notice(call, of.now, of.heard, where=where).message)
    return ", ".join(part for part in (said, of.left) if part)


def task_fields(of: TaskSnapshot, can: Capabilities, *, modern: bool) -> dict[str, object]:
    """The fields of a task; the eras differ only in the names of the durations."""
    call = of.call
    age_s = max(0.0, (of.now if call.end is None else call.end.at) - call.opened.at)
    ttl = round((age_s + of.ttl_s) * 1000)  # for a running call: as if it ended now
    poll = round(min(MAX_POLL_S, max(MIN_POLL_S, age_s * POLL_SHARE)) * 1000)
    names = ("ttlMs", "pollIntervalMs") if modern else ("ttl", "pollInterval")
    return {
        "taskId": call.id,
        "status": task_status(call, can, modern=modern),
        "statusMessage": status_message(of, can),
        "createdAt": _instant(call.opened.at),
        "lastUpdatedAt": _instant(_updated(of)),
        names[0]: ttl,
        names[1]: poll,
    }


def progress_meta(of: TaskSnapshot) -> dict[str, object]:
    """The call's live numbers, for which a task has no fields."""
    latest = of.call.latest
    numbers = (None, None) if latest is None else (latest.progress, latest.total)
    meta = ProgressMeta(*numbers, waiting_on=waiting_on(of.call), eta_s=of.eta_s, eta_range_s=of.eta_range_s)
    return {"dev.afoot/progress": meta}


def detailed_task(of: TaskSnapshot, can: Capabilities, info: Raw) -> dict[str, object]:
    """A task of 2026-07-28 with the part that its status needs: questions, result or error."""
    call, task = of.call, task_fields(of, can, modern=True)
    if task["status"] == "input_required":
        task["inputRequests"] = {
            name: dict(zip(("method", "params"), results.question_params(one), strict=True))
            for name, one in caller_questions(call, can).items()
        }
    elif task["status"] == "completed":
        task["result"] = task_result(call, info)
    elif task["status"] == "failed" and call.end is not None and call.end.failure is not None:
        failure = call.end.failure
        data = {"dev.afoot/error": failure_meta(failure)}
        task["error"] = ErrorBody(INTERNAL_ERROR, failure_text(failure), data)
    return task


def task_result(call: Call, info: Raw) -> Raw:
    """The result with which the request would have been answered."""
    assert call.end is not None
    frame = results.call_result(ToolCall(0, call.opened.tool, Raw(b"{}")), call, call.end, modern=info)
    return json.decode(frame, type=_ResponseBody).result


def created_2026(request: Id, of: TaskSnapshot, info: Raw) -> bytes:
    """The response to a request whose call goes on as a task (2026-07-28)."""
    can = Capabilities()  # questions are left to tasks/get
    body = {"resultType": "task", **task_fields(of, can, modern=True)}
    body["_meta"] = {
        "io.modelcontextprotocol/serverInfo": info,
        "dev.afoot/call": of.call.id,
        **progress_meta(of),
    }
    return encode(Response(request, body))


def get_result_2026(request: Id, of: TaskSnapshot, can: Capabilities, info: Raw) -> bytes:
    """The response to `tasks/get` (2026-07-28)."""
    body = {"resultType": "complete", **detailed_task(of, can, info)}
    body["_meta"] = {"io.modelcontextprotocol/serverInfo": info, **progress_meta(of)}
    return encode_sized(Response(request, body), _result_bytes(of))


def status_notification_2026(subscription: Id, of: TaskSnapshot, can: Capabilities, info: Raw) -> bytes:
    """A task on a listen stream, complete as in `tasks/get` (2026-07-28)."""
    also = {"io.modelcontextprotocol/subscriptionId": subscription, **progress_meta(of)}
    body = {**detailed_task(of, can, info), "_meta": also}
    return encode_sized(Notification("notifications/tasks", body), _result_bytes(of))


def _result_bytes(of: TaskSnapshot) -> int:
    return 0 if of.call.end is None else fact_bytes(of.call.end)


def created_2025(request: Id, of: TaskSnapshot) -> bytes:
    """The response to a `tools/call` that asked for a task (2025-11-25); questions are left to tasks/get."""
    also = {"dev.afoot/call": of.call.id, **progress_meta(of)}
    return encode(Response(request, {"task": task_fields(of, Capabilities(), modern=False), "_meta": also}))


def begun_notification(task: str, token: Id | None) -> bytes:
    """The message by which gateways of a cluster tell each other of the task of a session."""
    return encode(Notification(BEGUN, {"task": task, "token": token}))


def read_begun(message: Envelope) -> tuple[str, Id | None]:
    """The task, and the token of the request that opened it; raises Fault."""
    params = read_params(message, _begun_decoder)
    return params.task, params.token


def get_result_2025(request: Id, of: TaskSnapshot, can: Capabilities) -> bytes:
    """The response to `tasks/get` and `tasks/cancel` (2025-11-25)."""
    return encode(Response(request, {**task_fields(of, can, modern=False), "_meta": progress_meta(of)}))


def list_result_2025(request: Id, every: list[TaskSnapshot], can: Capabilities, more: str | None) -> bytes:
    """The response to `tasks/list` (2025-11-25); `more` is the cursor of the next page, if there is one."""
    body: dict[str, object] = {"tasks": [task_fields(one, can, modern=False) for one in every]}
    return encode(Response(request, body if more is None else {**body, "nextCursor": more}))


def status_notification_2025(of: TaskSnapshot, can: Capabilities) -> bytes:
    """The notification that a task has changed (2025-11-25)."""
    body = {**task_fields(of, can, modern=False), "_meta": progress_meta(of)}
    return encode(Notification("notifications/tasks/status", body))


def with_related_task(frame: bytes, task: str) -> bytes:
    """A result or a question of ours with the id of its task, as 2025-11-25 requires."""
    whole = json.decode(frame)
    part = whole.get("result") or whole.get("params")
    if isinstance(part, dict):
        part["_meta"] = {**part.get("_meta", {}), RELATED_TASK: {"taskId": task}}
    return encode_sized(whole, len(frame))


@lru_cache(maxsize=4096)
def with_task_support(definition: bytes, support: str) -> Raw:
    """A tool's definition that says whether it may run as a task (2025-11-25)."""
    return Raw(json.encode({**json.decode(definition), "execution": {"taskSupport": support or "optional"}}))


def _is_gateway_failure(end: Finished) -> bool:
    """Whether the request would have been answered with a JSON-RPC error: a crash, or a dead gateway."""
    return end.outcome in _GATEWAY_OUTCOMES or (end.failure is not None and bool(end.failure.trace))


def _updated(of: TaskSnapshot) -> float:
    call = of.call
    moments = [call.opened.at, call.heard, of.heard, *call.asked_at.values()]
    if call.latest is not None:
        moments.append(call.latest.at)
    # `heard` may lie in the future: a start sets it ahead.
    return call.end.at if call.end is not None else min(of.now, max(moments))


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
