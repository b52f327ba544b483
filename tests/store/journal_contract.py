"""What every journal promises. `test_journal_contract` runs it over all that there are."""

import asyncio

import pytest
from msgspec import Raw
from msgspec.structs import replace

from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    Finished,
    Opened,
    Question,
    Reading,
    Released,
    Sample,
    Started,
)
from afoot.core.ports import Batch, CallQuery, CallRow
from afoot.errors import StoreError
from tests.store.conftest import Opener
from tests.store.sample_batches import EVERY_FACT, batch, entries, opened, row, write


async def test_every_fact_comes_back_as_it_was_written(opener: Opener) -> None:
    """H1: nothing of a fact is lost in the journal."""
    async with opener() as journal:
        await write(journal, *entries("a", EVERY_FACT))
        assert await journal.facts("a") == entries("a", EVERY_FACT)


async def test_facts_are_read_behind_a_number(opener: Opener) -> None:
    """H2: a late joiner reads on from where it was."""
    async with opener() as journal:
        await write(journal, *entries("a", EVERY_FACT))
        assert await journal.facts("a", after=7) == entries("a", EVERY_FACT)[7:]
        assert await journal.facts("a", after=99) == []


async def test_an_unknown_call_has_no_facts(opener: Opener) -> None:
    """H1: reading what is not there is no error."""
    async with opener() as journal:
        assert await journal.facts("nobody") == []
        assert await journal.samples("nobody") == []
        assert await journal.since(0) == []
        assert await journal.find(CallQuery()) == []
        assert await journal.unfinished() == []


async def test_positions_are_one_series_without_a_hole(opener: Opener) -> None:
    """H2: one number orders the facts of all calls."""
    async with opener() as journal:
        assert journal.position == 0
        await write(journal, *entries("a", [opened()]), *entries("b", [opened()]))
        await write(journal, *entries("a", [Started(2.0)], 2))
        assert journal.position == 3
        found = await journal.since(0)
        assert [(pos, entry.call, entry.seq) for pos, entry in found] == [
            (1, "a", 1),
            (2, "b", 1),
            (3, "a", 2),
        ]


async def test_since_reads_pages_that_join(opener: Opener) -> None:
    """H2: reading in pieces gives neither a gap nor a repeat."""
    async with opener() as journal:
        await write(journal, *(entry for n in range(7) for entry in entries(f"c{n}", [opened()])))
        seen, pos = list[str](), 0
        while page := await journal.since(pos, limit=3):
            assert len(page) <= 3
            seen += [entry.call for _, entry in page]
            pos = page[-1][0]
        assert seen == [f"c{n}" for n in range(7)]
        assert await journal.since(journal.position) == []
        assert await journal.since(0, limit=0) == []


async def test_a_fact_is_written_once(opener: Opener) -> None:
    """H1: (call, seq) is the lock: a second fact of the same number is refused, and its batch with it."""
    async with opener() as journal:
        await write(journal, *entries("a", [opened()]))
        with pytest.raises(StoreError, match="there already"):
            await write(journal, *entries("b", [opened()]), *entries("a", [opened(2.0)]), row("b"))
        assert await journal.facts("b") == []
        assert await journal.find(CallQuery()) == []
        assert await journal.unfinished() == ["a"]
        assert journal.position == 1


async def test_a_number_twice_in_one_batch_is_refused(opener: Opener) -> None:
    """H1: the lock holds within a batch too."""
    async with opener() as journal:
        with pytest.raises(StoreError, match="there already"):
            await write(journal, *entries("a", [opened()]), *entries("a", [opened()]))
        assert journal.position == 0


async def test_writing_goes_on_after_a_refused_batch(opener: Opener) -> None:
    """H1: positions stay contiguous after a batch that was not written."""
    async with opener() as journal:
        await write(journal, *entries("a", [opened()]))
        with pytest.raises(StoreError):
            await write(journal, *entries("b", [opened()]), *entries("a", [opened()]))
        await write(journal, *entries("c", [opened()]))
        assert [(pos, entry.call) for pos, entry in await journal.since(0)] == [(1, "a"), (2, "c")]


async def test_an_empty_batch_is_no_trouble(opener: Opener) -> None:
    """H1: nothing to write is written quickly."""
    async with opener() as journal:
        await write(journal)
        assert journal.position == 0


