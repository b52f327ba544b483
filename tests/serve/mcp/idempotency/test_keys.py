"""Keys of calls that are over, and keys while the history cannot be read: nothing runs twice."""

import asyncio

from msgspec import json
from msgspec.structs import replace

from afoot.core.facts import Entry, Opened
from afoot.core.ports import Batch, PurgeRule, Run
from afoot.errors import StoreError
from afoot.serve.caller_presence import requests_of
from afoot.store.memory import MemoryJournal
from tests.serve.fake_gateway import Client, Message, faked, nap, site_of
from tests.serve.mcp.idempotency.test_idempotency import DETACHED, KEY, keyed, lost
from tests.serve.raw_transports import Web, call, hello, modern, older, request
from tests.serve.task_client import ABLE


def call_of(answer: Message) -> str:
    """The call that a request was answered by."""
    return str(answer["result"]["_meta"]["dev.afoot/call"])


async def blink(run: Run) -> str:
    """A tool that is done in a moment."""
    await asyncio.sleep(0.01)
    return "done"


class Full(MemoryJournal):
    """A history that takes nothing while it is full."""

    is_full = False

    def write(self, batch: Batch) -> None:
        """Refuse, or take."""
        if self.is_full:
            raise StoreError("history: full")
        super().write(batch)


class WithoutMac(MemoryJournal):
    """A history as older gateways wrote it: an opened call has no digest of its arguments."""

    def write(self, batch: Batch) -> None:
        """Write the facts without their digests."""
        for n, entry in enumerate(batch.entries):
            if isinstance(entry.fact, Opened):
                batch.entries[n] = Entry(entry.call, entry.seq, replace(entry.fact, arguments_mac=""))
        super().write(batch)


@faked
async def test_a_key_is_found_however_many_came_after_it() -> None:
    """D2: also among calls of other callers with keys of their own."""
    async with site_of(blink) as gateway:
        web, client = Web(gateway), Client(gateway)
        await client.ask(hello())
        first = call_of((await web.ask(keyed(1, "first"))).messages[-1])
        for n in range(300):
            await web.ask(keyed(2, f"own {n}"))
            await client.ask(older(n, **{KEY: f"other {n}"}))
        assert call_of((await web.ask(keyed(3, "first"))).messages[-1]) == first


@faked
async def test_a_key_of_another_tool_is_refused_also_after_a_restart() -> None:
    """D2: a key means one call of its caller, whatever the tool."""
    journal = MemoryJournal()
    async with site_of(blink, journal=journal) as gateway:
        await Web(gateway).ask(keyed(1))
    async with site_of(blink, journal=journal, name="another") as gateway:
        wanted = keyed(2)
        wanted["params"]["name"] = "another"
        error = (await Web(gateway).ask(wanted)).messages[-1]["error"]
    assert error["code"] == -32602 and KEY in error["message"]


@faked
async def test_a_key_with_another_secret_is_refused_also_after_the_call() -> None:
    """D2, S4: the history has no password; another one is told from it, also after a restart."""
    journal = MemoryJournal()
    async with site_of(blink, journal=journal) as gateway:
        first = call_of((await Web(gateway).ask(keyed(1, arguments={"password": "tulip-4711"}))).messages[-1])
        error = (await Web(gateway).ask(keyed(2, arguments={"password": "tulip-4712"}))).messages[-1]["error"]
        assert error["code"] == -32602 and KEY in error["message"]
    assert b"tulip" not in json.encode([entry.fact for entry in await journal.facts(first)])
    async with site_of(blink, journal=journal) as gateway:
        same = (await Web(gateway).ask(keyed(3, arguments={"password": "tulip-4711"}))).messages[-1]
        error = (await Web(gateway).ask(keyed(4, arguments={"password": "tulip-4712"}))).messages[-1]["error"]
    assert call_of(same) == first and error["code"] == -32602


@faked
async def test_a_key_of_an_older_history_finds_its_call() -> None:
    """D2: facts of before have no digest of the arguments, and are compared without their secrets."""
    journal = WithoutMac()
    wanted = keyed(1, arguments={"password": "tulip-4711", "pages": 3})
    async with site_of(blink, journal=journal) as gateway:
        first = call_of((await Web(gateway).ask(wanted)).messages[-1])
    async with site_of(blink, journal=journal) as gateway:
        assert call_of((await Web(gateway).ask(wanted)).messages[-1]) == first
        other = keyed(2, arguments={"password": "tulip-4711", "pages": 4})
        assert (await Web(gateway).ask(other)).messages[-1]["error"]["code"] == -32602


