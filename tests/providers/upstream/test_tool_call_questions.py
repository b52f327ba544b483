"""Questions of servers: nested requests, rounds, pages to visit; and who is asked."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.facts import Answer
from afoot.errors import ToolError
from afoot.providers.upstream import tool_call
from tests.providers.fake_run import ScriptedRun, accept, decoded, text_of, until
from tests.providers.upstream.started_servers import opened, raw, run_tool

BOTH = pytest.mark.parametrize("speaks", ["2025", "2026"])


@BOTH
@pytest.mark.parametrize(("action", "said"), [("decline", "no"), ("cancel", "no")])
async def test_a_question_that_is_not_accepted_is_told_to_the_server(
    speaks: str, action: str, said: str
) -> None:
    """Q2: it goes on with that."""
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun(answers=[Answer(action)])
        assert text_of(await run_tool(upstream, "confirm", run)) == said


@BOTH
async def test_samples_and_roots_are_asked_for_and_given(speaks: str) -> None:
    """Q1: for those who still use them."""
    async with opened(raw(speaks, per_caller=True)) as upstream:
        run = ScriptedRun(answers=[accept({"role": "assistant"}), accept([{"uri": "file:///a"}])])
        assert decoded(Raw(text_of(await run_tool(upstream, "sample", run)).encode())) == {
            "role": "assistant"
        }
        assert "file:///a" in text_of(await run_tool(upstream, "roots", run))
        assert [question.kind for question in run.questions] == ["sample", "roots"]


async def test_a_sample_that_is_refused_is_an_error_on_each_wire() -> None:
    """Q2: a nested request gets an error, a round fails the call."""
    async with opened(raw("2025")) as upstream:
        run = ScriptedRun(answers=[Answer("decline")])
        assert "rejected" in text_of(await run_tool(upstream, "sample", run))
    async with opened(raw("2026")) as upstream:
        with pytest.raises(ToolError, match="rejected") as caught:
            await run_tool(upstream, "sample", ScriptedRun(answers=[Answer("decline")]))
        assert caught.value.category == "refused"


async def test_a_question_of_a_shared_pipe_goes_to_the_operator_unless_all_calls_are_one_callers() -> None:
    """Q3: on stdio nothing says whose call asks, and one caller's questions are not another's."""
    async with opened(raw("2025")) as upstream:
        own, other = ScriptedRun(), ScriptedRun()
        other.caller = "another"
        hanging = asyncio.create_task(run_tool(upstream, "hang", own))
        await until(lambda: own.readings)
        mine = ScriptedRun(answers=[accept({"sure": True})])
        await run_tool(upstream, "confirm", mine)
        asking = asyncio.create_task(run_tool(upstream, "confirm", other))
        await asyncio.wait_for(other.asked.wait(), 5)
        assert (mine.questions[0].to, other.questions[0].to) == ("", "operator")
        for task in (hanging, asking):
            task.cancel()


async def test_rounds_are_driven_to_their_end() -> None:
    """Q1: each answer goes back with its state, and progress goes on over them."""
    async with opened(raw("2026")) as upstream:
        run = ScriptedRun(answers=[accept({"sure": True})] * 3)
        assert text_of(await run_tool(upstream, "rounds", run, n=3)) == "3 rounds"
        assert [question.key for question in run.questions] == ["step0", "step1", "step2"]
        assert [reading[0] for reading in run.readings] == [0, 1, 2]


async def test_rounds_with_questions_have_a_bound_and_those_without_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Q1, H5: a server that only says "ask again" keeps us waiting as long as the clocks allow."""
    monkeypatch.setattr(tool_call, "PAUSE_S", (0.001, 0.002))
    async with opened(raw("2026")) as upstream:
        with pytest.raises(ToolError, match="more than 10 rounds"):
            await run_tool(upstream, "rounds", ScriptedRun(answers=[accept({"sure": True})] * 12), n=12)
        run = ScriptedRun()
        assert text_of(await run_tool(upstream, "states", run, n=12)) == "12 rounds"
        assert run.beats == 12


async def test_a_page_that_must_be_visited_first_is_shown_and_the_call_made_again() -> None:
    """Q2: the server tells when it was visited; meanwhile the clocks stand still."""
    async with opened(raw("2025")) as upstream:
        run = ScriptedRun(answers=[Answer("accept")])
        assert text_of(await run_tool(upstream, "visit", run)) == "visited"
        assert [(asked.kind, decoded(asked.body)) for asked in run.questions] == [
            ("url", "https://example.org/x")
        ]
        assert run.waits[-1] is None
        with pytest.raises(ToolError, match="log in first"):
            await run_tool(upstream, "visit", ScriptedRun(answers=[Answer("decline")]))
