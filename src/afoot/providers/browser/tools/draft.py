"""`ToolDraft` is a tool of a page or plugin, checked and limited, before it has a name."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.config.tables import BROWSER_SERVER
from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.core.schema_cost import schema_cost
from afoot.errors import ToolError
from afoot.providers.arguments import check_arguments
from afoot.providers.browser.tools.source import BrowserSource
from afoot.providers.content import clean_line, clean_text, is_deeper
from afoot.wire.browser_data import PageTool

TAB_ARGUMENT = "afoot_tab"  # the argument that names the tab
NAME_LIMIT = 128
TITLE_LIMIT = 200
DESCRIPTION_LIMIT = 4000
SCHEMA_BYTES = 64 * 1024
SCHEMA_DEPTH = 64  # a host that cannot read one deep schema refuses the whole list of tools
ICONS, ICON_LIMIT = ("https://", "data:image/"), 64 * 1024
HINT_NAMES = (
    "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "untrustedContentHint",
    "consequentialHint",
)  # fmt: skip
_TAB_SCHEMA = {
    "type": "string",
    "description": "which tab to run it in, such as t3 (afoot_tabs lists them); else the one used last",
}


class ToolDraft(Struct, frozen=True):
    """A tool of a page or plugin, without its name. Tabs with the same tool share one draft, by its `key`."""

    key: str
    source: BrowserSource
    page: str  # its name in the page
    definition: dict[str, Any]
    schema: bytes
    output: bytes
    hints: dict[str, bool]
    takes_tab: bool

    def tool(self, name: str, limits: Limits) -> Tool:
        """The tool that is offered under this name."""
        return Tool(
            name=name,
            server=BROWSER_SERVER,
            definition=Raw(msgspec.json.encode({"name": name, **self.definition})),
            limits=limits,
            read_only=self.hints.get("readOnlyHint", False),
            idempotent=self.hints.get("idempotentHint", False),
            destructive=self.hints.get("destructiveHint", False)
            or self.hints.get("consequentialHint", False),
            digest=sha256(self.key.encode()).hexdigest(),
            trusted=False,
            default_approval=self.source.usual,
            source=self.source.id,
            address=f"{self.source.address}/{self.page}",
            starts=True,
        )

    def split_arguments(self, arguments: Raw) -> tuple[str, Raw]:
        """Split off the tab, and check the rest; raises ToolError.validation with the field (E4)."""
        tab = ""
        if self.takes_tab and TAB_ARGUMENT.encode() in bytes(arguments):
            tab, arguments = _take_tab(arguments)
        check_arguments(self.schema, arguments)
        return tab, arguments or Raw(b"{}")


def draft_tool(tool: PageTool, source: BrowserSource) -> ToolDraft:
    """Draft a tool; raises ValueError saying why it cannot be offered."""
    if not tool.name or len(tool.name) > NAME_LIMIT or not tool.name.isprintable():
        raise ValueError(f"{tool.name[:NAME_LIMIT]!r} is no name for a tool")
    schema, output = (
        _object_schema(tool.input_schema, "inputSchema"),
        _object_schema(tool.output_schema, "outputSchema"),
    )
    hints = _hints(tool.annotations)
    plain = msgspec.json.encode(tool)
    definition: dict[str, Any] = {"description": _description(tool, source)}
    if title := clean_line(tool.title, TITLE_LIMIT):
        definition["title"] = title
    if tool.icon.startswith(ICONS) and len(tool.icon) <= ICON_LIMIT:
        definition["icons"] = [{"src": tool.icon}]
    own = schema or {"type": "object", "properties": {}}
    properties = own.get("properties")
    takes_tab = isinstance(properties or {}, dict) and TAB_ARGUMENT not in (properties or {})
    shown = {**own, "properties": {**(properties or {}), TAB_ARGUMENT: _TAB_SCHEMA}} if takes_tab else own
    definition["inputSchema"] = {**shown, "type": "object"}
    # A client checks a result against this schema. One that takes too long to check is not passed on.
    if output and schema_cost(output).is_linear:
        definition["outputSchema"] = {**output, "type": "object"}
    if hints:
        definition["annotations"] = hints
    return ToolDraft(
        key=f"{source.id} {sha256(plain).hexdigest()}",
        source=source,
        page=tool.name,
        definition=definition,
        schema=msgspec.json.encode(own),
        output=msgspec.json.encode(output) if "outputSchema" in definition else b"",
        hints=hints,
        takes_tab=takes_tab,
    )


def _take_tab(arguments: Raw) -> tuple[str, Raw]:
    """Take the tab out of the arguments; returns it and the other arguments."""
    try:
        values = msgspec.json.decode(arguments, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError.validation(f"arguments: {error}") from None
    try:
        tab = msgspec.json.decode(values.pop(TAB_ARGUMENT, b"null"), type=str | None)
    except msgspec.DecodeError:
        raise ToolError.validation(f"arguments.{TAB_ARGUMENT}: must be a text such as t1") from None
    return tab or "", Raw(msgspec.json.encode(values))


def _description(tool: PageTool, source: BrowserSource) -> str:
    """The page's description, after a warning that it is the page's own, unchecked text (B7)."""
    text = clean_text(tool.description, DESCRIPTION_LIMIT).strip()
    more = "" if tool.progress else " It reports no progress."
    more += " A person must send a form in the tab." if tool.form else ""
    return f"From {source.description}, in its own words, which nobody has checked: {text}{more}"


def _object_schema(schema: Raw, what: str) -> dict[str, Any]:
    """The schema of an object, or {} if there is none; raises ValueError."""
    if len(schema) > SCHEMA_BYTES:
        raise ValueError(f"its {what} has over {SCHEMA_BYTES} bytes")
    try:
        found = msgspec.json.decode(schema or b"null")
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"its {what} cannot be read: {error}") from None
    if found is None or found == {}:
        return {}
    if not isinstance(found, dict) or found.get("type", "object") != "object":
        raise ValueError(f"its {what} is not that of an object")
    if is_deeper(found, SCHEMA_DEPTH):
        raise ValueError(f"its {what} is nested over {SCHEMA_DEPTH} deep")
    if not isinstance(found.get("properties", {}), dict):
        raise ValueError(f"the properties of its {what} are no object")
    return found


def _hints(annotations: Raw) -> dict[str, bool]:
    """The tool's own annotations. They can make an approval stricter, never laxer (A1)."""
    try:
        found = msgspec.json.decode(annotations or b"{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    hints = found if isinstance(found, dict) else {}
    return {name: hints[name] for name in HINT_NAMES if isinstance(hints.get(name), bool)}
