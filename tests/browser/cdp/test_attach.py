"""Coming to a browser that is there already, coming back to it, sharing it, and losing it."""

import asyncio
import urllib.request

import msgspec
from msgspec import Raw

from afoot.providers.browser.cdp.browser import CdpBrowser
from afoot.providers.browser.cdp.connection import CdpTransport, parse_address
from afoot.wire import extension
from tests.browser.cdp.cdp_listener import WAIT_S, Ear, listening, opened
from tests.browser.chromium import Chromium, running
from tests.browser.site import Site

RUN = "0123456789abcdef" * 2


async def test_a_tab_that_was_open_offers_what_its_browser_knows(native: Chromium, site: Site) -> None:
    """B5: a page whose script has run gets no channel; its tools run without progress."""
    await opened(native, site.url("contract.html"))
    ear = Ear()
    async with listening(native, ear) as carrier:
        room = await ear.room("contract.html")
        tools = await ear.tools(room)
        assert tools.keys() == {"echo", "count", "crash", "missing", "hang"}
        assert not any(tool.progress for tool in tools.values())
        carrier.send(extension.RunDispatch(room.id, RUN, "echo", Raw(b'{"text": "hello"}')))
        assert msgspec.json.decode((await ear.end(RUN)).value) == "hello"


async def test_a_tab_that_was_open_has_to_be_loaded_again_without_webmcp(plain: Chromium, site: Site) -> None:
    """B5, B6: it is said why, and a reload is enough."""
    page = await opened(plain, site.url("contract.html"))
    ear = Ear()
    async with listening(plain, ear) as carrier:
        await ear.tab(lambda tab: (tab.id, tab.why) == (page.target, "reload"), "the reason")
        assert not ear.rooms()
        assert carrier.send(extension.TabReload(page.target))
        assert all(tool.progress for tool in (await ear.tools(await ear.room("contract.html"))).values())
        await ear.tab(lambda tab: (tab.id, tab.why) == (page.target, ""), "no reason any more")


async def test_a_tab_that_the_debugging_port_opens_has_tools_that_report(
    browser: Chromium, site: Site
) -> None:
    """B5: its page may run before our scripts are there; it is then loaded again, once."""
    ear = Ear()
    async with listening(browser, ear):
        for number in range(4):
            address = f"{browser.endpoint}/json/new?{site.url('contract.html')}?n={number}"
            request = urllib.request.Request(address, method="PUT")
            await asyncio.to_thread(lambda request=request: urllib.request.urlopen(request).close())
            part = f"contract.html?n={number}"

            def reports(part: str = part) -> bool:
                rooms = [room.id for room in ear.rooms().values() if part in room.url]
                lists = [one.tools for one in ear.all(extension.PageContextTools) if one.room in rooms]
                return bool(lists) and any(tool.progress for tool in lists[-1])

            await ear.until(reports, "tools that report")
            await ear.tab(lambda tab, part=part: part in tab.url and not tab.why, "no reason to reload")


async def test_a_gateway_that_comes_back_finds_its_tabs_again(browser: Chromium, site: Site) -> None:
    """B6: nobody has to reload tabs because a gateway was started anew, and runs go on meanwhile."""
    ear = Ear()
    async with listening(browser, ear) as carrier:
        page = await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html")
        await ear.tools(room)
        carrier.send(extension.RunDispatch(room.id, RUN, "hang", Raw(b"{}")))
        await ear.until(lambda: ear.all(extension.RunProgress), "its report")
    again = Ear()
    async with listening(browser, again) as carrier:
        room = await again.room("contract.html")
        assert all(tool.progress for tool in (await again.tools(room)).values())
        openings = [one for one in again.all(extension.PageContextOpened) if one.room.id == room.id]
        assert [running.run for running in openings[-1].running] == [RUN]
        carrier.send(extension.RunCancel(room.id, RUN, "nobody waits for it"))
        assert (await again.end(RUN)).aborted
        assert len(again.rooms()) == 1
        assert len(await asyncio.to_thread(page.evaluate, "window.aborted")) == 1


async def test_two_gateways_at_one_browser_do_not_hear_each_other(browser: Chromium, site: Site) -> None:
    """B7: each has worlds of its own; a run of one is nothing to the other. The page speaks to the first."""
    ears = (Ear(), Ear())
    async with listening(browser, ears[0], "one") as one, listening(browser, ears[1], "two") as two:
        await opened(browser, site.url("contract.html"))
        rooms = [await ear.room("contract.html") for ear in ears]
        tools = [asyncio.create_task(ear.tools(room)) for ear, room in zip(ears, rooms, strict=True)]
        await asyncio.wait(tools, return_when=asyncio.FIRST_COMPLETED)
        mine = 0 if tools[0].done() else 1
        (one, two)[mine].send(extension.RunDispatch(rooms[mine].id, RUN, "count", Raw(b'{"n": 3}')))
        ended = await ears[mine].end(RUN)  # the browser's own tools give text, which may be a number
        assert str(msgspec.json.decode(ended.value)) == "3"
        assert not ears[1 - mine].all(extension.RunResult) and not ears[1 - mine].all(extension.RunProgress)
        assert [len(ear.rooms()) for ear in ears] == [1, 1]
        for task in tools:
            task.cancel()


async def test_another_program_may_drive_the_same_browser(browser: Chromium, site: Site) -> None:
    """B5: the tests' own session sees the same tab, and steers it while a run goes on."""
    ear = Ear()
    async with listening(browser, ear) as carrier:
        page = await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html")
        await ear.tools(room)
        carrier.send(extension.RunDispatch(room.id, RUN, "count", Raw(b'{"n": 50}')))
        assert await asyncio.to_thread(page.evaluate, "document.title") == "Contract"
        assert msgspec.json.decode((await ear.end(RUN)).value) == "50"


async def test_a_browser_that_ends_is_told_at_once_and_found_again(site: Site) -> None:
    """B6: no grace, as a browser that ended has no runs any more; tried again until it is back."""
    ear, places = Ear(), [""]

    async def dial() -> CdpTransport:
        return await parse_address(places[0]).dial()

    with running("--headless=new") as first:
        places[0] = await asyncio.to_thread(lambda: first.endpoint)
        async with CdpBrowser("the browser", dial, ear) as carrier:
            await asyncio.wait_for(carrier.joined.wait(), WAIT_S)
            await opened(first, site.url("contract.html"))
            room = await ear.room("contract.html")
            await asyncio.to_thread(first.kill)
            why, grace_s = (await ear.until(lambda: ear.leavings, "its end"))[0]
            assert "gone" in why and grace_s == 0.0
            assert not carrier.send(extension.RunCancel(room.id, RUN))
            with running("--headless=new") as second:
                places[0] = await asyncio.to_thread(lambda: second.endpoint)
                await asyncio.wait_for(carrier.joined.wait(), WAIT_S)
                await opened(second, site.url("contract.html"))
                await ear.until(lambda: [one for one in ear.rooms().values() if one.id != room.id], "a room")
                assert len(ear.hellos) == 2 and carrier.state.connected
