"""Which files the SQLite journal makes, and which it refuses with what words."""

import errno
import os
import sqlite3
import stat
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from afoot.core.facts import Finished
from afoot.core.ports import CallQuery
from afoot.errors import StoreError
from afoot.store.schema import PAGE_BYTES, SCHEMA_VERSION
from afoot.store.search import KEYED
from afoot.store.sqlite import SqliteJournal
from tests.store.sample_batches import entries, opened, row, write


def mode(path: Path) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


async def refused(path: Path) -> str:
    """What is said when this file is to be a history."""
    with pytest.raises(StoreError) as caught:
        async with SqliteJournal(path):
            pass
    assert str(path) in str(caught.value)
    return str(caught.value)


async def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    """S1: file and side files 0600, a folder made for them 0700."""
    path = tmp_path / "state" / "history.db"
    async with SqliteJournal(path) as journal:
        await write(journal, *entries("a", [opened()]))
        assert mode(path.parent) == 0o700
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}
        assert len(list(path.parent.iterdir())) == 3


async def test_a_file_of_the_version_before_is_made_one_of_this(tmp_path: Path) -> None:
    """H1, A3: nothing of it is lost, and what it could not say is empty."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await write(journal, *entries("a", [opened()]), row("a"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP INDEX below")
        db.execute("DROP INDEX keys")
        db.execute("ALTER TABLE calls DROP COLUMN ran_s")
        db.execute("ALTER TABLE calls DROP COLUMN key")
        db.execute("ALTER TABLE calls DROP COLUMN approved")
        db.execute("ALTER TABLE calls DROP COLUMN parent")
        db.execute("PRAGMA auto_vacuum = 0")
        db.execute("VACUUM")
        assert db.execute("PRAGMA auto_vacuum").fetchone() == (0,)
        db.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
        db.commit()
    async with SqliteJournal(path) as journal:
        assert [(one.id, one.approved) for one in await journal.find(CallQuery())] == [("a", "")]
        assert len(await journal.facts("a")) == 1
    async with SqliteJournal(path) as journal:
        assert len(await journal.find(CallQuery())) == 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA auto_vacuum").fetchone() == (2,)


async def test_keys_of_a_file_of_version_3_are_found(tmp_path: Path) -> None:
    """D2: they stand in the first facts of its calls; a damaged one stops nobody."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        for name, at, key in (("a", 1.0, "k"), ("b", 2.0, "k"), ("c", 3.0, ""), ("d", 4.0, "d")):
            first = replace(opened(at, b'{"key":"in the arguments"}'), key=key)
            await write(journal, *entries(name, [first, Finished(at, "ok")]), row(name, at, key=key))
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP INDEX keys")
        db.execute("ALTER TABLE calls DROP COLUMN ran_s")
        db.execute("ALTER TABLE calls DROP COLUMN key")
        db.execute("UPDATE facts SET body = substr(body, 1, length(body) - 1) WHERE call = 'd'")
        db.execute("UPDATE meta SET value = '3' WHERE key = 'schema'")
        db.commit()
    async with SqliteJournal(path) as journal:
        assert [one.key for one in await journal.find(CallQuery())] == ["", "", "k", "k"]
        assert await journal.keyed("local", "k") == "b"
        assert await journal.keyed("local", "in the arguments") is None
    with closing(sqlite3.connect(path)) as db:
        [plan] = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + KEYED, ("local", "k"))]
        assert (
            "USING INDEX keys (caller=? AND key=?)" in plan
            or "COVERING INDEX keys (caller=? AND key=?)" in plan
        )


async def test_a_row_of_version_4_ran_from_its_start_to_its_end(tmp_path: Path) -> None:
    """P9: it does not tell how long people took; a call that never started did not run."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        ran = replace(row("a"), started=2.0, finished=9.0)
        await write(journal, *entries("a", [opened()]), ran, *entries("b", [opened()]), row("b", 2.0))
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE calls DROP COLUMN ran_s")
        db.execute("UPDATE meta SET value = '4' WHERE key = 'schema'")
        db.commit()
    async with SqliteJournal(path) as journal:
        assert [one.ran_s for one in await journal.find(CallQuery())] == [None, 7.0]


class Cramped(sqlite3.Connection):
    """Has no room for a second copy of the file."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Refuse what needs one."""
        if sql == "VACUUM":
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *values)


async def test_an_older_file_without_room_to_be_made_anew_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """H1, H6: it only gets no smaller; the next start tries again."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await write(journal, *entries("a", [opened()]))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA auto_vacuum = 0")
        db.execute("VACUUM")
    monkeypatch.setattr("afoot.store.schema.sqlite3.connect", partial(sqlite3.connect, factory=Cramped))
    async with SqliteJournal(path) as journal:
        assert len(await journal.facts("a")) == 1
    assert "next try at the next start" in caplog.text


async def test_a_file_of_its_own_name_for_memory_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H1: no name of a file makes SQLite forget."""
    monkeypatch.chdir(tmp_path)
    async with SqliteJournal(":memory:"):
        pass
    assert (tmp_path / ":memory:").stat().st_size > 0


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    """H1: a folder in the file's place."""
    assert "this is a folder" in await refused(tmp_path)


async def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    """H1: somebody's text file."""
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n" * 1000)
    assert "no SQLite file" in await refused(path)
    assert path.read_text() == "my notes\n" * 1000


async def test_another_programs_database_is_refused_and_kept(tmp_path: Path) -> None:
    """H1: somebody's database."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE music (title TEXT)")
    before = path.read_bytes()
    assert "another program's database" in await refused(path)
    assert path.read_bytes() == before


async def test_a_file_of_a_newer_afoot_is_refused(tmp_path: Path) -> None:
    """H1: a schema that this program does not know."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path):
        pass
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
        db.commit()
    said = await refused(path)
    assert "schema 99" in said
    assert f"up to {SCHEMA_VERSION}" in said


async def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    """H1: a page overwritten with rubbish."""
    path = tmp_path / "history.db"
    async with SqliteJournal(path) as journal:
        await write(journal, *(entry for n in range(500) for entry in entries(f"c{n}", [opened()])))
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(os.urandom(PAGE_BYTES * 20))
    with pytest.raises(StoreError, match=r"damaged|cannot be read"):
        async with SqliteJournal(path) as journal:
            await journal.since(0)


async def test_a_half_made_file_is_made_whole(tmp_path: Path) -> None:
    """H1: killed between making the file and its tables, the next start goes on."""
    path = tmp_path / "history.db"
    path.touch()
    async with SqliteJournal(path) as journal:
        await write(journal, *entries("a", [opened()]))


async def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    """H1: the folder cannot be made."""
    (tmp_path / "file").touch()
    assert "cannot be made" in await refused(tmp_path / "file" / "history.db")


async def test_a_place_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: not ours to write."""

    def denied(*_: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("afoot.store.schema.os.open", denied)
    assert "cannot be made or written (Permission denied)" in await refused(tmp_path / "history.db")
