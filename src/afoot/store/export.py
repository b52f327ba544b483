"""The history as lines of JSON, one call after another (H6)."""

from collections.abc import AsyncIterator, Iterator
from math import inf, nextafter

from msgspec import json

from afoot.core.facts import Entry, Sample
from afoot.core.ports import Journal, Query, Row
from afoot.errors import StoreError

PAGE = 1000  # calls that are looked up at once
PIECE = 256 * 1024  # bytes; more of a large call is not encoded at once, nor waits for a slow reader
NAMED = 5  # calls of those that cannot be read

_encode = json.Encoder().encode


async def lines(journal: Journal, call: str = "") -> AsyncIterator[bytes]:
    """The facts of each call, then its readings; calls that live last. A piece may end within a line.

    What is added meanwhile may be missing; what is there is whole. Raises StoreError: for calls that cannot
    be read only when all others are told.
    """
    unread, why = list[str](), ""
    async for name in _named(journal, call):
        try:
            found = [*await journal.facts(name), *await journal.samples(name)]
        except StoreError as error:
            why = str(error)
            unread.append(name)
            continue
        for piece in _pieces(found):
            yield piece
    if unread:
        names = ", ".join(unread[:NAMED]) + ", …" * (len(unread) > NAMED)
        raise StoreError(f"{why}; nothing is told of {len(unread)} calls, all of the others: {names}")


async def _named(journal: Journal, call: str) -> AsyncIterator[str]:
    """The ids of the calls that are wanted."""
    if call:
        yield call
        return
    living = dict.fromkeys(await journal.unfinished())
    before: float | None = None
    while page := await journal.find(Query(before=before, limit=PAGE)):
        shown = _whole(page)
        for row in shown:
            if row.id not in living:
                yield row.id
        if len(page) < PAGE:
            break
        before = nextafter(shown[-1].opened, -inf) if shown is page else nextafter(page[-1].opened, inf)
    for one in living:
        yield one


def _whole(page: list[Row]) -> list[Row]:
    """The page without the calls of its last moment, if more of these may follow on the next."""
    if len(page) < PAGE:
        return page
    return [row for row in page if row.opened != page[-1].opened] or page


def _pieces(found: list[Entry | Sample]) -> Iterator[bytes]:
    """Everything that is known of a call, a line each, in pieces."""
    text = bytearray()
    for one in found:
        text += _encode(one) + b"\n"
        while len(text) >= PIECE:
            yield bytes(text[:PIECE])
            del text[:PIECE]
    if text:
        yield bytes(text)
