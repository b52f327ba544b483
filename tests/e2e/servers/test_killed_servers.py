"""Servers that are killed in the middle of a call: what is safe runs again, what is not is uncertain."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, Final

import mcp_types as types
import pytest

from afoot.core.facts import Finished, Started
from tests.e2e import history
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import EVERY, Front, fronting, python
from tests.e2e.official_client import ERAS, Peer, Peers, Seen, failure, peers, text

pytestmark = pytest.mark.timeout(60)
SAFE: Final = {"shop": "believed", "stall": "configured"}  # server, and why its `look` may run again


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway before three of the same server: one whose hints count, two that the config tells of."""
    folder = tmp_path_factory.mktemp("front")
    server = python("tests.e2e.sdk_server", E2E_MARKS=str(folder))
    servers = {
        "shop": {**server, "trust_annotations": True, "approval": "auto"},
        "stall": {**server, "read_only": ["look"], "approval": "auto"},
        "far": server,
    }
    with fronting(folder, servers, EVERY) as started:
        yield started


@pytest.fixture(scope="module")
def clients(front: Front) -> Iterator[Peers]:
    """Official clients, by era."""
    with peers({"http": front}) as found:
        yield found


@pytest.fixture(params=ERAS)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """One of both."""
    peer = clients("http", request.param)
    peer.wait_s = 25.0
    until(
        lambda: "far__look" in [tool.name for tool in peer.run(peer.client.list_tools).tools], "servers", 20
    )
    return peer


class Killed:
    """A call whose server was killed at the third shelf, and what went on meanwhile."""

    def __init__(self, peer: Peer, tool: str, tag: str) -> None:
        self.seen: Seen = []
        self.others: list[tuple[str, Seen]] = []
        self._peer, self._tool, self._tag = peer, tool, tag
        self.result, *self.rest = peer.run(self._watch)

    @property
    def ran(self) -> list[str]:
        """A line for each time it ran, with the process."""
        return self._peer.gateway.marks(self._tag)

    async def _watch(self) -> list[types.CallToolResult]:
        call = asyncio.create_task(self._call(self._tool, self.seen, tag=self._tag))
        others = [self._beside("count_up", n=40, step_s=0.05), self._beside("far/wrap", n=40)]
        await asyncio.to_thread(until, lambda: len(self.seen) >= 3, "the third shelf", 15)
        os.kill(int(self.ran[0].split()[1]), signal.SIGKILL)
        return await asyncio.gather(call, *others)

    def _beside(self, tool: str, **arguments: Any) -> "asyncio.Task[types.CallToolResult]":
        seen: Seen = []
        self.others.append((tool, seen))
        return asyncio.create_task(self._call(tool, seen, **arguments))

    async def _call(self, tool: str, seen: Seen, **arguments: Any) -> types.CallToolResult:
        async def noted(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        return await self._peer.client.call_tool(tool, arguments, progress_callback=noted)


def untouched(killed: Killed) -> None:
    """The calls beside it ended well, with every report."""
    assert [text(one) for one in killed.rest] == ["counted to 40", "wrapped 40"]
    for tool, seen in killed.others:
        until(lambda seen=seen: len(seen) >= 40, f"all reports of {tool}")
        assert [progress for progress, _, _ in seen] == list(range(1, 41)), tool


@pytest.mark.parametrize("server", SAFE, ids=SAFE.get)
def test_a_call_that_is_safe_runs_again(
    peer: Peer, front: Front, server: str, fresh: Callable[[], str]
) -> None:
    """U4, P4: another server runs it to its end; its progress stays one series that rises."""
    killed = Killed(peer, f"{server}/look", fresh())
    assert text(killed.result) == "five shelves" and len(set(killed.ran)) == 2
    until(lambda: killed.seen[-1][2] == "shelf 5", "the last report")
    numbers = [progress for progress, _, _ in killed.seen]
    assert numbers == sorted(set(numbers))
    untouched(killed)
    assert killed.result.meta is not None
    call = killed.result.meta["dev.afoot/call"]
    assert front.attempts(call) == [1, 2]
    assert "ended by SIGKILL" in history.of_type(Started, front.facts(call))[1].why
    (end,) = history.of_type(Finished, front.facts(call))
    assert end.outcome == "ok"


def test_a_call_that_is_not_safe_is_uncertain(peer: Peer, front: Front, fresh: Callable[[], str]) -> None:
    """U4: it is not run again; the caller and the history are told that it may have had effects."""
    killed = Killed(peer, "shop/smash", fresh())
    told = failure(killed.result)
    assert (told["code"], told["side_effects"], told["retryable"]) == ("uncertain", "possible", False)
    assert "ended by SIGKILL" in text(killed.result) and told["last"]["message"] == "shelf 3"
    untouched(killed)
    assert killed.result.meta is not None
    call = killed.result.meta["dev.afoot/call"]
    assert front.attempts(call) == [1] and len(killed.ran) == 1
    (end,) = history.of_type(Finished, front.facts(call))
    assert end.outcome == "uncertain"
    assert text(peer.call("shop/wrap", n=1)) == "wrapped 1"  # the next call has a new server
    assert len(killed.ran) == 1


def test_what_nobody_vouches_for_is_not_run_again(peer: Peer, fresh: Callable[[], str]) -> None:
    """U4: that a server calls its tool read-only means nothing while its hints are not trusted."""
    tag = fresh()

    async def watch() -> types.CallToolResult:
        call = asyncio.create_task(peer.client.call_tool("far/look", {"tag": tag}))
        await asyncio.to_thread(peer.gateway.until_marked, tag, "ran")
        os.kill(int(peer.gateway.marks(tag)[0].split()[1]), signal.SIGKILL)
        return await call

    assert failure(peer.run(watch))["code"] in ("uncertain", "lost")
    assert len(peer.gateway.marks(tag)) == 1
