"""Servers on worse days: starts that are called off, lists without rest, streams that end in the middle."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.config.settings import Server
from afoot.core.facts import Answer
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream import provider as upstreams
from afoot.providers.upstream import reconnect, server_lists, tool_call
from afoot.providers.upstream.provider import LISTING, ServerOptions, Upstream
from afoot.providers.upstream.server_lists import ServerLists
from afoot.providers.upstream.transport import http as transport_http
from afoot.providers.upstream.transport.stdio import StdioTransport
from afoot.wire.passthrough import CAPABILITIES_KEY
from tests.providers.fake_run import ScriptedRun, text_of, until
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.started_servers import ROOT, opened, raw, run_tool
from tests.providers.upstream.transport.test_http import OLD, SESSION, handshake, progress


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait between attempts."""
    monkeypatch.setattr(reconnect, "BACK_OFF_S", (0.01, 0.02))
    monkeypatch.setattr(transport_http, "RETRY_S", (0.01, 0.02))


async def test_who_waits_for_a_start_that_is_called_off_is_told_and_not_cancelled() -> None:
    """U1: a server that is stopped is unavailable; nobody asked for the call to be cancelled."""
    upstream = Upstream("raw", raw("2026", "slow-discover"))
    start = upstream.start("echo", "a")
    assert start is not None
    waiting = asyncio.ensure_future(start.done())
    await until(lambda: upstream.state == "starting")
    await upstream.close()
    with pytest.raises(ToolError, match="server raw was stopped"):
        await waiting


async def test_a_start_that_fails_in_a_way_nobody_knows_is_a_failed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U4: and not one that goes on for ever."""

    async def broken(*_: object) -> None:
        raise ValueError("embedded null byte")

    monkeypatch.setattr(StdioTransport, "open", broken)
    upstream = Upstream("raw", raw("2026"))
    with pytest.raises(ToolError, match="null byte"):
        await upstream.open()
    assert upstream.state == "failed" and "null byte" in upstream.error
    await upstream.close()


async def test_a_server_that_hears_nothing_any_more_is_started_again() -> None:
    """U4: it lives, but no call would ever reach it."""
    async with opened(raw("2026")) as upstream:
        first = upstream.pid
        assert text_of(await run_tool(upstream, "deaf")) == "what?"
        await until(lambda: upstream.pid is None)
        assert "closed its stdin" in upstream.error
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
        assert upstream.pid != first


async def test_a_command_is_found_from_the_folder_it_runs_in(tmp_path: Path) -> None:
    """U2: as a shell there would find it."""
    script = tmp_path / "serve"
    script.write_text(
        f"#!/bin/sh\nexec env PYTHONPATH={ROOT} "
        f"{sys.executable} -m tests.providers.upstream.raw_server 2026\n"
    )
    script.chmod(0o755)
    async with opened(Server(command="./serve", cwd=str(tmp_path))) as upstream:
        assert upstream.state == "ready"


async def test_a_server_whose_lists_change_whenever_they_are_read_is_not_read_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U5: it is opened, and asked again after a while, not at once."""
    monkeypatch.setattr(server_lists, "REFRESH_PAUSE_S", (60.0, 60.0))
    async with opened(raw("2026", "restless")) as upstream:
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"  # what it says comes before that
        pages = len(upstream.tools()) // 10 + 1
        await until(lambda: len(upstream.logs) >= pages)
        assert [line for _, line in upstream.logs] == ["listed"] * pages  # each once


