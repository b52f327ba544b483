"""The thread that moves the write-ahead log into the file."""

import time
from functools import partial
from pathlib import Path

import pytest

from afoot.store.checkpointer import Checkpointer
from afoot.store.sqlite import SqliteJournal
from tests.store.sample import entries, opened, write


async def test_the_log_stays_short_under_a_writer_that_never_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H1: the file grows, its log does not; nothing is lost on the way."""
    small = 256 * 1024
    eager = partial(Checkpointer, growth=small, long=2 * small)
    monkeypatch.setattr("afoot.store.sqlite.Checkpointer", eager)
    path = tmp_path / "history.db"
    log = path.with_name("history.db-wal")
    longest = 0
    async with SqliteJournal(path) as journal:
        for n in range(2000):
            await write(journal, *entries(f"call-{n:032x}", [opened(1.0, b'"' + b"x" * 5000 + b'"')]))
            longest = max(longest, log.stat().st_size)
        assert path.stat().st_size > 8 * small
    # All of it would be some 30 MB.
    assert longest < 12_000_000
    async with SqliteJournal(path) as journal:
        assert journal.position == 2000


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
