"""A thread that moves what the write-ahead log holds into the file, so that the loop never has to."""

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from afoot.store.schema import PAGE, connect

# Measured between 4 and 64 MB: calls per second hardly differ. The more there is, the longer the cut, off
# the loop (16: 25 ms, 32: 55 ms); the less, the more often the disk is synced.
GROWTH = 16 * 1024 * 1024  # bytes of log after which it is moved
LONG = 64 * 1024 * 1024  # bytes of log that are not left behind

_log = logging.getLogger(__name__)


class Checkpointer:
    """Woken when the log has grown.

    SQLite begins the log anew only when all of it was moved, so never under a writer that never pauses.
    So a long log is cut, while writers wait a moment.
    """

    def __init__(self, path: Path, growth: int = GROWTH, long: int = LONG) -> None:
        self._path = path
        self.growth, self._long = growth, long
        self._wake = threading.Event()
        # Held while the log is cut. Writers keep out, or one that never pauses would never let it happen.
        self.cutting = threading.Lock()
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="afoot-checkpoint", daemon=True)

    def start(self) -> None:
        """Begin to wait for growth."""
        self._thread.start()

    def wake(self) -> int:
        """The log has grown by `growth`; from any thread. The answer is its growth since then: none."""
        self._wake.set()
        return 0

    def stop(self) -> None:
        """Move all that is left, and end. Blocks; not for the loop."""
        self._ends = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends:
            self._wake.wait()
            self._wake.clear()
            try:
                with closing(connect(self._path, busy_s=1.0)) as db:
                    self._move(db)
            except sqlite3.Error as error:
                # The log keeps everything; only its size suffers, and the writer tells of the same trouble.
                _log.warning("history %s: its log was not moved, next try later: %s", self._path, error)

    def _move(self, db: sqlite3.Connection) -> None:
        _, frames, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if self._ends or frames * PAGE >= self._long:
            with self.cutting:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
