"""Questions that their tool no longer waits for, and calls whose gateway died after they were answered."""

import asyncio

from afoot.core.facts import Answered, Finished
from afoot.core.ports import Run
from tests.engine.fake_engine import called, facts, form, took


async def test_a_question_that_the_tool_gives_up_stops_no_clock() -> None:
    """C6, Q4: it is closed in the name of the tool, and the clocks run again."""

    async def body(run: Run) -> str:
        try:
            await asyncio.wait_for(asyncio.ensure_future(run.ask(form("k"))), 5)
        except TimeoutError:
            pass
        for number in range(2000):
            await asyncio.sleep(1)
            run.report(number, None, None)
        return "done"

    live = await called(body)
    assert facts(live, Answered)[0].answer.by == "tool"
    end = facts(live, Finished)[0]
    assert (end.outcome, end.failure and end.failure.clock) == ("timed_out", "ceiling")
    assert took(live) == 305
