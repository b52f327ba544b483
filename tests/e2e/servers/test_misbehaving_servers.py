"""Servers on their worst days behind a real gateway, each while other calls run that must not notice."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import mcp_types as types
import pytest

from tests.e2e import history
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import EVERY, Front, fronting, python
from tests.e2e.official_client import ERAS, Peer, Peers, Seen, failure, peers, text

pytestmark = pytest.mark.timeout(60)
START_S: Final = 4.0  # short enough to wait for, long enough for a busy machine
MOODS: Final = {
    "asleep": ("sleep", "did not answer within 4 s (raise start_s)"),
    "mute": ("never silent", "did not answer within 4 s (raise start_s)"),
    "gone": ("exit", "ended with exit code 3; its last words: cannot start today"),
}
LARGE: Final = 50_000_000


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway before servers whose moods change, one that misbehaves on demand, and one that is kind."""
    folder = tmp_path_factory.mktemp("front")
    moody = {name: python("tests.e2e.servers.raw_server_with_faults", str(folder / name)) for name in MOODS}
    servers = {
        **{name: {**server, "start_s": START_S} for name, server in moody.items()},
        "wild": python("tests.providers.upstream.raw_server", "2026"),
        "kind": python("tests.providers.upstream.raw_server", "2026"),
    }
    with fronting(folder, servers, {**EVERY, "approval": "auto"}) as started:
        yield started


@pytest.fixture(scope="module")
def clients(front: Front) -> Iterator[Peers]:
    """Official clients, by era."""
    with peers({"http": front}) as found:
        yield found


@pytest.fixture(params=ERAS)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """One of both, once all servers are known."""
    peer = clients("http", request.param)
    peer.wait_s = 40.0
    offered = {f"{server}__echo" for server in (*MOODS, "wild", "kind")}
    until(lambda: offered <= {tool.name for tool in peer.run(peer.client.list_tools).tools}, "servers", 20)
    return peer


def beside(peer: Peer, work: Callable[[], Awaitable[None]]) -> None:
    """Do something while a call of our own and calls of another server run, which must not notice."""
    seen: Seen = []

    async def noted(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def all_of_it() -> None:
        await peer.client.call_tool("kind/echo", {"text": "hello"})  # its server may have to start
        counting = asyncio.create_task(
            peer.client.call_tool("count_up", {"n": 30, "step_s": 0.05}, progress_callback=noted)
        )
        working = asyncio.ensure_future(work())
        while not working.done():
            said = await asyncio.wait_for(peer.client.call_tool("kind/echo", {"text": "hello"}), 5)
            assert text(said) == "hello"
            await asyncio.sleep(0.05)
        await working
        assert text(await counting) == "counted to 30"

    peer.run(all_of_it)
    until(lambda: len(seen) >= 30, "all reports")
    assert seen == [(n, 30, f"step {n}") for n in range(1, 31)]


def test_servers_that_do_not_start_end_their_calls_only(peer: Peer, front: Front) -> None:
    """U4, C1: one hangs, one never answers `initialize`, one ends at once; each call says so."""

    async def fails(server: str) -> types.CallToolResult:
        died = await peer.client.call_tool(f"{server}/die")
        assert failure(died)["code"] == "uncertain" and "my last words" in text(died)
        return await peer.client.call_tool(f"{server}/echo", {"text": "x"})

    async def all_fail() -> None:
        for server, (mood, _) in MOODS.items():
            (front.folder / server).write_text(mood)
        ended = await asyncio.gather(*(fails(server) for server in MOODS))
        for (server, (_, words)), result in zip(MOODS.items(), ended, strict=True):
            assert failure(result)["category"] == "unavailable" and failure(result)["retryable"]
            assert f"server {server}" in text(result) and words in text(result)

    try:
        beside(peer, all_fail)
    finally:
        for server in MOODS:
            (front.folder / server).unlink(missing_ok=True)
    for server in MOODS:
        assert text(peer.call(f"{server}/echo", text="well")) == "well"
        newest = [row.outcome for row in history.rows(front.store, f"{server}__echo")]
        assert newest[:2] == ["ok", "failed"]


def test_a_server_that_misbehaves_hurts_nobody(peer: Peer, front: Front) -> None:
    """U4, U6, G3: it floods, speaks garbage, answers with 50 MB, answers twice, dies; the rest goes on."""

    async def misbehave() -> None:
        call = peer.client.call_tool
        seen: Seen = []

        async def noted(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        assert text(await call("wild/flood", {"n": 20_000}, progress_callback=noted)) == "done"
        assert text(await call("wild/garbage")) == "done"
        assert text(await call("wild/twice")) == "first"
        large = await call("wild/large", {"n": LARGE})
        assert large.is_error and "max_result_bytes" in text(large)
        assert failure(await call("wild/die"))["code"] == "uncertain"
        assert text(await call("wild/echo", {"text": "again"})) == "again"
        numbers = [progress for progress, _, _ in seen]
        assert numbers == sorted(set(numbers)) and numbers[-1] <= 20_001

    beside(peer, misbehave)
    newest = {tool: history.rows(front.store, f"wild__{tool}")[0] for tool in ("flood", "large", "die")}
    assert newest["flood"].progress == 20_000
    assert {tool: row.outcome for tool, row in newest.items()} == {
        "flood": "ok",
        "large": "failed",
        "die": "uncertain",
    }
