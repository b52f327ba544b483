"""`Catalog` knows which tools there are, under which names, and who runs them.

`EffectiveSettings` says how a tool is run: its limits, its approval, whether it may be repeated. `Durations`
knows how long each tool usually takes.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from afoot.config.settings import Server, ToolSettings
from afoot.config.tables import LOCAL_SERVER
from afoot.core.facts import Limits
from afoot.core.ports import CallRow, Provider, Tool
from afoot.core.redaction import DEFAULT_REDACTOR, Redactor
from afoot.errors import Ambiguous, Refused, UnknownName

MAX_NAME_CHARS = 64  # characters of a name that every host takes
DIGEST_CHARS = 8  # of them for what tells tools of the same name apart
MAX_RUNS = 200  # of each tool, whose durations are kept
MIN_RUN_S = 0.05  # shorter runs do not count for how long a tool takes
DETACHED_HINT = (
    "It runs on if its caller goes away; it is stopped with the tool afoot_cancel, with tasks/cancel, "
    "in the console or with `afoot cancel`."
)
_ADDRESS = re.compile(r"([^/:]*://[^/]*|[^/]*)(?:/(.*))?", re.DOTALL)  # an origin, and a name there


class Catalog:
    """The tools on offer, by name. `version` rises with every change, and listeners are told."""

    def __init__(self, settings: "EffectiveSettings | None" = None) -> None:
        self.effective_settings = settings or EffectiveSettings()
        self._providers: dict[str, Provider] = {}
        self.known: dict[str, tuple[Provider, Tool]] = {}  # every tool, and who runs it
        self._off: set[str] = set()
        self._listeners: list[Callable[[], object]] = []
        self.version = 0

    def put(self, provider: Provider) -> None:
        """Offer a provider's tools, in place of an older provider of the same name."""
        self._providers[provider.name] = provider
        self.renew()

    def remove(self, name: str) -> None:
        """Offer a provider's tools no more; raises UnknownName."""
        if self._providers.pop(name, None) is None:
            raise UnknownName("server", name, self._providers)
        self.renew()

    def get(self, name: str) -> tuple[Provider, Tool]:
        """A tool and who runs it, by its name or as server/name; raises UnknownName, Ambiguous, Refused."""
        if name in self.known:
            return self.known[name]
        meant = [found for found in self.known.values() if name in _other_names(found[1])]
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise Ambiguous("tool", name, [tool.name for _, tool in meant])
        if name in self._off:
            raise Refused(f"tool {name} is switched off by the operator")
        server, slash, _ = name.partition("/")
        if slash and server not in self._providers:
            raise UnknownName("server", server, self._providers)
        others = set().union(*(_other_names(tool) for tool in self))
        raise UnknownName(
            "tool", name, [*self.known, *sorted(one for one in others if slash or "/" not in one)]
        )

    def newest(self, tool: Tool) -> tuple[Provider, Tool] | None:
        """A tool as it is now, whatever its name here; None if its server does not offer it any more."""
        found = self.known.get(tool.name)
        if found is not None and (found[1] is tool or _identity(found[1]) == _identity(tool)):
            return found
        return next((one for one in self.known.values() if _identity(one[1]) == _identity(tool)), None)

    def __iter__(self) -> Iterator[Tool]:
        return iter([tool for _, tool in self.known.values() if not tool.gone])

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call this after every change; the function that is returned ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def renew(self) -> None:
        """Take in the tools that providers offer now, with the settings in force."""
        known = dict[str, tuple[Provider, Tool]]()
        self._off = set[str]()
        for provider, tool in self._named():
            effective = self.effective_settings.apply_to(tool)
            if effective.approval == "off":
                self._off |= {tool.name, *_other_names(tool)}
            else:
                known[tool.name] = provider, effective
        self.known = known
        self.version += 1
        for listener in list(self._listeners):
            listener()

    def _named(self) -> Iterator[tuple[Provider, Tool]]:
        """Every tool under a name of its own: where names collide, those of servers get a prefix (U3).

        Pages come last: whatever a page calls its tool, nobody else's name changes (B2).
        """
        every = [(provider, tool) for provider in self._providers.values() for tool in provider.tools()]
        offered = [(provider, tool) for provider, tool in every if not tool.source]
        times = Counter(tool.name for _, tool in offered)
        taken = {
            tool.name for provider, tool in offered if times[tool.name] == 1 or provider.name == LOCAL_SERVER
        }
        for provider, tool in offered:
            if tool.name not in taken or (times[tool.name] > 1 and provider.name != LOCAL_SERVER):
                tool = _prefixed(tool, taken)
                taken.add(tool.name)
            yield provider, tool
        taken |= times.keys()
        for provider, tool in every:
            if tool.source:
                if tool.name in taken:
                    tool = _marked(tool, taken)
                taken.add(tool.name)
                yield provider, tool


