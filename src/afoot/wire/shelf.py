"""What servers hold besides tools, prompts, resources and completions, as it passes through both eras."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct, field

from afoot.wire import bookmark
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Envelope, Fault, Id, params
from afoot.wire.messages import Capabilities, Response, encode

NOT_FOUND = -32002  # a resource that nobody knows, before 2026-07-28
LOOKUPS = ("prompts/get", "resources/read", "completion/complete")
OWN = "io.modelcontextprotocol/"  # keys of `_meta` that belong to one hop

_ROUND_KEYS = ("_meta", "inputResponses", "requestState")
_MODERN_KEYS = ("resultType", "ttlMs", "cacheScope")
# HTTP statuses by code, as 2026-07-28 has them; any other error is an answer like any other.
_STATUS = {-32700: 400, -32600: 400, INVALID_PARAMS: 400, -32021: 400, METHOD_NOT_FOUND: 404}
_HOP = (-32020, -32022)  # what a server says of our request to it, which the caller has no part in
_KINDS = {"sampling/createMessage": "sample", "roots/list": "roots"}
_NEEDED: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "form": {"elicitation": {"form": {}}},
    "url": {"elicitation": {"url": {}}},
    "sample": {"sampling": {}},
    "roots": {"roots": {}},
}

Item = dict[str, object]


class Lookup(Struct):
    """A `prompts/get`, `resources/read` or `completion/complete`, whatever the era it came in."""

    id: Id
    method: str
    params: Item  # as they came, without what belongs to this hop and this round
    subject: str  # the name or the URI that it is about
    caller: str
    capabilities: Capabilities
    meta: Item = {}
    answers: Item = {}
    state: str | None = None

    def digest(self) -> str:
        """What the state of a round is bound to."""
        return bookmark.digest(self.method, encode(self.params))

    def body(self, subject: str, answers: Item, state: str | None) -> Item:
        """The params as a server gets them: under its own name, and in the round that it is in."""
        found: Item = {**self.params}
        if self.method == "prompts/get":
            found["name"] = subject
        elif isinstance(ref := found.get("ref"), dict) and "name" in ref:
            found["ref"] = {**ref, "name": subject}
        if answers:
            found["inputResponses"] = answers
        if state is not None:
            found["requestState"] = state
        return {**found, "_meta": self.meta} if self.meta else found


class _Ref(Struct, tag_field="type"):
    pass


class _PromptRef(_Ref, tag="ref/prompt"):
    name: str


class _ResourceRef(_Ref, tag="ref/resource"):
    uri: str


class _Argument(Struct):
    name: str
    value: str


class _Round(Struct):
    meta: Item = field(name="_meta", default_factory=dict)
    inputResponses: Item = {}
    requestState: str | None = None


class _Get(_Round, kw_only=True):
    name: str
    arguments: Item | None = None


class _Read(_Round, kw_only=True):
    uri: str


class _Complete(_Round, kw_only=True):
    ref: _PromptRef | _ResourceRef
    argument: _Argument


class _Uri(Struct):
    uri: str


_get = msgspec.json.Decoder(_Get)
_read = msgspec.json.Decoder(_Read)
_complete = msgspec.json.Decoder(_Complete)
_uri = msgspec.json.Decoder(_Uri)
_item = msgspec.json.Decoder(dict[str, object])


def read(message: Envelope, caller: str, capabilities: Capabilities) -> Lookup:
    """One of LOOKUPS; raises Fault naming the field. What a round adds is left out before 2026-07-28."""
    request, method = message.id, str(message.method)
    assert isinstance(request, int | str)
    asked, subject = _asked(message, method)
    sent = {key: value for key, value in params(message, _item).items() if key not in _ROUND_KEYS}
    meta = {key: value for key, value in asked.meta.items() if _passes(key)}
    return Lookup(
        request, method, sent, subject, caller, capabilities, meta, asked.inputResponses, asked.requestState
    )


def _asked(message: Envelope, method: str) -> tuple[_Round, str]:
    """The params, checked, and what they are about."""
    if method == "prompts/get":
        get = params(message, _get)
        return get, get.name
    if method == "resources/read":
        read = params(message, _read)
        return read, read.uri
    complete = params(message, _complete)
    return complete, complete.ref.name if isinstance(complete.ref, _PromptRef) else complete.ref.uri


def read_uri(message: Envelope) -> str:
    """The resource that is to be watched, or not any more; raises Fault."""
    return params(message, _uri).uri


def capabilities(*, subscribe: bool, completions: bool) -> Item:
    """What we say that we can: every list may change, for servers come and go."""
    resources: Item = {"listChanged": True}
    if subscribe:
        resources["subscribe"] = True
    found: Item = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": resources}
    return {**found, "logging": {}, **({"completions": {}} if completions else {})}


def modern(lookup: Lookup, info: Raw, result: Item) -> bytes:
    """A server's result for a caller of 2026-07-28."""
    found: Item = {**result, "resultType": "complete"}
    if lookup.method == "resources/read":  # a server of the handshake era says nothing of how long it holds
        found = {"ttlMs": 0, "cacheScope": "private", **found}
    found["_meta"] = {**_meta(result), f"{OWN}serverInfo": info}
    return encode(Response(lookup.id, found))