async def test_samples_come_back_in_order(opener: Opener) -> None:
    """H1: readings taken into the history keep their numbers, their text, and how many were left out."""
    some = [Sample("a", n, Reading(float(n), n / 2, 10.0, f"step {n}"), left_out=n) for n in (1, 5, 10)]
    async with opener() as journal:
        done = journal.write(Batch(samples=[some[2], some[0], some[1], Sample("b", 1, Reading(1.0))]))
        if done is not None:
            await done
        assert await journal.samples("a") == some
        assert await journal.samples("b") == [Sample("b", 1, Reading(1.0))]
        assert journal.position == 0


async def test_a_call_is_unfinished_until_its_end_is_recorded(opener: Opener) -> None:
    """H4: after a crash these are the calls to see to, whatever their rows say."""
    async with opener() as journal:
        await write(journal, *entries("b", [opened(2.0)]), *entries("a", [opened(1.0)]))
        await write(journal, *entries("c", [opened(3.0), Finished(4.0, "ok")]), row("d", state="running"))
        assert await journal.unfinished() == ["a", "b"]
        await write(journal, *entries("a", [Finished(5.0, "ok"), Released(5.0)], 2))
        assert await journal.unfinished() == ["b"]


async def test_the_newest_call_is_listed_first(opener: Opener) -> None:
    """H1: the list is ordered by when calls were opened; of two at one instant the later comes first."""
    async with opener() as journal:
        await write(journal, row("b", 2.0), row("a", 1.0), row("d", 3.0), row("c", 2.0))
        assert [found.id for found in await journal.find(CallQuery())] == ["d", "c", "b", "a"]


async def test_a_row_is_replaced_by_its_newer_self(opener: Opener) -> None:
    """H1: one line a call, always the latest."""
    async with opener() as journal:
        await write(journal, row("a", 1.0), row("b", 2.0))
        new = row("a", 1.0, state="finished", outcome="ok", message="done")
        await write(journal, new)
        assert await journal.find(CallQuery()) == [row("b", 2.0), new]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        (CallQuery(tool="export"), ["c", "a"]),
        (CallQuery(server="web"), ["b"]),
        (CallQuery(state="finished"), ["c", "b"]),
        (CallQuery(outcome="failed"), ["c"]),
        (CallQuery(caller="ann"), ["a"]),
        (CallQuery(before=3.0), ["b", "a"]),
        (CallQuery(before=3.0, limit=1), ["b"]),
        (CallQuery(after=1.0), ["c", "b"]),
        (CallQuery(after=1.0, limit=1), ["b"]),
        (CallQuery(after=3.0), []),
        (CallQuery(limit=2), ["c", "b"]),
        (CallQuery(limit=0), []),
        (CallQuery(limit=-5), []),
        (CallQuery(tool="export", state="finished"), ["c"]),
        (CallQuery(tool="exp"), []),
    ],
)
async def test_calls_are_found_by_their_fields(opener: Opener, query: CallQuery, ids: list[str]) -> None:
    """H1: every field of a query narrows the list."""
    async with opener() as journal:
        await write(
            journal,
            row("a", 1.0, caller="ann"),
            row("b", 2.0, "fetch", server="web", state="finished", outcome="ok"),
            row("c", 3.0, state="finished", outcome="failed"),
        )
        assert [found.id for found in await journal.find(query)] == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("FETCH", ["b"]),
        ("page 3", ["a"]),
        ("lissabon", ["b"]),
        ("café", ["b", "a"]),
        ("100%", ["a"]),
        ("a_b", ["a"]),
        ('say "hi"', ["b"]),
        ("back\\slash", ["b"]),
        ("arguments", []),
        ("idle_s", []),
        ('{"city":', ["b"]),
        ("nowhere", []),
    ],
)
async def test_calls_are_found_by_text(opener: Opener, text: str, ids: list[str]) -> None:
    """H1: a piece of tool, message or arguments finds a call; the signs of SQL and JSON mean nothing."""
    async with opener() as journal:
        plain = '{"name": "café", "x": "a_b"}'.encode()
        escaped = (
            b'{"city": "Lissabon", "y": "caf\\u00e9", "z": "say \\"hi\\"", "w": "back\\\\slash axb 1000"}'
        )
        await write(journal, *entries("a", [opened(1.0, plain)]), row("a", 1.0, message="page 3, 100%"))
        await write(journal, *entries("b", [opened(2.0, escaped)]), row("b", 2.0, "fetch"))
        assert [found.id for found in await journal.find(CallQuery(text=text))] == ids


