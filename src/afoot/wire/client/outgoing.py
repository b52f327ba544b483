"""MCP messages that a client sends, in both eras: requests, notifications and answers.

It also translates a server's questions into ours, and our answers into the results that the server expects.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, field, json
from msgspec.structs import force_setattr, replace

from afoot.core.facts import NOTHING, Answer, Question
from afoot.errors import ToolError
from afoot.wire import mcp_2025, mcp_2026, passthrough
from afoot.wire.client.incoming import ElicitationUrl, InputRequest, ReceivedResult
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Fault, Id, validation_message
from afoot.wire.mcp_2026 import ParamHeader
from afoot.wire.results import ErrorBody, ErrorResponse, Notification, Response, encode

VERSION_2026 = mcp_2026.VERSION
VERSION_2025 = mcp_2025.LATEST

# Which questions our callers can answer is known only when a question comes; until then all are offered.
CAPABILITIES = Raw(b'{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}')
# Requests for the lists of a server also tell it that a gateway asks.
CAPABILITIES_OF_GATEWAY = Raw(
    b'{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{},"experimental":{"dev.afoot/gateway":{}}}'
)
CAPABILITIES_2025 = Raw(
    b'{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true},'
    b'"experimental":{"dev.afoot/gateway":{}}}'
)

# The extensions that are declared where a server is asked what it has: a tool for MCP Apps may be listed only
# to clients that show them.
LISTED_EXTENSIONS = Raw(b'{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}')

USER_REJECTED = -1  # the code in the specification's own examples

# Errors of a server of the handshake era that has not begun a call, because it is one for 2026-07-28.
REFUSED_IN_2025 = (mcp_2026.MISSING_CAPABILITY, mcp_2026.UNSUPPORTED_VERSION)
# The words of the Python SDK for a result that its version of MCP does not have, such as `input_required`.
_UNFIT_RESULT = "Handler returned an invalid result"
# The words of FastMCP, which says INVALID_PARAMS although its function has run.
_UNFIT_ROUND = ("InputRequiredResult", f"only exists at MCP {VERSION_2026}")

_META_PREFIX = passthrough.PROTOCOL_PREFIX
# Params of `elicitation/create` that are said anew on each hop.
_ELICIT_FIELDS = frozenset(("message", "mode", "url", "requestedSchema", "elicitationId", "task"))

# The error category that each JSON-RPC code means.
_CATEGORIES = {
    -32602: "validation",
    -32600: "validation",
    -32700: "validation",
    -32601: "not_found",
    -32002: "not_found",  # a resource, before 2026-07-28
    -32021: "refused",  # the caller lacks a capability
    -32042: "refused",  # nobody visited the page
    -32800: "cancelled",
    -32001: "timeout",
    -32000: "unavailable",
}


class Dialect(Struct, frozen=True):
    """The dialect of one server: the protocol version, and the `clientInfo` that we send to it.

    `extensions` are declared at `initialize`; on 2026-07-28, in each request that declares none itself.
    """

    version: str
    info: Raw
    # Whether this is 2026-07-28: every request names its client, and there is no session.
    is_modern: bool = False
    extensions: Raw = NOTHING

    def __post_init__(self) -> None:
        force_setattr(self, "is_modern", self.version == VERSION_2026)


class OutgoingRequest(Struct):
    """A request that we send to a server."""

    id: Id
    method: str
    params: object
    jsonrpc: str = "2.0"


class RemainingBudget(Struct, omit_defaults=True):
    """`_meta["dev.afoot/budget"]`: the time that the next hop has left."""

    idle_s: float | None = None
    left_s: float | None = None


class _ElicitParams(Struct):
    message: str = ""
    mode: str | None = None
    url: str = ""
    schema: Raw = field(name="requestedSchema", default=NOTHING)


class _TextItem(Struct):
    text: str = ""


_elicit_decoder = msgspec.json.Decoder(_ElicitParams)


def request(
    dialect: Dialect, id: Id, method: str, params: Mapping[str, Any], meta: Mapping[str, Any]
) -> bytes:
    """Any request; on 2026-07-28 with the client's info and capabilities.

    The capabilities in `meta`, if there are any, are the extensions of the caller that the request is for.
    """
    own = {**params.get("_meta", {}), **meta}
    declared = own.pop(passthrough.CAPABILITIES_KEY, None)
    if dialect.is_modern:
        own[f"{_META_PREFIX}protocolVersion"] = VERSION_2026
        own[f"{_META_PREFIX}clientInfo"] = dialect.info
        if isinstance(declared, dict):
            own[passthrough.CAPABILITIES_KEY] = _capabilities(declared.get("extensions"))
        else:
            own[passthrough.CAPABILITIES_KEY] = _capabilities(
                _decoded(dialect.extensions), CAPABILITIES_OF_GATEWAY
            )
    return encode(OutgoingRequest(id, method, {**params, "_meta": own} if own else params))


def initialize_request(id: Id, dialect: Dialect) -> bytes:
    """`initialize`, which opens a connection of the handshake era."""
    can = _capabilities(_decoded(dialect.extensions), CAPABILITIES_2025)
    params = {"protocolVersion": dialect.version, "capabilities": can, "clientInfo": dialect.info}
    return encode(OutgoingRequest(id, "initialize", params))


def call_meta(call: str, budget: RemainingBudget, level: str | None) -> dict[str, Any]:
    """The `_meta` of a `tools/call`: the time left (C3), the parent call (P8), and the wanted log level."""
    meta: dict[str, Any] = {
        "dev.afoot/budget": budget,
        "dev.afoot/parent": {"call": call, "weight": 1},
        "dev.afoot/partial": True,
    }
    if level:
        meta[f"{_META_PREFIX}logLevel"] = level
    return meta


def request_headers(dialect: Dialect, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """The HTTP headers that repeat parts of the request's body."""
    if method == "initialize":
        return {}
    found = {"mcp-protocol-version": dialect.version}
    if dialect.is_modern:
        found["mcp-method"] = method
        named = params.get(mcp_2026.NAME_FIELDS.get(method, ""))
        if isinstance(named, str):
            found["mcp-name"] = mcp_2026.encode_header(named)
    return found


