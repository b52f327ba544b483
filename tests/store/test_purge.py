"""Calls that go: the shared contract over every journal, and the file that gets smaller."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import Raw

from afoot.core.facts import Fact, Finished, Released, Reported, Result
from afoot.core.ports import CallQuery, PurgeRule
from afoot.errors import StoreError
from afoot.store import purge
from afoot.store.sqlite import SqliteJournal
from tests.e2e.gateway import until
from tests.store.purge_contract import *  # noqa: F403
from tests.store.purge_contract import lived, over, purged
from tests.store.sample_batches import entries, opened, write

CHILD = """
import asyncio, sys
from afoot.core.ports import PurgeRule
from afoot.store.sqlite import SqliteJournal

async def main():
    async with SqliteJournal(sys.argv[1]) as journal:
        while await journal.purge(PurgeRule(before=1e9)):
            print("step", flush=True)
            await asyncio.sleep(0)

asyncio.run(main())
"""


def kill_in_its_midst(path: Path) -> bool:
    """Purge in another process, and kill it after its first step; False if it was done by then."""
    with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"step\n"
        os.kill(child.pid, signal.SIGKILL)
    return child.returncode != 0


async def test_the_file_gets_smaller_and_stays_below_its_limit(tmp_path: Path) -> None:
    """H6: by size; what is free is given back."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        for n in range(120):
            life = [
                opened(float(n)),
                Reported(n + 0.1, data=Raw(b'"%s"' % (b"x" * 20_000))),
                Finished(n + 0.5, "ok"),
            ]
            await write(
                journal, *entries(f"c{n:03}", [*life, Released(n + 0.5)]), over(f"c{n:03}", float(n), 0.5)
            )
        went = await purged(journal, PurgeRule(most_bytes=1_000_000))
        assert 60 <= went < 120
        assert await purged(journal, PurgeRule(most_bytes=1_000_000)) == 0
        rows = [one.id for one in await journal.find(CallQuery(limit=1000))]
        assert rows == [f"c{n:03}" for n in range(119, went - 1, -1)]  # the oldest went
    assert path.stat().st_size < 1_100_000
    with closing(sqlite3.connect(path)) as db:
        assert purge.used_bytes(db) <= 1_000_000
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def large(journal: SqliteJournal, count: int, size: int) -> None:
    """Calls with results of this size."""
    for n in range(count):
        text = Raw(b'"%s"' % (b"x" * size))
        life: list[Fact] = [
            opened(float(n)),
            Reported(n + 0.1, data=text),
            Finished(n + 0.5, "ok"),
            Released(n + 0.5),
        ]
        await write(journal, *entries(f"c{n:03}", life), over(f"c{n:03}", float(n), 0.5))


async def test_no_more_goes_than_is_too_much(tmp_path: Path) -> None:
    """H6: one large call over the limit does not cost fifty others."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await large(journal, 20, 500_000)
        assert await purged(journal, PurgeRule(most_bytes=12_530_000)) == 2  # a quarter is for the log


async def test_the_log_counts_as_part_of_the_history(tmp_path: Path) -> None:
    """H8: file and log together obey the limit, also while both grow."""
    path = tmp_path / "history.db"
    log = tmp_path / "history.db-wal"
    most = 8_000_000
    async with SqliteJournal(path) as journal:
        for n in range(60):
            result = Result(Raw(b'"%s"' % (b"x" * 500_000)))
            life: list[Fact] = [opened(float(n)), Finished(n + 0.5, "ok", result), Released(n + 0.5)]
            await write(journal, *entries(f"c{n:03}", life), over(f"c{n:03}", float(n), 0.5))
            await purged(journal, PurgeRule(most_bytes=most))
        assert journal.written_bytes > 60 * 500_000
        until(lambda: path.stat().st_size + log.stat().st_size <= most, "both within the limit")


async def test_large_calls_go_in_smaller_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H6: so that whoever writes waits for none of them long; all that was free is given back."""
    monkeypatch.setattr(purge, "STEP_BYTES", 1_000_000)
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await large(journal, 20, 600_000)
        assert [await journal.purge(PurgeRule(keep=2)) for _ in range(10)] == [2] * 9 + [0]
    assert path.stat().st_size < 1_500_000


