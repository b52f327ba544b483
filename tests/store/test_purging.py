"""Calls that go: the shared contract over every journal, and the file that gets smaller."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from msgspec import Raw

from afoot.core.facts import Finished, Released, Reported
from afoot.core.ports import Purge, Query
from afoot.store import purging
from afoot.store.sqlite import SqliteJournal
from tests.store.contract_purge import *  # noqa: F403
from tests.store.contract_purge import lived, over, purged
from tests.store.sample import entries, opened, write

CHILD = """
import asyncio, sys
from afoot.core.ports import Purge
from afoot.store.sqlite import SqliteJournal

async def main():
    async with SqliteJournal(sys.argv[1]) as journal:
        while await journal.purge(Purge(before=1e9)):
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
        went = await purged(journal, Purge(most_bytes=1_000_000))
        assert 60 <= went < 120
        assert await purged(journal, Purge(most_bytes=1_000_000)) == 0
        rows = [one.id for one in await journal.find(Query(limit=1000))]
        assert rows == [f"c{n:03}" for n in range(119, went - 1, -1)]  # the oldest went
    assert path.stat().st_size < 1_100_000
    with closing(sqlite3.connect(path)) as db:
        assert purging.used(db) <= 1_000_000
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_after_a_new_start_places_go_on(tmp_path: Path) -> None:
    """H2, H6: the newest facts have gone, and their places with them."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await lived(journal, over("a", 1.0))
        await purged(journal, Purge(keep=0))
        epoch = journal.epoch
    async with SqliteJournal(path) as journal:
        assert (journal.position, journal.epoch) == (4, epoch)
        assert await journal.find(Query()) == []


async def test_a_purge_that_is_killed_leaves_whole_calls(tmp_path: Path) -> None:
    """H6: kill -9 in its midst; each call is there with everything, or gone with everything."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        for n in range(600):
            await lived(journal, over(f"c{n:03}", float(n)))
    killed = kill_in_its_midst(path)
    async with SqliteJournal(path) as journal:
        rows = {one.id for one in await journal.find(Query(limit=1000))}
        found = await journal.since(0, 10_000)
        assert {entry.call for _, entry in found} == rows and len(found) == 4 * len(rows)
        assert len(rows) <= 550 and len(rows) % purging.STEP == 0 and (killed or not rows)
        assert journal.position == 2400
        await lived(journal, over("new", 1000.0))
        await purged(journal, Purge(before=900.0))
        assert [one.id for one in await journal.find(Query())] == ["new"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_call_that_is_named_goes_however_long_the_list_is(tmp_path: Path) -> None:
    """H6: the list is not read to find it."""
    async with SqliteJournal(tmp_path / "history.db") as journal:
        await lived(journal, over("a", 1.0))
        await lived(journal, over("b", 2.0))
        assert await journal.purge(Purge(calls=["a"])) == 1
        assert [one.id for one in await journal.find(Query())] == ["b"]
        assert await journal.purge(Purge(calls=["a"])) == 0
