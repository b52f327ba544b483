"""`Context` is the object that a tool's function receives, the only part of afoot that it needs to know.

A context may be used on the engine's loop, on another loop and in any thread: off the engine's loop,
everything goes through the loop queue. With a running loop, `ask`, `sample`, `roots` and `call` are awaited;
in a thread without one they block.
"""

import asyncio
import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Set,
)
from concurrent.futures import Future
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import count
from threading import Lock, get_ident
from typing import Any, Final, TypeVar, overload

import msgspec
from msgspec import Raw, Struct
from pydantic import TypeAdapter, ValidationError

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.core.ports import CallOrigin, Report, Run
from afoot.core.redaction import Redactor
from afoot.errors import ToolError
from afoot.providers.content import LARGEST, clean_line, clean_text, encode_json, finite_number, json_of
from afoot.providers.functions import schema as schemas
from afoot.providers.functions.lifespans import NO_STATE
from afoot.providers.functions.loop_queue import LoopQueue

MESSAGE_LIMIT: Final = 1000
LEVELS: Final = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
_NUMBER_TYPES: Final = frozenset({int, float})
_EMPTY_FORM: Final = Raw(b'{"type":"object","properties":{}}')
_T = TypeVar("_T")
_A = TypeVar("_A")
_requests_lock = Lock()
_log = logging.getLogger("afoot.providers")

current_context: ContextVar["Context | None"] = ContextVar("afoot_call", default=None)
"""The context of the call that the running code belongs to, if any."""


class Caller(Struct, frozen=True):
    """The caller of a tool, as far as it is known. Its claims and scopes are not shown in its `repr`.

    `id` is who it is, for as long as it proves it in the same way; `name` and `version` are what its client
    says of itself, which proves nothing. After a restart of the gateway only `id` is known.
    """

    # A tool that asks who calls makes one in each call: a frozen dataclass takes about 1 µs, this 0.1 µs.
    id: str = "local"
    name: str = ""
    version: str = ""
    scopes: Set[str] = frozenset()
    claims: Mapping[str, Any] = {}
    surface: str = "python"
    is_owner: bool = False

    def __repr__(self) -> str:
        return (
            f"Caller(id={self.id!r}, name={self.name!r}, version={self.version!r},"
            f" surface={self.surface!r}, is_owner={self.is_owner})"
        )

    def has_scope(self, scope: str) -> bool:
        """Whether the caller has this scope; the gateway's own user needs none."""
        return self.is_owner or scope in self.scopes


def origin_of(caller: Caller, headers: Mapping[str, str], redactor: Redactor) -> CallOrigin:
    """The origin of a call that this caller makes from Python."""
    sent = {name.lower(): value for name, value in headers.items()}
    return CallOrigin(
        caller.surface,
        caller.name,
        caller.version,
        caller.scopes,
        caller.is_owner,
        caller.claims,
        sent,
        redactor.secret_texts(sent),
    )


