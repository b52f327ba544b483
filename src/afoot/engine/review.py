"""What a reviewer is shown before a tool runs, what may be answered, and what a no tells the model (A2)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from afoot.core.call import APPROVAL
from afoot.core.facts import Answer, Question
from afoot.core.ports import Tool
from afoot.errors import ToolError

KIND = "approval"
EVER, CONNECTION = "ever", "connection"
LONGEST_S = 1e9
SHOWN = 4000  # characters of arguments in the question itself
ANYBODY = "local"  # all callers who cannot be told apart (S3)

TITLES = {
    "run": "Run it",
    "skip": "Skip it",
    "reject": "Reject it, and say what to do instead",
    "always": "Run it, and do not ask again",
}


class Decision(Struct, frozen=True, forbid_unknown_fields=True):
    """What a reviewer says: run, skip, reject and say what to do instead, or always allow (A2)."""

    decision: Literal["run", "skip", "reject", "always"]
    instead: str = ""
    scope: Literal["arguments", "tool", "server"] = "tool"
    lasts: str | Annotated[float, Meta(gt=0, le=LONGEST_S)] = msgspec.field(name="for", default=CONNECTION)

    @property
    def lasts_s(self) -> float | None:
        """For how many seconds, if it says so."""
        return None if isinstance(self.lasts, str) else float(self.lasts)


def question(tool: Tool, arguments: Raw, to: str, caller: str, why: str) -> Question:
    """The question before a start; its form is what a caller may answer."""
    where = f"Run it, and do not ask again {_here(caller)}"
    body = _form(["run", "skip", "reject", "always"], {**TITLES, "always": where}, why)
    # A name of a page's tool may look like another's: whose it is stands before all that the page chose.
    whose = f" of {tool.source.replace(':', ' ', 1)} " if tool.source else ""
    text = f"Run {harmless(named(tool) + whose)}({shown(arguments)})?"
    return Question("", APPROVAL, KIND, text, Raw(body), to)


def is_own(asked: Question) -> bool:
    """Whether a call asks for its own start, not for that of a call below it."""
    return asked.kind == KIND and asked.key == APPROVAL


def why_asked(asked: Question) -> str:
    """Why an approval is asked for."""
    form = msgspec.json.decode(asked.body) if asked.body else {}
    return str(form.get("properties", {}).get("decision", {}).get("description", ""))


def decided(answer: Answer) -> Decision:
    """What an answer decides; declining skips. Raises ToolError.validation naming the field."""
    if answer.action != "accept":
        return Decision("skip")
    try:
        return read(answer.content or Raw(b"{}"))
    except ValueError as error:
        raise ToolError.validation(f"answer.content{error}") from None


def read(content: Raw) -> Decision:
    """A decision from JSON; raises ValueError with the field first."""
    try:
        said = msgspec.json.decode(content, type=Decision)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        if (
            "missing required" in what
        ):  # a yes to nothing is no yes: many a program accepts whatever it is asked
            raise ValueError(f".decision: must be one of {', '.join(TITLES)}") from None
        raise ValueError(f"{where.rstrip('`')}: {what}") from None
    if not isinstance(said.lasts, str) or said.lasts in (EVER, CONNECTION):
        return said
    try:
        return msgspec.structs.replace(said, lasts=_seconds(said.lasts))  # a form gives text
    except ValueError:
        raise ValueError(f'.for: must be "{CONNECTION}", "{EVER}" or a number of seconds') from None


def _seconds(text: str) -> float:
    found = float(text)
    if not 0 < found <= LONGEST_S:
        raise ValueError
    return found


def refusal(tool: Tool, said: Decision) -> ToolError:
    """What the model is told of a call that was not let through."""
    instead = said.instead.strip()
    if said.decision == "reject" and instead:
        text = f"{tool.name} was not run. The user says what to do instead: {instead}"
        return ToolError.refused(text, code="rejected")
    if said.decision == "reject":
        return ToolError.refused(f"{tool.name} was not run: the user rejected it", code="rejected")
    return ToolError.refused(
        f"{tool.name} was not run: the user chose to skip it; do not try it again", code="skipped"
    )


def named(tool: Tool) -> str:
    """A tool as its settings call it."""
    return f"{tool.server}/{tool.inner or tool.name}"


def shown(arguments: Raw) -> str:
    """Arguments on one line, as they are, but with nothing in them that could steer what shows them."""
    text = msgspec.json.format(bytes(arguments or b"{}"), indent=0).decode(errors="replace")
    cut = text[:SHOWN] + f"… ({len(text)} characters in all)" if len(text) > SHOWN else text
    return harmless(cut)


def harmless(text: str) -> str:
    """The text with invisible and steering characters written out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def operators_form() -> bytes:
    """What the operator may answer: with scope and time besides."""
    form = msgspec.json.decode(_form(list(TITLES), TITLES, ""))
    form["properties"]["scope"] = {
        "type": "string", "title": "What to allow from now on", "enum": ["arguments", "tool", "server"],
        "enumNames": ["exactly these arguments", "this tool", "every tool that its server or page has now"],
        "default": "tool",
    }  # fmt: skip
    form["properties"]["for"] = {
        "type": "string", "title": "For how long", "default": CONNECTION,
        "description": f"{CONNECTION} (this caller, while the gateway runs), {EVER}, or seconds",
    }  # fmt: skip
    return msgspec.json.encode(form)


def _here(caller: str) -> str:
    return "for any client on this machine" if caller == ANYBODY else "on this connection"


def _form(decisions: list[str], titles: dict[str, str], why: str) -> bytes:
    """A form that every era knows."""
    decision = {
        "type": "string", "title": "What to do", "description": why, "enum": decisions,
        "enumNames": [titles[one] for one in decisions], "default": "run",
    }  # fmt: skip
    instead = {"type": "string", "title": "What to do instead", "description": "told to the model"}
    properties = {"decision": decision, "instead": instead}
    return msgspec.json.encode({"type": "object", "properties": properties, "required": ["decision"]})
