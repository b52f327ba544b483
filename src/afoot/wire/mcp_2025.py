"""MCP of the handshake era, 2024-11-05 to 2025-11-25.

A client opens a session with `initialize`; then both sides may send requests.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from afoot.core.facts import Question
from afoot.core.trace import trace_from_meta
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, Id, read_params
from afoot.wire.resources import Lookup
from afoot.wire.results import (
    LEVELS,
    CallBudget,
    Capabilities,
    ClientInfo,
    IdempotencyKey,
    Notification,
    ParentCall,
    Response,
    ToolCall,
    empty_arguments,
    encode,
    question_params,
)

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = VERSIONS[-1]
MAX_INITIALIZE_BYTES = 64 * 1024  # of its params, which are kept as long as the session


class InitializeParams(Struct):
    """The params of `initialize`."""

    protocolVersion: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    clientInfo: ClientInfo = field(default_factory=ClientInfo)

    @property
    def version(self) -> str:
        """The version to use: the requested one if we know it, else our newest of this era."""
        return self.protocolVersion if self.protocolVersion in VERSIONS else LATEST


class RequestMeta2025(Struct):
    """The `_meta` of a request."""

    token: Id | UnsetType = field(name="progressToken", default=UNSET)
    budget: CallBudget = field(name="dev.afoot/budget", default_factory=CallBudget)
    parent: ParentCall | None = field(name="dev.afoot/parent", default=None)
    partial: bool = field(name="dev.afoot/partial", default=False)
    traceparent: object = None
    tracestate: object = None
    baggage: object = None
    key: IdempotencyKey = field(name="dev.afoot/idempotency", default="")


class TaskOptions(Struct):
    """The request that a call be a task. Its `ttl` is not used: the gateway says how long it keeps tasks."""

    ttl: Annotated[float, msgspec.Meta(ge=0)] | None = None


class CallParams2025(Struct):
    """The params of `tools/call`."""

    name: str
    arguments: Raw = Raw(b"{}")
    task: TaskOptions | None = None
    meta: RequestMeta2025 = field(name="_meta", default_factory=RequestMeta2025)


class ListParams2025(Struct):
    """The params of any list."""

    cursor: str | None = None
    meta: RequestMeta2025 = field(name="_meta", default_factory=RequestMeta2025)


class SetLevelParams(Struct):
    """The params of `logging/setLevel`."""

    level: str


class CancelledParams(Struct):
    """The params of `notifications/cancelled`."""

    requestId: Id | None = None
    reason: str = ""


class NestedRequest(Struct):
    """A request of ours to the client."""

    id: Id
    method: str
    params: object
    jsonrpc: str = "2.0"


_initialize_decoder = msgspec.json.Decoder(InitializeParams)
_call_decoder = msgspec.json.Decoder(CallParams2025)
_list_decoder = msgspec.json.Decoder(ListParams2025)
_level_decoder = msgspec.json.Decoder(SetLevelParams)
_cancelled_decoder = msgspec.json.Decoder(CancelledParams)


def read_initialize(message: Envelope) -> InitializeParams:
    """An `initialize`; raises Fault."""
    if len(message.params) > MAX_INITIALIZE_BYTES:
        raise Fault(INVALID_PARAMS, f"params: over {MAX_INITIALIZE_BYTES} bytes")
    return read_params(message, _initialize_decoder)


def read_call(message: Envelope, capabilities: Capabilities, level: str | None) -> ToolCall:
    """A `tools/call`; raises Fault."""
    asked = read_params(message, _call_decoder)
    arguments = asked.arguments
    if bytes(arguments)[:1] != b"{":
        arguments = empty_arguments(arguments)
    meta = asked.meta
    assert isinstance(message.id, int | str)
    return ToolCall(
        message.id, asked.name, arguments, meta.token, level, capabilities, meta.budget, meta.partial,
        parent=meta.parent, key=meta.key, task=asked.task is not None,
        trace=trace_from_meta(meta) if meta.traceparent or meta.baggage else None, params=message.params,
    )  # fmt: skip


def lookup_call(message: Envelope, lookup: Lookup, name: str, arguments: Raw, level: str | None) -> ToolCall:
    """A `resources/read` or `prompts/get` of our own function, as the call of that function; raises Fault."""
    meta = read_params(message, _list_decoder).meta
    return ToolCall(
        lookup.id, name, arguments, meta.token, level, lookup.capabilities, meta.budget, meta.partial,
        trace=trace_from_meta(meta) if meta.traceparent or meta.baggage else None, params=message.params,
        method=lookup.method,
    )  # fmt: skip


def read_list(message: Envelope) -> ListParams2025:
    """A request for a list; raises Fault for a cursor, because our lists have one page."""
    asked = read_params(message, _list_decoder)
    if asked.cursor is not None:
        raise Fault(INVALID_PARAMS, "params.cursor: unknown; these lists have one page")
    return asked


def read_level(message: Envelope) -> str:
    """A `logging/setLevel`; raises Fault."""
    level = read_params(message, _level_decoder).level
    if level not in LEVELS:
        raise Fault(INVALID_PARAMS, f"params.level: must be one of {', '.join(LEVELS)}")
    return level


def read_cancelled(message: Envelope) -> CancelledParams:
    """A `notifications/cancelled`; raises Fault."""
    return read_params(message, _cancelled_decoder)


def initialize_result(
    request: Id, hello: InitializeParams, info: Raw, instructions: str, capabilities: Mapping[str, object]
) -> bytes:
    """The response to `initialize`."""
    body: dict[str, object] = {
        "protocolVersion": hello.version,
        "capabilities": capabilities,
        "serverInfo": info,
    }
    if instructions:
        body["instructions"] = instructions
    return encode(Response(request, body))


def result_response(request: Id, **fields: object) -> bytes:
    """A response with these fields as its result."""
    return encode(Response(request, fields))


def question_request(request: Id, asked: Question) -> bytes:
    """The nested request that puts a question to the client."""
    return nested_request(request, *question_params(asked))


def nested_request(request: Id, method: str, body: object) -> bytes:
    """A request of ours to the client."""
    if isinstance(body, dict) and body.get("mode") == "form":
        body = {key: value for key, value in body.items() if key != "mode"}  # unknown before 2025-11-25
    elif isinstance(body, dict) and body.get("mode") == "url":
        body = {"elicitationId": str(request), **body}  # this era alone has it
    return encode(NestedRequest(request, method, body))


def cancel_notification(request: Id, reason: str) -> bytes:
    """The notification that a nested request needs no answer any more."""
    return encode(Notification("notifications/cancelled", {"requestId": request, "reason": reason}))


def changed_notification(kind: str, uri: str | None = None) -> bytes:
    """The notification that a list (tools, prompts, resources) or one resource has changed."""
    if uri is not None:
        return encode(Notification("notifications/resources/updated", {"uri": uri}))
    return encode(Notification(f"notifications/{kind}/list_changed", {}))
