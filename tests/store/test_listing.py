"""The list of calls: written in lots, complete for whoever looks, and made again after a crash."""

from pathlib import Path

from msgspec import Raw

from afoot.core.facts import Entry, Finished, Opened, Reading, Released, Sample, Started
from afoot.core.ports import Batch, Query, Row
from afoot.store.listing import LOT
from afoot.store.sqlite import SqliteJournal


def story(name: str, at: float) -> Batch:
    """A call from its beginning to its end, with the row that goes with it."""
    facts = [
        Opened(at, "tool", "local", "me", Raw(b"{}")),
        Started(at),
        Finished(at + 1, "ok"),
        Released(at + 1),
    ]
    row = Row(name, "tool", "local", "me", at, "finished", "ok", at + 1, 2.0, 3.0, "half", at, "auto")
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
        found = await journal.find(Query())
    assert found == [next(iter(batch.rows.values())) for batch in reversed(written)]


async def test_the_list_is_complete_for_whoever_looks(tmp_path: Path) -> None:
    """H1: whether a lot is full or not."""
    async with SqliteJournal(tmp_path / "calls.db") as journal:
        for n in range(LOT + 2):
            journal.write(story(f"c{n}", float(n)))
            if n in (0, LOT - 1, LOT + 1):
                assert len(await journal.find(Query(limit=1000))) == n + 1


async def test_a_call_that_is_not_over_is_in_no_list(tmp_path: Path) -> None:
    """H1: nor does it come into it by a restart."""
    path = tmp_path / "calls.db"
    async with SqliteJournal(path) as journal:
        journal.write(Batch(story("open", 1.0).entries[:2]))
    async with SqliteJournal(path) as journal:
        assert await journal.find(Query()) == []
        assert await journal.unfinished() == ["open"]
