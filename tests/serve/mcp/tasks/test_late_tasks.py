"""Late tasks: a plain call that takes long becomes a task while its request is open (H7)."""

import asyncio
import json

import pytest

from afoot.core.facts import HandedOver
from afoot.core.ports import Batch, Run
from afoot.engine.recovery import recover
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, Message, faked, now, only, said, site_of
from tests.serve.raw_transports import Pipe, Web, call, modern
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


@pytest.mark.parametrize("can", [ABLE, {}, {"elicitation": {}}], ids=["task", "handle", "round"])
@faked
async def test_a_call_that_was_handed_over_outlives_the_gateway(can: Message) -> None:
    """H4, H7, H5: it is on record before its caller is told, so the next gateway runs it again."""
    settings = {"task_after_s": 4.5} if can == ABLE else {"caller_limit_s": 6.0}
    journal = MemoryJournal()
    async with site_of(walk, settings=settings, idempotent=True) as gateway:
        told = (await Web(gateway).ask(call(capabilities=can))).messages[-1]["result"]
        call_id = only(gateway).call.id
        # This is the moment in which the caller has its answer; the gateway dies at once.
        journal.write(Batch(entries=await gateway.engine.journal.facts(call_id)))
    assert call_id in json.dumps(told) or told["resultType"] == "input_required"
    async with site_of(walk, settings=settings, idempotent=True, journal=journal) as gateway:
        await recover(gateway.engine)
        live = only(gateway)
        await asyncio.sleep(12)
        if can == ABLE:
            found = await Asker(gateway).get(call_id)
            assert found["result"]["content"][0]["text"] == "there"
        elif told["resultType"] == "input_required":
            again = call(capabilities=can, requestState=told["requestState"])
            found = (await Web(gateway).ask(again)).messages[-1]["result"]
            assert found["content"][0]["text"] == "there"
    assert live.call.id == call_id and live.call.attempt == 2
    assert live.call.end is not None and live.call.end.outcome == "ok"


@faked
async def test_a_call_is_handed_over_once_on_record() -> None:
    """H5: however often its caller waits for it in vain."""
    async with site_of(walk, settings={"caller_limit_s": 2.0}) as gateway:
        web = Web(gateway)
        await web.ask(call(capabilities={}))
        live = only(gateway)
        params = {"name": "afoot_wait", "arguments": {"call": live.call.id}}
        for _ in range(3):
            await web.ask(modern("tools/call", params, capabilities={}))
        entries = await gateway.engine.journal.facts(live.call.id)
    assert [type(entry.fact) for entry in entries].count(HandedOver) == 1


@faked
async def test_a_key_that_joins_a_plain_call_as_a_task_makes_it_one() -> None:
    """H7, D2: the task that the second request is given survives the gateway, as every task."""
    async with site_of(walk, settings=LATE) as gateway:
        key = {"dev.afoot/idempotency": "k"}
        first = asyncio.create_task(Web(gateway).ask(call(capabilities={}, **key)))
        await asyncio.sleep(1)
        made = (await Asker(gateway).start(**key))["result"]
        assert made["resultType"] == "task" and only(gateway).call.is_task
        assert (await first).messages[-1]["result"]["content"][0]["text"] == "there"
