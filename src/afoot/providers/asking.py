"""Questions and calls made off the engine's loop, for whoever waits in a thread or on another loop."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from afoot.errors import ToolError
from afoot.providers.lane import Lane

_T = TypeVar("_T")


class Asking:
    """What one call asked for that is waited for elsewhere."""

    __slots__ = ("_lane", "_stopped", "_tasks")

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._stopped: str | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def ask(self, call: object, start: Callable[[], Awaitable[_T]]) -> "Future[_T]":
        """From any thread; the future raises ToolError.cancelled once the call is stopped."""
        answer: Future[_T] = Future()
        self._lane.put(call, self._open, start, answer)
        if self._lane.loop.is_closed():
            raise ToolError.cancelled("the gateway is gone")
        return answer

    def stop(self, reason: str) -> None:
        """On the loop: nobody is waiting for these any more."""
        self._stopped = reason
        for task in tuple(self._tasks):
            task.cancel()

    def _open(self, start: Callable[[], Awaitable[_T]], answer: "Future[_T]") -> None:
        if self._stopped is not None:
            answer.set_exception(ToolError.cancelled(self._stopped))
            return
        task = self._lane.loop.create_task(_awaited(start))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._hand_over(done, answer))
        answer.add_done_callback(lambda done: done.cancelled() and self._lane.put(self, task.cancel))

    def _hand_over(self, task: "asyncio.Task[_T]", answer: "Future[_T]") -> None:
        self._tasks.discard(task)
        if not answer.set_running_or_notify_cancel():
            return
        if task.cancelled():
            answer.set_exception(ToolError.cancelled(self._stopped or "the question was withdrawn"))
        elif error := task.exception():
            answer.set_exception(error)
        else:
            answer.set_result(task.result())


async def _awaited(start: Callable[[], Awaitable[_T]]) -> _T:
    return await start()
