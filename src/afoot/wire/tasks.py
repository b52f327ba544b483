"""A call as an MCP task: the 2026-07-28 extension, and the tasks of 2025-11-25 (H3).

The task's id is the call's, and all that is said of it is read from the call: nothing more is kept.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Raw, Struct, field, json

from afoot.core.call import Call, State
from afoot.core.facts import Finished, Question
from afoot.core.notices import notice, waiting_on
from afoot.wire import mcp, messages
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Envelope, Fault, Id, params
from afoot.wire.messages import (
    TASKS,
    Capabilities,
    ErrorBody,
    Notification,
    ProgressMeta,
    Response,
    Wanted,
    encode,
)
from afoot.wire.telling import failure_meta, failure_text

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
OLDER = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
RELATED = "io.modelcontextprotocol/related-task"
CAPABILITY: dict[str, object] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
SOONEST_S, LATEST_S, SHARE = 0.5, 10.0, 1 / 20  # how soon to ask again: the older it is, the later
_OURS = ("lost", "uncertain")  # ends that are the gateway's, and no tool's


class Asked(Struct):
    """The params of every request about a task, in either era."""

    task: str = field(name="taskId")
    answers: dict[str, Raw] | None = field(name="inputResponses", default=None)
    meta: mcp.Meta = field(name="_meta", default_factory=mcp.Meta)


class Standing(Struct, frozen=True):
    """A call at one moment, and what its facts alone do not say."""

    call: Call
    now: float
    heard: float = 0.0
    eta_s: tuple[float, float] | None = None
    left: str = ""  # how long it still takes, in words
    ttl_s: float = 0.0  # how long it can be asked for after its end


class Page(Struct):
    """The params of `tasks/list`."""

    cursor: str | None = None


_asked = json.Decoder(Asked)
_page = json.Decoder(Page)


def read(message: Envelope, headers: Mapping[str, str] | None) -> tuple[Asked, Capabilities]:
    """A request of the extension; raises Fault, also for a caller that did not declare it."""
    mcp.read_plain(message, headers)
    asked = params(message, _asked)
    assert isinstance(asked.meta.capabilities, Capabilities)  # it was checked before
    if not asked.meta.capabilities.tasks:
        raise undeclared()
    if message.method == "tasks/update" and asked.answers is None:
        raise Fault(INVALID_PARAMS, "params.inputResponses: missing", status=200)
    return asked, asked.meta.capabilities


def read_older(message: Envelope) -> Asked:
    """A request about one task of 2025-11-25; raises Fault."""
    return params(message, _asked)


def read_cursor(message: Envelope) -> str | None:
    """Behind which task a list of 2025-11-25 is to go on; raises Fault."""
    return params(message, _page).cursor


def undeclared() -> Fault:
    """The answer to a caller that did not say that it knows tasks."""
    data: dict[str, object] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return Fault(mcp.MISSING_CAPABILITY, f"this needs a client that declares {TASKS}", data=data)


def unknown(task: str) -> Fault:
    """The answer for a task that there is not; one of somebody else's gets the very same."""
    return Fault(INVALID_PARAMS, f"params.taskId: no task {task[:100]!r} of yours is known", status=200)


def expired(task: str) -> Fault:
    """The answer for a task whose time is over."""
    return Fault(INVALID_PARAMS, f"params.taskId: task {task} has expired (task_ttl_s)", status=200)


def status(call: Call, can: Capabilities, *, modern: bool) -> str:
    """The protocol's word for where a call is. What only the operator can answer is work to the caller."""
    if call.end is None:
        if call.state is State.CANCELLING and not modern:
            return "cancelled"  # it stays so, whatever the tool still does
        return "input_required" if questions(call, can) and call.cancel is None else "working"
    is_late = not modern and call.cancel is not None and call.end.outcome in _OURS  # it died while it stopped
    if call.end.outcome == "cancelled" or is_late:
        return "cancelled"
    if modern:
        return "failed" if _is_ours(call.end) else "completed"
    is_error = call.end.failure is not None or (call.end.result is not None and call.end.result.is_error)
    return "failed" if is_error else "completed"


