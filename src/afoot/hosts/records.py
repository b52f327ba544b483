"""`InstallRecord` says what was done to a host's file, so that it can be undone after other edits.

The records are in hosts.json in the state folder.
"""

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from afoot.config.settings import home
from afoot.hosts import files
from afoot.hosts.edit_json import RemovedText


class MovedServer(Struct):
    """A server that was moved behind afoot: its text in the host's file, and its table in afoot.toml."""

    name: str
    taken: RemovedText
    server: str
    table: dict[str, object]
    secrets: list[str] = []
    is_ours: bool = True  # False: afoot.toml had it before any host was adopted


class InstallRecord(Struct):
    """The changes that were made to one host's file."""

    host: str
    config: str = ""  # the afoot.toml that got its servers
    is_new_config: bool = False
    is_new_file: bool = False
    is_new_table: bool = False
    moved: list[MovedServer] = []
    # While the file still has the digest `after`, `backup` (with the digest `before`) undoes everything.
    backup: str = ""
    before: str = ""
    after: str = ""


def read_record(path: Path) -> InstallRecord | None:
    """The record of a host's file, if there is one."""
    return read_records().get(str(path))


def read_records() -> dict[str, InstallRecord]:
    """All records, by file; raises FileError if hosts.json is damaged."""
    try:
        return msgspec.json.decode(files.read(_records_file()) or "{}", type=dict[str, InstallRecord])
    except msgspec.DecodeError as error:
        # It may contain the only text of a moved server, so it is never overwritten.
        raise files.FileError(f"{_records_file()}: {error}; mend it or move it away") from None


def write_record(path: Path, record: InstallRecord | None) -> None:
    """Write the record of a file; None deletes it."""
    before, known = files.read(_records_file()), read_records()
    kept = {key: one for key, one in known.items() if key != str(path)}
    if record is not None:
        kept[str(path)] = record
    after = msgspec.json.format(msgspec.json.encode(kept)).decode() + "\n"
    if after != before:
        _records_file().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.replace(_records_file(), before, after, mode=0o600, keeps_backup=False)


def digest(text: str | None) -> str:
    """The SHA-256 of a text; empty for no text."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _records_file() -> Path:
    return home() / "hosts.json"
