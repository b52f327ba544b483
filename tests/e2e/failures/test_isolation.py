"""Isolated tools behind a real gateway: nothing they do reaches others, and nothing of them stays."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from afoot.core.facts import Finished
from tests.e2e import history
from tests.e2e.gateway import Gateway, until
from tests.e2e.processes import marked
from tests.e2e.raw_client import Http, Message, call, frames

TOOLS = Path(__file__).with_name("isolation_tools.py")
BAD = {"endless": "cpu_limit", "greedy": "out_of_memory", "forks": "process_limit"}
LIMIT_S = 25.0


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with these tools."""
    gateway = Gateway(tmp_path / "isolated", {"drain_s": 0.2, "cancel_grace_s": 2}, [TOOLS])
    gateway.start()
    yield gateway
    if gateway.process.poll() is None:
        gateway.stop()


def ended(gateway: Gateway, tool: str) -> Message:
    """The result of a call."""
    with Http(gateway.url) as http:
        *_, end = frames(http.post(call(tool, {}, progressToken=tool)))
        result: Message = end["result"]
        return result


def test_three_bad_tools_end_by_their_limits_while_others_report(mortal: Gateway) -> None:
    """G1: an endless loop, 10 GB, 50 processes; a call in the gateway and one in a child go on meanwhile."""
    found: dict[str, Message] = {}
    threads = [
        threading.Thread(target=lambda tool=tool: found.update({tool: ended(mortal, tool)})) for tool in BAD
    ]
    for thread in threads:
        thread.start()
    with Http(mortal.url) as http:
        *steady, end = frames(http.post(call("steady", {"n": 40}, progressToken=1)))
        assert end["result"]["content"][0]["text"] == "done" and len(steady) > 10
        *progress, end = frames(http.post(call("compute", {"n": 5}, progressToken=1)))
        assert progress[-1]["params"]["message"] == "step 5"
        assert end["result"]["structuredContent"]["result"] != mortal.process.pid
    for thread in threads:
        thread.join(LIMIT_S)
    codes = {tool: result["_meta"]["dev.afoot/error"]["code"] for tool, result in found.items()}
    assert codes == BAD
    facts = history.facts(mortal.store, found["endless"]["_meta"]["dev.afoot/call"])
    (finished,) = history.of_type(Finished, facts)
    assert finished.cpu_s >= 0.25


def test_whatever_an_isolated_tool_raises_is_the_failure_of_its_call(mortal: Gateway) -> None:
    """E3, G1: also what would end its process; the next call finds it well."""
    for what in ("KeyboardInterrupt", "SystemExit", "GeneratorExit", "BaseException", "CancelledError"):
        for tool in ("throw_isolated", "throw_in_isolated_task"):
            with Http(mortal.url) as http:
                result: Message = http.ask(call(tool, {"what": what}))["result"]
            facts = history.facts(mortal.store, result["_meta"]["dev.afoot/call"])
            (finished,) = history.of_type(Finished, facts)
            assert (what, tool, finished.outcome) == (what, tool, "failed")


def started(gateway: Gateway, tag: str) -> threading.Thread:
    """A call that has started processes below it."""

    def run() -> None:
        with Http(gateway.url) as http:
            try:
                list(frames(http.post(call("family", {"tag": tag}, progressToken=1))))
            except (OSError, AssertionError, ValueError):
                return  # its gateway was killed

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: len(marked(tag)) >= 2, "its processes", LIMIT_S)
    return thread


def test_a_gateway_that_is_killed_takes_every_process_along(mortal: Gateway) -> None:
    """G1: `kill -9`; also what forked twice, into a session of its own, with another environment."""
    thread = started(mortal, "tag-of-the-killed")
    home = str(mortal.folder)
    mortal.kill()
    thread.join(LIMIT_S)
    until(lambda: not marked("tag-of-the-killed") and not marked(home), "all of them are gone", LIMIT_S)


def test_a_gateway_that_stops_leaves_nothing(mortal: Gateway) -> None:
    """G1: in order, with a call that does not stop by itself."""
    thread = started(mortal, "tag-of-the-stopped")
    home = str(mortal.folder)
    mortal.stop()
    thread.join(LIMIT_S)
    until(lambda: not marked("tag-of-the-stopped") and not marked(home), "all of them are gone", LIMIT_S)
