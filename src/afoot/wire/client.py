"""What a client of MCP says in both eras: requests with their `_meta` and headers, notices, and answers."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct, json

from afoot.wire import mcp, mcp_2025
from afoot.wire.headers import Mirror
from afoot.wire.jsonrpc import Fault, Id
from afoot.wire.messages import ErrorBody, ErrorResponse, Notification, Response, encode

MODERN = mcp.VERSION
HANDSHAKE = mcp_2025.LATEST
# What our callers can be asked for is known only when a question comes; until then everything is offered.
CAPABILITIES = Raw(b'{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}')

_META = "io.modelcontextprotocol/"


class Tongue(Struct, frozen=True):
    """How one server is spoken to: in which version of the protocol, and who we say we are."""

    version: str
    info: Raw

    @property
    def is_modern(self) -> bool:
        """Whether every request says who asks, and there is no session."""
        return self.version == MODERN


class Budget(Struct, omit_defaults=True):
    """`_meta["dev.afoot/budget"]`: what the next hop has left."""

    idle_s: float | None = None
    left_s: float | None = None


def request(tongue: Tongue, id: Id, method: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> bytes:
    """Any request; on 2026-07-28 with who asks, and what can be asked of it."""
    own = {**params.get("_meta", {}), **meta}
    if tongue.is_modern:
        own[f"{_META}protocolVersion"] = MODERN
        own[f"{_META}clientInfo"] = tongue.info
        own[f"{_META}clientCapabilities"] = CAPABILITIES
    whole = {**params, "_meta": own} if own else params
    return _request(id, method, whole)


def hello(id: Id, tongue: Tongue) -> bytes:
    """`initialize`, which opens a connection of the handshake era."""
    params = {"protocolVersion": tongue.version, "capabilities": CAPABILITIES, "clientInfo": tongue.info}
    return _request(id, "initialize", params)


def call_meta(call: str, budget: Budget, level: str | None) -> dict[str, Any]:
    """What goes with a `tools/call`: the time left (C3), whose child it is (P8), which logs are wanted."""
    meta: dict[str, Any] = {
        "dev.afoot/budget": budget,
        "dev.afoot/parent": {"call": call, "weight": 1},
        "dev.afoot/partial": True,
    }
    if level:
        meta[f"{_META}logLevel"] = level
    return meta


def headers(tongue: Tongue, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """The headers that a request over HTTP repeats its body in."""
    if method == "initialize":
        return {}
    found = {"mcp-protocol-version": tongue.version}
    if tongue.is_modern:
        found["mcp-method"] = method
        named = params.get(mcp.NAMED.get(method, ""))
        if isinstance(named, str):
            found["mcp-name"] = wrapped(named)
    return found


def mirrored(mirrors: list[Mirror], arguments: Raw) -> dict[str, str]:
    """The `Mcp-Param-*` headers of a call: each annotated argument that is given."""
    if not mirrors:
        return {}
    values = json.decode(arguments)
    found = ((mirror.header, _at(values, mirror.path)) for mirror in mirrors)
    return {f"mcp-param-{header}": wrapped(text) for header, text in found if text is not None}


def wrapped(text: str) -> str:
    """A header's value, in base64 where it would not arrive as it is."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def notice(method: str, **params: object) -> bytes:
    """A notification of ours."""
    return encode(Notification(method, params))


def cancelled(request: Id, reason: str) -> bytes:
    """A request of ours that needs no answer any more."""
    return notice("notifications/cancelled", requestId=request, reason=reason)


def reply(request: Id, result: object) -> bytes:
    """The answer to a request of the server's."""
    return encode(Response(request, result))


def refusal(request: Id, fault: Fault) -> bytes:
    """The answer that there is none."""
    return encode(ErrorResponse(request, ErrorBody(fault.code, fault.message, fault.data)))


def _request(id: Id, method: str, params: Mapping[str, Any]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def _at(values: Any, path: tuple[str, ...]) -> str | None:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    if isinstance(values, bool):
        return "true" if values else "false"
    return str(values) if isinstance(values, str | int | float) else None
