"""The time that a caller has left: spent on arrival, and named where it was the limit."""

import asyncio
from typing import Any

import pytest

from afoot.core.facts import Limits, Started
from afoot.core.ports import Run
from afoot.engine.engine import Engine, Submission
from tests.engine.fake_engine import engine_of, over, took


async def started(engine: Engine, call: str) -> bool:
    """Whether the history says that the tool of a call has started."""
    return any(type(entry.fact) is Started for entry in await engine.journal.facts(call))


@pytest.mark.parametrize("budget", [{"ceiling_s": 0.0}, {"idle_s": 0.0}, {"idle_s": 5.0, "ceiling_s": 0.0}])
async def test_a_budget_that_is_spent_refuses_before_the_start(budget: dict[str, Any]) -> None:
    """C11: nothing has happened, so it may be tried again."""
    ran = list[str]()

    async def tool(run: Run) -> str:
        ran.append(run.id)
        return "done"

    async with engine_of(tool) as engine:
        live = engine.submit(Submission("tool", **budget))
        await over(engine, live)
        end = live.call.end
        assert end is not None and end.failure is not None and end.outcome == "refused"
        failure = end.failure
        assert (failure.code, failure.side_effects, failure.retryable) == ("budget_spent", "none", True)
        assert "the budget of its caller was spent" in failure.message
        assert ran == [] and not await started(engine, live.call.id)


@pytest.mark.parametrize(
    ("budget", "after_s", "words"),
    [
        ({"idle_s": 4.0}, 4, "no report for 4 s (the budget of its caller: idle_s)"),
        ({"ceiling_s": 7.0}, 7, "ran for 7 s in all (the budget of its caller: left_s)"),
        ({"idle_s": 40.0, "ceiling_s": 400.0}, 10, "no report for 10 s (idle limit; report more often"),
    ],
)
async def test_a_timeout_names_the_budget_of_the_caller(
    budget: dict[str, Any], after_s: float, words: str
) -> None:
    """C11, C1: where that was the limit; the tool's own limit is named as ever."""

    async def silent(run: Run) -> str:
        await asyncio.sleep(100)
        return "done"

    async with engine_of(silent, limits=Limits(idle_s=10.0, ceiling_s=20.0)) as engine:
        live = engine.submit(Submission("tool", **budget))
        await over(engine, live)
    assert took(live) == after_s
    assert live.call.end is not None and live.call.end.failure is not None
    assert words in live.call.end.failure.message
