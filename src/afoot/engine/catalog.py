"""`Catalog` lists the offered tools, with their names and the providers that run them.

A name belongs to its server (U12): no tool gets a name in the range of another server or of the gateway, and
`NameNote` says which tools are therefore called otherwise. `EffectiveSettings` says how a tool is run: its
limits, its approval, whether it may be repeated. `Durations` knows how long each tool usually takes.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from afoot.config.settings import Server, ToolSettings
from afoot.config.tables import BUILT_IN_SERVERS, LOCAL_SERVER
from afoot.core.facts import Limits, Opened
from afoot.core.names import (
    BARE_ANYTHING,
    BARE_NOTHING,
    BARE_STRICTER,
    OWN_PREFIX,
    SEPARATOR,
    ServerNames,
    full_name,
    offered_name,
    own_name,
    pattern_fits,
    pattern_trusts,
)
from afoot.core.ports import CallRow, Provider, Tool
from afoot.core.redaction import DEFAULT_REDACTOR, Redactor
from afoot.errors import Ambiguous, Refused, UnknownName

MAX_CLAIMS = 2000  # plain names that one server may have had; its further tools get its prefix
MAX_RUNS = 200  # of each tool, whose durations are kept
MIN_RUN_S = 0.05  # shorter runs do not count for how long a tool takes
DETACHED_HINT = (
    "It runs on if its caller goes away; it is stopped with the tool afoot_cancel, with tasks/cancel, "
    "in the console or with `afoot cancel`."
)
SHOWN_CHARS = 100  # of a server's own name for its tool, in a note
COLLISION = "another tool has that name"  # an everyday reason, and no problem

log = logging.getLogger("afoot.catalog")


class NameNote(Struct, frozen=True):
    """A tool that has another name here than at its server, or settings that do not reach it, and why."""

    server: str
    tool: str  # its name at its server
    name: str  # its name here
    why: str

    @property
    def is_problem(self) -> bool:
        """Whether a person should look at it."""
        return self.why != COLLISION

    def __str__(self) -> str:
        own = self.tool if len(self.tool) <= SHOWN_CHARS else f"{self.tool[:SHOWN_CHARS]}…"
        called = f" is offered as {self.name}" if self.name != self.tool else ""
        return f"{self.server}/{own}{called}: {self.why}"


class Catalog:
    """The tools on offer, by name. `version` rises with every change, and listeners are told."""

    def __init__(self, settings: "EffectiveSettings | None" = None) -> None:
        self.effective_settings = settings or EffectiveSettings()
        self._providers: dict[str, Provider] = {}
        self.known: dict[str, tuple[Provider, Tool]] = {}  # every tool, and who runs it
        self.notes: list[NameNote] = []
        self._off: set[str] = set()
        self._claims: dict[str, str] = {}  # plain names that were offered, and whose they are
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
        # A person took it away. A server that only changes its list keeps its names from others.
        self._claims = {claimed: server for claimed, server in self._claims.items() if server != name}
        self.renew()

    def get(self, name: str) -> tuple[Provider, Tool]:
        """A tool and who runs it, by its name or as server/name; raises UnknownName, Ambiguous, Refused."""
        if "/" in name:
            return self._get_of_server(name)
        if name in self.known:
            return self.known[name]
        meant = [found for found in self.known.values() if _is_other_name(name, found[1])]
        if len(meant) > 1:
            raise Ambiguous("tool", name, [tool.name for _, tool in meant])
        # A client with an older list may mean the tool of another server, which is gone.
        if meant and self._claims.get(name, meant[0][1].server) == meant[0][1].server:
            return meant[0]
        if name in self._off:
            raise _switched_off(name)
        raise UnknownName("tool", name, [*self.known, *sorted(set(map(own_name, self)) - self.known.keys())])

    def find_again(self, opened: Opened) -> str:
        """The name by which the tool of an earlier call is called now: that of the same server (U12)."""
        same = (tool.name for _, tool in self.known.values() if is_call_of(opened, tool))
        return next(same, f"{opened.server}/{opened.inner or opened.tool}")

    def _get_of_server(self, name: str) -> tuple[Provider, Tool]:
        """The tool that server/name means: the server comes first, whatever another calls its tools (U12)."""
        servers = [one for one in self._providers if name.startswith(f"{one}/")]
        for server in sorted(servers, key=len, reverse=True):
            for found in self.known.values():
                if found[1].server == server and full_name(found[1]) == name:
                    return found
        if name in self._off:
            raise _switched_off(name)
        if not servers:
            raise UnknownName("server", name.partition("/")[0], self._providers)
        raise UnknownName("tool", name, [*map(full_name, self), *self.known])

    def newest(self, tool: Tool) -> tuple[Provider, Tool] | None:
        """A tool as it is now, whatever its name here; None if its server does not offer it any more."""
        found = self.known.get(tool.name)
        if found is not None and (found[1] is tool or _identity(found[1]) == _identity(tool)):
            return found
        return next((one for one in self.known.values() if _identity(one[1]) == _identity(tool)), None)

    def __iter__(self) -> Iterator[Tool]:
        return iter([tool for _, tool in self.known.values() if not tool.gone])

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call a function after every change; the returned function ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def renew(self) -> None:
        """Take in the tools that providers offer now, with the settings in force."""
        known = dict[str, tuple[Provider, Tool]]()
        before = set(self.notes)
        self.notes = list[NameNote]()
        self._off = set[str]()
        for provider, tool in self._named():
            effective = self.effective_settings.apply_to(tool)
            if effective.approval == "off":
                self._off |= {tool.name, full_name(tool)}
                self._off |= {own_name(tool)} if tool.bare != BARE_NOTHING and not tool.source else set()
            else:
                known[tool.name] = provider, effective
                self._claim(tool)
                self.notes += _unheeded_settings(tool, self.effective_settings.tools)
        self.known = known
        self.version += 1
        for note in self.notes:
            if note not in before:
                log.log(logging.WARNING if note.is_problem else logging.INFO, "tool %s", note)
        for listener in list(self._listeners):
            listener()

    def _named(self) -> Iterator[tuple[Provider, Tool]]:
        """Every tool under a name of its own: where names collide, those of servers get a prefix (U3, U12).

        Pages come last: whatever a page calls its tool, nobody else's name changes (B2).
        """
        every = [(provider, tool) for provider in self._providers.values() for tool in provider.tools()]
        offered = [(provider, tool) for provider, tool in every if not tool.source]
        servers = self._servers()
        names = ServerNames(servers)
        has_functions = any(tool.server == LOCAL_SERVER for _, tool in offered)
        is_sole = len(servers - BUILT_IN_SERVERS.keys()) == 1 and not has_functions
        claims = Counter(self._claims.values())
        wanted = [_wanted_name(tool, names) for _, tool in offered]
        times = Counter(name for name, _ in wanted)
        taken = {
            name
            for (_, tool), (name, why) in zip(offered, wanted, strict=True)
            if not why and (times[name] == 1 or tool.server == LOCAL_SERVER)
        }
        for (provider, tool), (name, why) in zip(offered, wanted, strict=True):
            if tool.server in BUILT_IN_SERVERS:
                bare = BARE_ANYTHING
            elif names.is_reserved(own_name(tool), tool.server):
                bare = BARE_NOTHING
            else:
                bare = BARE_ANYTHING if is_sole else BARE_STRICTER
            alias = names.prefixed(tool.server, own_name(tool))
            tool = replace(tool, alias=alias, bare=bare)
            if not why and tool.server != LOCAL_SERVER and times[name] > 1:
                why = COLLISION
            elif not why:
                why = self._why_not_plain(name, tool, claims[tool.server])
            if why:
                name = (
                    alias
                    if alias not in taken
                    else names.prefixed(tool.server, own_name(tool), is_marked=True)
                )
            elif name != tool.name:
                why = "its name has characters that hosts refuse, or is too long"
            taken.add(name)
            yield provider, self._renamed(tool, name, why) if why else tool
        taken |= times.keys()
        for provider, tool in every:
            if tool.source:
                name, whose = tool.name, tool.source
                while name in taken or names.is_reserved(name, tool.server):
                    name, whose = names.outside(tool.name, whose), f"{whose} again"
                taken.add(name)
                yield provider, tool if name == tool.name else _with_name(tool, name)

    def _servers(self) -> set[str]:
        """Every server there may be: names of one that is down are not free (U12)."""
        return {*self._providers, *self.effective_settings.servers, *BUILT_IN_SERVERS}

    def _why_not_plain(self, name: str, tool: Tool, claims: int) -> str:
        """Why a server may not offer a tool without its prefix; empty if it may."""
        owner = self._claims.get(name, tool.server)
        if tool.server == LOCAL_SERVER or owner == LOCAL_SERVER:
            return ""
        if owner != tool.server:
            return f"server {owner} has offered a tool of that name"
        is_full = name not in self._claims and claims >= MAX_CLAIMS
        return f"its server has had over {MAX_CLAIMS} names" if is_full else ""

    def _claim(self, tool: Tool) -> None:
        """Keep a plain name for its server, so that no other gets the calls of clients with an older list."""
        if not tool.source and SEPARATOR not in tool.name and tool.name not in self._claims:
            self._claims[tool.name] = tool.server

    def _renamed(self, tool: Tool, name: str, why: str) -> Tool:
        self.notes.append(NameNote(tool.server, own_name(tool), name, why))
        return _with_name(tool, name)


class EffectiveSettings(Struct, frozen=True):
    """The settings that apply to a tool: its own, its server's, the general ones and the maxima (C3, A1)."""

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
            per_process=tool.per_process and concurrency is None,
            server_concurrency=server.concurrency,
            lifecycle=_nearest(own, "lifecycle", tool),
            task=task,
            on_disconnect=on_disconnect,
            definition=_detached(tool.definition) if on_disconnect == "detach" else tool.definition,
            join=join,
            worker=_nearest(own, "worker", tool),
            suspects=self.redactor.scan(tool.definition),
        )

    def isolation(self, tool: Tool) -> dict[str, float]:
        """The settings of a tool's child processes: the nearest wins."""
        return {key: value for one in self._own(tool) for key, value in one.isolation().items()}

    def _own(self, tool: Tool) -> Iterator[ToolSettings]:
        """The settings of this tool, the nearest last: by patterns in their order, then by its names."""
        names = (own_name(tool), tool.alias, full_name(tool))
        if tool.source:  # where another tool has its own name, the settings of that name are for the other
            names = (tool.name, full_name(tool), tool.address)
        exact = [name for name in dict.fromkeys(names) if name in self.tools]
        for pattern in [*(one for one in self.tools if one not in exact), *exact]:
            if pattern_fits(pattern, tool):
                one = self.tools[pattern]
                yield one if pattern_trusts(pattern, tool) else _stricter(one)

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
        self._ran_s: dict[str, deque[float]] = {}  # by server/name

    def add(self, tool: str, ran_s: float) -> None:
        """Add a successful run of the tool server/name; beyond MAX_RUNS, the oldest run is dropped."""
        runs = self._ran_s.get(tool)
        if runs is None:
            runs = self._ran_s[tool] = deque(maxlen=MAX_RUNS)
        runs.append(ran_s)

    def add_history(self, rows: Sequence[CallRow]) -> None:
        """Add the runs of the history, newest first."""
        for row in reversed(rows):
            if row.outcome == "ok" and row.ran_s is not None and row.ran_s >= MIN_RUN_S:
                self.add(recorded_name(row), row.ran_s)

    def of(self, tool: str) -> list[float]:
        """The durations of the newest runs of a tool, shortest first."""
        return sorted(self._ran_s.get(tool, ()))


