"""Purging an SQLite history: which calls a rule names, and how they are deleted, a few at a time (H6)."""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import DecodeError

from afoot.core.facts import Opened
from afoot.core.ports import PurgeRule
from afoot.store import codec
from afoot.store.schema import PAGE_BYTES

# Calls that are deleted in one transaction. More would make writers wait too long; fewer would make the
# selection too expensive.
STEP_CALLS = 200
STEP_BYTES = 8 * 1024 * 1024  # bytes that are deleted in one transaction, unless a single call has more
MAX_CANDIDATES = 10_000  # calls that are examined for one step; if all of these are spared, none is deleted
VACUUM_PAGES = 1024  # pages given back to the file system after a step, besides those that it freed
MAX_KEEP = 2**62  # SQLite has no larger number

# Ordered by position, not by date: the clock may have been set back in between.
_CALLS_BY_POSITION = "SELECT call FROM facts ORDER BY pos"
_OLDER_THAN = "SELECT id FROM calls WHERE opened < ? AND finished < ? ORDER BY opened, id"
_COUNT_BEYOND = "SELECT count(*) FROM (SELECT 1 FROM calls LIMIT ? OFFSET ?)"
_FIRST = "SELECT pos, call, seq, body FROM facts WHERE call = ? ORDER BY seq LIMIT 1"
_HANDED_OVER = """SELECT 1 FROM facts
WHERE call = ? AND instr(body, CAST('"type":"handed_over"' AS BLOB)) LIMIT 1"""
_SIZE = "SELECT coalesce(sum(length(body)), 0) FROM facts WHERE call = ?"
_POSITION = """INSERT INTO meta VALUES ('position', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""


class PurgeableCall(NamedTuple):
    """A finished call that may be deleted; `claimed`: it was opened as a task, or with a key."""

    call: str
    opened: float
    finished: float
    claimed: bool
    size: int


def select_purgeable(db: sqlite3.Connection, rule: PurgeRule) -> list[PurgeableCall]:
    """The next calls to delete, oldest first; none if all that the rule names are deleted."""
    found = list[PurgeableCall]()
    size = 0
    most = STEP_BYTES
    if rule.most_bytes is not None:
        most = min(STEP_BYTES, used_bytes(db) - rule.most_bytes)
    for one in _candidates(db, rule) if most > 0 else ():
        if one.call in rule.spare or (one.finished >= rule.claimed and _is_claimed(db, one)):
            continue
        found.append(one)
        size += one.size
        if len(found) == STEP_CALLS or size >= most:
            break
    return found


def delete_calls(db: sqlite3.Connection, gone: Sequence[PurgeableCall], position: int) -> None:
    """Delete these calls completely or not at all; their positions are never used again."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for table in ("facts", "samples"):
            db.executemany(f"DELETE FROM {table} WHERE call = ?", [(one.call,) for one in gone])
        listed = [(one.opened, one.call) for one in gone]
        db.executemany("DELETE FROM calls WHERE opened = ? AND id = ?", listed)
        db.execute(_POSITION, (str(position),))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    pages = VACUUM_PAGES + 2 * sum(one.size for one in gone) // PAGE_BYTES
    db.executescript(f"PRAGMA incremental_vacuum({pages})")  # `execute` would free one page, and stop


def used_bytes(db: sqlite3.Connection) -> int:
    """The bytes that the history fills."""
    pages, free, size = (
        int(db.execute(f"PRAGMA {what}").fetchone()[0])
        for what in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _candidates(db: sqlite3.Connection, rule: PurgeRule) -> Iterator[PurgeableCall]:
    """The calls that a rule is about, including those that it spares."""
    if rule.calls:
        names, most = iter(rule.calls), len(rule.calls)
    elif rule.before is not None:
        old = db.execute(_OLDER_THAN, (rule.before, rule.before))
        names, most = (str(call) for (call,) in old), MAX_CANDIDATES
    elif rule.keep is not None:
        names, most = (
            _calls_by_position(db),
            db.execute(_COUNT_BEYOND, (MAX_CANDIDATES, min(rule.keep, MAX_KEEP))).fetchone()[0],
        )
    else:
        names, most = _calls_by_position(db), MAX_CANDIDATES if rule.most_bytes is not None else 0
    return islice((one for call in names if (one := _read_finished(db, call)) is not None), most)


def _is_claimed(db: sqlite3.Connection, one: PurgeableCall) -> bool:
    """Whether the caller of this call may come back: it asked for that, or its request ended earlier."""
    return one.claimed or db.execute(_HANDED_OVER, (one.call,)).fetchone() is not None


def _calls_by_position(db: sqlite3.Connection) -> Iterator[str]:
    seen = set[str]()
    for (call,) in db.execute(_CALLS_BY_POSITION):
        if call not in seen:
            seen.add(call)
            yield call


def _read_finished(db: sqlite3.Connection, call: str) -> PurgeableCall | None:
    """The call of this id, if it is finished and listed. Its first fact says when it was opened."""
    if db.execute("SELECT 1 FROM live WHERE call = ?", (call,)).fetchone():
        return None
    try:
        entries = codec.decode_facts(db.execute(_FIRST, (call,)))
    except DecodeError:  # damaged: the list says when it was opened
        where, is_claimed = "id = ?", False
        values: tuple[object, ...] = (call,)
    else:
        if not entries or not isinstance(first := entries[0][1].fact, Opened):
            return None
        where, values = "opened = ? AND id = ?", (first.at, call)
        is_claimed = first.task or bool(first.key)
    row = db.execute(f"SELECT opened, finished FROM calls WHERE {where}", values).fetchone()
    if row is None or row[1] is None:
        return None
    return PurgeableCall(call, row[0], row[1], is_claimed, db.execute(_SIZE, (call,)).fetchone()[0])
