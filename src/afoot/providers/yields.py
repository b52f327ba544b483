"""What a generator tool yields: partial results, and the one value that is its result (P11)."""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from typing import Any, Final

from msgspec import Raw

from afoot.core.facts import Result
from afoot.errors import ToolError
from afoot.providers.content import Partial, content_of, joined
from afoot.providers.context import Context, give

_NONE: Final = object()


class Yields:
    """What came so far. Partials are passed on as they come."""

    __slots__ = ("_ctx", "_parts", "_value")

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._parts: list[Raw] = []
        self._value: Any = _NONE

    def take(self, value: Any) -> None:
        """One yielded value; raises ToolError.internal for a second result."""
        if type(value) is Partial:
            part = content_of(value.content)
            self._parts.append(part)
            give(self._ctx, part)
        elif self._value is _NONE:
            self._value = value
        else:
            raise ToolError.internal("the tool yielded a second result: only one value may be no Partial")

    def end(self) -> Any:
        """The result: the one value, or else the partials joined."""
        return Result(joined(self._parts)) if self._value is _NONE else self._value


def collect(generator: Generator[Any, Any, Any], ctx: Context) -> Any:
    """Run a sync generator to its end, or until the call is cancelled; it is closed in any case."""
    yields = Yields(ctx)
    with closing(generator):
        while True:
            try:
                value = next(generator)
            except StopIteration as end:
                if end.value is not None:
                    yields.take(end.value)
                return yields.end()
            yields.take(value)
            if ctx.cancelled:
                raise ToolError.cancelled(ctx.cancelled)


async def collect_async(generator: AsyncGenerator[Any, Any], ctx: Context) -> Any:
    """Run an async generator to its end; it is closed in any case."""
    yields = Yields(ctx)
    async with aclosing(generator):
        async for value in generator:
            yields.take(value)
    return yields.end()
