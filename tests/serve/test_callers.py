"""A caller that has gone: what servers kept for it alone goes too, once its calls are over."""

import asyncio

import pytest

from afoot.core.facts import Limits
from afoot.providers.known import Known
from afoot.providers.listed import Listed
from afoot.providers.roster import Roster, Wanted
from afoot.providers.servers import Servers
from afoot.serve.sessions import caller_of
from afoot.serve.site import Site
from afoot.tables import Server
from tests.providers.lines import Pretend
from tests.serve.double import TOKEN, faked, nap, site_of
from tests.serve.wires import Web, modern, older

NAME = "connect-" + "b" * 32
CALLER = NAME.replace("-", ":")
KNOWN = {"authorization": f"Bearer {TOKEN}", "afoot_caller": NAME}
LISTEN = modern("subscriptions/listen", {"notifications": {}}, "presence")


class Behind:
    """A server behind a site, and the callers whose connections it was told to close."""

    def __init__(self, site: Site, *, per_caller: bool = True) -> None:
        self._lines: list[Pretend] = []
        site.servers = Servers(site.engine.catalog, Limits(), Known(None), self._make)
        server = Server(command="x", per_caller=per_caller)
        site.servers.follow(Roster({"s": Wanted(server, "a file")}))

    def _make(self, listed: Listed, wanted: Wanted, limits: Limits) -> Pretend:
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
    async with site_of(nap) as site:
        server = Behind(site, per_caller=per_caller)
        web = Web(site)
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
    async with site_of(nap) as site:
        server = Behind(site)
        web = Web(site)
        await web.shake_hands()
        web.post(older())
        await asyncio.sleep(1)
        await web.open("DELETE").done()
        await asyncio.sleep(5)
        assert server.forgotten == []
        await asyncio.sleep(10)
        assert server.forgotten == [caller_of(web.session)]


@faked
async def test_a_bridge_that_comes_back_keeps_what_is_its_own() -> None:
    """U1: it was only seen to go."""
    async with site_of(nap) as site:
        server = Behind(site)
        callers = site.callers
        with callers.present(CALLER, site.servers):
            callers.left(CALLER, site.servers)
            await asyncio.sleep(1)
        assert server.forgotten == []
        await asyncio.sleep(1)
        assert server.forgotten == [CALLER]
