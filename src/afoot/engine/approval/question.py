"""`approval_question` is asked before a start; `decision_of` reads the decision of its answer (A2, A8).

Here are also the forms of callers and of the operator, the question after a reject, and the error by which
the model is told of a no.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from afoot.core.call import APPROVAL, INSTEAD, Call
from afoot.core.facts import NOTHING, Answer, Question
from afoot.core.names import full_name
from afoot.core.ports import Tool
from afoot.errors import ToolError

KIND = "approval"  # of a question
CALLER, OPERATOR, BOTH = "caller", "operator", "both"  # who is asked
EVER, CONNECTION = "ever", "connection"  # for how long something is allowed
HOST = "host"  # the surface of an answer that the caller's program gave without a person
ANYBODY = "local"  # all callers who cannot be told apart (S3)
TITLES = {
    "run": "Run it",
    "skip": "Skip it",
    "reject": "Reject it, and say what to do instead",
    "always": "Run it, and do not ask again",
}
FASTEST_PERSON_S = 0.05  # no person answers a form sooner; `codex exec` declines each after 1 ms (A8)
# How the names of callers begin that an operator has given the right to call: their programs may say yes.
NAMED_CALLERS = ("operator", "token:", "oauth:")
INSTEAD_S = 120.0  # how long a person who has rejected a call may think about what to do instead
MAX_DURATION_S = 1e9
MAX_SHOWN_CHARS = 4000  # of arguments in the question itself

_INSTEAD_FIELD = {"type": "string", "title": "What to do instead", "description": "told to the model"}


class Decision(Struct, frozen=True, forbid_unknown_fields=True):
    """The decision of a reviewer: run, skip, reject with words for the model, or always allow (A2)."""

    decision: Literal["run", "skip", "reject", "always"]
    instead: str = ""
    scope: Literal["arguments", "tool", "server"] = "tool"
    lasts: str | Annotated[float, Meta(gt=0, le=MAX_DURATION_S)] = msgspec.field(
        name="for", default=CONNECTION
    )

    @property
    def lasts_s(self) -> float | None:
        """The seconds for which the decision holds, if it names a time."""
        return None if isinstance(self.lasts, str) else float(self.lasts)


def approval_question(tool: Tool, arguments: Raw, to: str, caller: str, why: str) -> Question:
    """The question before a start; its form is what a caller may answer."""
    titles = {**TITLES, "always": "Run it, and do not ask again on this connection"}
    if caller == ANYBODY:  # its yes would hold for callers who are not told apart from it (S6)
        del titles["always"]
    # A name of a page's tool may look like another's: whose it is stands before all that the page chose.
    whose = f" of {tool.source.replace(':', ' ', 1)} " if tool.source else ""
    text = f"Run {escape_unprintable(full_name(tool) + whose)}({display_arguments(arguments)})?"
    form = _encoded_form(decision=_decision_field(titles, why))
    return Question("", APPROVAL, KIND, text, Raw(form), to)


def instead_question(tool: Tool) -> Question:
    """The question after a caller's reject: what to do instead (A8)."""
    text = (
        f"{escape_unprintable(full_name(tool))} is not run. What shall the model do instead? "
        "Decline this form to say nothing."
    )
    form = _encoded_form(instead={**_INSTEAD_FIELD, "minLength": 1})
    return Question("", INSTEAD, "form", text, Raw(form), CALLER)


def without_haste(asked: Question, given: Answer, open_s: float) -> Answer:
    """A caller's answer to a form that was open for so long.

    An answer that no person can have given counts as none (A8): a decline of an approval, and the yes of a
    caller without a name to its own call (S6).
    """
    if asked.kind != KIND or open_s >= FASTEST_PERSON_S:
        return given
    if given.action != "decline" and (given.by.startswith(NAMED_CALLERS) or not _lets_run(given)):
        return given
    return msgspec.structs.replace(given, action="cancel", content=NOTHING, surface=HOST)


def _lets_run(given: Answer) -> bool:
    try:
        return given.action == "accept" and decision_of(given).decision in ("run", "always")
    except ToolError:  # it decides nothing, and is asked for again
        return False


def is_own_approval(asked: Question) -> bool:
    """Whether a call asks for its own start, not for that of a call below it."""
    return asked.kind == KIND and asked.key == APPROVAL


