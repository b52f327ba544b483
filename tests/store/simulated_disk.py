"""A disk that notes what is written and what is synced, so that a power cut can be tried at every point.

It lies under the very SQLite that `sqlite3` uses, as its file layer; the files are real ones. After a cut a
file has what was synced, and of what was written since any sectors: a disk writes them in whatever order it
likes. A file that was made or removed may be there or not until its folder was synced.
"""

import _sqlite3
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import (
    CDLL,
    CFUNCTYPE,
    POINTER,
    Structure,
    addressof,
    byref,
    c_char_p,
    c_int,
    c_int64,
    c_void_p,
    cast,
    pointer,
    string_at,
)
from pathlib import Path

import pytest
from msgspec import Struct

SECTOR = 512
_LOGS = 0x00000800 | 0x00080000  # a journal or write-ahead log: its first sync is its folder's too

# A name goes down as the place it lies at: SQLite keeps that, and a copy of ours would not last.
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Methods(Structure):
    """`sqlite3_io_methods`: what can be done with an open file."""

    _fields_ = (
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("others", c_void_p * 13),
    )


class _File(Structure):
    """`sqlite3_file`, as far as everybody may know it."""

    _fields_ = (("methods", POINTER(_Methods)),)


class _Layer(Structure):
    """`sqlite3_vfs`: the file layer."""

    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_name", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("delete", _Delete),
        ("others", c_void_p * 14),
    )


class Step(Struct, frozen=True):
    """One thing that happened to the disk: make, write, size, sync, remove, folder; or a test's own word."""

    what: str
    name: str = ""
    at: int = 0
    data: bytes = b""


class File(Struct):
    """A file on the disk: what it has for certain, and what it may have."""

    safe: bytearray
    since: list[Step]

    def sync(self) -> None:
        """All that was written is there for certain."""
        self.safe, self.since = self._with(self.since), list[Step]()

    def torn(self, chance: random.Random) -> bytes:
        """What may be left of it: of each write since the last sync all, nothing, or some sectors."""
        share = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        return bytes(
            self._with([part for step in self.since for part in _parts(step) if chance.random() < share])
        )

    def _with(self, steps: list[Step]) -> bytearray:
        body = bytearray(self.safe)
        for step in steps:
            if step.what == "size":
                del body[step.at :]
            body.extend(bytes(max(0, step.at + len(step.data) - len(body))))
            body[step.at : step.at + len(step.data)] = step.data
        return body


