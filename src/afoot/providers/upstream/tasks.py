"""`UpstreamTask` follows one task of a server until its end, for the call that it was made for (U9).

It asks for the task as often as the server suggests, and hears of changes in between where the server tells
them. The task's status is the call's progress, its questions are the call's questions. A call that ends
before its task cancels the task.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from msgspec import Raw, Struct, field

from afoot.core.ports import Run
from afoot.errors import RunnerDied, ToolError
from afoot.providers.content import LARGEST, clean_line
from afoot.providers.upstream.connection import McpConnection
from afoot.providers.upstream.transport.transport import RecordMessage, Request, RequestListener
from afoot.wire.client import incoming
from afoot.wire.client import tasks as client_tasks
from afoot.wire.client.incoming import InputRequest
from afoot.wire.client.tasks import ReceivedTask
from afoot.wire.jsonrpc import Fault

MESSAGE_CHARS: Final = 1000
MAX_FAILURES: Final = 5  # requests for the task that fail in a row; over HTTP a task outlives a broken stream
FAILURE_PAUSE_S: Final = 0.25  # before the first of them is made again, doubling
CANCEL_S: Final = 5.0  # for the server to hear of a cancel

AnswerAll = Callable[[dict[str, InputRequest]], Awaitable[dict[str, object]]]


class UpstreamTask(Struct, eq=False):
    """A task of a server, on the connection that it was made on."""

    _task: ReceivedTask
    _run: Run
    _connection: McpConnection
    _listener: RequestListener
    _answer_all: AnswerAll
    _record: RecordMessage | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)  # set when there is a reason not to wait
    _is_told: bool = False  # whether the server itself has told the newest state
    _answered: set[str] = set()  # keys of questions that somebody was asked
    _failures: int = 0
    _last_shown: tuple[object, ...] = ()
    _works: list[asyncio.Task[Any]] = []  # that run while it is polled, and end with it
    _result: asyncio.Task[Raw] | None = None  # of `tasks/result`, which on 2025-11-25 also brings questions

    async def follow(self) -> Raw:
        """Return the result of the task's call; raises Fault, ToolError, RunnerDied."""
        is_over = False
        with self._connection.following_task(self._task.id, self._listener, self._on_news):
            try:
                if self._connection.dialect.is_modern:
                    self._run_while_polling(self._listen())
                while not self._task.is_final and not (self._result and self._result.done()):
                    self._show()
                    self._ask()
                    await self._wait()
                    await self._poll()
                is_over = True
                return await self._end()
            except RunnerDied as died:  # its last request may not have been sent, but the task had begun
                raise RunnerDied(str(died), code=died.code) from None
            finally:
                for work in (*self._works, self._result):
                    if work is not None:
                        work.cancel()
                if not is_over and self._connection.lost is None:
                    await self._cancel()

    def _show(self) -> None:
        """Make the status the progress of the call; a server that answers is a sign of life."""
        task, details = self._task, self._task.details
        number = details.progress if details is not None else None
        total = details.total if details is not None else None
        if number is not None and not 0 <= number <= LARGEST:
            number, total = None, None
        message = clean_line(task.message, MESSAGE_CHARS)
        shown = (number, total, message)
        if shown == self._last_shown or shown == (None, None, None):
            self._run.alive()
        else:
            self._run.report(number, total, message)
        self._last_shown = shown

    def _ask(self) -> None:
        """Ask the questions of the task: on 2025-11-25 `tasks/result` sends them, later the task has them."""
        if self._task.status != "input_required":
            return
        if not self._connection.dialect.is_modern:
            self._result = self._result or _start(self._request("tasks/result"))
            return
        asked = self._task.input_requests or {}
        if new := {key: one for key, one in asked.items() if key not in self._answered}:
            self._answered |= set(new)
            self._run_while_polling(self._answer(new))

    async def _answer(self, asked: dict[str, InputRequest]) -> None:
        answers = await self._answer_all(asked)
        await self._request("tasks/update", inputResponses=answers)
        self._news.set()  # the task goes on: no need to wait for the next poll

    async def _wait(self) -> None:
        """Wait until the task is to be asked for; raises the error of any work that runs meanwhile."""
        news = _start(self._news.wait())
        pause_s = self._task.poll_s
        if self._failures:
            pause_s = max(pause_s, FAILURE_PAUSE_S * 2 ** (self._failures - 1))
        try:
            parts = {news, *self._works, *([self._result] if self._result is not None else ())}
            await asyncio.wait(parts, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        for work in [work for work in self._works if work.done()]:
            self._works.remove(work)
            work.result()

    async def _poll(self) -> None:
        """Ask for the task, unless the server has just told of it; raises Fault, RunnerDied, ToolError."""
        is_told, self._is_told = self._is_told, False
        self._news.clear()
        if is_told or (self._result is not None and self._result.done()):
            return
        try:
            self._task = client_tasks.read_task(await self._request("tasks/get"))
            self._failures = 0
        except (RunnerDied, ToolError):
            self._failures += 1
            if self._connection.lost is not None or self._failures > MAX_FAILURES:
                raise

    async def _end(self) -> Raw:
        """Return the result of a task that is over; raises Fault or ToolError for one that has none."""
        task = self._task
        if self._result is not None:
            return await self._result
        if task.status == "cancelled":
            raise ToolError.cancelled(
                f"server {self._connection.server_log.server} cancelled its task"
                + (f": {clean_line(task.message, MESSAGE_CHARS)}" if task.message else "")
            )
        if not self._connection.dialect.is_modern:
            return await self._request("tasks/result")
        if task.status == "failed":
            raise incoming.read_error(task.error)
        return task.result

    async def _cancel(self) -> None:
        """Tell the server that nobody wants the task any more; it need not stop, and is not waited for."""
        asking = _start(self._request("tasks/cancel"))
        with suppress(Fault, RunnerDied, ToolError, TimeoutError):
            await asyncio.wait_for(asking, CANCEL_S)

    async def _listen(self) -> None:
        """Have the server tell of the task, where it can; else polling alone must do (2026-07-28)."""
        with suppress(Fault, RunnerDied, ToolError):
            await self._connection.request(
                Request(
                    "subscriptions/listen",
                    {"notifications": {"taskIds": [self._task.id]}},
                    meta=client_tasks.DECLARED,
                )
            )
        await asyncio.Event().wait()  # ends with the task

    def _on_news(self, task: ReceivedTask | None) -> None:
        """Take a state that the server tells of, or note that it is gone; behind the end it is too late."""
        if task is not None and not self._task.is_final:
            self._task = task
            self._is_told = True
        self._news.set()

    def _request(self, method: str, **params: object) -> Awaitable[Raw]:
        is_modern = self._connection.dialect.is_modern
        return self._connection.request(
            Request(
                method,
                {"taskId": self._task.id, **params},
                listener=self._listener,
                meta=client_tasks.DECLARED if is_modern else {},
                record=self._record,
            )
        )

    def _run_while_polling(self, work: Coroutine[Any, Any, None]) -> None:
        self._works.append(_start(work))


def _start(work: Awaitable[Any]) -> "asyncio.Task[Any]":
    task = asyncio.ensure_future(work)
    assert isinstance(task, asyncio.Task)
    task.add_done_callback(_retrieve_exception)
    return task


def _retrieve_exception(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()
