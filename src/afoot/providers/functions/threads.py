"""`ToolThreads` and `LoopThread` run functions in threads or on loops of their own (G4).

A thread cannot be killed. One whose call was cancelled sees it in `ctx.cancelled`, and is counted until it
ends.

The module also has `run_blocking`, for code of ours that blocks (awaited where a loop runs, waited for
elsewhere), and `collect`, which runs a generator tool to its end: partial results, and the one value that is
its result (P11).
"""

import asyncio
import inspect
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, closing, suppress
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct

from afoot.core.facts import Result
from afoot.errors import ToolError
from afoot.providers.content import Partial, content_of, join_content
from afoot.providers.functions.context import Context, current_context, log_line, send_partial, stop_call
from afoot.providers.functions.loop_queue import LoopQueue
from afoot.providers.functions.watchdog import Watchdog

STUCK_LIMIT: Final = 8
THREAD_EXIT_S: Final = 4.0  # for a cancelled thread to end; one that waits for something else is left alone
_NO_VALUE: Final = object()
_T = TypeVar("_T")


class WorkOutcome(Struct, frozen=True):
    """The end of a piece of work: a value, or an error."""

    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        """The value; raises the error."""
        if self.error is not None:
            raise self.error
        return self.value


class ToolThreads:
    """The threads of sync tools, one daemon thread for each call; counts those that outlive their call."""

    def __init__(
        self, stuck_limit: int = STUCK_LIMIT, cancel_waits: bool = False, watchdog: Watchdog | None = None
    ) -> None:
        self.running = 0
        self._watchdog = watchdog or Watchdog()
        self.stuck: Counter[str] = Counter()  # by tool; a thread is in it from its cancel to its end
        self._stuck_limit = stuck_limit
        self._cancel_waits = cancel_waits

    async def run(self, ctx: Context, queue: LoopQueue, tool: str, call: Callable[[], Any]) -> Any:
        """Run a call in a thread and return its value; raises its error, or ToolError.unavailable.

        The latter if too many threads of cancelled calls are stuck, or no thread can be started.
        """
        if self.stuck[tool] >= self._stuck_limit:
            raise ToolError.unavailable(
                f"{tool}: {self.stuck[tool]} cancelled calls are still running and cannot be stopped",
                code="stuck_threads",
            )
        done: asyncio.Future[WorkOutcome] = queue.loop.create_future()
        self._start(ctx, tool, call, lambda outcome: queue.put(ctx, self._on_end, done, outcome))
        return (await self._wait(ctx, tool, done)).get()

    def _start(
        self, ctx: Context, tool: str, call: Callable[[], Any], on_done: Callable[[WorkOutcome], object]
    ) -> None:
        thread = threading.Thread(
            target=copy_context().run,
            args=(self._run_in_thread, ctx, tool, call, on_done),
            name=f"afoot-tool-{ctx.id}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            raise ToolError.unavailable(f"no thread could be started: {error}", code="no_thread") from error
        self.running += 1

    def _run_in_thread(
        self, ctx: Context, tool: str, call: Callable[[], Any], on_done: Callable[[WorkOutcome], object]
    ) -> None:
        """The target of a tool's thread."""
        self._watchdog.enter_thread(tool, ctx)
        try:
            value = call()
            if inspect.isgenerator(value):
                value = collect(value, ctx)
            outcome = WorkOutcome(value)
        except BaseException as error:  # nothing else would report it from a thread
            outcome = WorkOutcome(error=error)
        self._watchdog.leave_thread(ctx)
        on_done(outcome)

    async def _wait(self, ctx: Context, tool: str, done: "asyncio.Future[WorkOutcome]") -> WorkOutcome:
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            stop_call(ctx, ctx.cancelled or "cancelled")
            self.stuck[tool] += 1
            done.add_done_callback(lambda _: self._forget_stuck(tool))
            if self._cancel_waits:
                try:
                    return await asyncio.shield(done)
                except asyncio.CancelledError:
                    pass
            done.add_done_callback(lambda ended: _record_late_outcome(ctx, ended.result()))
            raise

    def _on_end(self, done: "asyncio.Future[WorkOutcome]", outcome: WorkOutcome) -> None:
        self.running -= 1
        _resolve(done, outcome)

    def _forget_stuck(self, tool: str) -> None:
        self.stuck[tool] -= 1
        if not self.stuck[tool]:
            del self.stuck[tool]


class LoopThread:
    """An event loop on a thread of its own, for a tool that blocks. Its first call starts the thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.watchdog = Watchdog()  # its provider's takes its place
        self.loop: asyncio.AbstractEventLoop | None = None

    async def run(self, ctx: Context, queue: LoopQueue, call: Callable[[], Awaitable[Any]]) -> Any:
        """Run a call on the loop and return its value. A first cancel is passed on and waited for."""
        done: asyncio.Future[WorkOutcome] = queue.loop.create_future()

        async def watched() -> Any:
            self.watchdog.enter_thread(self._name, ctx)
            try:
                return await call()
            finally:
                self.watchdog.leave_thread(ctx)

        task = _LoopTask(watched, lambda outcome: queue.put(ctx, _resolve, done, outcome), copy_context())
        loop = self.running_loop()
        loop.call_soon_threadsafe(task.start)
        try:
            return (await asyncio.shield(done)).get()
        except asyncio.CancelledError:
            if done.done():  # the tool cancelled itself
                raise
            stop_call(ctx, ctx.cancelled or "cancelled")
            loop.call_soon_threadsafe(task.cancel)
            return (await asyncio.shield(done)).get()

    def close(self) -> None:
        """Stop the loop; calls that still run there are abandoned."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.loop = None

    def running_loop(self) -> asyncio.AbstractEventLoop:
        """The loop; the first call starts its thread."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=_run_loop, args=(self.loop,), name=f"afoot-loop-{self._name}", daemon=True
            )
            thread.start()
        return self.loop


class _LoopTask:
    """One call on the loop of a `LoopThread`; both methods run there."""

    __slots__ = ("_call", "_on_done", "_task", "_variables")

    def __init__(
        self,
        call: Callable[[], Awaitable[Any]],
        on_done: Callable[[WorkOutcome], object],
        variables: Variables,
    ) -> None:
        self._call = call
        self._on_done = on_done
        self._variables = variables
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), context=self._variables)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            self._on_done(WorkOutcome(await self._call()))
        except BaseException as error:  # it belongs to the call, on the other loop
            self._on_done(WorkOutcome(error=error))


class CancelToken:
    """A token that says whether blocking work should stop: its caller or its call was cancelled."""

    __slots__ = ("_ctx", "_is_cancelled")

    def __init__(self, ctx: Context | None) -> None:
        self._ctx = ctx
        self._is_cancelled = False

    def cancel(self) -> None:
        """Tell the work to stop."""
        self._is_cancelled = True

    def raise_if_cancelled(self) -> None:
        """Raises ToolError.cancelled if the work should stop."""
        if self._is_cancelled:
            raise ToolError.cancelled("cancelled")
        if self._ctx is not None and self._ctx.cancelled is not None:
            raise ToolError.cancelled(self._ctx.cancelled)


def run_blocking(work: Callable[[Context | None, CancelToken], _T]) -> Any:
    """The work's value in a plain thread; where a loop runs, an awaitable of it.

    If the awaiting task is cancelled, the work is told to stop and waited for.
    """
    ctx = current_context.get()
    token = CancelToken(ctx)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work(ctx, token)
    return _run_in_thread(lambda: work(ctx, token), token)


async def _run_in_thread(work: Callable[[], _T], token: CancelToken) -> _T:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()
    threading.Thread(
        target=copy_context().run,
        args=(_run_and_resolve, loop, done, work),
        name="afoot-tool-blocking",
        daemon=True,
    ).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        token.cancel()
        done.add_done_callback(lambda ended: ended.exception())  # retrieved, as the cancel is known already
        await asyncio.wait([done], timeout=THREAD_EXIT_S)
        raise


def _run_and_resolve(
    loop: asyncio.AbstractEventLoop, done: "asyncio.Future[_T]", work: Callable[[], _T]
) -> None:
    try:
        resolve = partial(done.set_result, work())
    except StopIteration as error:  # a future refuses this class
        resolve = partial(done.set_exception, RuntimeError(f"StopIteration: {error}"))
    except BaseException as error:  # nothing else would report it from a thread
        resolve = partial(done.set_exception, error)
    if not loop.is_closed():
        loop.call_soon_threadsafe(resolve)


def collect(generator: Generator[Any, Any, Any], ctx: Context) -> Any:
    """Run a sync generator to its end, or until the call is cancelled; it is closed in any case."""
    values = YieldCollector(ctx)
    with closing(generator):
        while True:
            try:
                value = next(generator)
            except StopIteration as end:
                if end.value is not None:
                    values.add(end.value)
                return values.result()
            values.add(value)
            if ctx.cancelled:
                raise ToolError.cancelled(ctx.cancelled)


async def collect_async(generator: AsyncGenerator[Any, Any], ctx: Context) -> Any:
    """Run an async generator to its end, and close it even after an error."""
    values = YieldCollector(ctx)
    async with aclosing(generator):
        async for value in generator:
            values.add(value)
    return values.result()


class YieldCollector:
    """The values that a generator tool yielded so far. Partial results are sent as they come."""

    __slots__ = ("_ctx", "_partials", "_value")

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._partials: list[Raw] = []
        self._value: Any = _NO_VALUE

    def add(self, value: Any) -> None:
        """Add one yielded value; raises ToolError.internal for a second result."""
        if type(value) is Partial:
            content = content_of(value.content)
            self._partials.append(content)
            send_partial(self._ctx, content)
        elif self._value is _NO_VALUE:
            self._value = value
        else:
            raise ToolError.internal(
                "the tool yielded a second result: only one value may be no Partial;"
                " yield each part as afoot.Partial(part)"
            )

    def result(self) -> Any:
        """The one value that is no partial result, or else all partial results joined."""
        return Result(join_content(self._partials)) if self._value is _NO_VALUE else self._value


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    is_stopped = False
    try:
        while not is_stopped:
            # A task that ends with SystemExit or KeyboardInterrupt, as tools may start them, throws it out of
            # the loop as well. Its call is told, and the loop goes on for the others.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
                is_stopped = True
    finally:
        loop.close()


def _resolve(done: "asyncio.Future[WorkOutcome]", outcome: WorkOutcome) -> None:
    if not done.done():
        done.set_result(outcome)


def _record_late_outcome(ctx: Context, outcome: WorkOutcome) -> None:
    """Record the late result of a thread in the history; nobody receives it (C7)."""
    error = outcome.error
    if error is None:
        if outcome.value is not None:
            try:
                send_partial(ctx, content_of(outcome.value))
            except ToolError as unsendable:
                log_line(ctx, f"ended late: {unsendable}", "error", "afoot")
    elif not (isinstance(error, ToolError) and error.category == "cancelled"):
        log_line(ctx, f"ended late: {type(error).__name__}: {error}", "error", "afoot")
