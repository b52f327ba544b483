"""A gateway that cannot serve: what one that died has left is left to the next."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.chaos.killable_gateway import ENDED_S, TOOLS
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front
from tests.serve.api_client import Api

pytestmark = pytest.mark.timeout(120)
START_S = 60.0


def failed(front: Front) -> str:
    """What a gateway says that finds its port taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = front.command("--http", f"127.0.0.1:{taken.getsockname()[1]}")
        ended = subprocess.run(
            command, env=front.environment, capture_output=True, text=True, timeout=START_S, check=False
        )
    assert ended.returncode == 2, ended
    return ended.stderr


def piped(front: Front) -> None:
    """A host starts one of its own on the same history, and leaves at once."""
    ended = subprocess.run(
        front.command("--stdio"), env=front.environment, input=b"", capture_output=True, timeout=START_S,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended


def question(front: Front, call: str) -> str:
    """What a call waits for, as soon as it does."""
    return str(until(lambda: Api(front).question(call) or {}, f"{call} to ask", ENDED_S)["id"])


def test_a_gateway_that_nobody_can_reach_settles_nothing(tmp_path: Path) -> None:
    """H4, U4: its port is taken, or it is a host's own: no reason to cancel what waits or may run again."""
    front = Front(tmp_path, {}, {"unanswerable": "wait", "idle_s": 290}, own=(TOOLS,))
    front.start()
    api = Api(front)
    risky, asks, runs = [api.start(tool, tag=tool) for tool in ("risky", "ask_safe", "safe")]
    asked = [question(front, call) for call in (risky, asks)]
    front.until_marked("safe", "begun")
    front.kill()
    assert "cannot listen there" in failed(front)
    piped(front)
    assert len(front.marks("safe")) == 1
    front.start()
    try:
        assert [question(front, call) for call in (risky, asks)] == asked
        until(lambda: len(front.marks("safe")) == 2, "it to run again", ENDED_S)
        assert Api(front).call(runs)["attempt"] == 2
    finally:
        front.kill()
