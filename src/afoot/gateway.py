"""A gateway as a Python program uses it: tools in, calls out, nothing of any wire."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Self

from msgspec import Raw, json

from afoot.config import Settings, home
from afoot.core.call import Call
from afoot.core.facts import NOTHING, Answer, Fact, Finished, Limits, Reading
from afoot.core.ports import Journal, Query, Tool
from afoot.engine.approved import Approved
from afoot.engine.bell import Bell
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine, Submission
from afoot.engine.live import Live
from afoot.engine.policy import Allowed, Policy
from afoot.engine.recovery import recall, recover
from afoot.engine.retention import Retention
from afoot.engine.settings import apply, held
from afoot.engine.slots import Slots
from afoot.errors import CallerError
from afoot.observe.otel import telemetry
from afoot.providers.browser.browser import Browser
from afoot.providers.browser.browsing import Browsing, is_plugin, is_wanted
from afoot.providers.function import FunctionProvider
from afoot.providers.hooks import Hooks
from afoot.providers.hooks_follow import Echoes
from afoot.providers.isolated.children import Children
from afoot.providers.known import Known
from afoot.providers.loading import load_file, load_module
from afoot.providers.options import Settings as FunctionSettings
from afoot.providers.roster import Roster, gather, is_server
from afoot.providers.servers import Servers
from afoot.providers.watchdog import Watchdog
from afoot.serve.shelf import Library
from afoot.state import Kept
from afoot.store.lock import StoreLock
from afoot.store.memory import MemoryJournal
from afoot.store.sqlite import SqliteJournal
from afoot.wire.jsonrpc import Fault
from afoot.wire.messages import Capabilities
from afoot.wire.shelf import Lookup

MEMORY = ":memory:"
REMEMBERED = 1000  # calls of the history from which is known which tools report
# What a running gateway cannot change.
Target = object  # a str, a Path, a function; any other object is a server


class Gateway:
    """Runs tools: open it with `async with`, then submit, follow, answer, cancel."""

    engine: Engine
    servers: Servers
    browsing: Browsing
    browser: Browser
    watchdog: Watchdog

    def __init__(self, *targets: Target, settings: Settings | None = None) -> None:
        """Targets are files of tools, names of modules, functions, or what means servers (design 5)."""
        self.settings = settings or Settings(store=MEMORY)
        self.targets = targets or tuple(self.settings.targets)
        self._stack, self.children = AsyncExitStack(), Children()
        self._stack.push_async_exit(self.children)
        self._functions: list[Callable[..., Any]] = []
        self.lock: StoreLock | None = None
        self._history: SqliteJournal | None = None
        self._library: Library | None = None
        self._roster = Roster()
        self.bare = False  # whether it may have nothing to serve yet
        self.recovers = True  # by itself; else whoever opened it has to, once it can serve

    async def __aenter__(self) -> Self:
        try:
            journal = await self._journal()
            self.engine = Engine(journal, Catalog(), Slots(self.settings.server_concurrency))
            if self.settings.store != MEMORY:
                self.engine.policy = Policy(Kept("allow.json", Allowed), Kept("approved.json", Approved))
                self.engine.policy.refresh()
            self.watchdog = self._stack.enter_context(Watchdog())
            known = Known(None if self.settings.store == MEMORY else home() / "servers")
            servers = Servers(self.engine.catalog, self._limits(patient=True), known)
            servers.restart_limit = self.settings.restart_limit
            self.servers = await self._stack.enter_async_context(servers)
            roster = gather(self.settings, self.targets)
            if not (self.targets or roster.wanted or roster.files or self.bare or is_wanted(self.settings)):
                raise CallerError("nothing to serve: name a file or a module of tools, or a server")
            self._roster = roster
            apply(self.engine, self.settings)
            self.reload()
            self.servers.follow(roster)
            await self._browse()
            await self._hooked()
            await self._stack.enter_async_context(telemetry(self.settings.otel, self.engine))
            await self._stack.enter_async_context(self.engine)
            await self._stack.enter_async_context(Retention(self.engine, lambda: self.settings))
            await self._remember()
        except BaseException as error:
            await self.__aexit__(type(error))
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self.lock is not None:  # what failed before any call leaves no history
            self.lock.undo = lambda: not (self._history and self._history.position)
        await self._stack.aclose()

    def reload(self) -> None:
        """Read the targets again; calls in flight finish on the old code. Raises CallerError."""
        files = [one for one in self.targets if not is_server(one) and not is_plugin(one)]
        before, self._functions = self._functions, [one for target in files for one in _functions(target)]
        try:
            self._offer()
        except CallerError:
            self._functions = before
            raise

    def adopt(self, settings: Settings) -> list[str]:
        """Take other settings for calls to come; gives the changed ones that need a new start.

        Servers come, go and are replaced; calls in flight finish as they are. Raises CallerError.
        """
        roster = gather(settings, self.targets)
        settings, changed = held(settings, self.settings)
        is_there = {one.name for one in self.servers.list()} >= roster.wanted.keys()
        if settings == self.settings and roster == self._roster and is_there:
            return changed  # hosts rewrite their files for reasons of their own
        self.settings, self._roster = settings, roster
        self.servers.restart_limit = settings.restart_limit
        apply(self.engine, self.settings)
        self._offer()
        self.servers.limits = self._limits(patient=True)
        self.servers.follow(roster)
        self.browsing.follow(self._limits(), settings)
        return changed

    def tools(self) -> list[Tool]:
        """The tools on offer."""
        return list(self.engine.catalog)

    def submit(self, tool: str, arguments: Mapping[str, object] | None = None, **options: Any) -> str:
        """Start a call and return its id; raises UnknownName, Refused. Options: idle_s, ceiling_s, caller."""
        encoded = Raw(json.encode(dict(arguments or {})))
        return self.engine.submit(Submission(tool, encoded, **options)).call.id

    async def follow(self, call_id: str, hz: float | None = None) -> AsyncIterator[Fact | Reading]:
        """The facts and readings of a call from its beginning to its end."""
        live = await recall(self.engine, call_id)
        bell = Bell()
        rate = self.settings.progress_hz if hz is None else hz
        with self.engine.follow(live, bell.ring, rate) as follower:
            follower.number = 0  # what was read before counts as new
            if live.call.readings:
                bell.ring()
            for entry in await self._past(live, follower.seq):
                yield entry
                if type(entry) is Finished:
                    return
            while True:
                await bell.wait()
                for item in follower.take().items:
                    yield item
                    if type(item) is Finished:
                        return

    async def result(self, call_id: str) -> Call:
        """Wait for a call's end; the call tells outcome, result and failure."""
        live = await recall(self.engine, call_id)
        bell = Bell()
        with self.engine.follow(live, bell.ring, None) as follower:
            follower.seq = 0
            while not any(type(fact) is Finished for fact in follower.take().items):
                await bell.wait()
        return live.call

    async def call(self, tool: str, arguments: Mapping[str, object] | None = None, **options: Any) -> Call:
        """Submit a call and wait for its end."""
        return await self.result(self.submit(tool, arguments, **options))

    async def read_resource(self, uri: str) -> dict[str, Any]:
        """What a server's resource holds, as `resources/read` tells it; raises CallerError, ToolError."""
        return await self._look_up("resources/read", uri, {"uri": uri})

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A server's prompt, filled in, as `prompts/get` tells it; raises CallerError, ToolError."""
        return await self._look_up("prompts/get", name, {"name": name, "arguments": dict(arguments or {})})

    def answer(self, question_id: str, content: object = None, *, action: str = "accept") -> None:
        """Answer an open question; raises UnknownName, AlreadyAnswered, ToolError.validation."""
        encoded = NOTHING if content is None else Raw(json.encode(content))
        self.engine.answer(question_id, Answer(action, encoded, "operator", "python"))

    def cancel(self, call_id: str, reason: str = "the operator cancelled it") -> None:
        """Ask a call to stop; raises UnknownName if it is over."""
        self.engine.cancel(self.engine[call_id], "operator", reason)

    async def _look_up(self, method: str, subject: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask those servers that may know it, until one does."""
        if self._library is None:
            self._library = Library(self.engine.catalog, self.servers.list)
        lookup = Lookup(0, method, params, subject, "operator", Capabilities())
        try:
            for shelf, name in self._library.find(lookup):
                with suppress(Fault):
                    return await shelf.request(method, lookup.body(name, {}, None), "operator")
        except Fault as fault:
            raise CallerError(fault.message) from None
        raise CallerError(f"no server has {subject}")

    async def _remember(self) -> None:
        """Tools that have reported before are expected to (C1); what they took, they take again (P9).

        Calls of a gateway that died are settled.
        """
        rows = await self.engine.journal.find(Query(limit=REMEMBERED))
        self.engine.reporters |= {row.tool for row in rows if row.progress is not None}
        self.engine.usual.recall(rows)
        if self.recovers:
            await recover(self.engine)

    async def _past(self, live: Live, until: int) -> Sequence[Fact]:
        """The facts before a follower's position, however long ago they fell out of memory."""
        entries = [entry for entry in live.backlog if entry.seq <= until]
        if not entries or entries[0].seq > 1:
            entries = [entry for entry in await self.engine.journal.facts(live.call.id) if entry.seq <= until]
        return [entry.fact for entry in entries]

    async def _journal(self) -> Journal:
        if self.settings.store == MEMORY:
            return MemoryJournal()
        path = Path(self.settings.store) if self.settings.store else home() / "calls.db"
        self.lock = self._stack.enter_context(StoreLock(path))
        durable = "full" if self.settings.durable == "full" else "normal"
        self._history = await self._stack.enter_async_context(SqliteJournal(path, durable))
        return self._history

    async def _hooked(self) -> None:
        """Have the hooks follow calls; they see the last ones end, too."""
        if not self.settings.hooks:
            return
        hooks = Hooks(self.settings.hooks)
        if hooks.has("before_call"):
            self.engine.hooks = hooks
        await self._stack.enter_async_context(Echoes(hooks, self.engine))

    async def _browse(self) -> None:
        """Have tabs as tools. They are left after the engine, so that pages hear why their runs end."""
        browsing = Browsing(self.engine.catalog, self._limits(), self.settings, self.targets)
        self.browsing, self.browser = browsing, browsing.browser
        await self._stack.enter_async_context(browsing)

    def _offer(self) -> None:
        """Offer the functions, on the limits in force."""
        settings = FunctionSettings(
            limits=self._limits(),
            message_limit=self.settings.max_message_chars,
            cancel_waits=True,
            lifecycle=self.settings.lifecycle,
            isolation=self.settings.isolation,
            terms=self.engine.catalog.terms,
        )
        provider = FunctionProvider(
            self._functions, settings=settings, watchdog=self.watchdog, children=self.children
        )
        self._stack.callback(provider.close)
        self.children.settings = self.settings.isolation
        self.children.follow(provider.sources())
        self.engine.catalog.put(provider)

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


def _functions(target: Target) -> list[Callable[..., Any]]:
    if callable(target):
        return [target]
    name = str(target)
    if isinstance(target, Path) or name.endswith(".py"):
        return load_file(name)
    return load_module(name)
