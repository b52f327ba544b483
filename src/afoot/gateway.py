"""A gateway as a Python program uses it: tools in, calls out, nothing of any wire."""

import importlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from msgspec import Raw, json

from afoot.config import Settings, home
from afoot.core.call import Call
from afoot.core.facts import NOTHING, Answer, Fact, Finished, Limits, Reading
from afoot.core.ports import Journal, Tool
from afoot.engine.bell import Bell
from afoot.engine.catalog import Catalog, Limiter
from afoot.engine.engine import Engine, Submission
from afoot.engine.live import Live
from afoot.engine.recovery import recall, recover
from afoot.engine.slots import Slots
from afoot.errors import CallerError
from afoot.providers import function
from afoot.providers.loading import load, load_file
from afoot.providers.watchdog import Watchdog
from afoot.store.lock import StoreLock
from afoot.store.memory import MemoryJournal
from afoot.store.sqlite import SqliteJournal

MEMORY = ":memory:"
Target = str | Path | Callable[..., Any]


class Gateway:
    """Runs tools: open it with `async with`, then submit, follow, answer, cancel."""

    engine: Engine
    watchdog: Watchdog

    def __init__(self, *targets: Target, settings: Settings | None = None) -> None:
        """Targets are files of tools, names of modules, or functions."""
        self.settings = settings or Settings(store=MEMORY)
        self.targets = targets or tuple(self.settings.targets)
        self._stack = AsyncExitStack()
        self.lock: StoreLock | None = None

    async def __aenter__(self) -> Self:
        settings = self.settings
        limiter = Limiter(settings.tools, settings.servers, settings.max_idle_s, settings.max_ceiling_s)
        try:
            journal = await self._journal()
            self.engine = Engine(journal, Catalog(limiter), Slots(settings.server_concurrency))
            self.engine.write_ahead = settings.durable == "full"
            self.engine.require_history = settings.history == "required"
            self.engine.max_result_bytes = settings.max_result_bytes
            self.engine.max_data_bytes = settings.max_data_bytes
            self.engine.max_questions = settings.max_questions
            self.watchdog = self._stack.enter_context(Watchdog())
            self.reload()
            await self._stack.enter_async_context(self.engine)
            await recover(self.engine)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def reload(self) -> None:
        """Read the targets again; calls in flight finish on the old code. Raises CallerError."""
        functions = [found for target in self.targets for found in _functions(target)]
        if not functions and not self.targets:
            raise CallerError("nothing to serve: name a file or a module of tools")
        provider = function.FunctionProvider(
            functions, settings=self._for_functions(), watchdog=self.watchdog
        )
        self._stack.callback(provider.close)
        self.engine.catalog.put(provider)

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

    def answer(self, question_id: str, content: object = None, *, action: str = "accept") -> None:
        """Answer an open question; raises UnknownName, AlreadyAnswered, ToolError.validation."""
        encoded = NOTHING if content is None else Raw(json.encode(content))
        self.engine.answer(question_id, Answer(action, encoded, "operator"))

    def cancel(self, call_id: str, reason: str = "the operator cancelled it") -> None:
        """Ask a call to stop; raises UnknownName if it is over."""
        self.engine.cancel(self.engine[call_id], "operator", reason)

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
        return await self._stack.enter_async_context(SqliteJournal(path, durable))

    def _for_functions(self) -> function.Settings:
        settings = self.settings
        limits = Limits(
            settings.idle_s,
            settings.ceiling_s,
            settings.answer_s,
            settings.queue_limit_s,
            settings.cancel_grace_s,
        )
        return function.Settings(
            limits=limits,
            message_limit=settings.max_message_chars,
            cancel_waits=True,
            lifecycle=settings.lifecycle,
        )


def _functions(target: Target) -> list[Callable[..., Any]]:
    if callable(target):
        return [target]
    if isinstance(target, Path) or target.endswith(".py"):
        return load_file(target)
    try:
        found = load(importlib.import_module(target))
    except ImportError as error:
        raise CallerError(f"cannot load {target}: {error}") from None
    if not found:
        raise CallerError(f"no tools in {target}: decorate functions with @afoot.tool")
    return found
