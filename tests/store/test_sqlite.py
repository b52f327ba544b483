"""What the SQLite journal promises beyond the contract: it survives, waits for others, says what is wrong."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import Raw

from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    Fact,
    Logged,
    Question,
    Reading,
    Reported,
    Sample,
    Started,
)
from afoot.core.ports import Batch, CallQuery
from afoot.errors import StoreError
from afoot.store.sqlite import SqliteJournal
from tests.providers.fake_run import until
from tests.store.sample_batches import EVERY_FACT, batch, entries, opened, row, write

HERE = Path(__file__).parents[2]
LARGE = b'"' + b"x" * 100_000 + b'"'


async def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    """H1: facts, rows, epoch and position outlive the process."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await write(journal, *entries("a", EVERY_FACT), *entries("b", [opened()]), row("a"))
        epoch, position = journal.epoch, journal.position
    assert os.listdir(tmp_path) == ["history.db"]
    async with SqliteJournal(path) as journal:
        assert (journal.epoch, journal.position) == (epoch, position)
        assert await journal.facts("a") == entries("a", EVERY_FACT)
        assert await journal.find(CallQuery()) == [row("a")]
        assert await journal.unfinished() == ["b"]
        await write(journal, *entries("b", [Started(2.0)], 2))
        assert [pos for pos, _ in await journal.since(position)] == [position + 1]


async def test_a_new_file_has_a_new_epoch(tmp_path: Path) -> None:
    """H2: positions of an older file mean nothing in a new one."""
    async with SqliteJournal(tmp_path / "a.db") as one, SqliteJournal(tmp_path / "b.db") as other:
        assert one.epoch != other.epoch


WRITER = """
import asyncio, sys
from afoot.store.sqlite import SqliteJournal
from tests.store.sample_batches import batch, entries, opened
async def main():
    async with SqliteJournal(sys.argv[1], sys.argv[2]) as journal:
        n = 0
        while True:
            n += 1
            big = b'"' + b'x' * (100_000 if n % 50 == 0 else 10) + b'"'
            done = journal.write(batch(*entries("a", [opened(float(n), big)], n)))
            if done is not None:
                await done
            print(n, flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("durable", ["normal", "full"])
def test_nothing_acknowledged_is_lost_by_kill_nine(tmp_path: Path, durable: str) -> None:
    """H1: every fact that was acknowledged before SIGKILL is there, and nothing is half there."""
    path = tmp_path / "history.db"
    command = [sys.executable, "-c", WRITER, str(path), durable]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "src"), str(HERE)])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as writer:
        assert writer.stdout is not None
        acked = [writer.stdout.readline() for _ in range(200)]
        writer.send_signal(signal.SIGKILL)
        acked += writer.stdout.read().splitlines()
    last = max(int(line) for line in acked if line.strip())
    seqs = asyncio.run(numbers(path))
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) in (last, last + 1)


async def numbers(path: Path) -> list[int]:
    """The numbers of the facts of call "a" in this file."""
    async with SqliteJournal(path) as journal:
        found = [entry.seq for entry in await journal.facts("a")]
        assert journal.position == len(found)
        return found


async def test_a_small_batch_is_done_at_once_and_a_large_one_later(tmp_path: Path) -> None:
    """H1: what is small is committed on the loop; what is large does not hold it up."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        assert journal.write(batch(*entries("a", [opened()]))) is None
        large = journal.write(batch(*entries("b", [opened(1.0, LARGE)])))
        behind = journal.write(batch(*entries("c", [opened()])))
        assert large is not None
        assert behind is not None
        await asyncio.gather(large, behind)
        assert journal.write(batch(*entries("d", [opened()]))) is None
        assert [entry.call for _, entry in await journal.since(0)] == ["a", "b", "c", "d"]


async def test_much_together_does_not_hold_up_the_loop_either(tmp_path: Path) -> None:
    """H1: as what waited in memory while a disk was full."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        medium = opened(1.0, b'"%s"' % (b"x" * 30_000))
        done = journal.write(batch(*[one for n in range(40) for one in entries(f"c{n}", [medium])]))
        assert done is not None
        await done
        assert len(await journal.since(0)) == 40


async def test_full_durability_syncs_every_batch(tmp_path: Path) -> None:
    """H1: with durable="full" each batch goes through the thread and to the disk."""
    async with SqliteJournal(tmp_path / "history.db", "full") as journal:
        done = journal.write(batch(*entries("a", [opened()])))
        assert done is not None
        await done
        assert journal._writer is not None
        assert journal._writer.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_batches_behind_a_failed_one_fail_too(tmp_path: Path) -> None:
    """H1: no later batch overtakes one that could not be written; then all is well again."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await write(journal, *entries("a", [opened()]))
        failing = journal.write(batch(*entries("a", [opened(1.0, LARGE)])))
        behind = journal.write(batch(*entries("b", [opened()])))
        assert failing is not None
        assert behind is not None
        first, second = await asyncio.gather(failing, behind, return_exceptions=True)
        assert "there already" in str(first)
        assert "a batch before it was not" in str(second)
        assert journal.position == 1
        await write(journal, *entries("b", [opened()]))
        assert journal.position == 2


async def test_who_stops_waiting_takes_no_batch_back(tmp_path: Path) -> None:
    """H1: a cancelled wait leaves the batch whole."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        done = asyncio.ensure_future(
            journal.write(batch(*entries("a", [opened(1.0, LARGE)]))) or asyncio.sleep(0)
        )
        done.cancel()
        await write(journal, *entries("b", [opened()]))
        assert [entry.call for _, entry in await journal.since(0)] == ["a", "b"]


async def test_closing_writes_what_is_waiting(tmp_path: Path) -> None:
    """H1: a batch given before the end is in the file."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        done = journal.write(batch(*entries("a", [opened(1.0, LARGE)])))
    assert done is not None
    await done
    async with SqliteJournal(tmp_path / "history.db") as journal:
        assert journal.position == 1


