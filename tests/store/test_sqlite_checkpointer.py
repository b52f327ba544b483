"""The thread that moves the write-ahead log into the file."""

import time
from functools import partial
from pathlib import Path

import pytest

from afoot.store.sqlite import Checkpointer, SqliteJournal
from tests.store.sample_batches import entries, opened, write


async def test_the_log_stays_short_under_a_writer_that_never_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H1: the file grows, its log does not; nothing is lost on the way."""
    small = 256 * 1024
    eager = partial(Checkpointer, growth=small, long=2 * small)
    monkeypatch.setattr("afoot.store.sqlite.Checkpointer", eager)
    path = tmp_path / "history.db"
    log = path.with_name("history.db-wal")
    written, size, cuts = 0, 0, 0
    async with SqliteJournal(path) as journal:
        while cuts < 4 and written < 50_000:  # how soon the thread has its turn is the machine's affair
            written += 1
            await write(journal, *entries(f"call-{written:032x}", [opened(1.0, b'"' + b"x" * 5000 + b'"')]))
            before, size = size, log.stat().st_size
            cuts += size < before
        assert path.stat().st_size > 2 * small
    assert cuts == 4, f"the log was cut {cuts} times in {written} writes"
    async with SqliteJournal(path) as journal:
        assert journal.position == written


def test_trouble_is_logged_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """H1: a log that cannot be moved now is moved later."""
    (tmp_path / "folder").mkdir()
    mover = Checkpointer(tmp_path / "folder", growth=1)
    mover.start()
    for _ in range(2):
        before = len(caplog.records)
        mover.wake()
        end = time.monotonic() + 10
        while len(caplog.records) == before and time.monotonic() < end:
            time.sleep(0.005)
    mover.stop()
    assert len(caplog.records) >= 2
    assert "next try later" in caplog.text