async def test_the_file_gets_smaller_while_its_gateway_runs(tmp_path: Path) -> None:
    """H6: who has calls go to make room does not have to stop anything."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await large(journal, 40, 50_000)
    async with SqliteJournal(path) as journal:
        assert path.stat().st_size > 2_000_000
        assert await purged(journal, PurgeRule(keep=0)) == 40
        await asyncio.to_thread(until, lambda: path.stat().st_size < 200_000, "the file to get smaller", 20.0)


async def test_a_purge_that_fails_costs_no_fact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H6, H1: what is written behind it is no part of it."""

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("the disk is full")

    written = 0
    async with SqliteJournal(tmp_path / "history.db", "full") as journal:
        await lived(journal, over("a", 1.0))
        monkeypatch.setattr(purge, "delete_calls", full)
        going = asyncio.create_task(journal.purge(PurgeRule(keep=0)))
        while not going.done():
            written += 1
            await write(journal, *entries(f"b{written}", [opened()]))
        with pytest.raises(StoreError, match="the disk is full"):
            await going
        assert len(await journal.since(4)) == written >= 1


async def test_a_purge_for_which_the_list_cannot_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H6: a call that is not in the list yet would stay, as if there were none."""
    monkeypatch.setattr("afoot.store.sqlite._BUSY_MS", 10)
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await lived(journal, over("a", 1.0))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="another program is writing"):
                await journal.purge(PurgeRule(calls=["a"]))
        assert await journal.purge(PurgeRule(calls=["a"])) == 1


async def test_of_two_purges_at_once_each_counts_what_went_by_it(tmp_path: Path) -> None:
    """H6: by a person and by itself, say."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        for n in range(450):
            await lived(journal, over(f"c{n:03}", float(n)))
        went = await asyncio.gather(
            purged(journal, PurgeRule(keep=0)), purged(journal, PurgeRule(before=1e9))
        )
        assert sum(went) == 450


async def test_a_damaged_call_goes_like_any_other(tmp_path: Path) -> None:
    """H6: it stops neither its own end nor that of those behind it."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        for n in range(3):
            await lived(journal, over(f"c{n}", float(n)))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE facts SET body = '[{rubbish' WHERE call = 'c0'")
    async with SqliteJournal(path) as journal:
        assert await purged(journal, PurgeRule(keep=1)) == 2
        assert [one.id for one in await journal.find(CallQuery())] == ["c2"]


async def test_after_a_new_start_places_go_on(tmp_path: Path) -> None:
    """H2, H6: the newest facts have gone, and their places with them."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await lived(journal, over("a", 1.0))
        await purged(journal, PurgeRule(keep=0))
        epoch = journal.epoch
    async with SqliteJournal(path) as journal:
        assert (journal.position, journal.epoch) == (4, epoch)
        assert await journal.find(CallQuery()) == []


async def test_a_purge_that_is_killed_leaves_whole_calls(tmp_path: Path) -> None:
    """H6: kill -9 in its midst; each call is there with everything, or gone with everything."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        for n in range(600):
            await lived(journal, over(f"c{n:03}", float(n)))
    killed = kill_in_its_midst(path)
    async with SqliteJournal(path) as journal:
        rows = {one.id for one in await journal.find(CallQuery(limit=1000))}
        found = await journal.since(0, 10_000)
        assert {entry.call for _, entry in found} == rows and len(found) == 4 * len(rows)
        assert len(rows) <= 550 and len(rows) % purge.STEP_CALLS == 0 and (killed or not rows)
        assert journal.position == 2400
        await lived(journal, over("new", 1000.0))
        await purged(journal, PurgeRule(before=900.0))
        assert [one.id for one in await journal.find(CallQuery())] == ["new"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_call_that_is_named_goes_however_long_the_list_is(tmp_path: Path) -> None:
    """H6: the list is not read to find it."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await lived(journal, over("a", 1.0))
        await lived(journal, over("b", 2.0))
        assert await journal.purge(PurgeRule(calls=["a"])) == 1
        assert [one.id for one in await journal.find(CallQuery())] == ["b"]
        assert await journal.purge(PurgeRule(calls=["a"])) == 0
