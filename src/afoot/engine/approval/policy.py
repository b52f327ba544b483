"""`ApprovalPolicy` decides who is asked before a tool runs, and which calls need no approval (A1 to A6).

It keeps the allowlist, and through `ApprovalHistory` what the operator last approved of each tool.
"""

import logging
from contextlib import suppress

from msgspec import Raw

from afoot.core.facts import Answer
from afoot.core.names import full_name, own_name
from afoot.core.ports import Tool
from afoot.engine.approval.allowlist import AllowlistEntry, EntryStore, arguments_digest
from afoot.engine.approval.history import ApprovalHistory, LastApproval
from afoot.engine.approval.question import BOTH, CALLER, FASTEST_PERSON_S, HOST, OPERATOR
from afoot.errors import AfootError, ToolError, UnknownName

OPERATOR_PRESENT_S = 60.0  # an operator who was seen this recently counts as there
MAX_BOUND_ENTRIES = 1000  # entries that are bound to connections; the oldest makes room
UNANSWERABLE = "unanswerable"  # the code of a refusal, as nobody could be asked
BY_HOST = f"the client answered within {FASTEST_PERSON_S * 1000:.0f} ms, without asking a person"

log = logging.getLogger("afoot.engine")


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
