"""The power goes, at any point of a journal's life; what lies on the disk then is opened again."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from msgspec import Struct

from afoot.core.facts import Finished, Reading, Sample, Started
from afoot.core.ports import CallQuery, PurgeRule
from afoot.store.sqlite import Checkpointer, SqliteJournal
from tests.store.purge_contract import over
from tests.store.sample_batches import batch, entries, opened
from tests.store.simulated_disk import Disk, Step, noted

Durable = Literal["normal", "full"]


class Known(Struct):
    """What a journal has acknowledged: the number of facts of each call, and which were purged."""

    facts: dict[str, int] = {}
    begun: set[str] = set()  # to go; whether they are gone is not known yet
    gone: set[str] = set()

    def hear(self, step: Step) -> None:
        """Take in what was said to the disk's notes."""
        if step.what == "ack":
            self.facts[step.name] = step.at
        elif step.what == "purge":
            self.begun.add(step.name)
        elif step.what == "purged":
            self.gone.add(step.name)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is moved and cut often, so that the power also goes in the midst of that."""
    often = partial(Checkpointer, growth=100_000, long=200_000)
    monkeypatch.setattr("afoot.store.sqlite.Checkpointer", often)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_survives_a_power_cut(tmp_path: Path, seed: int) -> None:
    """H1: with durable="full", wherever the cut is; what was purged stays gone, and the file is sound."""
    chance = random.Random(seed)
    cuts = 0
    for known, folder in lives(tmp_path, "full", chance):
        there = asyncio.run(looked(folder / "history.db"))
        for call, count in known.facts.items():
            if call not in known.begun:
                assert there.get(call, 0) >= count, f"{call} lost facts"
        assert not known.gone & set(there), "what was purged came back"
        cuts += 1
    assert cuts > 60


@pytest.mark.parametrize("seed", range(2))
def test_the_usual_mode_may_lose_the_last_moments_but_never_the_file(tmp_path: Path, seed: int) -> None:
    """H1: with durable="normal" a cut may take the newest facts; none is left without those before it."""
    chance = random.Random(seed)
    lost = 0
    for known, folder in lives(tmp_path, "normal", chance):
        there = asyncio.run(looked(folder / "history.db"))
        missing = [n for call, n in known.facts.items() if call not in known.begun and there.get(call, 0) < n]
        lost += bool(missing)
    assert lost > 0, "a disk that loses nothing proves nothing"


def test_one_cut_after_the_other(tmp_path: Path) -> None:
    """H1: the power also goes while what is left by the last cut is opened and written on."""
    chance = random.Random(7)
    folder, known = tmp_path / "0", Known()
    folder.mkdir()
    for life in range(1, 12):
        with noted(folder) as disk:
            asyncio.run(lived(disk, "full", chance, f"life{life}-"))
        point = chance.randrange(len(disk.steps))
        for step in disk.steps[:point]:
            disk.take(step)
            known.hear(step)
        folder = tmp_path / str(life)
        disk.cut(chance, folder)
        copy = shutil.copytree(folder, tmp_path / f"copy{life}")
        there = asyncio.run(looked(copy / "history.db"))
        assert all(there.get(call, 0) >= n for call, n in known.facts.items() if call not in known.begun)


def lives(root: Path, durable: Durable, chance: random.Random) -> Iterator[tuple[Known, Path]]:
    """One life of a journal, and what the disk may have after a cut: at some of all its points."""
    home = root / "home"
    home.mkdir()
    with noted(home) as disk:
        asyncio.run(lived(disk, durable, chance))
    known, points = Known(), set(chance.sample(range(len(disk.steps)), 80))
    for point, step in enumerate(disk.steps):
        disk.take(step)
        known.hear(step)
        if point in points:
            folder = root / f"cut{point}"
            disk.cut(chance, folder)
            yield known, folder


async def lived(disk: Disk, durable: Durable, chance: random.Random, name: str = "") -> None:
    """Open, write calls of every size side by side, have some go, close."""
    async with SqliteJournal(disk.folder / "history.db", durable) as journal:
        for turn in range(6):
            calls = [f"{name}{turn}-{n}" for n in range(8)]
            await asyncio.gather(*(wrote(disk, journal, call, chance) for call in calls))
            gone = chance.sample(calls, 3)
            for call in gone:
                disk.note("purge", call)
            await journal.purge(PurgeRule(calls=gone))
            for call in gone:
                disk.note("purged", call)


async def wrote(disk: Disk, journal: SqliteJournal, call: str, chance: random.Random) -> None:
    """A call from its beginning to its end; the disk's notes have each fact once it is acknowledged."""
    text = b'"%s"' % (b"x" * chance.choice((10, 1_000, 20_000, 80_000)))
    life = [opened(1.0, text), Started(1.0), Finished(2.0, "ok")]
    for seq, fact in enumerate(life, 1):
        one = batch(*entries(call, [fact], seq), *([over(call, 1.0)] if seq == 3 else []))
        one.samples.append(Sample(call, seq, Reading(1.0, seq)))
        done = journal.write(one)
        if done is not None:
            await done
        disk.note("ack", call, seq)
        await asyncio.sleep(0)


async def looked(path: Path) -> dict[str, int]:
    """Open what is left, write on, and see that it is sound; how many facts each call has."""
    async with SqliteJournal(path, "full") as journal:
        before = journal.position
        found = await journal.since(0, 100_000)
        assert len({place for place, _ in found}) == len(found)
        await asyncio.wait_for(journal.write(batch(*entries("after", [opened()]))) or asyncio.sleep(0), 20)
        assert (journal.position, len(await journal.facts("after"))) == (before + 1, 1)
        rows = {row.id for row in await journal.find(CallQuery(limit=1000))}
    seqs: dict[str, list[int]] = {}
    for _, entry in found:
        seqs.setdefault(entry.call, []).append(entry.seq)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in seqs.values())
    assert {call for call, numbers in seqs.items() if len(numbers) == 3} == rows
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return {call: len(numbers) for call, numbers in seqs.items()}
