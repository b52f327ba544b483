"""Messages of a tool call that both eras of MCP share: the requested call, and the frames of its answer.

A failure is written twice: as readable text for a model, and as fields for programs (E2).
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field, json
from msgspec.structs import replace

from afoot.core.call import Call, ProgressSeries
from afoot.core.fact_size import result_bytes
from afoot.core.facts import (
    NOTHING,
    Answer,
    ChildSummary,
    Failure,
    Finished,
    Logged,
    Question,
    Reading,
    Reported,
    Result,
    Trace,
)
from afoot.core.large_json import encode_sized
from afoot.core.notices import answer_place, waiting_on
from afoot.core.number_format import format_share
from afoot.wire import passthrough
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault, Id

# Log levels of RFC 5424, least urgent first; a caller gets the level it asked for and those above.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# Keys of the structured content of results that are the gateway's own: an error's code, and the text (F7).
MAX_VERSION_CHARS = 100  # of a client's version
ERROR_KEY = "afoot_error"
TEXT_KEY = "text"

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
APPS_EXTENSION = "io.modelcontextprotocol/ui"
# Declared under `experimental` by a gateway of ours that asks what a server has.
GATEWAY_CAPABILITY = "dev.afoot/gateway"
APP_PAGE_TYPE = "text/html;profile=mcp-app"  # the type of the pages of MCP Apps

encode = msgspec.json.Encoder().encode

Seconds = Annotated[float, Meta(ge=0)]

_CALL_FIELDS = frozenset(("name", "arguments", "task", "inputResponses", "requestState"))

IdempotencyKey = Annotated[str, Meta(max_length=200)]  # `_meta["dev.afoot/idempotency"]`


class Capabilities(Struct):
    """The questions that the caller can answer; None means that it cannot."""

    elicitation: dict[str, object] | None = None
    sampling: dict[str, object] | None = None
    roots: dict[str, object] | None = None
    extensions: dict[str, object] | None = None
    experimental: dict[str, object] | None = None

    @property
    def tasks(self) -> bool:
        """Whether the caller accepts a task in place of a result."""
        return self.extensions is not None and TASKS_EXTENSION in self.extensions

    @property
    def passed_extensions(self) -> dict[str, object]:
        """The extensions that are declared to servers for this caller; tasks are of this hop (U8)."""
        declared = self.extensions or {}
        return {name: value for name, value in declared.items() if name != TASKS_EXTENSION}

    @property
    def apps(self) -> bool:
        """Whether the caller shows MCP Apps."""
        return self.extensions is not None and APPS_EXTENSION in self.extensions

    @property
    def app_pages(self) -> bool:
        """Whether the caller shows our MCP App: it says that it shows HTML (V7).

        A gateway in front of this one has the same app for its own clients. It asks for the apps of others.
        """
        if self.experimental is not None and GATEWAY_CAPABILITY in self.experimental:
            return False
        declared = (self.extensions or {}).get(APPS_EXTENSION)
        types = declared.get("mimeTypes") if isinstance(declared, dict) else None
        return isinstance(types, list) and APP_PAGE_TYPE in types

    def can(self, kind: str) -> bool:
        """Whether the caller can answer a question of this kind. An empty elicitation means forms."""
        if kind in ("form", "approval"):
            return self.elicitation is not None and ("form" in self.elicitation or not self.elicitation)
        if kind == "url":
            return self.elicitation is not None and "url" in self.elicitation
        return {"sample": self.sampling, "roots": self.roots}.get(kind) is not None

    def may_answer(self, asked: Question) -> bool:
        """Whether this question is for the caller, and the caller can answer it."""
        return asked.to != "operator" and self.can(asked.kind)


class ClientInfo(Struct):
    """The name that a client gives itself: a hint at what it can do, never an identity (S3)."""

    name: str = ""
    version: object = ""  # text, unless the client is wrong

    @property
    def version_text(self) -> str:
        """Its version; empty if it is no text."""
        return self.version[:MAX_VERSION_CHARS] if isinstance(self.version, str) else ""


class CallBudget(Struct):
    """`_meta["dev.afoot/budget"]`: the time that the caller has left, and how long it waits (H5)."""

    idle_s: Seconds | None = None
    left_s: Seconds | None = None
    wait_s: Seconds | None = None  # 0: as long as it takes


class ParentCall(Struct):
    """`_meta["dev.afoot/parent"]`: the call that made this one, and this one's share of it (P8)."""

    call: Annotated[str, Meta(max_length=200)]
    weight: Annotated[float, Meta(gt=0)] = 1.0


