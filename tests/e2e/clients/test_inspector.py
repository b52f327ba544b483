"""MCP Inspector's command line, on HTTP and on stdio, in both eras: own tools and a server's."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e import history
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front, fronting, python
from tests.e2e.npm import program

pytestmark = pytest.mark.timeout(90)  # a run of the Inspector takes a second, and more on a busy machine
ERAS: Final = ("legacy", "modern")
RUN_S: Final = 25.0
TOOL_FAILED: Final = 5  # the Inspector's exit code for a result that is an error
Answer = dict[str, Any]


class Inspector:
    """The command line, against a gateway on HTTP or one that it starts itself."""

    def __init__(self, front: Front, transport: str, era: str) -> None:
        self.front = front
        self._era = era
        # It hands down a few variables only, and what it is told to.
        own = [
            f"{key}={text}" for key, text in front.environment.items() if key.startswith(("AFOOT_", "E2E_"))
        ]
        given = [word for one in own for word in ("-e", one)]
        stdio = [*given, "--", *front.command("--stdio")]
        self._where = ["--server-url", front.url] if transport == "http" else stdio

    def start(self, method: str, *options: str) -> subprocess.Popen[str]:
        """Run it."""
        line = ["--cli", "--protocol-era", self._era, "--format", "json", "--method", method, *options]
        environment = {**self.front.environment, "HOME": str(self.front.folder)}
        return subprocess.Popen(
            program("@modelcontextprotocol/inspector", *line, *self._where),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, method: str, *options: str, exits: int = 0) -> Answer:
        """What it prints."""
        with self.start(method, *options) as process:
            try:
                printed, errors = process.communicate(timeout=RUN_S)
            finally:
                process.kill()
        assert process.returncode == exits, f"exit {process.returncode}: {printed}\n{errors}"
        found: Answer = json.loads(printed)["result"]
        return found

    def call(self, tool: str, exits: int = 0, **arguments: Any) -> Answer:
        """The result of a call, made with a token, so that the gateway sends progress."""
        return self.ask("tools/call", *calling(tool, arguments), exits=exits)


@pytest.fixture(scope="module")
def fronts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Front]]:
    """A gateway on HTTP, and one for stdio, each in front of a server of the SDK."""
    http, stdio = tmp_path_factory.mktemp("http"), tmp_path_factory.mktemp("stdio")
    with fronting(http, behind(http)) as front:
        yield {"http": front, "stdio": Front(stdio, behind(stdio))}


def behind(folder: Path) -> dict[str, Any]:
    """The server, which leaves its marks in the gateway's folder."""
    return {"shop": python("tests.e2e.sdk_server", E2E_MARKS=str(folder))}


@pytest.mark.parametrize("era", ERAS)
def test_it_lists_and_calls_tools(fronts: dict[str, Front], era: str) -> None:
    """U5, T3, E2: an own tool that reports, a failed one, and one of the server behind."""
    inspector = Inspector(fronts["http"], "http", era)
    assert {"count_up", "wrap"} <= {tool["name"] for tool in inspector.ask("tools/list")["tools"]}
    counted = inspector.call("count_up", n=3)
    assert counted["content"] == [{"type": "text", "text": "counted to 3"}]
    assert counted["_meta"]["progressToken"] == "abc"
    failed = inspector.call("fail", TOOL_FAILED, how="explained")
    assert failed["_meta"]["dev.afoot/error"]["retry_after_s"] == 7
    wraps(inspector)


@pytest.mark.parametrize("era", ERAS)
def test_it_starts_a_gateway_and_calls_tools(fronts: dict[str, Front], era: str) -> None:
    """U5: over a pipe, where it asks for the tools before the server behind is up."""
    inspector = Inspector(fronts["stdio"], "stdio", era)
    assert inspector.call("count_up", n=3)["content"] == [{"type": "text", "text": "counted to 3"}]
    wraps(inspector)


# On HTTP in the handshake era leaving is no cancel, and the call runs on (X3).
@pytest.mark.parametrize(("way", "era"), [("http", "modern"), ("stdio", "legacy"), ("stdio", "modern")])
def test_stopping_it_stops_the_tool(
    fronts: dict[str, Front], way: str, era: str, fresh: Callable[[], str]
) -> None:
    """X1: Ctrl-C in the terminal reaches the tool of the server behind."""
    tag, front = fresh(), fronts[way]
    with Inspector(front, way, era).start("tools/call", *calling("dawdle", {"tag": tag})) as process:
        try:
            until(lambda: front.marks(tag), "the start of the tool", RUN_S)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=RUN_S)
        finally:
            process.kill()
    front.until_marked(tag, "cancelled: ")


def wraps(inspector: Inspector) -> None:
    """A tool of the server behind, whose progress is in the history: the Inspector shows none."""
    assert inspector.call("wrap", n=3)["content"] == [{"type": "text", "text": "wrapped 3"}]
    (row, *_) = history.rows(inspector.front.store, "wrap")
    assert (row.outcome, row.progress, row.total, row.message) == ("ok", 3, 3, "wrapped 3")


def calling(tool: str, arguments: dict[str, Any]) -> list[str]:
    """The options for a call."""
    given = ["--tool-args-json", json.dumps(arguments), "--tool-metadata", "progressToken=abc"]
    return ["--tool-name", tool, *given]
