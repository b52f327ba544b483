"""Earlier answers of people, newest first: the decision about a tool, its author, and the end of the call."""

from collections.abc import Iterator

from msgspec import Raw, Struct, UnsetType
from msgspec.structs import replace

from afoot.core.call import Call
from afoot.core.ports import CallQuery
from afoot.engine.approval import question as approval
from afoot.engine.questions import ENGINE, TOOL, UPSTREAM
from afoot.engine.recovery import load_call
from afoot.errors import StoreError, UnknownName
from afoot.providers.hooks import HOOK
from afoot.serve.api.request import ApiRequest, read_number
from afoot.serve.api.views import AnswerView, question_view

FILTERS = ("tool", "server", "limit")
MAX_ANSWERS = 100
NOT_BY_PEOPLE = (ENGINE, TOOL, UPSTREAM, HOOK)


class GivenAnswer(Struct, frozen=True):
    """One answer, the question that it was given to, and the end of its call."""

    call: str
    tool: str
    server: str
    question: str
    kind: str
    message: str
    answer: AnswerView
    asked: float
    arguments: Raw
    outcome: str | None
    ran_s: float | None  # seconds on the clock; null: it never started


class GivenAnswers(Struct, frozen=True):
    """The newest answers, newest first."""

    answers: list[GivenAnswer]


async def index(request: ApiRequest) -> None:
    """The newest answers that people gave, of all tools or of one."""
    given = request.query(*FILTERS)
    limit = int(read_number(given.get("limit", "20"), "limit", 1, MAX_ANSWERS))
    tool, server = given.get("tool", ""), given.get("server", "")
    engine = request.gateway.engine
    await request.gateway.wait_until_recorded()
    living = {
        live.call.id: live.call
        for live in engine.calls()
        if tool in ("", live.call.opened.tool) and server in ("", live.call.opened.server)
    }
    found = [one for call in living.values() if request.may_see(call.opened.caller) for one in _answers(call)]
    query = CallQuery(tool=tool, server=server, caller=request.only_caller, limit=limit, is_answered=True)
    for row in await engine.journal.find(query):
        if row.id not in living:
            try:
                # Only its answers are kept: all these calls together may have gigabytes of results.
                found += _answers((await load_call(engine, row.id)).call)
            except (StoreError, UnknownName, ValueError, KeyError):
                continue  # damaged, or purged meanwhile
    found.sort(key=lambda one: one.answer.at, reverse=True)
    await request.answer(200, GivenAnswers(found[:limit]))


def _answers(call: Call) -> Iterator[GivenAnswer]:
    """The answers of people in this call, except those to questions of calls below it."""
    for name, answered in call.answers.items():
        asked = call.questions[name]
        said = answered.answer
        if said.by in NOT_BY_PEOPLE or said.surface == approval.HOST or asked.kind == "below" or asked.below:
            continue
        seen = question_view(call, asked)
        if not isinstance(seen.answer, AnswerView):
            continue
        yield GivenAnswer(
            call.id, call.opened.tool, call.opened.server, name, asked.kind, asked.message,
            _without_segment(seen.answer), seen.asked, (call.arguments or Raw(b"{}")).copy(),
            call.end.outcome if call.end else None, None if call.started is None else call.spent_s,
        )  # fmt: skip


def _without_segment(answer: AnswerView) -> AnswerView:
    """The answer with a copy of its content, which else keeps the whole segment of the history in memory."""
    return answer if isinstance(answer.content, UnsetType) else replace(answer, content=answer.content.copy())
