"""`handle_result` answers a caller that cannot wait any longer; `TOOLS` are the tools for its call (H5)."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from msgspec import UNSET, Raw, json

from afoot.core.call import Call
from afoot.core.notices import notice
from afoot.wire.results import (
    ERROR_KEY,
    TEXT_KEY,
    CallResult,
    Response,
    ResultMeta,
    ToolCall,
    encode,
    reading_text,
)

CALL_KEY = "afoot_call"
WAIT = "afoot_wait"
CALLS = "afoot_calls"
CANCEL = "afoot_cancel"
NO_FIELDS: Mapping[str, object] = MappingProxyType({})

_CALL_SCHEMA = {"type": "string", "description": "The id of the call, from afoot_call"}
_TEXT_SCHEMA = {"type": "string"}
# In place of a result: a handle, or an error. Some clients check the structured content of errors, too.
_GATEWAY_SCHEMAS = [
    {"type": "object", "properties": {key: _TEXT_SCHEMA, TEXT_KEY: _TEXT_SCHEMA}, "required": [key]}
    for key in (CALL_KEY, ERROR_KEY)
]
_TOOLS: dict[str, dict[str, object]] = {
    WAIT: {
        "title": "Wait for a running call",
        "description": (
            f"Get the result of a call that was still running when it was answered with {CALL_KEY}. Returns "
            "as soon as it ends, or says how far it is: then wait again. Giving up the wait does not stop it."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "call": _CALL_SCHEMA,
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
            "properties": {
                "call": _CALL_SCHEMA,
                "reason": {"type": "string", "description": "Why it should stop"},
            },
            "required": ["call"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
}  # fmt: skip
TOOLS = {name: Raw(json.encode({"name": name, **rest})) for name, rest in _TOOLS.items()}


def handle_result(
    tool_call: ToolCall, call: Call, now: float, heard: float, info: Raw, where: str = ""
) -> bytes:
    """The response to a request whose call goes on.

    `info` is the server's info on 2026-07-28, empty before. `where`: the place where a person can answer what
    the call asks, if the caller cannot be asked.
    """
    phrase = progress_phrase(call, now, heard, where)
    goes_on = "Tell the user so; it goes on by itself then" if where else "It runs on by itself"
    text = (
        f"Not finished yet: call {call.id} of tool {call.opened.tool}{phrase}. "
        f"{goes_on}, so do not start it again. "
        f'To get its result, call the tool {WAIT} with {{"call": "{call.id}"}}.'
    )
    opened = call.opened
    meta = ResultMeta(call.id, tool_call.token, server=info, server_name=opened.server, tool=opened.tool)
    return text_result(tool_call, text, meta, {CALL_KEY: call.id})


def text_result(
    tool_call: ToolCall, text: str, meta: ResultMeta, fields: Mapping[str, object] = NO_FIELDS
) -> bytes:
    """A result of one text that comes from the gateway, not from a tool; `fields` for programs.

    The text is in the structured content, too: some hosts show their model nothing else (F7).
    """
    content = Raw(json.encode([{"type": "text", "text": text}]))
    error = {} if meta.error is None else {ERROR_KEY: meta.error.code}
    structured = Raw(json.encode({**error, **fields, TEXT_KEY: text}))
    kind = "complete" if meta.server else UNSET
    return encode(Response(tool_call.id, CallResult(content, structured, meta.error is not None, kind, meta)))


def progress_phrase(call: Call, now: float, heard: float, where: str = "") -> str:
    """The state of a call in words: `, running, 45 s, at 37/120: page 37`."""
    parts = ["", str(notice(call, now, heard, where=where).message)]
    if call.latest is not None:
        parts.append(f"at {reading_text(call.latest)}")
    return ", ".join(parts)


@lru_cache(maxsize=4096)
def with_handle_output(definition: bytes) -> Raw:
    """A tool's definition whose output may also be a handle or an error of ours.

    Clients refuse results outside of the schema.
    """
    tool = json.decode(definition)
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict):
        return Raw(definition)
    wide: dict[str, object] = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    if schema.get("type") == "object":  # clients of the handshake era expect it at the root
        wide["type"] = "object"
    inner = {key: value for key, value in schema.items() if key != "$schema"}
    wide["anyOf"] = [_relocated(inner), *_GATEWAY_SCHEMAS]
    return Raw(json.encode({**tool, "outputSchema": wide}))


_DATA_KEYWORDS = ("const", "enum", "default", "examples")  # hold data, not schemas
# Keywords whose value maps names to schemas.
_NAME_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")


def _relocated(schema: object) -> object:
    """The schema with its local pointers adjusted to its new position.

    A subschema with an `$id` keeps its own.
    """
    if isinstance(schema, list):
        return [_relocated(one) for one in schema]
    if not isinstance(schema, dict) or isinstance(schema.get("$id"), str):
        return schema
    return {key: _relocated_value(key, value) for key, value in schema.items()}


def _relocated_value(key: str, value: object) -> object:
    if key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return f"#/anyOf/0{value[1:]}"
    if key in _NAME_MAPS and isinstance(value, dict):
        return {name: _relocated(one) for name, one in value.items()}
    return value if key in _DATA_KEYWORDS else _relocated(value)