class EffectiveSettings(Struct, frozen=True):
    """The settings for a tool: its own, those of its server, those for all, and a hard maximum (C3, A1)."""

    tools: Mapping[str, ToolSettings] = {}  # by name, by server/name, or by a pattern of either
    servers: Mapping[str, Server] = {}
    approval: str = ""
    policy: str = ""
    max_idle_s: float | None = None
    max_ceiling_s: float | None = None
    redactor: Redactor = DEFAULT_REDACTOR

    def apply_to(self, tool: Tool) -> Tool:
        """The tool as it is run: the nearest setting wins, the maximum caps it."""
        server = self.servers.get(tool.server, Server())
        own = list(self._own(tool))
        changes = server.limits()
        for one in own:
            changes |= one.limits()
        limits = replace(tool.limits, **changes) if changes else tool.limits
        if "idle_s" in changes:
            limits = replace(limits, patient=False)
        tool = _safe(replace(tool, limits=lower_limits(limits, self.max_idle_s, self.max_ceiling_s)), own)
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
        """The settings of a tool's child processes: the nearest wins."""
        return {key: value for one in self._own(tool) for key, value in one.isolation().items()}

    def _own(self, tool: Tool) -> Iterator[ToolSettings]:
        """The settings of this tool, the nearest last: by patterns in their order, then by its names."""
        own = tool.inner or tool.name
        names = (own, tool.name, f"{tool.server}/{own}")
        if tool.source:  # where another tool has its own name, the settings of that name are for the other
            names = (tool.name, f"{tool.server}/{own}", tool.address)
        for pattern, one in self.tools.items():
            if pattern not in names and _fits(pattern, tool, names):
                yield one if _means(pattern, tool) else _stricter(one)
        for name in dict.fromkeys(names):
            if name in self.tools:
                yield self.tools[name]

    def _approval(self, tool: Tool, server: Server, own: list[ToolSettings]) -> str:
        """The approval of a tool: by its settings, by its author, or by its annotations (A1)."""
        approval = next((one.approval for one in own[::-1] if one.approval), "")
        if tool.default_approval == "off":
            return approval or "off"
        approval = approval or server.approval or tool.approval or self.approval or tool.default_approval
        if approval:
            return approval
        if self.policy == "careful":
            return "auto" if tool.read_only and tool.trusted else "ask"
        return "ask" if tool.destructive else "auto"


class Durations:
    """The durations of the newest runs of each tool that ended well, in seconds on the clock (P9).

    The clock stands still while somebody is asked, so the time that people took is not in them. A run counts
    the same whether it ended here or stands in the history: `CallRow.ran_s` is `Call.spent_s` at the end.
    Runs shorter than MIN_RUN_S are left out: nobody asks how long those take, and they are to cost nothing.
    """

    def __init__(self) -> None:
        self._ran_s: dict[str, deque[float]] = {}

    def add(self, tool: str, ran_s: float) -> None:
        """Add a run that ended well; the oldest beyond MAX_RUNS is forgotten."""
        runs = self._ran_s.get(tool)
        if runs is None:
            runs = self._ran_s[tool] = deque(maxlen=MAX_RUNS)
        runs.append(ran_s)

    def add_history(self, rows: Sequence[CallRow]) -> None:
        """Add the runs of the history, newest first."""
        for row in reversed(rows):
            if row.outcome == "ok" and row.ran_s is not None and row.ran_s >= MIN_RUN_S:
                self.add(row.tool, row.ran_s)

    def of(self, tool: str) -> list[float]:
        """The durations of the newest runs of a tool, shortest first."""
        return sorted(self._ran_s.get(tool, ()))


