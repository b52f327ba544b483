"""Servers that speak both eras lose nothing behind a gateway, whichever era their client speaks."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import mcp_types as types
import pytest
from mcp import Client

from tests.e2e.gateway_with_servers import ROOT, Front, fronting, python
from tests.e2e.official_client import ERAS, Peer, Peers, accept, peers, text
from tests.e2e.processes import free_port, listening

pytestmark = pytest.mark.timeout(90)
MODULES: Final = {"mcp": "tests.e2e.servers.features_sdk", "fastmcp": "tests.e2e.servers.features_fastmcp"}
SERVERS: Final = [f"{kind}-{transport}" for kind in MODULES for transport in ("stdio", "http", "object")]


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway in front of both servers, each on a pipe, on HTTP, and as an object in its own process."""
    servers: dict[str, dict[str, object]] = {}
    with ExitStack() as stack:
        for kind, module in MODULES.items():
            port = free_port()
            command = [sys.executable, "-m", module, str(port)]
            stack.enter_context(listening(command, {**os.environ, "PYTHONPATH": str(ROOT)}, port))
            servers[f"{kind}-stdio"] = {**python(module), "trust_annotations": True}
            servers[f"{kind}-http"] = {"url": f"http://127.0.0.1:{port}/mcp", "trust_annotations": True}
            file = ROOT / f"{module.replace('.', '/')}.py"
            servers[f"{kind}-object"] = {"module": str(file), "trust_annotations": True}
        yield stack.enter_context(fronting(tmp_path_factory.mktemp("front"), servers, own=()))


@pytest.fixture(scope="module")
def clients(front: Front) -> Iterator[Peers]:
    """Official clients, by era."""
    with peers({"http": front}) as found:
        yield found


def elicitation(peer: Peer, server: str) -> None:
    """A form in the middle of a call."""
    peer.reply = lambda message: accept(colour="red", value="red")
    assert text(peer.call(f"{server}/elicit")) == "red"
    assert peer.asked == ["which colour?"]


def sampling(peer: Peer, server: str) -> None:
    """A question for the client's model."""
    assert text(peer.call(f"{server}/sample")) == "Paris"


def roots(peer: Peer, server: str) -> None:
    """The client's folders."""
    assert text(peer.call(f"{server}/roots")) == "file:///srv-me"


def state(peer: Peer, server: str) -> None:
    """State that one call leaves for the next."""
    peer.call(f"{server}/remember", word="tin")
    assert text(peer.call(f"{server}/recall")) == "tin"


def logging(peer: Peer, server: str) -> None:
    """Log lines during a call; and after it, for a client that has a stream for them."""
    is_old = peer.era == "legacy"
    wanted = {"during the call", "after the call"} if is_old else {"during the call"}
    everything = asyncio.Event()

    async def heard(params: types.LoggingMessageNotificationParams) -> None:
        # FastMCP sends its lines as objects of its own, with the text in them. The line of an earlier test's
        # call may come first: it belongs to no call any more, and is for all clients of its caller.
        wanted.difference_update({line for line in wanted if line in str(params.data)})
        if not wanted:
            everything.set()

    async def listen() -> None:
        async with Client(
            peer.gateway.url, mode="legacy" if is_old else peer.era, logging_callback=heard, log_level="info"
        ) as client:
            if is_old:
                await client.set_logging_level("info")
            await client.call_tool(f"{server}/log")
            await everything.wait()

    asyncio.run(asyncio.wait_for(listen(), 10))
    assert not wanted


FEATURES: Final[list[Callable[[Peer, str], None]]] = [elicitation, sampling, roots, state, logging]


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.__name__)
def test_a_server_of_both_eras_loses_no_feature(
    clients: Peers, server: str, era: str, feature: Callable[[Peer, str], None]
) -> None:
    """U10, F6: elicitation, sampling, roots, session state and logs work by default, in both eras."""
    feature(clients("http", era), server)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_tool_with_rounds_of_its_own_works_beside_the_others(clients: Peers, server: str, era: str) -> None:
    """U10, A7: it needs 2026-07-28, which its first call finds out; being safe, it is made again there."""
    peer = clients("http", era)
    peer.reply = lambda message: accept(colour="red")
    assert text(peer.call(f"{server}/rounds")) == "red"
    assert text(peer.call(f"{server}/rounds")) == "red"
    elicitation(peer, server)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("server", [f"{kind}-object" for kind in MODULES])
def test_a_tool_that_may_not_run_twice_begins_once_where_its_function_says_what_it_needs(
    clients: Peers, server: str, era: str
) -> None:
    """U10, U4: an object in the gateway's process shows the annotations of its functions."""
    peer = clients("http", era)
    peer.reply = lambda message: accept(colour="red")
    assert text(peer.call(f"{server}/paint", tag=f"{server} {era}")) == "red after 1"