def is_over(call: Call) -> bool:
    """Whether its status in 2025-11-25 is one that stays."""
    return call.state in (State.CANCELLING, State.FINISHED)


def questions(call: Call, can: Capabilities) -> dict[str, Question]:
    """What this caller is asked, by keys that are used once in the life of a task."""
    return {key(one): one for one in call.open.values() if can.may_answer(one)}


def key(asked: Question) -> str:
    """A question's own number: a tool may ask with the same key again, a task may not."""
    return asked.id.rpartition(".")[2]


def status_message(of: Standing) -> str:
    """`37/120 · page 37, about 2 min left`; or on whom it waits, or how it ended."""
    call = of.call
    if call.end is not None:
        return failure_text(call.end.failure) if call.end.failure is not None else "done"
    latest, said = call.latest, ""
    if latest is not None and not call.open and call.state is State.RUNNING:
        number = "" if latest.progress is None else f"{latest.progress:.12g}"
        if number and latest.total is not None:
            number += f"/{latest.total:.12g}"
        said = " · ".join(part for part in (number, latest.message) if part)
    said = said or str(notice(call, of.now, of.heard).message)
    return ", ".join(part for part in (said, of.left) if part)


def fields(of: Standing, can: Capabilities, *, modern: bool) -> dict[str, object]:
    """What both eras say of a task; they differ in the names of durations."""
    call = of.call
    age_s = max(0.0, (of.now if call.end is None else call.end.at) - call.opened.at)
    ttl = round((age_s + of.ttl_s) * 1000)  # of one that runs: as if it ended now
    poll = round(min(LATEST_S, max(SOONEST_S, age_s * SHARE)) * 1000)
    names = ("ttlMs", "pollIntervalMs") if modern else ("ttl", "pollInterval")
    return {
        "taskId": call.id,
        "status": status(call, can, modern=modern),
        "statusMessage": status_message(of),
        "createdAt": _instant(call.opened.at),
        "lastUpdatedAt": _instant(_updated(of)),
        names[0]: ttl,
        names[1]: poll,
    }


def meta(of: Standing) -> dict[str, object]:
    """Its numbers, live: what no field of a task has room for."""
    latest = of.call.latest
    numbers = (None, None) if latest is None else (latest.progress, latest.total)
    return {"dev.afoot/progress": ProgressMeta(*numbers, waiting_on=waiting_on(of.call), eta_s=of.eta_s)}


def detailed(of: Standing, can: Capabilities, info: Raw) -> dict[str, object]:
    """A task of 2026-07-28 with what belongs to its status: questions, result or error."""
    call, task = of.call, fields(of, can, modern=True)
    if task["status"] == "input_required":
        task["inputRequests"] = {
            name: dict(zip(("method", "params"), messages.question(one), strict=True))
            for name, one in questions(call, can).items()
        }
    elif task["status"] == "completed":
        task["result"] = result(call, info)
    elif task["status"] == "failed" and call.end is not None and call.end.failure is not None:
        failure = call.end.failure
        data = {"dev.afoot/error": failure_meta(failure)}
        task["error"] = ErrorBody(INTERNAL_ERROR, failure_text(failure), data)
    return task


def created(request: Id, of: Standing, info: Raw) -> bytes:
    """The last frame of a request whose call goes on as a task (2026-07-28)."""
    can = Capabilities()  # a seed: what it asks is told by tasks/get
    body = {"resultType": "task", **fields(of, can, modern=True)}
    body["_meta"] = {"io.modelcontextprotocol/serverInfo": info, "dev.afoot/call": of.call.id, **meta(of)}
    return encode(Response(request, body))


def got(request: Id, of: Standing, can: Capabilities, info: Raw) -> bytes:
    """The answer to `tasks/get` (2026-07-28)."""
    body = {"resultType": "complete", **detailed(of, can, info)}
    body["_meta"] = {"io.modelcontextprotocol/serverInfo": info, **meta(of)}
    return encode(Response(request, body))


