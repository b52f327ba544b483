"""The schema of the SQLite file: its tables, how the file is created, checked, upgraded and opened.

`open_writer` gives the writer's connection; `as_store_error` says what went wrong with a file, and what to
do.
"""

import logging
import os
import secrets
import sqlite3
from pathlib import Path

from msgspec import DecodeError

from afoot.core.facts import Opened
from afoot.errors import StoreError
from afoot.store import codec

SCHEMA_VERSION = 5

# Measured with 1, 2, 4, 8 KB, a call in two commits: 99, 103, 116, 144 µs alone; 50, 46, 47, 50 among fifty.
PAGE_BYTES = 4096
_INCREMENTAL_VACUUM = 2  # auto_vacuum: free pages can be given back a few at a time (H6)

_PARENT_INDEX = "CREATE INDEX below ON calls (parent, opened) WHERE parent != ''"

# Most calls have no idempotency key and are not in this index.
_KEYS = "CREATE INDEX keys ON calls (caller, key, opened) WHERE key != ''"

# The keys of a file of version 3 are in the first facts of its calls. The file is read once, in its own
# order, and only facts that may hold a key are decoded. Measured: 1.2 s for 100,000 calls in 158 MB, half of
# them with a key.
_WITH_KEY = """SELECT pos, call, seq, body FROM facts
WHERE instr(body, CAST('"key":"' AS BLOB)) ORDER BY pos"""

# The statements that make a file of one version a file of the next.
_UPGRADES = {
    "1": ("ALTER TABLE calls ADD COLUMN approved TEXT NOT NULL DEFAULT ''",),
    "2": ("ALTER TABLE calls ADD COLUMN parent TEXT NOT NULL DEFAULT ''", _PARENT_INDEX),
    "3": ("ALTER TABLE calls ADD COLUMN key TEXT NOT NULL DEFAULT ''", _KEYS),
    # Older rows do not tell how long people took to answer, so the time of people is in theirs.
    "4": ("ALTER TABLE calls ADD COLUMN ran_s REAL", "UPDATE calls SET ran_s = finished - started"),
}

