"""The files that a gateway serves: tools, servers, both, or neither."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import pytest

from afoot.config.settings import Settings
from afoot.errors import CallerError
from afoot.gateway import MEMORY, Gateway

P = ParamSpec("P")
SERVER = """
from mcp.server.mcpserver import MCPServer
runs = []
mcp = MCPServer("notes")

@mcp.tool()
def note(text: str) -> str:
    "Keep a note."
    runs.append(text)
    return f"noted {text}"
"""
TOOLS = """
import afoot

@afoot.tool
def count_notes() -> int:
    "Count the notes."
    return len(runs)
"""
TWIN = """
@afoot.tool(name="count_notes")
def other() -> int:
    return 0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file to be written by the test, in a folder of its own."""
    return tmp_path / "notes.py"


def on_a_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """The test on a loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            await test(*args, **kwargs)

        asyncio.run(main())

    return run


def write(file: Path, text: str) -> None:
    """Write a file, in between two steps of a loop."""
    file.write_text(text)


async def called(gateway: Gateway, tool: str, **arguments: object) -> str:
    """The text that a call answers, or its failure."""
    await gateway.servers.wait_until_opened(20)
    end = (await gateway.call(tool, arguments)).end
    assert end is not None
    if end.failure is not None:
        return end.failure.message
    assert end.result is not None
    return bytes(end.result.content).decode()


@on_a_loop
async def test_a_file_with_a_server_is_served_by_its_name_alone(file: Path) -> None:
    """F6: the server has the name of the file, and is listed with the name of its object."""
    write(file, SERVER)
    async with Gateway(str(file)) as gateway:
        assert "noted it" in await called(gateway, "note", text="it")
        (server,) = gateway.servers.list()
        assert (server.name, server.entry.server.module) == ("notes", f"{file}:mcp")


@on_a_loop
async def test_a_file_with_tools_and_a_server_offers_both_and_is_run_once(file: Path) -> None:
    """F6: so they share what the file has at its top level."""
    write(file, SERVER + TOOLS)
    async with Gateway(file) as gateway:
        await called(gateway, "note", text="one")
        assert '"text":"1"' in await called(gateway, "count_notes")


@on_a_loop
async def test_a_changed_file_is_another_server(file: Path) -> None:
    """F6: reload offers what the file has now; one that is broken leaves the old server in place."""
    write(file, SERVER)
    async with Gateway(file) as gateway:
        assert "noted" in await called(gateway, "note", text="it")
        write(file, SERVER.replace("noted", "kept"))
        gateway.reload()
        assert "kept" in await called(gateway, "note", text="it")
        write(file, "raise ValueError")
        with pytest.raises(CallerError, match="line 1"):
            gateway.reload()
        assert "kept" in await called(gateway, "note", text="it")


@on_a_loop
async def test_a_server_that_is_reloaded_reads_its_file_again(file: Path) -> None:
    """F6, U1: as `afoot servers reload` does for all; settings that change do not bring the old back."""
    write(file, SERVER)
    async with Gateway(file, settings=Settings(store=MEMORY)) as gateway:
        await called(gateway, "note", text="it")
        write(file, SERVER.replace("noted", "kept"))
        await gateway.servers.reload("notes")
        assert "kept" in await called(gateway, "note", text="it")
        gateway.adopt(Settings(store=MEMORY, idle_s=7.0))
        assert "kept" in await called(gateway, "note", text="it")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TOOLS + TWIN, r"two tools are named count_notes: .*notes.py:4 and .*notes.py:9"),
        ("import afoot\n@afoot.tool\ndef odd(*rest): 'Odd.'\n", "tool odd .*cannot be offered"),
        ("raise ValueError('at import')", "line 1: ValueError: at import"),
        ("x = 1", "no tools in .*: decorate functions with @afoot.tool, or make an MCP server"),
        (
            SERVER + "other = MCPServer('other')",
            r"several servers \(mcp, other\): name one, as .*notes.py:mcp",
        ),
    ],
)
@on_a_loop
async def test_a_file_that_cannot_be_served_costs_only_itself(text: str, told: str, file: Path) -> None:
    """F6: alone it is an error; beside others it is a problem that the gateway tells."""
    write(file, text)
    with pytest.raises(CallerError, match=told):
        async with Gateway(file):
            pass
    good = file.with_name("good.py")
    write(good, TOOLS)
    async with Gateway(file, good) as gateway:
        assert [tool.name for tool in gateway.tools()] == ["count_notes"]
        (problem,) = gateway.servers.problems
        with pytest.raises(CallerError, match=told):
            raise CallerError(problem)


@on_a_loop
async def test_a_tool_that_two_files_have_costs_only_the_second_one(file: Path) -> None:
    """F5, F6: the error names both places; the other tools of the second file are served, and its server."""
    again, last = file.with_name("again.py"), file.with_name("last.py")
    write(file, TOOLS)
    write(again, f"{SERVER}{TOOLS}{TWIN.replace('count_notes', 'more')}")
    write(last, TOOLS.replace("count_notes", "last"))
    async with Gateway(file, again, last) as gateway:
        assert [tool.name for tool in gateway.tools() if tool.server == "local"] == [
            "count_notes", "more", "last",
        ]  # fmt: skip
        assert [server.name for server in gateway.servers.list()] == ["again"]
        (problem,) = gateway.servers.problems
        assert "two tools are named count_notes: " in problem and "notes.py:4 and " in problem


@pytest.mark.parametrize("step", ["raise ValueError('no database')", "await asyncio.Event().wait()"])
@on_a_loop
async def test_a_server_that_does_not_begin_costs_only_itself(step: str, file: Path) -> None:
    """F6: a lifespan that fails or hangs; the tools of its file, and of others, are served."""
    lifespan = f"import asyncio\nasync def begin(server):\n    {step}\n    yield\n"
    text = SERVER.replace('"notes")', '"notes", lifespan=asynccontextmanager(begin))')
    write(file, f"from contextlib import asynccontextmanager\n{lifespan}{text}{TOOLS}")
    async with Gateway(file, settings=Settings(store=MEMORY, start_limit_s=0.3, restart_limit=1)) as gateway:
        assert '"text":"0"' in await called(gateway, "count_notes")
        (server,) = gateway.servers.list()
        assert (
            "its lifespan failed: ValueError('no database')" in server.error
            or "raise start_s" in server.error
        )


def test_tools_are_read_without_the_sdk(file: Path) -> None:
    """F6: a file of tools costs no import of `mcp` or `fastmcp`."""
    write(file, TOOLS)
    program = (
        "import sys; from afoot.providers.functions.loading import load_file; load_file(sys.argv[1]);"
        " print({'mcp', 'fastmcp'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