def _prefixed(tool: Tool, taken: set[str]) -> Tool:
    """The tool under a name that says whose it is."""
    server = re.sub(r"[^A-Za-z0-9_-]", "_", tool.server)
    name = f"{server[: max(8, MAX_NAME_CHARS - 2 - len(tool.name))]}__{tool.name}"
    number = 2
    while name in taken:
        name, number = f"{name.removesuffix(f'_{number - 1}')}_{number}", number + 1
    return _renamed(tool, name)


def _marked(tool: Tool, taken: set[str]) -> Tool:
    """The tool of a page under a name that no other tool has: its own, with a digest that stays the same."""
    digest = sha256(f"{tool.source} {tool.name}".encode()).hexdigest()
    name = f"{tool.name[: MAX_NAME_CHARS - DIGEST_CHARS - 1]}_{digest[:DIGEST_CHARS]}"
    number = 2
    while name in taken:
        name, number = f"{name[: MAX_NAME_CHARS - 3]}_{number}", number + 1
    return _renamed(tool, name)


def _renamed(tool: Tool, name: str) -> Tool:
    definition = {**json.decode(tool.definition), "name": name}
    return replace(tool, name=name, inner=tool.name, definition=Raw(json.encode(definition)))


def _identity(tool: Tool) -> tuple[str, str, str]:
    """The parts of a tool that stay the same over all its definitions."""
    return tool.server, tool.inner or tool.name, tool.address


def _other_names(tool: Tool) -> set[str]:
    """The other names of a tool: with its server, and its own name where it has another one here."""
    own = tool.inner or tool.name
    return {f"{tool.server}/{own}"} if tool.source else {f"{tool.server}/{own}", own}


def _detached(definition: Raw) -> Raw:
    """The definition of a tool that outlives its caller: it says how it is stopped (X3)."""
    decoded = json.decode(definition)
    words = " ".join(part for part in (str(decoded.get("description") or ""), DETACHED_HINT) if part)
    return Raw(json.encode({**decoded, "description": words}))


def _nearest(own: list[ToolSettings], key: str, tool: Tool) -> str:
    """The nearest setting of the tool, or else what its author says."""
    return next((found for one in own[::-1] if (found := getattr(one, key))), getattr(tool, key))


def _fits(pattern: str, tool: Tool, names: Iterable[str]) -> bool:
    """Whether a pattern is for this tool. A page chooses names: a star for an origin ends where that does."""
    if not tool.source or "://" not in pattern:
        return any(fnmatchcase(name, pattern) for name in names)
    wanted, is_there = _ADDRESS.match(pattern), _ADDRESS.match(tool.address)
    assert wanted is not None and is_there is not None
    origin, name = is_there.groups(default="")
    return fnmatchcase(origin, wanted[1]) and fnmatchcase(name, wanted[2] or "*")


def _means(pattern: str, tool: Tool) -> bool:
    """Whether a pattern names the origin of the tool. Pages choose names: a name alone trusts nobody (B7)."""
    return not tool.source or pattern.startswith((f"{tool.server}/", "plugin:")) or "://" in pattern


def _stricter(one: ToolSettings) -> ToolSettings:
    """The settings without what would ask less, or run more often."""
    approval = one.approval if one.approval != "auto" else ""
    return replace(one, approval=approval, read_only=None, idempotent=None)


def lower_limits(
    limits: Limits, idle_s: float | None, ceiling_s: float | None, *, by_caller: bool = False
) -> Limits:
    """The same limits, lowered to these where they are higher; none is ever raised."""
    if idle_s is not None and (limits.idle_s is None or idle_s < limits.idle_s):
        limits = replace(limits, idle_s=idle_s, idle_by_caller=by_caller)
    if ceiling_s is not None and ceiling_s < limits.ceiling_s:
        limits = replace(limits, ceiling_s=ceiling_s, ceiling_by_caller=by_caller)
    return limits


def _safe(tool: Tool, own: list[ToolSettings]) -> Tool:
    """The tool with what the settings say of its safety, which counts whoever it is from (U4)."""
    read_only = next((one.read_only for one in own[::-1] if one.read_only is not None), None)
    idempotent = next((one.idempotent for one in own[::-1] if one.idempotent is not None), None)
    if not tool.trusted and (read_only or idempotent):  # this counts, and nothing that a stranger says of it
        tool = replace(tool, read_only=False, idempotent=False, trusted=True)
    return replace(
        tool,
        read_only=tool.read_only if read_only is None else read_only,
        idempotent=tool.idempotent if idempotent is None else idempotent,
    )
