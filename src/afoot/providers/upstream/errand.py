"""One tool call at a server, from its first request to its result: what it hears, asks, and gives back."""

import asyncio
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.core.ports import Report, Run, Tapes
from afoot.errors import ToolError
from afoot.providers.hygiene import LARGEST, line, lines
from afoot.providers.upstream.carrier import Order
from afoot.providers.upstream.connection import Connection
from afoot.providers.upstream.tools import Offer
from afoot.wire import client, client_questions, client_reading
from afoot.wire.client import Budget
from afoot.wire.client_reading import TREE_LIMIT, Beside, Link, Outcome, Said, Told, Wish
from afoot.wire.jsonrpc import Fault

MESSAGE_LIMIT: Final = 1000
ROUNDS: Final = 10  # with questions; rounds that only say "ask again" are bounded by the call's clocks
PAUSE_S: Final = (0.05, 0.25)  # before asking again, doubling
VISIT_S: Final = (5.0, 30.0)  # how long to wait for word that a page was visited, before trying again
VISITS: Final = 20  # times that the same pages are waited for
MARGIN_S: Final = 1.0  # of the time left, for the way back
LOG_LINES: Final = 1000  # of one call; more are only counted
LOG_LEVEL: Final = "info"


class Errand:
    """A call under way at a server. It is what the connection tells of progress, logs and questions."""

    __slots__ = (
        "_asked",
        "_connection",
        "_keys",
        "_logged",
        "_offer",
        "_pages",
        "_run",
        "_visits",
        "_waits",
        "arguments",
    )

    def __init__(self, offer: Offer, arguments: Raw, run: Run, connection: Connection) -> None:
        self.arguments = arguments
        self._offer = offer
        self._run = run
        self._connection = connection
        self._keys = count(1)
        self._asked = 0
        self._logged = 0
        self._pages: dict[str, asyncio.Event] = {}  # that somebody was asked to visit
        self._visits = 0
        self._waits = False  # somebody is asked further down

    @property
    def caller(self) -> str:
        """Whose call it is."""
        return self._run.caller

    async def work(self) -> Result:
        """The result, whatever it takes; raises ToolError, RunnerDied."""
        try:
            return await self._rounds()
        finally:
            for page in self._pages:
                self._connection.visits.pop(page, None)

    async def _rounds(self) -> Result:
        """Ask until there is a result."""
        extra: dict[str, Any] = {}
        pause = PAUSE_S[0]
        while True:
            try:
                outcome = client_reading.outcome(await self._connection.request(self._order(extra)))
            except Fault as fault:
                await self._visited(fault)
                continue
            if outcome.kind != "input_required":
                return self._result(outcome)
            extra = {}
            if outcome.wishes:
                extra["inputResponses"] = await self._answers(outcome.wishes)
                pause = PAUSE_S[0]
            elif outcome.state is None:
                raise self._broken("asks for input and does not say which")
            else:
                self._run.alive()  # it keeps us waiting, so it lives
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_S[1])
            if outcome.state is not None:
                extra["requestState"] = outcome.state

    def key(self) -> str:
        """A name for the next question that has none: the same again when the call is run again."""
        return f"u{next(self._keys)}"

    def progress(self, told: Told) -> None:
        """What the tool says of its progress, repaired where it must be (P4, U6)."""
        number: float | None = told.progress
        total, text = told.total, told.message
        if number is not None and not 0 <= number <= LARGEST:
            number = None
            self._connection.record.odd("repaired_progress", str(told.progress))
        if total is not None and not 0 <= total <= LARGEST:
            total = None
        if text is not None and not (len(text) <= MESSAGE_LIMIT and text.isprintable()):
            text = line(text, MESSAGE_LIMIT)
        if told.meta is not None:
            self._beside(told, Report(number, total, text))
            return
        if self._waits:
            self._wait(None)
        self._run.report(number, total, text)

    def log(self, said: Said) -> None:
        """A line the tool logged."""
        self._logged += 1
        if self._logged > LOG_LINES:
            self._connection.record.odd("log_lines_dropped")
            return
        logger = line(said.logger, 100) or self._offer.tool.server
        self._run.log(lines(said.text, 10 * MESSAGE_LIMIT), said.level, logger)

    async def ask(self, question: Question) -> Answer:
        """Whoever can answer is asked."""
        message = lines(question.message, 10 * MESSAGE_LIMIT)
        return await self._run.ask(replace(question, message=message))

    def _order(self, extra: dict[str, Any]) -> Order:
        run, connection = self._run, self._connection
        idle_s, left_s = run.budget()
        budget = Budget(idle_s, max(0.0, left_s - min(MARGIN_S, left_s / 10)))
        is_modern = connection.tongue.is_modern
        return Order(
            "tools/call",
            {"name": self._offer.tool.inner, "arguments": self.arguments, **extra},
            self,
            client.call_meta(run.id, budget, LOG_LEVEL if is_modern else None) | run.trace,
            client.mirrored(self._offer.mirrors, self.arguments) if is_modern else {},
            None if run.tapes is None else partial(_taped, run.tapes, run.id),
        )

    def _beside(self, told: Told, report: Report) -> None:
        """What an afoot behind us says beside the numbers."""
        assert told.meta is not None
        beside = told.meta.beside or Beside()
        if beside.waiting_on == "person":
            self._wait(report.message or "waiting for an answer")
        elif self._waits:
            self._wait(None)
        if beside.source == "engine":
            self._run.alive()  # its engine speaks, not its tool (T5)
            return
        number, total = report.progress, report.total
        if beside.progress is not None and 0 <= beside.progress <= LARGEST:
            number, total = beside.progress, beside.total  # the tool's own, not those made to rise
        if total is not None and not 0 <= total <= LARGEST:
            total = None
        data, partial = Raw(bytes(beside.data)) or NOTHING, Raw(bytes(told.meta.partial)) or NOTHING
        if beside.children and self._offer.tool.trusted and not data:
            data = Raw(msgspec.json.encode({"children": beside.children[:TREE_LIMIT]}))
        if data or partial:
            self._run.content(Report(number, total, report.message, data, partial))
        else:
            self._run.report(number, total, report.message)

    def _wait(self, message: str | None) -> None:
        self._waits = message is not None
        self._run.waiting(message)

    async def _answers(self, wishes: dict[str, Wish]) -> dict[str, object]:
        """All questions of a round, asked at once (Q1 f)."""
        self._asked += 1
        if self._asked > ROUNDS:
            raise self._broken(f"asked for input in more than {ROUNDS} rounds")
        try:
            found = await asyncio.gather(*(self._answer(key, wish) for key, wish in wishes.items()))
        except Fault as fault:
            raise ToolError.refused(f"the call needs an answer: {fault.message}") from None
        return dict(zip(wishes, found, strict=True))

    async def _answer(self, key: str, wish: Wish) -> object:
        asked = client_questions.question(wish, key)
        return client_questions.answered(asked, await self.ask(asked))

    async def _visited(self, fault: Fault) -> None:
        """See to it that the pages are visited that the server wants visited first (Q2); raises ToolError."""
        pages = client_reading.links(fault)
        if not pages:
            fault.message = lines(fault.message, 10 * MESSAGE_LIMIT)
            raise client_questions.tool_error(fault, self._offer.tool.server)
        new = [page for page in pages if page.id not in self._pages]
        self._pages |= {page.id: self._connection.visits.setdefault(page.id, asyncio.Event()) for page in new}
        answers = await asyncio.gather(*(self._visit(page) for page in new))
        self._visits = 0 if new else self._visits + 1
        if self._visits > VISITS or any(answer.action != "accept" for answer in answers):
            raise ToolError.refused(f"a page had to be visited first: {fault.message}")
        self._wait("waiting for a page to be visited")
        visited = self._pages[pages[0].id]
        try:
            with suppress(TimeoutError):  # not every server tells
                await asyncio.wait_for(visited.wait(), VISIT_S[0] if new else VISIT_S[1])
        finally:
            visited.clear()
            self._wait(None)

    async def _visit(self, page: Link) -> Answer:
        return await self.ask(client_questions.visit(page, page.id or self.key()))

    def _result(self, outcome: Outcome) -> Result:
        if outcome.kind == "task":
            raise self._broken("answered with a task, which afoot does not follow upstream")
        if outcome.kind != "complete":
            raise self._broken(f"answered with a result of the unknown kind {outcome.kind!r}")
        error = client_questions.told_error(outcome)
        if error is not None:
            raise error
        return Result(outcome.content, outcome.structured, bool(outcome.is_error))

    def _broken(self, what: str) -> ToolError:
        server, tool = self._offer.tool.server, self._offer.tool.inner
        return ToolError.internal(f"server {server} {what} (tool {tool})", code="protocol")


def _taped(tapes: Tapes, call: str, way: str, message: bytes) -> bool:
    tapes.add(call, "upstream", way, message)
    return True
