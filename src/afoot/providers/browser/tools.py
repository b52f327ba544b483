"""`ToolDraft` is a tool of a page or plugin, checked and limited, before it has a name.

BrowserSource says where a tool is from: the origin of a page or the code of a plugin, never a claim of the
page (B7). ToolNames gives each tool a name that no other source can take (B2), also after a restart.
"""

import logging
import re
from collections.abc import Container, Iterable, Mapping
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import DecodeError, Raw, Struct, json

from afoot.config import state_folder
from afoot.config.tables import BROWSER_SERVER
from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.errors import CallerError, ToolError
from afoot.providers.arguments import check_arguments
from afoot.providers.browser.plugin import Plugin
from afoot.providers.content import clean_line, clean_text, is_deeper
from afoot.wire.browser_data import PageContext, PageTool

log = logging.getLogger("afoot.browser")

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
ANY_OBJECT = b'{"type": "object"}'
_TAB_SCHEMA = {
    "type": "string",
    "description": "which tab to run it in, such as t3 (afoot_tabs lists them); else the one used last",
}
MAX_SCHEMA_PARTS = 10_000  # each part is counted as often as a $ref leads to it
_DYNAMIC_REFS = ("$dynamicRef", "$recursiveRef")  # resolved only during a check, so their cost is unknown

PAGE_SOURCE = "page"
PLUGIN_OWNER = "plugin:"  # how the owners of the names of plugins begin
TOP_FRAME = "0"
OPAQUE_ORIGINS = ("", "null")  # such an origin equals no other, not even itself

NAME_CHARS = 64  # the longest name that every host accepts
HASH_CHARS = 8  # of these, for the hash that tells two tools apart
MAX_NAMES = 4096  # names that are remembered; beyond that, the oldest unused ones are forgotten
OWN_PREFIX = "afoot_"  # reserved for the gateway's own tools

_ODD = re.compile(r"[^A-Za-z0-9_-]+")


