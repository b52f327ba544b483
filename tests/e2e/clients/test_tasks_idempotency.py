"""Requests that are made again by their key, over the death of the gateway that had them first."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.clients.test_tasks import KEY, TASK_TOOLS
from tests.e2e.gateway import Gateway, revive
from tests.e2e.raw_client import Http, call

pytestmark = pytest.mark.timeout(90)


def test_a_key_joins_the_call_that_runs_again_after_a_crash(tmp_path: Path, fresh: Callable[[], str]) -> None:
    """D2, H4: it runs as often as it must, and not once more for the request that comes again."""
    gateway = Gateway(tmp_path / "mortal", {"drain_s": 0.2}, [TASK_TOOLS])
    gateway.start()
    try:
        tag = fresh()
        again = call("steady", {"steps": 30, "tag": tag}, **{KEY: "once"})
        with Http(gateway.url) as http:
            http.put(again)
            gateway.until_marked(tag, "from 0")
            revive(gateway)  # before its caller leaves, which would be a cancel
        with Http(gateway.url) as http:
            assert http.ask(again)["result"]["content"][0]["text"] == "steady to 30"
        assert len(gateway.marks(tag)) == 2
    finally:
        gateway.kill()
