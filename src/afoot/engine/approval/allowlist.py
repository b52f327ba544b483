"""`AllowlistEntry` names tools that may run without asking, as they were defined when that was decided (A4).

`allowlist_entry` makes the entry that a decision means.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from secrets import token_hex
from typing import Protocol, TypeVar

from msgspec import Raw, Struct

from afoot.core.facts import Answer
from afoot.core.names import own_name
from afoot.core.ports import Tool
from afoot.engine.approval.question import CONNECTION, OPERATOR, Decision, display_arguments

PREVIEW_CHARS = 200  # of the arguments that an entry is for

T = TypeVar("T", bound=Struct)


class EntryStore(Protocol[T]):
    """A store that keeps entries after the end of the gateway. Both methods raise AfootError."""

    def read(self) -> list[T] | None:
        """The entries, if somebody has changed them since they were last read or written."""
        ...

    def write(self, things: list[T]) -> None: ...


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