def encode_param_headers(mirrors: list[ParamHeader], arguments: Raw) -> dict[str, str]:
    """The `Mcp-Param-*` headers of a call: one for each annotated argument that is given."""
    if not mirrors:
        return {}
    values = json.decode(arguments)
    found = ((mirror.header, _argument_text(values, mirror.path)) for mirror in mirrors)
    return {f"mcp-param-{header}": mcp_2026.encode_header(text) for header, text in found if text is not None}


def notification(method: str, **params: object) -> bytes:
    """A notification to the server."""
    return encode(Notification(method, params))


def cancel_notification(request: Id, reason: str) -> bytes:
    """The notification that one of our requests needs no answer any more."""
    return notification("notifications/cancelled", requestId=request, reason=reason)


def result_response(request: Id, result: object) -> bytes:
    """The response to a request of the server."""
    return encode(Response(request, result))


def error_response(request: Id, fault: Fault) -> bytes:
    """The error response to a request of the server."""
    return encode(ErrorResponse(request, ErrorBody(fault.code, fault.message, fault.data)))


def read_question(wish: InputRequest, key: str, to: str = "") -> Question:
    """The question in a server's request; raises Fault for a method that is no question."""
    if wish.method == "sampling/createMessage":
        body = passthrough.without_hop_keys(Raw(bytes(wish.params)))
        return Question("", key, "sample", body=body, to=to)
    if wish.method == "roots/list":
        return Question("", key, "roots", to=to, more=passthrough.unknown_fields(wish.params, frozenset()))
    if wish.method != "elicitation/create":
        raise Fault(METHOD_NOT_FOUND, f"unknown method {wish.method!r}")
    try:
        asked = _elicit_decoder.decode(wish.params or b"{}")
    except msgspec.ValidationError as error:
        raise Fault(INVALID_PARAMS, validation_message(error, "params")) from None
    except RecursionError:  # the message was read on another stack, which had more room
        raise Fault(INVALID_PARAMS, "params: nested too deep") from None
    more = passthrough.unknown_fields(wish.params, _ELICIT_FIELDS)
    if asked.mode == "url":
        return replace(url_question(ElicitationUrl(asked.url, asked.message), key, to), more=more)
    return Question("", key, "form", asked.message, Raw(bytes(asked.schema)) or NOTHING, to, more=more)


