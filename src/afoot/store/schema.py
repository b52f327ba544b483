"""The SQLite file itself: its tables, how it is made and opened, and which files are refused."""

import logging
import os
import secrets
import sqlite3
from pathlib import Path

from afoot.errors import StoreError
from afoot.store.problem import explained

VERSION = 3
_log = logging.getLogger(__name__)
# Measured with 1, 2, 4, 8 KB, a call in two commits: 99, 103, 116, 144 µs alone; 50, 46, 47, 50 among fifty.
PAGE = 4096

# What makes a file of the version before one of the next.
_BELOW = "CREATE INDEX below ON calls (parent, opened) WHERE parent != ''"
_UPGRADES = {
    "1": ("ALTER TABLE calls ADD COLUMN approved TEXT NOT NULL DEFAULT ''",),
    "2": ("ALTER TABLE calls ADD COLUMN parent TEXT NOT NULL DEFAULT ''", _BELOW),
}
_GIVES_BACK = 2  # auto_vacuum: what is free can be given back a few pages at a time (H6)

# A row of `facts` is a stretch: facts of one call that were written together, known by the place of the last
# of them. A short call is then one row, where its four facts cost three times as much.
# `live` holds the calls without a recorded end: a page or two, all that is read to find them after a crash.
# `calls` is kept in the order it is listed in, so that a new row touches one page; only a call that another
# made is in an index beside it.
_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE facts (
    pos INTEGER PRIMARY KEY, call TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (call, seq)
);
CREATE TABLE samples (
    call TEXT NOT NULL, number INTEGER NOT NULL, left_out INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (call, number)
) WITHOUT ROWID;
CREATE TABLE calls (
    id TEXT NOT NULL, tool TEXT NOT NULL, server TEXT NOT NULL, caller TEXT NOT NULL,
    opened REAL NOT NULL, state TEXT NOT NULL, outcome TEXT, finished REAL, progress REAL, total REAL,
    message TEXT, started REAL, approved TEXT NOT NULL DEFAULT '', parent TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (opened, id)
) WITHOUT ROWID;
{_BELOW};
CREATE TABLE live (call TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
"""


def connect(path: Path, *, busy_s: float = 0.0) -> sqlite3.Connection:
    """A connection to a history that exists; nothing is written on its own account. Raises sqlite3.Error."""
    # Threads share connections here, one after the other; no transaction is opened behind our back.
    db = sqlite3.connect(path.absolute(), timeout=busy_s, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db


def prepare(path: Path, *, is_full: bool) -> sqlite3.Connection:
    """The writer's connection, the file made or checked first; raises StoreError."""
    _make(path)
    db = None
    try:
        db = connect(path, busy_s=5.0)
        _check(db, path)
        _settle(db, path, is_full=is_full)
        return db
    except sqlite3.Error as error:
        if db is not None:
            db.close()
        raise explained(error, path) from error
    except StoreError:
        if db is not None:
            db.close()
        raise


def value(db: sqlite3.Connection, key: str) -> str:
    """A value of the meta table; raises sqlite3.Error."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return "" if row is None else str(row[0])


def _make(path: Path) -> None:
    """An empty file, 0600, in a folder, 0700, unless they are there."""
    if path.is_dir():
        raise StoreError(f"history {path}: this is a folder; name a file with --store")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its side files the permissions of this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(
            f"history {path}: it cannot be made or written ({error.strerror});"
            " name another file with --store, or change permissions"
        ) from error


def _check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is somebody else's, or a later afoot's, before anything in it is changed."""
    tables = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return
    if not {"meta", "facts", "calls"} <= tables:
        raise StoreError(f"history {path}: another program's database; name another file with --store")
    version = value(db, "schema")
    if version != str(VERSION) and version not in _UPGRADES:
        raise StoreError(
            f"history {path}: it has schema {version or 'unknown'}, this afoot knows up to {VERSION};"
            " use the afoot that wrote it or a newer one, or name another file with --store"
        )


def _settle(db: sqlite3.Connection, path: Path, *, is_full: bool) -> None:
    db.execute(f"PRAGMA page_size = {PAGE}")  # of no effect on a file that has tables, as the next
    db.execute(f"PRAGMA auto_vacuum = {_GIVES_BACK}")
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(f"history {path}: its file system cannot keep a write-ahead log; use a local disk")
    db.execute(f"PRAGMA synchronous = {'FULL' if is_full else 'NORMAL'}")
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        for statement in _TABLES.split(";"):
            db.execute(statement)
        new = [("schema", str(VERSION)), ("epoch", secrets.token_hex(8))]
        db.executemany("INSERT INTO meta VALUES (?, ?)", new)
    while (version := value(db, "schema")) in _UPGRADES:
        for statement in _UPGRADES[version]:
            db.execute(statement)
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (str(int(version) + 1),))
    db.execute("COMMIT")
    if db.execute("PRAGMA auto_vacuum").fetchone()[0] != _GIVES_BACK:
        db.execute(f"PRAGMA auto_vacuum = {_GIVES_BACK}")
        try:
            db.execute("VACUUM")  # once, for a file that was made without
        except sqlite3.OperationalError as error:  # it needs as much room again, and can wait
            _log.warning(
                "history %s: it gets no smaller for now, next try at the next start: %s", path, error
            )
