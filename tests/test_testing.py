"""What authors test their tools with: the fake clock, trying a tool, and tools that follow a script."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

import afoot
from afoot import Context
from afoot.core.facts import Released
from afoot.testing import Trial, run, scripted, try_tool

REAL_S = 5.0  # no test here may really take as long as it pretends


@pytest.fixture(autouse=True)
def no_real_time() -> Iterator[None]:
    """However much fake time passes, hardly any real time does."""
    before = time.monotonic()
    yield
    assert time.monotonic() - before < REAL_S


@afoot.tool
async def export(pages: int, ctx: Context | None = None) -> dict[str, int]:
    """Export pages, two a second."""
    for n in range(pages):
        await asyncio.sleep(0.5)
        if ctx:
            ctx.report(n + 1, pages, f"page {n + 1}")
    return {"pages": pages}


def test_a_tool_is_tried_in_three_lines() -> None:
    """Deliver 9: its result, its time and its reports."""
    outcome = try_tool(export, pages=200)
    assert outcome.outcome == "ok" and outcome.result == {"pages": 200}
    assert outcome.elapsed_s == 100 and outcome.readings[-1].progress == 200 and len(outcome.readings) == 200


def test_a_tool_that_is_silent_for_too_long_times_out() -> None:
    """C2, Deliver 9: limits come from the settings."""
    outcome = try_tool(export, pages=200, settings={"ceiling_s": 10})
    assert (outcome.outcome, outcome.elapsed_s) == ("timed_out", 10)
    assert outcome.failure and outcome.failure.clock == "ceiling" and outcome.failure.last
    assert outcome.failure.last.progress == 19


def test_a_wrong_setting_is_told() -> None:
    """Deliver 9: with its name."""
    with pytest.raises(Exception, match="idel_s"):
        try_tool(export, pages=1, settings={"idel_s": 10})


def test_a_tool_can_be_cancelled() -> None:
    """X1, Deliver 9: and says how far it was."""
    outcome = try_tool(export, pages=200, cancel_after=3.2)
    assert (outcome.outcome, outcome.elapsed_s) == ("cancelled", 3.2)
    assert outcome.failure and outcome.failure.last and outcome.failure.last.message == "page 6"


def test_a_cancel_after_the_end_does_nothing() -> None:
    """X1: it was too late."""
    assert try_tool(export, pages=1, cancel_after=99).outcome == "ok"


def test_wrong_arguments_are_an_outcome() -> None:
    """E4: as a caller would see it."""
    outcome = try_tool(export, pages="many")
    assert outcome.outcome == "failed" and outcome.failure and "pages" in outcome.failure.message


@afoot.tool
async def confirm(ctx: Context) -> str:
    """Ask twice."""
    first = await ctx.ask("sure?", bool)
    second = await ctx.ask("really?", bool, key="really")
    return f"{first.content} {second.action}"


def test_questions_are_answered_by_key() -> None:
    """Q1, Deliver 9: content to accept, or a word to say no."""
    outcome = try_tool(confirm, answers={"q1": {"value": True}, "really": "decline"})
    assert outcome.result == {"result": "True decline"} or outcome.result == "True decline"
    assert [question.key for question in outcome.questions] == ["q1", "really"]


def test_a_question_without_an_answer_waits_for_its_limit() -> None:
    """C6: ten minutes that take no time."""
    outcome = try_tool(confirm, answers={"q1": {"value": True}})
    assert outcome.failure and (outcome.failure.clock, outcome.elapsed_s) == ("answer", 600)


@afoot.tool
def blocking(ctx: Context) -> str:
    """A sync tool that prints, works for a moment, and asks."""
    print("working")
    time.sleep(0.02)
    ctx.report(1, 2)
    return ctx.ask("sure?", bool).action


def test_a_sync_tool_works_in_real_time_while_the_clock_stands_still() -> None:
    """G4, Deliver 9: its thread is waited for."""
    outcome = try_tool(blocking, answers={"q1": {"value": True}})
    assert (outcome.outcome, outcome.elapsed_s) == ("ok", 0)
    assert outcome.logs == ["working"] and outcome.readings[-1].total == 2


def test_a_sync_tool_that_waits_for_an_answer_lets_time_pass() -> None:
    """C6, G4: its thread is not at work."""
    outcome = try_tool(blocking)
    assert outcome.failure and (outcome.failure.clock, outcome.elapsed_s) == ("answer", 600)


def test_a_sync_tool_that_is_stuck_can_be_timed_out() -> None:
    """C7, G4: `cancel_after` moves the clock past its limit, and the thread learns of it."""
    seen = threading.Event()

    @afoot.tool
    def stuck(ctx: Context) -> str:
        """Works until it is told to stop."""
        while not ctx.cancelled:
            time.sleep(0.001)
        seen.set()
        return "stopped"

    outcome = try_tool(stuck, cancel_after=100)
    assert outcome.failure and (outcome.failure.clock, outcome.elapsed_s) == ("idle", 30)
    assert seen.wait(2)


def test_a_sync_tool_that_never_stops_holds_up_no_test() -> None:
    """C7, G4: after a real second the clock goes on to the end of its grace."""
    go = threading.Event()

    @afoot.tool
    def deaf() -> str:
        """Works for ever."""
        go.wait(REAL_S * 2)
        return "late"

    outcome = try_tool(deaf, cancel_after=10)
    go.set()
    assert (outcome.outcome, outcome.elapsed_s) in (("cancelled", 10), ("cancelled", 15))


def test_a_tool_on_its_own_loop_can_be_tried() -> None:
    """G4: it lives in real time too."""

    @afoot.tool(own_loop=True)
    async def apart(ctx: Context) -> str:
        """Sleeps for a moment."""
        await asyncio.sleep(0.02)
        ctx.report(1, 1)
        return "done"

    outcome = try_tool(apart)
    assert (outcome.outcome, outcome.elapsed_s, len(outcome.readings)) == ("ok", 0, 1)


def test_a_tool_with_parameters_of_our_names_is_tried_as_a_trial() -> None:
    """Deliver 9: nothing is out of reach."""

    @afoot.tool
    async def odd(answers: str, settings: str) -> str:
        """Takes odd parameters."""
        return answers + settings

    assert "ab" in str(run(Trial(odd, {"answers": "a", "settings": "b"}).run()).result)


def test_a_script_is_followed() -> None:
    """Deliver 9: every kind of step."""
    script = scripted(
        ("report", 1, 10, "begun"), ("sleep", 5), ("alive",), ("log", "a line"), ("partial", "half"),
        ("checkpoint", {"at": 1}), ("ask", "sure?", bool), ("return", "done"),
        name="play", read_only=True,
    )  # fmt: skip
    outcome = try_tool(script, answers={"q1": {"value": True}})
    assert (outcome.outcome, outcome.result, outcome.elapsed_s) == ("ok", "done", 5)
    assert (outcome.partials, outcome.logs, outcome.readings[0].message) == (["half"], ["a line"], "begun")
    assert outcome.call.opened.tool == "play" and bytes(outcome.call.checkpoint) == b'{"at":1}'


def test_a_script_may_raise_and_may_return_what_it_was_told() -> None:
    """Deliver 9: errors and answers."""
    failed = try_tool(scripted(("raise", afoot.ToolError.not_found("no such page"))))
    assert failed.failure and failed.failure.category == "not_found"
    told = try_tool(
        scripted(("ask", "sure?", bool), ("ask", "sure?", bool)),
        answers={"q1": {"value": True}, "q2": "decline"},
    )
    assert "true" in str(told.result).lower() and "no" in str(told.result).lower()


def test_a_stubborn_script_outlives_its_cancel() -> None:
    """C7: the slot is free after the grace."""
    outcome = try_tool(scripted(("stubborn", 400), ("return", "late")))
    assert (outcome.outcome, outcome.elapsed_s) == ("timed_out", 30)
    [released] = [fact for fact in outcome.facts if isinstance(fact, Released)]
    assert released.how == "grace" and round(released.at - outcome.end.at, 3) == 5


def test_a_script_works_without_a_context() -> None:
    """P2: called directly, as in any unit test."""

    async def collected() -> list[object]:
        return [item async for item in scripted(("report", 1), ("sleep", 3), ("return", "done"))()]

    assert run(collected()) == ["done"]