def url_question(link: ElicitationUrl, key: str, to: str = "") -> Question:
    """The question whether somebody will visit a page."""
    return Question("", key, "url", link.message, Raw(msgspec.json.encode(link.url)), to)


def answer_result(asked: Question, answer: Answer) -> object:
    """The result that a server expects for an answer; raises Fault where only an error can say no."""
    if asked.kind in ("form", "url"):
        more = passthrough.fields_of(answer.more)
        if answer.action != "accept":
            return {**more, "action": answer.action if answer.action == "decline" else "cancel"}
        if asked.kind == "url":
            return {**more, "action": "accept"}
        return {**more, "action": "accept", "content": answer.content or Raw(b"{}")}
    if answer.action == "accept" and answer.content:
        given = bytes(answer.content)
        return {"roots": Raw(given)} if asked.kind == "roots" and given[:1] == b"[" else answer.content
    if asked.kind == "roots":
        raise Fault(METHOD_NOT_FOUND, "the caller names no roots")
    raise Fault(USER_REJECTED, "the request was rejected")


def unanswerable_fault(error: ToolError) -> Fault:
    """The error for a server's question that nobody could be asked."""
    return Fault(INTERNAL_ERROR, error.message)


def as_tool_error(fault: Fault, server: str) -> ToolError:
    """A JSON-RPC error of a server as a tool's error."""
    category = _CATEGORIES.get(fault.code, "internal")
    retryable = category in ("timeout", "unavailable")
    return ToolError(f"server {server}: {fault.message}", category, code=str(fault.code), retryable=retryable)


def is_for_2026(fault: Fault) -> bool:
    """Whether a server of the handshake era says that a request, or its result, is not of that era."""
    if fault.code == INVALID_PARAMS:
        return all(words in fault.message for words in _UNFIT_ROUND)
    return fault.code in REFUSED_IN_2025 or (fault.code == INTERNAL_ERROR and fault.message == _UNFIT_RESULT)


def reported_tool_error(outcome: ReceivedResult) -> ToolError | None:
    """The error of an upstream afoot, in its own words and category (E1); None if there is none."""
    error = outcome.meta.error if outcome.meta else None
    if error is None or not outcome.is_error:
        return None
    return ToolError(
        error.message or content_text(outcome.content) or error.category, error.category,
        code=error.code or None, retryable=error.retryable, retry_after=error.retry_after_s,
        clock=error.clock,
    )  # fmt: skip


def attached_partials(outcome: ReceivedResult) -> list[Raw]:
    """The partial results that an upstream afoot attached to an error, behind the text of the error (P11)."""
    if outcome.meta is None or outcome.meta.error is None or not outcome.meta.error.message:
        return []
    try:
        return msgspec.json.decode(outcome.content, type=list[Raw])[1:]
    except (msgspec.DecodeError, RecursionError):
        return []


def content_text(content: Raw) -> str:
    """All the text of a content list."""
    try:
        return "\n".join(
            item.text for item in msgspec.json.decode(content, type=list[_TextItem]) if item.text
        )
    except (msgspec.ValidationError, RecursionError):
        return ""


def _capabilities(extensions: Mapping[str, Any] | None, base: Raw = CAPABILITIES) -> object:
    """The capabilities that we declare, with these extensions and our own."""
    if not extensions:
        return base
    own: dict[str, Any] = json.decode(base)
    return {**own, "extensions": {**extensions, **own.get("extensions", {})}}


def _decoded(extensions: Raw) -> dict[str, Any]:
    return json.decode(extensions) if extensions else {}


def _argument_text(values: Any, path: tuple[str, ...]) -> str | None:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    if isinstance(values, bool):
        return "true" if values else "false"
    return str(values) if isinstance(values, str | int | float) else None
