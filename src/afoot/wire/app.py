"""The MCP App of this gateway as clients see it: its resource, its tools, the `_meta` of other tools (V7).

Only a client that declares the extension `io.modelcontextprotocol/ui` with the type of such pages sees any of
this. The page runs in a frame of the host and reaches the gateway through the host alone, as its client.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Raw, json

from afoot.wire.handle_tools import CALLS, CANCEL, TOOLS, WAIT
from afoot.wire.resources import JsonObject
from afoot.wire.results import APP_PAGE_TYPE, APPS_EXTENSION, is_for_apps_alone

APP_URI = "ui://afoot/calls"
VIEW = "afoot_view"
ANSWER = "afoot_answer"

# Hosts of the first drafts read the flat key, newer ones `ui`.
_FLAT_KEY = "ui/resourceUri"
_TOOL_META: Mapping[str, object] = {"ui": {"resourceUri": APP_URI}, _FLAT_KEY: APP_URI}
# A page without an entry here may reach no other address: this one needs none.
_PAGE_META: Mapping[str, object] = {"ui": {"csp": {}, "prefersBorder": True}}
_FOR_PAGES = {"ui": {"visibility": ["app"]}}
_ID = {"type": "string", "description": "The id of the call"}
_TOOLS: dict[str, dict[str, object]] = {
    VIEW: {
        "title": "Show running calls",
        "description": "The state of calls with their clocks, their child calls and their questions.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "call": _ID,
                "tool": {"type": "string", "description": "The tool, if the id is not known yet"},
                "request": {"description": "The id of the request that called it, if the host says so"},
                "arguments": {"type": "object", "description": "The arguments that it was called with"},
                "age_s": {"type": "number", "minimum": 0, "description": "For how long it is shown"},
            },
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": _FOR_PAGES,
    },
    ANSWER: {
        "title": "Answer a question of a call",
        "description": "Give a person's answer to a question that a call asks its caller.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "action": {"enum": ["accept", "decline", "cancel"]},
                "content": {"type": "object"},
                "digest": {"type": "string", "description": "The digest of the question as it was shown"},
            },
            "required": ["question", "action", "digest"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
        "_meta": _FOR_PAGES,
    },
}  # fmt: skip
APP_TOOLS = {name: Raw(json.encode({"name": name, **rest})) for name, rest in _TOOLS.items()}
APP_RESOURCE: JsonObject = {
    "uri": APP_URI,
    "name": "afoot_calls",
    "title": "Running calls",
    "description": "The live view of a call: its progress, both clocks, its child calls and its questions.",
    "mimeType": APP_PAGE_TYPE,
    "_meta": _PAGE_META,
}


def page_contents(page: str) -> JsonObject:
    """The result of reading the app's resource."""
    return {"contents": [{"uri": APP_URI, "mimeType": APP_PAGE_TYPE, "text": page, "_meta": _PAGE_META}]}


def with_app_extension(capabilities: Mapping[str, object]) -> JsonObject:
    """Our capabilities for a client that shows our app; a server's own word for the extension stays."""
    extensions = capabilities.get("extensions")
    declared = extensions if isinstance(extensions, dict) else {}
    return {**capabilities, "extensions": {APPS_EXTENSION: {}, **declared}}


@lru_cache(maxsize=4096)
def with_app(definition: bytes) -> Raw:
    """A tool's definition by which a host shows our app for its calls; unchanged if it has its own app."""
    tool = json.decode(definition)
    meta = tool.get("_meta", {})
    if is_for_apps_alone(Raw(definition)) or "ui" in meta or _FLAT_KEY in meta:
        return Raw(definition)
    return Raw(json.encode({**tool, "_meta": {**meta, **_TOOL_META}}))


def with_app_tools(tools: Iterable[Raw]) -> list[Raw]:
    """The list of tools with those that the page calls, and with the tools for calls that run on."""
    handle_tools = list(TOOLS.values())
    others = [one for one in tools if one not in handle_tools]
    shown = [with_app(bytes(TOOLS[name])) for name in (WAIT, CALLS)]
    return [*others, *shown, TOOLS[CANCEL], *APP_TOOLS.values()]
