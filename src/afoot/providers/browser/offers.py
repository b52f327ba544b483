"""Tools of pages and plugins as ours: what is believed of them, and whose words a model is told it reads."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.errors import ToolError
from afoot.providers.arguments import check
from afoot.providers.browser.sources import Source
from afoot.providers.browser.tame import is_tame
from afoot.providers.hygiene import line, lines
from afoot.tables import BROWSER
from afoot.wire.room import PageTool

TAB = "afoot_tab"  # the argument that says which tab
NAME_LIMIT = 128
TITLE_LIMIT = 200
DESCRIPTION_LIMIT = 4000
SCHEMA_BYTES = 64 * 1024
SCHEMA_DEPTH = 64  # hosts read a list of tools whole or not at all, and not all as deep
ICONS, ICON_LIMIT = ("https://", "data:image/"), 64 * 1024
HINTS = (
    "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "untrustedContentHint",
    "consequentialHint",
)  # fmt: skip
ANYTHING = b'{"type": "object"}'
_TAB_SCHEMA = {
    "type": "string",
    "description": "which tab to run it in, such as t3 (afoot_tabs lists them); else the one used last",
}


class Draft(Struct, frozen=True):
    """A tool of a source, without its name. Of each `key` one tool is offered, in however many tabs it is."""

    key: str
    source: Source
    page: str  # its name there
    definition: dict[str, Any]
    schema: bytes
    output: bytes
    hints: dict[str, bool]
    takes_tab: bool

    def tool(self, name: str, limits: Limits) -> Tool:
        """The tool under this name."""
        return Tool(
            name=name,
            server=BROWSER,
            definition=Raw(msgspec.json.encode({"name": name, **self.definition})),
            limits=limits,
            read_only=self.hints.get("readOnlyHint", False),
            idempotent=self.hints.get("idempotentHint", False),
            destructive=self.hints.get("destructiveHint", False)
            or self.hints.get("consequentialHint", False),
            digest=sha256(self.key.encode()).hexdigest(),
            trusted=False,
            usual=self.source.usual,
            source=self.source.id,
            address=f"{self.source.address}/{self.page}",
            starts=True,
        )

    def split(self, arguments: Raw) -> tuple[str, Raw]:
        """The tab that is wanted, and what the page gets; raises ToolError.validation with the field (E4)."""
        tab = ""
        if self.takes_tab and TAB.encode() in bytes(arguments):
            tab, arguments = _targeted(arguments)
        check(self.schema, arguments)
        return tab, arguments or Raw(b"{}")


def draft(tool: PageTool, source: Source) -> Draft:
    """A tool as it can be offered; raises ValueError saying why it cannot."""
    if not tool.name or len(tool.name) > NAME_LIMIT or not tool.name.isprintable():
        raise ValueError(f"{tool.name[:NAME_LIMIT]!r} is no name for a tool")
    schema, output = _object(tool.input_schema, "inputSchema"), _object(tool.output_schema, "outputSchema")
    hints = _hints(tool.annotations)
    plain = msgspec.json.encode(tool)
    definition: dict[str, Any] = {"description": _described(tool, source)}
    if title := line(tool.title, TITLE_LIMIT):
        definition["title"] = title
    if tool.icon.startswith(ICONS) and len(tool.icon) <= ICON_LIMIT:
        definition["icons"] = [{"src": tool.icon}]
    own = schema or {"type": "object", "properties": {}}
    properties = own.get("properties")
    takes_tab = isinstance(properties or {}, dict) and TAB not in (properties or {})
    shown = {**own, "properties": {**(properties or {}), TAB: _TAB_SCHEMA}} if takes_tab else own
    definition["inputSchema"] = {**shown, "type": "object"}
    if output and is_tame(output):
        definition["outputSchema"] = {**output, "type": "object"}
    if hints:
        definition["annotations"] = hints
    return Draft(
        f"{source.id} {sha256(plain).hexdigest()}", source, tool.name, definition,
        msgspec.json.encode(own) if is_tame(own) else ANYTHING,
        msgspec.json.encode(output) if "outputSchema" in definition else b"", hints, takes_tab,
    )  # fmt: skip


def _targeted(arguments: Raw) -> tuple[str, Raw]:
    """The tab that is named in arguments, and the others as they are."""
    try:
        given = msgspec.json.decode(arguments, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError.validation(f"arguments: {error}") from None
    try:
        tab = msgspec.json.decode(given.pop(TAB, b"null"), type=str | None)
    except msgspec.DecodeError:
        raise ToolError.validation(f"arguments.{TAB}: must be a text such as t1") from None
    return tab or "", Raw(msgspec.json.encode(given))


def _described(tool: PageTool, source: Source) -> str:
    """The page's words, after it is said whose they are: a page can lie, and nobody has checked (B7)."""
    said = lines(tool.description, DESCRIPTION_LIMIT).strip()
    more = "" if tool.progress else " It reports no progress."
    more += " A person must send a form in the tab." if tool.form else ""
    return f"From {source.words}, in its own words, which nobody has checked: {said}{more}"


def _object(schema: Raw, what: str) -> dict[str, Any]:
    """A schema of an object, empty where there is none; raises ValueError."""
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
    if _is_deeper(found, SCHEMA_DEPTH):
        raise ValueError(f"its {what} is nested over {SCHEMA_DEPTH} deep")
    if not isinstance(found.get("properties", {}), dict):
        raise ValueError(f"the properties of its {what} are no object")
    return found


def _is_deeper(value: object, depth: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < 0 or any(_is_deeper(one, depth - 1) for one in inner)


def _hints(annotations: Raw) -> dict[str, bool]:
    """What the tool says of itself. It is passed on; it can raise what is asked, and lower nothing (A1)."""
    try:
        found = msgspec.json.decode(annotations or b"{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    said = found if isinstance(found, dict) else {}
    return {name: said[name] for name in HINTS if isinstance(said.get(name), bool)}
