"""Sessions of the handshake era that outlive their gateway, and those that do not (D2, S3)."""

import asyncio

from afoot.serve.sessions import LASTS_S
from afoot.serve.site import Site
from afoot.store.memory import MemoryJournal
from tests.serve.double import faked, nap, site_of
from tests.serve.test_resume import again, client, cut, lines, logs, places
from tests.serve.wires import Web, older, request


@faked
async def test_a_stream_and_its_session_outlive_the_gateway() -> None:
    """D2: the session says itself who it is, and the place which request it was."""
    journal = MemoryJournal()
    async with site_of(logs, journal=journal) as site:
        web = await client(site)
        broken = await cut(web, older(7), 2.5)
        await asyncio.sleep(10)
    async with site_of(logs, journal=journal) as site:
        await asyncio.sleep(1)
        after = Web(site)
        after.session = web.session
        resumed = await again(after, places(broken.events)[-1]).done()
        assert (await after.ask(request("ping"))).messages[0]["result"] == {}
    assert lines(resumed.messages) == ["line 3", "line 4", "line 5"]
    assert resumed.messages[-1]["id"] == 7


@faked
async def test_a_task_is_found_again_by_its_session_after_a_restart() -> None:
    """D2, H3: as the same caller."""
    journal = MemoryJournal()
    async with site_of(nap, journal=journal) as site:
        web = await client(site)
        made = (await web.ask(request("tools/call", {"name": "tool", "task": {}}))).messages[0]["result"]
        await asyncio.sleep(11)
    async with site_of(nap, journal=journal) as site:
        after = Web(site)
        after.session = web.session
        found = await after.ask(request("tasks/get", {"taskId": made["task"]["taskId"]}))
    assert found.messages[0]["result"]["status"] == "completed"


async def known(site: Site, session: str) -> bool:
    """Whether a gateway knows this session."""
    web = Web(site)
    web.session = session
    status = (await web.ask(request("ping"))).status
    assert status in (200, 404)
    return status == 200


@faked
async def test_a_session_that_is_over_too_old_or_of_another_key_is_unknown() -> None:
    """S3: 404, so that its client opens another."""
    async with site_of(nap) as site:
        web = await client(site)
        await web.open("DELETE").done()
        assert not await known(site, web.session)  # it was opened at this gateway, so it was ended
        site.began += 1  # as if it had been at another
        assert await known(site, web.session)
        site.began += LASTS_S
        assert not await known(site, web.session)
    async with site_of(nap) as site:
        site.key, site.began = b"x" * 32, site.began + 1
        assert not await known(site, web.session)
