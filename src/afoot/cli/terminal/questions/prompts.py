"""`QuestionDialog` puts a call's question to a person in the terminal until the gateway takes the answer.

`ask_approval` is the menu for an approval: run, skip, instead or always. Forms and URLs are in `forms`.
"""

import json
from typing import Any, Protocol

import msgspec

from afoot.cli.client import USAGE, CliError
from afoot.cli.terminal.questions.forms import (
    DeclineAnswer,
    LinePrinter,
    LinePrompt,
    fill_form,
    form_as_words,
    visit_url,
)
from afoot.cli.terminal.text import clean
from afoot.core.call import Call
from afoot.core.facts import Question
from afoot.engine.approval.question import (
    CONNECTION,
    EVER,
    MAX_DURATION_S,
    escape_unprintable,
    is_own_approval,
    why_asked,
)

APPROVAL_MENU = "r)un, s)kip, i)nstead (reject and say what to do), a)lways: "
SCOPES = {"t": "tool", "e": "arguments", "s": "server"}
MAX_ARGUMENT_LINES = 100  # of an approval's arguments
MAX_ARGUMENT_COLUMNS = 500
SHORT_ARGUMENTS_CHARS = 60  # arguments this short are readable in the question itself


class ApprovalCase(msgspec.Struct, frozen=True):
    """A call to be approved; `arguments` is JSON, or empty if they are only in the message."""

    message: str
    why: str = ""
    arguments: bytes = b""
    caller: str = ""


class AnswerSink(Protocol):
    """Takes the answer to a question; raises CliError."""

    def answer(self, question: str, action: str, content: object) -> None: ...


class TextSink(Protocol):
    """Shows a text to the person."""

    def say(self, text: str) -> None: ...


class QuestionDialog:
    """Asks a person one question until the gateway takes the answer; `case` belongs to an approval."""

    def __init__(
        self,
        question: Question,
        answers: AnswerSink,
        texts: TextSink,
        ask: LinePrompt,
        case: ApprovalCase | None = None,
    ) -> None:
        self._question = question
        self._case = case
        self._answers = answers
        self._texts = texts
        self._ask = ask

    def run(self) -> None:
        """Ask, send, and ask again for fields that did not fit. Ctrl-D declines."""
        content: dict[str, Any] = {}
        only: set[str] | None = None
        while True:
            try:
                content |= self._content(only)
            except DeclineAnswer:
                self.send("decline", None)
                return
            misfits = self.send("accept", content)
            if misfits is None:
                return
            only = misfits

    def _content(self, only: set[str] | None) -> dict[str, Any]:
        if self._question.kind == "approval":
            return ask_approval(self._case or case_of_call(self._question, None), self._ask, self._texts.say)
        if self._question.kind == "url":
            visit_url(self._question, self._ask, self._texts.say)
            return {}
        return fill_form(self._question, self._ask, self._texts.say, only)

    def send(self, action: str, content: dict[str, Any] | None) -> set[str] | None:
        """Send an answer; the fields that do not fit, or None if it was taken or somebody else was faster."""
        try:
            self._answers.answer(self._question.id, action, content)
        except CliError as error:
            self._texts.say(clean(error.message))
            if error.details.get("status") != 422 or action != "accept":
                return None
            fields: Any = error.details.get("fields") or ()
            named = {one["field"].partition(".")[0] for one in fields if isinstance(one, dict)} - {""}
            return named or None if self._question.kind == "url" else named or _all_fields(self._question)
        return None


def question_of_json(asked: dict[str, Any]) -> Question:
    """The question that the API shows as JSON."""
    body = asked.get("schema") or asked.get("params")
    raw = msgspec.Raw(msgspec.json.encode(body)) if body else msgspec.Raw()
    return Question(asked["id"], asked.get("key", ""), asked["kind"], asked["message"], raw)


def case_of_question(asked: dict[str, Any]) -> ApprovalCase:
    """The case of a question as the API shows it."""
    known = asked.get("arguments")
    arguments = b"" if known is None else json.dumps(known, ensure_ascii=False).encode()
    return ApprovalCase(asked["message"], asked.get("why", ""), arguments, asked.get("caller", ""))


