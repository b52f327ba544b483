"""`Gateway` is a gateway inside a Python program: it takes tools and runs calls, without any network."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from afoot import __version__
from afoot.config.settings import Settings, home
from afoot.config.state_folder import StoredList
from afoot.core.call import Call
from afoot.core.facts import NOTHING, Answer, Fact, Finished, Limits, Reading
from afoot.core.ports import CallQuery, Journal, Tool
from afoot.engine.admission import Slots
from afoot.engine.approval.allowlist import AllowlistEntry
from afoot.engine.approval.history import LastApproval
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.engine.catalog import Catalog, recorded_name
from afoot.engine.engine import Engine
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall, Submission
from afoot.engine.recovery import load_call, recover
from afoot.engine.retention import Retention
from afoot.errors import CallerError, ToolError, UnknownName
from afoot.observe.prometheus import KeptFigures
from afoot.observe.telemetry import telemetry
from afoot.providers.browser.provider import BrowserProvider
from afoot.providers.browser.setup import BrowserSetup, is_browser_configured, is_plugin_folder
from afoot.providers.functions.context import Caller, origin_of
from afoot.providers.functions.lifespans import App, Lifespans
from afoot.providers.functions.loading import load_file, load_function, load_module, only_server
from afoot.providers.functions.options import FunctionSettings as FunctionSettings
from afoot.providers.functions.tool import FunctionProvider, FunctionTool, Overrides
from afoot.providers.functions.watchdog import Watchdog
from afoot.providers.hooks import HookNotifier, HookSet
from afoot.providers.isolation.pool import ChildPool
from afoot.providers.offers.offer import is_tool
from afoot.providers.offers.provider import OfferProvider
from afoot.providers.upstream.configured_servers import (
    FoundServer,
    KnownServers,
    Roster,
    gather_servers,
    is_server_target,
)
from afoot.providers.upstream.servers import Servers
from afoot.serve.function_offers import FunctionOffers
from afoot.serve.resources import ResourceCatalog
from afoot.store.lock import StoreLock
from afoot.store.memory import MemoryJournal
from afoot.store.sqlite import SqliteJournal
from afoot.wire.jsonrpc import INTERNAL_ERROR, Fault
from afoot.wire.resources import Lookup, is_unknown_resource
from afoot.wire.results import Capabilities

if TYPE_CHECKING:
    from afoot.cluster.member import ClusterMember, ClusterService

log = logging.getLogger("afoot")

MEMORY = ":memory:"
OWN_CALLER = Caller(is_owner=True)
HISTORY_CALLS = 1000  # of the history, which tell which tools report and how long they take
# Settings that are read once, when a gateway starts.
FIXED_SETTINGS = (
    "http", "store", "cluster", "targets", "durable", "server_concurrency", "mcp_token", "allow_origins",
    "allow_hosts", "access", "hooks", "otel", "metrics", "linger_s", "browser.cdp", "isolation.nice",
    "isolation.spare",
)  # fmt: skip

NOTHING_TO_SERVE = "nothing to serve: name a file or a module of tools, or a server"

Target = object  # a str, a Path, a function; any other object is a server


class Gateway:
    """Runs tools: open it with `async with`, then submit, follow, answer, cancel."""

    engine: Engine
    function_offers: FunctionOffers
    servers: Servers
    browsing: BrowserSetup
    browser: BrowserProvider
    watchdog: Watchdog

    def __init__(self, *targets: Target, settings: Settings | None = None) -> None:
        """Targets are files of tools, names of modules, functions, or servers (design 5)."""
        self.settings = settings or Settings(store=MEMORY)
        self.targets = targets or tuple(self.settings.targets)
        self._stack = AsyncExitStack()
        self.children = ChildPool()
        self._stack.push_async_exit(self.children)
        self._offers = TargetOffers()
        self._lifespans = Lifespans()
        self._apps: set[App] = set()  # those with a lifespan that tools in this process use
        self._added: dict[str, Callable[..., Any]] = {}  # at run time, by name
        # Those that are offered, and those before them whose calls are not over.
        self._providers: WeakSet[FunctionProvider | OfferProvider] = WeakSet()
        self._stack.callback(self._close_providers)
        self.lock: StoreLock | None = None
        self._history: SqliteJournal | None = None
        self.member: ClusterMember | None = None  # this gateway as one of several
        self.cluster: ClusterService | None = None
        self._library: ResourceCatalog | None = None
        self._roster = Roster()
        self.address = ""  # HOST:PORT of its listener, if it has one: a server there is the gateway itself
        self.overrides: Overrides | None = None  # functions in the place of dependencies, for tests
        self.bare = False  # whether it may have nothing to serve yet
        self.keeps_figures = False  # for `/metrics`, where that is served
        self.figures: KeptFigures | None = None
        self.recovers = True  # goes on with calls of a dead gateway; else its owner does, once it can serve

    async def __aenter__(self) -> Self:
        try:
            journal = await self._journal()
            self.engine = Engine(journal, Catalog(), Slots(self.settings.server_concurrency))
            self.function_offers = FunctionOffers(self.engine)
            if self.settings.store != MEMORY:
                self.engine.policy = ApprovalPolicy(
                    StoredList("allow.json", AllowlistEntry), StoredList("approved.json", LastApproval)
                )
                self.engine.policy.refresh()
            self.watchdog = self._stack.enter_context(Watchdog())
            await self._stack.enter_async_context(self._lifespans)
            known = KnownServers(None if self.settings.store == MEMORY else home() / "servers")
            servers = Servers(self.engine.catalog, self._limits(patient=True), known)
            servers.restart_limit = self.settings.restart_limit
            self.servers = await self._stack.enter_async_context(servers)
            self.engine.apply_settings(self.settings)
            self._offer_what_can_be_offered(self._load_what_loads())
            self._roster = self._gather(self.settings)
            if self._has_nothing():
                raise self._nothing_to_serve()
            for problem in self._offers.problems:
                log.error("%s", problem)
            self.servers.follow(self._roster)
            await self._browse()
            await self._hooked()
            if self.keeps_figures:
                self.figures = KeptFigures(self.engine.quota_refusals)
            await self._stack.enter_async_context(telemetry(self.settings.otel, self.engine, self.figures))
            await self._stack.enter_async_context(self.engine)
            if self.member is not None:
                self.cluster = await self._stack.enter_async_context(self.member.serve(self.engine))
            await self._stack.enter_async_context(Retention(self.engine, lambda: self.settings))
            await self._remember()
        except BaseException as error:
            await self.__aexit__(type(error))
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self.lock is not None:  # a start that failed leaves no empty history
            self.lock.should_remove = lambda: not (self._history and self._history.position)
        await self._stack.aclose()

    def reload(self) -> None:
        """Read the targets again; calls in flight finish on the old code. Raises CallerError.

        A target that cannot be read changes nothing.
        """
        before = self._offers
        self._offers = TargetOffers.load(self._targets_with_code())
        try:
            self._offer()
        except CallerError:
            self._offers = before
            self._lifespans.keep(self._apps)
            raise
        self._roster = self._gather(self.settings)
        self.servers.follow(self._roster)

    def adopt(self, settings: Settings) -> list[str]:
        """Take other settings for calls to come; gives the names of changed ones that need a new start.

        Servers come, go and are replaced; calls in flight finish as they are. Raises CallerError.
        """
        roster = self._gather(settings)
        settings, changed = _keep_fixed_settings(settings, self.settings)
        is_there = {one.name for one in self.servers.list()} >= roster.entries.keys()
        if settings == self.settings and roster == self._roster and is_there:
            return changed  # hosts rewrite their files for reasons of their own
        self.settings = settings
        self._roster = roster
        self.servers.restart_limit = settings.restart_limit
        self.engine.apply_settings(self.settings)
        self._offer()
        self.servers.limits = self._limits(patient=True)
        self.servers.follow(roster)
        self.browsing.configure(self._limits(), settings)
        return changed

    def add_tool(self, *functions: Callable[..., Any]) -> None:
        """Offer more functions from now on; callers are told that the list has changed.

        They stay over a `reload`. Raises CallerError if one of the names is taken; then none is added.
        """
        new = {tool_name(one): one for function in functions for one in load_function(function).tools}
        taken = new.keys() & self._own_tool_names()
        if taken or len(new) < len(functions):
            what = ", ".join(sorted(taken)) or "two of these functions"
            raise CallerError(
                f"{what}: there is a tool of that name already; remove it first, or name it otherwise"
            )
        before = self._added
        self._added = {**before, **new}
        try:
            self._offer()
        except CallerError:
            self._added = before
            self._lifespans.keep(self._apps)
            raise

    def remove_tool(self, name: str) -> None:
        """Offer an own function no more; its calls in flight finish. Raises UnknownName.

        A tool of a file is back after a `reload`.
        """
        names = self._own_tool_names() | self._added.keys()
        if name not in names:
            raise UnknownName("tool", name, sorted(names))
        self._added = {key: one for key, one in self._added.items() if key != name}
        kept = [one for one in self._offers.functions if not is_tool(one) or tool_name(one) != name]
        self._offers = replace(self._offers, functions=kept)
        self._offer()

    def tools(self) -> list[Tool]:
        """The tools on offer."""
        return list(self.engine.catalog)

    def submit(
        self,
        tool: str,
        arguments: Mapping[str, object] | None = None,
        *,
        caller: str | Caller = OWN_CALLER,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> str:
        """Start a call and return its id; raises UnknownName, Refused, MissingScope.

        `caller` and `headers` are what the tool sees in its context; a caller that is text needs no scopes.
        Options: idle_s, ceiling_s.
        """
        encoded = Raw(json.encode(dict(arguments or {})))
        who = caller if isinstance(caller, Caller) else Caller(caller, is_owner=True)
        origin = origin_of(who, headers or {}, self.engine.redactor)
        submission = Submission(tool, encoded, who.id, origin=origin, **options)
        return self.engine.submit(submission).call.id

    async def follow(self, call_id: str, hz: float | None = None) -> AsyncIterator[Fact | Reading]:
        """The facts and readings of a call from its beginning to its end."""
        live = await load_call(self.engine, call_id)
        wakeup = Wakeup()
        rate = self.settings.progress_hz if hz is None else hz
        with self.engine.follow(live, wakeup.wake, rate) as follower:
            follower.number = 0  # the newest reading counts as new
            if live.call.readings:
                wakeup.wake()
            for entry in await self._past(live, follower.seq):
                yield entry
                if type(entry) is Finished:
                    return
            while True:
                await wakeup.wait()
                for item in follower.take().items:
                    yield item
                    if type(item) is Finished:
                        return

    async def result(self, call_id: str) -> Call:
        """Wait for a call's end; the call tells outcome, result and failure."""
        live = await load_call(self.engine, call_id)
        await self.engine.wait_for_end(live)
        return live.call

    async def call(self, tool: str, arguments: Mapping[str, object] | None = None, **options: Any) -> Call:
        """Submit a call and wait for its end; an unknown tool may be one of a server that is starting."""
        try:
            call_id = self.submit(tool, arguments, **options)
        except UnknownName:
            await self.servers.wait_until_opened(self.settings.start_limit_s)
            call_id = self.submit(tool, arguments, **options)
        return await self.result(call_id)

    async def read_resource(self, uri: str) -> dict[str, Any]:
        """The content of a resource, as `resources/read` tells it; raises CallerError, ToolError."""
        return await self._look_up("resources/read", uri, {"uri": uri})

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A prompt, filled in, as `prompts/get` tells it; raises CallerError, ToolError."""
        return await self._look_up("prompts/get", name, {"name": name, "arguments": dict(arguments or {})})

    def resource_changed(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource of these functions that it has changed."""
        self.function_offers.changed(uri)

    def answer(self, question_id: str, content: object = None, *, action: str = "accept") -> None:
        """Answer an open question; raises UnknownName, AlreadyAnswered, ToolError.validation."""
        encoded = NOTHING if content is None else Raw(json.encode(content))
        self.engine.answer(question_id, Answer(action, encoded, "operator", "python"))

    def cancel(self, call_id: str, reason: str = "the operator cancelled it") -> None:
        """Ask a call to stop; raises UnknownName if it is over."""
        self.engine.cancel(self.engine[call_id], "operator", reason)

    def _targets_with_code(self) -> list[Target]:
        """The targets that are functions, or have to be run to know what they offer."""
        return [one for one in self.targets if not is_server_target(one) and not is_plugin_folder(one)]

    def _load_what_loads(self) -> "list[TargetOffers]":
        """Read the targets at the start; one that cannot be read is a problem, and the others are served."""
        loaded = []
        for target in self._targets_with_code():
            try:
                loaded.append(TargetOffers.load([target]))
            except CallerError as error:
                loaded.append(TargetOffers(problems=[error]))
        return loaded

    def _offer_what_can_be_offered(self, targets: "list[TargetOffers]") -> None:
        """Offer the functions at the start.

        A target with a bad tool costs only itself, and a tool whose name another target has taken costs no
        other tool.
        """
        if not self._offer_error(targets):
            return
        served: list[TargetOffers] = []
        for target in targets:
            if error := self._offer_error([target]):
                served.append(TargetOffers(problems=[error]))
                continue
            is_whole = self._offer_error([*served, target]) is None
            for part in [target] if is_whole else target.split():
                error = self._offer_error([*served, part])
                served.append(TargetOffers(problems=[error]) if error else part)
        self._offers = TargetOffers.joined(served)
        self._offer()

    def _offer_error(self, targets: "list[TargetOffers]") -> CallerError | None:
        """Offer the functions of these targets; return why they cannot be offered together."""
        self._offers = TargetOffers.joined(targets)
        try:
            self._offer()
        except CallerError as error:
            return error
        return None

    def _nothing_to_serve(self) -> CallerError:
        """The error of a gateway that has nothing to serve: what is wrong with its targets, if it has any."""
        problems = self._offers.problems
        if len(problems) == 1:
            return problems[0]
        return CallerError("\n".join(map(str, problems)) or NOTHING_TO_SERVE)

    def _gather(self, settings: Settings) -> Roster:
        """The servers of these settings, of the targets, and of the files that were read."""
        roster = gather_servers(settings, [*self.targets, *self._offers.servers], own_address=self.address)
        roster.problems.extend(map(str, self._offers.problems))
        return roster

    def _has_nothing(self) -> bool:
        """Whether there is nothing to serve, and nothing that may come."""
        has_servers = self._roster.entries or self._roster.files
        has_plugins = any(is_plugin_folder(one) for one in self.targets)
        return not (
            self._offers.functions
            or has_servers
            or has_plugins
            or self.bare
            or self.settings.cluster.redis  # its workers bring functions
            or is_browser_configured(self.settings)
        )

    async def _look_up(self, method: str, subject: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask those servers that may know it, until one does."""
        if self._library is None:
            self._library = ResourceCatalog(self.engine.catalog, self.servers.list, self.function_offers)
        lookup = Lookup(0, method, params, subject, "operator", Capabilities())
        try:
            found = self._library.find(lookup)
            for server, name in found:
                try:
                    return await server.request(method, lookup.server_params(name, {}, None), "operator")
                except Fault as fault:
                    if len(found) == 1 or not is_unknown_resource(fault):
                        raise
            raise self._library.unknown(subject)
        except Fault as fault:
            if fault.code == INTERNAL_ERROR:
                raise ToolError.internal(fault.message) from None
            raise CallerError(fault.message) from None

    async def _remember(self) -> None:
        """Learn from the history which tools report (C1), and how long they take (P9); recover calls."""
        rows = await self.engine.journal.find(CallQuery(limit=HISTORY_CALLS))
        self.engine.reporters |= {recorded_name(row) for row in rows if row.progress is not None}
        self.engine.durations.add_history(rows)
        if self.recovers:
            await recover_calls(self)

    async def _past(self, live: LiveCall, until: int) -> Sequence[Fact]:
        """The facts before a follower's position, however long ago they fell out of memory."""
        entries = [entry for entry in live.backlog if entry.seq <= until]
        if not entries or entries[0].seq > 1:
            entries = [entry for entry in await self.engine.journal.facts(live.call.id) if entry.seq <= until]
        return [entry.fact for entry in entries]

    async def _journal(self) -> Journal:
        if self.settings.cluster.redis:
            # Redis is loaded only here: a gateway that is alone needs none of it.
            from afoot.cluster.member import ClusterMember

            is_required = self.settings.history == "required"
            member = ClusterMember(self.settings.cluster, __version__, is_history_required=is_required)
            self.member = await self._stack.enter_async_context(member)
            return self.member.journal
        if self.settings.store == MEMORY:
            return MemoryJournal()
        path = Path(self.settings.store) if self.settings.store else home() / "calls.db"
        self.lock = self._stack.enter_context(StoreLock(path))
        durable = "full" if self.settings.durable == "full" else "normal"
        self._history = await self._stack.enter_async_context(SqliteJournal(path, durable))
        return self._history

    async def _hooked(self) -> None:
        """Let the hooks follow calls; they see the last ones end, too."""
        if not self.settings.hooks:
            return
        hooks = HookSet(self.settings.hooks)
        if hooks.has("before_call"):
            self.engine.hooks = hooks
        if hooks.has("before_question"):
            self.engine.questions.hooks = hooks
        await self._stack.enter_async_context(HookNotifier(hooks, self.engine))

    async def _browse(self) -> None:
        """Offer the tools of tabs. Tabs are left after the engine, so that pages hear why their runs end."""
        browsing = BrowserSetup(self.engine.catalog, self._limits(), self.settings, self.targets)
        self.browsing = browsing
        self.browser = browsing.browser
        await self._stack.enter_async_context(browsing)

    def _offer(self) -> None:
        """Offer the functions, with the limits in force."""
        settings = FunctionSettings(
            limits=self._limits(),
            message_limit=self.settings.max_message_chars,
            cancel_waits=True,
            lifecycle=self.settings.lifecycle,
            isolation=self.settings.isolation,
            effective_settings=self.engine.catalog.effective_settings,
        )
        self._lifespans.start_s = self.settings.start_limit_s
        functions = self._own_functions()
        provider = FunctionProvider(
            [one for one in functions if is_tool(one)],
            settings=settings,
            watchdog=self.watchdog,
            pool=self.children,
            overrides=self.overrides,
            lifespans=self._lifespans,
        )
        offers = OfferProvider(
            functions, settings, self.watchdog, self.children, self.overrides, self._lifespans
        )
        self._apps = provider.apps | offers.apps
        self._lifespans.keep(self._apps)
        self._providers.update((provider, offers))
        for problem in offers.problems:
            if problem not in self.function_offers.problems:
                log.error("%s", problem)
        self.function_offers.replace(offers)
        self.children.settings = self.settings.isolation
        self.children.keep_ready(provider.sources())
        self.engine.catalog.put(provider)

    def _own_functions(self) -> list[Callable[..., Any]]:
        return [*self._offers.functions, *self._added.values()]

    def _own_tool_names(self) -> set[str]:
        return {tool_name(one) for one in self._own_functions() if is_tool(one)}

    def _close_providers(self) -> None:
        for provider in self._providers:
            provider.close()

    def _limits(self, *, patient: bool = False) -> Limits:
        settings = self.settings
        return Limits(
            settings.idle_s,
            settings.ceiling_s,
            settings.answer_s,
            settings.queue_limit_s,
            settings.cancel_grace_s,
            settings.start_limit_s,
            patient,
        )


async def recover_calls(gateway: Gateway, caller: str = "") -> None:
    """Go on with the calls of a gateway that died; `caller`: only with those of this one.

    In a cluster these are the calls of every gateway whose lease has run out, now and from now on, whoever
    their callers are.
    """
    if gateway.cluster is None:
        await recover(gateway.engine, caller)
        return
    await gateway.cluster.take_over()
    gateway.cluster.look_for_dead()


def _keep_fixed_settings(settings: Settings, before: Settings) -> tuple[Settings, list[str]]:
    """Settings for a gateway that runs; fixed ones stay, and are named if they were to change."""
    changed = [name for name in FIXED_SETTINGS if attrgetter(name)(settings) != attrgetter(name)(before)]
    for name in changed:
        table, _, key = name.rpartition(".")
        kept = {key: attrgetter(name)(before)}
        if table:
            kept = {table: replace(getattr(settings, table), **kept)}
        settings = replace(settings, **kept)
    return settings, changed


def tool_name(function: Callable[..., Any]) -> str:
    """The name of a function as a tool; raises BadTool if it cannot be one."""
    declared: FunctionTool = getattr(function, "__afoot_tool__", None) or FunctionTool(function, {})
    return declared.name


class TargetOffers(Struct, frozen=True):
    """The functions and the server objects of the targets, and the errors of targets that do not load."""

    functions: list[Callable[..., Any]] = []
    servers: list[FoundServer] = []
    problems: list[CallerError] = []

    @classmethod
    def load(cls, targets: Iterable[Target]) -> "TargetOffers":
        """Run the files and import the modules; raises CallerError."""
        return cls.joined(cls._load_one(target) for target in targets)

    def split(self) -> "list[TargetOffers]":
        """Return a part for each function, and first one for all the rest."""
        rest = TargetOffers(servers=self.servers, problems=self.problems)
        return [rest, *(TargetOffers([function]) for function in self.functions)]

    @classmethod
    def joined(cls, parts: "Iterable[TargetOffers]") -> "TargetOffers":
        """Return what these offer together."""
        parts = tuple(parts)
        return cls(
            [function for part in parts for function in part.functions],
            [server for part in parts for server in part.servers],
            [problem for part in parts for problem in part.problems],
        )

    @classmethod
    def _load_one(cls, target: Target) -> "TargetOffers":
        if callable(target):
            return cls(load_function(target).tools)
        name = str(target)
        is_file = isinstance(target, Path) or name.endswith(".py")
        loaded = load_file(name) if is_file else load_module(name)
        if not loaded.servers:
            return cls(loaded.tools)
        attribute = only_server(loaded.servers, name)
        return cls(loaded.tools, [FoundServer(name, attribute, [loaded.servers[attribute]])])
