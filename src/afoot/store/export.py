"""`export_lines` writes the history of any journal as lines of JSON, one call after another (H6)."""

from collections.abc import AsyncIterator, Iterator
from math import inf, nextafter

from msgspec import json
from msgspec.structs import replace

from afoot.core.facts import Entry, Sample
from afoot.core.ports import CallQuery, CallRow, Journal
from afoot.errors import StoreError

EXPORT_PAGE_CALLS = 1000  # calls that are looked up at once
PIECE_BYTES = 256 * 1024  # a large call is sent in pieces: no more of it waits for a slow reader
MAX_NAMED = 5  # unreadable calls that the error names

_encode = json.Encoder().encode


async def export_lines(
    journal: Journal, call: str = "", query: CallQuery | None = None
) -> AsyncIterator[bytes]:
    """Yield the history as JSON lines: the facts of each call, then its readings; live calls last.

    With a `query`, only the ended calls that match. A piece may end within a line. Calls that are added
    meanwhile may be missing; each call that is there is whole. Raises StoreError; for calls that cannot be
    read only after all others were yielded.
    """
    unread, why = list[str](), ""
    async for name in _call_ids(journal, call, query):
        try:
            found = [*await journal.facts(name), *await journal.samples(name)]
        except StoreError as error:
            why = str(error)
            unread.append(name)
            continue
        for piece in _encode_pieces(found):
            yield piece
    if unread:
        names = ", ".join(unread[:MAX_NAMED]) + ", …" * (len(unread) > MAX_NAMED)
        raise StoreError(f"{why}; nothing is told of {len(unread)} calls, all of the others: {names}")


async def _call_ids(journal: Journal, call: str, query: CallQuery | None) -> AsyncIterator[str]:
    """The ids of the calls to export."""
    if call:
        yield call
        return
    living = dict.fromkeys(await journal.unfinished())
    wanted = replace(query or CallQuery(), limit=EXPORT_PAGE_CALLS, sort="-opened", skip=0)
    before = wanted.before
    while page := await journal.find(replace(wanted, before=before)):
        shown = _without_last_moment(page)
        for row in shown:
            if row.id not in living:
                yield row.id
        if len(page) < EXPORT_PAGE_CALLS:
            break
        before = nextafter(shown[-1].opened, -inf) if shown is page else nextafter(page[-1].opened, inf)
    if query is None:
        for one in living:
            yield one


def _without_last_moment(page: list[CallRow]) -> list[CallRow]:
    """The page without the calls of its last moment, if more of these may follow on the next page."""
    if len(page) < EXPORT_PAGE_CALLS:
        return page
    return [row for row in page if row.opened != page[-1].opened] or page


def _encode_pieces(found: list[Entry | Sample]) -> Iterator[bytes]:
    """Encode everything that is known of a call, one record a line, in pieces."""
    text = bytearray()
    for one in found:
        text += _encode(one) + b"\n"
        while len(text) >= PIECE_BYTES:
            yield bytes(text[:PIECE_BYTES])
            del text[:PIECE_BYTES]
    if text:
        yield bytes(text)
