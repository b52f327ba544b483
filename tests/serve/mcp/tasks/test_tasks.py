"""Calls as tasks of 2026-07-28: when a request ends with one, and what can be done with it (H3)."""

import asyncio

import pytest

from afoot.core.facts import CancelRequested
from afoot.core.ports import Run
from afoot.engine.live_call import Claim, Submission
from afoot.wire.results import TASKS_EXTENSION
from tests.engine.fake_engine import Journalist, facts, form, kinds
from tests.serve.fake_gateway import YES, Message, faked, nap, now, only, question, said, site_of
from tests.serve.raw_transports import Pipe, Web, call
from tests.serve.task_client import ABLE, Asker, ask_first, ask_late, walk


@faked
async def test_a_call_that_takes_longer_than_a_moment_is_a_task_and_its_progress_is_live() -> None:
    """H3: created, polled with numbers and words, and its result at the end."""
    async with site_of(walk, task="optional") as gateway:
        client = Asker(gateway)
        made = (await client.start())["result"]
        assert made["resultType"] == "task" and made["status"] == "working"
        assert made["taskId"] == only(gateway).call.id
        await asyncio.sleep(3.5)
        half = await client.get(made["taskId"])
        assert half["_meta"]["dev.afoot/progress"] == {"progress": 3, "total": 10, "eta_s": 6.5}
        assert half["statusMessage"] == "3/10 · step 3, ~6 s left"
        await asyncio.sleep(7)
        whole = await client.get(made["taskId"])
    assert whole["status"] == "completed" and whole["result"]["content"][0]["text"] == "there"


@faked
async def test_who_polls_a_long_task_is_told_how_long_it_still_takes() -> None:
    """H3, P9: in the line, and in numbers."""
    async with site_of(walk, task="optional") as gateway:
        client = Asker(gateway)
        task = (await client.start())["result"]["taskId"]
        await asyncio.sleep(6.5)
        half = await client.get(task)
    assert half["statusMessage"] == "6/10 · step 6, ~4 s left"
    assert half["_meta"]["dev.afoot/progress"]["eta_s"] == 3.5


@faked
async def test_what_is_over_in_a_moment_is_answered_at_once() -> None:
    """H3: nobody has to ask twice for what is there."""

    async def quick(run: Run) -> str:
        return "here"

    async with site_of(quick, task="optional") as gateway:
        result = (await Asker(gateway).start())["result"]
    assert result["resultType"] == "complete" and result["content"][0]["text"] == "here"


@pytest.mark.parametrize(
    ("task", "can", "kind"),
    [
        ("optional", ABLE, "task"),
        ("required", ABLE, "task"),
        ("forbidden", ABLE, "complete"),
        ("", ABLE, "complete"),
        ("optional", {}, "complete"),
        ("optional", {"extensions": {"com.example/other": {}}}, "complete"),
    ],
)
@faked
async def test_tool_and_caller_decide_together(task: str, can: Message, kind: str) -> None:
    """H3: by the tool's declaration and the caller's capability."""
    async with site_of(nap, task=task) as gateway:
        assert (await Asker(gateway, can).start())["result"]["resultType"] == kind


@faked
async def test_a_tool_that_must_be_a_task_is_refused_to_others() -> None:
    """H3: -32021, before anything runs."""
    async with site_of(nap, task="required") as gateway:
        error = (await Asker(gateway, {}).start())["error"]
        assert error["code"] == -32021 and gateway.engine.calls() == []
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}


@pytest.mark.parametrize(
    ("after_s", "runs", "kind", "answered_s"),
    [(5, 5, "task", 0), (5, 4, "task", 5), (60, 5, "complete", 10), (0, 5, "complete", 10)],
)
@faked
async def test_what_usually_takes_long_becomes_a_task(
    after_s: float, runs: int, kind: str, answered_s: float
) -> None:
    """H3, H7: at once by the learned duration; with too few runs nothing is known, so late."""
    async with site_of(nap, settings={"task_after_s": after_s}) as gateway:
        for _ in range(runs):
            gateway.engine.durations.add("bench/tool", 10)
        began = now()
        assert (await Asker(gateway).start())["result"]["resultType"] == kind
        assert now() - began == pytest.approx(answered_s, abs=0.1)


