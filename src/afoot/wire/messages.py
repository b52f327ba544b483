"""What both eras of MCP share: a tool call as it was asked for, and the frames that go back for it."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from afoot.core.call import Call, Series
from afoot.core.facts import NOTHING, Answer, Finished, Logged, Question, Reading, Reported, Trace
from afoot.core.notices import Child, waiting_on
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault, Id
from afoot.wire.telling import ErrorMeta, failure_meta, outcome

# RFC 5424 levels, least urgent first; a caller gets its own and everything above.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

TASKS = "io.modelcontextprotocol/tasks"  # the extension by which calls are tasks

encode = msgspec.json.Encoder().encode


class Capabilities(Struct):
    """What the caller can be asked for; None means that it cannot."""

    elicitation: dict[str, object] | None = None
    sampling: dict[str, object] | None = None
    roots: dict[str, object] | None = None
    extensions: dict[str, object] | None = None

    @property
    def tasks(self) -> bool:
        """Whether the caller takes a task in place of a result."""
        return self.extensions is not None and TASKS in self.extensions

    def can(self, kind: str) -> bool:
        """Whether the caller can answer a question of this kind. An empty elicitation means forms."""
        if kind in ("form", "approval"):
            return self.elicitation is not None and ("form" in self.elicitation or not self.elicitation)
        if kind == "url":
            return self.elicitation is not None and "url" in self.elicitation
        return {"sample": self.sampling, "roots": self.roots}.get(kind) is not None

    def may_answer(self, asked: Question) -> bool:
        """Whether the caller is the one to answer this question."""
        return asked.to != "operator" and self.can(asked.kind)


class Client(Struct):
    """Who a client says it is: a hint at what it can do, never an identity (S3)."""

    name: str = ""


Seconds = Annotated[float, Meta(ge=0)]


class Budget(Struct):
    """`_meta["dev.afoot/budget"]`: what the caller has left, and how long it waits for an answer (H5)."""

    idle_s: Seconds | None = None
    left_s: Seconds | None = None
    wait_s: Seconds | None = None  # 0: as long as it takes


class Parent(Struct):
    """`_meta["dev.afoot/parent"]`: the call that made this one, and what share of it this is (P8)."""

    call: Annotated[str, Meta(max_length=200)]
    weight: Annotated[float, Meta(gt=0)] = 1.0


Key = Annotated[str, Meta(max_length=200)]  # `_meta["dev.afoot/idempotency"]`


class Wanted(Struct):
    """A `tools/call`, whatever the era it came in."""

    id: Id
    name: str
    arguments: Raw
    token: Id | UnsetType = UNSET
    level: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    budget: Budget = field(default_factory=Budget)
    partial: bool = False
    answers: dict[str, Raw] = {}
    state: str | None = None
    client: str = ""
    parent: Parent | None = None
    key: str = ""  # the same again means the same call
    task: bool = False  # asked for as a task, which only 2025-11-25 has
    trace: Trace | None = None
    params: Raw = Raw()  # as they came


def no_arguments(given: Raw) -> Raw:
    """What stands for arguments that are no object: nothing, if they are null; raises Fault otherwise."""
    if bytes(given).strip() != b"null":
        raise Fault(INVALID_PARAMS, "params.arguments: must be an object")
    return Raw(b"{}")


class ProgressMeta(Struct, omit_defaults=True):
    """`_meta["dev.afoot/progress"]`: what the plain fields of a notification cannot hold."""

    progress: float | None = None
    total: float | None = None
    source: str = "tool"
    waiting_on: str | None = None
    data: Raw = NOTHING
    missed: int = 0  # facts this reader was too slow for; the history has them
    children: list[Child] = []  # calls below that have changed since the last frame
    eta_s: tuple[float, float] | None = None  # the seconds that the call still takes: at least, at most


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


class CallResult(Struct, omit_defaults=True):
    """The result of `tools/call`; `resultType` belongs to 2026-07-28."""

    content: Raw
    structuredContent: Raw = NOTHING
    isError: bool = False
    resultType: str | UnsetType = UNSET
    meta: ResultMeta | None = field(name="_meta", default=None)


class Response(Struct):
    """A result on its way out."""

    id: Id
    result: object
    jsonrpc: str = "2.0"


class ErrorBody(Struct, omit_defaults=True):
    """The error object of JSON-RPC."""

    code: int
    message: str
    data: object = None


class ErrorResponse(Struct):
    """An error on its way out."""

    id: Id | None
    error: ErrorBody
    jsonrpc: str = "2.0"


def error(fault: Fault, request: Id | None = None) -> bytes:
    """The protocol's error."""
    body = ErrorBody(fault.code, fault.message, fault.data)
    return encode(ErrorResponse(fault.id if request is None else request, body))


