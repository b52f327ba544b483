"""What was done to hosts' files, kept in the state folder so that it can be undone after other edits."""

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from afoot.config import home
from afoot.hosts import file
from afoot.hosts.json_text import Taken


class Moved(Struct):
    """A server that was moved behind afoot: as it stood with its host, and what it became."""

    name: str
    taken: Taken
    server: str
    table: dict[str, object]
    secrets: list[str] = []
    is_ours: bool = True  # False: afoot.toml had it before any host was adopted


class Record(Struct):
    """What was done to one file."""

    host: str
    config: str = ""  # the afoot.toml that got its servers
    is_new_config: bool = False
    is_new_file: bool = False
    is_new_table: bool = False
    moved: list[Moved] = []
    # As long as the file is what we made of it, its copy is the way back.
    backup: str = ""
    before: str = ""
    after: str = ""


def read(path: Path) -> Record | None:
    """What was done to this file."""
    return every().get(str(path))


def every() -> dict[str, Record]:
    """What was done, by file."""
    try:
        return msgspec.json.decode(file.read(_place()) or "{}", type=dict[str, Record])
    except msgspec.DecodeError as error:
        # It may hold the only text of a server that was moved: never written over.
        raise file.FileError(f"{_place()}: {error}; mend it or move it away") from None


def write(path: Path, record: Record | None) -> None:
    """Remember what was done to a file; None forgets it."""
    before, known = file.read(_place()), every()
    kept = {key: one for key, one in known.items() if key != str(path)}
    if record is not None:
        kept[str(path)] = record
    after = msgspec.json.format(msgspec.json.encode(kept)).decode() + "\n"
    if after != before:
        _place().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.replace(_place(), before, after, mode=0o600, is_copied=False)


def digest(text: str | None) -> str:
    """A text in short, to know it again; empty for no text."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _place() -> Path:
    return home() / "hosts.json"
