"""A bridge whose gateway is still starting: the host has its answer to `initialize` at once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.raw_client import LATEST, Message, Pipe, hello, request
from tests.e2e.transports.bridge_processes import Hall, hall

# The gateway cannot come up before the test says so.
SLOW_TOOLS = """
import time
from pathlib import Path

import afoot

while not Path({go!r}).exists():
    time.sleep(0.02)


@afoot.tool
def add(a: int, b: int) -> int:
    "Adds."
    return a + b
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Hall]:
    """Where no gateway runs yet, and the next one waits for the file `go`."""
    with hall(tmp_path) as found:
        tools = tmp_path / "slow_tools.py"
        tools.write_text(SLOW_TOOLS.format(go=str(tmp_path / "go")))
        (tmp_path / "afoot.toml").write_text(f"targets = [{json.dumps(str(tools))}]\n")
        yield found


def initialized(bridge: Pipe, version: str = LATEST) -> Message:
    """The answer to `initialize`."""
    answer = bridge.ask(request("initialize", {**hello({}), "protocolVersion": version}, 0))
    bridge.put({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return answer["result"]


def tools(bridge: Pipe) -> list[str]:
    """The names of the tools."""
    return [one["name"] for one in bridge.ask(request("tools/list", {}, "list"))["result"]["tools"]]


def test_initialize_is_answered_before_the_gateway_is_up(place: Hall, tmp_path: Path) -> None:
    """N2, H1: what follows waits for the gateway, and nothing says that the lists have changed since."""
    bridge = place.bridge()
    assert initialized(bridge)["protocolVersion"] == LATEST
    assert not place.address
    bridge.put(request("tools/list", {}, "list"))
    (tmp_path / "go").touch()
    assert bridge.take(30)["id"] == "list"
    answer = bridge.ask(request("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}}, "call"))
    assert answer["result"]["structuredContent"] == {"result": 5}


@pytest.mark.parametrize("version", [LATEST, "2025-06-18"])
def test_a_cold_answer_is_the_one_that_the_gateway_gave_before(
    place: Hall, tmp_path: Path, version: str
) -> None:
    """N2: capabilities, name and version; also where the address of a killed gateway still lies about."""
    (tmp_path / "go").touch()
    first = place.bridge()
    initialized(first, version)
    assert tools(first) == ["add"]
    own: dict[str, Any] = initialized(place.bridge(), version)  # the gateway's answer
    place.kill()
    (tmp_path / "go").unlink()
    cold = place.bridge()
    assert initialized(cold, version) == own and ("tasks" in own["capabilities"]) == (version == LATEST)
    (tmp_path / "go").touch()
    assert tools(cold) == ["add"]


def test_a_cold_bridge_whose_gateway_cannot_start_says_why_and_ends(tmp_path: Path) -> None:
    """N2, S1: with one line on stderr, which hosts show."""
    config = tmp_path / "afoot.toml"
    config.write_text("idle_s = 'long'\n")
    with Pipe(Gateway(tmp_path, {"config": config}), bridged=True) as bridge:
        bridge.put(request("initialize", hello({}), 0))
        assert bridge.process.wait(20) == 6
    assert "idle_s" in (tmp_path / "stderr").read_text()