def why_asked(asked: Question) -> str:
    """Why an approval is asked for."""
    form = msgspec.json.decode(asked.body) if asked.body else {}
    return str(form.get("properties", {}).get("decision", {}).get("description", ""))


def operator_form() -> bytes:
    """The form of the operator, who may answer with scope and time besides."""
    scope = {
        "type": "string", "title": "What to allow from now on", "enum": ["arguments", "tool", "server"],
        "enumNames": ["exactly these arguments", "this tool", "every tool that its server or page has now"],
        "default": "tool",
    }  # fmt: skip
    lasts = {
        "type": "string", "title": "For how long", "default": CONNECTION,
        "description": f"{CONNECTION} (this caller, while the gateway runs), {EVER}, or seconds",
    }  # fmt: skip
    optional = {"instead": _INSTEAD_FIELD, "scope": scope, "for": lasts}
    return _encoded_form(optional, decision=_decision_field(TITLES, ""))


def _decision_field(titles: dict[str, str], why: str) -> dict[str, object]:
    """The field of a decision. It has no default: a form that is sent off unread decides nothing (A8)."""
    return {
        "type": "string", "title": "What to do", "description": why, "enum": list(titles),
        "enumNames": list(titles.values()),
    }  # fmt: skip


def _encoded_form(optional: Mapping[str, object] | None = None, **required: object) -> bytes:
    """A form that every era knows."""
    properties = {**required, **(optional or {})}
    return msgspec.json.encode({"type": "object", "properties": properties, "required": list(required)})


def decision_of(answer: Answer) -> Decision:
    """The decision that an answer means; declining skips. Raises ToolError.validation naming the field."""
    if answer.action != "accept":
        return Decision("skip")
    try:
        return parse_decision(answer.content or Raw(b"{}"))
    except ValueError as error:
        raise ToolError.validation(f"answer.content{error}") from None


def parse_decision(content: Raw) -> Decision:
    """A decision from JSON; raises ValueError with the field first."""
    try:
        decision = msgspec.json.decode(content, type=Decision)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        # A yes to nothing is no yes: many a program accepts whatever it is asked.
        if "missing required" in what:
            raise ValueError(f".decision: must be one of {', '.join(TITLES)}") from None
        raise ValueError(f"{where.rstrip('`')}: {what}") from None
    if not isinstance(decision.lasts, str) or decision.lasts in (EVER, CONNECTION):
        return decision
    try:
        return msgspec.structs.replace(decision, lasts=_seconds(decision.lasts))  # a form gives text
    except ValueError:
        raise ValueError(f'.for: must be "{CONNECTION}", "{EVER}" or a number of seconds') from None


def _seconds(text: str) -> float:
    found = float(text)
    if not 0 < found <= MAX_DURATION_S:
        raise ValueError
    return found


def answered_instead(call: Call) -> str:
    """The answer to `instead_question` in this call; "" where it was not asked, or nothing was said."""
    asked = next((one.id for one in call.questions.values() if one.key == INSTEAD), "")
    answered = call.answers.get(asked)
    if answered is None or answered.answer.action != "accept":
        return ""
    return str(msgspec.json.decode(answered.answer.content or b"{}").get("instead", ""))


def refusal_error(tool: Tool, decision: Decision) -> ToolError:
    """The error by which the model is told of a call that was not let through."""
    instead = decision.instead.strip()
    if decision.decision == "reject" and instead:
        text = f"{tool.name} was not run. The user says what to do instead: {instead}"
        return ToolError.refused(text, code="rejected")
    if decision.decision == "reject":
        return ToolError.refused(f"{tool.name} was not run: the user rejected it", code="rejected")
    return ToolError.refused(
        f"{tool.name} was not run: the user chose to skip it; do not try it again", code="skipped"
    )


def display_arguments(arguments: Raw) -> str:
    """Arguments on one line, as they are, but with nothing in them that could steer what shows them."""
    text = msgspec.json.format(bytes(arguments or b"{}"), indent=0).decode(errors="replace")
    if len(text) > MAX_SHOWN_CHARS:
        text = text[:MAX_SHOWN_CHARS] + f"… ({len(text)} characters in all)"
    return escape_unprintable(text)


def escape_unprintable(text: str) -> str:
    """The text with invisible and steering characters written out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
