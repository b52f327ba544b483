"""MCP messages that a client receives: progress, logs, lists and results.

Undecoded parts stay as they came.
"""

import json as lenient
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from afoot.core.facts import NOTHING, ChildSummary
from afoot.wire.jsonrpc import ENVELOPE_DECODER, PARSE_ERROR, Envelope, Fault, Id
from afoot.wire.passthrough import unknown_fields
from afoot.wire.results import LEVELS, encode

URL_ELICITATION_REQUIRED = -32042  # 2025-11-25: somebody must visit a page first
MAX_PAGES_TO_VISIT = 100  # that one error names
MAX_VISIT_CHARS = 1000  # of the id of such a page: a connection keeps 1,000 of them
MAX_CHILDREN = 50  # in one progress notification
MAX_CHILD_CHARS = 1000  # of each of their texts
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class ReceivedProgressMeta(Struct):
    """`_meta["dev.afoot/progress"]`: the details that another afoot adds to the plain numbers."""

    progress: float | None = None
    total: float | None = None
    source: str = "tool"
    waiting_on: str | None = None
    indeterminate: bool = False
    data: Raw = NOTHING
    children: list[Raw] = []


class ReceivedFrameMeta(Struct, forbid_unknown_fields=True):
    """The `_meta` of a progress notification, if it has no keys but these."""

    call: Raw = field(name="dev.afoot/call", default=NOTHING)
    details: ReceivedProgressMeta | None = field(name="dev.afoot/progress", default=None)
    partial: Raw = field(name="dev.afoot/partial", default=NOTHING)


class ReceivedProgress(Struct, forbid_unknown_fields=True):
    """The params of `notifications/progress`; `more` is everything else that was in them."""

    token: Id = field(name="progressToken")
    progress: int | float
    total: int | float | None = None
    message: str | None = None
    meta: ReceivedFrameMeta | None = field(name="_meta", default=None)
    more: Raw = field(name="", default=NOTHING)


class ReceivedLog(Struct):
    """The params of `notifications/message`; `more` is everything else that was in them."""

    level: str = "info"
    logger: str | None = None
    data: Raw = NOTHING
    more: Raw = field(name="", default=NOTHING)

    @property
    def text(self) -> str:
        """The logged data: a text as it is, anything else as JSON."""
        try:
            return msgspec.json.decode(self.data, type=str)
        except msgspec.DecodeError:
            return bytes(self.data).decode("utf-8", "replace")


class ReceivedErrorMeta(Struct):
    """`_meta["dev.afoot/error"]` of an upstream afoot."""

    category: str = "internal"
    code: str = ""
    retryable: bool = False
    retry_after_s: float | None = None
    clock: str | None = None
    message: str = ""


class ReceivedResultMeta(Struct):
    """The parts of a result's `_meta` that are used here."""

    error: ReceivedErrorMeta | None = field(name="dev.afoot/error", default=None)


_RESULT_FIELDS = frozenset(
    ("content", "structuredContent", "isError", "resultType", "inputRequests", "requestState")
)
_PROGRESS_FIELDS = frozenset(("progressToken", "progress", "total", "message"))
_LOG_FIELDS = frozenset(("level", "logger", "data"))


class InputRequest(Struct):
    """One entry of `inputRequests`: a question without an id."""

    method: str
    params: Raw = Raw(b"{}")


class ReceivedResult(Struct):
    """The result of a request that may also ask for input; undecoded parts stay as they came.

    `more` is everything else that was in it.
    """

    content: Raw = Raw(b"[]")
    structured: Raw = field(name="structuredContent", default=NOTHING)
    is_error: bool | None = field(name="isError", default=None)
    kind: str = field(name="resultType", default="complete")
    input_requests: dict[str, InputRequest] | None = field(name="inputRequests", default=None)
    state: str | None = field(name="requestState", default=None)
    meta: ReceivedResultMeta | None = field(name="_meta", default=None)
    more: Raw = field(name="", default=NOTHING)


