"""A server whose connection is replaced while calls are on their way to it: none is lost or told wrongly."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Raw

from afoot.config.tables import Server
from afoot.core.facts import Limits
from afoot.engine.catalog import Catalog
from afoot.errors import ToolError
from afoot.providers.upstream.configured_servers import KnownServers, Roster, ServerEntry
from afoot.providers.upstream.managed_server import ManagedServer
from afoot.providers.upstream.servers import Servers
from tests.providers.fake_run import ScriptedRun, text_of, until
from tests.providers.upstream.started_servers import raw
from tests.providers.upstream.test_provider_server_faults import is_alive
from tests.providers.upstream.test_servers import SOON_S, house

START_S = 25.0  # a real server, on a machine that has much else to do
ECHO = Raw(b'{"text":"x"}')


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[tuple[Servers, ManagedServer]]:
    """One real server, called raw, that is up."""
    async with Servers(Catalog(), Limits(), KnownServers(None)) as servers:
        have(servers, server)
        await servers.wait_until_opened(START_S)
        yield servers, servers.get("raw")


def have(servers: Servers, server: Server | None) -> None:
    """Have this server from now on, or none."""
    servers.follow(Roster({"raw": ServerEntry(server, "a file")} if server else {}))


async def killed(listed: ManagedServer) -> None:
    """Its process is dead."""
    pid = listed.connection.pid
    assert pid is not None
    os.kill(pid, 9)
    await until(lambda: listed.connection.pid is None)


async def test_a_call_that_waits_for_a_start_has_the_new_connection_when_it_is_replaced() -> None:
    """U1, C1: the edit of a config file cancels nobody's call."""
    async with served(raw("2026", "slow-discover")) as (servers, listed):
        work = listed.prepare("echo", ECHO)
        await killed(listed)
        start = listed.start("echo", "a")
        assert start is not None
        starting = asyncio.ensure_future(start.done())
        await until(lambda: listed.state == "starting")
        have(servers, raw("2026"))
        await starting
        assert text_of(await work(ScriptedRun())) == "x"


async def test_a_call_that_waits_for_the_start_of_a_server_that_is_removed_is_told_so() -> None:
    """U1: and not that the gateway was shutting down."""
    async with served(raw("2026", "slow-discover")) as (servers, listed):
        await killed(listed)
        start = listed.start("echo", "a")
        assert start is not None
        starting = asyncio.ensure_future(start.done())
        await until(lambda: listed.state == "starting")
        have(servers, None)
        with pytest.raises(ToolError, match="server raw was removed"):
            await starting


async def test_a_call_that_is_ready_to_run_waits_until_the_new_connection_knows_its_tools() -> None:
    """U1: a tool is not unknown because its server has not been asked yet."""
    async with served(raw("2026")) as (servers, listed):
        works = [listed.prepare("echo", ECHO) for _ in range(2)]
        have(servers, raw("both"))
        assert text_of(await works[0](ScriptedRun())) == "x"
        listed.connection.remember(type(listed.connection.lists)())
        have(servers, raw("both", "banner"))
        assert text_of(await works[1](ScriptedRun())) == "x"


async def test_an_older_start_says_nothing_of_a_newer_connection(tmp_path: Path) -> None:
    """U1: what hung before the settings were mended hangs no more."""
    async with house(tmp_path) as made:
        made.want(good=Server(command="x"))
        await made.servers.wait_until_opened(SOON_S)
    async with house(tmp_path) as made:
        made.want(good=Server(command="stuck", start_s=0.01))
        await until(lambda: made.lines[0].state == "starting")
        made.want(good=Server(command="x"))
        await asyncio.sleep(0.1)
        assert (made.names(), made.servers.get("good").error) == (["one"], "")


async def test_who_listens_no_more_may_say_so_twice() -> None:
    """U5: nothing comes of it."""
    async with house() as made:
        made.want(good=Server(command="x"))
        forget = made.servers.get("good").listen(lambda kind, uri: None)
        forget()
        forget()


async def test_what_is_replaced_while_it_is_opened_is_waited_for() -> None:
    """U1: a call that comes meanwhile finds the tools, and not that there are none."""
    async with house() as made:
        made.want(good=Server(command="stuck"))
        waiting = asyncio.create_task(made.servers.wait_until_opened(SOON_S))
        await until(lambda: made.lines[0].state == "starting")
        made.want(good=Server(command="x"))
        await waiting
        assert made.names() == ["one"]


async def test_a_connection_that_is_just_being_closed_is_closed_to_the_end() -> None:
    """U1: also when the gateway ends meanwhile; no child stays behind."""
    async with Servers(Catalog(), Limits(), KnownServers(None)) as servers:
        have(servers, raw("2026", "slow-discover"))
        await servers.wait_until_opened(START_S)
        pid = servers.get("raw").connection.pid
        have(servers, None)
        await asyncio.sleep(0)
    assert not is_alive(pid)
