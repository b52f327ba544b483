"""A client that asks for large results, and reads them or not: memory is a budget in bytes."""

import gc
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.process_memory import MB, peak_mb, reset_peak, resident_mb, settled_mb
from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import Http, call, request

TOOLS = Path(__file__).with_name("large_tools.py")
RESULTS = 10
RESULT_MB = 20


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with tools of large results."""
    served = Gateway(tmp_path, {"drain_s": 0.2, "max_unread_bytes": 30 * MB}, [TOOLS])
    served.start()
    yield served
    served.stop()


def test_results_that_were_read_leave_memory_at_once(gateway: Gateway) -> None:
    """H8: before, each waited for the garbage collector: 60 results of 30 MB left 2 GB behind."""
    base = resident_mb(gateway)
    for _ in range(RESULTS):
        with Http(gateway.url) as client:
            response = client.post(call("large", {"mb": RESULT_MB}))
            assert len(response.read()) > RESULT_MB * MB
    until(lambda: history_bytes(gateway) > RESULTS * RESULT_MB * MB, "all of them are on disk")
    # Less than one result: 5 MB were measured at once, and on a slow disk those that wait for it.
    most = base + RESULT_MB * 3 // 4
    assert settled_mb(gateway, most) <= most


def history_bytes(gateway: Gateway) -> int:
    """The bytes of the history on disk."""
    return sum(file.stat().st_size for file in gateway.folder.glob("calls.db*"))


def test_results_that_nobody_reads_wait_on_disk(gateway: Gateway) -> None:
    """H8: a caller leaves at most `max_unread_bytes` in memory, and gets every result that it reads later."""
    base = resident_mb(gateway)
    clients = [Http(gateway.url, receive_bytes=4096) for _ in range(RESULTS)]
    try:
        for number, client in enumerate(clients, 1):  # no faster than the disk: that is another attack
            client.put(call("large", {"mb": RESULT_MB}))
            until(lambda least=number * RESULT_MB * MB: history_bytes(gateway) > least, "it is on disk")
        with Http(gateway.url) as other:
            assert other.ask(call("add", {"a": 1, "b": 2}))["result"]["structuredContent"] == {"sum": 3}
        # One result on its way, the history's own buffers, and room for a slow disk.
        assert settled_mb(gateway, base + 120) <= base + 120 < base + RESULTS * RESULT_MB
        sizes = [len(client.take().read()) // MB for client in clients]
        assert sizes == [RESULT_MB] * RESULTS
    finally:
        for client in clients:
            client.close()
        gc.collect()


def test_a_gateway_at_its_limit_of_memory_does_not_crash(tmp_path: Path) -> None:
    """H8: before, the encoder ended the process with SIGSEGV where its buffer could not grow."""
    gateway = Gateway(tmp_path, {"drain_s": 0.2}, [TOOLS])
    gateway.start()
    limit = 700 * MB
    resource.prlimit(gateway.process.pid, resource.RLIMIT_AS, (limit, limit))
    clients = [Http(gateway.url, receive_bytes=4096) for _ in range(30)]
    try:
        for client in clients:
            client.put(call("large", {"mb": 30}))
        with Http(gateway.url) as other:
            other.socket.settimeout(25)
            assert other.ask(call("add", {"a": 1, "b": 2}))["result"]["structuredContent"] == {"sum": 3}
        assert gateway.process.poll() is None
    finally:
        for client in clients:
            client.close()
        gateway.kill()


def test_a_list_of_tasks_takes_none_of_their_results_into_memory(gateway: Gateway) -> None:
    """H8, H3: before, one request for the list had the results of all its tasks in memory at once."""
    with Http(gateway.url) as client:
        client.shake_hands()
        for number in range(RESULTS):
            wanted = {"name": "large_task", "arguments": {"mb": RESULT_MB}, "task": dict[str, object]()}
            assert "task" in client.ask(request("tools/call", wanted, number + 2))["result"]
            until(lambda least=(number + 1) * RESULT_MB * MB: history_bytes(gateway) > least, "it is on disk")
        base = settled_mb(gateway, resident_mb(gateway) // 2, 2.0)
        reset_peak(gateway)
        tasks = client.ask(request("tasks/list", {}, "list"))["result"]["tasks"]
    assert [one["status"] for one in tasks] == ["completed"] * RESULTS
    assert peak_mb(gateway) <= base + 4 * RESULT_MB
