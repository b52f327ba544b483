"""Keys beyond those that are kept in mind, and keys while the history cannot be read: nothing runs twice."""

import asyncio

import pytest

from afoot.core.facts import Entry
from afoot.core.ports import Query, Row, Run
from afoot.errors import StoreError
from afoot.serve import callers, join
from afoot.serve.callers import Keys
from afoot.store.memory import MemoryJournal
from tests.serve.double import Client, Message, faked, nap, site_of
from tests.serve.tasking import ABLE
from tests.serve.test_join import KEY, keyed
from tests.serve.wires import Web, hello, modern, older, request


def call_of(answer: Message) -> str:
    """The call that a request was answered by."""
    return str(answer["result"]["_meta"]["dev.afoot/call"])


@faked
async def test_many_keys_push_none_out_whose_call_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: neither those of its own caller nor those of another."""
    monkeypatch.setattr(callers, "MOST", 5)
    begun = list[str]()

    async def long_then_short(run: Run) -> str:
        begun.append(run.id)
        await asyncio.sleep(20 if len(begun) == 1 else 0.1)
        return "done"

    async with site_of(long_then_short) as site:
        web, client = Web(site), Client(site)
        await client.ask(hello())
        first = web.post(keyed(1, "first"))
        await asyncio.sleep(1)
        for n in range(8):
            await web.ask(keyed(2, f"own {n}"))
            await client.ask(older(n, **{KEY: f"other {n}"}))
        again = web.post(keyed(3, "first"))
        both = [call_of((await one.done()).messages[-1]) for one in (first, again)]
        assert len(site.keys.calls) <= 5
    assert both[0] == both[1] and len(begun) == 17


@faked
async def test_a_key_that_was_pushed_out_is_found_in_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: of a call that is over, as after a restart; a busy caller costs the others nothing."""
    monkeypatch.setattr(callers, "MOST", 5)
    async with site_of(nap) as site:
        web, client = Web(site), Client(site)
        await client.ask(hello())
        first = call_of((await web.ask(keyed(1, "first"))).messages[-1])
        for n in range(8):
            await client.ask(older(n, **{KEY: f"busy {n}"}))
        assert ("local", "first") not in site.keys.calls
        assert call_of((await web.ask(keyed(2, "first"))).messages[-1]) == first


def test_what_is_pushed_out_is_the_oldest_and_a_key_that_is_used_again_is_new() -> None:
    """D2: beyond 10,000, some at once; those are looked up again, and new ones are known to be new."""
    keys = Keys()
    for n in range(callers.MOST):
        keys.note("a" if n < 500 else "b", str(n), f"call {n}", ())
    keys.looked = {("a", "tool"), ("a", "other"), ("c", "tool")}
    keys.note("a", "0", "call 0", ())
    assert len(keys.calls) == callers.MOST and len(keys.looked) == 3
    keys.note("c", "new", "call", {"call 1"})
    assert ("a", "0") in keys.calls and ("a", "1") in keys.calls and ("a", "2") not in keys.calls
    assert len(keys.calls) == callers.MOST * 9 // 10 and len(keys.looked) == 3
    sure = [keys.is_sure("a", "tool", key) for key in ("0", "1", "2", "never used")]
    assert sure == [True, True, False, True] and not keys.is_sure("b", "tool", "never used")


class Read(MemoryJournal):
    """A history that counts how often it is read, which takes a moment."""

    lists = facts_of = 0

    async def find(self, query: Query) -> list[Row]:
        self.lists += 1
        await asyncio.sleep(0.01)
        return await super().find(query)

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        self.facts_of += 1
        return await super().facts(call, after)


async def blink(run: Run) -> str:
    """A tool that is done in a moment."""
    await asyncio.sleep(0.01)
    return "done"


@faked
async def test_a_key_that_is_new_costs_no_look_however_many_there_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2: also beyond those that are kept in mind; one that was pushed out is still the same call."""
    monkeypatch.setattr(callers, "MOST", 10)
    monkeypatch.setattr(join, "PAGE", 5)
    async with site_of(blink, journal=Read()) as site:
        web, journal = Web(site), site.engine.journal
        assert isinstance(journal, Read)
        calls = [call_of((await web.ask(keyed(n, f"key {n}"))).messages[-1]) for n in range(60)]
        assert (journal.lists, journal.facts_of) == (1, 0) and len(site.keys.calls) <= 10
        assert call_of((await web.ask(keyed(1, "key 3"))).messages[-1]) == calls[3]
        for n in range(60, 200):  # too many to know that they were there: the history is looked through anew
            await web.ask(keyed(n, f"key {n}"))
        assert len(site.keys.pushed) <= 100 and journal.lists < 50


@faked
async def test_a_key_that_was_pushed_out_is_looked_for_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: until it is found; those that were used lately stay in mind."""
    monkeypatch.setattr(callers, "MOST", 10)
    monkeypatch.setattr(join, "PAGE", 5)
    async with site_of(blink, journal=Read()) as site:
        web, journal = Web(site), site.engine.journal
        assert isinstance(journal, Read)
        calls = [call_of((await web.ask(keyed(n, f"key {n}"))).messages[-1]) for n in range(60)]
        recent = list(site.keys.calls)
        oldest = calls.index(site.keys.calls[recent[0]])
        assert call_of((await web.ask(keyed(1, f"key {oldest - 2}"))).messages[-1]) == calls[oldest - 2]
        assert journal.facts_of == 2 + 1  # those of another, its own, and again to tell it
        assert set(recent[2:]) < set(site.keys.calls)


