"""The list of tasks that 2025-11-25 has: a caller's own, all of them, page by page (H3)."""

import asyncio

import mcp_types
import pytest

from afoot.core.facts import Limits
from afoot.core.ports import Run
from afoot.engine.recovery import recall
from afoot.engine.submission import Claim, Submission
from afoot.serve import tasks_2025
from afoot.store.memory import MemoryJournal
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from tests.serve.double import Message, faked, nap, site_of
from tests.serve.test_tasks_2025 import ASKED, shaken, start
from tests.serve.wires import Pipe, hello, request


@faked
async def test_a_caller_lists_its_own_tasks_and_nothing_else() -> None:
    """S3, H3: neither plain calls nor those of others; newest first."""
    async with site_of(nap) as site:
        client = await shaken(site)
        first = await start(client, 1)
        client.put(request("tools/call", {"name": "tool"}, 2))
        site.engine.submit(Submission("tool", caller="session:2"))
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
    monkeypatch.setattr(tasks_2025, "MOST", 3)
    monkeypatch.setattr(tasks_2025, "LOOKED", 4)

    async def some(run: Run) -> str:
        await asyncio.sleep(1000 if run.id in lasting else 0.1)
        return "done"

    lasting: set[str] = set()
    async with site_of(some, limits=Limits(idle_s=2000, ceiling_s=2000)) as site:
        client, made = await shaken(site), list[str]()
        for n in range(12):
            made.append(await start(client, n))
            if n in (0, 5):
                lasting.add(made[-1])
            await asyncio.sleep(1)
            await client.ask(request("tools/call", {"name": "tool"}, f"plain {n}"))
        found, cursor, pages = list[str](), None, 0
        while pages == 0 or cursor is not None:
            params: Message = {} if cursor is None else {"cursor": cursor}
            page = mcp_types.ListTasksResult.model_validate(
                (await client.ask(request("tasks/list", params))).result
            )
            assert len(page.tasks) <= 3
            found, cursor, pages = found + [one.task_id for one in page.tasks], page.next_cursor, pages + 1
    assert found == made[::-1] and pages < 12


@faked
async def test_a_cursor_that_is_none_of_ours_is_refused_and_so_is_one_of_somebody_else() -> None:
    """H3, S3: -32602, in the same words."""
    async with site_of(nap) as site:
        theirs = site.engine.submit(Submission("tool", caller="session:2")).call.id
        client, told = await shaken(site), list[str]()
        for cursor in ("x" * 40, theirs):
            with pytest.raises(Fault) as refused:
                await client.ask(request("tasks/list", {"cursor": cursor}))
            assert refused.value.code == INVALID_PARAMS
            told.append(refused.value.message.replace(cursor, ""))
        assert told[0] == told[1]
        with pytest.raises(Fault, match=r"params\.cursor"):
            await client.ask(request("tasks/list", {"cursor": 7}))


@faked
async def test_a_pipe_lists_nothing_of_the_process_before_it() -> None:
    """S3, H3: that was another caller, though its calls have the same name; one by its id is found."""
    journal = MemoryJournal()
    async with site_of(nap, journal=journal) as site:
        theirs = site.engine.submit(Submission("tool", caller="stdio", claim=Claim(task=True))).call.id
        await asyncio.sleep(11)
    async with site_of(nap, journal=journal) as site:
        site.began += 1
        site.engine.adopt(await recall(site.engine, theirs))  # as one that was run again
        await asyncio.sleep(2)
        pipe = Pipe(site)
        await pipe.ask(hello())
        mine = (await pipe.ask(request("tools/call", ASKED, 2)))["result"]["task"]["taskId"]
        listed = (await pipe.ask(request("tasks/list", {}, 3)))["result"]["tasks"]
        await pipe.close()
    assert [one["taskId"] for one in listed] == [mine]
