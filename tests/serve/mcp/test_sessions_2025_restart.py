"""Sessions of the handshake era that outlive their gateway, and those that do not (D2, S3)."""

import asyncio
from pathlib import Path

import pytest

from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp import sessions_2025
from afoot.serve.mcp.http import McpHttp
from afoot.serve.mcp.sessions_2025 import SESSION_MAX_AGE_S, EndedSessions, Sessions2025
from afoot.store.memory import MemoryJournal
from tests.serve.fake_gateway import TOKEN, faked, nap, site_of
from tests.serve.mcp.test_era_2025_resumed_streams import again, cut, lines, logs, places
from tests.serve.raw_transports import Web, client, older, request


@faked
async def test_a_stream_and_its_session_outlive_the_gateway() -> None:
    """D2: the session says itself who it is, and the place which request it was."""
    journal = MemoryJournal()
    async with site_of(logs, journal=journal) as gateway:
        web = await client(gateway)
        broken = await cut(web, older(7), 2.5)
        await asyncio.sleep(10)
    async with site_of(logs, journal=journal) as gateway:
        await asyncio.sleep(1)
        after = Web(gateway)
        after.session = web.session
        resumed = await again(after, places(broken.events)[-1]).done()
        assert (await after.ask(request("ping"))).messages[0]["result"] == {}
    assert lines(resumed.messages) == ["line 3", "line 4", "line 5"]
    assert resumed.messages[-1]["id"] == 7


@faked
async def test_a_task_is_found_again_by_its_session_after_a_restart() -> None:
    """D2, H3: as the same caller."""
    journal = MemoryJournal()
    async with site_of(nap, journal=journal) as gateway:
        web = await client(gateway)
        made = (await web.ask(request("tools/call", {"name": "tool", "task": {}}))).messages[0]["result"]
        await asyncio.sleep(11)
    async with site_of(nap, journal=journal) as gateway:
        after = Web(gateway)
        after.session = web.session
        found = await after.ask(request("tasks/get", {"taskId": made["task"]["taskId"]}))
    assert found.messages[0]["result"]["status"] == "completed"


def web_with_folder(gateway: GatewayState, folder: Path) -> Web:
    """A gateway that remembers in this folder which sessions were ended."""
    web = Web(gateway)
    guard = Guard(accepted_hosts(23668, []), frozenset(), "", TOKEN)
    web.application = McpHttp(gateway, guard, Sessions2025(gateway, EndedSessions(folder)))
    return web


async def opened(web: Web) -> str:
    """A new session, by its id."""
    web.session = ""
    await web.shake_hands()
    return web.session


async def known(web: Web, session: str) -> bool:
    """Whether a gateway knows this session."""
    status = (await web.ask(request("ping"), mcp_session_id=session)).status
    assert status in (200, 404)
    return status == 200


@faked
async def test_a_session_that_was_ended_stays_ended_over_restarts(tmp_path: Path) -> None:
    """D2, S3: whether the gateway that it was ended at had opened it, or only knew it again."""
    async with site_of(nap) as gateway:
        web = web_with_folder(gateway, tmp_path)
        first, second, third = [await opened(web) for _ in range(3)]
        await web.open("DELETE", mcp_session_id=first).done()
        assert not await known(web, first)
        await asyncio.sleep(1)
    async with site_of(nap) as gateway:
        web = web_with_folder(gateway, tmp_path)
        assert not await known(web, first) and await known(web, second)
        await web.open("DELETE", mcp_session_id=second).done()
        assert not await known(web, second)
        await asyncio.sleep(1)
    async with site_of(nap) as gateway:
        web = web_with_folder(gateway, tmp_path)
        assert [await known(web, one) for one in (first, second, third)] == [False, False, True]


@faked
async def test_a_session_that_is_over_too_old_or_of_another_key_is_unknown() -> None:
    """S3: 404, so that its client opens another."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        session = await opened(web)
        await web.open("DELETE").done()
        assert not await known(web, session)
        session = await opened(web)
        await asyncio.sleep(1)
    async with site_of(nap) as gateway:
        assert await known(Web(gateway), session)
        await asyncio.sleep(SESSION_MAX_AGE_S)
        assert not await known(Web(gateway), session)
        session = await opened(Web(gateway))
        await asyncio.sleep(1)
    async with site_of(nap) as gateway:
        gateway.key = b"x" * 32
        assert not await known(Web(gateway), session)


@faked
async def test_sessions_that_come_back_are_only_so_many_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: 503, as for a new one."""
    monkeypatch.setattr(sessions_2025, "MAX_SESSIONS", 2)
    async with site_of(nap) as gateway:
        one, two = [await opened(Web(gateway)) for _ in range(2)]
        await asyncio.sleep(1)
    async with site_of(nap) as gateway:
        web = Web(gateway)
        await opened(web)
        assert await known(web, one)
        assert (await web.ask(request("ping"), mcp_session_id=two)).status == 503


@faked
async def test_a_session_that_was_long_idle_finds_its_task_within_its_time() -> None:
    """H3: the time to live that it was told is true, whatever room others needed meanwhile."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        mine = await opened(web)
        made = (await web.ask(request("tools/call", {"name": "tool", "task": {}}))).messages[0]["result"][
            "task"
        ]
        await asyncio.sleep(made["ttl"] / 1000 - 5)
        await opened(web)  # makes room
        found = await web.ask(request("tasks/get", {"taskId": made["taskId"]}), mcp_session_id=mine)
    assert found.messages[0]["result"]["status"] == "completed"
