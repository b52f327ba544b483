"""MCP of the handshake era, 2024-11-05 to 2025-11-25: a session is opened, then both sides may ask."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from afoot.core.facts import Question
from afoot.core.trace import carried
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, Id, params
from afoot.wire.messages import (
    LEVELS,
    Budget,
    Capabilities,
    Client,
    Key,
    Notification,
    Parent,
    Response,
    Wanted,
    encode,
    no_arguments,
    question,
)

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = VERSIONS[-1]


class Hello(Struct):
    """The params of `initialize`."""

    protocolVersion: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    clientInfo: Client = field(default_factory=Client)

    @property
    def version(self) -> str:
        """The version to speak: the asked one if we know it, else our newest of this era."""
        return self.protocolVersion if self.protocolVersion in VERSIONS else LATEST


class Meta(Struct):
    """The `_meta` of a request."""

    token: Id | UnsetType = field(name="progressToken", default=UNSET)
    budget: Budget = field(name="dev.afoot/budget", default_factory=Budget)
    parent: Parent | None = field(name="dev.afoot/parent", default=None)
    partial: bool = field(name="dev.afoot/partial", default=False)
    traceparent: object = None
    tracestate: object = None
    baggage: object = None
    key: Key = field(name="dev.afoot/idempotency", default="")


class TaskParams(Struct):
    """That a call is to be a task; how long that is kept is told, and not asked."""

    ttl: Annotated[float, msgspec.Meta(ge=0)] | None = None


class CallParams(Struct):
    """The params of `tools/call`."""

    name: str
    arguments: Raw = Raw(b"{}")
    task: TaskParams | None = None
    meta: Meta = field(name="_meta", default_factory=Meta)


class ListParams(Struct):
    """The params of any list."""

    cursor: str | None = None
    meta: Meta = field(name="_meta", default_factory=Meta)


class LevelParams(Struct):
    """The params of `logging/setLevel`."""

    level: str


class Cancelled(Struct):
    """The params of `notifications/cancelled`."""

    requestId: Id | None = None
    reason: str = ""


_hello = msgspec.json.Decoder(Hello)
_call = msgspec.json.Decoder(CallParams)
_list = msgspec.json.Decoder(ListParams)
_level = msgspec.json.Decoder(LevelParams)
_cancelled = msgspec.json.Decoder(Cancelled)


def read_hello(message: Envelope) -> Hello:
    """An `initialize`; raises Fault."""
    return params(message, _hello)


def read_call(message: Envelope, capabilities: Capabilities, level: str | None) -> Wanted:
    """A `tools/call`; raises Fault."""
    asked = params(message, _call)
    arguments = asked.arguments
    if bytes(arguments)[:1] != b"{":
        arguments = no_arguments(arguments)
    meta = asked.meta
    assert isinstance(message.id, int | str)
    return Wanted(
        message.id, asked.name, arguments, meta.token, level, capabilities, meta.budget, meta.partial,
        parent=meta.parent, key=meta.key, task=asked.task is not None,
        trace=carried(meta) if meta.traceparent or meta.baggage else None, params=message.params,
    )  # fmt: skip


def read_list(message: Envelope) -> ListParams:
    """A request for a list; raises Fault for a cursor, as our lists have one page."""
    asked = params(message, _list)
    if asked.cursor is not None:
        raise Fault(INVALID_PARAMS, "params.cursor: unknown; these lists have one page")
    return asked


def read_level(message: Envelope) -> str:
    """A `logging/setLevel`; raises Fault."""
    level = params(message, _level).level
    if level not in LEVELS:
        raise Fault(INVALID_PARAMS, f"params.level: must be one of {', '.join(LEVELS)}")
    return level


def read_cancelled(message: Envelope) -> Cancelled:
    """A `notifications/cancelled`; raises Fault."""
    return params(message, _cancelled)


def welcome(
    request: Id, hello: Hello, info: Raw, instructions: str, capabilities: Mapping[str, object]
) -> bytes:
    """The answer to `initialize`."""
    body: dict[str, object] = {
        "protocolVersion": hello.version,
        "capabilities": capabilities,
        "serverInfo": info,
    }
    if instructions:
        body["instructions"] = instructions
    return encode(Response(request, body))


def answered(request: Id, **fields: object) -> bytes:
    """A result with these fields."""
    return encode(Response(request, fields))


class Request(Struct):
    """A request of ours to the client."""

    id: Id
    method: str
    params: object
    jsonrpc: str = "2.0"


def ask(request: Id, asked: Question) -> bytes:
    """The nested request that puts a question to the client."""
    return nested(request, *question(asked))


def nested(request: Id, method: str, body: object) -> bytes:
    """A request of ours to the client."""
    if isinstance(body, dict) and body.get("mode") == "form":
        body = {key: value for key, value in body.items() if key != "mode"}  # unknown before 2025-11-25
    elif isinstance(body, dict) and body.get("mode") == "url":
        body = {"elicitationId": str(request), **body}  # this era alone has it
    return encode(Request(request, method, body))


def withdrawn(request: Id, reason: str) -> bytes:
    """A nested request that needs no answer any more."""
    return encode(Notification("notifications/cancelled", {"requestId": request, "reason": reason}))


def changed(kind: str, uri: str | None = None) -> bytes:
    """A list is another one now (tools, prompts, resources), or a resource of it is."""
    if uri is not None:
        return encode(Notification("notifications/resources/updated", {"uri": uri}))
    return encode(Notification(f"notifications/{kind}/list_changed", {}))