def case_of_call(question: Question, call: Call | None) -> ApprovalCase:
    """The case of an approval, from the facts of its call."""
    arguments = bytes(call.arguments) if call is not None and is_own_approval(question) else b""
    return ApprovalCase(question.message, why_asked(question), arguments)


def answer_options(question: Question) -> str:
    """The arguments that `afoot answer` needs after the question's id."""
    if question.kind == "approval":
        return "--run, or --skip"
    schema = json.loads(bytes(question.body) or b"{}") if question.kind == "form" else {}
    return form_as_words(schema)


def ask_approval(case: ApprovalCase, ask: LinePrompt, say: LinePrinter) -> dict[str, Any]:
    """Ask a person for a decision; raises DeclineAnswer."""
    for line in _case_lines(case):
        say(line)
    while True:
        match _ask_lower(ask, APPROVAL_MENU):
            case "r" | "run":
                return {"decision": "run"}
            case "s" | "skip":
                return {"decision": "skip"}
            case "i" | "instead" | "reject":
                return {"decision": "reject", "instead": _ask_text(ask, "what to do instead: ")}
            case "a" | "always":
                return {"decision": "always", "scope": _ask_scope(ask, say), "for": _ask_duration(ask, say)}
            case _:
                say("  type r, s, i or a")


def parse_duration(text: str) -> str | float:
    """The duration of an allowlist entry: connection, ever, or seconds; raises ValueError."""
    if text in (CONNECTION, EVER):
        return text
    found = float(text)
    if not 0 < found <= MAX_DURATION_S:
        raise ValueError
    return found


def parse_duration_option(text: str, words: tuple[str, ...] = (CONNECTION, EVER)) -> str | float:
    """The duration that --for names, where only these words are allowed; raises CliError."""
    try:
        found = parse_duration(text)
    except ValueError:
        found = ""
    if found in words or isinstance(found, float):
        return found
    raise CliError(USAGE, f"--for: {', '.join(words)}, or a number of seconds, not {text!r}")


def _case_lines(case: ApprovalCase) -> list[str]:
    whose = f"called by {escape_unprintable(case.caller)}; " if case.caller else ""
    lines = [f"  {whose}{escape_unprintable(case.why)}"] if case.why or whose else []
    shown = msgspec.json.format(case.arguments, indent=2).decode(errors="replace") if case.arguments else ""
    if len(shown) <= SHORT_ARGUMENTS_CHARS:
        return lines
    found = shown.split("\n")
    for line in found[:MAX_ARGUMENT_LINES]:
        more = "…" if len(line) > MAX_ARGUMENT_COLUMNS else ""
        lines.append(f"  {escape_unprintable(line[:MAX_ARGUMENT_COLUMNS])}{more}")
    if len(found) > MAX_ARGUMENT_LINES:
        lines.append(f"  … ({len(found)} lines in all)")
    return lines


def _ask_lower(ask: LinePrompt, prompt: str) -> str:
    return _ask_text(ask, prompt).lower()


def _ask_text(ask: LinePrompt, prompt: str) -> str:
    text = ask(prompt)
    if text is None:
        raise DeclineAnswer
    return text.strip()


def _ask_scope(ask: LinePrompt, say: LinePrinter) -> str:
    while True:
        typed = _ask_lower(ask, "always what: t)his tool, e)xactly these arguments, s)erver [t]: ") or "t"
        found = SCOPES.get(typed, typed)
        if found in SCOPES.values():
            return found
        say("  type t, e or s")


def _ask_duration(ask: LinePrompt, say: LinePrinter) -> str | float:
    while True:
        typed = _ask_lower(ask, "for how long: c)onnection, e)ver, or seconds [c]: ") or "c"
        try:
            return parse_duration({"c": CONNECTION, "e": EVER}.get(typed, typed))
        except ValueError:
            say("  type c, e or a number of seconds")


def _all_fields(question: Question) -> set[str]:
    schema = json.loads(bytes(question.body) or b"{}")
    return set(schema.get("properties") or ())
