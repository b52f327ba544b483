"""What the operator last approved of each tool, so that the next reviewer sees what changed since (A4)."""

from typing import Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from afoot.core.ports import Tool
from afoot.errors import AfootError

MOST = 100  # tools; the one approved longest ago makes room
LONGEST = 16 * 1024  # characters of a definition, or of arguments, that are kept and compared
T = TypeVar("T", bound=Struct)


class Shelf(Protocol[T]):
    """Where entries outlive the gateway. Both raise AfootError."""

    def read(self) -> list[T] | None:
        """The entries, if somebody has changed them since they were last read or written."""
        ...

    def write(self, things: list[T]) -> None: ...


class Approved(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool as it was when the operator said yes to it; what was too long to keep is empty."""

    server: str
    tool: str
    at: float
    digest: str  # of the definition
    definition: str = ""
    arguments: str = ""
    source: str = ""  # the page or plugin it is of


class Change(Struct, frozen=True):
    """One text before and after; both are empty where it is too long to compare."""

    before: str
    after: str


class Changed(Struct, frozen=True):
    """What is other than `at` that time; nothing where it is the same."""

    at: float
    definition: Change | None
    arguments: Change | None


class Past:
    """The last yes to each tool."""

    def __init__(self, shelf: Shelf[Approved] | None = None) -> None:
        self._shelf = shelf
        self._known: list[Approved] = []

    def remember(self, tool: Tool, arguments: Raw, now: float) -> None:
        """The operator said yes to this; raises AfootError if it cannot be stored."""
        self._refresh()
        others = [one for one in self._known if not _is_same(one, tool)]
        name = tool.inner or tool.name
        made = Approved(
            tool.server, name, now, tool.digest, _kept(tool.definition), _kept(arguments), tool.source
        )
        self._known = [*others[-(MOST - 1) :], made]
        if self._shelf is not None:
            self._shelf.write(self._known)

    def changed(self, tool: Tool, arguments: Raw) -> Changed | None:
        """What is other than when it was last approved; None if that never was, or cannot be told."""
        try:
            self._refresh()
        except AfootError:  # said when the next one is stored
            return None
        last = next((one for one in self._known if _is_same(one, tool)), None)
        if last is None:
            return None
        definition = None if last.digest == tool.digest else _change(last.definition, tool.definition)
        after = _kept(arguments)
        same = bool(after) and last.arguments == after
        return Changed(last.at, definition, None if same else _change(last.arguments, arguments))

    def _refresh(self) -> None:
        found = None if self._shelf is None else self._shelf.read()
        if found is not None:
            self._known = found


def _is_same(one: Approved, tool: Tool) -> bool:
    return (one.server, one.tool, one.source) == (tool.server, tool.inner or tool.name, tool.source)


def _change(before: str, value: Raw) -> Change:
    after = _kept(value)
    return Change(before, after) if before and after else Change("", "")


def _kept(value: Raw) -> str:
    """The value as lines, which can be compared; nothing if they are too many."""
    text = msgspec.json.format(bytes(value or b"{}"), indent=2).decode(errors="replace")
    return text if len(text) <= LONGEST else ""
