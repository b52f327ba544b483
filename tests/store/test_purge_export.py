"""The history as lines of JSON."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from afoot.core.facts import Finished, Started
from afoot.core.ports import Journal, PurgeRule
from afoot.errors import StoreError
from afoot.store import export
from afoot.store.sqlite import SqliteJournal
from tests.store.conftest import Opener
from tests.store.purge_contract import lived, over
from tests.store.sample_batches import entries, opened, write


async def told(journal: Journal, call: str = "") -> list[dict[str, object]]:
    """The lines, read."""
    text = b"".join([piece async for piece in export.export_lines(journal, call)])
    return [json.loads(line) for line in text.splitlines()]


async def test_calls_come_one_after_another_with_all_that_is_known(opener: Opener) -> None:
    """H6: facts, then readings; what lives comes last."""
    async with opener() as journal:
        await write(journal, *entries("live", [opened(0.0), Started(0.5)]))
        await lived(journal, over("a", 1.0))
        await lived(journal, over("b", 2.0))
        found = await told(journal)
        assert [(one["call"], one.get("seq", "reading")) for one in found] == [
            *(("b", seq) for seq in (1, 2, 3, 4)), ("b", "reading"),
            *(("a", seq) for seq in (1, 2, 3, 4)), ("a", "reading"),
            ("live", 1), ("live", 2),
        ]  # fmt: skip
        assert await told(journal, "a") == [one for one in found if one["call"] == "a"]
        assert await told(journal, "nobody") == []


async def test_a_call_that_ends_meanwhile_is_told_once_and_to_its_end(opener: Opener) -> None:
    """H6: it lived when the export began; another was purged, and is in no part there."""
    async with opener() as journal:
        await write(journal, *entries("live", [opened(0.0), Started(0.5)]))
        for n in range(3):
            await lived(journal, over(f"c{n}", float(n)))
        pieces = export.export_lines(journal)
        text = await anext(pieces)
        await write(journal, *entries("live", [Finished(9.0, "ok")], 3), over("live", 0.0))
        assert await journal.purge(PurgeRule(calls=["c1"])) == 1
        text += b"".join([piece async for piece in pieces])
        calls = [json.loads(line)["call"] for line in text.splitlines()]
        assert [(call, calls.count(call)) for call in dict.fromkeys(calls)] == [
            ("c2", 5),
            ("c0", 5),
            ("live", 3),
        ]


async def test_no_call_is_missing_or_told_twice_where_pages_meet(opener: Opener) -> None:
    """H6: also if many were opened at one moment."""
    async with opener() as journal:
        calls = [f"c{n:04}" for n in range(2300)]
        life = [over(name, float(n // 700)) for n, name in enumerate(calls)]
        first = [entry for name in calls for entry in entries(name, [opened()])]
        await write(journal, *first, *life)
        lines = await told(journal)
        assert sorted(str(one["call"]) for one in lines) == calls


async def test_a_large_call_comes_in_pieces(opener: Opener) -> None:
    """H6: so that a slow reader is not taken for none, and nobody else waits while it is encoded."""
    async with opener() as journal:
        large = b'"%s"' % (b"x" * 3 * export.PIECE_BYTES)
        await lived(journal, over("a", 1.0), opened(1.0, large))
        pieces = [piece async for piece in export.export_lines(journal)]
        assert [len(piece) for piece in pieces[:3]] == [export.PIECE_BYTES] * 3 and len(pieces) == 4
        first, *_ = b"".join(pieces).splitlines()
        assert json.loads(first)["fact"]["arguments"] == json.loads(large)


async def test_a_damaged_call_costs_no_other(tmp_path: Path) -> None:
    """H6: all others are told, then which is not."""
    path, text = tmp_path / "history.db", b""
    async with SqliteJournal(path) as journal:
        for n in range(5):
            await lived(journal, over(f"c{n}", float(n)))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE facts SET body = '[{rubbish' WHERE call = 'c2'")
    async with SqliteJournal(path) as journal:
        pieces = export.export_lines(journal)
        with pytest.raises(StoreError, match="nothing is told of 1 calls, all of the others: c2"):
            while True:
                text += await anext(pieces)
        assert {json.loads(line)["call"] for line in text.splitlines()} == {"c0", "c1", "c3", "c4"}
