"""The Context: what a tool's function receives, and the only thing it needs to know of afoot.

It may be used on the engine's loop, on another loop and in any thread: what is said elsewhere goes over the
lane. Where a loop runs, `ask`, `sample` and `roots` are awaited; in a thread without one they block.
"""

import asyncio
import concurrent.futures as futures
import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextvars import ContextVar
from functools import partial
from itertools import count
from threading import Lock, get_ident
from typing import Any, Final, TypeVar, overload

import msgspec
from msgspec import Raw

from afoot.core.facts import NOTHING, Question
from afoot.core.ports import Report, Run
from afoot.errors import ToolError
from afoot.providers.asking import Asking
from afoot.providers.content import json_of
from afoot.providers.hygiene import LARGEST, encoded, line, lines, number
from afoot.providers.lane import Lane
from afoot.providers.questions import Reply, form_of, returned, roots_of, value_of

MESSAGE_LIMIT: Final = 1000
LEVELS: Final = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
_log = logging.getLogger("afoot.providers")
_NUMBERS = frozenset({int, float})
_one_asking = Lock()
_A = TypeVar("_A")
_T = TypeVar("_T")

current: ContextVar["Context | None"] = ContextVar("afoot_call", default=None)
"""The call that the running code belongs to, if any."""


class Context:
    """The call as its tool sees it."""

    __slots__ = (
        "_asking", "_bars", "_complaints", "_keys", "_lane", "_limit", "_output", "_report", "_run",
        "_stopped", "_thread",
    )  # fmt: skip

    def __init__(self, run: Run, lane: Lane, limit: int = MESSAGE_LIMIT) -> None:
        self._run = run
        self._report = run.report
        self._lane = lane
        self._thread = lane.ident
        self._limit = limit
        self._stopped: str | None = None
        self._keys = count(1)
        self._asking: Asking | None = None
        self._complaints: set[str] | None = None
        self._bars: Any = None  # kept by `bars`
        self._output: Any = None  # kept by `capture`

    @property
    def id(self) -> str:
        """The call's id."""
        return self._run.id

    @property
    def cancelled(self) -> str | None:
        """Why the work should stop, or None while it should go on."""
        return self._stopped or self._run.cancelled

    @property
    def resumed_from(self) -> Any:
        """What an earlier attempt saved with `checkpoint`, or None."""
        saved = bytes(self._run.resumed_from)
        return msgspec.json.decode(saved) if saved else None

    def report(
        self,
        progress: float | None = None,
        total: float | None = None,
        message: str | None = None,
        *,
        data: Any = None,
    ) -> None:
        """Say how far it is, in whatever is known of it. Never raises, never blocks (P1)."""
        try:
            # Straight on, without a call in between, for what needs no repair: this is the hot path.
            if (
                data is None
                and (progress is None or (type(progress) in _NUMBERS and 0 <= progress <= LARGEST))
                and (total is None or (type(total) in _NUMBERS and 0 <= total <= LARGEST))
                and (
                    message is None
                    or (type(message) is str and len(message) <= self._limit and message.isprintable())
                )
            ):
                if get_ident() == self._thread:
                    self._report(progress, total, message)
                else:
                    self._lane.reading(self, self._report, progress, total, message)
            else:
                self._repair(progress, total, message, data)
        except Exception:  # a broken observer costs an update, never the call (P3)
            _log.exception("call %s: a report was lost", self._run.id)

    def alive(self) -> None:
        """Say that it lives, without having advanced (C5)."""
        try:
            if get_ident() == self._thread:
                self._run.alive()
            else:
                self._lane.reading(("alive", self), self._run.alive)
        except Exception:
            _log.exception("call %s: a heartbeat was lost", self._run.id)

    def log(self, text: str, level: str = "info") -> None:
        """Write a line for the history and for callers that read logs; it touches no clock."""
        say(self, text, level, "")

    def checkpoint(self, value: Any) -> None:
        """Save where it is, for the attempt after a crash; raises ToolError.internal for what has no JSON."""
        self._content(Report(checkpoint=json_of(value)))

    @overload
    def track(
        self, iterable: Iterable[_T], total: float | None = None, message: str | None = None
    ) -> Iterator[_T]: ...

    @overload
    def track(
        self, iterable: AsyncIterable[_T], total: float | None = None, message: str | None = None
    ) -> AsyncIterator[_T]: ...

    def track(self, iterable: Any, total: float | None = None, message: str | None = None) -> Any:
        """The same items, each reported once it is done with.

        In a sync tool it raises ToolError.cancelled once the call is cancelled.
        """
        if total is None and hasattr(iterable, "__len__"):
            total = len(iterable)
        if hasattr(iterable, "__iter__"):
            return self._each(iterable, total, message)
        return self._each_async(iterable, total, message)

    def ask(self, message: str, schema: Any = None, key: str | None = None) -> Reply:
        """Ask a person: a form by a JSON schema, model, dataclass, TypedDict or plain type; None: to confirm.

        Await it in an async tool; in a sync tool it blocks, and raises ToolError.cancelled after a cancel.
        """
        form = form_of(schema)
        question = Question("", key or self._key(), "form", lines(message, 10 * self._limit), form.body)
        reply = self._put(partial(self._run.ask, question), form.read)
        return reply if isinstance(reply, Reply) else Reply.later(reply)

    def sample(self, params: Mapping[str, Any], key: str | None = None) -> Any:
        """Ask the caller's model; the result of `sampling/createMessage`. Awaited or blocking, like `ask`."""
        question = Question("", key or self._key(), "sample", body=json_of(dict(params)))
        return self._put(partial(self._run.ask, question), value_of)

    def roots(self, key: str | None = None) -> Any:
        """The folders that the caller works in. Awaited or blocking, like `ask`."""
        return self._put(partial(self._run.ask, Question("", key or self._key(), "roots")), roots_of)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, *, weight: float = 1.0) -> Any:
        """Call another tool below this call; its structured result, or its text (P8). Awaited or blocking.

        `weight` is its share of this call's progress, beside its siblings'. Raises ToolError where it fails.
        """
        encoded = json_of(dict(arguments or {}))
        return self._put(partial(self._run.call, tool, encoded, weight), returned)

    def _key(self) -> str:
        return f"q{next(self._keys)}"

    def _repair(self, progress: Any, total: Any, message: Any, data: Any) -> None:
        n, of, text = number(progress), number(total), line(message, self._limit)
        if n is None and progress is not None:
            self._complain("progress", f"progress was no finite number: {line(repr(progress), 80)}")
        if of is None and total is not None:
            self._complain("total", f"total was no finite number: {line(repr(total), 80)}")
        raw = NOTHING if data is None else self._data(data)
        if raw and self._content(Report(n, of, text, raw)):
            return
        if get_ident() == self._thread:
            self._report(n, of, text)
        else:
            self._lane.reading(self, self._report, n, of, text)

    def _data(self, data: Any) -> Raw:
        try:
            return encoded(data)
        except Exception as error:  # an object of the author's own may raise anything
            self._complain("data", f"data was dropped, it cannot be encoded: {error}")
            return NOTHING

    def _content(self, report: Report) -> bool:
        if get_ident() == self._thread:
            self._run.content(report)
        elif not report.data:
            self._lane.put(self, self._run.content, report)
        elif not self._lane.offer(self, self._run.content, report):
            self._complain("full", "data was dropped, it came faster than it could be taken")
            return False
        return True

    def _complain(self, about: str, text: str) -> None:
        """Once a call for each kind of repair: it is to be seen, not to flood."""
        said = self._complaints = self._complaints if self._complaints is not None else set()
        if about not in said:
            said.add(about)
            _log.warning("call %s: %s", self._run.id, text)
            say(self, text, "warning", "afoot")

    def _check(self) -> None:
        if self._stopped is not None:
            raise ToolError.cancelled(self._stopped)

    def _each(self, iterable: Iterable[_T], total: float | None, message: str | None) -> Iterator[_T]:
        self.report(0, total, message)
        for n, item in enumerate(iterable, 1):
            self._check()
            yield item
            self.report(n, total, message)

    async def _each_async(
        self, iterable: AsyncIterable[_T], total: float | None, message: str | None
    ) -> AsyncIterator[_T]:
        self.report(0, total, message)
        n = 0
        async for item in iterable:
            yield item
            n += 1
            self.report(n, total, message)

    def _put(
        self, start: Callable[[], Awaitable[_A]], read: Callable[[_A], _T]
    ) -> "_T | Coroutine[Any, Any, _T]":
        self._check()
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # a plain thread: it may wait
            return read(self._across(start).result())
        return self._wait(start, read)

    async def _wait(self, start: Callable[[], Awaitable[_A]], read: Callable[[_A], _T]) -> _T:
        if get_ident() == self._thread:
            return read(await start())
        return read(await asyncio.wrap_future(self._across(start)))

    def _across(self, start: Callable[[], Awaitable[_A]]) -> "futures.Future[_A]":
        with _one_asking:  # two threads of a tool may ask at the same moment
            if self._asking is None:
                self._asking = Asking(self._lane)
        return self._asking.ask(self, start)


def say(ctx: Context, text: str, level: str, logger: str) -> None:
    """A line for the call's history, from any thread; never raises."""
    try:
        cleaned = lines(text, 10 * ctx._limit)
        known = level if level in LEVELS else "info"
        if get_ident() == ctx._thread:
            ctx._run.log(cleaned, known, logger)
        else:
            ctx._lane.offer(ctx, ctx._run.log, cleaned, known, logger)
    except Exception:
        _log.exception("call %s: a log line was lost", ctx._run.id)


def give(ctx: Context, partial: Raw) -> None:
    """A partial result, from any thread; a thread that is far ahead of the loop waits for it."""
    ctx._content(Report(partial=partial))
    if get_ident() != ctx._thread:
        ctx._lane.settle(ctx)


def stop(ctx: Context, reason: str) -> None:
    """The call is over for its tool: threads see it in `cancelled`, whoever waits for an answer is told."""
    ctx._stopped = reason
    if ctx._asking is not None:
        ctx._asking.stop(reason)