class ToolCall(Struct):
    """A `tools/call`, in whichever era it came; or a lookup that is a call of our own function."""

    id: Id
    name: str
    arguments: Raw
    token: Id | UnsetType = UNSET
    level: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    budget: CallBudget = field(default_factory=CallBudget)
    partial: bool = False
    answers: dict[str, Raw] = {}
    state: str | None = None
    client: str = ""
    client_version: str = ""
    parent: ParentCall | None = None
    key: str = ""  # the idempotency key: the same key again means the same call
    task: bool = False  # requested as a task, which only 2025-11-25 has
    trace: Trace | None = None
    params: Raw = Raw()  # as they came
    method: str = "tools/call"  # or resources/read, prompts/get: of a resource or prompt of our own (F3)

    @property
    def is_lookup(self) -> bool:
        """Whether the call reads a resource or fills in a prompt: its answer is no result of a tool."""
        return self.method != "tools/call"

    def unknown_params(self) -> Raw:
        """The fields and the `_meta` of its params that are for the tool's server alone (U8)."""
        more = passthrough.unknown_fields(self.params, _CALL_FIELDS, passthrough.TRACE_KEYS)
        own: dict[str, object] = {}
        if self.level == LEVELS[0]:  # a server is asked for the next level, for the history
            own[passthrough.LOG_LEVEL_KEY] = self.level
        if self.capabilities.extensions and (extensions := self.capabilities.passed_extensions):
            own[passthrough.CAPABILITIES_KEY] = {"extensions": extensions}
        return Raw(encode(passthrough.merge({"_meta": own}, more))) if own else more


class ErrorMeta(Struct, omit_defaults=True):
    """`_meta["dev.afoot/error"]`: a failure, for programs."""

    category: str
    code: str
    retryable: bool | UnsetType = UNSET
    retry_after_s: float | None = None
    clock: str | None = None
    elapsed_s: float | UnsetType = UNSET
    last: Reading | None = None
    side_effects: str | UnsetType = UNSET
    message: str = ""  # what happened, in words, without the rest of the text for a model


class ProgressMeta(Struct, omit_defaults=True):
    """`_meta["dev.afoot/progress"]`: details for which a progress notification has no fields."""

    progress: float | None = None
    total: float | None = None
    source: str = "tool"
    waiting_on: str | None = None
    indeterminate: bool = False  # the tool told no number: the one that is sent only rises
    data: Raw = NOTHING
    missed: int = 0  # facts that this reader was too slow for; the history has them
    children: list[ChildSummary] = []  # child calls that have changed since the last frame
    eta_s: float | None = None  # the seconds that the call still takes
    eta_range_s: tuple[float, float] | None = None  # at least and at most, if these differ widely


class FrameMeta(Struct, omit_defaults=True):
    """The `_meta` of a progress notification."""

    call: str = field(name="dev.afoot/call", default="")
    progress: ProgressMeta | None = field(name="dev.afoot/progress", default=None)
    partial: Raw = field(name="dev.afoot/partial", default=NOTHING)


class ProgressParams(Struct, omit_defaults=True):
    """The params of `notifications/progress`."""

    progressToken: Id
    progress: float
    total: float | None = None
    message: str | None = None
    meta: FrameMeta | None = field(name="_meta", default=None)


