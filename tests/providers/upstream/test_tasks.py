"""Tools that run only as tasks: afoot drives the task, and the call knows nothing of it."""

import asyncio
from typing import Any

import pytest

from afoot.errors import RunnerDied, ToolError
from tests.providers.fake_run import ScriptedRun, accept, decoded, text_of, until
from tests.providers.upstream.started_servers import opened, raw, run_tool

BOTH = pytest.mark.parametrize("speaks", ["2025", "2026"])
WORKING: dict[str, Any] = {"status": "working"}
ASKING: dict[str, Any] = {"status": "input_required"}
DONE: dict[str, Any] = {"status": "completed"}


@BOTH
async def test_the_status_of_a_task_is_the_progress_of_its_call(speaks: str) -> None:
    """U9: each message once, and every answer is a sign of life; the result is the task's."""
    steps = [{"statusMessage": "one"}, {"statusMessage": "two"}, {"statusMessage": "two"}, DONE]
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun()
        result = await run_tool(upstream, "job", run, steps=steps)
        assert text_of(result) == "done"
        messages = [message for _, _, message in run.readings]
        assert list(dict.fromkeys(messages)) == ["one", "two"] and run.beats
        ends = ["tasks/result"] if speaks == "2025" else []
        assert decoded(result.structured)["asked"] == ["tools/call", *["tasks/get"] * 3, *ends]


@BOTH
async def test_a_task_is_asked_for_as_often_as_its_server_suggests(speaks: str) -> None:
    """U9: not sooner than `pollInterval` says."""
    async with opened(raw(speaks)) as upstream:
        result = await run_tool(upstream, "job", steps=[WORKING, WORKING, DONE], poll=120)
        assert min(decoded(result.structured)["pauses"][:2]) >= 0.1


@BOTH
async def test_a_question_of_a_task_is_one_of_its_call(speaks: str) -> None:
    """U9, Q1: answered with `tasks/update`, or while `tasks/result` waits."""
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun(answers=[accept({"sure": True})])
        result = await run_tool(upstream, "job", run, steps=[WORKING, ASKING, WORKING, DONE])
        assert [one.message for one in run.questions] == ["sure?"]
        answer = {"action": "accept", "content": {"sure": True}}
        assert decoded(result.structured)["answers"] == (answer if speaks == "2025" else {"q": answer})


async def test_the_token_of_a_task_of_2025_stays_valid() -> None:
    """U9, P1: progress behind the answer that made the task is the call's."""
    async with opened(raw("2025")) as upstream:
        run = ScriptedRun()
        await run_tool(upstream, "job", run, steps=[WORKING, DONE])
        assert (1, 4, "one") in run.readings
        assert "late_progress" not in upstream.counted


async def test_a_state_that_the_server_tells_of_is_taken_at_once() -> None:
    """U9: no need to poll for it."""
    push = {**DONE, "result": {"content": [{"type": "text", "text": "pushed"}]}}
    async with opened(raw("2026")) as upstream, asyncio.timeout(5):
        assert text_of(await run_tool(upstream, "job", steps=[WORKING], poll=60_000, push=push)) == "pushed"


@BOTH
@pytest.mark.parametrize(
    ("last", "said"),
    [({"status": "cancelled", "statusMessage": "by me"}, "cancelled its task: by me"), ({"gone": 1}, "task")],
    ids=["cancelled", "forgotten"],
)
async def test_a_task_that_ends_otherwise_fails_its_call(speaks: str, last: Any, said: str) -> None:
    """U9: in words that say what happened."""
    more: dict[str, Any] = {"forgotten": True} if "gone" in last else {}
    async with opened(raw(speaks)) as upstream:
        with pytest.raises(ToolError, match=said):
            await run_tool(upstream, "job", steps=[WORKING, last], **more)


async def test_the_error_of_a_task_is_that_of_its_call() -> None:
    """U9: as if it had been no task."""
    async with opened(raw("2026")) as upstream:
        with pytest.raises(ToolError, match="server raw: the disk is full"):
            await run_tool(upstream, "job", steps=[WORKING, {"status": "failed"}])


@BOTH
async def test_a_call_that_is_cancelled_cancels_its_task(speaks: str) -> None:
    """U9, X1: also one that has run into a limit."""
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun()
        call = asyncio.ensure_future(run_tool(upstream, "job", run, steps=[{"statusMessage": "one"}]))
        await until(lambda: run.readings)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "the task was cancelled" in [line for _, line in upstream.logs])
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"


@BOTH
async def test_a_server_that_dies_takes_its_task_along(speaks: str) -> None:
    """U9, U4: the runner has died, and the call may have begun."""
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun()
        steps = [{"statusMessage": "one"}]
        call = asyncio.ensure_future(run_tool(upstream, "job", run, steps=steps, poll=60_000))
        await until(lambda: run.readings)
        with pytest.raises(RunnerDied):
            await run_tool(upstream, "die")
        async with asyncio.timeout(5):  # long before the next poll
            with pytest.raises(RunnerDied) as caught:
                await call
        assert "SIGKILL" in str(caught.value) and caught.value.began


async def test_a_tool_that_needs_tasks_is_found_out_once() -> None:
    """U9: the first call is refused before it begins; later ones declare tasks at once, others never do."""
    async with opened(raw("2026")) as upstream:
        for _ in range(2):
            await run_tool(upstream, "job", steps=[DONE])
        assert text_of(await run_tool(upstream, "declared")) == "{}"
