"""Which threads count as at work: a child that has one serves no other call."""

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from afoot.providers.isolation.usage import active_work

PATIENCE_S = 20.0
over = threading.Event()


@pytest.fixture(autouse=True)
def ending() -> Iterator[None]:
    """Whatever a test starts ends with it."""
    over.clear()
    yield
    over.set()


@pytest.fixture
def unhurried() -> Iterator[None]:
    """Who has the interpreter keeps it: a thread that is woken cannot go on yet."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60.0)
    yield
    sys.setswitchinterval(before)


def begun(work: Callable[[], object]) -> threading.Thread:
    """A thread that does this."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def rests(thread: threading.Thread) -> bool:
    """Whether it comes to rest."""
    end = time.monotonic() + PATIENCE_S
    while thread in active_work() and time.monotonic() < end:
        time.sleep(0.005)
    return thread not in active_work()


def polls() -> None:
    """Look again and again."""
    while not over.wait(0.01):
        pass


def takes() -> None:
    """Look into a queue again and again."""
    while not over.is_set():
        try:
            queue.Queue[None]().get(timeout=0.01)
        except queue.Empty:
            pass


@pytest.mark.parametrize("work", [polls, takes, lambda: over.wait(PATIENCE_S)])
def test_a_thread_that_waits_for_a_while_is_at_work(work: Callable[[], object]) -> None:
    """G1: it goes on without being asked."""
    thread = begun(work)
    for _ in range(20):
        assert thread in active_work()
        time.sleep(0.002)


def test_a_timer_is_at_work() -> None:
    """G1: until it is cancelled, what it does is still to come."""
    timer = threading.Timer(PATIENCE_S, polls)
    timer.start()
    assert timer in active_work()
    timer.cancel()
    timer.join()
    assert timer not in active_work()


def test_a_thread_that_waits_for_others_is_at_rest() -> None:
    """G1: libraries leave such threads for ever; if they counted, every call would cost a process."""
    jobs, room = queue.Queue[None](), threading.Semaphore(0)
    threads = [begun(over.wait), begun(jobs.get), begun(room.acquire)]
    assert all(map(rests, threads))
    jobs.put(None)
    room.release()


def test_a_thread_with_a_job_is_at_work_from_the_moment_it_is_given(unhurried: None) -> None:
    """G1: also while it only waits for its turn of the interpreter."""
    jobs = queue.Queue[Callable[[], object]]()
    thread = begun(lambda: jobs.get()())
    assert rests(thread)
    jobs.put(polls)
    assert thread in active_work()


def test_a_pool_is_at_work_while_it_has_jobs(unhurried: None) -> None:
    """G1: given to a thread or not yet; then its threads are at rest."""
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result(PATIENCE_S)
    (thread,) = pool._threads
    assert rests(thread)
    pool.submit(time.sleep, 0.1)
    pool.submit(polls)
    assert thread in active_work()
    time.sleep(0.02)
    assert thread in active_work(), "though no line of the job's own runs"
    over.set()
    assert rests(thread)
    pool.shutdown()