class Notification(Struct):
    """Any notification that we send."""

    method: str
    params: object
    jsonrpc: str = "2.0"


class ResultMeta(Struct, omit_defaults=True):
    """The `_meta` of a tool's result."""

    call: str = field(name="dev.afoot/call", default="")
    token: Id | UnsetType = field(name="progressToken", default=UNSET)
    error: ErrorMeta | None = field(name="dev.afoot/error", default=None)
    history: str | None = field(name="dev.afoot/history", default=None)
    server: Raw = field(name="io.modelcontextprotocol/serverInfo", default=NOTHING)
    server_name: str = field(name="dev.afoot/server", default="")  # of the tool, in this gateway
    tool: str = field(name="dev.afoot/tool", default="")


class CallResult(Struct, omit_defaults=True):
    """The result of `tools/call`; `resultType` belongs to 2026-07-28."""

    content: Raw
    structuredContent: Raw = NOTHING
    isError: bool = False
    resultType: str | UnsetType = UNSET
    meta: ResultMeta | None = field(name="_meta", default=None)


class Response(Struct):
    """A response that we send."""

    id: Id
    result: object
    jsonrpc: str = "2.0"


class ErrorBody(Struct, omit_defaults=True):
    """The error object of JSON-RPC."""

    code: int
    message: str
    data: object = None


class ErrorResponse(Struct):
    """An error response that we send."""

    id: Id | None
    error: ErrorBody
    jsonrpc: str = "2.0"


class _ElicitResult(Struct):
    action: str
    content: Raw = NOTHING


class _ContentItem(Struct):
    type: str = ""
    text: str = ""


class _AppToolUi(Struct):
    visibility: list[str] | None = None


class _AppToolMeta(Struct):
    ui: _AppToolUi = field(default_factory=_AppToolUi)


class _AppTool(Struct):
    meta: _AppToolMeta = field(name="_meta", default_factory=_AppToolMeta)


_elicit_result_decoder = msgspec.json.Decoder(_ElicitResult)
_ELICIT_FIELDS = frozenset(("action", "content"))


def empty_arguments(given: Raw) -> Raw:
    """The arguments for a call that sent null; raises Fault for anything else that is no object."""
    if bytes(given).strip() != b"null":
        raise Fault(INVALID_PARAMS, "params.arguments: must be an object")
    return Raw(b"{}")


def progress_notification(
    token: Id, series: ProgressSeries, reading: Reading, meta: FrameMeta | None = None, more: Raw = NOTHING
) -> bytes:
    """A progress notification whose numbers always rise; the tool's own are in `_meta` where they differ.

    `more`: fields and `_meta` of a server's own notification.
    """
    number, total = series.rise(reading)
    if reading.progress is not None and reading.progress != number:
        meta = meta or FrameMeta()
        meta.progress = meta.progress or ProgressMeta()
        if meta.progress.progress is None:
            meta.progress.progress = reading.progress
            meta.progress.total = reading.total
    elif reading.progress is None and reading.source == "tool":
        meta = meta or FrameMeta()
        meta.progress = meta.progress or ProgressMeta()
        meta.progress.indeterminate = meta.progress.progress is None
    params = ProgressParams(token, number, total, reading.message, meta)
    if more:
        return encode(Notification("notifications/progress", passthrough.merge(params, more)))
    return encode(Notification("notifications/progress", params))


def frame_meta(item: Reading | Reported, call: Call, partial: bool) -> FrameMeta | None:
    """The `_meta` of a progress notification: its source, who is waited for, data and partial results."""
    if isinstance(item, Reported):
        meta = ProgressMeta(data=item.data) if item.data else None
        shown = item.partial if partial else NOTHING
        return FrameMeta(progress=meta, partial=shown) if meta or shown else None
    if item.source == "engine":
        return FrameMeta(progress=ProgressMeta(source="engine", waiting_on=waiting_on(call)))
    return None