async def test_another_writer_is_waited_for_off_the_loop(tmp_path: Path) -> None:
    """H1: a program that holds the file for a moment costs no fact and does not stop the loop."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        with closing(other):
            other.execute("BEGIN IMMEDIATE")
            done = journal.write(batch(*entries("a", [opened()])))
            assert done is not None
            other.execute("ROLLBACK")
            await done
        assert journal.write(batch(*entries("b", [opened()]))) is None
        assert journal.position == 2


async def test_another_writer_that_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: after a while the write fails with what to do."""
    monkeypatch.setattr("afoot.store.sqlite._BUSY_MS", 10)
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="another program is writing"):
                await write(journal, *entries("a", [opened()]))
            other.execute("ROLLBACK")
        await write(journal, *entries("a", [opened()]))


async def test_a_full_disk_is_told_and_got_over(tmp_path: Path) -> None:
    """H1: the batch is refused whole, with what to do; when there is space again it can be written."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        assert journal._writer is not None
        (pages,) = journal._writer.execute("PRAGMA page_count").fetchone()
        journal._writer.execute(f"PRAGMA max_page_count = {pages}")
        many = [*entries("a", [opened()]), *entries("a", [Logged(1.0, "x" * 60_000)], 2)]
        with pytest.raises(StoreError, match="disk is full: free some space"):
            await write(journal, *many)
        assert journal.position == 0
        journal._writer.execute("PRAGMA max_page_count = 1000000")
        await write(journal, *many)
        assert await journal.facts("a") == many


async def test_half_a_character_spoils_no_batch(tmp_path: Path) -> None:
    """H1: a lone surrogate, in a fact, deep in a fact, in a reading or in a row, becomes a question mark."""
    ask = Asked(1.0, Question("q", "k", "form", "a\ud800b", Raw(b'{"x":"\xc3\xa9"}')))
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await write(journal, *entries("a", [Logged(1.0, "\ud800\u00e9"), ask]))
        await write(journal, row("a", message="half \ud800"))
        assert journal.write(Batch(samples=[Sample("a", 1, Reading(1.0, message="\ud800"))])) is None
        clean = Asked(1.0, Question("q", "k", "form", "a?b", Raw(b'{"x":"\xc3\xa9"}')))
        assert await journal.facts("a") == entries("a", [Logged(1.0, "?\u00e9"), clean])
        assert await journal.samples("a") == [Sample("a", 1, Reading(1.0, message="?"))]
        assert await journal.find(CallQuery(text="half")) == [row("a", message="half ?")]
        with pytest.raises(StoreError, match="no valid Unicode"):
            await journal.find(CallQuery(text="\ud800"))


async def test_an_empty_value_makes_no_fact_unreadable(tmp_path: Path) -> None:
    """H1: an empty Raw is left out like NOTHING, deep in a fact too, or is null where a value must be."""
    declined = Answered(1.0, "q", Answer("decline", Raw(b"")))
    text = Logged(1.0, 'a piece of JSON: {"a":,"b":}')
    given: list[Fact] = [Reported(1.0, data=Raw()), declined, text, opened(1.0, b"")]
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await write(journal, *entries("a", given))
        kept: list[Fact] = [Reported(1.0), Answered(1.0, "q", Answer("decline")), text, opened(1.0, b"null")]
        assert await journal.facts("a") == entries("a", kept)


async def test_a_fact_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """H1: a body that is no JSON is named, not guessed at."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await write(journal, *entries("a", [Reported(1.0, data=Raw(b"{"))]))
        with pytest.raises(StoreError, match="cannot be read"):
            await journal.facts("a")


async def test_reads_do_not_run_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: a long search holds up no call."""
    seen: list[str] = []

    def found(db: sqlite3.Connection, query: CallQuery) -> list[object]:
        seen.append(threading.current_thread().name)
        return []

    monkeypatch.setattr("afoot.store.search.find_rows", found)
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await journal.find(CallQuery())
    assert seen[0].startswith("afoot-read")


async def test_a_journal_is_opened_once(tmp_path: Path) -> None:
    """H1: opening twice is refused; closing one that never opened is fine."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        with pytest.raises(StoreError, match="opened once"):
            await journal.__aenter__()
    await SqliteJournal(tmp_path / "never.db").close()
    assert not (tmp_path / "never.db").exists()


@pytest.mark.parametrize("lost", ["history.db", "history.db-wal"])
async def test_a_deleted_file_is_noticed(tmp_path: Path, lost: str) -> None:
    """H1: nothing is said to be recorded that goes to a file without a name; with the file it goes on."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await write(journal, *entries("a", [opened()]))
        journal.check()
        (tmp_path / lost).rename(tmp_path / "away")
        with pytest.raises(StoreError, match="was deleted or replaced"):
            journal.check()
        with pytest.raises(StoreError, match="was deleted or replaced"):
            await write(journal, *entries("b", [opened()]))
        (tmp_path / "away").rename(tmp_path / lost)
        await write(journal, *entries("b", [opened()]))
        assert await journal.unfinished() == ["a", "b"]


async def test_a_deleted_file_is_noticed_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: a write fails soon after, though nobody looked; no new file is made in its place."""
    monkeypatch.setattr("afoot.store.sqlite.FILE_CHECK_S", 0.01)
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await write(journal, *entries("a", [opened()]))
        (tmp_path / "history.db").unlink()
        await until(lambda: journal._checkpointer.is_file_gone)
        with pytest.raises(StoreError, match="was deleted or replaced"):
            await write(journal, *entries("b", [opened()]))
    assert not (tmp_path / "history.db").exists()