class BrowserSource(Struct, frozen=True):
    """The source of tools, as approvals, names, settings and people need it."""

    id: str  # page:ORIGIN, page:ORIGIN in TOP, plugin:NAME@HASH
    owner: str  # owner of their names: the same for all versions of a plugin
    name_stem: str  # the beginning of their names
    address: str  # their name in settings: ORIGIN, plugin:NAME
    description: str
    usual: str = "ask"  # off in a frame whose origin is not the tab's (A1)


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
    if output and is_bounded(output):
        definition["outputSchema"] = {**output, "type": "object"}
    if hints:
        definition["annotations"] = hints
    return ToolDraft(
        key=f"{source.id} {sha256(plain).hexdigest()}",
        source=source,
        page=tool.name,
        definition=definition,
        schema=msgspec.json.encode(own) if is_bounded(own) else ANY_OBJECT,
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


def is_bounded(schema: dict[str, Any]) -> bool:
    """Whether checking a value against this schema takes bounded time; if not, only the page checks it.

    The cost is the number of schema parts, each counted as often as a `$ref` leads to it: a page could send a
    short schema that refers to itself, or doubles its work with each level.
    """
    known: dict[str, float] = {}  # the cost of each reference

    def cost(part: object) -> float:
        if isinstance(part, list):
            return sum(map(cost, part))
        if not isinstance(part, dict):
            return 0
        to = part.get("$ref")
        more = referred(to) if isinstance(to, str) else 0
        return (
            inf if any(name in part for name in _DYNAMIC_REFS) else 1 + more + sum(map(cost, part.values()))
        )

    def referred(to: str) -> float:
        if to not in known:
            known[to] = inf  # until it is computed, so that a circle has no end
            known[to] = cost(_resolve_ref(schema, to))
        return known[to]

    try:
        return cost(schema) <= MAX_SCHEMA_PARTS
    except (LookupError, ValueError, TypeError, RecursionError):  # a reference that leads nowhere
        return False


def _resolve_ref(schema: dict[str, Any], to: str) -> object:
    """The part of a schema at `#/a/b`; raises LookupError, ValueError, TypeError."""
    if not to.startswith("#/") and to != "#":
        raise LookupError(to)
    part: Any = schema
    for step in to.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        part = part[int(name) if isinstance(part, list) else name]
    return part


def page_source(context: PageContext) -> BrowserSource:
    """The source of a page's own tools: its origin, and for a framed page also the origin of the tab."""
    origin = context.origin
    if (
        origin not in OPAQUE_ORIGINS
        and (context.top or (origin if context.frame == TOP_FRAME else "")) == origin
    ):
        return BrowserSource(
            f"page:{origin}", f"page:{origin}", name_stem(origin), origin, f"the page {origin}"
        )
    shown, above = origin or "null", context.top or "another page"
    known = f"page:{shown} in {above}"
    return BrowserSource(known, known, name_stem(origin), shown, f"a frame of {shown} in {above}", "off")


def plugin_source(plugin: Plugin) -> BrowserSource:
    """The source of a plugin's tools."""
    name = f"{PLUGIN_OWNER}{plugin.name}"
    description = f"the plugin {plugin.name}, which runs in {' and '.join(plugin.matches[:3])}"
    return BrowserSource(plugin.source, name, plugin.name, name, description)


def is_plugin_context(context: PageContext) -> bool:
    """Whether this page context belongs to a plugin."""
    return context.source != PAGE_SOURCE


def find_plugin(context: PageContext, plugins: Iterable[Plugin]) -> Plugin | None:
    """The plugin of this page context; None if it runs older code."""
    return next((one for one in plugins if one.source == context.source), None)


class ToolNames:
    """The names of tools and their owners. The first owner of a name keeps it, also over restarts.

    Only a plugin takes a name from a page that was there before: a person has installed the plugin (B2).
    """

    def __init__(self, owners: Mapping[str, str] | None = None) -> None:
        self.owners = dict(owners or {})  # by name
        self.has_changed = False

    def assign(self, wanted: str, owner: str, variant: str, used: Container[str]) -> str:
        """Give a tool the wanted name, or that name with a hash if it is another owner's.

        `variant` tells tools apart that have one name in one source; `used` are the names in use now.
        """
        if self._is_free(wanted, owner, used):
            return self._claim(wanted, owner)
        name, number = with_hash(wanted, owner), 1
        while not self._is_free(name, owner, used):
            name, number = with_hash(wanted, f"{owner} {variant} {number}"), number + 1
        return self._claim(name, owner)

    def forget_oldest(self, used: Container[str]) -> None:
        """Forget the oldest unused names, if there are over MAX_NAMES."""
        for name in [name for name in self.owners if name not in used][
            : max(0, len(self.owners) - MAX_NAMES)
        ]:
            del self.owners[name]
            self.has_changed = True

    def is_kept(self, name: str, wanted: str, owner: str) -> bool:
        """Whether a tool keeps its name: no plugin has taken it, and no page has the one that it wants."""
        return self.owners.get(name, owner) == owner and not self._is_displaced(wanted, owner)

    def _is_free(self, name: str, owner: str, used: Container[str]) -> bool:
        is_own = self.owners.get(name, owner) == owner
        return name not in used and (is_own or self._is_displaced(name, owner))

    def _is_displaced(self, name: str, owner: str) -> bool:
        """Whether a page has this name, which a plugin would have."""
        holder = self.owners.get(name, owner)
        return owner.startswith(PLUGIN_OWNER) and not holder.startswith(PLUGIN_OWNER)

    def _claim(self, name: str, owner: str) -> str:
        if self.owners.get(name) != owner:
            self.owners[name] = owner
            self.has_changed = True
        return name


def name_stem(origin: str) -> str:
    """The beginning of the names of an origin's tools: its host, and its port if that is not the default."""
    parts = urlsplit(origin)
    return parts.netloc.rpartition("@")[2] or "page"


def tool_name(name_stem: str, tool: str) -> str:
    """The name of a tool, in characters that every host accepts; a name that is cut gets a hash."""
    name = f"{_reduce(name_stem) or 'page'}_{_reduce(tool) or 'tool'}"
    name = f"page_{name}" if name.startswith(OWN_PREFIX) else name
    return name if len(name) <= NAME_CHARS else with_hash(name, f"{name_stem} {tool}")


def with_hash(name: str, what: str) -> str:
    """The name with a short hash of `what`, which is the same after a restart."""
    digest = sha256(what.encode(errors="replace")).hexdigest()[:HASH_CHARS]
    return f"{name[: NAME_CHARS - HASH_CHARS - 1]}_{digest}"


def _reduce(text: str) -> str:
    return _ODD.sub("_", text).strip("_")


def read_names(file: Path | None) -> dict[str, str]:
    """Read names and their owners; empty if there is no file, or it cannot be read."""
    if file is None:
        return {}
    try:
        return json.decode(file.read_bytes(), type=dict[str, str])
    except (OSError, DecodeError, UnicodeDecodeError):
        return {}


def write_names(file: Path | None, owners: dict[str, str]) -> None:
    """Write names and their owners. No call depends on them, so a full disk is only logged."""
    if file is None:
        return
    try:
        state_folder.write_private(file, json.encode(owners))
    except CallerError as error:
        log.warning("the names of pages' tools are not kept: %s", error)
