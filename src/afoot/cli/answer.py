"""`afoot answer`: an open question of a call answered from any terminal."""

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from afoot.cli.calls import At, Json, dumped
from afoot.cli.client import Client, connect, part
from afoot.cli.ending import USAGE, Stop
from afoot.cli.form import Declined, fill, visit
from afoot.cli.typed import pairs
from afoot.core.facts import Question
from afoot.observe import terminal

_DONE = {"accept": "answered", "decline": "declined"}


def answer(
    call: str,
    /,
    *words: str,
    decline: Annotated[bool, Parameter(help="say no")] = False,
    at: At = "",
    json: Json = False,
) -> int:
    """Answer the question that a call asks: by key=value, or in a form if nothing is given.

    Args:
        call: the call's id or its end, or the question's id
        words: the answer as key=value
    """
    client = connect(at)
    asked = _find(client, call)
    action, content = "decline", None
    if not decline:
        action, content = _content(asked, words, is_person=sys.stdin.isatty() and not json)
    body = {"action": action} if content is None else {"action": action, "content": content}
    told = client.post(f"/api/questions/{part(asked['id'])}/answer", body)
    if json:
        print(dumped(told))
    else:
        print(f"{told['tool']} {terminal.short(told['id'])}: {_DONE[action]}")
    return 0


def _find(client: Client, name: str) -> dict[str, Any]:
    """The question meant: by its id, or the oldest open one of the call."""
    asked: list[dict[str, Any]] = client.get("/api/questions")["questions"]
    call, _, number = name.partition(".")
    for one in asked:
        if one["id"] == name or (number == one["id"].rpartition(".")[2] and one["call"].endswith(call)):
            return one
    if number:  # closed or unknown: the gateway says which, and who was first
        return {"id": name, "kind": "form", "message": "", "schema": {}}
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
    if words or not (is_person or schema.get("required")):
        return "accept", pairs(words, schema)
    if not is_person:
        named = " ".join(f"{name}=…" for name in schema["required"])
        raise Stop(USAGE, f"it asks: {asked['message']}; answer with {named}, or --decline")
    return _form(asked)


def _form(asked: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    import msgspec

    body = asked.get("schema") or asked.get("params")
    question = Question(
        asked["id"], asked.get("key", ""), asked["kind"], asked["message"],
        msgspec.Raw(msgspec.json.encode(body)) if body else msgspec.Raw(),
    )  # fmt: skip
    _say(asked["message"])
    try:
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
