"""`SqliteJournal` keeps facts in an SQLite file: it commits small batches on the loop, others in a thread.

Every batch is one transaction. With `durable="full"` it is recorded when the disk has it, and survives a
power failure; otherwise when the operating system has it, and survives a killed process. `Checkpointer` moves
the write-ahead log into the file in a thread of its own, so that the loop never has to.
"""

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

from msgspec import DecodeError
from msgspec.structs import astuple, replace

from afoot.core.facts import Entry, Sample
from afoot.core.ports import Batch, CallOutline, CallQuery, CallRow, PurgeRule
from afoot.errors import StoreError
from afoot.store import codec, outlines, search
from afoot.store import purge as purging
from afoot.store.schema import PAGE_BYTES, as_store_error, connect, is_busy, open_writer, read_meta
from afoot.store.search import ROW_BATCH, SAVE_LISTED_POSITION, rebuild_unlisted_rows

# Log growth after which a checkpoint moves the log into the file. Measured between 4 and 64 MB: calls per
# second hardly differ. A larger log takes longer to truncate, off the loop (16 MB: 25 ms, 32 MB: 55 ms); a
# smaller one is synced more often.
CHECKPOINT_BYTES = 16 * 1024 * 1024
TRUNCATE_BYTES = 64 * 1024 * 1024  # a log of this size is truncated by the checkpoint
FILE_CHECK_S = 1.0  # between two looks whether the file is still there
_BUSY_MS = 2000  # how long the write thread waits for another writer; the loop does not wait at all

# A segment must begin behind the last one of its call, so two writers cannot both add it: the number of a
# fact is its lock. The first segment of a call, by far the most common, needs no such check.
_INSERT_FIRST_SEGMENT = "INSERT INTO facts VALUES (?, ?, ?, ?)"
_INSERT_NEXT_SEGMENT = """INSERT INTO facts SELECT ?, ?, ?, ?
WHERE coalesce((SELECT max(seq) FROM facts WHERE call = ?), 0) <= ?"""
_INSERT_SAMPLE = "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?)"
_UPSERT_ROW = """INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (opened, id) DO UPDATE SET
state = excluded.state, outcome = excluded.outcome, finished = excluded.finished,
progress = excluded.progress, total = excluded.total, message = excluded.message,
started = excluded.started, approved = excluded.approved, ran_s = excluded.ran_s"""
_INSERT_LIVE = "INSERT OR IGNORE INTO live VALUES (?, ?)"
_DELETE_LIVE = "DELETE FROM live WHERE call = ?"
# Adds nothing. SQLite keeps the values of a statement until it gets others, and a body may have 30 MB.
_NO_SEGMENT = (0, "", 0, b"", "", -1)

T = TypeVar("T")

_log = logging.getLogger(__name__)