def told(subscription: Id, of: Standing, can: Capabilities, info: Raw) -> bytes:
    """A task on a listen stream: all of it, as `tasks/get` would say (2026-07-28)."""
    also = {"io.modelcontextprotocol/subscriptionId": subscription, **meta(of)}
    return encode(Notification("notifications/tasks", {**detailed(of, can, info), "_meta": also}))


def result(call: Call, info: Raw) -> Raw:
    """What the request would have been answered with."""
    assert call.end is not None
    frame = messages.result(Wanted(0, call.opened.tool, Raw(b"{}")), call, call.end, modern=info)
    return json.decode(frame, type=_Framed).result


class _Framed(Struct):
    result: Raw


def created_older(request: Id, of: Standing) -> bytes:
    """The answer to a `tools/call` that asked for a task (2025-11-25); a seed, as in the era after it."""
    also = {"dev.afoot/call": of.call.id, **meta(of)}
    return encode(Response(request, {"task": fields(of, Capabilities(), modern=False), "_meta": also}))


def got_older(request: Id, of: Standing, can: Capabilities) -> bytes:
    """The answer to `tasks/get` and `tasks/cancel` (2025-11-25)."""
    return encode(Response(request, {**fields(of, can, modern=False), "_meta": meta(of)}))


def listed_older(request: Id, every: list[Standing], can: Capabilities, more: str | None) -> bytes:
    """The answer to `tasks/list` (2025-11-25); `more`: where it goes on, if it does."""
    body: dict[str, object] = {"tasks": [fields(one, can, modern=False) for one in every]}
    return encode(Response(request, body if more is None else {**body, "nextCursor": more}))


def told_older(of: Standing, can: Capabilities) -> bytes:
    """That a task is another one now (2025-11-25)."""
    body = {**fields(of, can, modern=False), "_meta": meta(of)}
    return encode(Notification("notifications/tasks/status", body))


def related(frame: bytes, task: str) -> bytes:
    """A result or a question of ours that says which task it belongs to, as 2025-11-25 wants it."""
    whole = json.decode(frame)
    part = whole.get("result") or whole.get("params")
    if isinstance(part, dict):
        part["_meta"] = {**part.get("_meta", {}), RELATED: {"taskId": task}}
    return encode(whole)


def misfit(name: str, why: str) -> Fault:
    """The answer to an input response that does not fit its question."""
    return Fault(INVALID_PARAMS, f"params.inputResponses.{name}: {why}", status=200)


def over(task: str) -> Fault:
    """The answer to a cancel that comes too late, in 2025-11-25."""
    return Fault(INVALID_PARAMS, f"params.taskId: task {task} is over already", status=200)


def no_page(cursor: str) -> Fault:
    """The answer to a cursor that we cannot have made."""
    return Fault(INVALID_PARAMS, f"params.cursor: none of ours: {cursor[:100]!r}", status=200)


def refused(name: str, support: str) -> Fault:
    """The answer to a call of 2025-11-25 that asks for a task where there is none, or the other way."""
    what = "runs only as a task: send params.task" if support == "required" else "does not run as a task"
    return Fault(METHOD_NOT_FOUND, f"tool {name} {what}", status=200)


@lru_cache(maxsize=4096)
def declared(definition: bytes, support: str) -> Raw:
    """A tool's definition that says whether it may be a task (2025-11-25)."""
    return Raw(json.encode({**json.decode(definition), "execution": {"taskSupport": support or "optional"}}))


def _is_ours(end: Finished) -> bool:
    """Whether the request would have been an error of the protocol: a crash, or a gateway that died."""
    return end.outcome in _OURS or (end.failure is not None and bool(end.failure.trace))


def _updated(of: Standing) -> float:
    call = of.call
    moments = [call.opened.at, call.heard, of.heard, *call.asked_at.values()]
    if call.latest is not None:
        moments.append(call.latest.at)
    return call.end.at if call.end is not None else min(of.now, max(moments))  # a start counts ahead


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
