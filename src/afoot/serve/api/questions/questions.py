"""Open questions over the operator's API: listed, and answered from any surface (Q4)."""

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, json
from msgspec.structs import replace

from afoot.core.call import Call
from afoot.core.facts import NOTHING, Answer, Question
from afoot.engine.approval import question as approval
from afoot.engine.engine import Engine
from afoot.engine.live_call import LiveCall
from afoot.engine.questions import ACTIONS, ENGINE, misfits
from afoot.errors import AlreadyAnswered, ToolError, UnknownName
from afoot.serve.access.principal import ADMIN, OPERATOR, WATCH, Denied, Principal
from afoot.serve.api.calls import visible_call
from afoot.serve.api.request import ApiError, ApiRequest, read_choice
from afoot.serve.api.views import QuestionView, call_view, open_questions, question_view


class QuestionList(Struct, frozen=True):
    """The open questions, oldest first."""

    questions: list[QuestionView]


class AnswerRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer: accept with content, decline, or cancel; `digest` binds it to exactly what was displayed."""

    action: str = "accept"
    content: Raw | UnsetType = UNSET
    digest: str = ""


async def index(request: ApiRequest) -> None:
    """The open questions of all calls."""
    request.query()
    engine = request.gateway.engine
    found = [with_review(engine, live, one) for live in engine.calls() for one in open_questions(live.call)]
    await request.answer(200, QuestionList(sorted(found, key=lambda one: one.asked)))


def with_review(engine: Engine, live: LiveCall, seen: QuestionView) -> QuestionView:
    """An approval with what its tool is, and what has changed since it was last approved."""
    if seen.kind != approval.KIND or not approval.is_own_approval(live.call.questions[seen.id]):
        return seen
    changed = engine.policy.past.changed(live.tool, live.call.arguments)
    return replace(seen, source=live.tool.source, destructive=live.tool.destructive, changed=changed)


async def answer(request: ApiRequest) -> None:
    """Answer a question; the first answer counts."""
    said = await request.body(AnswerRequest)
    read_choice(said.action, "action", ACTIONS)
    gateway = request.gateway
    call, name = await _find_question(request, request.names["id"])
    if call.id not in gateway.engine or call.is_finished:
        raise _closed_error(call, name)
    if (
        said.digest
        and name in call.open
        and (now := question_view(call, call.questions[name])).digest != said.digest
    ):
        raise ApiError(
            409, f"question {name!r} is not what was displayed; look at it again", "refused", question=now
        )
    _check_is_asked(request.principal, call.questions[name])
    content = NOTHING if said.content is UNSET else said.content
    if call.questions[name].kind == approval.KIND and _is_lasting(said.action, content):
        request.principal.require_scope(ADMIN)  # as for adding it to the allowlist directly
    try:
        given = Answer(said.action, content, _by(request.principal), _surface(request), request.identity)
        gateway.engine.answer(name, given)
    except AlreadyAnswered:
        raise _closed_error(call, name) from None
    except ToolError as error:
        if error.category == "refused":
            raise ApiError(409, error.message, error.category) from None
        fields = field_errors(call.questions[name], content)
        raise ApiError(422, error.message, error.category, fields=fields) from None
    await gateway.wait_until_recorded()  # an acknowledged answer is not lost (H1)
    await request.answer(200, call_view(call, gateway.engine.clock.now()))


def _check_is_asked(principal: Principal, question: Question) -> None:
    """Check that a question for the operator is not answered by the caller that the call is of (A1)."""
    if question.to == OPERATOR and principal.role != OPERATOR:
        raise Denied(403, f"only the operator is asked this, or who has the scope `{WATCH}`, too", WATCH)


def _by(principal: Principal) -> str:
    """The author of an answer: a principal that may answer for its own calls only is their caller (A3)."""
    return OPERATOR if principal.role == OPERATOR else principal.caller


def _surface(request: ApiRequest) -> str:
    """The surface of the answer: a browser session is the console; commands name themselves."""
    if request.session:
        return "console"
    return "terminal" if request.header(b"afoot-surface") == "terminal" else "api"


def field_errors(asked: Question, content: Raw) -> list[dict[str, str]]:
    """The fields that do not fit, and why."""
    if asked.kind == approval.KIND:
        return _approval_errors(content)
    try:
        errors = misfits(asked, json.decode(content) if content else {}, len(content))
    except (DecodeError, RecursionError):
        return []  # the message of the error says it
    return [
        {"field": where.removeprefix("content").removeprefix("."), "message": what} for where, what in errors
    ]


def _approval_errors(content: Raw) -> list[dict[str, str]]:
    try:
        approval.parse_decision(content)
    except ValueError as error:
        field, _, message = str(error).partition(": ")
        return [{"field": field.removeprefix("."), "message": message}]
    return []


def _is_lasting(action: str, content: Raw) -> bool:
    """Whether an answer allows more than this connection from now on."""
    try:
        said = approval.parse_decision(content or Raw(b"{}"))
    except ValueError:
        return False  # no valid answer: it is refused later
    return action == "accept" and said.decision == "always" and said.lasts != approval.CONNECTION


async def _find_question(request: ApiRequest, name: str) -> tuple[Call, str]:
    """The call that asked, and the question's full id; raises UnknownName with those the asker may see."""
    calls = [live.call for live in request.gateway.engine.calls() if request.may_see(live.call.opened.caller)]
    known = [one for call in calls for one in call.open]
    owner, _, number = name.rpartition(".")
    try:
        call = (await visible_call(request, owner)).call
    except UnknownName:
        raise UnknownName("question", name, known) from None
    if (whole := f"{call.id}.{number}") not in call.questions:
        raise UnknownName("question", name, [*call.questions, *known])
    return call, whole


def _closed_error(call: Call, name: str) -> ApiError:
    first = call.answers.get(name)
    if first is None:
        outcome = call.end.outcome if call.end else "over"
        return ApiError(409, f"question {name!r} is closed: its call is over ({outcome})", "refused")
    if first.answer.by == ENGINE:  # its tool has changed: the next question is about what that is now (A7)
        asked = next(iter(call.approvals), call.questions[name])
        text = f"question {name!r} is not what was displayed: its tool has changed; look at {asked.id!r}"
        return ApiError(409, text, "refused", question=question_view(call, asked))
    said = f"{first.answer.action}, by {first.answer.by}"
    text = f"question {name!r} was already answered: {said}"
    return ApiError(409, text, "refused", question=question_view(call, call.questions[name]))
