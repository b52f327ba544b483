"""Prompts, resources and completions of servers, as they pass through the gateway in both eras.

`Lookup` is one request for them. `matches_template` says whether a URI can come from a URI template.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw, Struct, field

from afoot.core.call import Call
from afoot.core.fact_size import result_bytes
from afoot.core.facts import Failure, Finished, Result
from afoot.core.large_json import encode_sized
from afoot.errors import UnknownName
from afoot.wire import sealed_state
from afoot.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Envelope,
    Fault,
    Id,
    read_params,
)
from afoot.wire.passthrough import CAPABILITIES_KEY, PROTOCOL_PREFIX, is_forwarded
from afoot.wire.results import (
    Capabilities,
    Response,
    ResultMeta,
    ToolCall,
    encode,
    failure_meta,
    failure_text,
)

RESOURCE_NOT_FOUND = -32002  # before 2026-07-28
MAX_EXPRESSIONS = 50  # of a template; 4,000 of them took 2 s for one URI
LOOKUPS = ("prompts/get", "resources/read", "completion/complete")
_ROUND_KEYS = ("_meta", "inputResponses", "requestState")
_MODERN_KEYS = ("resultType", "ttlMs", "cacheScope")
_READ_CACHE: Mapping[str, object] = {"ttlMs": 0, "cacheScope": "private"}

# HTTP statuses by error code, as 2026-07-28 has them; any other error is answered with 200.
_HTTP_STATUS = {-32700: 400, -32600: 400, INVALID_PARAMS: 400, -32021: 400, METHOD_NOT_FOUND: 404}
_HOP_ERRORS = (-32020, -32022)  # errors about our own request to the server, not about the caller's
_QUESTION_KINDS = {"sampling/createMessage": "sample", "roots/list": "roots"}
_NEEDED_CAPABILITIES: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "form": {"elicitation": {"form": {}}},
    "url": {"elicitation": {"url": {}}},
    "sample": {"sampling": {}},
    "roots": {"roots": {}},
}

JsonObject = dict[str, object]


class Lookup(Struct):
    """A `prompts/get`, `resources/read` or `completion/complete`, in whichever era it came."""

    id: Id
    method: str
    params: JsonObject  # as they came, without the keys that belong to this hop or this round
    subject: str  # the name or the URI that it is about
    caller: str
    capabilities: Capabilities
    meta: JsonObject = {}
    answers: JsonObject = {}
    state: str | None = None

    def digest(self) -> str:
        """The digest to which the state of a round is bound."""
        return sealed_state.request_digest(self.method, encode(self.params))

    def server_params(self, subject: str, answers: JsonObject, state: str | None) -> JsonObject:
        """The params for a server: with the name that it knows, and the answers and state of its round."""
        found: JsonObject = {**self.params}
        if self.method == "prompts/get":
            found["name"] = subject
        elif isinstance(ref := found.get("ref"), dict) and "name" in ref:
            found["ref"] = {**ref, "name": subject}
        if answers:
            found["inputResponses"] = answers
        if state is not None:
            found["requestState"] = state
        meta = self.meta
        if self.capabilities.extensions and (extensions := self.capabilities.passed_extensions):
            meta = {**meta, CAPABILITIES_KEY: {"extensions": extensions}}
        return {**found, "_meta": meta} if meta else found


class _Ref(Struct, tag_field="type"):
    pass


class _PromptRef(_Ref, tag="ref/prompt"):
    name: str


class _ResourceRef(_Ref, tag="ref/resource"):
    uri: str


class _Argument(Struct):
    name: str
    value: str


class _RoundParams(Struct):
    meta: JsonObject = field(name="_meta", default_factory=dict)
    inputResponses: JsonObject = {}
    requestState: str | None = None


class _GetPromptParams(_RoundParams, kw_only=True):
    name: str
    arguments: JsonObject | None = None


class _ReadResourceParams(_RoundParams, kw_only=True):
    uri: str


class _CompleteParams(_RoundParams, kw_only=True):
    ref: _PromptRef | _ResourceRef
    argument: _Argument


class _UriParams(Struct):
    uri: str


class _Embedded(Struct):
    resource: Raw


_get_decoder = msgspec.json.Decoder(_GetPromptParams)
_read_decoder = msgspec.json.Decoder(_ReadResourceParams)
_complete_decoder = msgspec.json.Decoder(_CompleteParams)
_uri_decoder = msgspec.json.Decoder(_UriParams)
_object_decoder = msgspec.json.Decoder(dict[str, object])
_raw_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_embedded_decoder = msgspec.json.Decoder(list[_Embedded])


def read_lookup(message: Envelope, caller: str, capabilities: Capabilities) -> Lookup:
    """One of LOOKUPS; raises Fault naming the field. Keys of a round count only on 2026-07-28."""
    request, method = message.id, str(message.method)
    assert isinstance(request, int | str)
    asked, subject = _read_round(message, method)
    sent = {
        key: value for key, value in read_params(message, _object_decoder).items() if key not in _ROUND_KEYS
    }
    meta = {key: value for key, value in asked.meta.items() if is_forwarded(key)}
    return Lookup(
        request, method, sent, subject, caller, capabilities, meta, asked.inputResponses, asked.requestState
    )


def read_uri(message: Envelope) -> str:
    """The resource to subscribe to, or to unsubscribe from; raises Fault."""
    return read_params(message, _uri_decoder).uri


def server_capabilities(
    *, subscribe: bool, completions: bool, extensions: Mapping[str, object] | None = None
) -> JsonObject:
    """The capabilities that we declare. Every list may change, because servers come and go."""
    resources: JsonObject = {"listChanged": True}
    if subscribe:
        resources["subscribe"] = True
    found: JsonObject = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": resources,
    }
    if extensions:
        found["extensions"] = extensions
    return {**found, "logging": {}, **({"completions": {}} if completions else {})}


def lookup_result_2026(lookup: Lookup, info: Raw, result: JsonObject) -> bytes:
    """A server's result for a caller of 2026-07-28."""
    found: JsonObject = {**result, "resultType": "complete"}
    if lookup.method == "resources/read":  # a server of the handshake era sends no cache fields
        found = {**_READ_CACHE, **found}
    found["_meta"] = {**_meta(result), f"{PROTOCOL_PREFIX}serverInfo": info}
    return encode(Response(lookup.id, found))


