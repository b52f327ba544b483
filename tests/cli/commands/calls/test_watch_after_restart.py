"""What a person is told of calls that were live when their gateway ended."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import program
from tests.cli.terminal.live.dashboard_screen import tag
from tests.e2e.gateway import STOP_S, Gateway, until
from tests.serve.api_client import Api

CRAWL = '''
import asyncio
import afoot


@afoot.tool(read_only=True)
async def crawl(ctx: afoot.Context) -> str:
    """Hangs the first time."""
    is_first = ctx.resumed_from is None
    ctx.checkpoint(1)
    await asyncio.sleep(0.01)  # what it reports comes later, and no fact between it and the next attempt
    ctx.report(1, 2, "at first" if is_first else "once more")
    await asyncio.sleep(600 if is_first else 0)
    return "done"
'''


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway that a test may end and start again; it waits long for its calls."""
    (tmp_path / "crawl.py").write_text(CRAWL)
    started = Gateway(tmp_path, {"drain_s": 60}, [tmp_path / "crawl.py"])
    started.start()
    yield started
    if started.process.poll() is None:
        started.kill()


def test_a_call_that_is_run_again_is_told_in_order_and_said_at_the_start(gateway: Gateway) -> None:
    """V2, U4: what the first attempt read stands before the second; the next gateway says what it does."""
    call = Api(gateway).start("crawl")
    until(lambda: Api(gateway).call(call)["samples"], "a reading in the history")
    gateway.kill()
    gateway.start()
    assert "calls of the gateway before that had not ended: 1 run again (afoot calls" in gateway.said()
    Api(gateway).ended(call)
    told = program(("log", call), gateway.environment).stdout.partition("\n\n")[2].splitlines()
    assert [float(line.split()[0]) for line in told] == sorted(float(line.split()[0]) for line in told)
    [read] = [number for number, line in enumerate(told) if "at first" in line]
    [again] = [number for number, line in enumerate(told) if "started   attempt 2" in line]
    assert "reading" in told[read] and read < again


def test_a_gateway_that_is_told_twice_to_stop_says_so_in_the_history(gateway: Gateway) -> None:
    """X1, U4: it did not die, and what it left is not run again."""
    calls = [Api(gateway).start("crawl"), Api(gateway).start("wipe", tag=tag())]
    until(lambda: Api(gateway).call(calls[0])["progress"], "a report")
    Api(gateway).asked(calls[1])
    gateway.process.send_signal(signal.SIGINT)
    until(lambda: "once more ends at once" in gateway.said(), "it waits for its calls")
    gateway.process.send_signal(signal.SIGINT)
    assert gateway.wait(STOP_S) == 128 + signal.SIGINT
    gateway.start()
    for call in calls:
        found = Api(gateway).call(call)
        assert found["outcome"] == "cancelled", found
        assert "told to stop (SIGINT), and not to wait" in found["failure"]["message"]
    assert "had not ended" not in gateway.said()