def round_of(lookup: Lookup, info: Raw, result: Item, state: str) -> bytes:
    """A server's questions for a caller of 2026-07-28, with its state inside of ours."""
    found: Item = {"resultType": "input_required", "requestState": state}
    if asked := requests(result):
        found["inputRequests"] = asked
    found["_meta"] = {**_meta(result), f"{OWN}serverInfo": info}
    return encode(Response(lookup.id, found))


def older(lookup: Lookup, result: Item) -> bytes:
    """A server's result for a caller of the handshake era."""
    found = {key: value for key, value in result.items() if key not in (*_MODERN_KEYS, "_meta")}
    if meta := _meta(result):
        found["_meta"] = meta
    return encode(Response(lookup.id, found))


def requests(result: Item) -> dict[str, Item]:
    """What a server wants to know before it answers; raises Fault if that cannot be read."""
    asked = result.get("inputRequests")
    if asked is None:
        return {}
    if not isinstance(asked, dict) or not all(isinstance(one, dict) for one in asked.values()):
        raise Fault(INTERNAL_ERROR, "its inputRequests are no requests")
    return {str(key): one for key, one in asked.items() if isinstance(one, dict)}


def lacking(asked: Mapping[str, Item], can: Capabilities) -> dict[str, Mapping[str, object]]:
    """The capabilities that the caller would need to answer these, and has not."""
    missing: dict[str, Mapping[str, object]] = {}
    for one in asked.values():
        body, kind = one.get("params"), _KINDS.get(str(one.get("method")), "form")
        if kind == "form" and isinstance(body, dict) and body.get("mode") == "url":
            kind = "url"
        if not can.can(kind):
            for name, needs in _NEEDED[kind].items():
                missing[name] = {**missing.get(name, {}), **needs}
    return missing


def unknown(uri: str) -> Fault:
    """The error for a resource that nobody knows."""
    return Fault(INVALID_PARAMS, f"params.uri: unknown resource {uri!r}", data={"uri": uri})


def is_unknown(fault: Fault) -> bool:
    """Whether a server says by this that it does not know the resource, so that another may."""
    return fault.code in (NOT_FOUND, INVALID_PARAMS, METHOD_NOT_FOUND, 0)  # 0 is what older SDKs say


def passed_on(fault: Fault, server: str, *, modern: bool, uri: str | None = None) -> Fault:
    """A server's error as a caller of this era gets it; `uri`: what was to be read."""
    data, code, text = fault.data, fault.code, fault.message
    if uri is not None and code in (NOT_FOUND, INVALID_PARAMS) and modern:
        code, data = INVALID_PARAMS, data or {"uri": uri}
    elif uri is not None and code == INVALID_PARAMS and not modern and _names(data, uri):
        code = NOT_FOUND
    elif code in _HOP:
        code, text = INTERNAL_ERROR, f"server {server}: {text}"
    return Fault(code, text, data=data, status=_STATUS.get(code, 200))


def _passes(key: str) -> bool:
    """Whether a key of `_meta` is for whoever answers, and not for this hop (T2)."""
    return key != "progressToken" and not key.startswith((OWN, "dev.afoot/"))


def _meta(result: Item) -> Item:
    meta = result.get("_meta")
    return (
        {key: value for key, value in meta.items() if not key.startswith(OWN)}
        if isinstance(meta, dict)
        else {}
    )


def _names(data: object, uri: str) -> bool:
    return isinstance(data, dict) and data.get("uri") == uri
