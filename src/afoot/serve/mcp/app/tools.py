"""`run_app_tool` runs the tools that the page of our MCP App calls: it looks at calls, and answers questions.

They see and touch the caller's own calls alone (S3), and answer nothing that only the operator is asked (A1).
"""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Answer, Question
from afoot.core.notices import FORM_KINDS
from afoot.core.ports import CallQuery
from afoot.engine.approval import question as approval
from afoot.engine.approval.policy import BY_HOST
from afoot.engine.live_call import LiveCall
from afoot.errors import AlreadyAnswered, ToolError, UnknownName
from afoot.serve.access.guard import LOCAL_CALLER
from afoot.serve.api.questions.questions import with_review
from afoot.serve.api.views import (
    CallView,
    call_view_with_forecast,
    encode_json,
    question_view,
    row_view,
    with_failure,
)
from afoot.serve.caller_presence import known_requests
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.app.offer import shows_app
from afoot.serve.mcp.handle_tools import HandleText, find_own_call, read_arguments
from afoot.wire import app as wire_app
from afoot.wire.jsonrpc import Id
from afoot.wire.results import Seconds, ToolCall

MAX_CALLS = 100  # shown at once
MAX_ENDED = 50  # of the calls that one call made and that are over
FRAME_S = 2.0  # how long a host may take to show the page of a call
SURFACE = "app"


class _ViewArguments(Struct, forbid_unknown_fields=True):
    call: str = ""
    tool: str = ""
    request: Id | None = None
    arguments: Raw = Raw(b"{}")
    age_s: Seconds = 0.0


class _AnswerArguments(Struct, forbid_unknown_fields=True):
    question: str
    action: Literal["accept", "decline", "cancel"]
    digest: str
    content: Raw = NOTHING


def is_app_tool(gateway: GatewayState, tool_call: ToolCall) -> bool:
    """Whether this is a tool of our app, and its client shows apps; to others there is no such tool."""
    return tool_call.name in wire_app.APP_TOOLS and shows_app(gateway, tool_call.capabilities)


async def run_app_tool(gateway: GatewayState, tool_call: ToolCall, caller: str) -> HandleText:
    """Run a tool of our app for this caller; raises ToolError."""
    if tool_call.name == wire_app.ANSWER:
        return await _answer(gateway, tool_call, caller)
    asked = read_arguments(tool_call, _ViewArguments)
    engine, now = gateway.engine, gateway.engine.clock.now()
    if asked.call:
        roots = [await find_own_call(gateway, asked.call, caller)]
    elif caller == LOCAL_CALLER:  # callers that cannot be told apart see a call by its id alone (S3)
        roots = list[LiveCall]()
    elif asked.tool:
        roots = _calls_of_request(gateway, asked, caller)
    else:
        own = [live for live in engine.calls() if live.call.opened.caller == caller]
        roots = [live for live in own if live.parent is None]
    shown = [live for root in roots for live in _tree(root)][:MAX_CALLS]
    views = [_view(gateway, live, now) for live in shown]
    if asked.call:
        views += await _ended_children(gateway, shown, caller, now)
    fields = {"now": now, "calls": Raw(encode_json(views)), "anonymous": caller == LOCAL_CALLER}
    return HandleText(f"{len(views)} calls", fields)


def _calls_of_request(gateway: GatewayState, asked: _ViewArguments, caller: str) -> list[LiveCall]:
    """The call that a request opened, as far as its host can say which: by id, by arguments, the newest."""
    since = gateway.engine.clock.now() - asked.age_s - FRAME_S
    found = [
        live
        for live in gateway.engine.calls()
        if live.call.opened.caller == caller
        and live.call.opened.tool == asked.tool
        and live.call.opened.at >= since  # an older one is another's, if this one is still to come
    ]
    by_request = [one for one in found if asked.request is not None and _request_id(one) == asked.request]
    by_arguments = [one for one in found if _is_same(one.call.opened.arguments, asked.arguments)]
    return (by_request or by_arguments or found)[-1:]


def _request_id(live: LiveCall) -> Id | None:
    requests = known_requests(live)
    return None if requests is None or requests.opened_by is None else requests.opened_by[0]


def _is_same(kept: Raw, given: Raw) -> bool:
    return bool(msgspec.json.decode(kept or b"{}") == msgspec.json.decode(given))


def _tree(live: LiveCall) -> Iterator[LiveCall]:
    """A call and every call below it that lives, each below the one that made it."""
    yield live
    if live.below is not None:
        for child in list(live.below.children.values()):
            yield from _tree(child)


def _view(gateway: GatewayState, live: LiveCall, now: float) -> CallView:
    """A call as its caller sees it: without the trace of a failure, and what an operator could do."""
    engine = gateway.engine
    shown = call_view_with_forecast(engine, live, now)
    questions = [with_review(engine, live, one) for one in shown.questions]
    due = gateway.cancel_due(live.call)
    return with_failure(
        replace(shown, questions=questions, cancel_due=msgspec.UNSET if due is None else due), live.call
    )


async def _ended_children(
    gateway: GatewayState, shown: list[LiveCall], caller: str, now: float
) -> list[CallView]:
    """The calls made by those shown that are over, oldest first."""
    found = list[CallView]()
    for live in shown:
        if live.below is None and not live.call.is_finished:
            continue
        query = CallQuery(parent=live.call.id, caller=caller, state="finished", limit=MAX_ENDED)
        rows = await gateway.engine.journal.find(query)
        found += [row_view(row, now) for row in reversed(rows)]
    return found[:MAX_CALLS]


async def _answer(gateway: GatewayState, tool_call: ToolCall, caller: str) -> HandleText:
    """Give the answer of the person who sees the page; raises ToolError."""
    asked = read_arguments(tool_call, _AnswerArguments)
    live = await find_own_call(gateway, asked.question.rpartition(".")[0], caller)
    question = live.call.open.get(asked.question)
    if question is None or live.call.id not in gateway.engine:
        raise ToolError.refused("this question is not open any more")
    if question_view(live.call, question).digest != asked.digest:
        raise ToolError.refused("this question is not what was shown; look at it again")
    _check_may_answer(question, asked)
    open_s = gateway.engine.clock.now() - live.call.asked_at[question.id]
    given = Answer(asked.action, asked.content, caller, SURFACE)
    if approval.without_haste(question, given, open_s) is not given:  # as for forms of a client (A8)
        raise ToolError.refused(BY_HOST)
    try:
        gateway.engine.answer(question.id, given)
    except (AlreadyAnswered, UnknownName):
        raise ToolError.refused("this question is not open any more") from None
    await gateway.wait_until_recorded()  # an acknowledged answer is not lost (H1)
    return HandleText("The answer was given.")


def _check_may_answer(question: Question, asked: _AnswerArguments) -> None:
    """Check that a page in a host may give this answer; raises ToolError.

    The operator's questions are not the caller's (A1), and only the operator allows a tool for longer (A5).
    """
    if question.to == approval.OPERATOR:
        raise ToolError.refused("only the operator is asked this, in the console or the terminal")
    if question.kind not in FORM_KINDS:
        raise ToolError.refused("this question is for a program, not for a person")
    if question.kind != approval.KIND or asked.action != "accept":
        return
    try:
        decision = approval.parse_decision(asked.content or Raw(b"{}")).decision
    except ValueError as error:
        raise ToolError.validation(f"content{error}") from None
    if decision == "always":
        raise ToolError.refused("what needs no asking any more is for the operator to say")