class Context:
    """The call as its tool sees it."""

    __slots__ = (
        "_bars", "_keys", "_message_limit", "_output", "_queue", "_report", "_requests", "_run", "_state",
        "_stopped", "_thread", "_warned",
    )  # fmt: skip

    def __init__(self, run: Run, queue: LoopQueue, message_limit: int = MESSAGE_LIMIT) -> None:
        self._run = run
        self._report = run.report
        self._queue = queue
        self._thread = queue.thread_id
        self._message_limit = message_limit
        self._stopped: str | None = None
        self._keys = count(1)
        self._requests: OffLoopRequests | None = None
        self._warned: set[str] | None = None
        self._bars: Any = None  # set by `progress.bars`
        self._output: Any = None  # set by `output_capture`
        self._state = NO_STATE  # set by `tool`

    @property
    def id(self) -> str:
        """The call's id."""
        return self._run.id

    @property
    def caller(self) -> Caller:
        """The caller: its identity, client, scopes, the claims of its token, and the way it came (F1)."""
        origin = self._run.origin
        return Caller(
            self._run.caller,
            origin.client,
            origin.version,
            origin.scopes,
            origin.claims,
            origin.surface,
            origin.is_owner,
        )

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the caller's HTTP request that `tool_headers` allows, by names in lower case."""
        return self._run.origin.headers

    @property
    def state(self) -> Mapping[str, Any]:
        """The mapping that the lifespan of the tool's file yields; empty if it has none (F2)."""
        return self._state

    @property
    def cancelled(self) -> str | None:
        """Why the work should stop, or None while it should go on."""
        return self._stopped or self._run.cancelled

    @property
    def resumed_from(self) -> Any:
        """The value that an earlier attempt saved with `checkpoint`, or None."""
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
        """Report progress, with as much as is known of it. Never raises, never blocks (P1)."""
        try:
            # The hot path: a tool may report a million times a second. Arguments that need no repair go
            # straight to the run, checked in this one expression without a call of ours. `_report_repaired`
            # does the same with a function for each argument, and takes more than four times as long (7.1
            # instead of 1.6 µs, measured with timeit on a busy machine).
            if (
                data is None
                and (progress is None or (type(progress) in _NUMBER_TYPES and 0 <= progress <= LARGEST))
                and (total is None or (type(total) in _NUMBER_TYPES and 0 <= total <= LARGEST))
                and (
                    message is None
                    or (
                        type(message) is str and len(message) <= self._message_limit and message.isprintable()
                    )
                )
            ):
                if get_ident() == self._thread:
                    self._report(progress, total, message)
                else:
                    self._queue.put_reading(self, self._report, progress, total, message)
            else:
                self._report_repaired(progress, total, message, data)
        except Exception:  # a broken observer costs an update, never the call (P3)
            _log.exception("call %s: a report was lost", self._run.id)

    def alive(self) -> None:
        """Report that the work goes on, without having advanced (C5)."""
        try:
            if get_ident() == self._thread:
                self._run.alive()
            else:
                self._queue.put_reading(("alive", self), self._run.alive)
        except Exception:
            _log.exception("call %s: a heartbeat was lost", self._run.id)

    def log(self, text: str, level: str = "info") -> None:
        """Write a line for the history and for callers that read logs; it touches no clock."""
        log_line(self, text, level, "")

    def resource_changed(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource of this gateway's functions that it has changed."""
        if get_ident() == self._thread:
            self._run.resource_changed(uri)
        else:
            self._queue.put(self, self._run.resource_changed, uri)

    def checkpoint(self, value: Any) -> None:
        """Save a value for the attempt after a crash; raises ToolError.internal if it has no JSON form."""
        self._send_content(Report(checkpoint=json_of(value)))

    @overload
    def track(
        self, iterable: Iterable[_T], total: float | None = None, message: str | None = None
    ) -> Iterator[_T]: ...

    @overload
    def track(
        self, iterable: AsyncIterable[_T], total: float | None = None, message: str | None = None
    ) -> AsyncIterator[_T]: ...

    def track(self, iterable: Any, total: float | None = None, message: str | None = None) -> Any:
        """The same items, each reported once the loop body is done with it.

        In a sync tool it raises ToolError.cancelled once the call is cancelled.
        """
        if total is None and hasattr(iterable, "__len__"):
            total = len(iterable)
        if hasattr(iterable, "__iter__"):
            return self._track(iterable, total, message)
        return self._track_async(iterable, total, message)

    def ask(
        self, message: str, schema: Any = None, key: str | None = None, *, url: str | None = None
    ) -> "QuestionReply":
        """Ask a person: a form by a JSON schema, model, dataclass, TypedDict or plain type; None: to confirm.

        With `url` the person is asked to visit that page instead; accepted means: agreed to, not done there.
        Await it in an async tool; in a sync tool it blocks, and raises ToolError.cancelled after a cancel.
        """
        if url is not None and schema is not None:
            raise TypeError("ask for a form, or for a visit to a page: schema and url exclude each other")
        form = form_for(schema) if url is None else PageVisit(url)
        text = clean_text(message, 10 * self._message_limit)
        question = Question("", key or self._next_key(), form.kind, text, form.body)
        reply = self._request(partial(self._run.ask, question), form.read)
        return reply if isinstance(reply, QuestionReply) else QuestionReply.later(reply)

    def sample(self, params: Mapping[str, Any], key: str | None = None) -> Any:
        """Ask the caller's model; the result of `sampling/createMessage`. Awaited or blocking, like `ask`."""
        question = Question("", key or self._next_key(), "sample", body=json_of(dict(params)))
        return self._request(partial(self._run.ask, question), answer_value)

    def roots(self, key: str | None = None) -> Any:
        """The folders that the caller works in. Awaited or blocking, like `ask`."""
        question = Question("", key or self._next_key(), "roots")
        return self._request(partial(self._run.ask, question), answer_roots)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, *, weight: float = 1.0) -> Any:
        """Call another tool below this call; its structured result, or its text (P8). Awaited or blocking.

        `weight` is its share of this call's progress, beside its siblings'. Raises ToolError where it fails.
        """
        encoded_arguments = json_of(dict(arguments or {}))
        return self._request(partial(self._run.call, tool, encoded_arguments, weight), result_value)

    def _next_key(self) -> str:
        return f"q{next(self._keys)}"

    def _report_repaired(self, progress: Any, total: Any, message: Any, data: Any) -> None:
        """Report arguments that may be of any type: each becomes what can be reported of it."""
        repaired_progress = finite_number(progress)
        repaired_total = finite_number(total)
        text = clean_line(message, self._message_limit)
        if repaired_progress is None and progress is not None:
            self._warn_once("progress", f"progress was no finite number: {clean_line(repr(progress), 80)}")
        if repaired_total is None and total is not None:
            self._warn_once("total", f"total was no finite number: {clean_line(repr(total), 80)}")
        raw = NOTHING if data is None else self._encode_data(data)
        if raw and self._send_content(Report(repaired_progress, repaired_total, text, raw)):
            return
        if get_ident() == self._thread:
            self._report(repaired_progress, repaired_total, text)
        else:
            self._queue.put_reading(self, self._report, repaired_progress, repaired_total, text)

    def _encode_data(self, data: Any) -> Raw:
        try:
            return encode_json(data)
        except Exception as error:  # an object of the author's own may raise anything
            self._warn_once("data", f"data was dropped, it cannot be encoded: {error}")
            return NOTHING

    def _send_content(self, report: Report) -> bool:
        """Send a report with content; False if its data was dropped because the queue is full."""
        if get_ident() == self._thread:
            self._run.content(report)
        elif not report.data:
            self._queue.put(self, self._run.content, report)
        elif not self._queue.try_put(self, self._run.content, report):
            self._warn_once("full", "data was dropped, it came faster than it could be taken")
            return False
        return True

    def _warn_once(self, about: str, text: str) -> None:
        """Warn of a repair, once in a call for each kind: a flood of warnings would help nobody."""
        if self._warned is None:
            self._warned = set()
        if about not in self._warned:
            self._warned.add(about)
            _log.warning("call %s: %s", self._run.id, text)
            log_line(self, text, "warning", "afoot")

    def _raise_if_stopped(self) -> None:
        if self._stopped is not None:
            raise ToolError.cancelled(self._stopped)

    def _track(self, iterable: Iterable[_T], total: float | None, message: str | None) -> Iterator[_T]:
        self.report(0, total, message)
        for n, item in enumerate(iterable, 1):
            self._raise_if_stopped()
            yield item
            self.report(n, total, message)

    async def _track_async(
        self, iterable: AsyncIterable[_T], total: float | None, message: str | None
    ) -> AsyncIterator[_T]:
        self.report(0, total, message)
        n = 0
        async for item in iterable:
            yield item
            n += 1
            self.report(n, total, message)

    def _request(
        self, start: Callable[[], Awaitable[_A]], read: Callable[[_A], _T]
    ) -> "_T | Coroutine[Any, Any, _T]":
        """Start a request on the engine's loop and read its reply: blocking or awaited."""
        self._raise_if_stopped()
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # a plain thread: it may block
            return read(self._request_from_thread(start).result())
        return self._request_async(start, read)

    async def _request_async(self, start: Callable[[], Awaitable[_A]], read: Callable[[_A], _T]) -> _T:
        if get_ident() == self._thread:
            return read(await start())
        return read(await asyncio.wrap_future(self._request_from_thread(start)))

    def _request_from_thread(self, start: Callable[[], Awaitable[_A]]) -> "Future[_A]":
        with _requests_lock:  # two threads of a tool may ask at the same moment
            if self._requests is None:
                self._requests = OffLoopRequests(self._queue)
        return self._requests.start(self, start)