class SqliteJournal:
    """One file with one writer. `async with` opens and closes it."""

    def __init__(self, path: Path | str, durable: Literal["normal", "full"] = "normal") -> None:
        self.path = Path(path)
        self.epoch = ""
        self.position = 0
        self.written_bytes = 0
        self._is_full = durable == "full"
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._checkpointer = Checkpointer(self.path)
        self._write_thread = ThreadPoolExecutor(1, "afoot-write")
        self._read_thread = ThreadPoolExecutor(1, "afoot-read")
        self._log_growth = 0
        self._rows: dict[str, CallRow] = {}  # rows of the list of calls that are not written yet
        self._queued_writes = 0  # batches that were handed to the write thread and are not done
        self._has_failed = False  # one of these failed, so those behind it must fail too
        self._has_shrunk = False  # the last purge deleted something
        self._purging = asyncio.Lock()  # two purges at once would select the same calls
        self._is_closed = False

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().run_in_executor(self._write_thread, self._open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def write(self, batch: Batch, *, flush_rows: bool = False) -> Awaitable[None] | None:
        """Record a batch: at once, or in the thread if it is large, must be synced, or the file is busy.

        Batches keep their order even if nobody awaits: while the thread has one, all that follow go there,
        and when one fails those behind it fail too. Rows of the list wait for a full batch of rows, unless
        `flush_rows`. Raises StoreError, here or when awaited.
        """
        if self._is_closed:
            raise StoreError(f"history {self.path}: it is not open")
        if self._checkpointer.is_file_gone:
            self.check()
        try:
            ready = codec.encode_batch(batch)
        except UnicodeEncodeError:  # a lone surrogate, which no file can hold, becomes a question mark
            ready = codec.encode_batch(codec.storable(batch))
        ready.flush_rows = flush_rows
        if self._queued_writes or self._is_full or ready.is_large or self._checkpointer.truncating.locked():
            return self._write_in_thread(lambda _: self._commit(ready))
        try:
            return self._commit(ready)
        except sqlite3.Error as error:
            if is_busy(error):
                return self._write_in_thread(lambda _: self._commit(ready))
            raise as_store_error(error, self.path) from error

    def check(self) -> None:
        """Raise StoreError if the file was deleted or replaced: writes would go to a file without a name."""
        if self._checkpointer.look_for_file():
            raise StoreError(
                f"history {self.path}: the file was deleted or replaced while it was in use; put it back, "
                f"or restart the gateway, which begins a new one"
            )

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        """The facts of a call with a number over `after`."""
        return await self._read(lambda db: search.read_facts(db, call, after))

    async def samples(self, call: str) -> list[Sample]:
        """The readings of a call that the history keeps."""
        return await self._read(lambda db: search.read_samples(db, call))

    async def since(self, position: int, limit: int = 1000) -> list[tuple[int, Entry]]:
        """The facts of all calls behind a position, oldest first."""
        return await self._read(lambda db: search.read_since(db, position, limit))

    async def find(self, query: CallQuery) -> list[CallRow]:
        """The calls that match, newest first, at most 1,000."""
        await self._try_to_flush_rows()
        return await self._read(lambda db: search.find_rows(db, query))

    async def outlines(self, query: CallQuery) -> list[CallOutline]:
        """All calls that match, newest first, in short, at most 100,000."""
        await self._try_to_flush_rows()
        return await self._read(lambda db: outlines.read_outlines(db, query))

    async def descendants(self, calls: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Count the calls at any depth below each of these, and those of them that did not end well."""
        await self._try_to_flush_rows()
        return await self._read(lambda db: outlines.count_descendants(db, calls))

    async def retried(self, calls: Sequence[str]) -> list[str]:
        """The calls of these whose tool was started more than once."""
        return await self._read(lambda db: outlines.read_retried(db, calls))

    async def children(self, call: str) -> tuple[int, int]:
        """Count the finished calls that a call has made, and those of them that did not end well."""
        await self._try_to_flush_rows()
        return await self._read(lambda db: search.count_children(db, call))

    async def keyed(self, caller: str, key: str) -> str | None:
        """The newest listed call that this caller opened with this idempotency key.

        Rows that wait for their lot are looked through in memory and not written for it: every call with a
        new key asks this, and would pay for a lot of one row.
        """
        rows = list(self._rows.values())  # the write thread adds some
        waiting = [row for row in rows if key and row.key == key and row.caller == caller]
        found = [(row.opened, row.id) for row in waiting]
        found += await self._read(lambda db: search.keyed(db, caller, key))
        return max(found)[1] if found else None

    async def purge(self, rule: PurgeRule) -> int:
        """Delete the next calls that the rule names, off the loop; raises StoreError.

        A limit in bytes is for the file and its log together: a quarter of it is for the log.
        """
        if rule.most_bytes is not None:
            rule = replace(rule, most_bytes=rule.most_bytes - self._checkpointer.limit_log(rule.most_bytes))
        async with self._purging:
            await self._flush_rows()
            gone = await self._read(lambda db: purging.select_purgeable(db, rule))
            if gone:
                await self._write_in_thread(
                    lambda db: purging.delete_calls(db, gone, self.position), is_batch=False
                )
                self._log_growth += 8 * PAGE_BYTES * len(gone) + 2 * sum(one.size for one in gone)
        # The file gets smaller only when a checkpoint moves its log.
        if self._log_growth >= self._checkpointer.growth or (self._has_shrunk and not gone):
            self._log_growth = self._checkpointer.wake()
        self._has_shrunk = bool(gone)
        return len(gone)

    async def _flush_rows(self) -> None:
        """Write the rows that wait for a full batch; raises StoreError."""
        if self._rows and not self._is_closed:
            done = self.write(Batch(), flush_rows=True)
            if done is not None:
                await done

    async def _try_to_flush_rows(self) -> None:
        """Write the waiting rows before a read. Where that fails, the read sees the list without them."""
        with suppress(StoreError):
            await self._flush_rows()

    async def unfinished(self) -> list[str]:
        """The ids of calls without a recorded end, oldest first."""
        return await self._read(search.read_unfinished)

    async def close(self) -> None:
        """Write the rows that wait, checkpoint the log and close the file. A second call does nothing."""
        if self._is_closed:
            return
        await self._try_to_flush_rows()
        self._is_closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._read_thread, self._close_reader)
        await loop.run_in_executor(self._write_thread, self._close_writer)
        self._read_thread.shutdown(wait=False)
        self._write_thread.shutdown(wait=False)

    def _open(self) -> None:
        if self._is_closed or self._writer is not None:
            raise StoreError(f"history {self.path}: a journal is opened once; make a new one")
        db = open_writer(self.path, is_full=self._is_full)
        try:
            self.epoch = read_meta(db, "epoch")
            last = db.execute("SELECT coalesce(max(pos), 0) FROM facts").fetchone()[0]
            # The last facts may have been purged, and no position is used twice.
            self.position = max(int(last), int(read_meta(db, "position") or 0))
            self._rows = rebuild_unlisted_rows(db, int(read_meta(db, "listed") or 0))
            db.execute("PRAGMA busy_timeout = 0")
            self._reader = connect(self.path, busy_s=5.0)
            self._reader.execute("PRAGMA query_only = 1")
        except sqlite3.Error as error:
            db.close()
            raise as_store_error(error, self.path) from error
        self._writer = db
        self._checkpointer.start()

    def _commit(self, ready: codec.EncodedBatch) -> None:
        db = self._writer
        if db is None:
            raise StoreError(f"history {self.path}: it is not open")
        flush_rows = ready.flush_rows or len(self._rows) + len(ready.rows) >= ROW_BATCH
        db.execute("BEGIN IMMEDIATE")
        try:
            pos = self.position
            for length, call, seq, body in ready.facts:
                pos += length
                if length == seq and len(body) <= codec.LARGE_BODY:
                    db.execute(_INSERT_FIRST_SEGMENT, (pos, call, seq, body))
                elif not db.execute(
                    _INSERT_NEXT_SEGMENT, (pos, call, seq, body, call, seq - length)
                ).rowcount:
                    raise codec.fact_conflict(call)
            if ready.is_large:
                db.execute(_INSERT_NEXT_SEGMENT, _NO_SEGMENT)
            if flush_rows:
                rows = {**self._rows, **ready.rows}
                db.executemany(_UPSERT_ROW, [astuple(row) for row in rows.values()])
                db.execute(SAVE_LISTED_POSITION, (str(pos),))
            if ready.samples:
                db.executemany(_INSERT_SAMPLE, ready.samples)
            if ready.opened:
                db.executemany(_INSERT_LIVE, ready.opened)
            if ready.ended:
                db.executemany(_DELETE_LIVE, ready.ended)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # some errors have rolled it back already
                db.execute("ROLLBACK")
            raise
        self.position = pos
        if flush_rows:
            self._rows = dict[str, CallRow]()
        else:
            self._rows.update(ready.rows)
        # About what the log has grown by: the bodies, and the pages that any commit touches.
        growth = ready.size + PAGE_BYTES * (6 + len(ready.facts) // 2)
        self.written_bytes += growth
        self._log_growth += growth
        if self._log_growth >= self._checkpointer.growth:
            self._log_growth = self._checkpointer.wake()

    def _write_in_thread(
        self, work: Callable[[sqlite3.Connection], None], *, is_batch: bool = True
    ) -> Awaitable[None]:
        self._queued_writes += 1
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._write_thread, self._run_write, work, is_batch)
        done.add_done_callback(self._write_done)
        # Cancelling the wait must not cancel the write: the thread may be in the middle of it.
        return asyncio.shield(done)

    def _write_done(self, done: asyncio.Future[None]) -> None:
        self._queued_writes -= 1
        if not self._queued_writes:
            self._has_failed = False

    def _run_write(self, work: Callable[[sqlite3.Connection], None], is_batch: bool) -> None:
        """Write, in the thread; wait for another writer if there is one."""
        if self._has_failed:
            raise StoreError(f"history {self.path}: not written, because a batch before it was not")
        if self._writer is None:
            raise StoreError(f"history {self.path}: it is not open")
        try:
            with self._checkpointer.truncating:
                self._writer.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
                work(self._writer)
        except (sqlite3.Error, StoreError) as error:
            self._has_failed = self._has_failed or is_batch
            raise error if isinstance(error, StoreError) else as_store_error(error, self.path) from error
        finally:
            self._writer.execute("PRAGMA busy_timeout = 0")

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_closed:
            raise StoreError(f"history {self.path}: it is not open")
        return await asyncio.get_running_loop().run_in_executor(self._read_thread, self._run_read, read)

    def _run_read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        if self._reader is None:
            raise StoreError(f"history {self.path}: it is not open")
        try:
            return read(self._reader)
        except (sqlite3.Error, UnicodeEncodeError, DecodeError) as error:
            raise as_store_error(error, self.path) from error

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._checkpointer.stop()
            self._writer.close()
            self._writer = None


class Checkpointer:
    """The thread that moves the write-ahead log into the file, woken when the log has grown.

    It also looks every FILE_CHECK_S whether the file is still there: SQLite goes on writing to a file that
    was deleted, and nothing of that is left when it is closed.

    SQLite starts the log from its beginning again only when all of it was moved, and under a writer that
    never pauses that never happens. A long log is therefore truncated while writers wait for a moment.
    """

    def __init__(self, path: Path, growth: int = CHECKPOINT_BYTES, long: int = TRUNCATE_BYTES) -> None:
        self._path = path
        self.growth = self._most_growth = growth
        self._long = self._most_long = long
        self._wake = threading.Event()
        # Held while the log is truncated. Writers wait for it: one that never pauses would prevent the
        # truncation.
        self.truncating = threading.Lock()
        self._is_stopping = False
        self._files: list[tuple[int, int] | None] = []  # device and inode of the file and its log
        self.is_file_gone = False
        self._thread = threading.Thread(target=self._run, name="afoot-checkpoint", daemon=True)

    def limit_log(self, most_bytes: int) -> int:
        """Let the log have a quarter of this size at most; returns the size at which it is truncated."""
        self._long = max(PAGE_BYTES, min(self._most_long, most_bytes // 4))
        self.growth = min(self._most_growth, self._long // 4)
        return self._long

    def start(self) -> None:
        """Start the thread. The file is there now, and must stay the same."""
        self._files = self._identify_files()
        self._thread.start()

    def look_for_file(self) -> bool:
        """Look whether the file or its log is gone, or another; returns that, and keeps it."""
        was_gone = self.is_file_gone
        found = self._identify_files()
        if self._files[1] is None:
            self._files[1] = found[1]  # SQLite makes the log when it needs it
        self.is_file_gone = found != self._files
        if self.is_file_gone and not was_gone:
            _log.error("history %s was deleted or replaced while it was in use", self._path)
        return self.is_file_gone

    def _identify_files(self) -> list[tuple[int, int] | None]:
        found = list[tuple[int, int] | None]()
        for name in (self._path, f"{self._path}-wal"):
            try:
                status = os.stat(name)
            except OSError:
                found.append(None)
            else:
                found.append((status.st_dev, status.st_ino))
        return found

    def wake(self) -> int:
        """Start a checkpoint, from any thread. Returns the growth since then: 0."""
        self._wake.set()
        return 0

    def stop(self) -> None:
        """Move the rest of the log, and end the thread. Blocks, so it is not for the loop."""
        self._is_stopping = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopping:
            is_woken = self._wake.wait(FILE_CHECK_S)
            self._wake.clear()
            # A checkpoint would make a new file where the old one was deleted.
            if self.look_for_file() or not is_woken:
                continue
            try:
                with closing(connect(self._path, busy_s=1.0)) as db:
                    self._checkpoint(db)
            except sqlite3.Error as error:
                # Nothing is lost: the log only grows. The writer reports the same failure.
                _log.warning("history %s: its log was not moved, next try later: %s", self._path, error)

    def _checkpoint(self, db: sqlite3.Connection) -> None:
        _, frames, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if self._is_stopping or frames * PAGE_BYTES >= self._long:
            with self.truncating:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