def lookup_round_2026(lookup: Lookup, info: Raw, result: JsonObject, state: str) -> bytes:
    """A server's questions for a caller of 2026-07-28, with the server's state inside of ours."""
    found: JsonObject = {**result, "resultType": "input_required", "requestState": state}
    if asked := input_requests(result):
        found["inputRequests"] = asked
    found["_meta"] = {**_meta(result), f"{PROTOCOL_PREFIX}serverInfo": info}
    return encode(Response(lookup.id, found))


def lookup_result_2025(lookup: Lookup, result: JsonObject) -> bytes:
    """A server's result for a caller of the handshake era."""
    found = {key: value for key, value in result.items() if key not in (*_MODERN_KEYS, "_meta")}
    if meta := _meta(result):
        found["_meta"] = meta
    return encode(Response(lookup.id, found))


def input_requests(result: JsonObject) -> dict[str, JsonObject]:
    """The questions of a server that come before its result; raises Fault if they cannot be read."""
    asked = result.get("inputRequests")
    if asked is None:
        return {}
    if not isinstance(asked, dict) or not all(isinstance(one, dict) for one in asked.values()):
        raise Fault(INTERNAL_ERROR, "its inputRequests are no requests")
    return {str(key): one for key, one in asked.items() if isinstance(one, dict)}


def missing_capabilities(
    asked: Mapping[str, JsonObject], can: Capabilities
) -> dict[str, Mapping[str, object]]:
    """The capabilities that the caller lacks to answer these questions."""
    missing: dict[str, Mapping[str, object]] = {}
    for one in asked.values():
        body, kind = one.get("params"), _QUESTION_KINDS.get(str(one.get("method")), "form")
        if kind == "form" and isinstance(body, dict) and body.get("mode") == "url":
            kind = "url"
        if not can.can(kind):
            for name, needs in _NEEDED_CAPABILITIES[kind].items():
                missing[name] = {**missing.get(name, {}), **needs}
    return missing


def own_result(
    tool_call: ToolCall, call: Call, end: Finished, info: Raw, *, unrecorded: bool = False
) -> bytes:
    """The answer to a lookup of our own that ended well; `info` is empty before 2026-07-28."""
    result = end.result or Result(Raw(b"[]"))
    found = own_fields(tool_call.method, result)
    if info:
        found["resultType"] = "complete"
    if info and tool_call.method == "resources/read":
        found |= _READ_CACHE
    history = "unrecorded" if unrecorded else None
    found["_meta"] = ResultMeta(
        call.id, tool_call.token, None, history, info, call.opened.server, call.opened.tool
    )
    return encode_sized(Response(tool_call.id, found), result_bytes(result))


