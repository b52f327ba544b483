"""`read_tools` makes tools of the definitions that a server lists, and says why others cannot be offered."""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from afoot.config.settings import Server
from afoot.core.facts import NOTHING, Limits
from afoot.core.ports import Tool
from afoot.providers.content import clean_line, is_deeper
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.wire import mcp_2026
from afoot.wire.client import incoming
from afoot.wire.mcp_2026 import ParamHeader

MAX_DEPTH: Final = 100  # of an entry: it is decoded again wherever it is listed, on any stack
MAX_REFUSED_SHOWN: Final = 100  # tools of one list that cannot be offered, each in a line
REFUSED_CHARS: Final = 200
LIMIT_SETTINGS: Final = ("idle_s", "ceiling_s", "answer_s", "queue_s", "grace_s", "start_s")
ReadTools = tuple[dict[str, "UpstreamTool"], list[str]]  # by their names; and why others cannot be offered


class ToolHints(Struct):
    """The annotations of a tool that count here; None where the tool does not say."""

    read_only: bool | None = field(name="readOnlyHint", default=None)
    destructive: bool | None = field(name="destructiveHint", default=None)
    idempotent: bool | None = field(name="idempotentHint", default=None)


class ToolDefinition(Struct):
    """The fields of a tool's definition that count here; the definition is passed on as it came."""

    name: str
    schema: Raw = field(name="inputSchema")
    hints: ToolHints | None = field(name="annotations", default=None)
    execution: Raw = NOTHING


class UpstreamTool(Struct, frozen=True):
    """A tool of a server, and what is needed to call it."""

    tool: Tool
    schema: bytes
    mirrors: list[ParamHeader] = []  # arguments that are repeated in HTTP headers
    task_support: str = ""  # whether it runs as a task, by its definition of 2025-11-25


_definition_decoder = msgspec.json.Decoder(ToolDefinition)


def server_limits(server: Server, limits: Limits) -> Limits:
    """Return the limits of a server's tools. Silence counts from the start only where the settings say so."""
    own = {clock: getattr(server, clock) for clock in LIMIT_SETTINGS if getattr(server, clock) is not None}
    return replace(limits, patient=server.idle_s is None, **own)


def read_tools(
    definitions: Iterable[Raw], server: Server, limits: Limits, server_log: ServerLog
) -> ReadTools:
    """Return the tools that can be offered, by their names at the server, and why others cannot."""
    reading = ToolReading(server, limits, server_log)
    reading.add(definitions)
    return reading.found, reading.refused


class ToolReading:
    """The tools of a list, as far as it was read: those that can be offered, and why others cannot.

    Those are counted as anomalies, too.
    """

    def __init__(self, server: Server, limits: Limits, server_log: ServerLog) -> None:
        self.found: dict[str, UpstreamTool] = {}
        self.refused: list[str] = []
        self._server = server
        self._limits = limits
        self._server_log = server_log

    def add(self, definitions: Iterable[Raw]) -> None:
        """Read more definitions of the list."""
        for raw in definitions:
            self._add(raw)

    def _add(self, raw: Raw) -> None:
        try:
            definition = _definition_decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            self._refuse("bad_tool", str(error))
            return
        if not definition.name or not definition.name.isprintable():
            self._refuse("bad_tool", f"{definition.name!r} is no name for a tool")
        elif problem := _unreadable(raw):
            self._refuse("bad_tool", f"{definition.name}: {problem}")
        elif definition.name in self.found:
            self._refuse("tool_named_twice", f"{definition.name} stands twice in its list; the first counts")
        elif b"x-mcp-header" in bytes(raw) and mcp_2026.has_invalid_param_headers(raw):
            # The protocol demands that such a tool is not offered.
            self._refuse("bad_tool", f"{definition.name}: its x-mcp-header is not valid")
        else:
            self.found[definition.name] = _read_tool(
                raw, definition, self._server, self._limits, self._server_log.server
            )

    def _refuse(self, kind: str, why: str) -> None:
        self._server_log.count_anomaly(kind, why)
        if len(self.refused) < MAX_REFUSED_SHOWN:
            self.refused.append(clean_line(why, REFUSED_CHARS) or "")


def _unreadable(raw: Raw) -> str:
    """Why a definition cannot be decoded wherever tools are listed; an empty text if it can."""
    try:
        is_deep = is_deeper(msgspec.json.decode(raw), MAX_DEPTH)
    except msgspec.DecodeError as error:  # JSON all the same: a number that is out of range
        return f"its definition cannot be read: {error}"
    except RecursionError:
        is_deep = True
    return f"its definition is nested over {MAX_DEPTH} deep" if is_deep else ""


def _read_tool(
    raw: Raw, definition: ToolDefinition, server: Server, limits: Limits, name: str
) -> UpstreamTool:
    hints = definition.hints or ToolHints()
    read_only, idempotent = definition.name in server.read_only, definition.name in server.idempotent
    # A tool that the settings list as read-only or idempotent is that, whatever it says; its own hints are
    # ignored then.
    is_listed = (read_only or idempotent) and not server.trust_annotations
    tool = Tool(
        name=definition.name,
        server=name,
        definition=raw,
        limits=limits,
        read_only=read_only or (hints.read_only is True and not is_listed),
        idempotent=idempotent or (hints.idempotent is True and not is_listed),
        destructive=hints.destructive is True,
        digest=_definition_digest(raw),
        inner=definition.name,
        trusted=server.trust_annotations or is_listed,
        approval=server.approval,
        starts=True,
    )
    support = incoming.read_task_support(definition.execution)
    return UpstreamTool(tool, bytes(definition.schema), mcp_2026.param_headers(bytes(raw)), support)


def _definition_digest(raw: Raw) -> str:
    """Return a digest that the order of keys does not change: servers differ in it from era to era."""
    canonical = msgspec.json.encode(msgspec.json.decode(raw), order="deterministic")
    return hashlib.sha256(canonical).hexdigest()
