"""Approval: who is asked before a tool runs, and what needs no asking any more."""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from secrets import token_hex

from msgspec import Raw, Struct

from afoot.core.facts import Answer, Question
from afoot.core.ports import Tool
from afoot.engine import review
from afoot.engine.approved import Approved, Past, Shelf
from afoot.engine.review import CONNECTION, Decision, named, shown
from afoot.errors import AfootError, ToolError, UnknownName

SEEN_S = 60.0  # an operator who was seen this recently counts as there
CALLER = "caller"
OPERATOR = "operator"
BOTH = "both"
MOST = 1000  # entries that are bound to connections; the oldest makes room
PREVIEW = 200  # characters of the arguments that an entry is for

log = logging.getLogger("afoot.engine")


class Allowed(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What needs no asking any more, bound to the definitions that were approved (A4)."""

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
        """Whether this tool may run without asking."""
        return (
            self.server == tool.server
            and self.definitions.get(tool.inner or tool.name) == tool.digest
            and self.arguments in ("", arguments)
            and self.caller in ("", caller)
            and not self.is_over(now)
        )

    def is_over(self, now: float) -> bool:
        """Whether its time has passed."""
        return self.until is not None and now >= self.until

    def replaces(self, other: "Allowed") -> bool:
        """Whether the other says nothing that this does not say for at least as long."""
        return (
            (self.server, self.definitions) == (other.server, other.definitions)
            and (self.arguments, self.caller) == (other.arguments, other.caller)
            and (self.until is None or (other.until is not None and other.until <= self.until))
        )


class Policy:
    """The allowlist, who is asked, and what was said yes to before."""

    def __init__(
        self,
        shelf: Shelf[Allowed] | None = None,
        past: Shelf[Approved] | None = None,
        *,
        ask_by: str = "",
        unanswerable: str = "refuse",
    ) -> None:
        self.entries: list[Allowed] = []
        self._shelf = shelf
        self.past = Past(past)
        self.ask_by = ask_by  # caller, operator, both; empty: the caller if it can be asked
        self.waits = unanswerable == "wait"
        self.seen = 0.0  # when an operator was last at work here

    def allows(self, tool: Tool, arguments: Raw, caller: str, now: float) -> bool:
        """Whether an entry of the allowlist covers this call."""
        try:
            self.refresh()
        except AfootError as error:
            log.error("%s; until then everything is asked", error)
            self.entries = [one for one in self.entries if one.caller]
        if not self.entries:
            return False
        digest = digest_of(arguments)
        return any(entry.covers(tool, digest, caller, now) for entry in self.entries)

    def asks(self, tool: Tool, can_ask: bool | None, now: float) -> str:
        """Whom to ask: caller, operator, or both as ""; raises ToolError.refused if nobody is there (A1)."""
        if can_ask is None:  # nobody had the time to come back yet: it waits for whoever does (H4)
            return self.ask_by.removesuffix(BOTH)
        if can_ask and self.ask_by != OPERATOR:
            return "" if self.ask_by == BOTH else CALLER
        if self.ask_by == CALLER:
            raise _unanswerable(tool, 'this client cannot be asked, and ask_by is "caller"')
        return self._operator(
            tool, now, "the operator is asked" if can_ask else "this client cannot be asked"
        )

    def passes_on(self, tool: Tool, now: float) -> str:
        """Whom to ask now that the caller did not answer: the operator; raises ToolError.refused (A5)."""
        return self._operator(tool, now, "it was not answered")

    def _operator(self, tool: Tool, now: float, why: str) -> str:
        if self.waits or now - self.seen <= SEEN_S:
            return OPERATOR
        raise _unanswerable(tool, f"{why}, and no operator was seen for {SEEN_S:.0f} s")

    def question(self, tool: Tool, call: tuple[str, Raw], to: str) -> Question:
        """The question before a start; `call` is its caller and its arguments."""
        caller, arguments = call
        return review.question(tool, arguments, to, caller, self._why(tool, caller))

    def _why(self, tool: Tool, caller: str) -> str:
        name = tool.inner or tool.name
        for entry in self.entries:
            is_meant = entry.server == tool.server and entry.caller in ("", caller)
            if is_meant and entry.definitions.get(name, tool.digest) != tool.digest:
                return "its definition has changed since it was allowed"
        if tool.destructive:
            return "it may destroy something, as it says itself"
        return "its page or plugin is a stranger" if tool.source else "the settings ask for it"

    def refresh(self) -> None:
        """Take in what somebody else has changed in the stored entries; raises AfootError."""
        found = None if self._shelf is None else self._shelf.read()
        if found is not None:
            self.entries = [*found, *(one for one in self.entries if one.caller)]

    def allow(self, entry: Allowed) -> Allowed:
        """Remember an entry, for good if it is bound to no connection.

        Raises AfootError if it cannot be stored; it holds all the same, as long as this gateway lives.
        """
        with suppress(AfootError):  # said when it is stored
            self.refresh()
        self.expire(entry.at)
        self.entries = [one for one in self.entries if not entry.replaces(one)]
        bound = [one for one in self.entries if one.caller]
        if entry.caller and len(bound) >= MOST:
            self.entries.remove(bound[0])
        self.entries.append(entry)
        if not entry.caller:
            self._save()
        return entry

    def revoke(self, entry_id: str) -> Allowed:
        """Forget an entry; raises UnknownName, AfootError."""
        self.refresh()
        for entry in self.entries:
            if entry.id == entry_id:
                self.entries.remove(entry)
                if not entry.caller:
                    self._save()
                return entry
        raise UnknownName("allowlist entry", entry_id, [entry.id for entry in self.entries])

    def _save(self) -> None:
        if self._shelf is not None:
            self._shelf.write([entry for entry in self.entries if not entry.caller])

    def expire(self, now: float) -> None:
        """Forget what is over."""
        self.entries = [entry for entry in self.entries if not entry.is_over(now)]


def entry(
    said: Decision,
    tools: Sequence[Tool],
    answer: Answer,
    call: tuple[str, Raw, float],
    kept: Raw | None = None,
) -> Allowed:
    """The allowlist entry that a decision means; `call`: its caller, its arguments, the time of the answer.

    `kept` are the arguments as they may be shown, where that is another thing (S4). Beyond its own
    connection only the operator's word counts (A5).
    """
    caller, arguments, now = call
    is_bound = answer.by != OPERATOR or said.lasts == CONNECTION
    is_exact = said.scope == "arguments"
    return Allowed(
        token_hex(4),
        tools[0].server,
        {tool.inner or tool.name: tool.digest for tool in tools},
        now,
        answer.who if ":" in answer.who else answer.by,  # a caller has a name, a browser but a number
        said.scope,
        digest_of(arguments) if is_exact else "",
        shown(arguments if kept is None else kept)[:PREVIEW] if is_exact else "",
        caller if is_bound else "",
        None if said.lasts_s is None else now + said.lasts_s,
        tools[0].source,
    )


def digest_of(arguments: Raw) -> str:
    """What an approval is bound to: these arguments, whatever their order and spacing (A6)."""
    text = bytes(arguments or b"{}")
    try:
        canonical = json.dumps(json.loads(text, object_pairs_hook=_once), sort_keys=True).encode()
    except (ValueError, RecursionError):  # of what can be read in two ways, only the very same is the same
        canonical = text
    return sha256(canonical).hexdigest()


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _unanswerable(tool: Tool, why: str) -> ToolError:
    """The refusal of a call that needs a yes which nobody can give; it names the keys to set."""
    return ToolError.refused(
        f"{tool.name} needs approval, and nobody can give it: {why}. Keep `afoot watch` open, or set "
        f'approval = "auto" in [tools."{named(tool)}"], or unanswerable = "wait"',
        code="unanswerable",
    )
