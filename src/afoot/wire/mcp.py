"""MCP 2026-07-28: no handshake, no session; every request says who asks and what it can do."""

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from afoot.core.facts import Question
from afoot.core.trace import carried
from afoot.wire import jsonrpc
from afoot.wire.jsonrpc import ENVELOPE, INVALID_PARAMS, METHOD_NOT_FOUND, Envelope, Fault, Id, params
from afoot.wire.messages import (
    TASKS,
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

VERSION = "2026-07-28"
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

# Lists change when a tool file is reloaded; a minute is how long a client may not ask again.
CACHE = {"ttlMs": 60_000, "cacheScope": "public"}


class Meta(Struct):
    """The `_meta` of a request."""

    token: Id | UnsetType = field(name="progressToken", default=UNSET)
    version: str | UnsetType = field(name="io.modelcontextprotocol/protocolVersion", default=UNSET)
    capabilities: Capabilities | UnsetType = field(
        name="io.modelcontextprotocol/clientCapabilities", default=UNSET
    )
    level: str | None = field(name="io.modelcontextprotocol/logLevel", default=None)
    client: Client | None = field(name="io.modelcontextprotocol/clientInfo", default=None)
    budget: Budget = field(name="dev.afoot/budget", default_factory=Budget)
    parent: Parent | None = field(name="dev.afoot/parent", default=None)
    partial: bool = field(name="dev.afoot/partial", default=False)
    traceparent: object = None  # whatever stands there: a broken trace breaks no call
    tracestate: object = None
    baggage: object = None
    key: Key = field(name="dev.afoot/idempotency", default="")


class Plain(Struct):
    """Params of which only the `_meta` and maybe a name count here."""

    meta: Meta | UnsetType = field(name="_meta", default=UNSET)
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    taskId: str | UnsetType = UNSET
    cursor: str | None = None


class CallParams(Struct):
    """The params of `tools/call`."""

    name: str
    meta: Meta | UnsetType = field(name="_meta", default=UNSET)
    arguments: Raw = Raw(b"{}")
    inputResponses: dict[str, Raw] = {}
    requestState: str | None = None


class Filter(Struct, omit_defaults=True):
    """Which notices a listener wants; in the acknowledgement, those that it gets."""

    toolsListChanged: bool = False
    promptsListChanged: bool = False
    resourcesListChanged: bool = False
    resourceSubscriptions: list[str] = []
    taskIds: list[str] = []


class ListenParams(Struct):
    """The params of `subscriptions/listen`."""

    notifications: Filter
    meta: Meta | UnsetType = field(name="_meta", default=UNSET)


class _Enveloped(Struct):
    meta: dict[str, Raw] = field(name="_meta", default_factory=dict)


_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_enveloped = msgspec.json.Decoder(_Enveloped)
PLAIN = msgspec.json.Decoder(Plain)
_call = msgspec.json.Decoder(CallParams)
_listen = msgspec.json.Decoder(ListenParams)

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
NAMED |= dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")


def read(body: bytes, headers: Mapping[str, str] | None) -> Wanted | Envelope:
    """The message in these bytes: a `tools/call` ready to be opened, or anything else; raises Fault."""
    try:
        if not body.isascii():
            str(body, "utf-8")  # what is not looked into is not checked by the decoder
        message = ENVELOPE.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = jsonrpc.read(body)  # it says what is wrong
    if message.method != "tools/call" or message.jsonrpc != "2.0" or not isinstance(message.id, int | str):
        return jsonrpc.read(body)
    try:
        return read_call(message, headers)
    except Fault as fault:
        fault.id = message.id
        raise


def read_call(message: Envelope, headers: Mapping[str, str] | None) -> Wanted:
    """A `tools/call`; raises Fault. Headers None: a transport without them."""
    try:
        asked = _call.decode(message.params or b"{}")
    except (msgspec.ValidationError, RecursionError):
        asked = params(message, _call)  # it says which field is wrong
    meta, request, arguments = asked.meta, message.id, asked.arguments
    if (
        isinstance(meta, UnsetType)
        or meta.version != VERSION
        or meta.capabilities is UNSET
        or headers is None
        or headers.get("mcp-method") != "tools/call"
        or headers.get("mcp-protocol-version") != VERSION
        or headers.get("mcp-name") != asked.name
    ):
        meta = check(message, meta, headers, asked.name)  # rung by rung: the first that fails is told
    if bytes(arguments)[:1] != b"{":
        arguments = no_arguments(arguments)
    assert isinstance(request, int | str) and not isinstance(meta.capabilities, UnsetType)
    return Wanted(
        request, asked.name, arguments, meta.token, meta.level, meta.capabilities, meta.budget, meta.partial,
        asked.inputResponses, asked.requestState, "" if meta.client is None else meta.client.name,
        meta.parent, meta.key,
        trace=carried(meta) if meta.traceparent or meta.baggage else None, params=message.params,
    )  # fmt: skip


def read_plain(message: Envelope, headers: Mapping[str, str] | None) -> Plain:
    """Any other request; raises Fault."""
    asked = params(message, PLAIN)
    key = NAMED.get(str(message.method))
    check(message, asked.meta, headers, UNSET if key is None else getattr(asked, key))
    return asked


def read_listen(message: Envelope, headers: Mapping[str, str] | None) -> Filter:
    """A `subscriptions/listen`; raises Fault."""
    asked = params(message, _listen)
    can = check(message, asked.meta, headers, UNSET).capabilities
    if asked.notifications.taskIds and (isinstance(can, UnsetType) or not can.tasks):
        raise missing_capability({"extensions": {TASKS: {}}})
    return asked.notifications


def is_modern(given: bytes) -> bool:
    """Whether these params say their version, as every request of this era does."""
    if _VERSION_KEY.encode() not in given:
        return False
    try:
        return _VERSION_KEY in _enveloped.decode(given).meta
    except (msgspec.ValidationError, RecursionError):
        return False


def check(message: Envelope, meta: Meta | UnsetType, headers: Mapping[str, str] | None, name: object) -> Meta:
    """The request's envelope, rung by rung; the first that fails is told."""
    missing = "params._meta: must hold io.modelcontextprotocol/"
    if isinstance(meta, UnsetType):
        raise Fault(INVALID_PARAMS, f"{missing}protocolVersion and clientCapabilities")
    if meta.version is UNSET:
        raise Fault(INVALID_PARAMS, f"{missing}protocolVersion")
    if meta.capabilities is UNSET:
        raise Fault(INVALID_PARAMS, f"{missing}clientCapabilities")
    if headers is not None:
        _agree("mcp-protocol-version", _trimmed(headers.get("mcp-protocol-version")), meta.version)
        _agree("mcp-method", _trimmed(headers.get("mcp-method")), message.method)
        if name is not UNSET:
            _agree("mcp-name", plain_header(headers.get("mcp-name")), name)
    if meta.version != VERSION:
        raise unsupported(meta.version)
    return meta


def unsupported(version: str) -> Fault:
    """The answer to a version that we do not speak this way."""
    return Fault(
        UNSUPPORTED_VERSION,
        "unsupported protocol version",
        data={"supported": [VERSION], "requested": version},
    )


def unknown_method(method: str) -> Fault:
    """The answer to a method that we do not have."""
    return Fault(METHOD_NOT_FOUND, f"unknown method {method!r}", status=404)


def missing_capability(requires: Mapping[str, object]) -> Fault:
    """The answer to a caller that lacks what the tool declared it needs."""
    names = ", ".join(sorted(requires))
    return Fault(
        MISSING_CAPABILITY,
        f"this tool needs a client that offers: {names}",
        data={"requiredCapabilities": requires},
    )


def _agree(header: str, sent: str | None, body: object) -> None:
    if sent is None:
        raise Fault(HEADER_MISMATCH, f"header {header}: missing")
    if sent != body:
        raise Fault(HEADER_MISMATCH, f"header {header}: does not match the body")


def _trimmed(value: str | None) -> str | None:
    """Without white space at the ends: no part of it (RFC 9110), though not every server takes it off."""
    return None if value is None else value.strip(" \t")


def plain_header(value: str | None) -> str | None:
    """A header's value, its base64 wrapping taken off; a broken wrapping matches nothing."""
    value = _trimmed(value)
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    payload = value[9:-2]
    try:
        raw = b64decode(payload, validate=True)
        return raw.decode() if b64encode(raw).decode() == payload else None
    except (Error, UnicodeDecodeError):
        return None


def complete(request: Id, info: Raw, **fields: object) -> bytes:
    """A finished result with these fields."""
    meta = {"io.modelcontextprotocol/serverInfo": info}
    return encode(Response(request, {"resultType": "complete", **fields, "_meta": meta}))


def discovered(request: Id, info: Raw, instructions: str, capabilities: Mapping[str, object]) -> bytes:
    """The answer to `server/discover`."""
    return complete(
        request,
        info,
        supportedVersions=[VERSION],
        capabilities={**capabilities, "extensions": {TASKS: {}}},
        instructions=instructions,
        **CACHE,
    )


def input_required(request: Id, info: Raw, asked: Sequence[Question], state: str) -> bytes:
    """A round: what the client is to find out before it asks again; with no questions, it only asks again."""
    body: dict[str, object] = {"resultType": "input_required", "requestState": state}
    if asked:
        body["inputRequests"] = {
            one.key: dict(zip(("method", "params"), question(one), strict=True)) for one in asked
        }
    body["_meta"] = {"io.modelcontextprotocol/serverInfo": info}
    return encode(Response(request, body))


def notice(method: str, subscription: Id, **fields: object) -> bytes:
    """A notification on a listen stream."""
    meta = {"io.modelcontextprotocol/subscriptionId": subscription}
    return encode(Notification(method, {**fields, "_meta": meta}))


def changed(kind: str, uri: str | None, subscription: Id) -> bytes:
    """On a listen stream: a list is another one now (tools, prompts, resources), or a resource is."""
    if uri is not None:
        return notice("notifications/resources/updated", subscription, uri=uri)
    return notice(f"notifications/{kind}/list_changed", subscription)


def listen_over(request: Id, info: Raw) -> bytes:
    """The end of a listen stream that we close."""
    meta = {"io.modelcontextprotocol/serverInfo": info, "io.modelcontextprotocol/subscriptionId": request}
    return encode(Response(request, {"resultType": "complete", "_meta": meta}))
