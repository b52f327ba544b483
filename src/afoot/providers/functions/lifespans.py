"""`App` holds what the tools of one file share; `Lifespans` keeps the lifespans of a gateway or child open.

A lifespan opens when its file is loaded, in a task of its own, so that it delays nothing else. When the file
is read again, the new lifespan opens at once, and the old one closes after the last call that runs on the old
code: those calls still use its state, and no new call waits for them.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, Self

from afoot.core.ports import RunnerStart
from afoot.errors import ToolError

CLOSE_S: Final = 5.0  # that a lifespan has to close
NO_STATE: Final[Mapping[str, Any]] = MappingProxyType({})
Lifespan = Callable[[], AbstractAsyncContextManager[Mapping[str, Any] | None]]

_log = logging.getLogger("afoot.providers")


class App:
    """The app of a file of tools: `app = App(lifespan=lifespan)` at its top level.

    `lifespan()` is an async context manager that yields a mapping, which is `ctx.state` for the tools of the
    file. An async generator function with one `yield` is one, too, also without `@asynccontextmanager`.
    """

    __slots__ = ("lifespan",)

    def __init__(self, lifespan: "Lifespan | Callable[[], AsyncIterator[Any]] | None" = None) -> None:
        """Raises TypeError if `lifespan` is no function."""
        if lifespan is not None and not callable(lifespan):
            must = "a function that returns an async context manager"
            raise TypeError(f"lifespan must be {must}, not {lifespan!r}")
        self.lifespan: Lifespan | None
        if inspect.isasyncgenfunction(lifespan):
            self.lifespan = asynccontextmanager(lifespan)
        else:
            self.lifespan = lifespan  # pyrefly: ignore[bad-assignment]

    def __repr__(self) -> str:
        """The lifespan with file and line, for messages."""
        code = getattr(inspect.unwrap(self.lifespan), "__code__", None) if self.lifespan else None
        return f"the lifespan at {code.co_filename}:{code.co_firstlineno}" if code else "the lifespan"


class OpenLifespan:
    """One opening of a lifespan, from its start to its close, which are steps of one task."""

    def __init__(self, app: App, start_s: float | None) -> None:
        """Begin to open, on the loop that it shall live on; None: however long it takes."""
        self.state: Mapping[str, Any] = NO_STATE
        self.is_open = False
        self.calls = 0  # that use the state now
        self._app = app
        self._start_s = start_s
        self._error = ""
        self._ready = asyncio.Event()
        self._retired = asyncio.Event()
        self._unused = asyncio.Event()
        self._task = asyncio.create_task(self._live())

    def start(self) -> RunnerStart | None:
        """The opening that a call waits for; None if it is open."""
        return None if self.is_open else RunnerStart("opening the lifespan of its file", self.opened)

    async def opened(self) -> None:
        """Wait until the lifespan is open; raises ToolError with the reason if it does not open."""
        await self._ready.wait()
        self._check_is_open()

    def begin_call(self) -> None:
        """Count a call that uses the state; raises ToolError if it is not open."""
        self._check_is_open()
        self.calls += 1

    def end_call(self) -> None:
        """Count one call less; the last one lets a lifespan close that no file has any more."""
        self.calls -= 1
        if not self.calls and self._retired.is_set():
            self._unused.set()

    def retire(self) -> None:
        """Close the lifespan when no call uses it any more."""
        self._retired.set()

    async def close(self) -> None:
        """Close the lifespan within CLOSE_S, even if calls still use it."""
        self._retired.set()
        self._unused.set()
        await asyncio.wait([self._task], timeout=CLOSE_S)
        if not self._task.done():
            _log.error("%r did not close in %g s, and is left", self._app, CLOSE_S)
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CLOSE_S)

    async def _live(self) -> None:
        """Open the lifespan, wait, and close it; its errors go to its calls and to the log."""
        assert self._app.lifespan is not None
        try:
            manager = self._app.lifespan()
            async with asyncio.timeout(self._start_s):
                state = await manager.__aenter__()
            if state is not None and not isinstance(state, Mapping):
                await manager.__aexit__(None, None, None)
                raise TypeError(f"it yields {type(state).__name__}, and must yield a mapping or None")
        except BaseException as error:  # SystemExit of an author must not end the gateway
            self._error = f"{self._app!r} failed: {self._words(error)}; the tools of its file are refused"
            _log.error("%s", self._error, exc_info=None if isinstance(error, TimeoutError) else error)
            self._ready.set()
            return
        self.state = NO_STATE if state is None else state
        self.is_open = True
        self._ready.set()
        await self._retired.wait()
        if self.calls:
            await self._unused.wait()
        self.is_open = False
        try:
            await manager.__aexit__(None, None, None)
        except asyncio.CancelledError:
            raise
        except BaseException:
            _log.exception("%r failed to close", self._app)

    def _check_is_open(self) -> None:
        if not self.is_open:
            why = self._error or "its file was read again while the call waited; call it again"
            raise ToolError.unavailable(why, code="lifespan_failed")

    def _words(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError) and not str(error):
            return f"it did not open in {self._start_s:g} s (raise start_limit_s)"
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class Lifespans:
    """The lifespans of the files that are served, by their apps. Leaving it closes all of them."""

    def __init__(self) -> None:
        self.start_s: float | None = 60.0
        self._open: dict[App, OpenLifespan] = {}
        self._retired: list[OpenLifespan] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(one.close() for one in (*self._open.values(), *self._retired)))

    def open(self, app: App) -> OpenLifespan:
        """The lifespan of an app; it begins to open if it is not open yet."""
        found = self._open.get(app)
        if found is None:
            found = self._open[app] = OpenLifespan(app, self.start_s)
        return found

    def keep(self, apps: Set[App]) -> None:
        """Let the lifespans of all other apps close, each after the last call that uses it."""
        self._retired = [one for one in self._retired if one.is_open]
        for app in self._open.keys() - apps:
            one = self._open.pop(app)
            one.retire()
            self._retired.append(one)