def log_notification(line: Logged) -> bytes:
    """A line that the tool logged, for a caller that asked for logs."""
    params = {"level": line.level, "logger": line.logger or "tool", "data": line.text}
    # Data of a server that is no text is in `more`, and counts.
    return encode(Notification("notifications/message", {**params, **passthrough.fields_of(line.more)}))


def is_log_wanted(wanted: str | None, level: str) -> bool:
    """Whether a line of this level is for a caller that asked for the level `wanted`."""
    return wanted in LEVELS and level in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted)


def call_result(
    tool_call: ToolCall,
    call: Call,
    end: Finished,
    *,
    modern: Raw = NOTHING,
    unrecorded: bool = False,
    structures_errors: bool = False,
) -> bytes:
    """The response to a finished call; `modern` is the server's info on 2026-07-28, and empty before.

    `structures_errors`: the caller takes the text of an error as structured content. It does not if it has
    an output schema to which that does not fit.
    """
    # A tool's own error keeps its own words.
    own = end.result is not None and (end.failure is None or end.result.is_error)
    ended = end.result if own and end.result is not None else call_outcome(call, end)
    if structures_errors and not own and end.failure is not None:
        ended = replace(ended, structured=_structured_error(end.failure, ended.content))
    meta = ResultMeta(
        call.id, tool_call.token, failure_meta(end.failure) if end.failure else None,
        "unrecorded" if unrecorded else None, modern, call.opened.server, call.opened.tool,
    )  # fmt: skip
    kind = "complete" if modern else UNSET
    # Before 2026-07-28 structured content must be an object; anything else is only in the text.
    is_fit = modern or memoryview(ended.structured)[:1] == b"{"
    structured = ended.structured if is_fit else NOTHING
    result = CallResult(ended.content, structured, ended.is_error, kind, meta)
    size = result_bytes(ended)
    merged = passthrough.merge(result, ended.more, size) if ended.more else result
    return encode_sized(Response(tool_call.id, merged), size)


def call_outcome(call: Call, end: Finished) -> Result:
    """The result that the caller gets: the tool's own, or an error with its partial results (P11)."""
    failure = end.failure
    if failure is None:
        return end.result or Result(Raw(b"[]"))
    text = json.encode({"type": "text", "text": failure_text(failure)})
    partial = b"".join(b"," + _list_body(part) for part in _partials(call, end) if _list_body(part))
    return Result(Raw(b"[" + text + partial + b"]"), is_error=True)


def _structured_error(failure: Failure, content: Raw) -> Raw:
    """The error as structured content; nothing if it has partial results that are no text.

    Some hosts show their model nothing but the structured content (F7), so it holds all that a model must
    read, or it is left out.
    """
    try:
        first, *partial = json.decode(content, type=list[_ContentItem])
    except msgspec.ValidationError:  # a server's own kind of content
        return NOTHING
    if any(one.type != "text" for one in partial):
        return NOTHING
    told: dict[str, object] = {ERROR_KEY: failure.code, TEXT_KEY: first.text}
    if partial:
        told["partial"] = [one.text for one in partial]
    return Raw(encode(told))


def error_response(fault: Fault, request: Id | None = None) -> bytes:
    """The error response for a Fault."""
    body = ErrorBody(fault.code, fault.message, fault.data)
    return encode(ErrorResponse(fault.id if request is None else request, body))


def is_for_apps_alone(definition: Raw) -> bool:
    """Whether a tool is for the page of an MCP App and not for a model, by its definition (U8)."""
    if b'"visibility"' not in bytes(definition):
        return False
    try:
        seen_by = json.decode(definition, type=_AppTool).meta.ui.visibility
    except msgspec.DecodeError:
        return False
    return seen_by is not None and "model" not in seen_by