# A row of `facts` is a segment: facts of one call that were written together, with the position of the last
# of them. A short call is then one row; as four rows, one for each fact, it cost three times as much. `live`
# holds the calls without a recorded end: a page or two, and nothing else is read to find them after a crash.
# `calls` is kept in the order in which it is listed, so a new row touches one page. Only calls that were made
# by another call are also in an index.
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
    key TEXT NOT NULL DEFAULT '', ran_s REAL,
    PRIMARY KEY (opened, id)
) WITHOUT ROWID;
{_PARENT_INDEX};
{_KEYS};
CREATE TABLE live (call TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
"""

_ADVICE: dict[int, str] = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space there",
    sqlite3.SQLITE_READONLY: "it may not be written: check owner and permissions of the file and its folder",
    sqlite3.SQLITE_PERM: "it may not be opened: check owner and permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check that the file and its folder exist and are yours",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: move it away and a new one is made, or restore a copy",
    sqlite3.SQLITE_NOTADB: "it is no SQLite file: name another with --store, or move it away for a new one",
    sqlite3.SQLITE_BUSY: "another program is writing to it: close that program",
    sqlite3.SQLITE_LOCKED: "another program is writing to it: close that program",
    sqlite3.SQLITE_IOERR: "the disk did not obey: check it, and the system's log",
    sqlite3.SQLITE_CONSTRAINT: "a fact of this number is there already: two writers, or a batch twice",
    sqlite3.SQLITE_TOOBIG: "a value is too big to be stored",
}

StorageFailure = sqlite3.Error | UnicodeEncodeError | DecodeError
_log = logging.getLogger(__name__)


def connect(path: Path, *, busy_s: float = 0.0) -> sqlite3.Connection:
    """Connect to a history that exists, without automatic checkpoints; raises sqlite3.Error."""
    # Threads use a connection one after the other. With isolation_level None, the module begins no
    # transaction.
    db = sqlite3.connect(path.absolute(), timeout=busy_s, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db


def open_writer(path: Path, *, is_full: bool) -> sqlite3.Connection:
    """Create or check the file, and return the writer's connection; raises StoreError."""
    _create_file(path)
    db = None
    try:
        db = connect(path, busy_s=5.0)
        _check_schema(db, path)
        _configure(db, path, is_full=is_full)
        return db
    except sqlite3.Error as error:
        if db is not None:
            db.close()
        raise as_store_error(error, path) from error
    except StoreError:
        if db is not None:
            db.close()
        raise


def read_meta(db: sqlite3.Connection, key: str) -> str:
    """A value of the meta table, or an empty text; raises sqlite3.Error."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return "" if row is None else str(row[0])


def is_busy(error: StorageFailure) -> bool:
    """Whether another connection holds the file at the moment."""
    return _error_code(error) == sqlite3.SQLITE_BUSY


def as_store_error(error: StorageFailure, path: Path) -> StoreError:
    """The failure as a StoreError that names the file, what happened, and what to do."""
    if isinstance(error, UnicodeEncodeError):
        return StoreError(
            f"history {path}: {error.object[:40]!r} is no valid Unicode: ask for something else"
        )
    if isinstance(error, DecodeError):
        return StoreError(f"history {path}: a fact in it cannot be read: restore a copy ({error})")
    advice = _ADVICE.get(_error_code(error))
    if advice is None:
        return StoreError(f"history {path}: {error}")
    return StoreError(f"history {path}: {advice} ({error})")


def _create_file(path: Path) -> None:
    """Create an empty file with mode 0600, in a folder with mode 0700, unless they exist."""
    if path.is_dir():
        raise StoreError(f"history {path}: this is a folder; name a file with --store")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the log and the shared memory file the same permissions.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(
            f"history {path}: it cannot be made or written ({error.strerror});"
            " name another file with --store, or change permissions"
        ) from error


def _check_schema(db: sqlite3.Connection, path: Path) -> None:
    """Refuse another program's file, or one of a later afoot, before anything in it is changed."""
    tables = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return
    if not {"meta", "facts", "calls"} <= tables:
        raise StoreError(f"history {path}: another program's database; name another file with --store")
    version = read_meta(db, "schema")
    if version != str(SCHEMA_VERSION) and version not in _UPGRADES:
        raise StoreError(
            f"history {path}: it has schema {version or 'unknown'}, this afoot knows up to {SCHEMA_VERSION};"
            " use the afoot that wrote it or a newer one, or name another file with --store"
        )


def _configure(db: sqlite3.Connection, path: Path, *, is_full: bool) -> None:
    """Set page size, vacuum, log and sync modes; create the tables or upgrade them."""
    # These two have no effect on a file that has tables.
    db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    db.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL_VACUUM}")
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(f"history {path}: its file system cannot keep a write-ahead log; use a local disk")
    db.execute(f"PRAGMA synchronous = {'FULL' if is_full else 'NORMAL'}")
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        for statement in _TABLES.split(";"):
            db.execute(statement)
        new = [("schema", str(SCHEMA_VERSION)), ("epoch", secrets.token_hex(8))]
        db.executemany("INSERT INTO meta VALUES (?, ?)", new)
    while (version := read_meta(db, "schema")) in _UPGRADES:
        for statement in _UPGRADES[version]:
            db.execute(statement)
        if version == "3":
            _fill_keys(db)
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (str(int(version) + 1),))
    db.execute("COMMIT")
    if db.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL_VACUUM:
        db.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL_VACUUM}")
        try:
            db.execute("VACUUM")  # once, for a file that was created without auto_vacuum
        except sqlite3.OperationalError as error:  # it needs as much disk space again; it can wait
            _log.warning(
                "history %s: it gets no smaller for now, next try at the next start: %s", path, error
            )


def _fill_keys(db: sqlite3.Connection) -> None:
    """Write the idempotency key of each listed call into its row."""
    found: list[tuple[str, float, str]] = []
    for columns in db.execute(_WITH_KEY):
        try:
            _, first = codec.decode_facts([columns])[0]
        except DecodeError:  # damaged: nobody can follow this call again
            continue
        if isinstance(first.fact, Opened) and first.fact.key:
            found.append((first.fact.key, first.fact.at, first.call))
    db.executemany("UPDATE calls SET key = ? WHERE opened = ? AND id = ?", found)


def _error_code(error: Exception) -> int:
    # The low byte is the primary code, the rest the extended one. Errors of the module itself have neither.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
