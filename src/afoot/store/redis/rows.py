"""The list of calls in Redis: `find` and `outlines` search it, `columns` are what a script writes of a row.

Redis has no query language. Calls are read page by page in the order of their opening, and compared here.
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

from msgspec import DecodeError, json

from afoot.core.facts import Answered, Asked, Fact, Opened, Started
from afoot.core.ports import CallOutline, CallQuery, CallRow
from afoot.store.conditions import (
    APPROVED_BY_PEOPLE,
    ASKED_KINDS,
    MAX_ROWS,
    contains_text,
    has_stood_still,
    in_order,
    row_fits,
)
from afoot.store.search import MAX_SEARCHED_ANSWERS

PAGE: Final = 500  # calls that are read at once

Command = Callable[..., Awaitable[Any]]

_row_decoder = json.Decoder(CallRow)
_facts_decoder: json.Decoder[list[Fact]] = json.Decoder(list[Fact])


def encode_row(row: CallRow) -> bytes:
    """A row as it is kept."""
    return json.encode(row)


def columns(row: CallRow) -> tuple[str, str, str, str]:
    """The columns of a row that a script needs: time of opening, digest of its key, parent, outcome."""
    digest = key_digest(row.caller, row.key) if row.key else ""
    return repr(row.opened), digest, row.parent, row.outcome or ""


def key_digest(caller: str, key: str) -> str:
    """The name of a caller's idempotency key: both may have any characters and any length."""
    return hashlib.sha256(json.encode((caller, key))).hexdigest()


async def find(command: Command, prefix: str, query: CallQuery) -> list[CallRow]:
    """The calls that match, newest first or in another order, at most 1,000; raises StoreError."""
    limit = max(0, min(query.limit, MAX_ROWS))
    skip = 0 if query.after is not None else max(0, query.skip)
    is_by_time = query.ids is None and (query.after is not None or query.sort in ("-opened", "opened"))
    found = list[CallRow]()
    if limit:
        async for row in _matching(command, prefix, query):
            found.append(row)
            if is_by_time and len(found) == skip + limit:
                break
    if query.after is not None:
        return in_order(found, query.sort)
    return in_order(found, query.sort)[skip:][:limit]


async def outlines(command: Command, prefix: str, query: CallQuery) -> list[CallOutline]:
    """All calls that match, newest first, in short; raises StoreError."""
    rows = [row async for row in _matching(command, prefix, query)]
    return [
        CallOutline(
            row.id, row.tool, row.server, row.caller, row.opened, row.started, row.finished, row.outcome,
            row.approved, row.parent, row.ran_s, await _is_asked(command, prefix, row),
        )
        for row in in_order(rows, "-opened")
    ]  # fmt: skip


async def descendants(command: Command, prefix: str, calls: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count the calls at any depth below each of these, and those of them that did not end well."""
    found: dict[str, tuple[int, int]] = {}
    for call in calls:
        total, failed, above = 0, 0, [call]
        while above:
            below = await read_hash(command, f"{prefix}below:{above.pop()}")
            total += len(below)
            failed += sum(outcome != b"ok" for outcome in below.values())
            above += [one.decode() for one in below]
        if total:
            found[call] = total, failed
    return found


async def retried(command: Command, prefix: str, calls: Sequence[str]) -> list[str]:
    """The calls of these whose tool was started more than once."""
    found = list[str]()
    for call in calls:
        bodies = [body for body in await _bodies(command, prefix, call) if b'"attempt":' in body]
        facts = [fact for body in bodies for fact in _decode(body)]
        if any(isinstance(fact, Started) and fact.attempt > 1 for fact in facts):
            found.append(call)
    return found


async def read_rows(command: Command, prefix: str, ids: list[bytes]) -> list[CallRow]:
    """The rows of these calls, in their order; one that is gone or damaged is left out."""
    if not ids:
        return []
    found = list[CallRow]()
    for body in await command("HMGET", f"{prefix}row", *ids):
        try:
            found.append(_row_decoder.decode(body or b""))
        except DecodeError:
            continue
    return found


async def read_hash(command: Command, key: str) -> dict[bytes, bytes]:
    """The fields of a hash, whatever shape the reply has."""
    reply = await command("HGETALL", key)
    return dict(reply if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True))


async def _matching(command: Command, prefix: str, query: CallQuery) -> AsyncIterator[CallRow]:
    """The calls that match, by time: oldest first if that is asked for, else newest first."""
    searched = offset = 0
    while True:
        ids = await _page(command, prefix, query, offset)
        offset += PAGE
        for row in await read_rows(command, prefix, ids):
            if not row_fits(row, query):
                continue
            searched += 1
            if query.is_answered and searched > MAX_SEARCHED_ANSWERS:
                return
            if await _facts_fit(command, prefix, row, query):
                yield row
        if len(ids) < PAGE:
            return


async def _page(command: Command, prefix: str, query: CallQuery, offset: int) -> list[bytes]:
    """The ids of one page of calls: from the newest on, or from the oldest if that is what is wanted."""
    is_upward = query.after is not None or query.sort == "opened"
    if query.parent:
        below: list[bytes] = await command("HKEYS", f"{prefix}below:{query.parent}")
        rows = in_order(await read_rows(command, prefix, below), "opened" if is_upward else "-opened")
        return [row.id.encode() for row in rows][offset : offset + PAGE]
    if query.ids is not None:
        return [one.encode() for one in sorted(query.ids)][offset : offset + PAGE]
    low = "-inf" if query.since is None else repr(query.since)
    if query.after is not None and (query.since is None or query.after >= query.since):
        low = f"({query.after!r}"
    high = "+inf" if query.before is None else f"({query.before!r}"
    bounds = (low, high, "BYSCORE") if is_upward else (high, low, "BYSCORE", "REV")
    page: list[bytes] = await command("ZRANGE", f"{prefix}rows", *bounds, "LIMIT", offset, PAGE)
    return page


async def _facts_fit(command: Command, prefix: str, row: CallRow, query: CallQuery) -> bool:
    """Whether the facts of a call fit, as far as a query asks for them."""
    if query.is_asked and not await _is_asked(command, prefix, row):
        return False
    if query.is_answered:
        bodies = await _bodies(command, prefix, row.id)
        if not any(type(fact) is Answered for body in bodies for fact in _decode(body)):
            return False
    if not query.text or contains_text(row, None, query.text):
        return True
    first = [fact for body in await _bodies(command, prefix, row.id, "COUNT", 1) for fact in _decode(body)]
    arguments = first[0].arguments if first and isinstance(first[0], Opened) else None
    return contains_text(row, arguments, query.text)


async def _is_asked(command: Command, prefix: str, row: CallRow) -> bool:
    """Whether a person was asked, for an approval or with a form or a link."""
    if row.approved in APPROVED_BY_PEOPLE:
        return True
    if not has_stood_still(row):
        return False
    facts = [fact for body in await _bodies(command, prefix, row.id) for fact in _decode(body)]
    return any(isinstance(fact, Asked) and fact.question.kind in ASKED_KINDS for fact in facts)


async def _bodies(command: Command, prefix: str, call: str, *options: object) -> list[bytes]:
    found = await command("XRANGE", f"{prefix}facts:{call}", "-", "+", *options)
    return [fields[1] if not isinstance(fields, dict) else fields[b"b"] for _, fields in found]


def _decode(body: bytes) -> list[Fact]:
    try:
        return _facts_decoder.decode(body)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return []