@faked
async def test_a_key_is_found_while_the_end_of_its_call_waits_in_memory() -> None:
    """D2, H1: the history takes no facts, and the call is over."""
    async with site_of(blink, journal=Full()) as gateway:
        web, journal = Web(gateway), gateway.engine.journal
        assert isinstance(journal, Full)
        journal.is_full = True
        first = call_of((await web.ask(keyed(1))).messages[-1])
        assert gateway.engine.calls() == []
        assert call_of((await web.ask(keyed(2))).messages[-1]) == first
        journal.is_full = False


@faked
async def test_a_key_of_a_call_that_was_purged_opens_another() -> None:
    """D2, H6: the operator took it out of the history."""
    async with site_of(blink) as gateway:
        first = call_of((await Web(gateway).ask(keyed(1))).messages[-1])
        assert await gateway.engine.journal.purge(PurgeRule(calls=[first])) == 1
        assert call_of((await Web(gateway).ask(keyed(2))).messages[-1]) != first


@faked
async def test_a_request_with_a_key_joins_no_call_by_its_arguments() -> None:
    """X3, D2: its key means a call of its own, which the same key finds again."""
    async with site_of(nap, **DETACHED) as gateway:
        web = await lost(gateway, call())
        posted = [web.post(keyed(n, "own")) for n in range(2)]
        await asyncio.sleep(1)
        assert [live.call.opened.key for live in gateway.engine.calls()] == ["", "own"]
        assert len({call_of((await one.done()).messages[-1]) for one in posted}) == 1


class Away(MemoryJournal):
    """A history that cannot be read while it is away."""

    is_away = False

    async def keyed(self, caller: str, key: str) -> str | None:
        self._check()
        return await super().keyed(caller, key)

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        self._check()
        return await super().facts(call, after)

    def _check(self) -> None:
        if self.is_away:
            raise StoreError("history: away")


@faked
async def test_while_the_history_cannot_be_read_no_key_opens_what_may_not_run_twice() -> None:
    """D2, U4: it is told so, and to come again; then it follows the call that there was."""
    async with site_of(nap, journal=Away()) as gateway:
        web, journal = Web(gateway), gateway.engine.journal
        assert isinstance(journal, Away)
        first = call_of((await web.ask(keyed(1))).messages[-1])
        journal.is_away = True
        refused = await web.ask(keyed(2))
        [answer] = refused.messages
        assert refused.status == 503 and answer["id"] == 2 and gateway.engine.calls() == []
        told = answer["error"]["data"]["dev.afoot/error"]
        assert (told["category"], told["code"]) == ("unavailable", "history_unreadable")
        assert told["retryable"] and told["retry_after_s"] > 0
        journal.is_away = False
        assert call_of((await web.ask(keyed(3))).messages[-1]) == first


@faked
async def test_while_the_history_cannot_be_read_what_runs_is_joined_and_what_is_safe_is_opened() -> None:
    """D2, U4: for neither is the history needed."""
    for safe in (False, True):
        async with site_of(nap, journal=Away(), idempotent=safe) as gateway:
            web, journal = Web(gateway), gateway.engine.journal
            assert isinstance(journal, Away)
            web.post(keyed(1))
            await asyncio.sleep(1)
            journal.is_away = True
            web.post(keyed(2))
            other = web.post(keyed(3, "other"))
            await asyncio.sleep(1)
            running, journal.is_away = [requests_of(live).attached for live in gateway.engine.calls()], False
            assert running == ([2, 1] if safe else [2])
            assert (await other.done()).status == (200 if safe else 503)


@faked
async def test_while_the_history_cannot_be_read_whoever_asks_for_a_call_is_told_so_by_its_own_id() -> None:
    """E2, D2: an error of ours in the answer to that request, in both eras, so that it can ask again."""
    async with site_of(blink, journal=Away()) as gateway:
        web, journal = Web(gateway), gateway.engine.journal
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
