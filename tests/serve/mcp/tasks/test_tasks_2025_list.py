"""The list of tasks that 2025-11-25 has: a caller's own, all of them, page by page (H3)."""

import asyncio

import mcp_types
import pytest

from afoot.core.facts import Limits
from afoot.core.ports import PurgeRule, Run
from afoot.engine.live_call import Claim, Submission
from afoot.engine.recovery import load_call
from afoot.serve.mcp.tasks import tasks_2025
from afoot.store.memory import MemoryJournal
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from tests.serve.fake_gateway import Client, Message, faked, nap, site_of
from tests.serve.mcp.tasks.test_tasks_2025 import ASKED, shaken, start
from tests.serve.raw_transports import Pipe, hello, request

LONG = Limits(idle_s=2000, ceiling_s=2000)


async def page(client: Client, cursor: str | None) -> tuple[list[str], str | None]:
    """The tasks of a page of the list, and where the next begins."""
    params: Message = {} if cursor is None else {"cursor": cursor}
    told = (await client.ask(request("tasks/list", params))).result
    listed = mcp_types.ListTasksResult.model_validate(told)
    return [one.task_id for one in listed.tasks], listed.next_cursor


@faked
async def test_a_caller_lists_its_own_tasks_and_nothing_else() -> None:
    """S3, H3: neither plain calls nor those of others; newest first."""
    async with site_of(nap) as gateway:
        client = await shaken(gateway)
        first = await start(client, 1)
        client.put(request("tools/call", {"name": "tool"}, 2))
        gateway.engine.submit(Submission("tool", caller="session:2"))
        await asyncio.sleep(11)
        second = await start(client, 3)
        listed = (await client.ask(request("tasks/list"))).result
    found = mcp_types.ListTasksResult.model_validate(listed).tasks
    assert [(one.task_id, one.status) for one in found] == [(second, "working"), (first, "completed")]


@faked
async def test_a_long_list_comes_in_pages_and_plain_calls_push_no_task_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H3: every task once, newest first, those that live among those that are over."""
    monkeypatch.setattr(tasks_2025, "PAGE_SIZE", 3)
    monkeypatch.setattr(tasks_2025, "SEARCHED", 4)

    async def some(run: Run) -> str:
        await asyncio.sleep(1000 if run.id in lasting else 0.1)
        return "done"

    lasting: set[str] = set()
    async with site_of(some, limits=LONG) as gateway:
        client, made = await shaken(gateway), list[str]()
        for n in range(12):
            made.append(await start(client, n))
            if n in (0, 5):
                lasting.add(made[-1])
            await asyncio.sleep(1)
            await client.ask(request("tools/call", {"name": "tool"}, f"plain {n}"))
        found, cursor, pages = list[str](), None, 0
        while pages == 0 or cursor is not None:
            more, cursor = await page(client, cursor)
            assert len(more) <= 3
            found, pages = found + more, pages + 1
    assert found == made[::-1] and pages < 12


@pytest.mark.parametrize("crowd", [5, 1000])
@faked
async def test_a_list_of_tasks_of_one_moment_has_an_end(monkeypatch: pytest.MonkeyPatch, crowd: int) -> None:
    """H3: no place comes twice, however many were made at once; all are there, if not beyond measure."""
    for name, value in (("PAGE_SIZE", 2), ("SEARCHED", 3), ("SEARCHED_AT_MOST", crowd)):
        monkeypatch.setattr(tasks_2025, name, value)
    async with site_of(nap) as gateway:
        client = await shaken(gateway)
        claim = Claim(task=True)
        lives = [gateway.engine.submit(Submission("tool", caller="session:1", claim=claim)) for _ in range(8)]
        await asyncio.sleep(20)
        found, cursors = list[str](), list[str | None]([None])
        while not cursors[1:] or cursors[-1] is not None:
            more, cursor = await page(client, cursors[-1])
            assert cursor not in cursors[1:]
            found, cursors = found + more, [*cursors, cursor]
    assert len(found) == len(set(found)) == (len(lives) if crowd == 1000 else 5)


@pytest.mark.parametrize("is_purged", [False, True])
@faked
async def test_a_list_goes_on_behind_a_call_that_is_known_no_more(
    monkeypatch: pytest.MonkeyPatch, is_purged: bool
) -> None:
    """H3, H6: a page may end at any call; that expires, or is purged before the next is asked for."""
    monkeypatch.setattr(tasks_2025, "SEARCHED", 3)

    async def some(run: Run) -> str:
        await asyncio.sleep(0.1 if len(made) else 1000)
        return "done"

    made = list[str]()
    async with site_of(some, limits=LONG, settings={"task_ttl_s": 60}) as gateway:
        client = await shaken(gateway)
        made.append(await start(client, 1))
        for n in range(7):
            await client.ask(request("tools/call", {"name": "tool"}, f"plain {n}"))
            await asyncio.sleep(1)
        await asyncio.sleep(0 if is_purged else 100)
        found, cursor = await page(client, None)
        assert found == [] and cursor is not None
        if is_purged:
            assert await gateway.engine.journal.purge(PurgeRule(before=gateway.engine.clock.now())) == 7
        while cursor is not None:
            more, cursor = await page(client, cursor)
            found += more
    assert found == made


@faked
async def test_a_cursor_that_is_none_of_ours_is_refused_and_one_of_somebody_else_shows_nothing_of_it() -> (
    None
):
    """H3, S3: -32602; a place in time is no secret, and behind it are the caller's own."""
    async with site_of(nap) as gateway:
        client = await shaken(gateway)
        mine = await start(client, 1)
        await asyncio.sleep(1)
        theirs = gateway.engine.submit(Submission("tool", caller="session:2", claim=Claim(task=True))).call
        at = theirs.opened.at
        for cursor in ("", "x" * 40, theirs.id, f"{at}:", f" {at}:x", f"{at}0:x", "nan:x", "inf:x", "1:x"):
            with pytest.raises(Fault, match=r"params\.cursor") as refused:
                await client.ask(request("tasks/list", {"cursor": cursor}))
            assert refused.value.code == INVALID_PARAMS
        assert await page(client, f"{at!r}:{theirs.id}") == ([mine], None)
        with pytest.raises(Fault, match=r"params\.cursor"):
            await client.ask(request("tasks/list", {"cursor": 7}))


@faked
async def test_a_pipe_lists_nothing_of_the_process_before_it() -> None:
    """S3, H3: that was another caller, though its calls have the same name; one by its id is found."""
    journal = MemoryJournal()
    async with site_of(nap, journal=journal) as gateway:
        theirs = gateway.engine.submit(Submission("tool", caller="stdio", claim=Claim(task=True))).call.id
        await asyncio.sleep(11)
    async with site_of(nap, journal=journal) as gateway:
        gateway.started_at += 1
        gateway.engine.adopt(await load_call(gateway.engine, theirs))  # as one that was run again
        await asyncio.sleep(2)
        pipe = Pipe(gateway)
        await pipe.ask(hello())
        mine = (await pipe.ask(request("tools/call", ASKED, 2)))["result"]["task"]["taskId"]
        listed = (await pipe.ask(request("tasks/list", {}, 3)))["result"]["tasks"]
        await pipe.close()
    assert [one["taskId"] for one in listed] == [mine]
