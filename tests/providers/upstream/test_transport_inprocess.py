"""Server objects in this process, and the loops that servers are spoken to on."""

import asyncio
from typing import Any

import pytest
import uvloop
from mcp.server.mcpserver import MCPServer

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.provider import ServerOptions, Upstream
from tests.providers.fake_run import ScriptedRun, text_of
from tests.providers.upstream.sdk_server import server
from tests.providers.upstream.started_servers import opened, raw, run_tool


async def test_an_object_is_run_as_it_is_given() -> None:
    """U1: without a module's name; progress keeps its order."""
    async with opened(Server(), options=ServerOptions(target=server)) as upstream:
        run = ScriptedRun()
        assert text_of(await run_tool(upstream, "count", run, n=500)) == "500"
        assert [reading[0] for reading in run.readings] == list(range(1, 501))
        assert (upstream.era, upstream.instructions, upstream.pid) == ("2025-11-25", "for tests", None)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("no.such.module:server", "No module named"),
        ("tests.providers.upstream.sdk_server:nothing", "nothing"),
    ],
)
async def test_a_module_that_is_not_there_is_named(module: str, said: str) -> None:
    """U1: and not tried again."""
    upstream = Upstream("far", Server(module=module))
    with pytest.raises(ToolError, match=said) as caught:
        await upstream.open()
    assert (caught.value.category, upstream.state) == ("not_found", "failed")
    await upstream.close()


class Broken:
    """An object that fails as it runs."""

    def create_initialization_options(self) -> None: ...

    async def run(self, inbox: Any, outbox: Any, options: object) -> None:
        await inbox.receive()
        raise ValueError("broken inside")


async def test_an_object_that_fails_is_a_server_that_died() -> None:
    """U4: with the reason."""
    upstream = Upstream("far", Server(), options=ServerOptions(target=Broken(), restart_limit=1))
    with pytest.raises(ToolError, match=r"failed: ValueError\('broken inside'\)"):
        await upstream.open()
    await upstream.close()


async def test_an_object_that_is_closed_takes_no_call() -> None:
    """U1: until it is opened again."""
    upstream = Upstream("far", Server(), options=ServerOptions(target=MCPServer("empty")))
    await upstream.open()
    await upstream.close()
    with pytest.raises((ToolError, RunnerDied), match="stopped"):
        await upstream.request("tools/list")
    await upstream.open()
    assert (await upstream.request("tools/list"))["tools"] == []
    await upstream.close()


async def test_a_server_that_is_nowhere_says_what_is_missing() -> None:
    """U2: neither command, address nor module."""
    upstream = Upstream("far", Server())
    with pytest.raises(ToolError, match="neither command, url nor module"):
        await upstream.open()
    await upstream.close()


def test_servers_are_children_of_another_loop_just_as_well() -> None:
    """U4: uvloop's pipes and deaths are its own."""

    async def live() -> None:
        async with opened(raw("2026")) as upstream:
            run = ScriptedRun()
            assert text_of(await run_tool(upstream, "count", run, n=50)) == "50"
            assert len(run.readings) == 50
            with pytest.raises(RunnerDied, match=r"ended by SIGKILL \(Killed\); its last words"):
                await run_tool(upstream, "die")
            assert text_of(await run_tool(upstream, "echo", text="x")) == "x"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live())
