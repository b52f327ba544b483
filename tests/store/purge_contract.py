"""What every journal promises of calls that go. `test_purge` runs it over all that there are."""

import asyncio

import pytest
from msgspec.structs import replace

from afoot.core.facts import Fact, Finished, HandedOver, Opened, Reading, Released, Sample, Started
from afoot.core.ports import Batch, CallQuery, CallRow, Journal, PurgeRule
from tests.store.conftest import Opener
from tests.store.sample_batches import entries, opened, row, write


def over(call: str, at: float, took_s: float = 1.0, parent: str = "", outcome: str = "ok") -> CallRow:
    """The line of a call that has ended."""
    line = row(call, at, state="finished", outcome=outcome)
    return replace(line, finished=at + took_s, parent=parent)


async def lived(
    journal: Journal, line: CallRow, first: Opened | None = None, *, is_late_task: bool = False
) -> None:
    """Write a call from its beginning to its end, with a reading."""
    assert line.finished is not None
    life: list[Fact] = [
        first or opened(line.opened),
        Started(line.opened),
        *([HandedOver(line.opened)] if is_late_task else []),
        Finished(line.finished, "ok"),
        Released(line.finished),
    ]
    await write(journal, *entries(line.id, life), line)
    done = journal.write(Batch(samples=[Sample(line.id, 1, Reading(line.opened, 1.0))]))
    if done is not None:
        await done


async def purged(journal: Journal, rule: PurgeRule) -> int:
    """Have all go that are to go; how many went."""
    count = 0
    while went := await journal.purge(rule):
        count += went
    return count


async def left(journal: Journal) -> list[str]:
    """The calls that are still there, oldest first."""
    return [one.id for one in await journal.find(CallQuery(limit=1000))][::-1]


@pytest.mark.parametrize(
    ("rule", "stay"),
    [
        (PurgeRule(before=3.0), ["slow", "c3", "c4", "c5"]),
        (PurgeRule(keep=2), ["c4", "c5"]),
        (PurgeRule(keep=0), []),
        (PurgeRule(keep=100), ["slow", "c0", "c1", "c2", "c3", "c4", "c5"]),
        (PurgeRule(keep=2, spare={"c1"}), ["c1", "c4", "c5"]),
        (PurgeRule(calls=["c2", "c4", "nobody"]), ["slow", "c0", "c1", "c3", "c5"]),
        (PurgeRule(), ["slow", "c0", "c1", "c2", "c3", "c4", "c5"]),
    ],
)
async def test_what_a_rule_means_goes_and_nothing_else(
    opener: Opener, rule: PurgeRule, stay: list[str]
) -> None:
    """H6: by age, by count, by name; what ended late is not old."""
    async with opener() as journal:
        await lived(journal, over("slow", -1.0, 100.0))
        for n in range(6):
            await lived(journal, over(f"c{n}", float(n), 0.5))
        assert await purged(journal, rule) == 7 - len(stay)
        assert await left(journal) == stay
        for call in ("slow", *(f"c{n}" for n in range(6))):
            assert len(await journal.facts(call)) == 4 * (call in stay)
            assert len(await journal.samples(call)) == (call in stay)
        assert {entry.call for _, entry in await journal.since(0)} == set(stay)


async def test_the_newest_are_those_that_came_last_whatever_a_clock_said(opener: Opener) -> None:
    """H6, C1: the clock was set back by a day; what is new since then is not the first to go."""
    async with opener() as journal:
        for n in range(4):
            await lived(journal, over(f"before{n}", 90_000.0 + n))
        for n in range(3):
            await lived(journal, over(f"after{n}", 3_600.0 + n))
        assert await purged(journal, PurgeRule(keep=4)) == 3
        assert await left(journal) == ["after0", "after1", "after2", "before3"]


