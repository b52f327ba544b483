"""Work that blocks, for whoever calls: awaited where a loop runs, waited for in a thread without one."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

from afoot.errors import ToolError
from afoot.providers.context import Context, current

LEAVING_S: Final = 4.0  # for the thread to end; one that waits for somebody else is left to itself
_T = TypeVar("_T")


class Stop:
    """Whether the work should end: somebody said so, or its call is cancelled."""

    __slots__ = ("_asked", "_ctx")

    def __init__(self, ctx: Context | None) -> None:
        self._ctx = ctx
        self._asked = False

    def ask(self) -> None:
        """It should end."""
        self._asked = True

    @property
    def why(self) -> str | None:
        """Why it should end, or None."""
        return "cancelled" if self._asked else None if self._ctx is None else self._ctx.cancelled

    def check(self) -> None:
        """Raises ToolError.cancelled."""
        if (why := self.why) is not None:
            raise ToolError.cancelled(why)


def beside(work: Callable[[Context | None, Stop], _T]) -> Any:
    """The work's value, or an awaitable of it. Cancelled, it is told to stop and waited for."""
    ctx = current.get()
    stop = Stop(ctx)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work(ctx, stop)
    return _awaited(lambda: work(ctx, stop), stop)


async def _awaited(work: Callable[[], _T], stop: Stop) -> _T:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()
    variables = copy_context()
    args = (_settle, loop, done, work)
    threading.Thread(target=variables.run, args=args, name="afoot-tool-beside", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        stop.ask()
        done.add_done_callback(lambda ended: ended.exception())  # that it was stopped is known
        await asyncio.wait([done], timeout=LEAVING_S)
        raise


def _settle(loop: asyncio.AbstractEventLoop, done: "asyncio.Future[_T]", work: Callable[[], _T]) -> None:
    try:
        then = partial(done.set_result, work())
    except StopIteration as error:  # which no future takes
        then = partial(done.set_exception, RuntimeError(f"StopIteration: {error}"))
    except BaseException as error:  # a thread has nobody else to tell
        then = partial(done.set_exception, error)
    if not loop.is_closed():
        loop.call_soon_threadsafe(then)
