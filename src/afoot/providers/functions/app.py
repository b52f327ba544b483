"""`App`: what the tools of one file share. Its lifespan opens before their first call."""

import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

Lifespan = Callable[[], AbstractAsyncContextManager[Mapping[str, Any] | None]]


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