@faked
async def test_a_question_is_answered_through_the_task() -> None:
    """H3, Q1: input_required, tasks/update, and on it goes; other keys count for nothing."""
    async with site_of(ask_late, task="optional") as gateway:
        client = Asker(gateway)
        task = (await client.start())["result"]["taskId"]
        await asyncio.sleep(2)
        waiting = await client.get(task)
        [key] = waiting["inputRequests"]
        assert waiting["status"] == "input_required"
        nothing = await client.about("tasks/update", task, inputResponses={"other": YES})
        assert nothing["result"]["resultType"] == "complete"
        assert (await client.get(task))["status"] == "input_required"
        await client.about("tasks/update", task, inputResponses={key: YES})
        whole = await client.get(task)
    assert whole["result"]["content"][0]["text"] == "accept {} by local"


@faked
async def test_an_answer_that_does_not_fit_is_told_and_the_question_stays() -> None:
    """Q2: -32602 with the field."""

    async def name(run: Run) -> str:
        await asyncio.sleep(1)
        return said(await run.ask(form("name", '{"type":"object","required":["name"]}')))

    async with site_of(name, task="optional") as gateway:
        client = Asker(gateway)
        task = (await client.start())["result"]["taskId"]
        await asyncio.sleep(2)
        [key] = (await client.get(task))["inputRequests"]
        error = (await client.about("tasks/update", task, inputResponses={key: YES}))["error"]
        assert error["code"] == -32602 and "name" in error["message"]
        error = (await client.about("tasks/update", task, inputResponses={key: 5}))["error"]
        assert error["message"] == f"params.inputResponses.{key}: Expected `object`, got `int`"
        assert (await client.get(task))["status"] == "input_required"


@faked
async def test_what_a_tool_asks_first_is_asked_before_there_is_a_task() -> None:
    """H3, Q1: a round, and the task comes with its retry."""
    async with site_of(ask_first, task="required") as gateway:
        client = Asker(gateway)
        first = (await client.start())["result"]
        assert first["resultType"] == "input_required" and "taskId" not in first
        [key] = first["inputRequests"]
        second = call(2, capabilities=ABLE, requestState=first["requestState"], inputResponses={key: YES})
        made = (await client.send(second))["result"]
        assert made["resultType"] == "task" and "requestState" not in made
        await asyncio.sleep(6)
        assert (await client.get(made["taskId"]))["status"] == "completed"


@faked
async def test_what_nobody_can_answer_for_the_caller_is_declined() -> None:
    """Q1, H3: a task whose caller has no model does not wait for one."""

    async def sample(run: Run) -> str:
        await asyncio.sleep(1)
        return said(await run.ask(question("sample")))

    async with site_of(sample, task="optional") as gateway:
        client = Asker(gateway)
        task = (await client.start())["result"]["taskId"]
        await asyncio.sleep(2)
        await client.get(task)
        await asyncio.sleep(1)
        assert (await client.get(task))["result"]["content"][0]["text"] == "decline  by engine"


@faked
async def test_a_task_is_cancelled_and_a_second_cancel_changes_nothing() -> None:
    """X1, H3: an empty acknowledgement; the caller is named as who did it."""
    async with site_of(nap, task="optional") as gateway:
        client = Asker(gateway)
        task = (await client.start())["result"]["taskId"]
        live = only(gateway)
        for _ in range(2):
            acknowledged = (await client.about("tasks/cancel", task))["result"]
            assert acknowledged.keys() == {"resultType", "_meta"}
            await asyncio.sleep(1)
        assert (await client.get(task))["status"] == "cancelled"
    assert [fact.by for fact in facts(live, CancelRequested)] == ["caller"]