def failure_text(failure: Failure) -> str:
    """The failure for a model, in short sentences: what happened, how far the call got, what to do."""
    parts = [failure.message.rstrip(".")]
    if failure.last is not None:
        parts.append(
            f"It had got to {reading_text(failure.last)}, {failure.elapsed_s:.1f} s after it was called"
        )
    if failure.side_effects == "possible" and failure.category in ("timeout", "cancelled", "unavailable"):
        parts.append("It may have had side effects")
    if failure.retry_after_s is not None:
        parts.append(f"Try again after {failure.retry_after_s:g} s")
    elif failure.retryable:
        parts.append("It may be tried again")
    return ". ".join(parts)


def failure_meta(failure: Failure) -> ErrorMeta:
    """The failure for programs; the stack trace is not sent."""
    return ErrorMeta(
        failure.category, failure.code, failure.retryable, failure.retry_after_s, failure.clock,
        failure.elapsed_s, failure.last, failure.side_effects, failure.message,
    )  # fmt: skip


def reading_text(reading: Reading) -> str:
    """A reading in words: `37/120: page 37`; `21 %` for numbers of child calls."""
    number = "" if reading.progress is None else f"{reading.progress:.12g}"
    if reading.source == "below" and reading.progress is not None and reading.total:
        number = format_share(reading.progress, reading.total)
    elif number and reading.total is not None:
        number += f"/{reading.total:.12g}"
    return ": ".join(part for part in (number, reading.message) if part) or "an unknown point"


def place_of_answer(call: Call, can: Capabilities, console: str | None) -> str:
    """The place where a person can answer what the call asks, for a caller that cannot be asked (Q5).

    It is empty if nothing is asked, or if the caller can answer.
    """
    asked = next(iter(call.open.values()), None)
    return "" if asked is None or can.may_answer(asked) else answer_place(asked, console)


def question_params(asked: Question) -> tuple[str, object]:
    """The method and params of the request that asks the caller."""
    if asked.kind == "sample":
        return "sampling/createMessage", asked.body
    if asked.kind == "roots":
        return "roots/list", passthrough.fields_of(asked.more)
    body: dict[str, object] = {**passthrough.fields_of(asked.more), "message": asked.message}
    if asked.kind == "url":
        return "elicitation/create", {**body, "mode": "url", "url": asked.body}
    schema = asked.body or Raw(b'{"type":"object","properties":{}}')
    return "elicitation/create", {**body, "mode": "form", "requestedSchema": schema}


def read_answer(asked: Question, response: Raw, by: str) -> Answer:
    """The caller's answer to a question; raises Fault."""
    if asked.kind in ("sample", "roots"):
        return Answer("accept", response, by)
    try:
        given = _elicit_result_decoder.decode(response)
    except (msgspec.ValidationError, RecursionError) as wrong:
        raise Fault(INVALID_PARAMS, f"inputResponses.{asked.key}: {wrong}") from None
    more = passthrough.unknown_fields(response, _ELICIT_FIELDS)
    return Answer(given.action, _owned_content(given.content), by, more=more)


def read_early_answer(response: Raw, by: str) -> Answer:
    """An answer that comes before its question is known (Q1 e)."""
    try:
        given = _elicit_result_decoder.decode(response)
    except (msgspec.ValidationError, RecursionError):
        return Answer("accept", response, by)
    more = passthrough.unknown_fields(response, _ELICIT_FIELDS)
    return Answer(given.action, _owned_content(given.content), by, more=more)


def _partials(call: Call, end: Finished) -> list[Raw]:
    return [*call.partials, end.result.content] if end.result is not None else call.partials


def _list_body(content: Raw) -> bytes:
    """The inside of an encoded list."""
    return bytes(content)[1:-1].strip()


def _owned_content(content: Raw) -> Raw:
    """A copy of the content that outlives the message it came in."""
    text = bytes(content)
    return Raw(text) if text and text != b"null" else NOTHING
