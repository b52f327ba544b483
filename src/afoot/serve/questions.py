"""Open questions over the operator's API: listed, and answered from anywhere (Q4)."""

import jsonschema_rs
from msgspec import UNSET, Raw, Struct, UnsetType, json
from msgspec.structs import replace

from afoot.core.call import Call
from afoot.core.facts import NOTHING, Answer, Question
from afoot.engine import review
from afoot.engine.engine import Engine
from afoot.engine.live import Live
from afoot.engine.questions import ACTIONS
from afoot.errors import AlreadyAnswered, ToolError, UnknownName
from afoot.serve.calls import visible
from afoot.serve.principal import ADMIN
from afoot.serve.request import Request, Wrong, choice
from afoot.serve.view import QuestionView, asked, question, view


class Questions(Struct, frozen=True):
    """The open questions, oldest first."""

    questions: list[QuestionView]


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer: accept with content, decline, or cancel; `digest`: to exactly what was displayed."""

    action: str = "accept"
    content: Raw | UnsetType = UNSET
    digest: str = ""


async def index(request: Request) -> None:
    """The open questions of all calls."""
    request.query()
    engine = request.site.engine
    found = [reviewed(engine, live, one) for live in engine.calls() for one in asked(live.call)]
    await request.answer(200, Questions(sorted(found, key=lambda one: one.asked)))


def reviewed(engine: Engine, live: Live, seen: QuestionView) -> QuestionView:
    """An approval with whose tool it is, and what has changed since it was last approved."""
    if seen.kind != review.KIND or not review.is_own(live.call.questions[seen.id]):
        return seen
    changed = engine.policy.past.changed(live.tool, live.call.arguments)
    return replace(seen, source=live.tool.source, changed=changed)


async def answer(request: Request) -> None:
    """Answer a question; the first answer counts."""
    said = await request.body(Said)
    choice(said.action, "action", ACTIONS)
    site = request.site
    call, name = await _meant(request, request.names["id"])
    if call.id not in site.engine or call.is_finished:
        raise _closed(call, name)
    if (
        said.digest
        and name in call.open
        and (now := question(call, call.questions[name])).digest != said.digest
    ):
        raise Wrong(
            409, f"question {name!r} is not what was displayed; look at it again", "refused", question=now
        )
    content = NOTHING if said.content is UNSET else said.content
    if call.questions[name].kind == review.KIND and _is_lasting(said.action, content):
        request.who.demand(ADMIN)  # as whoever adds it to the allowlist by hand
    try:
        given = Answer(said.action, content, "operator", _surface(request), request.identity)
        site.engine.answer(name, given)
    except AlreadyAnswered:
        raise _closed(call, name) from None
    except ToolError as error:
        if error.category == "refused":
            raise Wrong(409, error.message, error.category) from None
        fields = misfits(call.questions[name], content)
        raise Wrong(422, error.message, error.category, fields=fields) from None
    await site.recorded()  # what is acknowledged is not lost (H1)
    await request.answer(200, view(call, site.engine.clock.now()))


def _surface(request: Request) -> str:
    """Where the operator is: a session is a browser's; commands say who they are."""
    if request.session:
        return "console"
    return "terminal" if request.header(b"afoot-surface") == "terminal" else "api"


def misfits(asked: Question, content: Raw) -> list[dict[str, str]]:
    """Which fields do not fit, and why."""
    if asked.kind == review.KIND:
        return _undecided(content)
    schema = json.decode(asked.body) if asked.body else {"type": "object"}
    validator = jsonschema_rs.validator_for(schema, offline=True)
    errors = validator.iter_errors(json.decode(content) if content else {})
    return [
        {"field": ".".join(str(step) for step in error.instance_path), "message": error.message}
        for error in errors
    ]


def _undecided(content: Raw) -> list[dict[str, str]]:
    try:
        review.read(content)
    except ValueError as error:
        field, _, message = str(error).partition(": ")
        return [{"field": field.removeprefix("."), "message": message}]
    return []


def _is_lasting(action: str, content: Raw) -> bool:
    """Whether an answer allows more than this connection from now on."""
    try:
        said = review.read(content or Raw(b"{}"))
    except ValueError:
        return False  # it is no answer at all
    return action == "accept" and said.decision == "always" and said.lasts != review.CONNECTION


async def _meant(request: Request, name: str) -> tuple[Call, str]:
    """The call that asked, and the question's whole id; raises UnknownName with those the asker may see."""
    calls = [live.call for live in request.site.engine.calls() if request.owns(live.call.opened.caller)]
    known = [one for call in calls for one in call.open]
    owner, _, number = name.rpartition(".")
    try:
        call = (await visible(request, owner)).call
    except UnknownName:
        raise UnknownName("question", name, known) from None
    if (whole := f"{call.id}.{number}") not in call.questions:
        raise UnknownName("question", name, [*call.questions, *known])
    return call, whole


def _closed(call: Call, name: str) -> Wrong:
    first = call.answers.get(name)
    if first is None:
        outcome = call.end.outcome if call.end else "over"
        return Wrong(409, f"question {name!r} is closed: its call is over ({outcome})", "refused")
    said = f"{first.answer.action}, by {first.answer.by}"
    text = f"question {name!r} was already answered: {said}"
    return Wrong(409, text, "refused", question=question(call, call.questions[name]))
