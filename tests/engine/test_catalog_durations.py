"""What the engine keeps of a call's pace and of what its tool took before, for those who foresee its end."""

import asyncio

import pytest

from afoot.core.facts import Answer, Limits
from afoot.core.ports import CallRow, Report, Run
from afoot.engine.catalog import MAX_RUNS, Durations
from afoot.engine.engine import Submission
from afoot.engine.recorder import MAX_POINTS
from tests.engine.fake_engine import Body, called, engine_of, form, over


def stepping(*numbers: float, every_s: float = 1.0) -> Body:
    """A tool that reports these numbers of a hundred, each after so many seconds."""

    async def body(run: Run) -> str:
        for number in numbers:
            await asyncio.sleep(every_s)
            run.report(number, 100, None)
        return "done"

    return body


async def test_the_readings_of_the_history_are_its_points() -> None:
    """P9: seconds on the clock, what was done of what, and the time since the one before."""
    live = await called(stepping(10, 30, 60, every_s=2.0))
    assert [tuple(round(part or 0, 3) for part in one) for one in live.points] == [
        (2, 10, 100, 2), (4, 30, 100, 2), (6, 60, 100, 2),
    ]  # fmt: skip


async def test_a_fast_tool_has_one_point_a_second() -> None:
    """P9: as many as are sampled, not as many as are reported."""
    live = await called(stepping(*range(50), every_s=0.1))
    assert [round(at, 1) for at, *_ in live.points] == [0.1, 1.1, 2.1, 3.1, 4.1]


async def test_a_long_call_has_few_points_over_its_whole_way() -> None:
    """P9: further apart the longer it is; what it takes from one report to the next is told as it was."""
    live = await called(stepping(*range(3000)), limits=Limits(ceiling_s=4000))
    points = live.points
    assert MAX_POINTS / 2 <= len(points) <= MAX_POINTS
    assert points[-1][:2] == (pytest.approx(3000), 2999)
    assert points[0][0] < 100 and any(1400 < at < 1600 for at, *_ in points)
    assert {round(gap, 3) for *_, gap in points} == {1.0}


async def test_a_tool_that_begins_again_has_a_new_way() -> None:
    """P9: its next phase, or another attempt."""
    live = await called(stepping(50, 99, 5, 10))
    assert [done for _, done, *_ in live.points] == [5, 10]


async def test_reports_with_content_are_points_too() -> None:
    """P9, P7: a number is a number, whatever comes beside it; at most one a second."""

    async def body(run: Run) -> str:
        for number in range(1, 9):
            await asyncio.sleep(0.5)
            run.content(Report(number, 8, "x"))
        return "done"

    live = await called(body)
    assert [round(at, 1) for at, *_ in live.points] == [0.5, 1.5, 2.5, 3.5]


async def test_what_a_tool_took_is_known_at_its_end() -> None:
    """P9: of calls that ended well, and the time a person took is left out."""

    async def body(run: Run) -> str:
        await asyncio.sleep(3)
        await run.ask(form("sure"))
        await asyncio.sleep(4)
        return "done"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(60)
        engine.answer(next(iter(live.call.open)), Answer("accept", by="operator"))
        await over(engine, live)
        assert engine.durations.of("bench/tool") == [pytest.approx(7.0)]
        stopped = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(stopped, "operator", "enough")
        await over(engine, stopped)
        assert len(engine.durations.of("bench/tool")) == 1


async def test_a_call_of_a_moment_teaches_nothing() -> None:
    """P9: nobody asks how long it takes, and it is to cost nothing."""

    async def body(run: Run) -> str:
        return "done"

    async with engine_of(body) as engine:
        await over(engine, engine.submit(Submission("tool")))
        assert engine.durations.of("bench/tool") == []


def test_the_history_teaches_it_too_and_the_newest_runs_count() -> None:
    """P9: those that ended well, at most two hundred of each tool."""
    rows = [
        CallRow(f"{n}", "tool", "s", "c", 0.0, "finished", "ok", ran_s=float(n))
        for n in reversed(range(MAX_RUNS + 50))  # newest first
    ]
    failed = CallRow("f", "tool", "s", "c", 0.0, "finished", "failed", ran_s=99.0)
    unstarted = CallRow("u", "tool", "s", "c", 0.0, "finished", "ok")
    durations = Durations()
    durations.add_history([failed, unstarted, *rows])
    assert durations.of("s/tool") == [float(n) for n in range(50, MAX_RUNS + 50)]
    assert durations.of("s/other") == []
