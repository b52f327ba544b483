"""Followers: what they get, how often, in which order; a slow one delays nobody."""

import asyncio
import math

from afoot.core.facts import Finished, Logged, Reading, Reported, Started
from afoot.core.ports import Report, Run
from afoot.engine.engine import Submission
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import BACKLOG
from tests.engine.fake_engine import Body, engine_of, over, readings, took, watched


def burst(number: int, gap_s: float = 0.0, every: int = 1) -> Body:
    """A tool that reports 1 to `number`, sleeping now and then."""

    async def body(run: Run) -> str:
        for n in range(1, number + 1):
            run.report(n, number, None)
            if n % every == 0:
                await asyncio.sleep(gap_s)
        return "done"

    return body


async def test_a_follower_gets_the_first_and_the_last_reading_and_at_most_so_many_a_second() -> None:
    """P4: a thousand reports in ten seconds at 20 Hz are about two hundred."""
    async with engine_of(burst(1000, 0.01)) as engine:
        items = await watched(engine, engine.submit(Submission("tool")), 20)
    numbers = readings(items)
    assert numbers[0] == 1 and numbers[-1] == 1000
    assert 195 <= len(numbers) <= 202
    assert numbers == sorted(numbers, key=lambda number: number or 0)


async def test_readings_are_thinned_out_also_while_facts_pour_in() -> None:
    """P4: a tool that logs each time it reports gets no more than its share of notifications."""

    async def body(run: Run) -> str:
        for n in range(1000):
            run.report(n, None, None)
            run.log(f"line {n}", "info", "")
            await asyncio.sleep(0.01)
        return "done"

    async with engine_of(body) as engine:
        items = await watched(engine, engine.submit(Submission("tool")), 20)
    assert sum(isinstance(item, Logged) for item in items) == 1000
    assert readings(items)[-1] == 999
    assert len(readings(items)) <= 202


async def test_reports_fifty_milliseconds_apart_all_arrive_at_twenty_a_second() -> None:
    """P4: the limit is a limit, not a filter."""
    async with engine_of(burst(20, 0.05)) as engine:
        items = await watched(engine, engine.submit(Submission("tool")), 20)
    assert readings(items) == list(range(1, 21))


async def test_without_a_limit_every_reading_arrives() -> None:
    """P4: progress_hz = 0."""
    async with engine_of(burst(5000, every=100)) as engine:
        items = await watched(engine, engine.submit(Submission("tool")), 0)
    assert readings(items) == list(range(1, 5001))


async def test_without_a_limit_a_burst_past_the_backlog_keeps_the_newest() -> None:
    """P4: the last 1,024 readings are kept, then the newest win."""
    async with engine_of(burst(5000, every=5000)) as engine:
        items = await watched(engine, engine.submit(Submission("tool")), 0)
    assert readings(items) == list(range(5001 - BACKLOG, 5001))


async def test_a_slow_follower_gets_the_newest_and_slows_nobody() -> None:
    """P5: the tool runs at full speed beside a reader that takes 3 s for each send."""
    async with engine_of(burst(1000, 0.01)) as engine:
        live = engine.submit(Submission("tool"))
        items = await watched(engine, live, 20, pause_s=3.0)
    assert took(live) == 10.0
    assert readings(items) == [1, 301, 601, 901, 1000]


async def test_a_follower_without_readings_gets_only_facts() -> None:
    """P6: whoever sent no token is not woken for numbers."""
    rung = 0

    def ring() -> None:
        nonlocal rung
        rung += 1

    async with engine_of(burst(100, 0.01)) as engine:
        live = engine.submit(Submission("tool"))
        with engine.follow(live, ring, None) as follower:
            await over(engine, live)
            items = follower.take().items
    assert readings(items) == [] and len(items) == 4 and isinstance(items[-2], Finished)
    assert rung == 2, "once for the facts of its start, and once for those of its end"


