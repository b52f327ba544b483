"""A question of a call put to a person in the terminal, until the gateway takes the answer."""

import json
from typing import Any, Protocol

import msgspec

from afoot.cli.ending import Stop
from afoot.cli.form import Ask, Declined, as_words, fill, visit
from afoot.cli.review import Case, decide
from afoot.core.call import Call
from afoot.core.facts import Question
from afoot.engine.review import is_own, why_asked
from afoot.observe.terminal import clean


class Taker(Protocol):
    """Where an answer goes; raises Stop."""

    def answer(self, question: str, action: str, content: object) -> None: ...


class Sayer(Protocol):
    """Where something is said."""

    def say(self, text: str) -> None: ...


class Asking:
    """One question put to a person until the gateway takes the answer; an approval with its case."""

    def __init__(
        self, question: Question, desk: Taker, shown: Sayer, ask: Ask, case: Case | None = None
    ) -> None:
        self._question = question
        self._case = case
        self._desk = desk
        self._screen = shown
        self._ask = ask

    def run(self) -> None:
        """Ask, send, and ask again for what did not fit. Ctrl-D declines."""
        content: dict[str, Any] = {}
        only: set[str] | None = None
        while True:
            try:
                content |= self._content(only)
            except Declined:
                self.send("decline", None)
                return
            misfits = self.send("accept", content)
            if misfits is None:
                return
            only = misfits

    def _content(self, only: set[str] | None) -> dict[str, Any]:
        if self._question.kind == "approval":
            return decide(self._case or case_in(self._question, None), self._ask, self._screen.say)
        if self._question.kind == "url":
            visit(self._question, self._ask, self._screen.say)
            return {}
        return fill(self._question, self._ask, self._screen.say, only)

    def send(self, action: str, content: dict[str, Any] | None) -> set[str] | None:
        """None if it was taken, or somebody was faster; else the fields that do not fit."""
        try:
            self._desk.answer(self._question.id, action, content)
        except Stop as stop:
            self._screen.say(clean(stop.message))
            if stop.more.get("status") != 422 or action != "accept":
                return None
            fields: Any = stop.more.get("fields") or ()
            named = {one["field"].partition(".")[0] for one in fields if isinstance(one, dict)} - {""}
            return named or None if self._question.kind == "url" else named or _every(self._question)
        return None


def case_in(question: Question, call: Call | None) -> Case:
    """What an approval is about, as far as the facts of its call tell."""
    arguments = bytes(call.arguments) if call is not None and is_own(question) else b""
    return Case(question.message, why_asked(question), arguments)


def in_words(question: Question) -> str:
    """What `afoot answer` is given besides the question's id."""
    if question.kind == "approval":
        return "--run, or --skip"
    schema = json.loads(bytes(question.body) or b"{}") if question.kind == "form" else {}
    return as_words(schema)


def question_of(asked: dict[str, Any]) -> Question:
    """A question of the API as the one that was asked."""
    body = asked.get("schema") or asked.get("params")
    raw = msgspec.Raw(msgspec.json.encode(body)) if body else msgspec.Raw()
    return Question(asked["id"], asked.get("key", ""), asked["kind"], asked["message"], raw)


def _every(question: Question) -> set[str]:
    schema = json.loads(bytes(question.body) or b"{}")
    return set(schema.get("properties") or ())
