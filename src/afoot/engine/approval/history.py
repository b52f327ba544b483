"""`ApprovalHistory` keeps the last approval of each tool, so that a reviewer sees what has changed (A4)."""

import msgspec
from msgspec import Raw, Struct

from afoot.core.names import own_name
from afoot.core.ports import Tool
from afoot.engine.approval.allowlist import EntryStore
from afoot.errors import AfootError

MAX_TOOLS = 100  # whose last approval is kept; the one approved longest ago makes room
MAX_TEXT_CHARS = 16 * 1024  # of a definition, or of arguments, that are kept and compared


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


def _is_same(one: LastApproval, tool: Tool) -> bool:
    return (one.server, one.tool, one.source) == (tool.server, own_name(tool), tool.source)


def _change(before: str, value: Raw) -> TextChange:
    after = _comparable(value)
    return TextChange(before, after) if before and after else TextChange("", "")


def _comparable(value: Raw) -> str:
    """The value as lines, which can be compared; nothing if they are too many."""
    text = msgspec.json.format(bytes(value or b"{}"), indent=2).decode(errors="replace")
    return text if len(text) <= MAX_TEXT_CHARS else ""
