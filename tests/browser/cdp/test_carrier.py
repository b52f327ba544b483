"""A real browser over CDP: rooms are what the browser says, and end with the right reason."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from msgspec import Raw

from afoot.providers.browser.cdp.browser import CdpBrowser
from afoot.providers.browser.cdp.connection import CdpTransport
from afoot.providers.browser.chromium import Chromium as Process
from afoot.wire import extension
from tests.browser.cdp.cdp_listener import WAIT_S, Ear, listening, opened
from tests.browser.chromium import Chromium
from tests.browser.page import Page
from tests.browser.site import Site

RUN = "0123456789abcdef" * 2
Do = Callable[[Page], None]


async def do(action: Callable[..., object], *args: object) -> None:
    """Something with the browser, without keeping the loop."""
    await asyncio.to_thread(action, *args)


def framed(site: Site, *frames: str) -> str:
    """The address of a page with these frames."""
    name = f"framed{abs(hash(frames))}.html"
    site.pages[name] = "<!doctype html><title>Framed</title>" + "".join(frames)
    return site.url(name)


def source(site: Site, host: str, mark: str) -> str:
    """A frame with the contract's page."""
    return f"<iframe allow='tools' src='{site.url('contract.html', host=host)}#{mark}'></iframe>"


def away(page: Page) -> None:
    """Go to another document."""
    page.navigate("about:blank")


LEAVING: dict[str, Do] = {"closed": Page.close, "reloaded": Page.reload, "navigated": away}


async def test_a_room_is_what_the_browser_says(browser: Chromium, site: Site) -> None:
    """B5, B7: tab, frame, origin and address are the browser's; the page sees nothing of us."""
    ear = Ear()
    async with listening(browser, ear):
        page = await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html")
        assert (room.tab, room.frame, room.source) == (page.target, "0", "page")
        assert (room.origin, room.top) == (site.origin(), site.origin())
        tools = await ear.tools(room)
        assert tools.keys() == {"echo", "count", "crash", "missing", "hang"}
        assert all(tool.progress for tool in tools.values())
        tab = await ear.tab(lambda tab: tab.title == "Contract" and tab.active, "the tab in front")
        assert (tab.id, tab.why, tab.url) == (page.target, "", site.url("contract.html"))
        names = "['afootSend', 'afootReceive', 'afootRelay'].filter((name) => name in window)"
        assert await asyncio.to_thread(page.evaluate, names) == []


async def test_a_run_reports_and_ends_and_a_cancel_reaches_its_signal(browser: Chromium, site: Site) -> None:
    """B1, B5: down and up the same way."""
    ear = Ear()
    async with listening(browser, ear) as carrier:
        page = await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html")
        await ear.tools(room)
        assert carrier.send(extension.RunDispatch(room.id, RUN, "count", Raw(b'{"n": 5}')))
        ended = await ear.end(RUN)
        assert (msgspec.json.decode(ended.value), ended.error) == ("5", None)
        reports = [one for frame in ear.all(extension.RunProgress) for one in frame.reports]
        assert [(one.progress, one.total) for one in reports] == [(n, 5) for n in range(1, 6)]
        other = RUN[::-1]
        carrier.send(extension.RunDispatch(room.id, other, "hang", Raw(b"{}")))
        await ear.until(lambda: [p for p in ear.all(extension.RunProgress) if p.run == other], "its report")
        carrier.send(extension.RunCancel(room.id, other, "enough"))
        assert (await ear.end(other)).aborted
        assert "enough" in (await asyncio.to_thread(page.evaluate, "window.aborted"))[0]["reason"]
        assert not carrier.send(extension.RunDispatch("r999", RUN, "count", Raw(b"{}")))


@pytest.mark.parametrize("why", [*LEAVING, "crashed"])
async def test_a_room_goes_with_its_document(browser: Chromium, site: Site, why: str) -> None:
    """B6: at once, with the reason."""
    ear = Ear()
    async with listening(browser, ear):
        page = await opened(browser, framed(site, source(site, "127.0.0.1", "near")))
        rooms = [await ear.room("framed"), await ear.room("#near")]
        await do({**LEAVING, "crashed": Page.crash}[why], page)
        assert [await ear.gone(room) for room in rooms] == [why, why]


async def test_frames_are_rooms_of_their_own(browser: Chromium, site: Site) -> None:
    """B5, B6: a frame of another site has a session of its own; an origin is the frame's, never the tab's."""
    ear = Ear()
    async with listening(browser, ear):
        far, near = source(site, "localhost", "far"), source(site, "127.0.0.1", "near")
        page = await opened(browser, framed(site, far, near, "<iframe srcdoc='hello'></iframe>"))
        rooms = {name: await ear.room(name) for name in ("#far", "#near", "about:srcdoc")}
        origins = {name: (room.origin, room.top) for name, room in rooms.items()}
        assert origins == {
            "#far": (site.origin("localhost"), site.origin()),
            "#near": (site.origin(), site.origin()),
            "about:srcdoc": (site.origin(), site.origin()),
        }
        assert len({room.frame for room in rooms.values()} | {"0"}) == 4
        assert {room.tab for room in rooms.values()} == {page.target}
        assert "count" in await ear.tools(rooms["#far"])
        await do(page.evaluate, "for (const frame of document.querySelectorAll('iframe')) frame.remove()")
        assert [await ear.gone(room) for room in rooms.values()] == ["removed"] * 3


