"""The grace of a call that was told to stop: nothing the tool says afterwards takes it away."""

import asyncio

import pytest

from afoot.core.facts import Limits
from afoot.core.ports import Report, Run
from afoot.engine.engine import Submission
from tests.engine.fake_engine import engine_of, over, released, took

SHORT = Limits(idle_s=10.0, grace_s=5.0)


@pytest.mark.parametrize("sign", ["report", "content", "alive"])
@pytest.mark.parametrize("by", ["a person", "a clock"])
async def test_a_sign_of_life_in_the_grace_does_not_prolong_it(by: str, sign: str) -> None:
    """X1, C7: though the old deadline passes meanwhile, the slot is free when the grace is over."""

    async def deaf(run: Run) -> str:
        for _ in range(600):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue
            if run.cancelled is None or sign == "alive":
                run.alive() if run.cancelled else None
            elif sign == "report":
                run.report(1, 2, None)
            else:
                run.content(Report(1))
        return "never in time"

    async with engine_of(deaf, limits=SHORT) as engine:
        live = engine.submit(Submission("tool"))
        if by == "a person":
            await asyncio.sleep(9)
            engine.cancel(live, "operator", "enough")
        await asyncio.wait_for(over(engine, live), 60)
        ended = 14 if by == "a person" else 15
        assert released(live) == (ended, "grace")
        assert took(live) == (14 if by == "a person" else 10)