class ServerDescription(Struct):
    """The result of `initialize` or of `server/discover`."""

    version: str = field(name="protocolVersion", default="")
    versions: list[str] = field(name="supportedVersions", default_factory=list)
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(name="serverInfo", default_factory=dict)
    instructions: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)

    @property
    def server(self) -> dict[str, Any]:
        """The server's name and version; on 2026-07-28 they are in `_meta`."""
        found = (self.meta or {}).get("io.modelcontextprotocol/serverInfo", self.info)
        return found if isinstance(found, dict) else {}


class ElicitationUrl(Struct):
    """A page that somebody must visit."""

    url: str
    message: str = ""
    id: str = field(name="elicitationId", default="")


class _UrlElicitations(Struct):
    elicitations: list[ElicitationUrl]


class _ErrorObject(Struct):
    code: int = 0
    message: str = ""
    data: Raw = NOTHING


class _CancelledParams(Struct):
    request: Id | None = field(name="requestId", default=None)


class _Execution(Struct):
    support: str = field(name="taskSupport", default="")


class _LooseParams(Struct):
    meta: dict[str, Raw] = field(name="_meta", default_factory=dict)


class _UpdatedParams(Struct):
    uri: str | None = None
    elicitation: str | None = field(name="elicitationId", default=None)


_progress_decoder = msgspec.json.Decoder(ReceivedProgress)
_log_decoder = msgspec.json.Decoder(ReceivedLog)
_result_decoder = msgspec.json.Decoder(ReceivedResult)
_description_decoder = msgspec.json.Decoder(ServerDescription)
_error_decoder = msgspec.json.Decoder(_ErrorObject)
_cancelled_decoder = msgspec.json.Decoder(_CancelledParams)
_updated_decoder = msgspec.json.Decoder(_UpdatedParams)


def read_children(received: list[Raw]) -> tuple[ChildSummary, ...]:
    """The child calls that an upstream afoot reports, without unreadable or too long ones."""
    found: list[ChildSummary] = []
    for one in received[:MAX_CHILDREN]:
        try:
            child = msgspec.json.decode(one, type=ChildSummary)
        except _UNREADABLE:
            continue
        texts = (child.id, child.tool, child.state, child.outcome, child.message, child.parent)
        if child.id and all(len(text or "") <= MAX_CHILD_CHARS for text in texts):
            found.append(child)
    return tuple(found)


def read_message(line: bytes) -> Envelope:
    """The message in a line; raises Fault. JSON that only Python's own decoder accepts (NaN) is repaired."""
    try:
        if not line.isascii():
            str(line, "utf-8")  # the decoder does not check what it leaves undecoded
        return ENVELOPE_DECODER.decode(line)
    except _UNREADABLE:
        return ENVELOPE_DECODER.decode(_repaired_line(line))


def read_progress(params: Raw) -> ReceivedProgress | None:
    """A progress notification; None if it is not usable."""
    try:
        found = _progress_decoder.decode(params)
        found.more = NOTHING  # the decoder refuses what has more in it
        return found
    except _UNREADABLE:
        pass
    try:  # the numbers count even if there is more in it, or `_meta` or the message has an unexpected type
        loose = msgspec.json.decode(params, type=dict[str, Any])
        plain = {key: loose[key] for key in ("progressToken", "progress") if key in loose}
        fitting = {"total": (int, float), "message": str}
        plain |= {key: loose[key] for key, kind in fitting.items() if isinstance(loose.get(key), kind)}
        found = msgspec.convert(plain, ReceivedProgress)
    except (msgspec.ValidationError, *_UNREADABLE):
        return None
    found.meta = _read_frame_meta(params)
    found.more = unknown_fields(params, _PROGRESS_FIELDS)
    return found


def read_log(params: Raw) -> ReceivedLog | None:
    """A log line, its level one of LEVELS; None if it is not usable."""
    try:
        found = _log_decoder.decode(params or b"{}")
    except _UNREADABLE:
        return None
    if found.level not in LEVELS:
        found.level = "info"
    # Data that is no text is passed on as it came, beside the text that is made of it.
    is_text = memoryview(found.data)[:1] == b'"' or not found.data
    found.more = unknown_fields(params or b"{}", _LOG_FIELDS if is_text else _LOG_FIELDS - {"data"})
    return found