@faked
async def test_what_is_found_in_the_history_is_older_than_what_was_used_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D2: so that goes first when there are too many."""
    monkeypatch.setattr(callers, "MOST", 10)
    journal = MemoryJournal()
    async with site_of(blink, journal=journal) as site:
        for n in range(9):
            await Web(site).ask(keyed(n, f"key {n}"))
    async with site_of(blink, journal=journal) as site:
        client = Client(site)
        await client.ask(hello())
        for n in range(2):
            await client.ask(older(n, **{KEY: f"other {n}"}))
        await Web(site).ask(keyed(1, "new"))
        here = {key for _, key in site.keys.calls}
    assert {"new", "other 0", "other 1", "key 8"} <= here and not here & {"key 0", "key 1", "key 2"}


@faked
async def test_clients_that_come_together_after_a_restart_share_one_look() -> None:
    """D2: each with a key of its own; a long history is not read as often as there are clients."""
    journal = Read()
    async with site_of(blink, journal=journal) as site:
        web = Web(site)
        calls = [call_of((await web.ask(keyed(n, f"key {n}"))).messages[-1]) for n in range(20)]
    async with site_of(blink, journal=journal) as site:
        web, journal.lists, journal.facts_of = Web(site), 0, 0
        posted = [web.post(keyed(n, f"key {n}")) for n in range(20)]
        assert [call_of((await one.done()).messages[-1]) for one in posted] == calls
        assert journal.lists == 1 and journal.facts_of == 20 + 20  # once to know them, once to tell them


class Away(MemoryJournal):
    """A history that cannot be read while it is away."""

    is_away = False

    async def find(self, query: Query) -> list[Row]:
        self._check()
        return await super().find(query)

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        self._check()
        return await super().facts(call, after)

    def _check(self) -> None:
        if self.is_away:
            raise StoreError("history: away")


@pytest.mark.parametrize("is_in_mind", [False, True])
@faked
async def test_while_the_history_cannot_be_read_no_key_opens_what_may_not_run_twice(is_in_mind: bool) -> None:
    """D2, U4: it is told so, and to come again; then it follows the call that there was."""
    async with site_of(nap, journal=Away()) as site:
        web, journal = Web(site), site.engine.journal
        assert isinstance(journal, Away)
        first = call_of((await web.ask(keyed(1))).messages[-1])
        site.keys = site.keys if is_in_mind else Keys()  # as after a restart
        journal.is_away = True
        refused = await web.ask(keyed(2))
        [answer] = refused.messages
        assert refused.status == 503 and answer["id"] == 2 and site.engine.calls() == []
        told = answer["error"]["data"]["dev.afoot/error"]
        assert (told["category"], told["code"]) == ("unavailable", "history_unreadable")
        assert told["retryable"] and told["retry_after_s"] > 0
        journal.is_away = False
        assert call_of((await web.ask(keyed(3))).messages[-1]) == first


@faked
async def test_while_the_history_cannot_be_read_what_runs_is_joined_and_what_is_safe_is_opened() -> None:
    """D2, U4: for neither is the history needed."""
    for safe in (False, True):
        async with site_of(nap, journal=Away(), idempotent=safe) as site:
            web, journal = Web(site), site.engine.journal
            assert isinstance(journal, Away)
            web.post(keyed(1))
            await asyncio.sleep(1)
            site.keys, journal.is_away = Keys(), True
            web.post(keyed(2))
            other = web.post(keyed(3, "other"))
            await asyncio.sleep(1)
            running, journal.is_away = [live.attached for live in site.engine.calls()], False
            assert running == ([2, 1] if safe else [2])
            assert (await other.done()).status == (200 if safe else 503)


@faked
async def test_while_the_history_cannot_be_read_whoever_asks_for_a_call_is_told_so_by_its_own_id() -> None:
    """E2, D2: an error of ours in the answer to that request, in both eras, so that it can ask again."""
    async with site_of(blink, journal=Away()) as site:
        web, journal = Web(site), site.engine.journal
        assert isinstance(journal, Away)
        task = call_of((await web.ask(keyed(1))).messages[-1])
        journal.is_away = True
        get, wait = {"taskId": task}, {"name": "afoot_wait", "arguments": {"call": task}}
        answers = [await web.ask(modern("tasks/get", get, 7, capabilities=ABLE))]
        answers.append(await web.ask(modern("tools/call", wait, 7)))
        await web.shake_hands()
        answers += [await web.ask(request(*one, 7)) for one in (("tasks/get", get), ("tools/call", wait))]
        journal.is_away = False
    assert [one.status for one in answers] == [503, 503, 200, 200]
    errors = [(one.messages[-1]["id"], one.messages[-1]["error"]) for one in answers]
    assert errors == [(7, {"code": -32603, "message": "history: away"})] * 4