class Disk:
    """The files of one folder, step by step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[Step] = []
        self.files = {one.name: File(bytearray(one.read_bytes()), []) for one in folder.iterdir()}
        self._unsure: dict[str, File | None] = {}  # by name: what stood there when the folder was synced

    def note(self, what: str, name: str = "", at: int = 0, data: bytes = b"") -> None:
        """Something happens; from any thread."""
        self.steps.append(Step(what, name, at, data))

    def take(self, step: Step) -> None:
        """Let a step happen to the files."""
        file = self.files.get(step.name)
        if step.what in ("make", "remove"):
            self._unsure.setdefault(step.name, file)
            self.files.pop(step.name, None)
            if step.what == "make":
                self.files[step.name] = File(bytearray(), [])
        elif step.what == "folder":
            self._unsure.clear()
        elif step.what == "sync" and file is not None:
            file.sync()
        elif step.what in ("write", "size") and file is not None:
            file.since.append(step)

    def cut(self, chance: random.Random, into: Path) -> None:
        """What may lie in the folder if the power goes now."""
        into.mkdir(parents=True)
        there: dict[str, File | None] = {**self.files}
        there.update({name: old for name, old in self._unsure.items() if chance.random() < 0.5})
        for name, file in there.items():
            if file is not None and not name.endswith(
                "-shm"
            ):  # of no use without the processes that shared it
                (into / name).write_bytes(file.torn(chance))


@contextmanager
def noted(folder: Path) -> Iterator[Disk]:
    """Note what SQLite does in a folder from now on; all of it must be closed before the end of the block."""
    disk = Disk(folder)
    library = sqlite()
    library.sqlite3_vfs_find.restype = POINTER(_Layer)
    library.sqlite3_vfs_register.argtypes = (POINTER(_Layer), c_int)
    below: _Layer = library.sqlite3_vfs_find(None).contents
    above = _Layer.from_buffer_copy(below)
    above.name = b"noted"
    opening = _Opening(disk, below)
    above.open, above.delete = _Open(opening.open), _Delete(opening.delete)
    library.sqlite3_vfs_register(byref(above), 1)
    try:
        yield disk
    finally:
        library.sqlite3_vfs_unregister(byref(above))


def sqlite() -> CDLL:
    """The SQLite that `sqlite3` uses: behind its module, or in Python itself where that is built in."""
    for place in (getattr(_sqlite3, "__file__", None), None):
        library = CDLL(place)
        if hasattr(library, "sqlite3_vfs_register"):
            return library
    pytest.fail(
        f"{sys.executable} hides its SQLite, so that no power cut can be tried; run this with a Python whose"
        " sqlite3 is linked to a shared library, as that of a system is"
    )


class _Opening:
    """The layer itself: every file that is opened through it is noted."""

    def __init__(self, disk: Disk, below: _Layer) -> None:
        self._disk, self._below = disk, below
        self._there = set(disk.files)
        self._new_logs: set[str] = set()
        self._names: dict[int, str] = {}  # by the place of an open file in memory
        self._kinds: dict[int, _Methods] = {}  # what is done with files, the noted way, by the plain way

    def open(self, _: int, path: int | None, file: int, flags: int, out: int | None) -> int:
        """Open a file; a temporary one has no name, and is not noted."""
        done: int = self._below.open(addressof(self._below), path, file, flags, out)
        place = Path(string_at(path).decode() if path else "")
        if done == 0 and place.parent == self._disk.folder:
            if place.name not in self._there:
                self._there.add(place.name)
                self._disk.note("make", place.name)
                if flags & _LOGS:
                    self._new_logs.add(place.name)
            self._names[file] = place.name
            opened = cast(file, POINTER(_File)).contents
            opened.methods = pointer(self._noted(opened.methods.contents))
        return done

    def delete(self, _: int, path: bytes, with_folder: int) -> int:
        """Remove a file; the folder is synced if that is asked for."""
        name = Path(path.decode()).name
        self._there.discard(name)
        self._disk.note("remove", name)
        done: int = self._below.delete(addressof(self._below), path, with_folder)
        if done == 0 and with_folder:
            self._disk.note("folder")
        return done

    def _noted(self, plain: _Methods) -> _Methods:
        key = addressof(plain)
        if key not in self._kinds:
            kind = self._kinds[key] = _Methods.from_buffer_copy(plain)
            kind.write, kind.truncate = _Write(self._write(plain)), _Truncate(self._truncate(plain))
            kind.sync = _Sync(self._sync(plain))
        return self._kinds[key]

    def _write(self, plain: _Methods) -> Callable[[int, int, int, int], int]:
        def write(file: int, data: int, length: int, at: int) -> int:
            self._disk.note("write", self._names[file], at, string_at(data, length))
            return plain.write(file, data, length, at)

        return write

    def _truncate(self, plain: _Methods) -> Callable[[int, int], int]:
        def truncate(file: int, size: int) -> int:
            self._disk.note("size", self._names[file], size)
            return plain.truncate(file, size)

        return truncate

    def _sync(self, plain: _Methods) -> Callable[[int, int], int]:
        def sync(file: int, flags: int) -> int:
            name, done = self._names[file], plain.sync(file, flags)
            self._disk.note("sync", name)
            if name in self._new_logs:
                self._new_logs.discard(name)
                self._disk.note("folder")
            return done

        return sync


def _parts(step: Step) -> list[Step]:
    """The sectors of a write, each of which comes to the disk or does not."""
    if step.what == "size":
        return [step]
    ends = range(step.at // SECTOR * SECTOR + SECTOR, step.at + len(step.data) + SECTOR, SECTOR)
    return [_sector(step, end) for end in ends]


def _sector(step: Step, end: int) -> Step:
    first = max(step.at, end - SECTOR)
    return Step("write", step.name, first, step.data[first - step.at : end - step.at])
