"""Keys that several requests bring at once while the history is slow: there is one call, and no second."""

import asyncio
from typing import Any

import pytest

from afoot.core.facts import Entry
from afoot.core.ports import Batch, Query, Row
from afoot.engine.recovery import recover
from afoot.errors import StoreError
from afoot.serve import join
from afoot.serve.callers import Keys
from afoot.serve.site import Site
from afoot.store.memory import MemoryJournal
from tests.serve.double import Client, Message, faked, nap, only, site_of
from tests.serve.test_join import KEY, keyed
from tests.serve.wires import Pipe, Web, call, cancelled, hello, older

ARGUMENTS = {"a": 1}


def slowed(monkeypatch: pytest.MonkeyPatch) -> MemoryJournal:
    """A journal whose answers take a moment, as those of a file do."""
    journal = MemoryJournal()
    find, facts = journal.find, journal.facts

    async def slow_find(query: Query) -> list[Row]:
        await asyncio.sleep(0.01)
        return await find(query)

    async def slow_facts(call: str, after: int = 0) -> list[Entry]:
        await asyncio.sleep(0.01)
        return await facts(call, after)

    monkeypatch.setattr(journal, "find", slow_find)
    monkeypatch.setattr(journal, "facts", slow_facts)
    return journal


async def at_once(site: Site, times: int = 3) -> set[str]:
    """The calls that so many requests with one key are answered with."""
    web = Web(site)
    posted = [web.post(keyed(n, arguments=ARGUMENTS)) for n in range(times)]
    return {_call((await one.done()).messages[-1]) for one in posted}


def _call(answer: Message) -> str:
    found: Any = answer["result"]["_meta"]["dev.afoot/call"]
    return str(found)


@faked
async def test_requests_that_come_together_after_a_restart_find_the_call_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2: each of them, also those that come while the first still looks."""
    journal = slowed(monkeypatch)
    async with site_of(nap, journal=journal) as site:
        first = await at_once(site)
        assert len(first) == 1
    async with site_of(nap, journal=journal) as site:
        await asyncio.sleep(1)
        assert await at_once(site) == first


@faked
async def test_requests_that_come_together_when_a_key_is_over_open_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2: whoever comes first opens it, the others follow."""
    journal = slowed(monkeypatch)
    async with site_of(nap, journal=journal, settings={"task_ttl_s": 60}) as site:
        first = await at_once(site)
        await asyncio.sleep(100)
        anew = await at_once(site)
    assert len(anew) == 1 and anew != first


@faked
async def test_a_call_of_before_that_has_gone_from_the_history_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2, H6: it may be purged between the list and the look at it."""
    journal = MemoryJournal()
    async with site_of(nap, journal=journal) as site:
        first = await at_once(site)
        [gone] = [_call(one) for one in (await Web(site).ask(call(9))).messages]
        await asyncio.sleep(1)
    facts = journal.facts

    async def without(call_id: str, after: int = 0) -> list[Entry]:
        return [] if call_id == gone else await facts(call_id, after)

    monkeypatch.setattr(journal, "facts", without)
    async with site_of(nap, journal=journal) as site:
        assert await at_once(site) == first


@faked
async def test_a_cancel_that_comes_while_a_key_is_looked_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1, X3: its call does not run on; nothing is answered."""
    async with site_of(nap, journal=slowed(monkeypatch)) as site:
        client = Client(site)
        await client.ask(hello())
        tape = client.put(older(1, **{KEY: "k"}))
        await asyncio.sleep(0.005)
        assert site.engine.calls() == []
        client.tell(cancelled(1))
        await client.done()
        await asyncio.sleep(1)
        assert site.engine.calls() == [] and [last for _, last in tape.ended] == [None]


@faked
async def test_on_a_pipe_too_such_a_cancel_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1, X3: in the era without sessions; its id may be used again."""
    async with site_of(nap, journal=slowed(monkeypatch)) as site:
        pipe = Pipe(site)
        pipe.put(keyed(1))
        await asyncio.sleep(0.005)
        assert site.engine.calls() == []
        pipe.put(cancelled(1))
        await asyncio.sleep(1)
        assert site.engine.calls() == [] and pipe.said == []
        pipe.put(keyed(1, key="other"))
        await asyncio.sleep(1)
        assert len(site.engine.calls()) == 1
        await pipe.close()


@faked
async def test_a_session_that_is_ended_while_a_key_is_looked_up_ends_no_call_of_another_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """X3: it was about to join it."""
    async with site_of(nap, journal=slowed(monkeypatch)) as site:
        first, second = Client(site), Client(site)
        for client in (first, second):
            await client.ask(hello())
        tape = first.put(older(1, **{KEY: "k"}))
        await asyncio.sleep(1)
        site.keys = Keys()
        second.put(older(1, **{KEY: "k"}))
        await asyncio.sleep(0.005)
        second.session.close("the session was ended")
        await first.done()
        await second.done()
    assert tape.result["content"][0]["text"] == "slept"


@pytest.mark.parametrize("is_away", [False, True])
@faked
async def test_a_tool_that_comes_while_its_key_is_looked_up_does_not_run_twice(
    monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    """D2, U3: by its other name it is in no list; also when the history cannot be read."""
    journal = slowed(monkeypatch)
    async with site_of(nap, journal=journal) as site:
        [first] = await at_once(site)
    async with site_of(nap, journal=journal) as site:
        bench = site.engine.catalog.get("tool")[0]
        site.engine.catalog.remove("bench")
        wanted = keyed(1, arguments=ARGUMENTS)
        wanted["params"]["name"] = "bench/tool"
        if is_away:
            monkeypatch.setattr(journal, "find", away)
        exchange = Web(site).post(wanted)
        await asyncio.sleep(0.005)
        site.engine.catalog.put(bench)
        answer = (await exchange.done()).messages[-1]
        assert site.engine.calls() == []
        assert "history" in answer["error"]["message"] if is_away else _call(answer) == first


async def away(query: Query) -> list[Row]:
    """A list that cannot be read, which is known in a moment."""
    await asyncio.sleep(0.01)
    raise StoreError("history: away")


@faked
async def test_a_key_of_a_call_that_runs_again_after_a_crash_is_found() -> None:
    """D2, H4: it is in no list yet, as it has not ended."""
    died = MemoryJournal()
    async with site_of(nap, idempotent=True) as site:
        Web(site).post(keyed(1, arguments=ARGUMENTS))
        await asyncio.sleep(1)
        died.write(Batch(entries=await site.engine.journal.facts(only(site).call.id)))
    async with site_of(nap, journal=died, idempotent=True) as site:
        await recover(site.engine)
        [again] = [live.call.id for live in site.engine.calls()]
        assert await at_once(site) == {again}


@faked
async def test_a_busy_tool_hides_no_key_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: page by page; calls of one moment are not lost between two."""
    monkeypatch.setattr(join, "PAGE", 4)
    journal = MemoryJournal()
    async with site_of(nap, journal=journal) as site:
        first = await at_once(site)
        web = Web(site)
        for _ in range(5):
            for exchange in [web.post(call(n)) for n in range(2)]:
                await exchange.done()
    async with site_of(nap, journal=journal) as site:
        assert await at_once(site) == first
