"""Calls that go: which ones a rule means, and how they leave an SQLite file, a few at a time (H6)."""

import sqlite3
from collections.abc import Sequence

from afoot.core.facts import Opened
from afoot.core.ports import Purge
from afoot.store import codec

STEP = 50  # calls that go in one transaction, so that nobody who writes waits long
PAGES = 4096  # given back to the file system after each

Gone = tuple[str, float]  # a call, and when it was opened

_OLDEST = "SELECT id, opened FROM calls WHERE finished IS NOT NULL{} ORDER BY opened, id LIMIT ?"
_FIRST = "SELECT pos, call, seq, body FROM facts WHERE call = ? ORDER BY seq LIMIT 1"
_POSITION = """INSERT INTO meta VALUES ('position', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""


def meant(db: sqlite3.Connection, rule: Purge) -> list[Gone]:
    """The next calls that are to go, oldest first; none: all that should have gone are gone."""
    if rule.calls:
        found = [gone for call in rule.calls if (gone := _named(db, call)) is not None]
    elif rule.before is not None:
        found = _oldest(db, rule, " AND opened < ? AND finished < ?", rule.before, rule.before)
    elif rule.keep is not None:
        newest = "SELECT opened, id FROM calls ORDER BY opened DESC, id DESC LIMIT 1 OFFSET ?"
        first = db.execute(newest, (rule.keep,)).fetchone()
        found = _oldest(db, rule, " AND (opened, id) <= (?, ?)", *first) if first else []
    elif rule.most_bytes is not None and used(db) > rule.most_bytes:
        found = _oldest(db, rule, "")
    else:
        found = list[Gone]()
    return [gone for gone in found if gone[0] not in rule.spare][:STEP]


def remove(db: sqlite3.Connection, gone: Sequence[Gone], position: int) -> None:
    """Take these calls out, whole or not at all; no place in the series is given out a second time."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for table in ("facts", "samples"):
            db.executemany(f"DELETE FROM {table} WHERE call = ?", [(call,) for call, _ in gone])
        db.executemany("DELETE FROM calls WHERE opened = ? AND id = ?", [(at, call) for call, at in gone])
        db.execute(_POSITION, (str(position),))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.executescript(f"PRAGMA incremental_vacuum({PAGES})")  # `execute` would free one page, and stop


def used(db: sqlite3.Connection) -> int:
    """The bytes that the history fills."""
    pages, free, size = (
        int(db.execute(f"PRAGMA {what}").fetchone()[0])
        for what in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _oldest(db: sqlite3.Connection, rule: Purge, where: str, *values: object) -> list[Gone]:
    return list(db.execute(_OLDEST.format(where), (*values, STEP + len(rule.spare))))


def _named(db: sqlite3.Connection, call: str) -> Gone | None:
    """A call of this id, if it is over; its first fact says where it stands in the list."""
    if db.execute("SELECT 1 FROM live WHERE call = ?", (call,)).fetchone():
        return None
    entries = codec.entries(db.execute(_FIRST, (call,)))
    first = entries[0][1].fact if entries else None
    return (call, first.at) if isinstance(first, Opened) else None