async def test_a_reading_is_never_seen_before_the_fact_it_came_after() -> None:
    """P6, H1: facts are recorded, then seen; order is kept."""

    async def body(run: Run) -> str:
        run.report(1, None, None)
        await asyncio.sleep(1)
        run.content(Report(2, message="content"))
        await asyncio.sleep(0.001)
        run.report(3, None, None)
        await asyncio.sleep(1)
        return "done"

    async with engine_of(body) as engine:
        items = await watched(engine, engine.submit(Submission("tool")), 20)
    told = [item.progress for item in items if isinstance(item, Reading | Reported)]
    assert told == [1, 2, 3]


async def test_a_reading_of_the_last_instant_is_seen_before_the_end() -> None:
    """P6: nothing comes after the result, and the last value is not lost."""

    async def body(run: Run) -> str:
        await asyncio.sleep(1)
        run.report(10, 10, None)
        return "done"

    for hz in (0.0, 20.0):
        async with engine_of(body) as engine:
            items = await watched(engine, engine.submit(Submission("tool")), hz)
        kinds = [type(item) for item in items]
        assert kinds.index(Reading) < kinds.index(Finished)


async def test_two_followers_get_the_same_each_at_its_own_pace() -> None:
    """H2: a second watcher takes nothing from the first."""
    async with engine_of(burst(100, 0.1)) as engine:
        live = engine.submit(Submission("tool"))
        fast, slow = await asyncio.gather(watched(engine, live, 0), watched(engine, live, 1))
    assert readings(fast) == list(range(2, 101))  # it came after the first
    assert readings(slow)[-1] == 100 and len(readings(slow)) <= 12
    assert [item for item in fast if not isinstance(item, Reading)] == [
        item for item in slow if not isinstance(item, Reading)
    ]


async def test_a_follower_too_slow_for_the_facts_is_told_how_many_it_missed() -> None:
    """P5: content comes from a bounded backlog; what falls out is a marked gap."""

    async def body(run: Run) -> str:
        for n in range(BACKLOG + 500):
            run.content(Report(n, message="content"))
        await asyncio.sleep(1)
        return "done"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        with engine.follow(live, lambda: None, 20) as follower:
            await asyncio.sleep(0.5)
            taken = follower.take()
            assert taken.gap + len(taken.items) == live.recorded == BACKLOG + 502
            assert len(await engine.journal.facts(live.call.id)) == live.recorded


async def test_a_late_follower_starts_from_where_it_came() -> None:
    """H2: the past is read from the history, the present from the follower, without a repeat."""
    async with engine_of(burst(10, 1)) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(5.5)
        past = [entry.seq for entry in await engine.journal.facts(live.call.id)]
        items = await watched(engine, live, 0)
    assert past == [1, 2] and readings(items) == [7, 8, 9, 10]
    assert not any(isinstance(item, Started) for item in items)


async def test_a_follower_that_left_is_not_rung_again() -> None:
    """P3: a vanished client costs nothing."""
    rung = 0

    def ring() -> None:
        nonlocal rung
        rung += 1

    async with engine_of(burst(10, 1)) as engine:
        live = engine.submit(Submission("tool"))
        with engine.follow(live, ring, 0):
            await asyncio.sleep(2.5)
        before = rung
        await over(engine, live)
    assert rung == before and live.followers == live.watchers == []


async def test_a_wakeup_remembers_that_it_rang() -> None:
    """P3: a ring between two waits is not lost, and two are one."""
    wakeup = Wakeup()
    wakeup.wake()
    wakeup.wake()
    await wakeup.wait()
    waiter = asyncio.ensure_future(wakeup.wait())
    await asyncio.sleep(1)
    assert not waiter.done()
    wakeup.wake()
    await waiter


async def test_numbers_come_through_as_the_tool_said_them() -> None:
    """P4: backwards and beyond the total; what must rise is made to rise at rendering, not here."""

    async def body(run: Run) -> str:
        for value in (5.0, 3.0, 99.0, 0.5, math.pi):
            run.report(value, 10, None)
        return "done"

    async with engine_of(body) as engine:
        items = await watched(engine, engine.submit(Submission("tool")), 0)
    assert readings(items) == [5.0, 3.0, 99.0, 0.5, math.pi]
