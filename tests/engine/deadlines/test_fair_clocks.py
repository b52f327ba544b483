"""The gateway's own lateness is no silence of a tool: blocked loops, stopped processes, sleeping machines."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from afoot.core.facts import Limits
from afoot.core.ports import Run, RunnerStart
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.testing import FakeClock
from tests.engine.fake_engine import Bench, called, engine_of, form, offering, over, released, took

BRIEF = Limits(idle_s=1.0, ceiling_s=60.0)
HOUR = 3600.0


def stand_still(seconds: float) -> None:
    """Let time pass in which the loop does not run."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FakeClock)
    loop._now += seconds


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process computes all the time: it was not stopped."""
    with monkeypatch.context() as patch:
        patch.setattr("time.process_time", lambda: asyncio.get_running_loop().time())
        yield


async def steps(run: Run) -> str:
    """Reports every 0.4 s, for four seconds."""
    for done in range(1, 11):
        await asyncio.sleep(0.4)
        run.report(done, 10, None)
    return "done"


async def silent(run: Run) -> str:
    """Reports nothing for a very long time."""
    await asyncio.sleep(1e6)
    return "done"


def outcome(live: LiveCall) -> str:
    """How a call ended, or which clock ended it."""
    assert live.call.end is not None
    failure = live.call.end.failure
    return live.call.end.outcome if failure is None else f"{live.call.end.outcome} {failure.clock}"


async def test_a_tool_that_reports_survives_another_that_holds_the_loop() -> None:
    """G4, C1: 1.7 s in which nothing could be heard are not its silence."""

    async def holds(run: Run) -> str:
        await asyncio.sleep(0.5)
        run.holds_loop()
        stand_still(1.7)
        return "done"

    bench = Bench()
    bench.add(steps, "steps", limits=BRIEF)
    bench.add(holds, "holds", limits=BRIEF)
    async with offering(bench) as engine:
        first, second = engine.submit(Submission("steps")), engine.submit(Submission("holds"))
        await over(engine, first)
        await over(engine, second)
        assert (outcome(first), outcome(second)) == ("ok", "timed_out idle")


@pytest.mark.usefixtures("computing")
@pytest.mark.parametrize("lost_s", [0.3, 0.7, 1.7, 30.0])
async def test_a_tool_that_is_about_to_report_has_its_time_after_a_block(lost_s: float) -> None:
    """C1: what is left of its idle limit when the loop stops is left when it runs again."""

    async def body(run: Run) -> str:
        await asyncio.sleep(0.8)
        run.report(1, 3, None)
        await asyncio.sleep(lost_s + 0.8)  # as if its thread had stood still too
        run.report(2, 3, None)
        return "done"

    asyncio.get_running_loop().call_later(1.2, stand_still, lost_s)
    assert outcome(await called(body, limits=BRIEF)) == "ok"


@pytest.mark.usefixtures("computing")
async def test_a_tool_that_stays_silent_after_a_block_still_ends() -> None:
    """C1, C2: it gets back what was lost, to a tenth of its limit, and no more."""
    asyncio.get_running_loop().call_later(0.5, stand_still, 10.0)
    live = await called(silent, limits=BRIEF)
    assert outcome(live) == "timed_out idle"
    assert 10.9 <= took(live) <= 11.0


@pytest.mark.usefixtures("computing")
async def test_a_block_does_not_move_the_ceiling() -> None:
    """C1: nothing extends the ceiling of a gateway that runs."""
    asyncio.get_running_loop().call_later(0.5, stand_still, 3.0)
    live = await called(steps, limits=Limits(idle_s=1.0, ceiling_s=5.0))
    assert (outcome(live), took(live)) == ("timed_out ceiling", 5.0)


@pytest.mark.usefixtures("computing")
@pytest.mark.parametrize("last", ["report", "result"])
async def test_what_waits_in_a_pipe_is_read_before_a_clock_fires(last: str) -> None:
    """C1: reports, and results too, count although their reader comes after the timer."""
    reading, writing = os.pipe()

    async def body(run: Run) -> str:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(reading, lambda: (os.read(reading, 1), arrived.set()))
        try:
            await arrived.wait()
            for _ in range(3):  # as a message that passes from task to task
                await asyncio.sleep(0)
            if last == "report":
                run.report(1, 2, None)
                await asyncio.sleep(0.5)
            return "done"
        finally:
            loop.remove_reader(reading)

    def block() -> None:
        stand_still(40.0)
        os.write(writing, b"x")

    try:
        limits = BRIEF if last == "report" else Limits(idle_s=None, ceiling_s=30.0)
        asyncio.get_running_loop().call_later(0.5, block)
        assert outcome(await called(body, limits=limits)) == "ok"
    finally:
        os.close(reading)
        os.close(writing)


async def ask(run: Run) -> str:
    """Asks, and waits."""
    await run.ask(form("sure"))
    return "answered"


@pytest.mark.parametrize(
    ("body", "limits", "end"),
    [
        (silent, Limits(idle_s=30.0), ("timed_out idle", 30.0)),
        (silent, Limits(idle_s=None, ceiling_s=300.0), ("timed_out ceiling", 300.0)),
        (ask, Limits(answer_s=600.0), ("timed_out answer", 600.0)),
    ],
    ids=["idle limit", "ceiling", "answer limit"],
)
async def test_a_machine_that_slept_for_an_hour_ends_no_call(
    body: object, limits: Limits, end: tuple[str, float]
) -> None:
    """C1, C6: the clock stands still while the process does not run; limits hold as before."""
    asyncio.get_running_loop().call_later(10, stand_still, HOUR)
    live = await called(body, limits=limits)  # type: ignore[arg-type]
    assert outcome(live) == end[0]
    assert end[1] <= took(live) <= end[1] + 1  # a sleep that begins between two beats is seen to a beat


async def test_a_sleep_of_the_machine_counts_neither_in_the_queue_nor_at_a_start() -> None:
    """C1, C8: queue limit and start limit stand still too."""
    bench = Bench()
    bench.add(silent, "one", limits=Limits(idle_s=None, ceiling_s=100.0, queue_s=60.0), concurrency=1)
    bench.add(silent, "starts", limits=Limits(start_s=60.0), starts=True)

    async def never() -> None:
        await asyncio.sleep(1e6)

    bench.starting = lambda tool, caller: RunnerStart("starting it", never) if tool == "starts" else None
    async with offering(bench) as engine:
        calls = [engine.submit(Submission(name)) for name in ("one", "one", "starts")]
        asyncio.get_running_loop().call_later(10, stand_still, HOUR)
        ends = [outcome(await over(engine, live)) for live in calls]
        assert ends == ["timed_out ceiling", "failed queue", "failed start"]
        assert [round(took(live), -1) for live in calls] == [100.0, 60.0, 60.0]


async def test_the_grace_of_a_cancelled_tool_stands_still_too() -> None:
    """C7: a stop of the process takes no time from a tool that cleans up."""

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            await asyncio.sleep(HOUR + 3)  # three seconds of its own, after the stop
            raise
        return "done"

    async with engine_of(body, limits=Limits(grace_s=5.0)) as engine:
        live, other = engine.submit(Submission("tool")), engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(live, "caller", "enough")
        asyncio.get_running_loop().call_later(1, stand_still, HOUR)
        await over(engine, live)
        assert released(live)[1] == "stopped"
        engine.cancel(other, "caller", "enough")


async def test_time_never_goes_back_over_a_stop() -> None:
    """H1: the first look at the clock finds the stop, whoever looks."""

    async def body(run: Run) -> str:
        run.report(1, 2, None)
        await asyncio.sleep(10)
        stand_still(HOUR)
        run.report(2, 2, None)
        await asyncio.sleep(0.1)
        return "done"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        seen = [engine.clock.now()]
        for _ in range(110):
            await asyncio.sleep(0.1)
            seen.append(engine.clock.now())
        await over(engine, live)
    assert live.call.latest is not None and live.call.end is not None
    assert sorted(seen) == seen and seen[0] < live.call.latest.at <= live.call.end.at
    assert outcome(live) == "ok" and took(live) < 12


async def test_a_stop_between_calls_is_no_news() -> None:
    """C1: nothing is measured, and no timer is set, while no call lives."""
    async with engine_of(steps) as engine:
        await over(engine, engine.submit(Submission("tool")))
        await asyncio.sleep(5)
        assert _timers() == 0
        before = engine.clock.now()
        stand_still(HOUR)
        assert engine.clock.now() - before == HOUR


def _timers() -> int:
    loop = asyncio.get_running_loop()
    return sum(not timer.cancelled() for timer in loop._scheduled)  # type: ignore[attr-defined]


async def test_a_cancel_right_after_the_first_report_keeps_its_grace() -> None:
    """C7: a tool of a stranger that ignores the cancel ends when its grace is over."""

    async def body(run: Run) -> str:
        run.report(1, None, None)
        engine.cancel(live, "caller", "enough")
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        await asyncio.sleep(100)
        return "done"

    engine: Engine
    async with engine_of(body, limits=Limits(patient=True, grace_s=2.0)) as engine:
        live = engine.submit(Submission("tool"))
        await over(engine, live)
        assert released(live) == (2.0, "grace")
        await asyncio.sleep(100)
