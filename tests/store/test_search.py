"""The list of calls: written in lots, complete for whoever looks, and made again after a crash."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import Raw

from afoot.core.facts import (
    Entry,
    Failure,
    Finished,
    Opened,
    Reading,
    Released,
    Reported,
    Result,
    Sample,
    Started,
)
from afoot.core.ports import Batch, CallQuery, CallRow
from afoot.errors import StoreError
from afoot.store.search import ROW_BATCH
from afoot.store.sqlite import SqliteJournal


def story(name: str, at: float) -> Batch:
    """A call from its beginning to its end, with the row that goes with it."""
    facts = [
        Opened(at, "tool", "local", "me", Raw(b"{}")),
        Started(at),
        Finished(at + 1, "ok"),
        Released(at + 1),
    ]
    row = CallRow(
        name, "tool", "local", "me", at, "finished", "ok", at + 1, 2.0, 3.0, "half", at, "auto", ran_s=1.0
    )
    sample = Sample(name, 7, Reading(at, 2.0, 3.0, "half"))
    return Batch([Entry(name, seq, fact) for seq, fact in enumerate(facts, 1)], [sample], {name: row})


async def test_rows_that_a_crash_took_are_made_again(tmp_path: Path) -> None:
    """H1: a row waits for its lot, its facts do not; so the list is whole again when the file is opened."""
    path = tmp_path / "calls.db"
    lost = SqliteJournal(path)
    async with lost:
        written = [story(f"c{n}", float(n)) for n in range(3)]
        for batch in written:
            lost.write(batch)
        lost._rows.clear()  # as if the process had died now
    async with SqliteJournal(path) as journal:
        found = await journal.find(CallQuery())
    assert found == [next(iter(batch.rows.values())) for batch in reversed(written)]


async def test_a_report_after_the_last_sample_is_how_far_it_came(tmp_path: Path) -> None:
    """H1, E2: a fact may be newer than every sample."""
    path = tmp_path / "calls.db"
    async with SqliteJournal(path) as lost:
        told = story("c", 1.0)
        told.entries[2:] = [
            Entry("c", 3, Reported(1.5, 1, 3.0, 3.0, "all")),
            Entry("c", 4, Finished(2.0, "ok")),
        ]
        lost.write(told)
        lost._rows.clear()
    async with SqliteJournal(path) as journal:
        [found] = await journal.find(CallQuery())
    assert (found.progress, found.message) == (3.0, "all")


async def test_why_a_call_did_not_end_well_is_made_again_too(tmp_path: Path) -> None:
    """H1, E2: not what it said last, but what went wrong."""
    path = tmp_path / "calls.db"
    async with SqliteJournal(path) as lost:
        told = story("c", 1.0)
        told.entries[2:] = [Entry("c", 3, Finished(2.0, "failed", None, Failure("the floor gave way")))]
        lost.write(told)
        lost._rows.clear()
    async with SqliteJournal(path) as journal:
        [found] = await journal.find(CallQuery(text="gave way"))
    assert (found.progress, found.message) == (2.0, "the floor gave way")


async def test_the_result_by_which_a_call_is_listed_is_made_again_too(tmp_path: Path) -> None:
    """H1, V1: not what it said last, where its result is a line for people."""
    path = tmp_path / "calls.db"
    async with SqliteJournal(path) as lost:
        told = story("c", 1.0)
        result = Result(Raw(b'[{"type":"text","text":"240 pages"}]'))
        told.entries[2:] = [Entry("c", 3, Finished(2.0, "ok", result))]
        lost.write(told)
        lost._rows.clear()
    async with SqliteJournal(path) as journal:
        [found] = await journal.find(CallQuery())
    assert (found.progress, found.message) == (2.0, "240 pages")


async def test_a_damaged_fact_stops_no_gateway(tmp_path: Path) -> None:
    """H1: its call is in no list that is made again; all others are, and the file opens."""
    path = tmp_path / "calls.db"
    async with SqliteJournal(path) as lost:
        for n in range(3):
            lost.write(story(f"c{n}", float(n)))
        lost._rows.clear()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE facts SET body = substr(body, 1, 40) WHERE call = 'c1'")
    async with SqliteJournal(path) as journal:
        assert [row.id for row in await journal.find(CallQuery())] == ["c2", "c0"]
        with pytest.raises(StoreError, match="a fact in it cannot be read"):
            await journal.facts("c1")


async def test_the_list_is_complete_for_whoever_looks(tmp_path: Path) -> None:
    """H1: whether a lot is full or not."""
    async with SqliteJournal(tmp_path / "calls.db") as journal:
        for n in range(ROW_BATCH + 2):
            journal.write(story(f"c{n}", float(n)))
            if n in (0, ROW_BATCH - 1, ROW_BATCH + 1):
                assert len(await journal.find(CallQuery(limit=1000))) == n + 1


async def test_a_call_that_is_not_over_is_in_no_list(tmp_path: Path) -> None:
    """H1: nor does it come into it by a restart."""
    path = tmp_path / "calls.db"
    async with SqliteJournal(path) as journal:
        journal.write(Batch(story("open", 1.0).entries[:2]))
    async with SqliteJournal(path) as journal:
        assert await journal.find(CallQuery()) == []
        assert await journal.unfinished() == ["open"]
