"""A question of a call put to a person in the terminal, until the gateway takes the answer."""

import json
from typing import Any

from afoot.cli.desk import Desk
from afoot.cli.ending import Stop
from afoot.cli.form import Ask, Declined, fill, visit
from afoot.cli.review import Case, decide
from afoot.cli.screen import Screen
from afoot.core.call import Call
from afoot.core.facts import Question
from afoot.engine.review import is_own, why_asked

ANSWERABLE = ("form", "url", "approval")


class Asking:
    """One question put to a person until the gateway takes the answer."""

    def __init__(
        self, question: Question, desk: Desk, shown: Screen, ask: Ask, call: Call | None = None
    ) -> None:
        self._question = question
        self._call = call
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
            return decide(_case(self._question, self._call), self._ask, self._screen.say)
        if self._question.kind == "url":
            visit(self._question, self._ask, self._screen.say)
            return {}
        return fill(self._question, self._ask, self._screen.say, only)

    def send(self, action: str, content: dict[str, Any] | None) -> set[str] | None:
        """None if it was taken, or somebody was faster; else the fields that do not fit."""
        try:
            self._desk.answer(self._question.id, action, content)
        except Stop as stop:
            self._screen.say(stop.message)
            if stop.more.get("status") != 422 or action != "accept":
                return None
            fields: Any = stop.more.get("fields") or ()
            named = {one["field"].partition(".")[0] for one in fields if isinstance(one, dict)} - {""}
            return named or None if self._question.kind == "url" else named or _every(self._question)
        return None


def _case(question: Question, call: Call | None) -> Case:
    arguments = bytes(call.arguments) if call is not None and is_own(question) else b""
    return Case(question.message, why_asked(question), arguments)


def _every(question: Question) -> set[str]:
    schema = json.loads(bytes(question.body) or b"{}")
    return set(schema.get("properties") or ())
