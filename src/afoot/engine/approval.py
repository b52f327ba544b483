"""`ApprovalPolicy` decides who is asked before a tool runs, and which calls need no approval (A1 to A6).

It keeps the allowlist, and through `ApprovalHistory` what the operator last approved of each tool. The
functions below make the question that a reviewer sees, read the answer, and say to the model what a no means.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from secrets import token_hex
from typing import Annotated, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from afoot.core.call import APPROVAL, INSTEAD, Call
from afoot.core.facts import NOTHING, Answer, Question
from afoot.core.names import full_name, own_name
from afoot.core.ports import Tool
from afoot.errors import AfootError, ToolError, UnknownName

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

OPERATOR_PRESENT_S = 60.0  # an operator who was seen this recently counts as there
FASTEST_PERSON_S = 0.05  # no person answers a form sooner; `codex exec` declines each after 1 ms (A8)
# How the names of callers begin that an operator has given the right to call: their programs may say yes.
NAMED_CALLERS = ("operator", "token:", "oauth:")
INSTEAD_S = 120.0  # how long a person who has rejected a call may think about what to do instead
MAX_DURATION_S = 1e9
MAX_BOUND_ENTRIES = 1000  # entries that are bound to connections; the oldest makes room
MAX_TOOLS = 100  # whose last approval is kept; the one approved longest ago makes room
MAX_TEXT_CHARS = 16 * 1024  # of a definition, or of arguments, that are kept and compared
MAX_SHOWN_CHARS = 4000  # of arguments in the question itself
PREVIEW_CHARS = 200  # of the arguments that an entry is for

_INSTEAD_FIELD = {"type": "string", "title": "What to do instead", "description": "told to the model"}
UNANSWERABLE = "unanswerable"  # the code of a refusal, as nobody could be asked
BY_HOST = f"the client answered within {FASTEST_PERSON_S * 1000:.0f} ms, without asking a person"

T = TypeVar("T", bound=Struct)

log = logging.getLogger("afoot.engine")


class EntryStore(Protocol[T]):
    """A store that keeps entries after the end of the gateway. Both methods raise AfootError."""

    def read(self) -> list[T] | None:
        """The entries, if somebody has changed them since they were last read or written."""
        ...

    def write(self, things: list[T]) -> None: ...


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


class AllowlistEntry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Tools that need no asking any more, bound to the definitions that were approved (A4)."""

    id: str
    server: str
    definitions: dict[str, str]  # tool to digest, as they were
    at: float
    by: str
    scope: str = "tool"  # arguments, tool, server
    arguments: str = ""  # digest of the only arguments it holds for
    shown: str = ""  # how these begin
    caller: str = ""  # the only connection it holds for
    until: float | None = None
    source: str = ""  # the page or plugin they are of

    def covers(self, tool: Tool, arguments: str, caller: str, now: float) -> bool:
        """Whether this tool may run without asking; `arguments` is their digest."""
        return (
            self.server == tool.server
            and self.definitions.get(own_name(tool)) == tool.digest
            and self.arguments in ("", arguments)
            and self.caller in ("", caller)
            and not self.is_over(now)
        )

    def is_over(self, now: float) -> bool:
        """Whether its time has passed."""
        return self.until is not None and now >= self.until

    def replaces(self, other: "AllowlistEntry") -> bool:
        """Whether the other says nothing that this does not say for at least as long."""
        return (
            (self.server, self.definitions) == (other.server, other.definitions)
            and (self.arguments, self.caller) == (other.arguments, other.caller)
            and (self.until is None or (other.until is not None and other.until <= self.until))
        )


