"""MCP 2026-07-28: no handshake and no session; every request names its client and what that client can do.

It also checks the arguments that `Mcp-Param-*` headers repeat (`x-mcp-header` in a tool's schema).
"""

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field, json

from afoot.core.facts import Question
from afoot.core.trace import trace_from_meta
from afoot.wire import jsonrpc
from afoot.wire.jsonrpc import (
    ENVELOPE_DECODER,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Envelope,
    Fault,
    Id,
    read_params,
)
from afoot.wire.resources import Lookup
from afoot.wire.results import (
    TASKS_EXTENSION,
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

VERSION = "2026-07-28"
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

# How long a client may use a list without asking again. Lists change when a tool file is reloaded.
CACHE_FIELDS = {"ttlMs": 60_000, "cacheScope": "public"}

NAME_FIELDS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
NAME_FIELDS |= dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")

UNNAMED_CLIENT = ClientInfo()
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

_HEADER_TYPES = ("string", "integer", "boolean")
_VALUE_KEYWORDS = ("const", "default", "enum", "examples")  # hold values, not schemas
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110


class RequestMeta2026(Struct):
    """The `_meta` of a request."""

    token: Id | UnsetType = field(name="progressToken", default=UNSET)
    version: str | UnsetType = field(name="io.modelcontextprotocol/protocolVersion", default=UNSET)
    capabilities: Capabilities | UnsetType = field(
        name="io.modelcontextprotocol/clientCapabilities", default=UNSET
    )
    level: str | None = field(name="io.modelcontextprotocol/logLevel", default=None)
    client: ClientInfo | None = field(name="io.modelcontextprotocol/clientInfo", default=None)
    budget: CallBudget = field(name="dev.afoot/budget", default_factory=CallBudget)
    parent: ParentCall | None = field(name="dev.afoot/parent", default=None)
    partial: bool = field(name="dev.afoot/partial", default=False)
    traceparent: object = None  # of any type: a broken trace breaks no call
    tracestate: object = None
    baggage: object = None
    key: IdempotencyKey = field(name="dev.afoot/idempotency", default="")


class PlainParams(Struct):
    """The params of a request other than `tools/call`: only `_meta` and the name that it is about."""

    meta: RequestMeta2026 | UnsetType = field(name="_meta", default=UNSET)
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    taskId: str | UnsetType = UNSET
    cursor: str | None = None


class CallParams2026(Struct):
    """The params of `tools/call`."""

    name: str
    meta: RequestMeta2026 | UnsetType = field(name="_meta", default=UNSET)
    arguments: Raw = Raw(b"{}")
    inputResponses: dict[str, Raw] = {}
    requestState: str | None = None


class ListenFilter(Struct, omit_defaults=True):
    """The notifications that a listener asks for; in the acknowledgement, those that it gets."""

    toolsListChanged: bool = False
    promptsListChanged: bool = False
    resourcesListChanged: bool = False
    resourceSubscriptions: list[str] = []
    taskIds: list[str] = []


class ListenParams(Struct):
    """The params of `subscriptions/listen`."""

    notifications: ListenFilter
    meta: RequestMeta2026 | UnsetType = field(name="_meta", default=UNSET)


class ParamHeader(Struct, frozen=True):
    """One argument that an `Mcp-Param-*` header repeats."""

    path: tuple[str, ...]
    header: str
    kind: str


class _MetaOnly(Struct):
    meta: dict[str, Raw] = field(name="_meta", default_factory=dict)


PLAIN_DECODER = msgspec.json.Decoder(PlainParams)
_call_decoder = msgspec.json.Decoder(CallParams2026)
_listen_decoder = msgspec.json.Decoder(ListenParams)
_meta_only_decoder = msgspec.json.Decoder(_MetaOnly)


def read(body: bytes, headers: Mapping[str, str] | None) -> ToolCall | Envelope:
    """The message in these bytes: a ToolCall ready to be opened, or any other message; raises Fault."""
    # Every call of a tool passes here. A message that is right is decoded once, and its parts are compared in
    # place; only a wrong one goes through the slower functions, which find out what is wrong with it.
    try:
        if not body.isascii():
            str(body, "utf-8")  # the decoder does not check what it leaves undecoded
        message = ENVELOPE_DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = jsonrpc.read(body)  # raises the Fault that says what is wrong
    if message.method != "tools/call" or message.jsonrpc != "2.0" or not isinstance(message.id, int | str):
        return jsonrpc.read(body)
    try:
        return read_call(message, headers)
    except Fault as fault:
        fault.id = message.id
        raise


def read_call(message: Envelope, headers: Mapping[str, str] | None) -> ToolCall:
    """A `tools/call`; raises Fault. `headers` is None on a transport without them."""
    try:
        asked = _call_decoder.decode(message.params or b"{}")
    except (msgspec.ValidationError, RecursionError):
        asked = read_params(message, _call_decoder)  # raises the Fault that names the field
    meta = asked.meta
    request = message.id
    arguments = asked.arguments
    if (
        isinstance(meta, UnsetType)
        or meta.version != VERSION
        or meta.capabilities is UNSET
        or headers is None
        or headers.get("mcp-method") != "tools/call"
        or headers.get("mcp-protocol-version") != VERSION
        or headers.get("mcp-name") != asked.name
    ):
        meta = check_envelope(message, meta, headers, asked.name)  # raises the Fault of the first wrong part
    if bytes(arguments)[:1] != b"{":
        arguments = empty_arguments(arguments)
    assert isinstance(request, int | str) and not isinstance(meta.capabilities, UnsetType)
    client = meta.client or UNNAMED_CLIENT
    return ToolCall(
        request, asked.name, arguments, meta.token, meta.level, meta.capabilities, meta.budget, meta.partial,
        asked.inputResponses, asked.requestState, client.name, client.version_text, meta.parent, meta.key,
        trace=trace_from_meta(meta) if meta.traceparent or meta.baggage else None, params=message.params,
    )  # fmt: skip


def lookup_call(message: Envelope, lookup: Lookup, name: str, arguments: Raw) -> ToolCall:
    """A checked `resources/read` or `prompts/get` of our own function, as the call of that function."""
    meta = read_params(message, PLAIN_DECODER).meta
    assert not isinstance(meta, UnsetType)
    return ToolCall(
        lookup.id, name, arguments, meta.token, meta.level, lookup.capabilities, meta.budget, meta.partial,
        {key: Raw(encode(given)) for key, given in lookup.answers.items()}, lookup.state,
        "" if meta.client is None else meta.client.name,
        client_version="" if meta.client is None else meta.client.version_text,
        trace=trace_from_meta(meta) if meta.traceparent or meta.baggage else None, params=message.params,
        method=lookup.method,
    )  # fmt: skip


def read_plain(message: Envelope, headers: Mapping[str, str] | None) -> PlainParams:
    """Any other request; raises Fault."""
    asked = read_params(message, PLAIN_DECODER)
    key = NAME_FIELDS.get(str(message.method))
    check_envelope(message, asked.meta, headers, UNSET if key is None else getattr(asked, key))
    return asked


def read_listen(message: Envelope, headers: Mapping[str, str] | None) -> ListenFilter:
    """A `subscriptions/listen`; raises Fault."""
    asked = read_params(message, _listen_decoder)
    can = check_envelope(message, asked.meta, headers, UNSET).capabilities
    if asked.notifications.taskIds and (isinstance(can, UnsetType) or not can.tasks):
        raise missing_capability({"extensions": {TASKS_EXTENSION: {}}})
    return asked.notifications


def is_modern(given: bytes) -> bool:
    """Whether these params name their protocol version, as every request of this era does."""
    if _VERSION_KEY.encode() not in given:
        return False
    try:
        return _VERSION_KEY in _meta_only_decoder.decode(given).meta
    except (msgspec.ValidationError, RecursionError):
        return False


def check_envelope(
    message: Envelope, meta: RequestMeta2026 | UnsetType, headers: Mapping[str, str] | None, name: object
) -> RequestMeta2026:
    """Check `_meta` and headers one after the other; raises the Fault of the first check that fails."""
    missing = "params._meta: must hold io.modelcontextprotocol/"
    if isinstance(meta, UnsetType):
        raise Fault(INVALID_PARAMS, f"{missing}protocolVersion and clientCapabilities")
    if meta.version is UNSET:
        raise Fault(INVALID_PARAMS, f"{missing}protocolVersion")
    if meta.capabilities is UNSET:
        raise Fault(INVALID_PARAMS, f"{missing}clientCapabilities")
    if headers is not None:
        _check_header("mcp-protocol-version", _trimmed(headers.get("mcp-protocol-version")), meta.version)
        _check_header("mcp-method", _trimmed(headers.get("mcp-method")), message.method)
        if name is not UNSET:
            _check_header("mcp-name", decode_header(headers.get("mcp-name")), name)
    if meta.version != VERSION:
        raise unsupported_version(meta.version)
    return meta


def unsupported_version(version: str) -> Fault:
    """The error for a protocol version that we do not speak this way."""
    return Fault(
        UNSUPPORTED_VERSION,
        "unsupported protocol version",
        data={"supported": [VERSION], "requested": version},
    )


def unknown_method(method: str) -> Fault:
    """The error for a method that we do not have."""
    return Fault(METHOD_NOT_FOUND, f"unknown method {method!r}", status=404)


def missing_capability(requires: Mapping[str, object]) -> Fault:
    """The error for a caller that lacks a capability which the tool declares that it needs."""
    names = ", ".join(sorted(requires))
    return Fault(
        MISSING_CAPABILITY,
        f"this tool needs a client that offers: {names}",
        data={"requiredCapabilities": requires},
    )


def complete_result(request: Id, info: Raw, **fields: object) -> bytes:
    """A response with a complete result of these fields."""
    meta = {"io.modelcontextprotocol/serverInfo": info}
    return encode(Response(request, {"resultType": "complete", **fields, "_meta": meta}))


def discover_result(request: Id, info: Raw, instructions: str, capabilities: Mapping[str, object]) -> bytes:
    """The response to `server/discover`."""
    extensions = capabilities.get("extensions")
    behind = extensions if isinstance(extensions, dict) else {}
    return complete_result(
        request,
        info,
        supportedVersions=[VERSION],
        capabilities={**capabilities, "extensions": {**behind, TASKS_EXTENSION: {}}},
        instructions=instructions,
        **CACHE_FIELDS,
    )


def input_required_result(request: Id, info: Raw, asked: Sequence[Question], state: str) -> bytes:
    """The response that asks the client for input before it retries.

    Without questions, the client only retries.
    """
    body: dict[str, object] = {"resultType": "input_required", "requestState": state}
    if asked:
        body["inputRequests"] = {
            one.key: dict(zip(("method", "params"), question_params(one), strict=True)) for one in asked
        }
    body["_meta"] = {"io.modelcontextprotocol/serverInfo": info}
    return encode(Response(request, body))


def listen_notification(method: str, subscription: Id, **fields: object) -> bytes:
    """A notification on a listen stream."""
    meta = {"io.modelcontextprotocol/subscriptionId": subscription}
    return encode(Notification(method, {**fields, "_meta": meta}))


def changed_notification(kind: str, uri: str | None, subscription: Id) -> bytes:
    """The notification on a listen stream that a list (tools, prompts, resources) or a resource changed."""
    if uri is not None:
        return listen_notification("notifications/resources/updated", subscription, uri=uri)
    return listen_notification(f"notifications/{kind}/list_changed", subscription)


def listen_result(request: Id, info: Raw) -> bytes:
    """The response that ends a listen stream which we close."""
    meta = {"io.modelcontextprotocol/serverInfo": info, "io.modelcontextprotocol/subscriptionId": request}
    return encode(Response(request, {"resultType": "complete", "_meta": meta}))


def param_headers(definition: bytes) -> list[ParamHeader]:
    """The headers that this tool's input schema asks for; none if any of its annotations is invalid."""
    if b"x-mcp-header" not in definition:
        return []
    schema = json.decode(definition).get("inputSchema", {})
    found = list(_find_param_headers(schema, ()))
    names = {mirror.header.lower() for mirror in found}
    is_valid = len(names) == len(found) == _count_annotations(schema)
    return found if is_valid else []


def has_invalid_param_headers(definition: bytes | Raw) -> bool:
    """Whether an annotation of this tool is invalid; a client may not call it then."""
    schema = json.decode(definition).get("inputSchema", {})
    found = list(_find_param_headers(schema, ()))
    return not len({mirror.header.lower() for mirror in found}) == len(found) == _count_annotations(schema)


def check_param_headers(wanted: list[ParamHeader], arguments: bytes, headers: Mapping[str, str]) -> None:
    """Check that header and argument are both there or both absent, and agree; raises Fault."""
    try:
        values = json.decode(arguments)
    except RecursionError:
        raise Fault(INVALID_PARAMS, "params.arguments: nested too deep") from None
    except msgspec.DecodeError as error:  # JSON all the same: a number that is out of range
        raise Fault(INVALID_PARAMS, f"params.arguments: cannot be read: {error}") from None
    for mirror in wanted:
        name = f"mcp-param-{mirror.header}"
        _check_param_header(name, headers.get(name.lower()), _argument_at(values, mirror.path), mirror)


def encode_header(text: str) -> str:
    """A header's value: the text, in base64 unless it is printable ASCII without surrounding white space."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode()}?="


def decode_header(value: str | None) -> str | None:
    """A header's value, decoded if it is wrapped in base64; None if the wrapping is broken."""
    value = _trimmed(value)
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    payload = value[9:-2]
    try:
        raw = b64decode(payload, validate=True)
        return raw.decode() if b64encode(raw).decode() == payload else None
    except (Error, UnicodeDecodeError):
        return None


def _check_header(header: str, sent: str | None, body: object) -> None:
    if sent is None:
        raise Fault(HEADER_MISMATCH, f"header {header}: missing")
    if sent != body:
        raise Fault(HEADER_MISMATCH, f"header {header}: does not match the body")


def _trimmed(value: str | None) -> str | None:
    """The value without surrounding white space (RFC 9110), which some servers leave on."""
    return None if value is None else value.strip(" \t")


def _find_param_headers(schema: Any, path: tuple[str, ...]) -> Iterator[ParamHeader]:
    if not isinstance(schema, dict):
        return
    header, kind = schema.get("x-mcp-header"), schema.get("type")
    if path and isinstance(header, str) and _TOKEN.fullmatch(header) and kind in _HEADER_TYPES:
        yield ParamHeader(path, header, str(kind))
    for name, inner in _properties(schema).items():
        yield from _find_param_headers(inner, (*path, name))


def _count_annotations(schema: Any) -> int:
    """Count all annotations, also where none is allowed: in items, alternatives, definitions."""
    if isinstance(schema, list):
        return sum(map(_count_annotations, schema))
    if not isinstance(schema, dict):
        return 0
    inner = [value for key, value in schema.items() if key not in ("properties", *_VALUE_KEYWORDS)]
    inner += _properties(schema).values()
    return ("x-mcp-header" in schema) + sum(map(_count_annotations, inner))


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _check_param_header(name: str, sent: str | None, value: object, mirror: ParamHeader) -> None:
    where = "arguments." + ".".join(mirror.path)
    if value is None or not isinstance(value, str | int | float):
        if sent is not None:
            raise Fault(HEADER_MISMATCH, f"header {name}: sent, but {where} is not")
        return
    if sent is None:
        raise Fault(HEADER_MISMATCH, f"header {name}: missing, but {where} is given")
    plain = decode_header(sent)
    if plain is None or not _values_agree(mirror.kind, value, plain):
        raise Fault(HEADER_MISMATCH, f"header {name}: does not match {where}")


def _argument_at(values: Any, path: tuple[str, ...]) -> object:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    return values


def _values_agree(kind: str, value: str | int | float, sent: str) -> bool:
    if isinstance(value, bool):
        return sent == ("true" if value else "false")
    if kind == "integer" and not isinstance(value, str):
        whole, _, fraction = sent.partition(".")
        digits = whole.isascii() and whole.removeprefix("-").isdigit() and len(whole) < 400
        return digits and not fraction.strip("0") and int(whole) == value
    return sent == str(value)
