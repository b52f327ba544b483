"""A gateway that could not run for a while takes nobody else's silence for it."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import Http, call, last

TOOLS = Path(__file__).with_name("late_tools.py")
STEPS = ("step_on_loop", "step_in_thread", "step_in_child")
LATE_S = 1.7


@pytest.fixture
def late(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with tools whose idle limit is 1 s."""
    gateway = Gateway(tmp_path / "late", {"drain_s": 0.2}, [TOOLS])
    gateway.start()
    yield gateway
    if gateway.process.poll() is None:
        gateway.stop()


@pytest.mark.parametrize("cause", ["another tool", "the interpreter's lock", "SIGSTOP"])
def test_calls_that_report_survive_a_gateway_that_did_not_run(late: Gateway, cause: str) -> None:
    """G4, C1: another tool holds the loop or the lock, or the process is stopped and continued."""
    with Http(late.url) as one, Http(late.url) as two, Http(late.url) as three, Http(late.url) as other:
        clients = dict(zip(STEPS, (one, two, three), strict=True))
        for tool, http in clients.items():
            http.put(call(tool, {"n": 8}))
        time.sleep(1.1)  # between two reports
        if cause == "SIGSTOP":
            late.process.send_signal(signal.SIGSTOP)
            time.sleep(LATE_S)
            late.process.send_signal(signal.SIGCONT)
        elif cause == "another tool":
            other.ask(call("block", {"sleep_s": LATE_S}))
        else:
            other.ask(call("keep_lock", {"seconds": LATE_S}))
        texts = {tool: last(http.take())["result"]["content"][0]["text"] for tool, http in clients.items()}
    assert texts == dict.fromkeys(STEPS, "done")


def test_a_tool_that_keeps_the_interpreters_lock_is_named_with_advice(late: Gateway) -> None:
    """G4: in the gateway's log and in the history of its call."""

    def is_named() -> bool:
        with Http(late.url) as http:
            http.ask(call("keep_lock", {"seconds": 0.6}))
        return "tool keep_lock kept the interpreter's lock" in late.said()

    until(is_named, "the watchdog's word")  # on a busy machine it cannot tell at once why it did not run
    assert "isolate=True" in late.said()