def read_result(result: Raw) -> ReceivedResult:
    """The result of a `tools/call`; raises Fault if it is none."""
    try:
        found = _result_decoder.decode(result)
    except _UNREADABLE as error:
        raise Fault(PARSE_ERROR, f"no result of tools/call: {error}") from None
    if memoryview(found.content)[:1] != b"[":
        raise Fault(PARSE_ERROR, "no result of tools/call: content is no list")
    if memoryview(found.structured) == b"null":
        found.structured = NOTHING
    found.more = unknown_fields(result, _RESULT_FIELDS)
    return found


def read_server_description(result: Raw) -> ServerDescription | None:
    """The server's description of itself; None if it cannot be read."""
    try:
        return _description_decoder.decode(result)
    except _UNREADABLE:
        return None


def read_error(error: Raw) -> Fault:
    """The server's error, in its own words."""
    try:
        found = _error_decoder.decode(error)
        data = msgspec.json.decode(found.data) if found.data else None
        return Fault(found.code, found.message or f"error {found.code}", data=data)
    except _UNREADABLE:
        return Fault(0, "an error without code and message")


def required_urls(wrong: Fault) -> list[ElicitationUrl]:
    """The pages that somebody must visit before this request can succeed (Q2); none if they are too many."""
    if wrong.code != URL_ELICITATION_REQUIRED:
        return []
    try:
        pages = msgspec.convert(wrong.data, _UrlElicitations).elicitations
    except msgspec.ValidationError:
        return []
    is_fit = len(pages) <= MAX_PAGES_TO_VISIT and all(len(page.id) <= MAX_VISIT_CHARS for page in pages)
    return pages if is_fit else []


def read_list_page(result: Raw, key: str) -> tuple[list[Raw], str | None]:
    """One page of a list, and the cursor of the next page; raises Fault if it is none.

    The entries are views of the page, which stays in memory as long as one of them.
    """
    try:
        found = msgspec.json.decode(result, type=dict[str, Raw])
        items = msgspec.json.decode(found.get(key, b"[]"), type=list[Raw])
        cursor = msgspec.json.decode(found.get("nextCursor", b"null"), type=str | None)
        return items, cursor
    except _UNREADABLE as error:
        raise Fault(PARSE_ERROR, f"no list of {key}: {error}") from None


def read_task_support(execution: Raw) -> str:
    """`execution.taskSupport` of a tool of 2025-11-25: forbidden, optional or required; else empty."""
    try:
        return msgspec.json.decode(execution or b"{}", type=_Execution).support
    except _UNREADABLE:
        return ""


def read_cancelled(params: Raw) -> Id | None:
    """The id of the request that a `notifications/cancelled` names."""
    try:
        return _cancelled_decoder.decode(params or b"{}").request
    except _UNREADABLE:
        return None


def read_updated(params: Raw) -> tuple[str | None, str | None]:
    """The resource, or the elicitation, that a notification names."""
    try:
        found = _updated_decoder.decode(params or b"{}")
        return found.uri, found.elicitation
    except _UNREADABLE:
        return None, None


def _read_frame_meta(params: Raw) -> ReceivedFrameMeta | None:
    """The keys of afoot in the `_meta` of a notification that has others, too."""
    try:
        loose = msgspec.json.decode(params, type=_LooseParams).meta
        details = msgspec.json.decode(
            loose.get("dev.afoot/progress", b"null"), type=ReceivedProgressMeta | None
        )
    except _UNREADABLE:
        return None
    partial = Raw(bytes(loose.get("dev.afoot/partial", b""))) or NOTHING
    return ReceivedFrameMeta(details=details, partial=partial) if details or partial else None


def _repaired_line(line: bytes) -> bytes:
    try:
        value = lenient.loads(line.decode("utf-8", "replace"))
        if isinstance(value, dict) and ("method" in value or "id" in value):
            mended = encode(value)
            ENVELOPE_DECODER.decode(mended)
            return mended
    except (ValueError, RecursionError):
        pass
    raise Fault(PARSE_ERROR, "not a message of JSON-RPC")
