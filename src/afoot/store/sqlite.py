"""The journal in an SQLite file: small batches are committed on the loop, large ones and reads in threads.

Every batch is one transaction. With `durable="full"` it is done when the disk has it (power may fail), else
when the operating system has it (the process may be killed).
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

from msgspec import DecodeError, json
from msgspec.structs import astuple

from afoot.core.facts import Entry, Finished, Sample
from afoot.core.ports import Batch, Purge, Query, Row
from afoot.errors import StoreError
from afoot.store import codec, purging, search
from afoot.store.checkpointer import Checkpointer
from afoot.store.codec import RowColumns
from afoot.store.listing import LISTED, LOT, unlisted
from afoot.store.problem import explained, is_busy
from afoot.store.schema import PAGE, connect, prepare, value

T = TypeVar("T")
_encode = json.Encoder().encode

# A stretch may only go on from the last one: the number of a fact is its lock. The first of a call, by far
# the commonest, has none to go on from.
_FIRST = "INSERT INTO facts VALUES (?, ?, ?, ?)"
_NEXT = """INSERT INTO facts SELECT ?, ?, ?, ?
WHERE coalesce((SELECT max(seq) FROM facts WHERE call = ?), 0) <= ?"""
_SAMPLE = "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?)"
_ROW = """INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (opened, id) DO UPDATE SET
state = excluded.state, outcome = excluded.outcome, finished = excluded.finished,
progress = excluded.progress, total = excluded.total, message = excluded.message,
started = excluded.started, approved = excluded.approved"""
_OPENED = "INSERT OR IGNORE INTO live VALUES (?, ?)"
_ENDED = "DELETE FROM live WHERE call = ?"
_MORE = (_SAMPLE, _OPENED, _ENDED)
_BUSY_MS = 2000  # how long the thread waits for another writer; the loop does not wait at all


class SqliteJournal:
    """One file, one writer. `async with` opens it and closes it."""

    def __init__(self, path: Path | str, durable: Literal["normal", "full"] = "normal") -> None:
        self.path = Path(path)
        self.epoch = ""
        self.position = 0
        self._is_full = durable == "full"
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._checkpointer = Checkpointer(self.path)
        self._write_thread = ThreadPoolExecutor(1, "afoot-write")
        self._read_thread = ThreadPoolExecutor(1, "afoot-read")
        self._grown = 0
        self._rows: dict[str, RowColumns] = {}  # of the list of calls, not written yet
        self._waiting = 0  # batches in the hands of the thread, as the loop knows
        self._is_broken = False  # one of these failed, so those behind it must fail too
        self._has_shrunk = False  # by the last step of a purge
        self._purging = asyncio.Lock()  # two at once would count the same calls
        self._is_closed = False

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().run_in_executor(self._write_thread, self._open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def write(self, batch: Batch, *, lists: bool = False) -> Awaitable[None] | None:
        """Record a batch: now, or in the thread if it is large, must be synced, or another holds the file.

        Batches keep their order even if nobody awaits: while the thread has one, all go there; when one fails
        those behind it fail too. Rows wait for a lot, unless it `lists`. Raises StoreError, here or awaited.
        """
        if self._is_closed:
            raise StoreError(f"history {self.path}: it is not open")
        try:
            ready = _encoded(batch)
        except UnicodeEncodeError:  # half a character, which no file can keep, becomes a question mark
            ready = _encoded(codec.cleaned(batch))
        ready.lists = lists
        if self._waiting or self._is_full or ready.is_large or self._checkpointer.cutting.locked():
            return self._hand_over(lambda _: self._commit(ready))
        try:
            return self._commit(ready)
        except sqlite3.Error as error:
            if is_busy(error):
                return self._hand_over(lambda _: self._commit(ready))
            raise explained(error, self.path) from error

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        """The facts of a call behind number `after`."""
        return await self._read(lambda db: search.facts(db, call, after))

    async def samples(self, call: str) -> list[Sample]:
        """The readings of a call that were taken into the history."""
        return await self._read(lambda db: search.samples(db, call))

    async def since(self, position: int, limit: int = 1000) -> list[tuple[int, Entry]]:
        """The facts of all calls behind a position, the oldest first."""
        return await self._read(lambda db: search.since(db, position, limit))

    async def find(self, query: Query) -> list[Row]:
        """The calls that fit, newest first, at most 1,000."""
        await self._try_to_list()
        return await self._read(lambda db: search.found(db, query))

    async def children(self, call: str) -> tuple[int, int]:
        """How many calls that are over a call has made, and how many of them did not end well."""
        await self._try_to_list()
        return await self._read(lambda db: search.children(db, call))

    async def purge(self, rule: Purge) -> int:
        """Take out some of the calls that are to go, all of it off the loop; raises StoreError."""
        async with self._purging:
            await self._list()
            gone = await self._read(lambda db: purging.meant(db, rule))
            if gone:
                await self._hand_over(lambda db: purging.remove(db, gone, self.position), is_batch=False)
                self._grown += 8 * PAGE * len(gone) + 2 * sum(one.size for one in gone)
        # The file gets smaller only when its log is moved.
        if self._grown >= self._checkpointer.growth or (self._has_shrunk and not gone):
            self._grown = self._checkpointer.wake()
        self._has_shrunk = bool(gone)
        return len(gone)

    async def _list(self) -> None:
        """Write the rows that wait for the next lot; raises StoreError."""
        if self._rows and not self._is_closed:
            done = self.write(Batch(), lists=True)
            if done is not None:
                await done

    async def _try_to_list(self) -> None:
        """The same for who only reads: what cannot be listed can still be read up to here."""
        with suppress(StoreError):
            await self._list()

    async def unfinished(self) -> list[str]:
        """The calls whose end is not recorded, the oldest first."""
        return await self._read(search.unfinished)

    async def close(self) -> None:
        """Write what is waiting, move the log into the file, let go of it. A second time nothing happens."""
        if self._is_closed:
            return
        await self._try_to_list()
        self._is_closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._read_thread, self._close_reader)
        await loop.run_in_executor(self._write_thread, self._close_writer)
        self._read_thread.shutdown(wait=False)
        self._write_thread.shutdown(wait=False)

    def _open(self) -> None:
        if self._is_closed or self._writer is not None:
            raise StoreError(f"history {self.path}: a journal is opened once; make a new one")
        db = prepare(self.path, is_full=self._is_full)
        try:
            self.epoch = value(db, "epoch")
            last = db.execute("SELECT coalesce(max(pos), 0) FROM facts").fetchone()[0]
            self.position = max(int(last), int(value(db, "position") or 0))  # the last may have been purged
            self._rows = unlisted(db, int(value(db, "listed") or 0))
            db.execute("PRAGMA busy_timeout = 0")
            self._reader = connect(self.path, busy_s=5.0)
            self._reader.execute("PRAGMA query_only = 1")
        except sqlite3.Error as error:
            db.close()
            raise explained(error, self.path) from error
        self._writer = db
        self._checkpointer.start()

    def _commit(self, ready: codec.Encoded) -> None:
        db = self._writer
        if db is None:
            raise StoreError(f"history {self.path}: it is not open")
        rows = {**self._rows, **dict(ready.rows)}
        lists = ready.lists or len(rows) >= LOT
        db.execute("BEGIN IMMEDIATE")
        try:
            pos = self.position
            for length, call, seq, body in ready.facts:
                pos += length
                if length == seq:
                    db.execute(_FIRST, (pos, call, seq, body))
                elif not db.execute(_NEXT, (pos, call, seq, body, call, seq - length)).rowcount:
                    raise codec.there_already(call)
            if lists:
                db.executemany(_ROW, list(rows.values()))
                db.execute(LISTED, (str(pos),))
            for sql, columns in zip(_MORE, (ready.samples, ready.opened, ready.ended), strict=True):
                if columns:
                    db.executemany(sql, columns)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # some errors have rolled it back already
                db.execute("ROLLBACK")
            raise
        self.position, self._rows = pos, dict[str, RowColumns]() if lists else rows
        self._grown += ready.size + PAGE * (6 + len(ready.facts) // 2)  # about what the log has grown by
        if self._grown >= self._checkpointer.growth:
            self._grown = self._checkpointer.wake()

    def _hand_over(
        self, work: Callable[[sqlite3.Connection], None], *, is_batch: bool = True
    ) -> Awaitable[None]:
        self._waiting += 1
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._write_thread, self._patiently, work, is_batch)
        done.add_done_callback(self._taken)
        # Whoever stops waiting must not take the batch back: the thread may be in the midst of it.
        return asyncio.shield(done)

    def _taken(self, done: asyncio.Future[None]) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._is_broken = False

    def _patiently(self, work: Callable[[sqlite3.Connection], None], is_batch: bool) -> None:
        """In the thread: write, waiting for another writer if there is one."""
        if self._is_broken:
            raise StoreError(f"history {self.path}: not written, because a batch before it was not")
        if self._writer is None:
            raise StoreError(f"history {self.path}: it is not open")
        try:
            with self._checkpointer.cutting:
                self._writer.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
                work(self._writer)
        except (sqlite3.Error, StoreError) as error:
            self._is_broken = self._is_broken or is_batch
            raise error if isinstance(error, StoreError) else explained(error, self.path) from error
        finally:
            self._writer.execute("PRAGMA busy_timeout = 0")

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_closed:
            raise StoreError(f"history {self.path}: it is not open")
        return await asyncio.get_running_loop().run_in_executor(self._read_thread, self._guarded, read)

    def _guarded(self, read: Callable[[sqlite3.Connection], T]) -> T:
        if self._reader is None:
            raise StoreError(f"history {self.path}: it is not open")
        try:
            return read(self._reader)
        except (sqlite3.Error, UnicodeEncodeError, DecodeError) as error:
            raise explained(error, self.path) from error

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._checkpointer.stop()
            self._writer.close()
            self._writer = None


def _encoded(batch: Batch) -> codec.Encoded:
    """The batch as columns, call by call; it is put into that order itself, so that positions follow it."""
    by_call: dict[str, list[Entry]] = {}
    for entry in batch.entries:
        by_call.setdefault(entry.call, []).append(entry)
    if len(by_call) > 1:
        batch.entries = [entry for ones in by_call.values() for entry in ones]
    facts: list[codec.FactColumns] = []
    opened: list[tuple[str, float]] = []
    ended: list[tuple[str]] = []
    size, is_large = 0, False
    for call, ones in by_call.items():
        first, last = ones[0], ones[-1]
        if last.seq - first.seq != len(ones) - 1:
            raise codec.there_already(call)
        body = _encode([entry.fact for entry in ones])
        if b'":,' in body or b'":}' in body:
            body = codec.mended(ones)
        facts.append((len(ones), call, last.seq, body))
        size += len(body)
        is_large = is_large or len(body) > codec.LARGE
        is_over = any([type(entry.fact) is Finished for entry in ones])
        if first.seq == 1 and not is_over:
            opened.append((call, first.fact.at))
        elif is_over and first.seq > 1:
            ended.append((call,))
    samples = [(one.call, one.number, one.left_out, _encode(one.reading)) for one in batch.samples]
    for row in batch.rows.values():
        _ = row.message and row.message.encode()  # the only text in a row that stands in no fact
    rows = [(row.id, astuple(row)) for row in batch.rows.values()]
    return codec.Encoded(facts, samples, rows, opened, ended, size, is_large or size > codec.MUCH)
