"""Tasks of 2025-11-25 on the stream that a session holds open: status, progress, and what they ask (H3)."""

import asyncio

import mcp_types
import pytest

from afoot.core.ports import Run
from afoot.engine.engine import Submission
from afoot.engine.followers import Wakeup
from afoot.serve.mcp.tasks import notifications
from afoot.serve.mcp.tasks.notifications import TaskWatch
from afoot.wire.tasks import RELATED_TASK
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, Message, faked, said, site_of
from tests.serve.mcp.tasks.test_tasks_2025 import ASKED, shaken, start
from tests.serve.raw_transports import Pipe, Web, hello, request
from tests.serve.task_client import ask_late, walk


@faked
async def test_tasks_are_told_of_on_the_sessions_own_stream() -> None:
    """H3: notifications/tasks/status, with numbers."""
    async with site_of(walk) as gateway:
        web = Web(gateway)
        await web.shake_hands()
        stream = web.open("GET")
        await asyncio.sleep(0.1)
        made = (await web.ask(request("tools/call", ASKED))).messages[0]["result"]["task"]
        await asyncio.sleep(12)
        stream.leave()
        told = [one["params"] for one in (await stream.done()).messages]
    assert {one["taskId"] for one in told} == {made["taskId"]}
    assert told[-1]["status"] == "completed"
    assert told[-1]["_meta"]["dev.afoot/progress"] == {"progress": 10, "total": 10}


@faked
async def test_tasks_are_told_of_on_a_pipe() -> None:
    """H3: between answers."""
    async with site_of(walk) as gateway:
        pipe = Pipe(gateway)
        pipe.put(hello(), {"jsonrpc": "2.0", "method": "notifications/initialized"})
        await asyncio.sleep(0.1)
        pipe.put(request("tools/call", ASKED))
        await asyncio.sleep(12)
        told = [one for one in pipe.said if one.get("method") == "notifications/tasks/status"]
        await pipe.close()
    assert mcp_types.TaskStatusNotification.model_validate(told[-1]).params.status == "completed"


@faked
async def test_a_task_that_nobody_waits_for_asks_on_the_sessions_own_stream() -> None:
    """Q1, H3: once, with its task; an answer that does not fit is asked for again."""

    async def ask(run: Run) -> str:
        await asyncio.sleep(1)
        return said(await run.ask(form("name", '{"type":"object","required":["name"]}')))

    async with site_of(ask) as gateway:
        web = Web(gateway)
        await web.shake_hands(elicitation={})
        stream = web.open("GET")
        await asyncio.sleep(0.1)
        made = (await web.ask(request("tools/call", ASKED))).messages[0]["result"]["task"]
        await asyncio.sleep(2)
        waiter = web.post(request("tasks/result", {"taskId": made["taskId"]}, 5))
        await asyncio.sleep(1)
        for n, given in enumerate([YES, {"action": "accept", "content": {"name": "Ada"}}]):
            asked = [one for one in stream.messages if one.get("method") == "elicitation/create"]
            assert (
                len(asked) == n + 1 and asked[n]["params"]["_meta"][RELATED_TASK]["taskId"] == made["taskId"]
            )
            await web.ask({"jsonrpc": "2.0", "id": asked[n]["id"], "result": given})
            await asyncio.sleep(1)
        [result] = (await waiter.done()).messages
        stream.leave()
        await stream.done()
    assert "Ada" in result["result"]["content"][0]["text"]


@faked
async def test_the_token_of_the_request_holds_as_long_as_its_task() -> None:
    """H3, P6: progress by it on the session's own stream, rising, each with its task; then the end."""
    async with site_of(walk) as gateway:
        web = Web(gateway)
        await web.shake_hands()
        stream = web.open("GET")
        await asyncio.sleep(0.1)
        made = (await web.ask(request("tools/call", {**ASKED, "_meta": {"progressToken": "t"}}))).messages[0]
        task = made["result"]["task"]["taskId"]
        await asyncio.sleep(12)
        stream.leave()
        told = (await stream.done()).messages
    progress = [one["params"] for one in told if one["method"] == "notifications/progress"]
    assert {(one["progressToken"], one["_meta"][RELATED_TASK]["taskId"]) for one in progress} == {("t", task)}
    numbers = [one["progress"] for one in progress]
    assert numbers == sorted(set(numbers)) and numbers[-1] == 10 and len(numbers) >= 5
    assert told[-1]["method"] == "notifications/tasks/status" and told[-1]["params"]["status"] == "completed"


@faked
async def test_a_question_on_a_stream_that_broke_is_asked_on_the_next() -> None:
    """Q1, H3: whoever opens a stream is told how its tasks are, and asked what they ask."""
    async with site_of(ask_late) as gateway:
        web = Web(gateway)
        await web.shake_hands(elicitation={})
        await web.ask(request("tools/call", ASKED))
        asked: list[Message] = []
        for _ in range(2):
            stream = web.open("GET")
            await asyncio.sleep(2)
            stream.leave()
            await stream.done()
            asked.append(next(one for one in stream.messages if one.get("method") == "elicitation/create"))
        assert asked[0]["id"] != asked[1]["id"] and asked[0]["params"] == asked[1]["params"]
        await web.ask({"jsonrpc": "2.0", "id": asked[1]["id"], "result": YES})
        await asyncio.sleep(1)
        assert gateway.engine.calls() == []


@faked
async def test_many_tasks_take_no_news_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """H3, Q1: each is told of, and so is what it asks, however many begin before anybody is told."""
    monkeypatch.setattr(notifications, "MAX_WATCHED", 3)
    async with site_of(ask_late) as gateway:
        watching = TaskWatch(gateway, Wakeup(), lambda live: [live.call.id.encode()])
        calls = [gateway.engine.submit(Submission("tool")) for _ in range(6)]
        for live in calls:
            watching.follow(live)
        assert watching.take() == [live.call.id.encode() for live in calls]
        watching.close()


@faked
async def test_of_tasks_that_nobody_listens_to_those_that_are_over_are_not_kept_in_mind() -> None:
    """G3: their results may be large."""

    async def quick(run: Run) -> str:
        return "here"

    async with site_of(quick) as gateway:
        client = await shaken(gateway)
        for n in range(5):
            await start(client, n)
            await asyncio.sleep(1)
        assert len(client.session.task_watch._followed) == 1


@faked
async def test_a_token_that_a_task_is_told_by_is_no_other_requests() -> None:
    """P6, T4: nobody could tell the two apart; once the task is over it may be used again."""
    async with site_of(walk) as gateway:
        pipe = Pipe(gateway)
        pipe.put(hello(), {"jsonrpc": "2.0", "method": "notifications/initialized"})
        await asyncio.sleep(0.1)
        asked = {**ASKED, "_meta": {"progressToken": "t"}}
        for n in (1, 2):
            pipe.put(request("tools/call", asked, n))
            await asyncio.sleep(0.5)
        assert gateway.counters == {"tokens used twice": 1}
        await asyncio.sleep(15)
        pipe.put(request("tools/call", asked, 3))
        await asyncio.sleep(12)
        told = [one["params"] for one in pipe.said if one.get("method") == "notifications/progress"]
        await pipe.close()
    by_task = [one["_meta"][RELATED_TASK]["taskId"] for one in told]
    assert len(set(by_task)) == 2 and by_task == sorted(by_task), "one after the other"
    assert gateway.counters == {"tokens used twice": 1}