# These are for the other modules of this package. They are functions, because each public method of
# `Context` is offered to the authors of tools.


def log_line(ctx: Context, text: str, level: str, logger: str) -> None:
    """Write a line for the call's history, from any thread; never raises."""
    try:
        cleaned = clean_text(text, 10 * ctx._message_limit)
        known = level if level in LEVELS else "info"
        if get_ident() == ctx._thread:
            ctx._run.log(cleaned, known, logger)
        else:
            ctx._queue.try_put(ctx, ctx._run.log, cleaned, known, logger)
    except Exception:
        _log.exception("call %s: a log line was lost", ctx._run.id)


def note_held_loop(ctx: Context) -> None:
    """Note that the tool of this call holds the engine's loop now; from any thread."""
    ctx._run.holds_loop()


def send_partial(ctx: Context, partial: Raw) -> None:
    """Send a partial result, from any thread; a thread that is far ahead of the loop waits for it."""
    ctx._send_content(Report(partial=partial))
    if get_ident() != ctx._thread:
        ctx._queue.wait_for_room(ctx)


def wait_on_loop(ctx: Context, start: Callable[[], Awaitable[_T]]) -> _T:
    """Have the engine's loop await something while this thread of the tool waits; raises what that raises."""
    ctx._raise_if_stopped()
    return ctx._request_from_thread(start).result()