def recorded_name(row: CallRow) -> str:
    """The tool of a call in the history as server/name: a row has the name that was shown then."""
    return f"{row.server}/{row.tool.removeprefix(_prefix(row.server))}"


@lru_cache(1024)
def _prefix(server: str) -> str:
    return ServerNames([server]).prefixed(server, "")


def is_call_of(opened: Opened, tool: Tool) -> bool:
    """Whether a call is one of this tool: of the same server, and of the same name there (U12)."""
    if opened.server != tool.server:
        return False
    own = own_name(tool)
    return opened.inner == own if opened.inner else opened.tool in (own, tool.alias, tool.name)


def _wanted_name(tool: Tool, names: ServerNames) -> tuple[str, str]:
    """The name that a tool would have here, and why it cannot have it, if so."""
    if tool.server in BUILT_IN_SERVERS:
        is_ours = tool.server != LOCAL_SERVER or not tool.name.startswith(OWN_PREFIX)
        return tool.name, "" if is_ours else f"names that begin with {OWN_PREFIX} are the gateway's own"
    name = offered_name(tool.name)
    if names.is_reserved(tool.name, tool.server) or names.is_reserved(name, tool.server):
        owner = names.owner(name)
        whose = "the gateway's own" if owner is None else f"those of server {owner}"
        return (
            name,
            "a slash in a name stands between a server and its tool"
            if "/" in tool.name
            else f"names like that are {whose}",
        )
    return name, ""