@faked
async def test_a_task_outlives_the_request_that_made_it_and_its_time_after_its_end() -> None:
    """H3: the time to live counts from its end; then it has expired."""
    async with site_of(nap, task="optional", settings={"task_ttl_s": 60}) as gateway:
        client = Asker(gateway)
        made = (await client.start())["result"]
        assert made["ttlMs"] >= 60_000
        await asyncio.sleep(5)
        assert (await client.get(made["taskId"]))["ttlMs"] >= 65_000
        await asyncio.sleep(64)
        assert (await client.get(made["taskId"]))["ttlMs"] == 70_000
        await asyncio.sleep(2)
        error = (await client.about("tasks/get", made["taskId"]))["error"]
    assert error["code"] == -32602 and "expired" in error["message"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@faked
async def test_a_task_of_somebody_else_is_as_unknown_as_one_that_there_is_not(method: str) -> None:
    """S3, H3: word for word."""
    async with site_of(nap) as gateway:
        theirs = gateway.engine.submit(Submission("tool", caller="session:other")).call.id
        none = theirs[:-1] + ("0" if theirs[-1] != "0" else "1")
        client = Asker(gateway)
        errors = [(await client.about(method, one, inputResponses={}))["error"] for one in (theirs, none)]
        assert errors[0]["code"] == errors[1]["code"] == -32602
        assert errors[0]["message"].replace(theirs, "") == errors[1]["message"].replace(none, "")
        assert only(gateway).call.cancel is None


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
@faked
async def test_methods_of_the_older_era_are_unknown(method: str) -> None:
    """H3: -32601."""
    async with site_of(nap) as gateway:
        assert (await Asker(gateway).about(method, "c"))["error"]["code"] == -32601


@faked
async def test_the_history_says_which_calls_were_asked_for_as_tasks() -> None:
    """H3: and by which key."""
    async with site_of(nap) as gateway:
        live = gateway.engine.submit(Submission("tool", claim=Claim("key", True)))
    assert (live.call.opened.key, live.call.opened.task) == ("key", True)


@faked
async def test_a_state_that_is_changed_or_somebody_elses_finds_no_task() -> None:
    """Q1 c, S3: -32602 for each; the same again, unchanged, finds the same task."""
    async with site_of(ask_first, task="required") as gateway:
        client = Asker(gateway)
        first = (await client.start())["result"]
        state, [key] = first["requestState"], first["inputRequests"]
        answers = {"inputResponses": {key: YES}}
        other = state[:-2] + ("AA" if state[-2:] != "AA" else "BB")
        session = Web(gateway)
        await session.shake_hands()
        for wrong in (
            call(2, capabilities=ABLE, requestState=other, **answers),
            call(2, capabilities=ABLE, requestState=session.session, **answers),
            call(2, capabilities=ABLE, requestState=state, arguments={"a": 1}, **answers),
        ):
            assert (await client.send(wrong))["error"]["code"] == -32602
        stranger = Pipe(gateway)
        refused = await stranger.ask(call(2, capabilities=ABLE, requestState=state, **answers))
        assert refused["error"]["code"] == -32602
        retry = call(2, capabilities=ABLE, requestState=state, **answers)
        made = [(await client.send(retry))["result"] for _ in range(2)]
        assert {one["taskId"] for one in made} == {only(gateway).call.id}
        await stranger.close()


@faked
async def test_there_is_no_task_before_it_is_on_record() -> None:
    """H3, H1: whoever has its id finds it, also after a crash; and so it is with a cancel."""
    journal = Journalist()
    journal.delay_s = 1.5
    async with site_of(walk, journal=journal, task="optional") as gateway:
        client, began = Asker(gateway), now()
        task = (await client.start())["result"]["taskId"]
        assert now() - began >= 1.5 and await kinds(journal, task)
        await client.about("tasks/cancel", task)
        assert "CancelRequested" in await kinds(journal, task)
        journal.delay_s = 0.0