async def test_a_page_that_is_never_visited_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q2, C1: the clocks stand still while it is waited for, so there is a bound."""
    monkeypatch.setattr(tool_call, "VISIT_S", (0.001, 0.001))
    async with opened(raw("2025")) as upstream:
        with pytest.raises(ToolError, match="log in first") as caught:
            await asyncio.wait_for(run_tool(upstream, "pages", ScriptedRun(answers=[Answer("accept")])), 10)
        assert caught.value.category == "refused"


async def test_a_result_that_is_none_is_the_servers_fault() -> None:
    """E1: a plain request ends with an error that can be told."""
    async with opened(raw("2025")) as upstream:
        with pytest.raises(ToolError, match="answered resources/read with something that is no result"):
            await upstream.request("resources/read", {"uri": "test://nothing"})


async def test_an_error_of_a_server_is_cut_and_cannot_steer_a_terminal() -> None:
    """G3, S1: what it says goes into the history and to people."""
    async with opened(raw("2026")) as upstream:
        with pytest.raises(ToolError, match="server raw: no!") as caught:
            await run_tool(upstream, "scream")
        assert len(caught.value.message) < 11_000 and "\x1b" not in caught.value.message


async def test_a_tool_whose_name_cannot_be_shown_is_not_offered() -> None:
    """S1: nor one without a name."""
    upstream = Upstream("raw", raw("2026"))
    names = (b"good", b"", b"\\u001b[2Jbad", b"a\\nb", "ü".encode())
    upstream.remember(ServerLists([Raw(b'{"name":"%s","inputSchema":{}}' % name) for name in names]))
    assert [tool.name for tool in upstream.tools()] == ["good", "ü"]
    assert upstream.counted == {"bad_tool": 3}


async def test_nobody_is_started_to_be_told_that_nothing_is_wanted() -> None:
    """U5: a dead server is not subscribed to after its next start."""
    async with opened(raw("2025")) as upstream:
        await upstream.subscribe("test://a")
        pid = upstream.pid
        assert pid is not None
        os.kill(pid, 9)
        await until(lambda: upstream.pid is None)
        await upstream.unsubscribe("test://a")
        assert upstream.state == "idle"
        told: list[str] = []
        upstream.listen(lambda kind, uri: told.append(kind))
        await upstream.open()
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
        assert told == []


async def test_a_callers_connection_that_is_used_is_not_closed_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U1: neither one with a call, nor one that is starting."""
    monkeypatch.setattr(upstreams, "MAX_CALLER_CONNECTIONS", 2)
    async with opened(raw("2026", per_caller=True)) as upstream:
        runs = [ScriptedRun() for _ in range(3)]
        for number, run in enumerate(runs):
            run.caller = f"caller {number}"
        busy = [asyncio.create_task(run_tool(upstream, "hang", run)) for run in runs]
        await until(lambda: all(run.readings for run in runs))
        assert not any(task.done() for task in busy)
        for task in busy:
            task.cancel()


def declaring(extension: str) -> ScriptedRun:
    """A run whose caller declares this extension."""
    run = ScriptedRun()
    run.caller = extension
    declared: dict[str, Any] = {CAPABILITIES_KEY: {"extensions": {extension: {}}}}
    run.more = Raw(json.encode({"_meta": declared}))
    return run


