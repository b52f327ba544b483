"""Questions: who waits for an answer, and whether an answer fits."""

import asyncio
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from msgspec import Raw, json
from msgspec.structs import replace

from afoot.core.call import State
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


def recorded(live: Live) -> dict[str, list[Answer | None]]:
    """The answers given before, by key and in their order: a tool that runs again is not asked twice.

    None where a secret was not kept, and the gateway that knew it is dead: that is asked again.
    """
    call = live.call
    told: dict[tuple[str, int], list[Answer | None]] = {}  # by attempt, too
    for name, question in call.questions.items():
        answered = call.answers.get(name)
        if answered is not None and answered.answer.action != "cancel":
            said = live.said.get(name, answered.answer)
            one = None if redacted(said.content) else said
            told.setdefault((question.key, call.asked_by[name]), []).append(one)
    found: dict[str, list[Answer | None]] = {}
    for (key, _), answers in told.items():
        # The next attempt was given the same as far as it came, so the longest has all.
        if len(answers) >= len(found.get(key, ())):
            found[key] = answers
    return found


def orphans(live: Live) -> list[Question]:
    """Questions whose attempt died, and which the next has not asked again yet: it will not need to."""
    call, asked_again = live.call, {one.key for one in live.call.open.values()}
    if not call.is_safe:
        return []
    asked = islice(call.questions.values(), live.orphaned)
    return [one for one in asked if one.key not in asked_again and _is_dropped(call.answers.get(one.id))]


def keep(live: Live, question: Question, given: Answer) -> None:
    """Have an answer ready for when the question is asked again; the first one counts."""
    live.given.setdefault(question.key, given)


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
    """The answer to the next question of this key, if an attempt that died was given it, or it came early."""
    replies = live.replies.get(key)
    answer = replies.pop(0) if replies else None
    return live.given.pop(key, None) if answer is None else answer


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
