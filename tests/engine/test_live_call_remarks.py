"""What is said of a call beside its progress: lines of its tool, and what slows or stops it."""

import asyncio

from afoot.core.facts import Hindered, Logged
from afoot.core.ports import Run
from afoot.engine.engine import MAX_LATE_LINES, Submission
from tests.engine.fake_engine import called, engine_of, facts, over, took


async def test_what_hinders_a_call_is_a_fact_once_and_touches_no_clock() -> None:
    """B6: said again it is nothing new; it is no sign of life."""

    async def body(run: Run) -> str:
        for by in ("its tab is hidden", "its tab is hidden", "its tab is frozen", "", ""):
            await asyncio.sleep(5)
            run.hindered(by, "bring it to the front" if by else "")
        await asyncio.sleep(100)
        return "never"

    live = await called(body)
    assert [fact.by for fact in facts(live, Hindered)] == ["its tab is hidden", "its tab is frozen", ""]
    assert took(live) == 30.0 and live.call.hindered is None


async def test_what_is_over_or_was_told_to_stop_is_hindered_no_more() -> None:
    """B6: and nobody is told so."""

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            run.hindered("too late", "nothing")
            raise
        return "never"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    assert facts(live, Hindered) == []


async def test_a_runaway_tool_that_logs_after_its_end_fills_no_history() -> None:
    """H1: so many lines are kept."""

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            for number in range(2 * MAX_LATE_LINES):
                run.log(str(number), "info", "")
        return "late"

    live = await called(body)
    assert len(facts(live, Logged)) == MAX_LATE_LINES
