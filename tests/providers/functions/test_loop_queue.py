"""The queue into the loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from afoot.providers.functions import loop_queue as lanes
from afoot.providers.functions.loop_queue import LoopQueue
from tests.providers.fake_run import until


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


async def test_everything_arrives_on_the_loop_and_in_order() -> None:
    """P1: from any thread, nothing overtakes."""
    queue, got, where = LoopQueue(asyncio.get_running_loop()), list[int](), set[int]()

    def deliver(n: int) -> None:
        got.append(n)
        where.add(threading.get_ident())

    def work() -> None:
        for n in range(1000):
            (queue.put_reading if n % 2 else queue.put)("c1", deliver, n)

    in_thread(work)
    await until(lambda: len(got) == 1000)
    assert got == list(range(1000))
    assert where == {threading.get_ident()}


async def test_a_full_queue_keeps_the_newest_reading_of_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """P3, P5: a flood costs updates, never the last one, and never order."""
    monkeypatch.setattr(lanes, "CAPACITY", 10)
    queue, got = LoopQueue(asyncio.get_running_loop()), list[tuple[str, Any]]()

    def work() -> None:
        for n in range(100):
            queue.put_reading("a", got.append, ("a", n))
            queue.put_reading("b", got.append, ("b", n))
        queue.put("a", lambda: got.append(("a", "end")))

    in_thread(work).join()
    await until(lambda: not len(queue))
    a = [value for call, value in got if call == "a"]
    assert a[-2:] == [99, "end"]
    assert [value for call, value in got if call == "b"][-1] == 99
    assert len(got) < 30


async def test_content_is_refused_by_a_full_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """P3: a full buffer costs at most an update."""
    monkeypatch.setattr(lanes, "CAPACITY", 2)
    queue, got, taken = LoopQueue(asyncio.get_running_loop()), list[int](), list[bool]()
    in_thread(lambda: taken.extend(queue.try_put("a", got.append, n) for n in range(4))).join()
    assert taken == [True, True, False, False]
    await until(lambda: len(got) == 2)


async def test_a_thread_far_ahead_can_wait_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """P11: no partial result is lost; its generator waits."""
    monkeypatch.setattr(lanes, "CAPACITY", 2)
    queue, got, done = LoopQueue(asyncio.get_running_loop()), list[int](), threading.Event()

    def work() -> None:
        for n in range(20):
            queue.put("a", got.append, n)
            queue.wait_for_room("a")
        done.set()

    in_thread(work)
    assert not done.wait(0.05)
    await until(done.is_set)
    await until(lambda: len(got) == 20)


async def test_one_that_fails_does_not_take_the_others_along(caplog: pytest.LogCaptureFixture) -> None:
    """P3: it is logged, and the rest arrives."""
    queue, got = LoopQueue(asyncio.get_running_loop()), list[int]()
    in_thread(lambda: [queue.put("a", int, "x"), queue.put("a", got.append, 1)]).join()
    await until(lambda: got)
    assert "could not be delivered" in caplog.text


def test_a_closed_loop_is_no_error_to_the_tool() -> None:
    """P1: a report never raises, even when nobody is left."""

    async def make() -> LoopQueue:
        return LoopQueue(asyncio.get_running_loop())

    queue = asyncio.run(make())
    queue.put_reading("a", print, 1)
    queue.put("a", print, 1)
    assert len(queue) == 0
