"""Where a function runs when it is not on the engine's loop: in a thread, or on a loop of its own (G4).

A thread cannot be killed. One whose call was cancelled is told by `ctx.cancelled`, and counted until it ends.
"""

import asyncio
import inspect
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Any, Final

from msgspec import Struct

from afoot.errors import ToolError
from afoot.providers.content import content_of
from afoot.providers.context import Context, give, say, stop
from afoot.providers.lane import Lane
from afoot.providers.yields import collect

STUCK_LIMIT: Final = 8
_log = logging.getLogger("afoot.providers")


class Outcome(Struct, frozen=True):
    """How a piece of work ended: with a value, or with an error."""

    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        """The value; raises the error."""
        if self.error is not None:
            raise self.error
        return self.value


class Threads:
    """One daemon thread a call for sync tools: how many there are, and how many outlived their call."""

    def __init__(self, stuck_limit: int = STUCK_LIMIT, cancel_waits: bool = False) -> None:
        self.running = 0
        self.stuck: Counter[str] = Counter()  # by tool; a thread is in it from its cancel to its end
        self._stuck_limit = stuck_limit
        self._cancel_waits = cancel_waits

    async def run(self, ctx: Context, lane: Lane, tool: str, call: Callable[[], Any]) -> Any:
        """What the call returns; raises what it raises, ToolError.unavailable with too many stuck threads."""
        if self.stuck[tool] >= self._stuck_limit:
            raise ToolError.unavailable(
                f"{tool}: {self.stuck[tool]} cancelled calls are still running and cannot be stopped",
                code="stuck_threads",
            )
        done: asyncio.Future[Outcome] = lane.loop.create_future()
        self._start(ctx, call, lambda outcome: lane.put(ctx, self._ended, tool, ctx, done, outcome))
        return (await self._wait(ctx, tool, done)).get()

    def _start(self, ctx: Context, call: Callable[[], Any], then: Callable[[Outcome], object]) -> None:
        args = (_work, call, ctx, then)
        thread = threading.Thread(
            target=copy_context().run, args=args, name=f"afoot-tool-{ctx.id}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            raise ToolError.unavailable(f"no thread could be started: {error}", code="no_thread") from error
        self.running += 1

    async def _wait(self, ctx: Context, tool: str, done: "asyncio.Future[Outcome]") -> Outcome:
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            stop(ctx, ctx.cancelled or "cancelled")
            self.stuck[tool] += 1
            done.add_done_callback(lambda _: self._freed(tool))
            if self._cancel_waits:
                try:
                    return await asyncio.shield(done)
                except asyncio.CancelledError:
                    pass
            done.add_done_callback(lambda ended: _late(ctx, ended.result()))
            raise

    def _ended(self, tool: str, ctx: Context, done: "asyncio.Future[Outcome]", outcome: Outcome) -> None:
        self.running -= 1
        if not done.done():
            done.set_result(outcome)

    def _freed(self, tool: str) -> None:
        self.stuck[tool] -= 1
        if not self.stuck[tool]:
            del self.stuck[tool]


class OwnLoop:
    """A loop on its own thread, for a tool that blocks. Started by its first call, stopped by `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.loop: asyncio.AbstractEventLoop | None = None

    async def run(self, ctx: Context, lane: Lane, call: Callable[[], Awaitable[Any]]) -> Any:
        """What the call returns. A cancel is passed on and waited for; a second one is not."""
        done: asyncio.Future[Outcome] = lane.loop.create_future()
        work = _Task(call, lambda outcome: lane.put(ctx, _settle, done, outcome), copy_context())
        loop = self._started()
        loop.call_soon_threadsafe(work.start)
        try:
            return (await asyncio.shield(done)).get()
        except asyncio.CancelledError:
            if done.done():  # the tool gave itself up
                raise
            stop(ctx, ctx.cancelled or "cancelled")
            loop.call_soon_threadsafe(work.cancel)
            return (await asyncio.shield(done)).get()

    def close(self) -> None:
        """Stop the loop; what still runs there is abandoned."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.loop = None

    def _started(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=_serve, args=(self.loop,), name=f"afoot-loop-{self._name}", daemon=True
            )
            thread.start()
        return self.loop


class _Task:
    """One call on an own loop; both methods run there."""

    __slots__ = ("_call", "_task", "_then", "_variables")

    def __init__(
        self, call: Callable[[], Awaitable[Any]], then: Callable[[Outcome], object], variables: Variables
    ) -> None:
        self._call = call
        self._then = then
        self._variables = variables
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), context=self._variables)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            self._then(Outcome(await self._call()))
        except BaseException as error:  # it belongs to the call, on the other loop
            self._then(Outcome(error=error))


def _work(call: Callable[[], Any], ctx: Context, then: Callable[[Outcome], object]) -> None:
    """The life of a tool's thread."""
    try:
        value = call()
        if inspect.isgenerator(value):
            value = collect(value, ctx)
        outcome = Outcome(value)
    except BaseException as error:  # a thread has nobody else to tell
        outcome = Outcome(error=error)
    then(outcome)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _settle(done: "asyncio.Future[Outcome]", outcome: Outcome) -> None:
    if not done.done():
        done.set_result(outcome)


def _late(ctx: Context, outcome: Outcome) -> None:
    """What came after the end is kept, though nobody waits for it (C7)."""
    if outcome.error is None:
        if outcome.value is not None:
            try:
                give(ctx, content_of(outcome.value))
            except ToolError as error:
                say(ctx, f"ended late: {error}", "error", "afoot")
    elif not (isinstance(outcome.error, ToolError) and outcome.error.category == "cancelled"):
        say(ctx, f"ended late: {type(outcome.error).__name__}: {outcome.error}", "error", "afoot")
