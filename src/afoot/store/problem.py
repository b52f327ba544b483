"""What went wrong with an SQLite file, in words that say what to do."""

import sqlite3
from pathlib import Path

from msgspec import DecodeError

from afoot.errors import StoreError

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

Trouble = sqlite3.Error | UnicodeEncodeError | DecodeError


def is_busy(error: Trouble) -> bool:
    """Whether somebody else holds the file just now."""
    return _code(error) == sqlite3.SQLITE_BUSY


def explained(error: Trouble, path: Path) -> StoreError:
    """The same trouble as a StoreError: which file, what happened, what to do."""
    if isinstance(error, UnicodeEncodeError):
        return StoreError(
            f"history {path}: {error.object[:40]!r} is no valid Unicode: ask for something else"
        )
    if isinstance(error, DecodeError):
        return StoreError(f"history {path}: a fact in it cannot be read: restore a copy ({error})")
    advice = _ADVICE.get(_code(error))
    if advice is None:
        return StoreError(f"history {path}: {error}")
    return StoreError(f"history {path}: {advice} ({error})")


def _code(error: Exception) -> int:
    # The low byte is the kind; the rest tells cases of it apart. Errors of the module itself carry none.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
