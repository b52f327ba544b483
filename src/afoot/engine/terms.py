"""On which terms a tool is run: its limits, its approval, and whether it may be repeated."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from afoot.config import Server, ToolSettings
from afoot.core.facts import Limits
from afoot.core.ports import Tool


class Terms(Struct, frozen=True):
    """Settings per tool, per server and for all, and a hard maximum (C3, A1)."""

    tools: Mapping[str, ToolSettings] = {}  # by name, by server/name, or by a pattern of either
    servers: Mapping[str, Server] = {}
    approval: str = ""
    policy: str = ""
    max_idle_s: float | None = None
    max_ceiling_s: float | None = None

    def settle(self, tool: Tool) -> Tool:
        """The tool as it is run: the nearest setting wins, the maximum caps it."""
        server = self.servers.get(tool.server, Server())
        own = list(self._own(tool))
        changes = server.limits()
        for one in own:
            changes |= one.limits()
        limits = replace(tool.limits, **changes) if changes else tool.limits
        if "idle_s" in changes:
            limits = replace(limits, patient=False)
        tool = _safe(replace(tool, limits=lower(limits, self.max_idle_s, self.max_ceiling_s)), own)
        approval = self._approval(tool, server, own)
        concurrency = next((one.concurrency for one in own[::-1] if one.concurrency is not None), None)
        is_plain = approval == "auto" and not (tool.starts or server.concurrency or limits.patient)
        return replace(
            tool,
            approval=approval,
            plain=is_plain and tool.trusted,
            concurrency=tool.concurrency if concurrency is None else concurrency,
            server_concurrency=server.concurrency,
            lifecycle=next((one.lifecycle for one in own[::-1] if one.lifecycle), tool.lifecycle),
        )

    def _own(self, tool: Tool) -> Iterator[ToolSettings]:
        """What is set for this tool, the nearest last: patterns as they stand, then its names."""
        names = (f"{tool.server}/{tool.inner or tool.name}", tool.inner or tool.name, tool.name)
        for pattern, one in self.tools.items():
            if pattern not in names and any(fnmatchcase(name, pattern) for name in names):
                yield one
        for name in dict.fromkeys((names[1], names[2], names[0])):
            if name in self.tools:
                yield self.tools[name]

    def _approval(self, tool: Tool, server: Server, own: list[ToolSettings]) -> str:
        """The mode of a tool: what is set for it, what its author says, or what it is (A1)."""
        told = next((one.approval for one in own[::-1] if one.approval), "") or server.approval
        told = told or tool.approval or self.approval
        if told:
            return told
        if self.policy == "careful":
            return "auto" if tool.read_only and tool.trusted else "ask"
        return "ask" if tool.destructive else "auto"


def lower(limits: Limits, idle_s: float | None, ceiling_s: float | None) -> Limits:
    """The same limits, lowered to these where they are higher; nothing is ever raised."""
    if idle_s is None and ceiling_s is None:
        return limits
    idle = limits.idle_s
    if idle_s is not None:
        idle = idle_s if idle is None else min(idle, idle_s)
    ceiling = limits.ceiling_s if ceiling_s is None else min(limits.ceiling_s, ceiling_s)
    return replace(limits, idle_s=idle, ceiling_s=ceiling)


def _safe(tool: Tool, own: list[ToolSettings]) -> Tool:
    """What the settings say of a tool's safety counts, whoever it is from (U4)."""
    read_only = next((one.read_only for one in own[::-1] if one.read_only is not None), None)
    idempotent = next((one.idempotent for one in own[::-1] if one.idempotent is not None), None)
    if not tool.trusted and (read_only or idempotent):  # that, and nothing else that a stranger says of it
        tool = replace(tool, read_only=False, idempotent=False, trusted=True)
    return replace(
        tool,
        read_only=tool.read_only if read_only is None else read_only,
        idempotent=tool.idempotent if idempotent is None else idempotent,
    )