def _is_other_name(name: str, tool: Tool) -> bool:
    """Whether a tool may be called by this name, too: by its own, or with the prefix of its server."""
    return not tool.source and (name == tool.alias or (name == own_name(tool) and tool.bare != BARE_NOTHING))


def _unheeded_settings(tool: Tool, tables: Mapping[str, ToolSettings]) -> Iterator[NameNote]:
    """Notes on the tables that would trust this tool if they named its server (U12)."""
    for pattern, one in tables.items() if tool.bare == BARE_STRICTER else ():
        if _stricter(one) != one and pattern_fits(pattern, tool) and not pattern_trusts(pattern, tool):
            why = f'[tools."{pattern}"] names no server, so it cannot make this one ask less'
            fix = f'write [tools."{full_name(tool)}"] if it is meant'
            yield NameNote(tool.server, own_name(tool), tool.name, f"{why}; {fix}")


def _with_name(tool: Tool, name: str) -> Tool:
    definition = {**json.decode(tool.definition), "name": name}
    return replace(tool, name=name, inner=own_name(tool), definition=Raw(json.encode(definition)))


def _switched_off(name: str) -> Refused:
    return Refused(f"tool {name} is switched off by the operator")


def _identity(tool: Tool) -> tuple[str, str, str]:
    """The parts of a tool that stay the same over all its definitions."""
    return tool.server, own_name(tool), tool.address


def _detached(definition: Raw) -> Raw:
    """The definition of a tool that outlives its caller: it says how it is stopped (X3)."""
    decoded = json.decode(definition)
    words = " ".join(part for part in (str(decoded.get("description") or ""), DETACHED_HINT) if part)
    return Raw(json.encode({**decoded, "description": words}))


def _nearest(own: list[ToolSettings], key: str, tool: Tool) -> str:
    """The nearest setting of the tool, or else what its author says."""
    return next((found for one in own[::-1] if (found := getattr(one, key))), getattr(tool, key))


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
    """The tool with the properties that the settings give it; these count for every server (U4)."""
    read_only = next((one.read_only for one in own[::-1] if one.read_only is not None), None)
    idempotent = next((one.idempotent for one in own[::-1] if one.idempotent is not None), None)
    if not tool.trusted and (read_only or idempotent):  # this counts, and nothing that a stranger says of it
        tool = replace(tool, read_only=False, idempotent=False, trusted=True)
    return replace(
        tool,
        read_only=tool.read_only if read_only is None else read_only,
        idempotent=tool.idempotent if idempotent is None else idempotent,
    )
