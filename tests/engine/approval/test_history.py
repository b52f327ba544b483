"""The last yes to each tool: what is kept of it, and what counts as changed."""

from msgspec import Raw
from msgspec.structs import replace

from afoot.core.ports import Tool
from afoot.engine.approval.history import MAX_TEXT_CHARS, MAX_TOOLS, ApprovalHistory, LastApproval
from afoot.errors import AfootError

WIPE = Tool("wipe", "local", Raw(b'{"name":"wipe","description":"Wipes."}'), digest="one")


class Drawer:
    """A shelf that may be broken."""

    def __init__(self) -> None:
        self.things: list[LastApproval] = []
        self.is_broken = False

    def read(self) -> list[LastApproval] | None:
        """What it holds."""
        if self.is_broken:
            raise AfootError("it is stuck")
        return list(self.things)

    def write(self, things: list[LastApproval]) -> None:
        """Hold this."""
        self.things = things


def test_a_tool_never_approved_has_no_past() -> None:
    """A4: nothing is said to be the same."""
    assert ApprovalHistory().changed(WIPE, Raw(b"{}")) is None


def test_another_definition_is_told_before_and_after() -> None:
    """A4: the words that the last reviewer saw, and those of now."""
    past = ApprovalHistory()
    past.remember(WIPE, Raw(b'{"a":1}'), 5.0)
    other = replace(WIPE, definition=Raw(b'{"name":"wipe","description":"Wipes all."}'), digest="two")
    found = past.changed(other, Raw(b'{"a": 1}'))
    assert found is not None and found.at == 5.0 and found.arguments is None
    assert found.definition is not None
    assert "Wipes." in found.definition.before and "Wipes all." in found.definition.after


def test_a_tool_of_the_same_name_elsewhere_is_another() -> None:
    """A4, B2: a page's tool has not the past of a server's, nor of another page's."""
    past = ApprovalHistory()
    past.remember(WIPE, Raw(b"{}"), 5.0)
    assert past.changed(replace(WIPE, server="other"), Raw(b"{}")) is None
    assert past.changed(replace(WIPE, source="page:https://a.test"), Raw(b"{}")) is None


def test_only_so_many_and_so_much_is_kept() -> None:
    """G3: the oldest makes room; what is long is not kept, and counts as changed."""
    shelf = Drawer()
    past = ApprovalHistory(shelf)
    for number in range(MAX_TOOLS + 5):
        past.remember(replace(WIPE, name=f"t{number}"), Raw(b"{}"), float(number))
    assert len(shelf.things) == MAX_TOOLS and shelf.things[0].tool == "t5"
    long = Raw(b'{"a":"' + b"x" * MAX_TEXT_CHARS + b'"}')
    past.remember(WIPE, long, 1.0)
    found = past.changed(WIPE, long)
    assert shelf.things[-1].arguments == "" and found is not None
    assert found.arguments is not None and (found.arguments.before, found.arguments.after) == ("", "")


def test_a_shelf_that_cannot_be_read_hides_no_question() -> None:
    """A4: then nothing is told to be the same."""
    shelf = Drawer()
    past = ApprovalHistory(shelf)
    past.remember(WIPE, Raw(b"{}"), 1.0)
    shelf.is_broken = True
    assert past.changed(WIPE, Raw(b"{}")) is None
