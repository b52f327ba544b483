"""Facts, rows and batches for the tests of journals."""

from msgspec import Raw
from msgspec.structs import replace

from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    CancelRequested,
    Entry,
    Fact,
    Failure,
    Finished,
    Limits,
    Logged,
    Opened,
    Question,
    Reading,
    Released,
    Reported,
    Result,
    Started,
)
from afoot.core.ports import Batch, CallRow, Journal


def opened(at: float = 1.0, arguments: bytes = b"{}") -> Opened:
    """A call of a tool with nothing special."""
    return Opened(at, "export", "tools", "local", Raw(arguments))


EVERY_FACT: list[Fact] = [
    Opened(
        1.5, "export", "tools", "local", Raw(b'{"pages": 3}'), Limits(idle_s=None, ceiling_s=9.0), parent="p"
    ),
    Asked(2.0, Question("q1", "sure", "form", "sure?", Raw(b'{"type":"object"}'))),
    Answered(3.0, "q1", Answer("accept", Raw(b'{"ok":true}'), "operator")),
    Started(4.0, 1, "loop"),
    Logged(4.5, "käse \x00 \U0001f9c0", "warning", "tool"),
    Reported(5.0, 1, 1.0, 3.0, "page 1", Raw(b"[1]"), Raw(b'"part"'), Raw(b"null")),
    CancelRequested(6.0, "operator", "enough"),
    Finished(
        7.0,
        "cancelled",
        Result(Raw(b"[]"), Raw(b"{}"), is_error=True),
        Failure("stopped", "cancelled", last=Reading(5.0, 1.0, 3.0, "page 1"), retry_after_s=1.0),
    ),
    Reported(8.0, 1, late=True),
    Released(9.0, "grace"),
]


def entries(call: str, facts: list[Fact], first: int = 1) -> list[Entry]:
    """The facts in their places."""
    return [Entry(call, seq, fact) for seq, fact in enumerate(facts, first)]


def row(call: str, at: float = 1.0, tool: str = "export", **more: str) -> CallRow:
    """A line for the list."""
    return replace(CallRow(call, tool, "tools", "local", at), **more)


def batch(*of: Entry | CallRow) -> Batch:
    """One batch of entries and rows."""
    return Batch(
        entries=[one for one in of if isinstance(one, Entry)],
        rows={one.id: one for one in of if isinstance(one, CallRow)},
    )


async def write(journal: Journal, *of: Entry | CallRow) -> None:
    """Record one batch and wait until it is."""
    done = journal.write(batch(*of))
    if done is not None:
        await done
