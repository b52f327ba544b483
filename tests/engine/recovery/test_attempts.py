"""Attempts of one call: one series of numbers, one slot, one set of answers."""

import asyncio

from msgspec import Raw

from afoot.core.call import ProgressSeries, State
from afoot.core.facts import Answer, Asked, Reading, Reported
from afoot.core.ports import Report, Run
from afoot.engine.engine import Submission
from afoot.errors import RunnerDied
from tests.engine.fake_engine import facts, form, offering, over, took, watched
from tests.engine.recovery.test_runner_died import bench, called, dying, told


async def test_progress_goes_on_over_attempts() -> None:
    """P4: one series a call: what the caller is sent never falls, though the tool begins anew."""

    async def body(run: Run) -> str:
        for n in range(1, 5):
            await asyncio.sleep(1)
            run.report(n, 4, None)
            if run.attempt == 1 and n == 3:
                raise RunnerDied("server files was killed")
        return "done"

    async with offering(bench(body, read_only=True)) as engine:
        live = engine.submit(Submission("tool"))
        items = await watched(engine, live, 0)
    seen, series = [item for item in items if isinstance(item, Reading)], ProgressSeries()
    assert [one.progress for one in seen] == [1, 2, 3, 1, 2, 3, 4]
    sent = [series.rise(one)[0] for one in seen]
    assert sent == sorted(set(sent)) and sent[-1] == 4


async def test_what_an_older_attempt_says_is_late() -> None:
    """C7: it is kept in the history, and changes neither numbers nor clocks."""
    runs = list[Run]()

    async def body(run: Run) -> str:
        runs.append(run)
        if run.attempt == 1:
            raise RunnerDied("server files was killed")
        await asyncio.sleep(10)
        run.report(1, 9, None)
        runs[0].report(5, 9, "old")
        runs[0].content(Report(6.0, 9.0, "older", partial=Raw(b"[]")))
        runs[0].alive()
        await asyncio.sleep(100)
        return "done"

    live = await called(body, read_only=True)
    assert [(fact.progress, fact.late) for fact in facts(live, Reported)] == [(5.0, True), (6.0, True)]
    assert live.call.latest and live.call.latest.progress == 1 and not live.call.partials
    assert (told(live)[0], took(live)) == ("timed_out", 40.0)


async def test_what_was_answered_before_is_not_asked_again() -> None:
    """Q1 h, U4: the next attempt gets the recorded answer."""

    async def body(run: Run) -> str:
        said = await run.ask(form("name"))
        if run.attempt == 1:
            raise RunnerDied("server files was killed")
        return bytes(said.content).decode()

    async with offering(bench(body, idempotent=True)) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.answer(f"{live.call.id}.1", Answer("accept", Raw(b'{"name":"x"}')))
        await over(engine, live)
    assert told(live)[0] == "ok" and len(facts(live, Asked)) == 2
    assert live.call.end and live.call.end.result and b"name" in bytes(live.call.end.result.content)


async def test_a_call_that_is_run_again_keeps_its_slot() -> None:
    """C8: nobody overtakes it, and it gives back one slot."""
    order = list[str]()

    async def body(run: Run) -> str:
        order.append(f"{run.caller}{run.attempt}")
        await asyncio.sleep(1)
        if run.caller == "a" and run.attempt == 1:
            raise RunnerDied("server files was killed")
        return "done"

    async with offering(bench(body, read_only=True, concurrency=1)) as engine:
        lives = [engine.submit(Submission("tool", caller=caller)) for caller in "ab"]
        assert [live.call.state for live in lives] == [State.RUNNING, State.QUEUED]
        for live in lives:
            await over(engine, live)
        assert not engine.slots.holders
    assert order == ["a1", "a2", "b1"]


async def test_closing_the_engine_ends_a_restart() -> None:
    """X1: nothing outlives the gateway."""

    async def start() -> None:
        await asyncio.sleep(1000)

    async with offering(bench(dying(1), start, read_only=True)) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(5)
    assert told(live)[0] == "cancelled" and not engine.calls()
