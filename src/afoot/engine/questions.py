"""Questions: who waits for an answer, and whether an answer fits."""

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from msgspec import Raw, json
from msgspec.structs import replace

from afoot.core.call import Call, State
from afoot.core.declared import of_schema
from afoot.core.facts import Answer, Answered, Asked, Question
from afoot.core.redact import redacted
from afoot.engine.deadlines import arm
from afoot.engine.live import Live
from afoot.engine.review import decided
from afoot.errors import ToolError, UnknownName

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

ACTIONS = ("accept", "decline", "cancel")
TOOL = "tool"  # who has closed a question that the tool waits for no more


def check(question: Question, answer: Answer) -> Answer:
    """The answer, if it fits the question; raises ToolError.validation naming the fields (Q2)."""
    if answer.action not in ACTIONS:
        raise ToolError.validation(
            f"answer.action: must be one of {', '.join(ACTIONS)}, not {answer.action!r}"
        )
    if question.kind == "approval":
        decided(answer)
    if answer.action != "accept" or question.kind != "form":
        return answer
    try:
        content = json.decode(answer.content) if answer.content else {}
    except RecursionError:
        raise ToolError.validation("content: nested too deep") from None
    schema = json.decode(question.body) if question.body else {"type": "object"}
    if faults := [fault(error) for error in misfits(schema, content)]:
        raise ToolError.validation("; ".join(faults))
    return replace(answer, content=answer.content or Raw(b"{}"))


def misfits(schema: dict[str, Any], content: object) -> list[jsonschema_rs.ValidationError]:
    """Where the content does not fit; anything fits a schema that is none. Nothing is fetched for one."""
    try:
        return list(jsonschema_rs.validator_for(schema, offline=True).iter_errors(content))
    except Exception:  # a server may ask with any schema, and the library raises many things
        return []


def fault(error: jsonschema_rs.ValidationError) -> str:
    """One line for one misfit: where, and what."""
    where = ".".join(["content", *(str(step) for step in error.instance_path)])
    return f"{where}: {error.message}"


def meant(live: Live, had: int) -> list[Question]:
    """What those answer who have seen the first `had` questions: what was open then, as it is asked now.

    Where an attempt died, that is what the next has asked in the same place. If it has not come so far, it is
    the old one, for which to `keep` the answer: the next will not need to ask.
    """
    call, places = live.call, _places(live.call)
    seen = list(islice(places, had))
    newest = {place: name for name, place in places.items()}
    now = dict.fromkeys(newest[places[name]] for name in seen if _was_open(call, name, seen[-1]))
    return [call.questions[name] for name in now if name in call.open or _is_orphan(live, name)]


def keep(live: Live, question: Question, given: Answer) -> None:
    """Have an answer ready for when the question is asked again; the first one counts."""
    live.said.setdefault(question.id, given)


async def ask(engine: "Engine", live: Live, question: Question) -> Answer:
    """Open a question and wait for its answer; a known key is answered at once."""
    call = live.call
    if len(call.questions) - live.orphaned >= engine.max_questions:
        raise ToolError.refused(f"over {engine.max_questions} questions in one call (raise max_questions)")
    # An approval is given for a call that is known (A6), and the operator's answer comes from the operator.
    known = None if question.kind == "approval" or question.to else _known(live, question.key)
    if question.kind in ("sample", "roots") and call.opened.caller == "operator":
        known = Answer("decline", by="engine")  # who called it has no model, and no roots
    question = replace(question, id=f"{call.id}.{len(call.questions) + 1}")
    engine.commit(live, Asked(engine.clock.now(), question))
    if live.parent is not None:
        engine.trees.asked(live, question)
    if known is not None:
        with suppress(ToolError):  # where it does not fit after all, the question stays open
            return _settle(engine, live, question, known)
    return await wait(engine, live, question)


async def wait(engine: "Engine", live: Live, question: Question) -> Answer:
    """Wait for the answer to a question that is open; where nobody waits any more, it is closed."""
    call = live.call
    arm(live, engine.clock, engine.tick)
    waiter = live.waiters[question.id] = asyncio.get_running_loop().create_future()
    try:
        return await waiter
    finally:
        live.waiters.pop(question.id, None)
        # Whoever asked waits for it no more.
        if question.id in call.open and call.state in (State.RUNNING, State.QUEUED):
            _settle(engine, live, question, Answer("cancel", by=TOOL))


def answer(engine: "Engine", live: Live, question_id: str, given: Answer) -> bool:
    """Answer an open question; True if nobody runs who waits for it, and the call must be run again."""
    question = live.call.questions.get(question_id)
    if question is None:
        raise UnknownName("question", question_id, live.call.questions)
    if question.below and question_id in live.call.open:  # whoever really asks is answered, and then this
        engine.answer(question.below, given)
        return False
    if question.kind == "below":
        raise ToolError.refused("it is asked further down, and can only be answered there")
    checked = _settle(engine, live, question, given)
    waiter = live.waiters.get(question_id)
    if waiter is not None and not waiter.done():
        waiter.set_result(checked)
        return False
    return live.task is None and not live.call.open


def _known(live: Live, key: str) -> Answer | None:
    """The answer to the next question of this key, if one that died had it in this place, or it came early.

    Where there was none, as nobody gave it or a secret was not kept, it is asked for again.
    """
    call, places = live.call, _places(live.call)
    mine = [name for name, place in places.items() if place[0] == key and call.asked_by[name] == call.attempt]
    for name in reversed(places):
        if places[name] == (key, len(mine)) and (said := _said(live, name)) is not None:
            return said
    return live.given.pop(key, None)


def _places(call: Call) -> dict[str, tuple[str, int]]:
    """By question: its key, and how many of that key its attempt had asked before."""
    asked = Counter[tuple[str, int]]()
    found: dict[str, tuple[str, int]] = {}
    for name, question in call.questions.items():
        whose = question.key, call.asked_by[name]
        found[name] = question.key, asked[whose]
        asked[whose] += 1
    return found


def _said(live: Live, name: str) -> Answer | None:
    """What was answered, if it can be given again."""
    said, answered = live.said.get(name), live.call.answers.get(name)
    if said is None and answered is not None and answered.answer.action != "cancel":
        said = answered.answer
    return None if said is None or redacted(said.content) else said


def _was_open(call: Call, name: str, last: str) -> bool:
    """Whether it was when the last one was asked."""
    answered = call.answers.get(name)
    return name == last or answered is None or answered.at > call.asked_at[last]


def _is_orphan(live: Live, name: str) -> bool:
    """Whether its attempt died, and nobody had answered."""
    is_old = name in islice(live.call.questions, live.orphaned)
    return is_old and live.call.is_safe and _is_dropped(live.call.answers.get(name))


def _is_dropped(answered: Answered | None) -> bool:
    """Whether nobody answered: whoever had asked waited no more."""
    return answered is not None and (answered.answer.action, answered.answer.by) == ("cancel", TOOL)


def _settle(engine: "Engine", live: Live, question: Question, given: Answer) -> Answer:
    checked = check(question, given) if question.id in live.call.open else given
    kept = checked
    if question.kind == "form":
        redactor = engine.catalog.terms.redactor
        kept = replace(checked, content=redactor.value(checked.content, of_schema(question.body)))
    engine.commit(live, Answered(engine.clock.now(), question.id, kept))
    if kept is not checked and redacted(kept.content):  # and it was taken
        live.said[question.id] = checked
    if live.parent is not None:
        engine.trees.answered(live, question.id, checked)
    arm(live, engine.clock, engine.tick)
    return checked