class LastApproval(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool as the operator last approved it; texts that were too long to store are empty."""

    server: str
    tool: str
    at: float
    digest: str  # of the definition
    definition: str = ""
    arguments: str = ""
    source: str = ""  # the page or plugin it is of


class TextChange(Struct, frozen=True):
    """One text before and after; both are empty where it is too long to compare."""

    before: str
    after: str


class ApprovalChanges(Struct, frozen=True):
    """The changes since the approval `at` that time; None where nothing has changed."""

    at: float
    definition: TextChange | None
    arguments: TextChange | None


class ApprovalPolicy:
    """The allowlist, who is asked, and what was approved before."""

    def __init__(
        self, store: EntryStore[AllowlistEntry] | None = None, past: EntryStore[LastApproval] | None = None
    ) -> None:
        self.entries: list[AllowlistEntry] = []
        self.past = ApprovalHistory(past)
        self.ask_by = ""  # caller, operator, both; empty: the caller if it can be asked
        self.waits = False  # for an operator, where nobody can be asked
        self.seen = 0.0  # when an operator was last at work here
        # Its address, for texts that say where a person can answer; "": not known, None: there is none.
        self.console: str | None = ""
        self._store = store

    def allows(self, tool: Tool, arguments: Raw, caller: str, now: float) -> bool:
        """Whether an entry of the allowlist covers this call."""
        try:
            self.refresh()
        except AfootError as error:
            log.error("%s; until then everything is asked", error)
            self.entries = [one for one in self.entries if one.caller]
        if not self.entries:
            return False
        digest = arguments_digest(arguments)
        return any(entry.covers(tool, digest, caller, now) for entry in self.entries)

    def whom_to_ask(self, tool: Tool, can_ask: bool | None, now: float) -> str:
        """Choose who is asked: caller, operator, or "" for both; raises ToolError if there is nobody (A1).

        `can_ask`: whether the caller can be asked; None: nobody knows.
        """
        if can_ask is None:  # nobody had the time to come back yet: it waits for the first who does (H4)
            return self.ask_by.removesuffix(BOTH)
        if can_ask and self.ask_by != OPERATOR:
            return "" if self.ask_by == BOTH else CALLER
        if self.ask_by == CALLER:
            why = "this client cannot be asked, and nobody else is"
            hint = f'set ask_by = "both", or {_auto_setting(tool)}'
            raise ToolError(_nobody(tool, why), "refused", code=UNANSWERABLE, hint=hint)
        why = "the operator is asked" if can_ask else "this client cannot be asked"
        return self._operator(tool, now, why)

    def whom_to_ask_next(self, tool: Tool, now: float, last: Answer | None = None) -> str:
        """Choose who is asked after the caller did not answer: the operator; raises ToolError.refused (A5).

        `last` is what the caller said in place of an answer.
        """
        is_by_host = last is not None and last.surface == HOST
        return self._operator(tool, now, BY_HOST if is_by_host else "it was not answered")

    def _operator(self, tool: Tool, now: float, why: str) -> str:
        if self.waits or now - self.seen <= OPERATOR_PRESENT_S:
            return OPERATOR
        why = f"{why}, and no operator was seen for {OPERATOR_PRESENT_S:.0f} s"
        text = ". ".join(part for part in (_nobody(tool, why), where_to_approve(self.console)) if part)
        hint = f'keep `afoot watch` open, or set unanswerable = "wait", or {_auto_setting(tool)}'
        raise ToolError(text, "refused", code=UNANSWERABLE, hint=hint)

    def reason_to_ask(self, tool: Tool, caller: str) -> str:
        """The reason why this tool needs an approval, for the reviewer."""
        name = own_name(tool)
        for entry in self.entries:
            is_meant = entry.server == tool.server and entry.caller in ("", caller)
            if is_meant and entry.definitions.get(name, tool.digest) != tool.digest:
                return "its definition has changed since it was allowed"
        if tool.destructive:
            return "it may destroy something, as it says itself"
        return "its page or plugin is a stranger" if tool.source else "the settings ask for it"

    def refresh(self) -> None:
        """Take in what somebody else has changed in the stored entries; raises AfootError."""
        found = None if self._store is None else self._store.read()
        if found is not None:
            self.entries = [*found, *(one for one in self.entries if one.caller)]

    def allow(self, entry: AllowlistEntry) -> AllowlistEntry:
        """Remember an entry, for good if it is bound to no connection.

        Raises AfootError if it cannot be stored; it holds all the same, as long as this gateway lives.
        """
        with suppress(AfootError):  # said when it is stored
            self.refresh()
        self.expire(entry.at)
        self.entries = [one for one in self.entries if not entry.replaces(one)]
        bound = [one for one in self.entries if one.caller]
        if entry.caller and len(bound) >= MAX_BOUND_ENTRIES:
            self.entries.remove(bound[0])
        self.entries.append(entry)
        if not entry.caller:
            self._save()
        return entry

    def revoke(self, entry_id: str) -> AllowlistEntry:
        """Forget an entry; raises UnknownName, AfootError."""
        self.refresh()
        for entry in self.entries:
            if entry.id == entry_id:
                self.entries.remove(entry)
                if not entry.caller:
                    self._save()
                return entry
        raise UnknownName("allowlist entry", entry_id, [entry.id for entry in self.entries])

    def expire(self, now: float) -> None:
        """Forget entries whose time has passed."""
        self.entries = [entry for entry in self.entries if not entry.is_over(now)]

    def _save(self) -> None:
        if self._store is not None:
            self._store.write([entry for entry in self.entries if not entry.caller])


class ApprovalHistory:
    """The last approval of each tool, so that the next reviewer sees the changes since then (A4)."""

    def __init__(self, store: EntryStore[LastApproval] | None = None) -> None:
        self._store = store
        self._known: list[LastApproval] = []

    def remember(self, tool: Tool, arguments: Raw, now: float) -> None:
        """Keep that the operator said yes to this; raises AfootError if it cannot be stored."""
        self._refresh()
        others = [one for one in self._known if not _is_same(one, tool)]
        made = LastApproval(
            tool.server,
            own_name(tool),
            now,
            tool.digest,
            _comparable(tool.definition),
            _comparable(arguments),
            tool.source,
        )
        self._known = [*others[-(MAX_TOOLS - 1) :], made]
        if self._store is not None:
            self._store.write(self._known)

    def changed(self, tool: Tool, arguments: Raw) -> ApprovalChanges | None:
        """The changes since the tool was last approved; None if it never was, or if that is unknown."""
        try:
            self._refresh()
        except AfootError:  # said when the next one is stored
            return None
        last = next((one for one in self._known if _is_same(one, tool)), None)
        if last is None:
            return None
        definition = None if last.digest == tool.digest else _change(last.definition, tool.definition)
        after = _comparable(arguments)
        is_same = bool(after) and last.arguments == after
        return ApprovalChanges(last.at, definition, None if is_same else _change(last.arguments, arguments))

    def _refresh(self) -> None:
        found = None if self._store is None else self._store.read()
        if found is not None:
            self._known = found


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


def allowlist_entry(
    decision: Decision,
    tools: Sequence[Tool],
    answer: Answer,
    caller: str,
    arguments: Raw,
    now: float,
    kept: Raw | None = None,
) -> AllowlistEntry:
    """The allowlist entry that a decision means; `now` is the time of the answer.

    `kept` are the arguments as they may be shown, where that is another thing (S4). Beyond its own
    connection only the operator's word counts (A5).
    """
    is_bound = answer.by != OPERATOR or decision.lasts == CONNECTION
    is_exact = decision.scope == "arguments"
    return AllowlistEntry(
        token_hex(4),
        tools[0].server,
        {own_name(tool): tool.digest for tool in tools},
        now,
        answer.who if ":" in answer.who else answer.by,  # a caller has a name, a browser but a number
        decision.scope,
        arguments_digest(arguments) if is_exact else "",
        display_arguments(arguments if kept is None else kept)[:PREVIEW_CHARS] if is_exact else "",
        caller if is_bound else "",
        None if decision.lasts_s is None else now + decision.lasts_s,
        tools[0].source,
    )


def answered_instead(call: Call) -> str:
    """The answer to `instead_question` in this call; "" where it was not asked, or nothing was said."""
    asked = next((one.id for one in call.questions.values() if one.key == INSTEAD), "")
    answered = call.answers.get(asked)
    if answered is None or answered.answer.action != "accept":
        return ""
    return str(msgspec.json.decode(answered.answer.content or b"{}").get("instead", ""))


def arguments_digest(arguments: Raw) -> str:
    """The digest that an approval of these arguments is bound to, whatever their order and spacing (A6)."""
    text = bytes(arguments or b"{}")
    try:
        canonical = json.dumps(json.loads(text, object_pairs_hook=_no_duplicates), sort_keys=True).encode()
    except (ValueError, RecursionError):  # of what can be read in two ways, only the very same is the same
        canonical = text
    return sha256(canonical).hexdigest()


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


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


def where_to_approve(console: str | None) -> str:
    """The place where a person can approve calls, for a model whose call was refused (A8, Q5).

    A model is not told which setting would let its call run without a person.
    """
    if console is None:
        return "This gateway has no console in which a person could approve it"
    place = f"in the console at {console}/ or with `afoot watch`" if console else "with `afoot watch`"
    return f"A person can approve calls {place}: ask for that, then call again"


def _nobody(tool: Tool, why: str) -> str:
    return f"{tool.name} was not run: it needs approval, and nobody can give it: {why}"


def _auto_setting(tool: Tool) -> str:
    """The setting that lets a tool run without asking. It is for the operator: no model reads it (A8)."""
    return f'approval = "auto" in [tools."{tool.address or full_name(tool)}"]'


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


def _is_same(one: LastApproval, tool: Tool) -> bool:
    return (one.server, one.tool, one.source) == (tool.server, own_name(tool), tool.source)


def _change(before: str, value: Raw) -> TextChange:
    after = _comparable(value)
    return TextChange(before, after) if before and after else TextChange("", "")


def _comparable(value: Raw) -> str:
    """The value as lines, which can be compared; nothing if they are too many."""
    text = msgspec.json.format(bytes(value or b"{}"), indent=2).decode(errors="replace")
    return text if len(text) <= MAX_TEXT_CHARS else ""
