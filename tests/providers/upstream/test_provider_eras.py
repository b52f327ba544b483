"""Servers that speak both eras: which one they are spoken to in, and tools that need the other one."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.provider import Upstream
from tests.providers.fake_run import ScriptedRun, accept, text_of
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.started_servers import ROOT, opened, raw, run_tool

OLD, NEW = "2025-11-25", "2026-07-28"
FEATURES = "tests.e2e.servers.features_sdk"


def features(**more: Any) -> Server:
    """A server of the SDK with tools for each era."""
    return Server(command=sys.executable, args=["-m", FEATURES], cwd=str(ROOT), **more)


@asynccontextmanager
async def stateless(*versions: str) -> AsyncIterator[Server]:
    """A server on HTTP that speaks these versions and opens no session."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.verb != "POST":
            await reply.status(405)
        elif "id" not in asked.body:
            await reply.status(202)
        elif asked.method == "server/discover" and NEW not in versions:
            await reply.status(400, b"Bad Request: Unsupported protocol version")
        elif asked.method == "tools/call":
            await reply.json(text(asked, "gone"))
        else:
            await reply.result(asked)

    async with site(answer) as place:
        yield Server(url=place.url)


@pytest.mark.parametrize(("versions", "era"), [((OLD, NEW), NEW), ((OLD,), OLD)], ids=["both", "old"])
async def test_a_handshake_without_a_session_gains_nothing(versions: tuple[str, ...], era: str) -> None:
    """U10: a stateless server cannot ask anything in the handshake era, so 2026-07-28 is as good."""
    async with stateless(*versions) as server, opened(server) as upstream:
        assert upstream.era == era
        assert text_of(await run_tool(upstream, "go")) == "gone"


async def test_a_tool_that_the_handshake_refuses_is_called_in_the_other_era() -> None:
    """U10: it had not begun, so the call is made again; other tools stay on the first connection."""
    async with opened(raw("both")) as upstream:
        with pytest.raises(RunnerDied, match="tool refuse of server raw needs 2026-07-28") as caught:
            await run_tool(upstream, "refuse", n=-32021)
        assert not caught.value.began
        assert upstream.lists.needs_2026 == ["refuse"]
        start = upstream.start("refuse", "tester")
        assert start is not None  # its tools are read there before the next attempt (A7)
        await start.done()
        assert upstream.start("refuse", "tester") is None
        with pytest.raises(ToolError, match="no"):  # it is refused there as well, and that is the end
            await run_tool(upstream, "refuse", n=-32021)
        assert (upstream.era, text_of(await run_tool(upstream, "echo", text="x"))) == (OLD, "x")


@pytest.mark.parametrize("server", [raw("2025"), raw("both", era=OLD)], ids=["one era", "pinned"])
async def test_a_refusal_stays_one_where_there_is_no_other_era(server: Server) -> None:
    """U10: in the server's words."""
    async with opened(server) as upstream:
        with pytest.raises(ToolError, match="server raw: no"):
            await run_tool(upstream, "refuse", n=-32021)
        assert upstream.lists.needs_2026 == []


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_tool_that_has_run_is_run_again_only_if_that_is_safe(trusted: bool) -> None:
    """U10, U4: a round of its own is none in the handshake era; the error says what happens next."""
    async with opened(features(trust_annotations=trusted)) as upstream:
        kind = RunnerDied if trusted else ToolError
        with pytest.raises(kind, match="tool rounds of server raw needs 2026-07-28") as caught:
            await run_tool(upstream, "rounds")
        assert not isinstance(caught.value, RunnerDied) or caught.value.began
        run = ScriptedRun(answers=[accept({"colour": "red"}), accept({"colour": "blue"})])
        assert text_of(await run_tool(upstream, "rounds", run)) == "red"
        assert text_of(await run_tool(upstream, "elicit", run)) == "blue"


async def test_which_tools_need_the_other_era_is_remembered() -> None:
    """U10: with the lists of the server, from one start to the next; a server that has changed is asked."""
    async with opened(features()) as upstream:
        with pytest.raises(ToolError, match="from now on"):
            await run_tool(upstream, "rounds")
        known = upstream.lists
    again = Upstream("raw", features())
    again.remember(known)
    run = ScriptedRun(answers=[accept({"colour": "red"})])
    assert text_of(await again.prepare("rounds", Raw(b"{}"))(run)) == "red"
    await again.close()
    older = Upstream("raw", raw("2025"))
    older.remember(known)
    start = older.start("rounds", "tester")
    assert start is not None
    with pytest.raises(ToolError, match="unknown method"):
        await start.done()
    assert older.lists.needs_2026 == []
    await older.close()


@pytest.mark.parametrize("name", ["verse", "song"])
async def test_a_prompt_that_needs_the_other_era_is_asked_for_there(name: str) -> None:
    """U10, U5: it asks a caller of 2026-07-28, in the way of that era; it may be asked for twice."""
    async with opened(features()) as upstream:
        asked = await upstream.request("prompts/get", {"name": name})
        assert list(asked["inputRequests"]) == ["colour"]
        answer = {"colour": {"action": "accept", "content": {"colour": "red"}}}
        told = await upstream.request("prompts/get", {"name": name, "inputResponses": answer})
        assert told["messages"][0]["content"]["text"] == "red"
