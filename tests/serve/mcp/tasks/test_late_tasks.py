"""Late tasks: a plain call that takes long becomes a task while its request is open (H7)."""

import asyncio

import pytest

from afoot.core.ports import Run
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, Message, faked, now, only, said, site_of
from tests.serve.raw_transports import Pipe, Web, call
from tests.serve.task_client import ABLE, Asker, walk

LATE = {"task_after_s": 4.5}


@faked
async def test_a_long_call_becomes_a_task_behind_its_progress() -> None:
    """H7: progress on the stream of the request, then the task as its result, and nothing behind that."""
    async with site_of(walk, settings=LATE) as gateway:
        client = Asker(gateway)
        began = now()
        frames = (await client.web.ask(call(capabilities=ABLE, progressToken=1))).messages
        assert now() - began == pytest.approx(4.5, abs=0.1)
        *progress, last = frames
        assert [one["params"]["progress"] for one in progress] == [1, 2, 3, 4]
        made = last["result"]
        assert (made["resultType"], made["status"]) == ("task", "working")
        assert made["taskId"] == only(gateway).call.id
        assert (await client.get(made["taskId"]))["statusMessage"].startswith("4/10 · step 4")
        await asyncio.sleep(7)
        whole = await client.get(made["taskId"])
    assert whole["result"]["content"][0]["text"] == "there"


@faked
async def test_a_late_task_comes_on_a_pipe_as_well_and_outlives_it() -> None:
    """H7: the client's process may end now; its call does not."""
    async with site_of(walk, settings=LATE) as gateway:
        pipe = Pipe(gateway)
        made = (await pipe.ask(call(capabilities=ABLE), within_s=5))["result"]
        await pipe.close()
        assert made["resultType"] == "task"
        live = only(gateway)
        await asyncio.sleep(7)
    assert live.call.end is not None and live.call.end.outcome == "ok"


@pytest.mark.parametrize(
    ("can", "tool", "after_s"),
    [({}, "", 4.5), (ABLE, "forbidden", 4.5), (ABLE, "", 0.0), (ABLE, "", 60.0)],
    ids=["undeclared", "forbidden", "off", "short"],
)
@faked
async def test_other_calls_stay_as_they_are(can: Message, tool: str, after_s: float) -> None:
    """H7: the client must declare tasks, the tool may forbid them, and the setting may switch them off."""
    async with site_of(walk, settings={"task_after_s": after_s}, task=tool) as gateway:
        result = (await Asker(gateway, can).start())["result"]
    assert (result["resultType"], result["content"][0]["text"]) == ("complete", "there")


@faked
async def test_a_question_comes_before_the_task_and_another_one_through_it() -> None:
    """H7, Q1: what is asked while the request is open is a round; the time counts from the first request."""

    async def ask_twice(run: Run) -> str:
        await asyncio.sleep(3)
        first = said(await run.ask(form("first")))
        await asyncio.sleep(3)
        return f"{first}, {said(await run.ask(form('second')))}"

    async with site_of(ask_twice, settings=LATE) as gateway:
        client = Asker(gateway)
        asked = (await client.start())["result"]
        assert asked["resultType"] == "input_required"
        again = call(capabilities=ABLE, requestState=asked["requestState"], inputResponses={"first": YES})
        began = now()
        made = (await client.send(again))["result"]
        assert made["resultType"] == "task" and now() - began == pytest.approx(1.5, abs=0.1)
        await asyncio.sleep(3)
        [key] = (await client.get(made["taskId"]))["inputRequests"]
        await client.about("tasks/update", made["taskId"], inputResponses={key: YES})
        whole = await client.get(made["taskId"])
    assert whole["result"]["content"][0]["text"] == "accept {} by local, accept {} by local"


@faked
async def test_a_client_that_cannot_wait_gets_a_task_and_no_handle() -> None:
    """H7, H5: it declares tasks, so it needs no tools to find its call again."""
    settings = {"caller_limit_s": 4.0}
    async with site_of(walk, settings=settings) as gateway:
        web = Web(gateway)
        result = (await web.ask(call(capabilities={"extensions": ABLE["extensions"]}))).messages[-1]["result"]
        assert result["resultType"] == "task" and result["taskId"] == only(gateway).call.id
