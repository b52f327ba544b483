"""What a client of MCP hears: messages of any kind, progress, logs, lists, and results left as they came."""

import json as lenient
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from afoot.core.facts import NOTHING
from afoot.wire.jsonrpc import ENVELOPE, PARSE_ERROR, Envelope, Fault, Id
from afoot.wire.messages import LEVELS, encode

URL_NEEDED = -32042  # 2025-11-25: somebody must visit a page first
TREE_LIMIT = 50  # children in one frame


class Beside(Struct):
    """`_meta["dev.afoot/progress"]`: what another afoot says beside the plain numbers."""

    progress: float | None = None
    total: float | None = None
    source: str = "tool"
    waiting_on: str | None = None
    data: Raw = NOTHING
    children: list[Raw] = []


class FrameMeta(Struct):
    """The `_meta` of a progress notification."""

    beside: Beside | None = field(name="dev.afoot/progress", default=None)
    partial: Raw = field(name="dev.afoot/partial", default=NOTHING)


class Told(Struct):
    """The params of `notifications/progress`."""

    token: Id = field(name="progressToken")
    progress: int | float
    total: int | float | None = None
    message: str | None = None
    meta: FrameMeta | None = field(name="_meta", default=None)


class Said(Struct):
    """The params of `notifications/message`."""

    level: str = "info"
    logger: str | None = None
    data: Raw = NOTHING

    @property
    def text(self) -> str:
        """What was said: a text as it is, anything else as JSON."""
        try:
            return msgspec.json.decode(self.data, type=str)
        except msgspec.DecodeError:
            return bytes(self.data).decode("utf-8", "replace")


class ErrorMeta(Struct):
    """`_meta["dev.afoot/error"]` of an afoot behind us."""

    category: str = "internal"
    code: str = ""
    retryable: bool = False
    retry_after_s: float | None = None


class ResultMeta(Struct):
    """What counts here of a result's `_meta`."""

    error: ErrorMeta | None = field(name="dev.afoot/error", default=None)


class Wish(Struct):
    """One entry of `inputRequests`: what is asked, without an id."""

    method: str
    params: Raw = Raw(b"{}")


class Outcome(Struct):
    """The result of a request that may also ask for input; what is not looked into is kept as it came."""

    content: Raw = Raw(b"[]")
    structured: Raw = field(name="structuredContent", default=NOTHING)
    is_error: bool | None = field(name="isError", default=None)
    kind: str = field(name="resultType", default="complete")
    wishes: dict[str, Wish] | None = field(name="inputRequests", default=None)
    state: str | None = field(name="requestState", default=None)
    meta: ResultMeta | None = field(name="_meta", default=None)


class Greeting(Struct):
    """The result of `initialize` or of `server/discover`."""

    version: str = field(name="protocolVersion", default="")
    versions: list[str] = field(name="supportedVersions", default_factory=list)
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(name="serverInfo", default_factory=dict)
    instructions: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)

    @property
    def server(self) -> dict[str, Any]:
        """Who answers: on 2026-07-28 it stands in `_meta`."""
        found = (self.meta or {}).get("io.modelcontextprotocol/serverInfo", self.info)
        return found if isinstance(found, dict) else {}


class Link(Struct):
    """A page that somebody must visit."""

    url: str
    message: str = ""
    id: str = field(name="elicitationId", default="")


class _Links(Struct):
    elicitations: list[Link]


class _Wrong(Struct):
    code: int = 0
    message: str = ""
    data: Raw = NOTHING


class _Cancelled(Struct):
    request: Id | None = field(name="requestId", default=None)


class _Updated(Struct):
    uri: str | None = None
    elicitation: str | None = field(name="elicitationId", default=None)