def progress(token: Id, series: Series, reading: Reading, meta: FrameMeta | None = None) -> bytes:
    """A progress notification: the numbers made to rise, the tool's own beside them where they differ."""
    number, total = series.rise(reading)
    if reading.progress is not None and reading.progress != number:
        meta = meta or FrameMeta()
        meta.progress = meta.progress or ProgressMeta()
        meta.progress.progress, meta.progress.total = reading.progress, reading.total
    return encode(
        Notification("notifications/progress", ProgressParams(token, number, total, reading.message, meta))
    )


def told(item: Reading | Reported, call: Call, partial: bool) -> FrameMeta | None:
    """What goes beside the numbers: who speaks, on whom it waits, data and partial results."""
    if isinstance(item, Reported):
        meta = ProgressMeta(data=item.data) if item.data else None
        shown = item.partial if partial else NOTHING
        return FrameMeta(progress=meta, partial=shown) if meta or shown else None
    if item.source == "engine":
        return FrameMeta(progress=ProgressMeta(source="engine", waiting_on=waiting_on(call)))
    return None


def log(line: Logged) -> bytes:
    """A line the tool logged, for a caller that asked for logs."""
    params = {"level": line.level, "logger": line.logger or "tool", "data": line.text}
    return encode(Notification("notifications/message", params))


def wants_log(wanted: str | None, level: str) -> bool:
    """Whether a line of this level is for a caller that asked for `wanted` and above."""
    return wanted in LEVELS and level in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted)


def result(
    want: Wanted, call: Call, end: Finished, *, modern: Raw = NOTHING, unrecorded: bool = False
) -> bytes:
    """The last frame of a call: `modern` is the server's info on 2026-07-28, and empty before."""
    # A tool's own error is told in its own words.
    own = end.result is not None and (end.failure is None or end.result.is_error)
    ended = end.result if own and end.result is not None else outcome(call, end)
    meta = ResultMeta(
        call.id, want.token, failure_meta(end.failure) if end.failure else None,
        "unrecorded" if unrecorded else None, modern,
    )  # fmt: skip
    kind = "complete" if modern else UNSET
    # Before 2026-07-28 only an object may be structured; what is none stands in the text.
    is_fit = modern or memoryview(ended.structured)[:1] == b"{"
    structured = ended.structured if is_fit else NOTHING
    return encode(Response(want.id, CallResult(ended.content, structured, ended.is_error, kind, meta)))


def question(asked: Question) -> tuple[str, object]:
    """The method and params that ask the caller."""
    if asked.kind == "sample":
        return "sampling/createMessage", asked.body
    if asked.kind == "roots":
        return "roots/list", Raw(b"{}")
    if asked.kind == "url":
        return "elicitation/create", {"mode": "url", "message": asked.message, "url": asked.body}
    schema = asked.body or Raw(b'{"type":"object","properties":{}}')
    return "elicitation/create", {"mode": "form", "message": asked.message, "requestedSchema": schema}


class _Elicited(Struct):
    action: str
    content: Raw = NOTHING


_elicited = msgspec.json.Decoder(_Elicited)


def answer(asked: Question, response: Raw, by: str) -> Answer:
    """What the caller answered; raises Fault."""
    if asked.kind in ("sample", "roots"):
        return Answer("accept", response, by)
    try:
        given = _elicited.decode(response)
    except (msgspec.ValidationError, RecursionError) as wrong:
        raise Fault(INVALID_PARAMS, f"inputResponses.{asked.key}: {wrong}") from None
    return Answer(given.action, _kept(given.content), by)


def early(response: Raw, by: str) -> Answer:
    """An answer that comes before its question is known (Q1 e)."""
    try:
        given = _elicited.decode(response)
    except (msgspec.ValidationError, RecursionError):
        return Answer("accept", response, by)
    return Answer(given.action, _kept(given.content), by)


def _kept(content: Raw) -> Raw:
    """Content that outlives the message it came in."""
    text = bytes(content)
    return Raw(text) if text and text != b"null" else NOTHING
