"""Keys that several requests bring at once while the history is slow: there is one call, and no second."""

import asyncio
from typing import Any

import pytest

from afoot.core.facts import Entry
from afoot.core.ports import Batch, PurgeRule, Run
from afoot.engine.recovery import recover
from afoot.errors import StoreError
from afoot.serve.gateway_state import GatewayState
from afoot.store.memory import MemoryJournal
from tests.serve.fake_gateway import Client, Message, faked, nap, only, site_of
from tests.serve.mcp.idempotency.test_idempotency import KEY, keyed
from tests.serve.raw_transports import Pipe, Web, cancelled, hello, older

ARGUMENTS = {"a": 1}


def slowed(monkeypatch: pytest.MonkeyPatch) -> MemoryJournal:
    """A journal whose answers take a moment, as those of a file do."""
    journal = MemoryJournal()
    keyed, facts = journal.keyed, journal.facts

    async def slow_keyed(caller: str, key: str) -> str | None:
        await asyncio.sleep(0.01)
        return await keyed(caller, key)

    async def slow_facts(call: str, after: int = 0) -> list[Entry]:
        await asyncio.sleep(0.01)
        return await facts(call, after)

    monkeypatch.setattr(journal, "keyed", slow_keyed)
    monkeypatch.setattr(journal, "facts", slow_facts)
    return journal


async def at_once(gateway: GatewayState, times: int = 3) -> set[str]:
    """The calls that so many requests with one key are answered with."""
    web = Web(gateway)
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
    async with site_of(nap, journal=journal) as gateway:
        first = await at_once(gateway)
        assert len(first) == 1
    async with site_of(nap, journal=journal) as gateway:
        await asyncio.sleep(1)
        assert await at_once(gateway) == first


@faked
async def test_requests_that_come_together_when_a_key_is_over_open_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2: whoever comes first opens it, the others follow."""
    journal = slowed(monkeypatch)
    async with site_of(nap, journal=journal, settings={"task_ttl_s": 60}) as gateway:
        first = await at_once(gateway)
        await asyncio.sleep(100)
        anew = await at_once(gateway)
    assert len(anew) == 1 and anew != first


@faked
async def test_a_call_that_is_purged_between_lookup_and_reading_is_opened_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2, H6: one call for all who come meanwhile."""
    journal = slowed(monkeypatch)
    async with site_of(nap, journal=journal) as gateway:
        [first] = await at_once(gateway)
        keyed = journal.keyed

        async def then_purged(caller: str, key: str) -> str | None:
            found = await keyed(caller, key)
            await journal.purge(PurgeRule(calls=[first]))
            return found

        monkeypatch.setattr(journal, "keyed", then_purged)
        anew = await at_once(gateway)
    assert len(anew) == 1 and first not in anew


@faked
async def test_a_call_that_ends_while_others_wait_for_its_key_is_not_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2: it opens and ends within the time that one lookup takes."""

    async def blink(run: Run) -> str:
        return "done"

    async with site_of(blink, journal=slowed(monkeypatch)) as gateway:
        assert len(await at_once(gateway, 20)) == 1


@faked
async def test_a_cancel_that_comes_while_a_key_is_looked_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1, X3: its call does not run on; nothing is answered."""
    async with site_of(nap, journal=slowed(monkeypatch)) as gateway:
        client = Client(gateway)
        await client.ask(hello())
        tape = client.put(older(1, **{KEY: "k"}))
        await asyncio.sleep(0.005)
        assert gateway.engine.calls() == []
        client.tell(cancelled(1))
        await client.done()
        await asyncio.sleep(1)
        assert gateway.engine.calls() == [] and [last for _, last in tape.ended] == [None]


@faked
async def test_on_a_pipe_too_such_a_cancel_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1, X3: in the era without sessions; its id may be used again."""
    async with site_of(nap, journal=slowed(monkeypatch)) as gateway:
        pipe = Pipe(gateway)
        pipe.put(keyed(1))
        await asyncio.sleep(0.005)
        assert gateway.engine.calls() == []
        pipe.put(cancelled(1))
        await asyncio.sleep(1)
        assert gateway.engine.calls() == [] and pipe.said == []
        pipe.put(keyed(1, key="other"))
        await asyncio.sleep(1)
        assert len(gateway.engine.calls()) == 1
        await pipe.close()


@faked
async def test_a_session_that_is_ended_while_a_key_is_looked_up_ends_no_call_of_another_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """X3: it was about to join it."""
    async with site_of(nap, journal=slowed(monkeypatch)) as gateway:
        first, second = Client(gateway), Client(gateway)
        for client in (first, second):
            await client.ask(hello())
        tape = first.put(older(1, **{KEY: "k"}))
        second.put(older(1, **{KEY: "k"}))
        await asyncio.sleep(0.005)
        assert gateway.engine.calls() == []
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
    async with site_of(nap, journal=journal) as gateway:
        [first] = await at_once(gateway)
    async with site_of(nap, journal=journal) as gateway:
        bench = gateway.engine.catalog.get("tool")[0]
        gateway.engine.catalog.remove("bench")
        wanted = keyed(1, arguments=ARGUMENTS)
        wanted["params"]["name"] = "bench/tool"
        if is_away:
            monkeypatch.setattr(journal, "keyed", away)
        exchange = Web(gateway).post(wanted)
        await asyncio.sleep(0.005)
        gateway.engine.catalog.put(bench)
        answer = (await exchange.done()).messages[-1]
        assert gateway.engine.calls() == []
        assert "history" in answer["error"]["message"] if is_away else _call(answer) == first


async def away(caller: str, key: str) -> str | None:
    """A lookup that fails after a moment."""
    await asyncio.sleep(0.01)
    raise StoreError("history: away")


@faked
async def test_a_key_of_a_call_that_runs_again_after_a_crash_is_found() -> None:
    """D2, H4: it is in no list yet, as it has not ended."""
    died = MemoryJournal()
    async with site_of(nap, idempotent=True) as gateway:
        Web(gateway).post(keyed(1, arguments=ARGUMENTS))
        await asyncio.sleep(1)
        died.write(Batch(entries=await gateway.engine.journal.facts(only(gateway).call.id)))
    async with site_of(nap, journal=died, idempotent=True) as gateway:
        await recover(gateway.engine)
        [again] = [live.call.id for live in gateway.engine.calls()]
        assert await at_once(gateway) == {again}