async def test_calls_with_an_answer_are_found(opener: Opener) -> None:
    """A3: also by tool; a call that asked, and got no answer, is not among them."""
    async with opener() as journal:
        asked = Asked(1.0, Question("q.1", "key", "form"))
        answered = Answered(2.0, "q.1", Answer())
        await write(journal, *entries("a", [opened(1.0), asked, answered]), row("a", 1.0))
        await write(journal, *entries("b", [opened(2.0), asked]), row("b", 2.0))
        await write(journal, *entries("c", [opened(3.0), asked, answered]), row("c", 3.0, "fetch"))
        assert [one.id for one in await journal.find(CallQuery(is_answered=True))] == ["c", "a"]
        assert [one.id for one in await journal.find(CallQuery(is_answered=True, limit=1))] == ["c"]
        assert [one.id for one in await journal.find(CallQuery(is_answered=True, tool="export"))] == ["a"]


async def test_the_newest_call_of_a_key_is_found(opener: Opener) -> None:
    """D2: of its own caller; a call that is not listed yet, and one without a key, are never found."""
    async with opener() as journal:
        await write(journal, *entries("live", [replace(opened(9.0), key="k")]))
        await write(journal, row("new", 3.0, key="k"), row("old", 1.0, key="k"), row("plain", 4.0))
        await write(journal, row("theirs", 5.0, key="k", caller="ann"), row("other", 6.0, key="K"))
        assert await journal.keyed("local", "k") == "new"
        assert await journal.keyed("ann", "k") == "theirs"
        assert await journal.keyed("local", "K") == "other"
        assert [await journal.keyed(*one) for one in (("bob", "k"), ("local", "x"), ("local", ""))] == [
            None
        ] * 3


async def test_a_key_is_found_before_and_after_its_row_is_listed(opener: Opener) -> None:
    """D2: a list that is read writes the rows that wait."""
    async with opener() as journal:
        await write(journal, row("a", 1.0, key="k"))
        assert await journal.keyed("local", "k") == "a"
        assert await journal.find(CallQuery()) == [row("a", 1.0, key="k")]
        assert await journal.keyed("local", "k") == "a"


async def test_at_most_a_thousand_calls_are_listed(opener: Opener) -> None:
    """H1: a list has a bound, whatever was asked."""
    async with opener() as journal:
        await write(journal, *(row(f"c{n}", float(n)) for n in range(1100)))
        assert len(await journal.find(CallQuery(limit=5000))) == 1000


async def test_large_values_keep_their_place(opener: Opener) -> None:
    """H1: batches keep their order, large or small, even if nobody waits between them."""
    large = b'"' + b"x" * 200_000 + b'"'
    async with opener() as journal:
        given = [
            journal.write(batch(*entries("a", [opened(float(n), large if n % 3 == 0 else b"{}")], n + 1)))
            for n in range(12)
        ]
        await asyncio.gather(*[one for one in given if one is not None])
        assert [(pos, entry.seq) for pos, entry in await journal.since(0)] == [(n, n) for n in range(1, 13)]
        first = (await journal.facts("a"))[0].fact
        assert isinstance(first, Opened)
        assert first.arguments == Raw(large)


async def test_a_closed_journal_says_so(opener: Opener) -> None:
    """H1: nothing is accepted that would not be kept."""
    async with opener() as journal:
        await journal.close()
        await journal.close()
        with pytest.raises(StoreError, match="not open"):
            journal.write(batch(*entries("a", [opened()])))
        with pytest.raises(StoreError, match="not open"):
            await journal.facts("a")


async def test_every_journal_has_an_epoch_of_its_own(opener: Opener) -> None:
    """H2: a watcher sees by the epoch that its position means nothing here."""
    async with opener() as journal:
        assert len(journal.epoch) >= 8


def ended(call: str, opened: float, lasted: float, **more: object) -> CallRow:
    """The row of a call that started at once, and ended well unless `more` says otherwise."""
    fields = {"state": "finished", "outcome": "ok", "started": opened, "finished": opened + lasted}
    return replace(row(call, opened), **{**fields, "ran_s": lasted, "approved": "auto", **more})


