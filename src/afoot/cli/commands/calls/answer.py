"""`afoot answer` answers a call's open question."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from afoot.cli.client import USAGE, CliError, GatewayClient, connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal import text as terminal
from afoot.cli.terminal.listing import to_json_line
from afoot.cli.terminal.questions.forms import DeclineAnswer, fill_form, form_as_words, parse_pairs, visit_url
from afoot.cli.terminal.questions.prompts import (
    ask_approval,
    case_of_question,
    parse_duration_option,
    question_of_json,
)

_ACTION_WORDS = {"accept": "answered", "decline": "declined"}
_APPROVAL_FLAGS = "--run, --skip, --reject TEXT or --always"


@dataclass(frozen=True)
class AnswerOptions:
    """The options of `afoot answer`: the decision on an approval."""

    run: Annotated[bool, Parameter(help="approve the call")] = False
    skip: Annotated[bool, Parameter(help="refuse the call; the model is told that it was skipped")] = False
    reject: Annotated[str, Parameter(help="refuse the call and tell the model what to do instead")] = ""
    always: Annotated[bool, Parameter(help="approve the call and do not ask again")] = False
    decline: Annotated[bool, Parameter(help="decline to answer")] = False
    scope: Annotated[Literal["arguments", "tool", "server"], Parameter(help="what --always allows")] = "tool"
    lasts: Annotated[
        str, Parameter(name="--for", help="how long --always lasts: connection, ever, or seconds")
    ] = "connection"

    def content(self) -> dict[str, Any] | None:
        """The content of the decision; None if no option gives one. Raises CliError."""
        if self.run + self.skip + self.always + self.decline + bool(self.reject) > 1:
            raise CliError(USAGE, f"only one of {_APPROVAL_FLAGS}, or --decline")
        if self.always:
            return {"decision": "always", "scope": self.scope, "for": parse_duration_option(self.lasts)}
        if self.reject:
            return {"decision": "reject", "instead": self.reject}
        return {"decision": "run" if self.run else "skip"} if self.run or self.skip else None


def answer(
    call: str,
    /,
    *words: str,
    review: Annotated[AnswerOptions, Parameter(name="*")] = AnswerOptions(),  # noqa: B008
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """Answer a call's open question with key=value, or in a form if no answer is given.

    Args:
        call: the call's id or its last characters, or the question's id
        words: the answer as key=value
    """
    decision = review.content()
    client = connect(at)
    asked = _find_question(client, call)
    if decision is not None and asked["kind"] not in ("approval", ""):
        raise CliError(USAGE, f"it does not ask for approval, but: {terminal.clean(asked['message'])}")
    action, content = "decline" if review.decline else "accept", decision
    if not review.decline and decision is None:
        action, content = _answer_content(asked, words, is_person=sys.stdin.isatty() and not json)
    body = {"action": action} if content is None else {"action": action, "content": content}
    reply = client.post(f"/api/questions/{path_segment(asked['id'])}/answer", body)
    if json:
        print(to_json_line(reply))
    else:
        print(f"{terminal.clean(reply['tool'])} {terminal.short_id(reply['id'])}: {_ACTION_WORDS[action]}")
    return 0


def _find_question(client: GatewayClient, name: str) -> dict[str, Any]:
    """The question of this id, or the oldest open question of the call."""
    asked: list[dict[str, Any]] = client.get("/api/questions")["questions"]
    call, _, number = name.partition(".")
    meant = [
        one for one in asked
        if one["id"] == name or (call and one["call"].endswith(call) and one["id"].endswith(f".{number}"))
    ]  # fmt: skip
    if len(meant) == 1:
        return meant[0]
    if number:  # closed or unknown: the gateway says which, and who answered first
        return {"id": name, "kind": "", "message": "", "schema": {}}
    found = client.get(f"/api/calls/{path_segment(name)}")
    if not found["questions"]:
        state = found["outcome"] or found["state"]
        raise CliError(USAGE, f"call {terminal.short_id(found['id'])} asks nothing (it is {state})")
    return found["questions"][0]


def _answer_content(
    asked: dict[str, Any], words: tuple[str, ...], *, is_person: bool
) -> tuple[str, dict[str, Any] | None]:
    """The action and its content, from key=value words or from a form."""
    schema: dict[str, Any] = asked.get("schema") or {}
    if asked["kind"] == "approval" and not words and not is_person:
        message = terminal.clean(asked["message"])
        raise CliError(USAGE, f"it asks: {message}; answer with {_APPROVAL_FLAGS}")
    if words or not (is_person or schema.get("required")):
        return "accept", parse_pairs(words, schema)
    if not is_person:
        message = terminal.clean(asked["message"])
        raise CliError(USAGE, f"it asks: {message}; answer with {form_as_words(schema)}, or --decline")
    return _ask_in_form(asked)


def _ask_in_form(asked: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    question = question_of_json(asked)
    _say(terminal.clean(asked["message"]))
    try:
        if question.kind == "approval":
            return "accept", ask_approval(case_of_question(asked), _ask, _say)
        if question.kind == "url":
            visit_url(question, _ask, _say)
            return "accept", {}
        return "accept", fill_form(question, _ask, _say)
    except DeclineAnswer:
        return "decline", None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _ask(prompt: str) -> str | None:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
