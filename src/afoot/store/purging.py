"""Calls that go: which ones a rule means, and how they leave an SQLite file, a few at a time (H6)."""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import DecodeError

from afoot.core.facts import Opened
from afoot.core.ports import Purge
from afoot.store import codec
from afoot.store.schema import PAGE

STEP = 200  # calls that go in one transaction: more, and who writes waits long; less, and looking is dear
BYTES = 8 * 1024 * 1024  # that go in one, unless one call has more
LOOKED = 10_000  # calls that are looked at for one; if all of these are spared, none goes
PAGES = 1024  # given back to the file system after each, besides those that it freed
MOST = 2**62  # calls; SQLite has no larger number

# By their place: dates are no order, since a clock may have been set back in between.
_IN_ORDER = "SELECT call FROM facts ORDER BY pos"
_OLD = "SELECT id FROM calls WHERE opened < ? AND finished < ? ORDER BY opened, id"
_OVER = "SELECT count(*) FROM (SELECT 1 FROM calls LIMIT ? OFFSET ?)"
_FIRST = "SELECT pos, call, seq, body FROM facts WHERE call = ? ORDER BY seq LIMIT 1"
_SIZE = "SELECT coalesce(sum(length(body)), 0) FROM facts WHERE call = ?"
_POSITION = """INSERT INTO meta VALUES ('position', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""


class Gone(NamedTuple):
    """A call that is over; `claimed`: it is a task, or has a key."""

    call: str
    opened: float
    finished: float
    claimed: bool
    size: int


def meant(db: sqlite3.Connection, rule: Purge) -> list[Gone]:
    """The next calls that are to go, oldest first; none: all that should have gone are gone."""
    found, size, most = list[Gone](), 0, BYTES
    if rule.most_bytes is not None:
        most = min(BYTES, used(db) - rule.most_bytes)
    for one in _candidates(db, rule) if most > 0 else ():
        if one.call in rule.spare or (one.claimed and one.finished >= rule.claimed):
            continue
        found.append(one)
        size += one.size
        if len(found) == STEP or size >= most:
            break
    return found


def remove(db: sqlite3.Connection, gone: Sequence[Gone], position: int) -> None:
    """Take these calls out, whole or not at all; no place in the series is given out a second time."""
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
    pages = PAGES + 2 * sum(one.size for one in gone) // PAGE
    db.executescript(f"PRAGMA incremental_vacuum({pages})")  # `execute` would free one page, and stop


def used(db: sqlite3.Connection) -> int:
    """The bytes that the history fills."""
    pages, free, size = (
        int(db.execute(f"PRAGMA {what}").fetchone()[0])
        for what in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _candidates(db: sqlite3.Connection, rule: Purge) -> Iterator[Gone]:
    """The calls that a rule is about, spared ones among them."""
    if rule.calls:
        names, most = iter(rule.calls), len(rule.calls)
    elif rule.before is not None:
        old = db.execute(_OLD, (rule.before, rule.before))
        names, most = (str(call) for (call,) in old), LOOKED
    elif rule.keep is not None:
        names, most = _in_order(db), db.execute(_OVER, (LOOKED, min(rule.keep, MOST))).fetchone()[0]
    else:
        names, most = _in_order(db), LOOKED if rule.most_bytes is not None else 0
    return islice((one for call in names if (one := _over(db, call)) is not None), most)


def _in_order(db: sqlite3.Connection) -> Iterator[str]:
    seen = set[str]()
    for (call,) in db.execute(_IN_ORDER):
        if call not in seen:
            seen.add(call)
            yield call


def _over(db: sqlite3.Connection, call: str) -> Gone | None:
    """A call of this id, if it is over and in the list; its first fact says where it stands there."""
    if db.execute("SELECT 1 FROM live WHERE call = ?", (call,)).fetchone():
        return None
    try:
        entries = codec.entries(db.execute(_FIRST, (call,)))
    except DecodeError:  # damaged; the list is read for it
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
    return Gone(call, row[0], row[1], is_claimed, db.execute(_SIZE, (call,)).fetchone()[0])
