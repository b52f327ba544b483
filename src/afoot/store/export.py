"""The history as lines of JSON, one call after another (H6)."""

from collections.abc import AsyncIterator
from math import inf, nextafter

from msgspec import json

from afoot.core.ports import Journal, Query, Row

PAGE = 1000  # calls that are looked up at once

_encode = json.Encoder().encode


async def lines(journal: Journal, call: str = "") -> AsyncIterator[bytes]:
    """The facts of each call, then its readings; calls that live last. Raises StoreError.

    What is added meanwhile may be missing; what is there is whole.
    """
    if call:
        yield await _told(journal, call)
        return
    living = await journal.unfinished()
    before: float | None = None
    while page := await journal.find(Query(before=before, limit=PAGE)):
        shown = _whole(page)
        for row in shown:
            if row.id not in living:
                yield await _told(journal, row.id)
        if len(page) < PAGE:
            break
        before = nextafter(shown[-1].opened, -inf) if shown is page else nextafter(page[-1].opened, inf)
    for one in living:
        yield await _told(journal, one)


def _whole(page: list[Row]) -> list[Row]:
    """The page without the calls of its last moment, if more of these may follow on the next."""
    if len(page) < PAGE:
        return page
    return [row for row in page if row.opened != page[-1].opened] or page


async def _told(journal: Journal, call: str) -> bytes:
    """Everything that is known of a call, a line each."""
    found = [*await journal.facts(call), *await journal.samples(call)]
    return b"".join([_encode(one) + b"\n" for one in found])