@pytest.mark.parametrize("why", LEAVING)
async def test_a_frame_of_another_site_goes_with_its_tab(browser: Chromium, site: Site, why: str) -> None:
    """B6: the reason is the tab's."""
    ear = Ear()
    async with listening(browser, ear):
        page = await opened(browser, framed(site, source(site, "localhost", "far")))
        room = await ear.room("#far")
        await do(LEAVING[why], page)
        assert await ear.gone(room) == why


async def test_a_frame_that_goes_elsewhere_has_navigated(browser: Chromium, site: Site) -> None:
    """B6: within its process, and into another."""
    ear = Ear()
    async with listening(browser, ear):
        page = await opened(browser, framed(site, source(site, "127.0.0.1", "near")))
        room = await ear.room("#near")
        for host, mark in (("127.0.0.1", "next"), ("localhost", "far"), ("127.0.0.1", "back")):
            url = site.url("contract.html", "X-Any: thing", host=host) + f"#{mark}"
            await do(page.evaluate, f"void (document.querySelector('iframe').src = {url!r})")
            assert await ear.gone(room) == "navigated"
            room = await ear.room(f"#{mark}")
            assert room.origin == site.origin(host)


async def test_an_address_pushed_by_the_page_ends_nothing(browser: Chromium, site: Site) -> None:
    """B6: pushState is the same document, with another address."""
    ear = Ear()
    async with listening(browser, ear):
        page = await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html")
        await do(page.evaluate, "history.pushState({}, '', '/elsewhere')")
        stated = await ear.until(
            lambda: [one for one in ear.all(extension.PageContextState) if one.url.endswith("/elsewhere")],
            "the address",
        )
        assert stated[0].room == room.id
        assert not ear.all(extension.PageContextGone)


async def test_a_document_that_comes_back_is_a_new_room(browser: Chromium, site: Site) -> None:
    """B6: what is in the back/forward cache counts as gone."""
    ear = Ear()
    async with listening(browser, ear) as carrier:
        page = await opened(browser, site.url("contract.html"))
        before = await ear.room("contract.html")
        await do(page.navigate, site.url("empty.html", host="localhost"))
        assert await ear.gone(before) in ("navigated", "cached")
        await do(page.go, -1)
        after = await ear.room("contract.html")
        assert after.id != before.id
        await ear.tools(after)
        carrier.send(extension.RunDispatch(after.id, RUN, "echo", Raw(b'{"text": "back"}')))
        assert msgspec.json.decode((await ear.end(RUN)).value) == "back"


async def test_a_tab_that_crashed_and_was_loaded_again_works(browser: Chromium, site: Site) -> None:
    """B6: nothing stays broken."""
    ear = Ear()
    async with listening(browser, ear):
        page = await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html")
        await do(page.crash)
        assert await ear.gone(room) == "crashed"
        await do(page.reload)
        assert "count" in await ear.tools(await ear.room("contract.html"))


async def test_a_popup_is_a_tab_like_any_other(browser: Chromium, site: Site) -> None:
    """B5: also where the opener touches its window before it has loaded."""
    ear = Ear()
    async with listening(browser, ear):
        page = await opened(browser, site.url("empty.html"))
        url = site.url("contract.html", host="localhost")
        await do(page.evaluate, f"void window.open('{url}#far')")
        assert "count" in await ear.tools(await ear.room("#far"))
        near = site.url("contract.html")
        await do(page.evaluate, f"void (window.open('{near}#near').touched = true)")
        room = await ear.room("#near")
        assert (room.frame, room.origin) == ("0", site.origin())


async def test_pages_of_the_browser_itself_are_not_offered(browser: Chromium) -> None:
    """B7: only the web."""
    ear = Ear()
    async with listening(browser, ear) as carrier:
        page = await opened(browser, "chrome://version/")
        tab = await ear.tab(lambda tab: tab.id == page.target and "version" in tab.url, "the tab")
        assert tab.why == "closed to extensions"
        assert not ear.rooms()
        assert carrier.state.connected and carrier.state.browser.startswith("Chrome/")


async def test_the_pipe_of_a_browser_of_our_own_carries_the_same(site: Site) -> None:
    """B5: loopback or pipe; where the browser ends, its rooms end with it and no grace."""
    ear = Ear()
    async with Process("--headless=new", site.url("contract.html"), on_event=None) as process:
        wire = process.transport
        assert wire is not None

        async def dial() -> CdpTransport:
            if not process.pid:
                raise ConnectionError("it ended")
            return wire

        async with CdpBrowser("pipe", dial, ear) as carrier:
            await asyncio.wait_for(carrier.joined.wait(), WAIT_S)
            assert carrier.state.browser.startswith("Chrome/")
            tab = await ear.tab(lambda tab: tab.title == "Contract", "the tab")
            if tab.why == "reload":  # it had loaded before we came
                assert carrier.send(extension.TabReload(tab.id))
            assert "count" in await ear.tools(await ear.room("contract.html"))
            await process.close()
            assert await ear.until(lambda: ear.leavings, "its end") == [("the browser at pipe is gone", 0.0)]
            assert not carrier.send(extension.TabReload(tab.id))
