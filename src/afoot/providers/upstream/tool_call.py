"""`UpstreamCall` is one tool call at a server, from its first request to its result.

It asks again while the server wants input, and hears the progress, logs and questions that belong to the
call.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.core.ports import Report, Run
from afoot.errors import ToolError
from afoot.providers.content import LARGEST, clean_line, clean_text
from afoot.providers.upstream.connection import McpConnection
from afoot.providers.upstream.tasks import UpstreamTask
from afoot.providers.upstream.tool_definitions import UpstreamTool
from afoot.providers.upstream.transport.transport import Request
from afoot.wire import passthrough
from afoot.wire.client import incoming, outgoing
from afoot.wire.client import tasks as client_tasks
from afoot.wire.client.incoming import (
    ElicitationUrl,
    InputRequest,
    ReceivedFrameMeta,
    ReceivedLog,
    ReceivedProgress,
    ReceivedProgressMeta,
    ReceivedResult,
)
from afoot.wire.client.outgoing import RemainingBudget
from afoot.wire.jsonrpc import Fault

MESSAGE_CHARS: Final = 1000
TEXT_CHARS: Final = 10 * MESSAGE_CHARS  # of a log line, a question or an error
LOGGER_CHARS: Final = 100
MAX_ROUNDS: Final = 10  # with questions; rounds that only say "ask again" are bounded by the call's clocks
PAUSE_S: Final = (0.05, 0.25)  # before asking again, doubling
VISIT_S: Final = (
    5.0,
    30.0,
)  # to wait for word that a page was visited, at first and later, before trying again
MAX_VISIT_WAITS: Final = 20  # times that the same pages are waited for
MARGIN_S: Final = 1.0  # of the time left, kept for the way back
MAX_LOG_LINES: Final = 1000  # of one call; more are only counted
LOG_LEVEL: Final = "info"


class UnfitEra(Exception):
    """A tool cannot be called in the era of the connection; `began`: it may have run."""

    def __init__(self, fault: Fault, began: bool) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.began = began


class UpstreamCall(Struct, eq=False):
    """One attempt of a call at a server. It is the `RequestListener` of its requests."""

    _tool: UpstreamTool
    _arguments: Raw
    _run: Run
    _connection: McpConnection
    _keys: Iterator[int] = field(default_factory=partial(count, 1))
    _asked_rounds: int = 0
    _log_lines: int = 0
    _partials: int = 0  # items of partial results that came as it ran
    _pages: dict[str, asyncio.Event] = {}  # that somebody was asked to visit; set when that was done
    _visit_waits: int = 0
    _is_waiting: bool = False  # whether a server behind this one waits for a person

    @property
    def caller(self) -> str:
        """The caller of the call."""
        return self._run.caller

    async def run(self) -> Result:
        """Send the call until there is a result, with answers in between; raises ToolError, RunnerDied."""
        extra: dict[str, Any] = {}
        pause = PAUSE_S[0]
        try:
            while True:
                try:
                    outcome = await self._send(self._request(extra))
                except Fault as fault:
                    self._check_era(fault)
                    if not self._note_that_it_needs_tasks(fault):
                        await self._wait_for_visits(fault)
                    continue
                if outcome.kind != "input_required":
                    return self._result(outcome)
                extra = {}
                if outcome.input_requests:
                    extra["inputResponses"] = await self._answer_all(outcome.input_requests)
                    pause = PAUSE_S[0]
                elif outcome.state is None:
                    raise self._protocol_error("asks for input and does not say which")
                else:
                    self._run.alive()  # a server that asks us to wait is alive
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, PAUSE_S[1])
                if outcome.state is not None:
                    extra["requestState"] = outcome.state
        finally:
            self._connection.forget_tokens(self)
            for page in self._pages:
                self._connection.visits.pop(page, None)

    def key(self) -> str:
        """Return a name for the next question that has none: the same again when the call is run again."""
        return f"u{next(self._keys)}"

    def progress(self, told: ReceivedProgress) -> None:
        """Report progress of the tool, repaired where it must be (P4, U6)."""
        number: float | None = told.progress
        total, text = told.total, told.message
        if number is not None and not 0 <= number <= LARGEST:
            number = None
            self._connection.server_log.count_anomaly("repaired_progress", str(told.progress))
        if total is not None and not 0 <= total <= LARGEST:
            total = None
        if text is not None and not (len(text) <= MESSAGE_CHARS and text.isprintable()):
            text = clean_line(text, MESSAGE_CHARS)
        if told.meta is not None:
            self._report_with_meta(told.meta, Report(number, total, text, more=told.more))
            return
        if self._is_waiting:
            self._set_waiting(None)
        if told.more:
            self._run.content(Report(number, total, text, more=told.more))
        else:
            self._run.report(number, total, text)

    def log(self, said: ReceivedLog) -> None:
        """Log a line of the tool."""
        self._log_lines += 1
        if self._log_lines > MAX_LOG_LINES:
            self._connection.server_log.count_anomaly("log_lines_dropped")
            return
        logger = clean_line(said.logger, LOGGER_CHARS) or self._tool.tool.server
        self._run.log(clean_text(said.text, TEXT_CHARS), said.level, logger, said.more)

    def hindered(self, by: str, hint: str) -> None:
        """Say what stops the server, or that nothing does any more."""
        self._run.hindered(by, hint)

    async def ask(self, question: Question) -> Answer:
        """Ask the caller or the operator, through the engine."""
        return await self._run.ask(replace(question, message=clean_text(question.message, TEXT_CHARS)))

    async def _send(self, request: Request) -> ReceivedResult:
        """Send the call, and return its result; the server may make a task of it, which is then followed."""
        answer = await self._connection.request(request)
        task = client_tasks.read_created_2025(answer) if request.makes_task else None
        outcome = None if task is not None else incoming.read_result(answer)
        if outcome is not None and outcome.kind != "task":
            return outcome
        task = task or client_tasks.read_task(answer)
        followed = UpstreamTask(task, self._run, self._connection, self, self._answer_all, request.record)
        return incoming.read_result(await followed.follow())

    def _request(self, extra: dict[str, Any]) -> Request:
        run = self._run
        connection = self._connection
        is_modern = connection.dialect.is_modern
        idle_s, left_s = run.budget()
        budget = RemainingBudget(idle_s, max(0.0, left_s - min(MARGIN_S, left_s / 10)))
        more = passthrough.fields_of(run.more)
        passed = msgspec.json.decode(more.pop("_meta", b"{}"), type=dict[str, Any])
        passed.setdefault(passthrough.CAPABILITIES_KEY, {})  # the caller's extensions and no others
        level = passed.pop(passthrough.LOG_LEVEL_KEY, LOG_LEVEL)
        meta = outgoing.call_meta(run.id, budget, level if is_modern else None) | run.trace
        headers: dict[str, str] = {}
        if is_modern and self._tool.mirrors:
            headers = outgoing.encode_param_headers(self._tool.mirrors, self._arguments)
        if is_modern and self._tool.tool.inner in connection.task_tools:
            passed = client_tasks.with_tasks_declared(passed)
        makes_task = client_tasks.runs_as_task_2025(
            self._tool.task_support, connection.dialect, connection.capabilities
        )
        if makes_task:
            extra = {**extra, "task": client_tasks.wish_2025(left_s)}
        return Request(
            "tools/call",
            {**more, "name": self._tool.tool.inner, "arguments": self._arguments, **extra},
            listener=self,
            makes_task=makes_task,
            meta={**passed, **meta},
            headers=headers,
            record=None if run.wire_log is None else partial(run.wire_log.add, run.id, "upstream"),
        )

    def _report_with_meta(self, meta: ReceivedFrameMeta, report: Report) -> None:
        """Report progress of another afoot behind us, which says more than the numbers."""
        details = meta.details or ReceivedProgressMeta()
        if details.waiting_on == "person":
            self._set_waiting(report.message or "waiting for an answer")
        elif self._is_waiting:
            self._set_waiting(None)
        if details.source == "engine":
            self._run.alive()  # its engine speaks, not its tool (T5)
            if details.children and self._tool.tool.trusted:
                self._run.content(Report(children=incoming.read_children(details.children)))
            return
        number, total = report.progress, report.total
        if details.indeterminate:
            number, total = None, None
        elif details.progress is not None and 0 <= details.progress <= LARGEST:
            number, total = details.progress, details.total  # the tool's own numbers, not those made to rise
        if total is not None and not 0 <= total <= LARGEST:
            total = None
        data = Raw(bytes(details.data)) or NOTHING
        partial_result = Raw(bytes(meta.partial)) or NOTHING
        self._partials += _count_items(partial_result)
        children = incoming.read_children(details.children) if self._tool.tool.trusted else ()
        if data or partial_result or children or report.more:
            self._run.content(
                Report(
                    number, total, report.message, data, partial_result, more=report.more, children=children
                )
            )
        else:
            self._run.report(number, total, report.message)

    def _set_waiting(self, message: str | None) -> None:
        self._is_waiting = message is not None
        self._run.waiting(message)

    async def _answer_all(self, input_requests: dict[str, InputRequest]) -> dict[str, object]:
        """Ask all questions of a round at once (Q1 f)."""
        self._asked_rounds += 1
        if self._asked_rounds > MAX_ROUNDS:
            raise self._protocol_error(f"asked for input in more than {MAX_ROUNDS} rounds")
        try:
            found = await asyncio.gather(*(self._answer(key, one) for key, one in input_requests.items()))
        except Fault as fault:
            raise ToolError.refused(f"the call needs an answer: {fault.message}") from None
        return dict(zip(input_requests, found, strict=True))

    async def _answer(self, key: str, input_request: InputRequest) -> object:
        asked = outgoing.read_question(input_request, key)
        return outgoing.answer_result(asked, await self.ask(asked))

    def _check_era(self, fault: Fault) -> None:
        """Raise UnfitEra if a server of the handshake era wants to be called in 2026-07-28."""
        if not self._connection.dialect.is_modern and outgoing.is_for_2026(fault):
            fault.message = clean_text(fault.message, TEXT_CHARS)
            raise UnfitEra(fault, began=fault.code not in outgoing.REFUSED_IN_2025)

    def _note_that_it_needs_tasks(self, fault: Fault) -> bool:
        """Note that this tool runs only as a task, if the server says so; the call had not begun.

        A plain call is preferred where there is a choice: tasks of 2026-07-28 have no progress.
        """
        name, known = self._tool.tool.inner, self._connection.task_tools
        if not self._connection.dialect.is_modern or name in known or not client_tasks.requires_tasks(fault):
            return False
        known.add(name)
        return True

    async def _wait_for_visits(self, fault: Fault) -> None:
        """Ask a person to visit the pages that the server names, and wait for that (Q2).

        Raises ToolError for a refusal, and for a fault that names no pages.
        """
        pages = incoming.required_urls(fault)
        if not pages:
            fault.message = clean_text(fault.message, TEXT_CHARS)
            raise outgoing.as_tool_error(fault, self._tool.tool.server)
        new = [page for page in pages if page.id not in self._pages]
        self._pages |= {page.id: self._connection.visits.setdefault(page.id, asyncio.Event()) for page in new}
        answers = await asyncio.gather(*(self._ask_to_visit(page) for page in new))
        self._visit_waits = 0 if new else self._visit_waits + 1
        if self._visit_waits > MAX_VISIT_WAITS or any(answer.action != "accept" for answer in answers):
            raise ToolError.refused(f"a page had to be visited first: {fault.message}")
        self._set_waiting("waiting for a page to be visited")
        visited = self._pages[pages[0].id]
        try:
            with suppress(TimeoutError):  # not every server says when a page was visited
                await asyncio.wait_for(visited.wait(), VISIT_S[0] if new else VISIT_S[1])
        finally:
            visited.clear()
            self._set_waiting(None)

    async def _ask_to_visit(self, page: ElicitationUrl) -> Answer:
        return await self.ask(outgoing.url_question(page, page.id or self.key()))

    def _result(self, outcome: ReceivedResult) -> Result:
        if outcome.kind != "complete":
            raise self._protocol_error(f"answered with a result of the unknown kind {outcome.kind!r}")
        if outcome.is_error and (error := outgoing.reported_tool_error(outcome)) is not None:
            # Those that came as it ran are known; the result of a tool that was told to stop comes only now.
            if new := outgoing.attached_partials(outcome)[self._partials :]:
                self._run.content(Report(partial=Raw(msgspec.json.encode(new))))
            error.message = clean_text(error.message, TEXT_CHARS)
            raise error
        return Result(outcome.content, outcome.structured, bool(outcome.is_error), outcome.more)

    def _protocol_error(self, what: str) -> ToolError:
        server, tool = self._tool.tool.server, self._tool.tool.inner
        return ToolError.internal(f"server {server} {what} (tool {tool})", code="protocol")


def _count_items(content: Raw) -> int:
    """The number of items of a content list; 0 for anything else."""
    try:
        return len(msgspec.json.decode(content, type=list[Raw])) if content else 0
    except msgspec.DecodeError:
        return 0
