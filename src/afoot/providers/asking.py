"""Questions asked off the engine's loop: opened there for whoever waits in a thread or on another loop."""

import asyncio
from concurrent.futures import Future

from afoot.core.facts import Answer, Question
from afoot.core.ports import Run
from afoot.errors import ToolError
from afoot.providers.lane import Lane


class Asking:
    """The questions of one call that are waited for elsewhere."""

    __slots__ = ("_lane", "_run", "_stopped", "_tasks")

    def __init__(self, run: Run, lane: Lane) -> None:
        self._run = run
        self._lane = lane
        self._stopped: str | None = None
        self._tasks: set[asyncio.Task[Answer]] = set()

    def ask(self, call: object, question: Question) -> "Future[Answer]":
        """From any thread; the future raises ToolError.cancelled once the call is stopped."""
        answer: Future[Answer] = Future()
        self._lane.put(call, self._open, question, answer)
        if self._lane.loop.is_closed():
            raise ToolError.cancelled("the gateway is gone")
        return answer

    def stop(self, reason: str) -> None:
        """On the loop: nobody is waiting for these any more."""
        self._stopped = reason
        for task in tuple(self._tasks):
            task.cancel()

    def _open(self, question: Question, answer: "Future[Answer]") -> None:
        if self._stopped is not None:
            answer.set_exception(ToolError.cancelled(self._stopped))
            return
        task = self._lane.loop.create_task(self._asked(question))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._hand_over(done, answer))
        answer.add_done_callback(lambda done: done.cancelled() and self._lane.put(self, task.cancel))

    async def _asked(self, question: Question) -> Answer:
        return await self._run.ask(question)

    def _hand_over(self, task: "asyncio.Task[Answer]", answer: "Future[Answer]") -> None:
        self._tasks.discard(task)
        if not answer.set_running_or_notify_cancel():
            return
        if task.cancelled():
            answer.set_exception(ToolError.cancelled(self._stopped or "the question was withdrawn"))
        elif error := task.exception():
            answer.set_exception(error)
        else:
            answer.set_result(task.result())