TREE = (
    ended("top", 1.0, 9.0, caller="ann"),
    ended("left", 2.0, 3.0, parent="top", tool="fetch"),
    ended("leaf", 3.0, 1.0, parent="left", outcome="failed", tool="fetch"),
    ended("alone", 5.0, 4.0, server="web"),
)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        (CallQuery(since=3.0), ["alone", "leaf"]),
        (CallQuery(since=2.0, before=5.0), ["leaf", "left"]),
        (CallQuery(ended_since=9.0), ["alone", "top"]),
        (CallQuery(is_root=True), ["alone", "top"]),
        (CallQuery(outcome="failed,lost"), ["leaf"]),
        (CallQuery(ids={"top", "leaf", "gone"}), ["leaf", "top"]),
        (CallQuery(ids={"top", "leaf"}, caller="ann"), ["top"]),
        (CallQuery(ids=frozenset()), []),
        (CallQuery(outcome="ok,failed", is_root=True), ["alone", "top"]),
        (CallQuery(slower_than={("tools", "export"): 5.0, ("web", "export"): 4.0}), ["top"]),
        (CallQuery(slower_than={("tools", "fetch"): 0.5}), ["left"]),
        (CallQuery(slower_than={}), []),
        (CallQuery(sort="opened"), ["top", "left", "leaf", "alone"]),
        (CallQuery(sort="-duration"), ["top", "alone", "left", "leaf"]),
        (CallQuery(sort="duration"), ["leaf", "left", "alone", "top"]),
        (CallQuery(sort="tool"), ["alone", "top", "leaf", "left"]),
        (CallQuery(sort="-tool"), ["leaf", "left", "alone", "top"]),
        (CallQuery(sort="caller"), ["top", "alone", "leaf", "left"]),
        (CallQuery(sort="opened", skip=1, limit=2), ["left", "leaf"]),
        (CallQuery(skip=9), []),
    ],
)
async def test_calls_are_found_by_time_tree_and_duration_in_every_order(
    opener: Opener, query: CallQuery, ids: list[str]
) -> None:
    """H1, V1: a view of the history chooses a time, an order and a page of it."""
    async with opener() as journal:
        await write(journal, *TREE)
        assert [found.id for found in await journal.find(query)] == ids


async def test_calls_that_asked_a_person_are_found(opener: Opener) -> None:
    """H1, A1, Q1: an approval by its row, a form or a link by its facts; not a question of a child call."""
    async with opener() as journal:
        await write(journal, ended("approved", 1.0, 1.0, approved="user"), ended("plain", 2.0, 1.0))
        for call, kind in (("form", "form"), ("below", "below")):
            asked = Asked(3.5, Question("q", "k", kind))
            told = entries(call, [opened(3.0), Started(3.0), asked, Answered(5.0, "q", Answer())])
            await write(journal, *told, ended(call, 3.0, 3.0, ran_s=1.5))
        found = await journal.find(CallQuery(is_asked=True))
        assert [one.id for one in found] == ["form", "approved"]
        outlines = await journal.outlines(CallQuery())
        assert {one.id for one in outlines if one.is_asked} == {"form", "approved"}


async def test_outlines_have_every_call_that_matches(opener: Opener) -> None:
    """H1, V1: newest first, whatever the limit and the order of a page."""
    async with opener() as journal:
        await write(journal, *TREE)
        found = await journal.outlines(CallQuery(tool="fetch", limit=1, skip=1, sort="duration"))
        assert [(one.id, one.parent, one.outcome) for one in found] == [
            ("leaf", "left", "failed"),
            ("left", "top", "ok"),
        ]
        assert (found[0].opened, found[0].started, found[0].finished, found[0].ran_s) == (3.0, 3.0, 4.0, 1.0)
        assert await journal.outlines(CallQuery(tool="nobody")) == []


async def test_calls_are_counted_at_every_depth_below(opener: Opener) -> None:
    """H1, V1: a tree says how many calls it has before it is unfolded."""
    async with opener() as journal:
        await write(journal, *TREE)
        assert await journal.descendants(["top", "left", "leaf", "nobody"]) == {"top": (2, 1), "left": (1, 1)}
        assert await journal.descendants([]) == {}


async def test_calls_that_ran_more_than_once_are_known(opener: Opener) -> None:
    """H1, H4: by a second start, among however many calls."""
    async with opener() as journal:
        await write(journal, *entries("again", [opened(1.0), Started(1.0), Started(2.0, 2)]))
        await write(journal, *entries("once", [opened(1.0), Started(1.0)]))
        many = [f"c{n}" for n in range(1200)]
        assert await journal.retried([*many, "again", "once"]) == ["again"]
