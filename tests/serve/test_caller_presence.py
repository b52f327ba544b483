"""A caller that has gone: what servers kept for it alone goes too, once its calls are over."""

import asyncio

import pytest

from afoot.config.tables import Server
from afoot.core.facts import Limits
from afoot.providers.upstream.configured_servers import KnownServers, Roster, ServerEntry
from afoot.providers.upstream.managed_server import ManagedServer
from afoot.providers.upstream.servers import Servers
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.sessions_2025 import session_caller
from tests.providers.upstream.fake_connection import Pretend
from tests.serve.fake_gateway import TOKEN, faked, nap, site_of
from tests.serve.raw_transports import Web, modern, older

NAME = "connect-" + "b" * 32
CALLER = NAME.replace("-", ":")
KNOWN = {"authorization": f"Bearer {TOKEN}", "afoot_caller": NAME}
LISTEN = modern("subscriptions/listen", {"notifications": {}}, "presence")


class Behind:
    """A server behind a site, and the callers whose connections it was told to close."""

    def __init__(self, gateway: GatewayState, *, per_caller: bool = True) -> None:
        self._lines: list[Pretend] = []
        gateway.servers = Servers(gateway.engine.catalog, Limits(), KnownServers(None), self._make)
        server = Server(command="x", per_caller=per_caller)
        gateway.servers.follow(Roster({"s": ServerEntry(server, "a file")}))

    def _make(self, listed: ManagedServer, wanted: ServerEntry, limits: Limits) -> Pretend:
        self._lines.append(Pretend(listed.name, wanted.server, limits))
        return self._lines[-1]

    @property
    def forgotten(self) -> list[str]:
        """By the order in which they went."""
        return [one[1] for line in self._lines for one in line.asked if one[0] == "forget"]


@faked
@pytest.mark.parametrize("per_caller", [True, False])
async def test_a_bridge_is_there_as_long_as_its_stream(per_caller: bool) -> None:
    """U1: two streams of one bridge are one caller."""
    async with site_of(nap) as gateway:
        server = Behind(gateway, per_caller=per_caller)
        web = Web(gateway)
        first, second = web.post(LISTEN, **KNOWN), web.post(LISTEN, **KNOWN)
        await asyncio.sleep(1)
        first.leave()
        await asyncio.sleep(1)
        assert server.forgotten == []
        second.leave()
        await asyncio.sleep(1)
        assert server.forgotten == ([CALLER] if per_caller else [])


@faked
async def test_a_caller_of_the_handshake_era_is_there_as_long_as_its_session() -> None:
    """U1, X3: its calls run on after it, on the connections that they have."""
    async with site_of(nap) as gateway:
        server = Behind(gateway)
        web = Web(gateway)
        await web.shake_hands()
        web.post(older())
        await asyncio.sleep(1)
        await web.open("DELETE").done()
        await asyncio.sleep(5)
        assert server.forgotten == []
        await asyncio.sleep(10)
        assert server.forgotten == [session_caller(web.session)]


@faked
async def test_a_bridge_that_comes_back_keeps_what_is_its_own() -> None:
    """U1: it was only seen to go."""
    async with site_of(nap) as gateway:
        server = Behind(gateway)
        callers = gateway.callers
        with callers.present(CALLER, gateway.servers):
            callers.left(CALLER, gateway.servers)
            await asyncio.sleep(1)
        assert server.forgotten == []
        await asyncio.sleep(1)
        assert server.forgotten == [CALLER]
