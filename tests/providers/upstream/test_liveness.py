"""Servers that say nothing while a call waits: a ping shows whether they are there at all."""

import asyncio
import os
import signal

import pytest

from afoot.config.settings import Server
from afoot.providers.upstream.provider import ServerOptions, Upstream
from tests.providers.fake_run import ScriptedRun, text_of, until
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.started_servers import opened, raw, run_tool
from tests.providers.upstream.transport.test_http import modern

OFTEN = ServerOptions(ping_s=0.05, pong_s=0.2)


def received(upstream: Upstream) -> int:
    """The number of messages that the server has sent."""
    connection = upstream._last_connection
    assert connection is not None
    return connection.received


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_a_stopped_server_is_found_by_a_ping_and_its_calls_say_so(era: str) -> None:
    """U4, E2: its pipes are open, so nothing else would show it; the calls say when it goes on."""
    async with opened(raw(era), options=OFTEN) as upstream:
        first, pid = ScriptedRun(), upstream.pid
        assert pid is not None
        calls = [asyncio.ensure_future(run_tool(upstream, "hang", first))]
        await until(lambda: first.readings)
        os.kill(pid, signal.SIGSTOP)
        try:
            await until(lambda: first.hindrances)
            assert first.hindrances[0] == (
                "server raw is stopped",
                f"let its process {pid} go on: kill -CONT {pid}",
            )
            assert any("server raw is stopped" in line for _, line in upstream.logs)
            second = ScriptedRun()
            calls.append(asyncio.ensure_future(run_tool(upstream, "hang", second)))
            await until(lambda: second.hindrances)
        finally:
            os.kill(pid, signal.SIGCONT)
        await until(lambda: first.hindrances[-1] == second.hindrances[-1] == ("", ""))
        for call in calls:
            call.cancel()


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_a_silent_server_that_answers_pings_hinders_nothing(era: str) -> None:
    """C5, U4: and a ping is no sign of life of the tool."""
    async with opened(raw(era), options=OFTEN) as upstream:
        run = ScriptedRun()
        call = asyncio.ensure_future(run_tool(upstream, "hang", run))
        await until(lambda: run.readings)
        before = received(upstream)
        await until(lambda: received(upstream) >= before + 3)
        assert run.hindrances == [] and run.events == ["report"]
        call.cancel()


async def test_a_server_is_pinged_only_while_a_call_waits() -> None:
    """U4: and not at all if the call is short."""
    async with opened(raw("2026"), options=OFTEN) as upstream:
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
        await until(lambda: upstream._offers.listing is not None and upstream._offers.listing.done())
        before = received(upstream)
        await asyncio.sleep(4 * OFTEN.ping_s)
        assert received(upstream) == before


async def test_a_server_behind_http_that_hears_nothing_is_named() -> None:
    """U4: it may hang or be busy; what it sends later shows that it is back."""
    deaf, freed = asyncio.Event(), asyncio.Event()

    async def answer(asked: Asked, reply: Reply) -> None:
        if deaf.is_set():
            await freed.wait()
        if not await modern(asked, reply):
            deaf.set()
            await freed.wait()
            await asyncio.sleep(0.3)
            await reply.json(text(asked, "gone"))

    async with site(answer) as place, opened(Server(url=place.url), options=OFTEN) as upstream:
        run = ScriptedRun()
        call = asyncio.ensure_future(run_tool(upstream, "go", run))
        await until(lambda: run.hindrances)
        assert run.hindrances[0][0] == "server raw does not answer a ping"
        freed.set()
        await until(lambda: run.hindrances[-1] == ("", ""))
        assert text_of(await call) == "gone"
