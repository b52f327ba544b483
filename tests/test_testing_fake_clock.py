"""The fake clock: it jumps to the next timer, and waits for nothing but threads."""

import asyncio
import threading
import time

import pytest

from afoot.testing import Deadlock, FakeClock, advance, run

REAL_S = 5.0  # no test here may really take as long as it pretends


def test_time_jumps_to_the_next_timer_and_no_further() -> None:
    """House: sleeps, timeouts and timers in their order, at their instants."""
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(7, lambda: seen.append(("timer", loop.time())))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(3600)
        seen.append(("timeout", loop.time()))
        await asyncio.sleep(100 * 24 * 3600)
        seen.append(("sleep", loop.time()))

    run(main())
    assert seen == [("timeout", 5), ("timer", 7), ("sleep", 5 + 8_640_000)]


def test_a_test_that_would_wait_for_ever_fails_and_says_where() -> None:
    """House: a deadlock is an error, not a hang."""

    async def forgotten() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"these wait: .*test_testing_fake_clock\.py:\d+"):
        run(forgotten())


def test_time_waits_for_work_in_an_executor() -> None:
    """House: a thread's result comes before the next timer."""

    async def main() -> list[str]:
        seen: list[str] = []
        asyncio.get_running_loop().call_later(1, seen.append, "timer")
        seen.append(await asyncio.to_thread(lambda: time.sleep(0.02) or "thread"))
        await asyncio.sleep(2)
        return seen

    assert run(main()) == ["thread", "timer"]


def test_time_waits_for_a_thread_that_is_held() -> None:
    """House: any other thread, if the test says so."""
    seen: list[str] = []

    async def main() -> None:
        clock = asyncio.get_running_loop()
        assert isinstance(clock, FakeClock)
        thread = threading.Thread(target=lambda: (time.sleep(0.02), seen.append("thread")))
        thread.start()
        clock.hold(thread)
        await asyncio.sleep(1)
        seen.append("timer")

    run(main())
    assert seen == ["thread", "timer"]


def test_advance_moves_the_clock_past_a_busy_thread_timer_by_timer() -> None:
    """Deliver 9: the one way to time out what runs in a thread."""
    go, seen = threading.Event(), list[float]()

    async def main() -> None:
        clock = asyncio.get_running_loop()
        assert isinstance(clock, FakeClock)
        thread = threading.Thread(target=go.wait, args=(REAL_S,))
        thread.start()
        clock.hold(thread)
        for at in (1.0, 2.0, 9.0):
            clock.call_at(at, lambda: seen.append(clock.time()))
        await advance(5)
        seen.append(clock.time())
        go.set()
        await asyncio.sleep(5)

    run(main())
    assert seen == [1, 2, 5, 9]


def test_advance_needs_the_fake_clock() -> None:
    """Deliver 9: a plain loop cannot jump."""
    with pytest.raises(AssertionError, match="needs the fake clock"):
        asyncio.run(advance(1))


def test_the_last_word_of_a_thread_is_heard_before_time_goes_on() -> None:
    """G4: it spoke and ended while the clock looked whether anybody is busy."""

    async def heard() -> float:
        clock = asyncio.get_running_loop()
        assert isinstance(clock, FakeClock)
        word, gate = asyncio.Event(), threading.Event()
        thread = threading.Thread(target=lambda: (gate.wait(), clock.call_soon_threadsafe(word.set)))

        def ends_when_looked_at(looked_at: threading.Thread) -> bool:
            if looked_at is thread:
                gate.set()
                thread.join()
            return False

        clock.is_busy = ends_when_looked_at
        thread.start()
        async with asyncio.timeout(5):
            await word.wait()
        return clock.time()

    assert run(heard()) == 0
