"""Server objects in this process, and the loops that servers are spoken to on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import pytest
import uvloop
from fastmcp import FastMCP
from mcp.server.mcpserver import Context as McpContext
from mcp.server.mcpserver import MCPServer

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.functions.loading import servers_in
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


@asynccontextmanager
async def failing(_: object) -> AsyncIterator[None]:
    """A lifespan that fails as it begins."""
    raise ValueError("no database")
    yield


@asynccontextmanager
async def hanging(_: object) -> AsyncIterator[None]:
    """A lifespan that never begins."""
    await asyncio.Event().wait()
    yield


async def test_an_object_whose_lifespan_fails_says_so() -> None:
    """F6, U4: with the reason."""
    target = MCPServer("broken", lifespan=failing)
    upstream = Upstream("far", Server(), options=ServerOptions(target=target, restart_limit=1))
    with pytest.raises(ToolError, match=r"server far: its lifespan failed: ValueError\('no database'\)"):
        await upstream.open()
    await upstream.close()


async def test_an_object_whose_lifespan_hangs_is_given_up_at_its_start_limit() -> None:
    """F6, C1: the error names the setting."""
    upstream = Upstream(
        "far", Server(start_s=0.2), options=ServerOptions(target=MCPServer("slow", lifespan=hanging))
    )
    with pytest.raises(ToolError, match=r"did not answer within 0.2 s \(raise start_s\)"):
        await upstream.open()
    assert "its lifespan has not begun in time" in upstream.logs[0][1]
    await upstream.close()


async def test_an_object_whose_lifespan_breaks_later_is_a_server_that_died() -> None:
    """U4: it is opened again when it is needed."""
    opened_times, broken = 0, asyncio.Event()

    async def fail_when_told() -> None:
        await broken.wait()
        raise ValueError("connection lost")

    @asynccontextmanager
    async def breaking(_: object) -> AsyncIterator[None]:
        nonlocal opened_times
        opened_times += 1
        async with asyncio.TaskGroup() as group:
            work = group.create_task(fail_when_told())
            yield
            work.cancel()

    target = MCPServer("broken", lifespan=breaking)

    @target.tool()
    async def wait() -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return ""

    upstream = Upstream("far", Server(), options=ServerOptions(target=target))
    await upstream.open()
    broken.set()
    with pytest.raises(RunnerDied, match="its lifespan failed"):
        await upstream.request("tools/call", {"name": "wait", "arguments": {}})
    assert "its lifespan failed" in upstream.error and "connection lost" in upstream.error
    broken.clear()
    await upstream.open()
    assert opened_times == 2
    await upstream.close()


async def test_all_connections_share_one_object_and_one_lifespan() -> None:
    """F6: callers that declare other extensions, or need another era, have connections of their own."""
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[dict[str, list[str]]]:
        steps.append("open")
        yield {"steps": steps}
        steps.append("close")

    target = MCPServer("shared", lifespan=lifespan)

    @target.tool()
    def steps_so_far(ctx: McpContext) -> str:
        """Says what the lifespan has done."""
        steps: list[str] = ctx.request_context.lifespan_context["steps"]
        return ",".join(steps)

    upstream = Upstream("far", Server(per_caller=True), options=ServerOptions(target=target))
    await upstream.open()
    for caller in ("ann", "bob"):
        answer = await upstream.request("tools/call", {"name": "steps_so_far", "arguments": {}}, caller)
        assert answer["content"][0]["text"] == "open"
    await upstream.forget("ann")
    assert steps == ["open"]
    await upstream.close()
    assert steps == ["open", "close"]


SERVERS_FILE = """
from mcp.server.mcpserver import MCPServer
first = MCPServer("first")
alias = first
def make():
    return MCPServer("made")
async def make_later():
    return MCPServer("made later")
helper = {}
"""


@pytest.mark.parametrize(
    ("named", "found"),
    [("", "first"), (":first", "first"), (":make", "made"), (":make_later", "made later")],
)
async def test_a_file_is_searched_for_its_server(named: str, found: str, tmp_path: Path) -> None:
    """F6: by file name alone, by the name of the object, or by that of a function that makes it."""
    (tmp_path / "one.py").write_text(SERVERS_FILE)
    async with opened(Server(module=f"{tmp_path}/one.py{named}")) as upstream:
        assert upstream.info["name"] == found


BOUND_FILE = """import sqlite3
from fastmcp import FastMCP

known = sqlite3.connect(":memory:")
server = FastMCP("bound")

@server.tool()
async def double(n: int) -> str:
    return str(known.execute("SELECT 2 * ?", (n,)).fetchone()[0])
"""


async def test_a_tool_uses_what_its_file_made_for_one_thread(tmp_path: Path) -> None:
    """F6: the file is loaded on the thread that runs its tools, as if it were a program of its own."""
    (tmp_path / "bound.py").write_text(BOUND_FILE)
    async with opened(Server(module=f"{tmp_path}/bound.py:server")) as upstream:
        assert text_of(await run_tool(upstream, "double", ScriptedRun(), n=21)) == "42"


@pytest.mark.parametrize(
    ("named", "more", "told"),
    [
        (
            "",
            "second = MCPServer('second')",
            r"several servers \(first, second\): name one, as .*two.py:first",
        ),
        (":helper", "", r"is no MCP server .*, but of type dict; servers there: first"),
        (":nothing", "", "has no attribute 'nothing'"),
        ("", "first = alias = None", "there is no server in"),
        ("", "raise ValueError('at import')", "line 10: ValueError: at import"),
    ],
)
async def test_a_file_whose_server_cannot_be_told_is_an_error(
    named: str, more: str, told: str, tmp_path: Path
) -> None:
    """F6: it names the servers that there are."""
    (tmp_path / "two.py").write_text(SERVERS_FILE + more)
    upstream = Upstream("far", Server(module=f"{tmp_path}/two.py{named}"))
    with pytest.raises(ToolError, match=told):
        await upstream.open()
    await upstream.close()


def test_a_mounted_server_is_part_of_the_one_that_mounts_it() -> None:
    """F6: so a file with both has one server."""
    module = ModuleType("mounting")
    inner: FastMCP = FastMCP("inner")
    outer: FastMCP = FastMCP("outer")
    vars(module).update(inner=inner, outer=outer, low=outer._mcp_server)
    assert list(servers_in(module)) == ["inner", "outer"]
    outer.mount(inner, namespace="in")
    assert servers_in(module) == {"outer": outer}


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
