"""Questions: who waits for an answer, and whether an answer fits."""

import jsonschema_rs
from msgspec import Raw, json

from afoot.core.call import Call
from afoot.core.facts import Answer, Question
from afoot.errors import ToolError

ACTIONS = ("accept", "decline", "cancel")


def check(question: Question, answer: Answer) -> Answer:
    """The answer, if it fits the question; raises ToolError.validation naming the fields (Q2)."""
    if answer.action not in ACTIONS:
        raise ToolError.validation(
            f"answer.action: must be one of {', '.join(ACTIONS)}, not {answer.action!r}"
        )
    if answer.action != "accept" or question.kind != "form":
        return answer
    content = json.decode(answer.content) if answer.content else {}
    schema = json.decode(question.body) if question.body else {"type": "object"}
    faults = [fault(error) for error in jsonschema_rs.validator_for(schema).iter_errors(content)]
    if faults:
        raise ToolError.validation("; ".join(faults))
    return Answer("accept", answer.content or Raw(b"{}"), answer.by)


def fault(error: jsonschema_rs.ValidationError) -> str:
    """One line for one misfit: where, and what."""
    where = ".".join(["content", *(str(step) for step in error.instance_path)])
    return f"{where}: {error.message}"


def recorded(call: Call) -> dict[str, Answer]:
    """The answers given before, by key: a tool that runs again is not asked twice."""
    return {
        call.questions[answered.question].key: answered.answer
        for answered in call.answers.values()
        if answered.answer.action != "cancel"
    }
