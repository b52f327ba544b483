"""Tasks on streams that are held open: who is told of them, how often, and of nobody else's (H3)."""

import asyncio

from afoot.core.ports import Run
from afoot.engine.live_call import Submission
from afoot.serve.mcp.tasks.notifications import EVENT_MAX_BYTES
from tests.serve.fake_gateway import faked, nap, only, site_of
from tests.serve.raw_transports import Pipe, Web, call, modern
from tests.serve.task_client import ABLE, Asker, walk


@faked
async def test_a_task_is_told_of_on_a_listen_stream_until_its_end() -> None:
    """H3: at once how it is, then each change, at most one a second, whole; and nothing of other tasks."""
    async with site_of(walk, task="optional") as gateway:
        client = Asker(gateway)
        task = (await client.start())["result"]["taskId"]
        theirs = gateway.engine.submit(Submission("tool", caller="session:other")).call.id
        params = {"notifications": {"taskIds": [task, theirs, "none"]}}
        stream = client.web.post(modern("subscriptions/listen", params, 7, capabilities=ABLE))
        await asyncio.sleep(15)
        stream.leave()
        [acknowledged, *news] = (await stream.done()).messages
    assert acknowledged["params"]["notifications"] == {"taskIds": [task]}
    told = [one["params"] for one in news if one["method"] == "notifications/tasks"]
    assert {one["taskId"] for one in told} == {task}
    assert {one["_meta"]["io.modelcontextprotocol/subscriptionId"] for one in told} == {7}
    numbers = [one["_meta"]["dev.afoot/progress"].get("progress") for one in told]
    assert numbers[0] is None and numbers[-1] == 10 and len(numbers) <= 13
    assert told[-1]["status"] == "completed" and told[-1]["result"]["content"][0]["text"] == "there"


@faked
async def test_who_did_not_declare_tasks_cannot_listen_to_them() -> None:
    """H3: -32021."""
    async with site_of(nap) as gateway:
        params = {"notifications": {"taskIds": ["c"]}}
        error = (await Asker(gateway, {}).send(modern("subscriptions/listen", params, capabilities={})))[
            "error"
        ]
    assert error["code"] == -32021


@faked
async def test_tasks_work_on_a_pipe() -> None:
    """H3: created, polled, told of and cancelled over stdio."""
    async with site_of(walk, task="optional") as gateway:
        pipe = Pipe(gateway)
        made = (await pipe.ask(call(1, capabilities=ABLE), 0.2))["result"]
        about = {"taskId": made["taskId"]}
        listen = {"notifications": {"taskIds": [made["taskId"]]}}
        pipe.put(modern("subscriptions/listen", listen, 2, capabilities=ABLE))
        await asyncio.sleep(3)
        found = (await pipe.ask(modern("tasks/get", about, 3, capabilities=ABLE)))["result"]
        assert found["_meta"]["dev.afoot/progress"]["progress"] == 3
        pipe.put(modern("tasks/cancel", about, 4, capabilities=ABLE))
        await asyncio.sleep(1)
        told = [one["params"] for one in pipe.said if one.get("method") == "notifications/tasks"]
        await pipe.close()
    assert told[-1]["status"] == "cancelled"


@faked
async def test_leaving_before_there_is_a_task_cancels_and_after_it_does_not() -> None:
    """X1: whoever has no id yet cannot find it again."""
    async with site_of(nap, task="optional") as gateway:
        web = Web(gateway)
        early = web.post(call(capabilities=ABLE))
        await asyncio.sleep(0)
        early.leave()
        await early.done()
        await asyncio.sleep(1)
        assert gateway.engine.calls() == []
        await web.post(call(capabilities=ABLE)).done()
        await asyncio.sleep(1)
        assert only(gateway).call.cancel is None


@faked
async def test_a_large_result_is_told_where_its_reader_takes_it() -> None:
    """H3, G3: on a pipe whole; an event of a stream may not be so large, and who polls gets it."""

    async def large(run: Run) -> str:
        await asyncio.sleep(1)
        return "x" * EVENT_MAX_BYTES

    async with site_of(large, task="optional") as gateway:
        pipe, client = Pipe(gateway), Asker(gateway)
        made = (await pipe.ask(call(1, capabilities=ABLE), 0.2))["result"]["taskId"]
        other = (await client.start())["result"]["taskId"]
        pipe.put(modern("subscriptions/listen", {"notifications": {"taskIds": [made]}}, 2, capabilities=ABLE))
        listen = modern("subscriptions/listen", {"notifications": {"taskIds": [other]}}, capabilities=ABLE)
        stream = client.web.post(listen)
        await asyncio.sleep(3)
        stream.leave()
        told = [one["params"] for one in (await stream.done()).messages[1:]]
        assert [one["status"] for one in told] == ["working"]
        assert len((await client.get(other))["result"]["content"][0]["text"]) == EVENT_MAX_BYTES
        told = [one["params"] for one in pipe.said if one.get("method") == "notifications/tasks"]
        await pipe.close()
    assert (
        told[-1]["status"] == "completed" and len(told[-1]["result"]["content"][0]["text"]) == EVENT_MAX_BYTES
    )