def own_fields(method: str, result: Result) -> JsonObject:
    """The contents of a resource, or the messages of a prompt, in the result of the call of its function."""
    if method == "prompts/get":
        return {**_raw_object_decoder.decode(result.structured or b"{}")}
    embedded = [bytes(one.resource) for one in _embedded_decoder.decode(result.content)]
    return {"contents": Raw(b"[" + b",".join(embedded) + b"]")}


def own_failure(method: str, call: Call, failure: Failure, *, modern: bool) -> Fault:
    """The error of a lookup of our own that did not end well; its text is the one that a tool's call has."""
    data: JsonObject = {"dev.afoot/call": call.id, "dev.afoot/error": failure_meta(failure)}
    code = INVALID_PARAMS if failure.category == "validation" else INTERNAL_ERROR
    if failure.category == "not_found" and method == "resources/read":
        code = INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
        data["uri"] = _uri_decoder.decode(call.opened.arguments).uri
    return Fault(code, failure_text(failure), data=data, status=_HTTP_STATUS.get(code, 200))


def unknown_resource(uri: str, known: Sequence[str] = ()) -> Fault:
    """The error for a resource that no server knows; the nearest of those that are known are named."""
    error = UnknownName("resource", uri, known)
    data: JsonObject = {"uri": uri, **({"nearest": error.nearest} if error.nearest else {})}
    return Fault(INVALID_PARAMS, f"params.uri: {error}", data=data)


def is_unknown_resource(fault: Fault) -> bool:
    """Whether this error says that the server does not know the resource, so that another may."""
    return fault.code in (RESOURCE_NOT_FOUND, INVALID_PARAMS, METHOD_NOT_FOUND, 0)  # older SDKs send 0


def translate_fault(fault: Fault, server: str, *, modern: bool, uri: str | None = None) -> Fault:
    """A server's error for a caller of this era; `uri` is the resource that was to be read."""
    data = fault.data
    code = fault.code
    text = fault.message
    if uri is not None and code in (RESOURCE_NOT_FOUND, INVALID_PARAMS) and modern:
        code, data = INVALID_PARAMS, data or {"uri": uri}
    elif uri is not None and code == INVALID_PARAMS and not modern and _names_uri(data, uri):
        code = RESOURCE_NOT_FOUND
    elif code in _HOP_ERRORS:
        code, text = INTERNAL_ERROR, f"server {server}: {text}"
    return Fault(code, text, data=data, status=_HTTP_STATUS.get(code, 200))


def matches_template(template: str, uri: str) -> bool:
    """Whether this URI can be an expansion of the template: RFC 6570, one variable for one segment.

    The set of possible positions is carried through the template, so the time grows with the number of
    expressions times the length of the URI. A template with over MAX_EXPRESSIONS matches nothing.
    """
    if template.count("{") > MAX_EXPRESSIONS:
        return False
    places = {0}
    for literal, expression in _template_parts(template):
        places = {at + len(literal) for at in places if uri.startswith(literal, at)}
        if not places:
            return False
        if expression:
            places = _positions_behind(places, uri, expression)
    return len(uri) in places


def _read_round(message: Envelope, method: str) -> tuple[_RoundParams, str]:
    """The checked params, and the name or URI that they are about."""
    if method == "prompts/get":
        get = read_params(message, _get_decoder)
        return get, get.name
    if method == "resources/read":
        read = read_params(message, _read_decoder)
        return read, read.uri
    complete = read_params(message, _complete_decoder)
    return complete, complete.ref.name if isinstance(complete.ref, _PromptRef) else complete.ref.uri


def _meta(result: JsonObject) -> JsonObject:
    meta = result.get("_meta")
    return {key: value for key, value in meta.items() if is_forwarded(key)} if isinstance(meta, dict) else {}


def _names_uri(data: object, uri: str) -> bool:
    return isinstance(data, dict) and data.get("uri") == uri


def _template_parts(template: str) -> Sequence[tuple[str, str]]:
    """Each literal text and the expression behind it, from left to right."""
    found = []
    while template:
        literal, brace, rest = template.partition("{")
        expression, end, template = rest.partition("}")
        if brace and not end:
            return [*found, (literal + brace + rest, "")]
        found.append((literal, expression or ("{}" if brace else "")))
    return found


def _positions_behind(places: set[int], uri: str, expression: str) -> set[int]:
    """The positions behind a variable that begins at one of these."""
    can_be_empty = expression[0] in "?&/;.#"
    barred = "" if expression[0] in "+#?&/" or expression.endswith("*") else "/?#"
    found, lives = set(places) if can_be_empty else set(), False
    for at, letter in enumerate(uri):
        lives = (lives or at in places) and letter not in barred
        if lives:
            found.add(at + 1)
    return found
