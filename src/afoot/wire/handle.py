"""A call that outlasts its caller's patience: the handle in place of its result, and its tools (H5)."""

from functools import lru_cache

from msgspec import UNSET, Raw, json

from afoot.core.call import Call
from afoot.core.facts import NOTHING
from afoot.core.notices import notice
from afoot.wire.messages import CallResult, Response, ResultMeta, Wanted, encode
from afoot.wire.telling import reading_text

KEY = "afoot_call"
WAIT, CALLS, CANCEL = "afoot_wait", "afoot_calls", "afoot_cancel"

_CALL = {"type": "string", "description": "The id of the call, from afoot_call"}
_HANDLE = {"type": "object", "properties": {KEY: {"type": "string"}}, "required": [KEY]}
_TOOLS: dict[str, dict[str, object]] = {
    WAIT: {
        "title": "Wait for a running call",
        "description": (
            f"Get the result of a call that was still running when it was answered with {KEY}. Returns as "
            "soon as it ends, or says how far it is: then wait again. Giving up the wait does not stop it."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "call": _CALL,
                "seconds": {"type": "number", "minimum": 0, "description": "Wait no longer than this"},
            },
            "required": ["call"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
    CALLS: {
        "title": "List running calls",
        "description": "List your calls that still run, and long ones that ended lately, with their ids.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
    CANCEL: {
        "title": "Stop a running call",
        "description": "Stop a call that still runs. afoot_wait then tells how it ended.",
        "inputSchema": {
            "type": "object",
            "properties": {"call": _CALL, "reason": {"type": "string", "description": "Why it should stop"}},
            "required": ["call"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
}  # fmt: skip
TOOLS = {name: Raw(json.encode({"name": name, **rest})) for name, rest in _TOOLS.items()}


def handed(want: Wanted, call: Call, now: float, heard: float, info: Raw) -> bytes:
    """The last frame of a request whose call runs on; `info` as in `messages.result`."""
    text = (
        f"Not finished yet: call {call.id} of tool {call.opened.tool}{standing(call, now, heard)}. "
        "It runs on by itself, so do not start it again. "
        f'To get its result, call the tool {WAIT} with {{"call": "{call.id}"}}.'
    )
    meta = ResultMeta(call.id, want.token, server=info)
    return said(want, text, meta, Raw(json.encode({KEY: call.id})))


def said(want: Wanted, text: str, meta: ResultMeta, structured: Raw = NOTHING) -> bytes:
    """A result of one text that no tool has given."""
    content = Raw(json.encode([{"type": "text", "text": text}]))
    kind = "complete" if meta.server else UNSET
    return encode(Response(want.id, CallResult(content, structured, meta.error is not None, kind, meta)))


def standing(call: Call, now: float, heard: float) -> str:
    """`, running, 45 s, at 37/120: page 37`."""
    parts = ["", str(notice(call, now, heard).message)]
    if call.latest is not None:
        parts.append(f"at {reading_text(call.latest)}")
    return ", ".join(parts)


@lru_cache(maxsize=4096)
def widened(definition: bytes) -> Raw:
    """A tool's definition whose output may be a handle: clients refuse what its schema does not allow."""
    tool = json.decode(definition)
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict):
        return Raw(definition)
    wide: dict[str, object] = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    if schema.get("type") == "object":  # which clients of the handshake era want to see at the root
        wide["type"] = "object"
    inner = {key: value for key, value in schema.items() if key != "$schema"}
    wide["anyOf"] = [_moved(inner), _HANDLE]
    return Raw(json.encode({**tool, "outputSchema": wide}))


_DATA = ("const", "enum", "default", "examples")  # here stands data, and no schema
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")  # here stand names


def _moved(schema: object) -> object:
    """The schema with its pointers into itself set for its new place; what has an id is a place itself."""
    if isinstance(schema, list):
        return [_moved(one) for one in schema]
    if not isinstance(schema, dict) or isinstance(schema.get("$id"), str):
        return schema
    return {key: _pointed(key, value) for key, value in schema.items()}


def _pointed(key: str, value: object) -> object:
    if key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return f"#/anyOf/0{value[1:]}"
    if key in _NAMED and isinstance(value, dict):
        return {name: _moved(one) for name, one in value.items()}
    return value if key in _DATA else _moved(value)