def stop_call(ctx: Context, reason: str) -> None:
    """End the call for its tool: `cancelled` says so in its threads, and requests that wait there raise."""
    ctx._stopped = reason
    if ctx._requests is not None:
        ctx._requests.stop(reason)


class OffLoopRequests:
    """The questions and calls of one call that a thread, or another loop, waits for."""

    __slots__ = ("_queue", "_stopped", "_tasks")

    def __init__(self, queue: LoopQueue) -> None:
        self._queue = queue
        self._stopped: str | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, call: object, start: Callable[[], Awaitable[_T]]) -> "Future[_T]":
        """Start a request, from any thread; the future raises ToolError.cancelled if the call is stopped."""
        reply: Future[_T] = Future()
        self._queue.put(call, self._open, start, reply)
        if self._queue.loop.is_closed():
            raise ToolError.cancelled("the gateway is gone")
        return reply

    def stop(self, reason: str) -> None:
        """Cancel all requests, and refuse new ones; called on the loop."""
        self._stopped = reason
        for task in tuple(self._tasks):
            task.cancel()

    def _open(self, start: Callable[[], Awaitable[_T]], reply: "Future[_T]") -> None:
        if self._stopped is not None:
            reply.set_exception(ToolError.cancelled(self._stopped))
            return
        task = self._queue.loop.create_task(_await_started(start))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._resolve(done, reply))
        reply.add_done_callback(lambda done: done.cancelled() and self._queue.put(self, task.cancel))

    def _resolve(self, task: "asyncio.Task[_T]", reply: "Future[_T]") -> None:
        self._tasks.discard(task)
        if not reply.set_running_or_notify_cancel():
            return
        if task.cancelled():
            reply.set_exception(ToolError.cancelled(self._stopped or "the question was withdrawn"))
        elif error := task.exception():
            reply.set_exception(error)
        else:
            reply.set_result(task.result())


async def _await_started(start: Callable[[], Awaitable[_T]]) -> _T:
    return await start()


class QuestionForm:
    """The form of a question: the schema that is sent, and the type that reads the answer."""

    kind: Final = "form"
    __slots__ = ("_adapter", "_is_wrapped", "body")

    def __init__(self, body: Raw, adapter: TypeAdapter[Any] | None = None, is_wrapped: bool = False) -> None:
        self.body = body
        self._adapter = adapter
        self._is_wrapped = is_wrapped

    def read(self, answer: Answer) -> "QuestionReply":
        """The reply; raises ToolError.validation if an accepted answer does not fit the type."""
        if answer.action != "accept":
            return QuestionReply(answer.action)
        content = bytes(answer.content) or b"{}"
        if self._adapter is None:
            return QuestionReply("accept", msgspec.json.decode(content))
        try:
            filled = self._adapter.validate_json(content)
        except ValidationError as error:
            raise ToolError.validation(schemas.explain_errors(error, "answer")) from error
        return QuestionReply("accept", filled["value"] if self._is_wrapped else filled)


