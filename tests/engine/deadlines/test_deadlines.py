"""The timeout table and everything else that clocks decide, on the fake clock."""

import asyncio

import pytest

from afoot.config.settings import Server, ToolSettings
from afoot.core.facts import CancelRequested, Finished, Limits
from afoot.core.ports import Run
from afoot.engine.catalog import EffectiveSettings
from afoot.engine.engine import Submission
from tests.engine.fake_engine import Body, called, engine_of, facts, over, took


def reporting(every_s: float, times: int, then_s: float = 0.0) -> Body:
    """A tool that reports so often, and is silent after that."""

    async def body(run: Run) -> str:
        for n in range(times):
            await asyncio.sleep(every_s)
            run.report(n + 1, None, None)
        await asyncio.sleep(then_s)
        return "done"

    return body


@pytest.mark.parametrize(
    ("tool", "outcome", "clock", "at"),
    [
        (reporting(0, 0, then_s=1000), "timed_out", "idle", 30.0),
        (reporting(29, 10), "ok", None, 290.0),
        (reporting(10, 5, then_s=31), "timed_out", "idle", 80.0),
        (reporting(10, 1000), "timed_out", "ceiling", 300.0),
        (reporting(29.999, 1, then_s=29.999), "ok", None, 59.998),
    ],
    ids=[
        "no report",
        "a report every 29 s",
        "a gap after reports",
        "reports past the ceiling",
        "just in time",
    ],
)
async def test_the_timeout_table(tool: Body, outcome: str, clock: str | None, at: float) -> None:
    """C1, C2: silence ends a call after the idle limit, nothing extends the ceiling."""
    live = await called(tool)
    assert live.call.end is not None
    assert (live.call.end.outcome, took(live)) == (outcome, at)
    failure = live.call.end.failure
    assert (failure.clock if failure else None) == clock


async def test_a_timeout_names_the_clock_its_value_and_the_setting_that_raises_it() -> None:
    """C1, E2: whoever reads it knows what to change."""
    silent = await called(reporting(0, 0, 99))
    long = await called(reporting(10, 99))
    assert silent.call.end and silent.call.end.failure and long.call.end and long.call.end.failure
    assert "30 s" in silent.call.end.failure.message and "idle_s" in silent.call.end.failure.message
    assert "300 s" in long.call.end.failure.message and "ceiling_s" in long.call.end.failure.message
    assert (silent.call.end.failure.category, silent.call.end.failure.code) == ("timeout", "idle_limit")


async def test_the_caller_is_told_at_the_limit_and_the_cancel_names_the_clock() -> None:
    """C7: both facts are of one instant."""
    live = await called(reporting(0, 0, 99))
    [cancel], [end] = facts(live, CancelRequested), facts(live, Finished)
    assert (cancel.by, cancel.at) == ("idle", end.at)


async def test_a_heartbeat_keeps_a_silent_tool_alive_but_not_past_the_ceiling() -> None:
    """C5: alive re-arms the idle limit and is no report."""

    async def body(run: Run) -> str:
        for _ in range(1000):
            await asyncio.sleep(20)
            run.alive()
        return "done"

    live = await called(body)
    assert live.call.end and live.call.end.failure
    assert (live.call.end.failure.clock, took(live)) == ("ceiling", 300.0)
    assert (live.call.readings, live.call.latest) == (0, None)


async def test_a_log_line_touches_no_clock() -> None:
    """C5: talking to the history is neither alive nor advance."""

    async def body(run: Run) -> str:
        for _ in range(100):
            await asyncio.sleep(1)
            run.log("still here", "info", "")
        return "done"

    assert took(await called(body)) == 30.0


@pytest.mark.parametrize(
    "report", [(None, None, None), (0, None, None), (None, None, "hm"), (-1.0, 0.0, None)]
)
async def test_any_report_rearms_the_clock_whatever_its_numbers(
    report: tuple[float | None, float | None, str | None],
) -> None:
    """C1, C4: nobody follows this call, and no token was sent."""

    async def body(run: Run) -> str:
        for _ in range(5):
            await asyncio.sleep(25)
            run.report(*report)
        return "done"

    live = await called(body)
    assert live.call.end and (live.call.end.outcome, took(live)) == ("ok", 125.0)


async def test_a_call_without_an_idle_limit_ends_at_its_ceiling() -> None:
    """C1: silence alone never ends it."""
    live = await called(reporting(0, 0, 999), limits=Limits(idle_s=None, ceiling_s=50))
    assert took(live) == 50.0


@pytest.mark.parametrize(
    ("idle_s", "ceiling_s", "at"),
    [(5.0, None, 5.0), (500.0, 5000.0, 30.0), (None, 7.0, 7.0), (0.5, 0.75, 0.5)],
)
async def test_a_call_may_only_lower_its_limits(
    idle_s: float | None, ceiling_s: float | None, at: float
) -> None:
    """C3: asking for more changes nothing."""
    async with engine_of(reporting(0, 0, 999)) as engine:
        live = engine.submit(Submission("tool", idle_s=idle_s, ceiling_s=ceiling_s))
        assert took(await over(engine, live)) == at


async def test_a_hard_maximum_holds_for_every_tool_and_setting() -> None:
    """C3: the nearest setting wins, the maximum caps it."""
    terms = EffectiveSettings(
        tools={"tool": ToolSettings(idle_s=90.0)}, servers={"bench": Server(idle_s=60.0)}, max_idle_s=70.0
    )
    assert took(await called(reporting(0, 0, 999), terms=terms)) == 70.0


async def test_the_clocks_start_when_the_tool_starts() -> None:
    """C1: what a call waits in the queue is not on its clocks."""
    async with engine_of(reporting(0, 0, 25), concurrency=1) as engine:
        first, second = engine.submit(Submission("tool")), engine.submit(Submission("tool"))
        await over(engine, first)
        await over(engine, second)
    assert second.call.end and (second.call.end.outcome, took(second)) == ("ok", 50.0)


async def test_hearing_a_tool_sets_no_timer() -> None:
    """C1: deadlines are lazy, so a thousand reports cost one timer and not a thousand."""
    loop = asyncio.get_running_loop()
    armed = 0
    call_at = loop.call_at

    def counting(*args: object, **named: object) -> object:
        nonlocal armed
        armed += 1
        return call_at(*args, **named)  # type: ignore[arg-type]

    async def body(run: Run) -> str:
        nonlocal armed
        armed = 0
        for n in range(1000):
            run.report(n, None, None)
        return str(armed)

    loop.call_at = counting  # type: ignore[method-assign, assignment]
    live = await called(body)
    assert live.call.end and live.call.end.result
    assert b'"0"' in bytes(live.call.end.result.content)
