"""`afoot answer`: an open question of a call answered from any terminal."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from afoot.cli.asking import question_of
from afoot.cli.calls import At, Json, dumped
from afoot.cli.client import Client, connect, part
from afoot.cli.ending import USAGE, Stop
from afoot.cli.form import Declined, as_words, fill, visit
from afoot.cli.review import case_of, decide, lasting_option
from afoot.cli.typed import pairs
from afoot.observe import terminal

_DONE = {"accept": "answered", "decline": "declined"}
_APPROVALS = "--run, --skip, --reject TEXT or --always"


@dataclass(frozen=True)
class Review:
    """What is decided, mostly of a call that asks for approval."""

    run: Annotated[bool, Parameter(help="approve: let it run")] = False
    skip: Annotated[bool, Parameter(help="approve not: the model is told that it was skipped")] = False
    reject: Annotated[str, Parameter(help="approve not, and tell the model what to do instead")] = ""
    always: Annotated[bool, Parameter(help="approve, and do not ask again")] = False
    decline: Annotated[bool, Parameter(help="say no")] = False
    scope: Annotated[Literal["arguments", "tool", "server"], Parameter(help="what --always allows")] = "tool"
    lasts: Annotated[
        str, Parameter(name="--for", help="for how long --always: connection, ever, or seconds")
    ] = "connection"

    def content(self) -> dict[str, Any] | None:
        """The decision; None if there is none. Raises Stop."""
        if self.run + self.skip + self.always + self.decline + bool(self.reject) > 1:
            raise Stop(USAGE, f"only one of {_APPROVALS}, or --decline")
        if self.always:
            return {"decision": "always", "scope": self.scope, "for": lasting_option(self.lasts)}
        if self.reject:
            return {"decision": "reject", "instead": self.reject}
        return {"decision": "run" if self.run else "skip"} if self.run or self.skip else None


def answer(
    call: str,
    /,
    *words: str,
    review: Annotated[Review, Parameter(name="*")] = Review(),  # noqa: B008
    at: At = "",
    json: Json = False,
) -> int:
    """Answer the question that a call asks: by key=value, or in a form if nothing is given.

    Args:
        call: the call's id or its end, or the question's id
        words: the answer as key=value
    """
    decision = review.content()
    client = connect(at)
    asked = _find(client, call)
    if decision is not None and asked["kind"] not in ("approval", ""):
        raise Stop(USAGE, f"it does not ask for approval, but: {terminal.clean(asked['message'])}")
    action, content = "decline" if review.decline else "accept", decision
    if not review.decline and decision is None:
        action, content = _content(asked, words, is_person=sys.stdin.isatty() and not json)
    body = {"action": action} if content is None else {"action": action, "content": content}
    told = client.post(f"/api/questions/{part(asked['id'])}/answer", body)
    if json:
        print(dumped(told))
    else:
        print(f"{terminal.clean(told['tool'])} {terminal.short(told['id'])}: {_DONE[action]}")
    return 0


def _find(client: Client, name: str) -> dict[str, Any]:
    """The question meant: by its id, or the oldest open one of the call."""
    asked: list[dict[str, Any]] = client.get("/api/questions")["questions"]
    call, _, number = name.partition(".")
    meant = [
        one for one in asked
        if one["id"] == name or (call and one["call"].endswith(call) and one["id"].endswith(f".{number}"))
    ]  # fmt: skip
    if len(meant) == 1:
        return meant[0]
    if number:  # closed or unknown: the gateway says which, and who was first
        return {"id": name, "kind": "", "message": "", "schema": {}}
    found = client.get(f"/api/calls/{part(name)}")
    if not found["questions"]:
        state = found["outcome"] or found["state"]
        raise Stop(USAGE, f"call {terminal.short(found['id'])} asks nothing (it is {state})")
    return found["questions"][0]


def _content(
    asked: dict[str, Any], words: tuple[str, ...], *, is_person: bool
) -> tuple[str, dict[str, Any] | None]:
    """The action and its content, from words or from a form."""
    schema: dict[str, Any] = asked.get("schema") or {}
    if asked["kind"] == "approval" and not words and not is_person:
        message = terminal.clean(asked["message"])
        raise Stop(USAGE, f"it asks: {message}; answer with {_APPROVALS}")
    if words or not (is_person or schema.get("required")):
        return "accept", pairs(words, schema)
    if not is_person:
        message = terminal.clean(asked["message"])
        raise Stop(USAGE, f"it asks: {message}; answer with {as_words(schema)}, or --decline")
    return _form(asked)


def _form(asked: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    question = question_of(asked)
    _say(terminal.clean(asked["message"]))
    try:
        if question.kind == "approval":
            return "accept", decide(case_of(asked), _ask, _say)
        if question.kind == "url":
            visit(question, _ask, _say)
            return "accept", {}
        return "accept", fill(question, _ask, _say)
    except Declined:
        return "decline", None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _ask(prompt: str) -> str | None:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