@pytest.mark.parametrize("rule", [PurgeRule(before=9.0, claimed=4.0), PurgeRule(keep=1, claimed=4.0)])
async def test_what_a_caller_may_ask_for_goes_once_its_time_is_over(opener: Opener, rule: PurgeRule) -> None:
    """H6, H3, H7, D2: tasks, also late ones, and calls with a key, by their end; others go as ever."""
    async with opener() as journal:
        for n in range(1, 6):
            await lived(journal, over(f"task{n}", float(n)), replace(opened(float(n)), task=True))
            await lived(journal, over(f"key{n}", n + 0.2), replace(opened(n + 0.2), key="k"))
            await lived(journal, over(f"late{n}", n + 0.3), is_late_task=True)
            await lived(journal, over(f"any{n}", n + 0.4))
        await lived(journal, over("last", 100.0))
        assert await purged(journal, rule) == 11
        spared = [f"{kind}{n}" for n in (3, 4, 5) for kind in ("task", "key", "late")]
        assert await left(journal) == [*spared, "last"]
        assert await purged(journal, PurgeRule(keep=1)) == 9  # whoever says so means these too


async def test_a_number_may_be_larger_than_any_history(opener: Opener) -> None:
    """H6: nothing goes, and nothing breaks."""
    async with opener() as journal:
        await lived(journal, over("a", 1.0))
        assert await purged(journal, PurgeRule(keep=10**30)) == 0


async def test_a_call_that_lives_never_goes(opener: Opener) -> None:
    """H6: whatever the rule says."""
    async with opener() as journal:
        await write(journal, *entries("live", [opened(1.0), Started(1.0)]))
        await lived(journal, over("done", 2.0))
        for rule in (PurgeRule(keep=0), PurgeRule(before=1e9), PurgeRule(calls=["live"])):
            await purged(journal, rule)
        assert len(await journal.facts("live")) == 2
        assert await journal.unfinished() == ["live"]
        assert await left(journal) == []
        await write(journal, *entries("live", [Finished(3.0, "ok")], 3), over("live", 1.0))
        assert await purged(journal, PurgeRule(keep=0)) == 1


async def test_places_are_never_given_out_twice(opener: Opener) -> None:
    """H2, H6: whoever reads along goes on behind the newest, also if that has gone."""
    async with opener() as journal:
        await lived(journal, over("a", 1.0))
        await lived(journal, over("b", 2.0))
        assert journal.position == 8
        await purged(journal, PurgeRule(calls=["b"]))
        assert journal.position == 8
        await lived(journal, over("c", 3.0))
        assert [pos for pos, _ in await journal.since(4)] == [9, 10, 11, 12]


async def test_many_calls_go_while_others_are_written(opener: Opener) -> None:
    """H6: without stopping; each is whole or gone."""
    async with opener() as journal:
        for n in range(200):
            await lived(journal, over(f"old{n}", float(n)))
        going = asyncio.create_task(purged(journal, PurgeRule(before=150.0)))
        for n in range(60):
            await lived(journal, over(f"new{n}", 1000.0 + n))
            await asyncio.sleep(0)
        assert await going == 149
        assert len(await left(journal)) == 51 + 60
        assert len(await journal.since(0, 10_000)) == 4 * (51 + 60)


async def test_the_calls_below_a_call_are_found_and_counted(opener: Opener) -> None:
    """V1: of those that are over."""
    async with opener() as journal:
        await lived(journal, over("top", 1.0))
        for n in range(5):
            await lived(journal, over(f"c{n}", 2.0 + n, parent="top", outcome="failed" if n == 3 else "ok"))
        await lived(journal, over("other", 9.0, parent="c1"))
        assert await journal.children("top") == (5, 1)
        assert await journal.children("c1") == (1, 0) and await journal.children("other") == (0, 0)
        assert await journal.children("") == (0, 0)
        below = await journal.find(CallQuery(parent="top", limit=2))
        assert [one.id for one in below] == ["c4", "c3"] and below[0].parent == "top"


async def test_a_key_is_forgotten_with_its_call(opener: Opener) -> None:
    """D2, H6: an older call of the same key is then the newest."""
    async with opener() as journal:
        for name, at in (("a", 1.0), ("b", 2.0)):
            await lived(journal, replace(over(name, at), key="k"), replace(opened(at), key="k"))
        assert await journal.keyed("local", "k") == "b"
        assert await journal.purge(PurgeRule(calls=["b"])) == 1
        assert await journal.keyed("local", "k") == "a"
        assert await journal.purge(PurgeRule(calls=["a"])) == 1
        assert await journal.keyed("local", "k") is None
