"""The TypeScript client 2, on HTTP and on stdio, in both eras: own tools, and those of a server behind."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.clients.test_typescript_1 import RUN_S, modules, node, said, structured
from tests.e2e.gateway_with_servers import EVERY, Front, Table, fronting, python
from tests.e2e.npm import package

ERAS: Final = {"auto": "2026-07-28", "legacy": "2025-11-25"}
WAYS: Final = [(transport, era) for transport in ("http", "stdio") for era in ERAS]
Seen = dict[str, Any]


class Runs:
    """What the client saw, by transport and era; it is run once for each."""

    def __init__(self, http: Front, folder: Path) -> None:
        self._http = http
        self._folder = folder
        self._seen: dict[tuple[str, str], tuple[Front, Seen]] = {}

    def __call__(self, transport: str, era: str) -> tuple[Front, Seen]:
        """The gateway, and everything the client saw."""
        if (transport, era) not in self._seen:
            front = self._http if transport == "http" else Front(*place(self._folder / era))
            self._seen[transport, era] = front, run(front, transport, era)
        return self._seen[transport, era]


def place(folder: Path) -> tuple[Path, dict[str, dict[str, Any]], Table]:
    """A gateway's folder, the server behind it, which leaves its marks there too, and the settings."""
    return folder, {"shop": python("tests.e2e.sdk_server", E2E_MARKS=str(folder))}, EVERY


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """The client's runs."""
    with fronting(*place(tmp_path_factory.mktemp("http"))) as front:
        yield Runs(front, tmp_path_factory.mktemp("stdio"))


@pytest.fixture(params=WAYS, ids=" ".join)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    """One of the four."""
    transport, era = request.param
    return transport, era


@pytest.fixture
def seen(way: tuple[str, str], runs: Runs) -> Seen:
    """What the client saw."""
    return runs(*way)[1]


@pytest.fixture
def served(way: tuple[str, str], runs: Runs) -> Front:
    """Where the tools left their marks."""
    return runs(*way)[0]


def test_it_speaks_the_era_it_was_told_to(way: tuple[str, str], seen: Seen) -> None:
    """U1: the newest by its probe, the handshake by its default; all tools are listed."""
    assert seen["protocol"] == ERAS[way[1]]
    assert {"count_up", "wrap", "paint"} <= set(seen["tools"])


def test_progress_arrives_in_order(seen: Seen) -> None:
    """P6, U6: every report of an own tool, and of the server's, with numbers and message."""
    assert said(seen["own"]) == "counted to 5" and said(seen["behind"]) == "wrapped 5"
    for outcome, word in (("own", "step"), ("behind", "present")):
        shown = seen[outcome]["progress"]
        # This client drops progress that stands in one chunk with the result.
        assert shown == [[n, 5, f"{word} {n}"] for n in range(1, 6)][: len(shown)] and len(shown) >= 3


def test_progress_keeps_a_call_alive_at_the_client(seen: Seen) -> None:
    """P6, C4: a client that resets its timeout on progress outlives that timeout."""
    assert said(seen["reset"]) == "counted to 8"


def test_questions_are_answered(way: tuple[str, str], seen: Seen, served: Front) -> None:
    """Q1, Q3: of an own tool, which runs once, and of the server's."""
    assert structured(seen["asked"]) == {"action": "accept", "content": {"name": "Ada"}}
    assert said(seen["askedBehind"]) == "painted red"
    assert seen["questions"] == ["What is your name?", "Which colour?"]
    assert served.marks(tags(way[1])["ask"]).count("ran") == 1


def test_an_abort_reaches_the_tool(way: tuple[str, str], seen: Seen, served: Front) -> None:
    """X1: an AbortSignal of the client stops an own function, and a tool of the server's."""
    assert "enough" in seen["aborted"]["message"] and "enough" in seen["abortedBehind"]["message"]
    for tool in ("linger", "dawdle"):
        served.until_marked(tags(way[1])[tool], "cancelled: ")


def test_errors_are_told(seen: Seen) -> None:
    """E2, E5: a failed tool is a result, an unknown one an error with the nearest names."""
    assert seen["failed"]["result"]["_meta"]["dev.afoot/error"]["retry_after_s"] == 7
    assert seen["unknown"]["code"] == -32602 and "count_up" in seen["unknown"]["message"]


def tags(era: str) -> dict[str, str]:
    """What the tools of a run are to mark."""
    return {tool: f"mark-{tool}-{era}" for tool in ("ask", "linger", "dawdle")}


def run(front: Front, transport: str, era: str) -> Seen:
    """Run the client once; fails with what it said if it does not end well."""
    package("@modelcontextprotocol/client")
    command, *arguments = front.command("--stdio")
    where = {"url": front.url} if transport == "http" else {"command": command, "args": arguments}
    plan = {**where, "era": era, "tags": tags(era), "marks": str(front.folder)}
    script = Path(__file__).parents[1] / "client2.mjs"
    done = subprocess.run(
        [node(), str(script), str(modules()), json.dumps(plan)],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
        env=front.environment,
    )
    if done.returncode != 0 or not done.stdout.startswith("{"):
        pytest.fail(
            f"{transport} {era}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    seen: Seen = json.loads(done.stdout)
    return seen