async def test_a_caller_that_always_declares_something_else_starts_few_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U8, H8: a server of the handshake era is a process for each set of extensions; the unused ones end."""
    monkeypatch.setattr(upstreams, "MAX_EXTENSION_SETS", 2)
    async with opened(raw("2025")) as upstream:
        for number in range(6):
            await run_tool(upstream, "echo", declaring(f"x/{number}"), text="x")
        assert len(upstream._connections) <= 3
        runs = [declaring(f"y/{number}") for number in range(6)]
        busy = [asyncio.create_task(run_tool(upstream, "hang", run)) for run in runs]
        await until(lambda: sum(bool(run.readings) for run in runs) == 4)
        refused, _ = await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
        assert {"sets of extensions" in str(task.exception()) for task in refused} == {True}
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x", "all others are served"
        for task in busy:
            task.cancel()


@pytest.mark.parametrize("status", [404, 405, 400])
async def test_a_call_whose_stream_broke_had_begun_whatever_is_said_when_it_is_taken_up(status: int) -> None:
    """U4: it must not run twice, and a refusal to go on is no answer to it."""
    error = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "no"}}

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            await reply.json(error, status)
        elif not await handshake(asked, reply):
            await reply.stream()
            await reply.event(progress(asked, 1), id="e1")

    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        with pytest.raises(RunnerDied) as caught:
            await run_tool(upstream, "go")
        assert caught.value.began
        assert len(place.calls("tools/call")) == 1


async def test_a_session_that_a_server_does_not_know_is_opened_again_whatever_the_status() -> None:
    """U4: servers made from the examples say 400, not 404."""
    error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
    known: set[str] = set()

    async def answer(asked: Asked, reply: Reply) -> None:
        session = asked.headers.get(SESSION)
        if session is not None and session not in known and asked.verb == "POST":
            await reply.json({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        elif asked.method == "initialize":
            known.add("s1")
            await reply.result(asked, mcp_session_id="s1")
        elif not await handshake(asked, reply):
            await reply.json(text(asked, "gone"))

    async with site(answer) as place, opened(Server(url=place.url, era=OLD)) as upstream:
        known.clear()
        with pytest.raises(RunnerDied, match="ended the session") as caught:
            await run_tool(upstream, "go")
        assert not caught.value.began
        assert text_of(await run_tool(upstream, "go")) == "gone"


async def test_the_stream_beside_the_calls_is_asked_for_again_after_a_bad_moment() -> None:
    """U5: a server that is overloaded has not said that it has none."""
    asked_for: list[int] = []

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.verb == "GET":
            asked_for.append(503 if not asked_for else 405)
            await reply.status(asked_for[-1])
        elif not await handshake(asked, reply):
            await reply.json(text(asked, "gone"))

    async with site(answer) as place, opened(Server(url=place.url, era=OLD)):
        await until(lambda: len(asked_for) > 1)
    assert asked_for == [503, 405]


async def test_a_server_that_dies_while_it_is_subscribed_to_again_fails_nothing_unseen() -> None:
    """U5: what was subscribed to is subscribed to at the next start."""
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    async with opened(raw("2025")) as upstream:
        connection = upstream._reconnecting(LISTING).connection
        assert connection is not None
        upstream._subscriptions._uris.add("test://a")
        connection.mark_lost("it died")
        await upstream._subscriptions.attach(connection)
    assert failures == []


@pytest.mark.parametrize("options", [ServerOptions(), ServerOptions(restart_limit=1)])
async def test_a_file_is_named_like_a_module(tmp_path: Path, options: ServerOptions) -> None:
    """U1: `server.py:mcp`, as its users write it; its folder is importable."""
    (tmp_path / "beside_it.py").write_text("WORD = 'beside'\n")
    (tmp_path / "my_server.py").write_text(
        "from mcp.server.mcpserver import MCPServer\nfrom beside_it import WORD\n"
        "mcp = MCPServer('mine')\n@mcp.tool()\ndef word() -> str:\n    return WORD\n"
    )
    async with opened(Server(module=f"{tmp_path / 'my_server.py'}:mcp"), options=options) as upstream:
        assert text_of(await run_tool(upstream, "word")) == "beside"
    upstream = Upstream("far", Server(module=f"{tmp_path / 'no_server.py'}:mcp"))
    with pytest.raises(ToolError, match="no_server.py"):
        await upstream.open()
    await upstream.close()


async def test_a_flood_in_this_process_leaves_room_for_others() -> None:
    """U6: who only reports still lets everybody else run."""
    from tests.providers.upstream.sdk_server import server

    passes = 0

    async def other() -> None:
        nonlocal passes
        while True:
            await asyncio.sleep(0)
            passes += 1

    async with opened(Server(), options=ServerOptions(target=server)) as upstream:
        beside = asyncio.create_task(other())
        await run_tool(upstream, "count", n=1000)
        beside.cancel()
    assert passes >= 1000


async def test_a_server_that_comes_up_as_it_is_stopped_does_not_stay() -> None:
    """U1: no child is left behind, whichever was first."""
    upstream = Upstream("raw", raw("2026"))
    start = upstream.start("echo", "a")
    assert start is not None
    waiting = asyncio.ensure_future(start.done())
    here = upstream._reconnecting(LISTING)
    await until(lambda: here._starting is not None)
    assert here._starting is not None
    await asyncio.wait([here._starting])  # and its waiters do not know it yet
    connection = here.connection
    assert connection is not None
    await upstream.close()
    await asyncio.wait([waiting])
    assert connection.lost is not None and here.connection is None


async def test_a_request_to_a_server_that_is_just_dying_finds_it_dead_when_it_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U4: nothing was sent, and the next attempt has a new server, not the same corpse."""
    async with opened(raw("2026")) as upstream:
        connection = upstream._reconnecting(LISTING).connection
        assert connection is not None
        stdio = connection.transport
        assert isinstance(stdio, StdioTransport)
        pipe = stdio._process
        assert pipe is not None
        stdin = pipe.get_pipe_transport(0)
        assert stdin is not None
        stdin.close()  # as when it was killed, and its last words are waited for
        with pytest.raises(RunnerDied, match="server raw (ended|closed|was killed)") as caught:
            await run_tool(upstream, "echo", text="x")
        assert not caught.value.began
        assert upstream.start("echo", "a") is not None
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