class PageVisit:
    """The page that a person is asked to visit; its answer has no content. Raises ValueError."""

    kind: Final = "url"
    __slots__ = ("body",)

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")) or not url.isprintable():
            raise ValueError(f"url must begin with http:// or https://, not {url!r}")
        self.body = Raw(msgspec.json.encode(url))

    def read(self, answer: Answer) -> "QuestionReply":
        """The reply."""
        return QuestionReply(answer.action)


class QuestionReply:
    """The reply to a question: true only if it was accepted.

    In an async tool it must be awaited first; in a sync tool it is complete at once.
    """

    __slots__ = ("_action", "_content", "_pending")

    def __init__(self, action: str = "", content: Any = None) -> None:
        self._action = action
        self._content = content
        self._pending: Coroutine[Any, Any, QuestionReply] | None = None

    @classmethod
    def later(cls, pending: "Coroutine[Any, Any, QuestionReply]") -> "QuestionReply":
        """A reply that has to be awaited."""
        reply = cls()
        reply._pending = pending
        return reply

    @property
    def action(self) -> str:
        """accept, decline or cancel."""
        self._raise_if_pending()
        return self._action

    @property
    def content(self) -> Any:
        """The values that were filled in, as the type that was asked for; None unless it was accepted."""
        self._raise_if_pending()
        return self._content

    def __bool__(self) -> bool:
        self._raise_if_pending()
        return self._action == "accept"

    def __await__(self) -> Generator[Any, Any, "QuestionReply"]:
        if self._pending is not None:
            done = yield from self._pending.__await__()
            self._pending = None
            self._action = done.action
            self._content = done.content
        return self

    def __repr__(self) -> str:
        return "Reply(not awaited)" if self._pending else f"Reply({self._action!r}, {self._content!r})"

    def _raise_if_pending(self) -> None:
        if self._pending is not None:
            raise RuntimeError("write `await ctx.ask(...)` in an async tool")


def form_for(schema: Any) -> QuestionForm:
    """The form for a JSON schema, a model, dataclass or TypedDict, a plain type (one field), or None."""
    if schema is None:
        return QuestionForm(_EMPTY_FORM)
    if isinstance(schema, Mapping):
        return QuestionForm(Raw(msgspec.json.encode(dict(schema))))
    return _form_for_type(schema)


def answer_value(answer: Answer) -> Any:
    """The value of the answer to a sample or roots question; raises ToolError.refused if there is none."""
    if answer.action != "accept":
        raise ToolError.refused(f"the caller did not answer: {answer.action}")
    return msgspec.json.decode(bytes(answer.content) or b"null")


def answer_roots(answer: Answer) -> list[Any]:
    """The roots of an answer, with or without the object around them."""
    value = answer_value(answer)
    return list(value.get("roots", ()) if isinstance(value, dict) else value or ())


def result_value(result: Result) -> Any:
    """The value of a tool's result: its structured content, or its text where that says nothing else."""
    text = "".join(str(item.get("text", "")) for item in msgspec.json.decode(bytes(result.content)))
    if not result.structured:
        return text
    structured = msgspec.json.decode(bytes(result.structured))
    return text if structured == {"result": text} else structured


@lru_cache(maxsize=256)
def _form_for_type(schema: Any) -> QuestionForm:
    adapter = schemas.type_adapter(schema)
    found = schemas.json_schema(adapter, "validation")
    is_wrapped = not schemas.is_object(found)
    if is_wrapped:
        # A form is an object, so a plain type becomes its only field.
        adapter = schemas.type_adapter(schemas.one_field_type("value", schema))
        found = schemas.json_schema(adapter, "validation")
    return QuestionForm(Raw(msgspec.json.encode(schemas.form_schema(found))), adapter, is_wrapped)
