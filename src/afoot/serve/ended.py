"""Sessions of the handshake era that were ended: no gateway that comes after knows them again (D2)."""

import logging
import os
from hashlib import sha256
from pathlib import Path

FOLDER = "ended"  # in the state folder
LASTS_S = 7 * 86_400.0  # how old a session may be that is known again
_DAY_S = 86_400

log = logging.getLogger("afoot.serve")


class Ended:
    """Which sessions were ended: a line each, in a file for the day they were opened on.

    Without a folder, and where it cannot be written, they are known only as long as this lasts.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._unkept: set[str] = set()
        self._read: dict[int, tuple[tuple[int, ...], frozenset[str]]] = {}  # by day: a file as it was, and is

    def add(self, key: str, issued: float, now: float) -> None:
        """This session is over for good."""
        digest = _digest(key)
        if self._folder is None:
            self._unkept.add(digest)
            return
        try:
            file = self._folder / str(int(issued // _DAY_S))
            if not file.exists():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _tidy(self._folder, now)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w") as out:
                out.write(f"{digest}\n")
        except OSError as error:
            self._unkept.add(digest)
            log.warning("%s: a session that was ended may be known again after a restart", error)

    def has(self, key: str, issued: float) -> bool:
        """Whether this session was ended, here or at another gateway; what cannot be read tells of all."""
        digest, day = _digest(key), int(issued // _DAY_S)
        if self._folder is None or digest in self._unkept:
            return digest in self._unkept
        file = self._folder / str(day)
        try:
            found = file.stat()
            stamp = found.st_ino, found.st_mtime_ns, found.st_size
            if self._read.get(day, ((), ()))[0] != stamp:
                self._read[day] = stamp, frozenset(file.read_text("ascii").split())
        except FileNotFoundError:
            return False
        except (OSError, UnicodeDecodeError) as error:
            log.warning("%s: sessions of an earlier gateway are not known again", error)
            return True
        return digest in self._read[day][1]


def _tidy(folder: Path, now: float) -> None:
    """Take away the days whose sessions nobody would let in any more."""
    for file in folder.iterdir():
        if file.name.isdecimal() and (int(file.name) + 1) * _DAY_S + LASTS_S < now:
            file.unlink(missing_ok=True)


def _digest(key: str) -> str:
    """A session's key lets in whoever has it, so it is not kept."""
    return sha256(key.encode("utf-8", "replace")).hexdigest()[:32]
