"""On which terms a tool is run: its limits, its approval, and whether it may be repeated."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from afoot.config import Server, ToolSettings
from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.core.redact import USUAL, Redactor

STOPPED = (
    "It runs on if its caller goes away; it is stopped with the tool afoot_cancel, with tasks/cancel, "
    "in the console or with `afoot cancel`."
)
_ADDRESS = re.compile(r"([^/:]*://[^/]*|[^/]*)(?:/(.*))?", re.DOTALL)  # an origin, and a name there


class Terms(Struct, frozen=True):
    """Settings per tool, per server and for all, and a hard maximum (C3, A1)."""

    tools: Mapping[str, ToolSettings] = {}  # by name, by server/name, or by a pattern of either
    servers: Mapping[str, Server] = {}
    approval: str = ""
    policy: str = ""
    max_idle_s: float | None = None
    max_ceiling_s: float | None = None
    redactor: Redactor = USUAL

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
        on_disconnect = _nearest(own, "on_disconnect", tool)
        task, join = _nearest(own, "task", tool), _nearest(own, "join", tool).removesuffix("off")
        concurrency = next((one.concurrency for one in own[::-1] if one.concurrency is not None), None)
        is_plain = approval == "auto" and not (tool.starts or server.concurrency or limits.patient)
        return replace(
            tool,
            approval=approval,
            plain=is_plain and tool.trusted and not (join or task == "required"),
            concurrency=tool.concurrency if concurrency is None else concurrency,
            server_concurrency=server.concurrency,
            lifecycle=_nearest(own, "lifecycle", tool),
            task=task,
            on_disconnect=on_disconnect,
            definition=_detached(tool.definition) if on_disconnect == "detach" else tool.definition,
            join=join,
            suspects=self.redactor.scan(tool.definition),
        )

    def isolation(self, tool: Tool) -> dict[str, float]:
        """What is set of a tool's child processes: the nearest wins."""
        return {key: value for one in self._own(tool) for key, value in one.isolation().items()}

    def _own(self, tool: Tool) -> Iterator[ToolSettings]:
        """What is set for this tool, the nearest last: patterns as they stand, then its names."""
        own = tool.inner or tool.name
        names = (own, tool.name, f"{tool.server}/{own}")
        if tool.source:  # one that had to give way to another's name has nothing of what is set for that
            names = (tool.name, f"{tool.server}/{own}", tool.address)
        for pattern, one in self.tools.items():
            if pattern not in names and _fits(pattern, tool, names):
                yield one if _means(pattern, tool) else _stricter(one)
        for name in dict.fromkeys(names):
            if name in self.tools:
                yield self.tools[name]

    def _approval(self, tool: Tool, server: Server, own: list[ToolSettings]) -> str:
        """The mode of a tool: what is set for it, what its author says, or what it is (A1)."""
        told = next((one.approval for one in own[::-1] if one.approval), "")
        if tool.usual == "off":
            return told or "off"
        told = told or server.approval or tool.approval or self.approval or tool.usual
        if told:
            return told
        if self.policy == "careful":
            return "auto" if tool.read_only and tool.trusted else "ask"
        return "ask" if tool.destructive else "auto"


def _detached(definition: Raw) -> Raw:
    """The definition of a tool that outlives its caller: it says how it is stopped (X3)."""
    told = json.decode(definition)
    words = " ".join(part for part in (str(told.get("description") or ""), STOPPED) if part)
    return Raw(json.encode({**told, "description": words}))


def _nearest(own: list[ToolSettings], key: str, tool: Tool) -> str:
    """What is set nearest to the tool, or else what its author says."""
    return next((found for one in own[::-1] if (found := getattr(one, key))), getattr(tool, key))


def _fits(pattern: str, tool: Tool, names: Iterable[str]) -> bool:
    """Whether a pattern is for this tool. A page chooses names: stars for an origin end where that does."""
    if not tool.source or "://" not in pattern:
        return any(fnmatchcase(name, pattern) for name in names)
    wanted, is_there = _ADDRESS.match(pattern), _ADDRESS.match(tool.address)
    assert wanted is not None and is_there is not None
    origin, name = is_there.groups(default="")
    return fnmatchcase(origin, wanted[1]) and fnmatchcase(name, wanted[2] or "*")


def _means(pattern: str, tool: Tool) -> bool:
    """Whether a pattern says where the tool is from. Pages choose names: one alone trusts nobody (B7)."""
    return not tool.source or pattern.startswith((f"{tool.server}/", "plugin:")) or "://" in pattern


def _stricter(one: ToolSettings) -> ToolSettings:
    """The settings without what would ask less, or run more often."""
    approval = one.approval if one.approval != "auto" else ""
    return replace(one, approval=approval, read_only=None, idempotent=None)


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