_told = msgspec.json.Decoder(Told)
_said = msgspec.json.Decoder(Said)
_outcome = msgspec.json.Decoder(Outcome)
_greeting = msgspec.json.Decoder(Greeting)
_wrong = msgspec.json.Decoder(_Wrong)
_cancelled = msgspec.json.Decoder(_Cancelled)
_updated = msgspec.json.Decoder(_Updated)
_MISFIT = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def read(line: bytes) -> Envelope:
    """The message in a line; raises Fault. What only Python's own JSON can read (NaN) is put right."""
    try:
        if not line.isascii():
            str(line, "utf-8")  # what is not looked into is not checked by the decoder
        return ENVELOPE.decode(line)
    except _MISFIT:
        return ENVELOPE.decode(_mended(line))


def _mended(line: bytes) -> bytes:
    try:
        value = lenient.loads(line.decode("utf-8", "replace"))
        if isinstance(value, dict) and ("method" in value or "id" in value):
            mended = encode(value)
            ENVELOPE.decode(mended)
            return mended
    except (ValueError, RecursionError):
        pass
    raise Fault(PARSE_ERROR, "not a message of JSON-RPC")


def progress(params: Raw) -> Told | None:
    """A progress notification; None if it is none that can be used."""
    try:
        return _told.decode(params)
    except _MISFIT:
        pass
    try:  # with a `_meta` or a message that is none of ours, the numbers still count
        loose = msgspec.json.decode(params, type=dict[str, Any])
        plain = {key: loose[key] for key in ("progressToken", "progress") if key in loose}
        fitting = {"total": (int, float), "message": str}
        plain |= {key: loose[key] for key, kind in fitting.items() if isinstance(loose.get(key), kind)}
        return msgspec.convert(plain, Told)
    except (msgspec.ValidationError, *_MISFIT):
        return None


def said(params: Raw) -> Said | None:
    """A log line; its level is one that is known."""
    try:
        found = _said.decode(params or b"{}")
    except _MISFIT:
        return None
    if found.level not in LEVELS:
        found.level = "info"
    return found


def outcome(result: Raw) -> Outcome:
    """The result of a `tools/call`; raises Fault if it is none."""
    try:
        found = _outcome.decode(result)
    except _MISFIT as error:
        raise Fault(PARSE_ERROR, f"no result of tools/call: {error}") from None
    if memoryview(found.content)[:1] != b"[":
        raise Fault(PARSE_ERROR, "no result of tools/call: content is no list")
    if memoryview(found.structured) == b"null":
        found.structured = NOTHING
    return found


def greeting(result: Raw) -> Greeting | None:
    """Who the server is and what it offers; None if it does not say so."""
    try:
        return _greeting.decode(result)
    except _MISFIT:
        return None


def fault(error: Raw) -> Fault:
    """The server's error, as it said it."""
    try:
        found = _wrong.decode(error)
        data = msgspec.json.decode(found.data) if found.data else None
        return Fault(found.code, found.message or f"error {found.code}", data=data)
    except _MISFIT:
        return Fault(0, "an error without code and message")


def links(wrong: Fault) -> list[Link]:
    """The pages that somebody must visit before this request can succeed (Q2)."""
    try:
        return msgspec.convert(wrong.data, _Links).elicitations if wrong.code == URL_NEEDED else []
    except msgspec.ValidationError:
        return []


def page(result: Raw, key: str) -> tuple[list[Raw], str | None]:
    """One page of a list, and the cursor of the next; raises Fault if it is none."""
    try:
        found = msgspec.json.decode(result, type=dict[str, Raw])
        items = msgspec.json.decode(found.get(key, b"[]"), type=list[Raw])
        cursor = msgspec.json.decode(found.get("nextCursor", b"null"), type=str | None)
        return [Raw(bytes(item)) for item in items], cursor
    except _MISFIT as error:
        raise Fault(PARSE_ERROR, f"no list of {key}: {error}") from None


def withdrawn(params: Raw) -> Id | None:
    """The request that a `notifications/cancelled` names."""
    try:
        return _cancelled.decode(params or b"{}").request
    except _MISFIT:
        return None


def named(params: Raw) -> tuple[str | None, str | None]:
    """The resource, or the visit to a page, that a notification names."""
    try:
        found = _updated.decode(params or b"{}")
        return found.uri, found.elicitation
    except _MISFIT:
        return None, None
