"""A tool that holds the loop: its own clocks that were due meanwhile are applied first."""

import asyncio

import pytest

from afoot.core.facts import Finished, Limits
from afoot.core.ports import Report, Run
from afoot.testing import FakeClock
from tests.engine.fake_engine import called, facts

SHORT = Limits(idle_s=3.0, ceiling_s=60.0)


def block(run: Run, seconds: float) -> None:
    """What a tool does to the loop that computes for so long without a pause; the watchdog sees it."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FakeClock)
    run.holds_loop()
    loop._now += seconds


async def test_a_result_after_the_limit_is_a_timeout_though_no_timer_could_fire() -> None:
    """G4, C1: the number in the docs is the number in force."""

    async def body(run: Run) -> str:
        block(run, 10)
        return "done"

    end = facts(await called(body, limits=SHORT), Finished)[0]
    assert (end.outcome, end.failure and end.failure.clock) == ("timed_out", "idle")


@pytest.mark.parametrize("sign", ["report", "content", "alive"])
async def test_a_sign_of_life_after_the_limit_does_not_revive_the_call(sign: str) -> None:
    """G4, C2: neither a reading, nor content, nor a heartbeat."""

    async def body(run: Run) -> str:
        run.report(0, 2, None)
        await asyncio.sleep(1)
        block(run, 10)
        if sign == "report":
            run.report(1, 2, None)
        elif sign == "content":
            run.content(Report(1))
        else:
            run.alive()
        await asyncio.sleep(1)
        return "done"

    assert facts(await called(body, limits=SHORT), Finished)[0].outcome == "timed_out"


async def test_a_block_within_the_limit_harms_nobody() -> None:
    """G4: the loop was late, the tool was not."""

    async def body(run: Run) -> str:
        block(run, 2)
        run.report(1, 2, None)
        block(run, 2)
        return "done"

    assert facts(await called(body, limits=SHORT), Finished)[0].outcome == "ok"


async def test_a_tool_that_held_the_loop_and_waits_again_is_not_revived_either() -> None:
    """G4, C1: its silence was its own, though nobody could see it before."""

    async def body(run: Run) -> str:
        await asyncio.sleep(1)
        block(run, 10)
        await asyncio.sleep(0)
        run.report(1, 2, None)
        return "done"

    assert facts(await called(body, limits=SHORT), Finished)[0].outcome == "timed_out"
