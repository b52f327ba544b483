"""Tools that outlast the fixed limit of official clients: by rounds that nobody sees, and by handles."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import pytest
from mcp import Client

from tests.e2e.clients.test_typescript_1 import RUN_S, modules, node
from tests.e2e.gateway import Gateway
from tests.e2e.official_client import ERAS, Peer, Peers, Seen, accept, peers, text

CLIENT_S: Final = 1.6  # what the clients wait for an answer, whatever comes meanwhile
TOLD_S: Final = 0.8  # what the gateway is told: a slow machine has the rest
LONG: Final = {"pages": 6, "step_s": 0.5}  # three seconds
MADE: Final = {"pages": 6}


class Hurried(Gateway):
    """A gateway that knows of its callers' limit, and has one tool more."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"caller_limit_s": TOLD_S, "drain_s": 0.2})

    def command(self, *surface: str) -> list[str]:
        """As of any, with the tool."""
        return [*super().command(*surface), str(Path(__file__).parent / "slow_tools.py")]


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Such a gateway on HTTP."""
    gateway = Hurried(tmp_path_factory.mktemp("hurried"))
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def hurried_clients(hurried: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    """Official clients of such gateways, by transport and era."""
    own = {f"stdio {era}": Hurried(tmp_path_factory.mktemp("stdio")) for era in ERAS}
    with peers({"http": hurried, **dict[str, Gateway](own)}) as found:
        yield found


@pytest.fixture(params=["http", "stdio"])
def transport(request: pytest.FixtureRequest) -> str:
    """One of both."""
    return str(request.param)


def call(peer: Peer, tool: str, arguments: dict[str, Any], seen: Seen) -> types.CallToolResult:
    """Call a tool with the client's own fixed limit."""

    async def noted(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    return peer.run(
        lambda: peer.client.call_tool(tool, arguments, read_timeout_seconds=CLIENT_S, progress_callback=noted)
    )


def finish(wait: Callable[[str], types.CallToolResult], result: types.CallToolResult) -> types.CallToolResult:
    """Do as the text of a handle says, until there is a result."""
    handles = 0
    while "afoot_call" in (result.structured_content or {}):
        assert "afoot_wait" in text(result) and not result.is_error
        handles += 1
        assert handles < 20
        result = wait((result.structured_content or {})["afoot_call"])
    assert handles
    return result


def rises(seen: Seen) -> bool:
    """Whether there was progress, and it only rose."""
    numbers = [progress for progress, _, _ in seen]
    return bool(numbers) and numbers == sorted(set(numbers))


def test_a_modern_client_sees_nothing_but_the_result(hurried_clients: Peers, transport: str) -> None:
    """H5: a tool of three seconds under a limit of far less, by rounds that the client takes by itself."""
    seen: Seen = []
    peer = hurried_clients(transport, "2026-07-28")
    peer.asked = []
    result = call(peer, "export", LONG, seen)
    assert result.structured_content == MADE
    assert rises(seen) and not peer.asked


def test_a_modern_client_is_asked_in_between(
    hurried_clients: Peers, transport: str, fresh: Callable[[], str]
) -> None:
    """H5, Q1: questions and rounds of one call; the tool runs once."""
    tag = fresh()
    peer = hurried_clients(transport, "2026-07-28")
    peer.reply = lambda message: accept(name="Ada") if "name" in message else accept(age=36)
    result = call(peer, "ask_two_in_turn", {"tag": tag}, [])
    assert result.structured_content == {"name": {"name": "Ada"}, "age": {"age": 36}}
    assert peer.gateway.marks(tag) == ["ran"]


def test_an_older_client_waits_with_the_handle(hurried_clients: Peers, transport: str) -> None:
    """H5: the handle passes the client's check of the output schema, and the wait brings the result."""
    seen: Seen = []
    peer = hurried_clients(transport, "legacy")
    offered = [tool.name for tool in peer.run(peer.client.list_tools).tools]
    assert {"afoot_wait", "afoot_calls", "afoot_cancel"} <= set(offered)
    first = call(peer, "export", LONG, seen)
    result = finish(lambda call_id: call(peer, "afoot_wait", {"call": call_id}, seen), first)
    assert result.structured_content == MADE
    assert rises(seen)


def test_an_older_client_stops_a_call(
    hurried_clients: Peers, transport: str, fresh: Callable[[], str]
) -> None:
    """H5, X1: what was handed over is listed for its caller, and stopped."""
    tag = fresh()
    peer = hurried_clients(transport, "legacy")
    handle = call(peer, "linger", {"tag": tag}, [])
    call_id = (handle.structured_content or {})["afoot_call"]
    listed = call(peer, "afoot_calls", {}, [])
    assert f"{call_id}: linger, running" in text(listed)
    call(peer, "afoot_cancel", {"call": call_id, "reason": "enough"}, [])
    peer.gateway.until_marked(tag, "cancelled: enough")
    ended = call(peer, "afoot_wait", {"call": call_id}, [])
    assert ended.is_error and "cancelled: enough" in text(ended)


def test_a_modern_client_that_cannot_be_asked_waits_with_the_handle(hurried: Gateway) -> None:
    """H5: it declares nothing, so it is not known to ask again by itself."""

    async def run() -> types.CallToolResult:
        async with Client(hurried.url, mode="2026-07-28") as client:
            await client.list_tools()
            result = await client.call_tool("export", LONG, read_timeout_seconds=CLIENT_S)
            for _ in range(20):
                handle = (result.structured_content or {}).get("afoot_call")
                if handle is None:
                    return result
                result = await client.call_tool("afoot_wait", {"call": handle}, read_timeout_seconds=CLIENT_S)
            pytest.fail("it never ended")

    assert asyncio.run(run()).structured_content == MADE


def test_the_typescript_client_waits_with_the_handle(hurried: Gateway) -> None:
    """H5: its own check of the output schema takes the handle too."""
    script = Path(__file__).parents[1] / "patience.mjs"
    plan = {"url": hurried.url, "tool": "export", "arguments": LONG, "timeout": CLIENT_S * 1000}
    done = subprocess.run(
        [node(), str(script), str(modules()), json.dumps(plan)],
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert seen["handles"] >= 1 and seen["result"]["structuredContent"] == MADE
    numbers = seen["progress"]
    assert numbers and numbers == sorted(set(numbers))
