"""Somebody who hears what a browser says over CDP, and keeps it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from afoot.providers.browser.cdp.browser import CdpBrowser
from afoot.providers.browser.cdp.connection import parse_address
from afoot.providers.browser.profiles import Carrier
from afoot.wire import extension
from afoot.wire.browser_data import PageContext, PageTool, PluginBundle, Tab
from tests.browser.chromium import Chromium
from tests.browser.page import Page

T = TypeVar("T")
WAIT_S = 30.0


class Ear:
    """The audience of one carrier."""

    def __init__(self, *plugins: PluginBundle) -> None:
        self.plugins = list(plugins)
        self.said: list[extension.FromBrowser] = []
        self.leavings: list[tuple[str, float]] = []
        self.hellos: list[extension.LinkHello] = []
        self._news = asyncio.Event()

    def on_connect(self, carrier: Carrier, hello: extension.LinkHello) -> extension.LinkWelcome:
        """A browser is there."""
        self.hellos.append(hello)
        self._news.set()
        return extension.LinkWelcome("now", plugins=self.plugins)

    def on_frame(self, carrier: Carrier, message: extension.FromBrowser) -> None:
        """A browser says something."""
        self.said.append(message)
        self._news.set()

    def on_disconnect(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """A browser is gone."""
        self.leavings.append((why, grace_s))
        self._news.set()

    async def until(self, happened: Callable[[], T], what: str) -> T:
        """Wait until something was heard, and give it."""
        try:
            async with asyncio.timeout(WAIT_S):
                while not (found := happened()):
                    self._news.clear()
                    await self._news.wait()
                return found
        except TimeoutError:
            raise AssertionError(f"waited {WAIT_S:g} s for {what}; heard {self.said[-20:]}") from None

    def all(self, kind: type[T]) -> list[T]:
        """Everything of a kind that was said."""
        return [one for one in self.said if isinstance(one, kind)]

    def rooms(self) -> dict[str, PageContext]:
        """The rooms that are open."""
        found = {one.room.id: one.room for one in self.all(extension.PageContextOpened)}
        for gone in self.all(extension.PageContextGone):
            found.pop(gone.room, None)
        return found

    async def room(self, part: str, source: str = "page") -> PageContext:
        """The open room whose address has this part, when it is there."""

        def found() -> list[PageContext]:
            return [one for one in self.rooms().values() if part in one.url and one.source.startswith(source)]

        return (await self.until(found, f"a room at {part}"))[-1]

    async def gone(self, room: PageContext) -> str:
        """Why a room has gone, when it has."""
        ends = await self.until(
            lambda: [one for one in self.all(extension.PageContextGone) if one.room == room.id],
            f"the end of {room}",
        )
        return ends[0].why

    async def tools(self, room: PageContext, name: str = "hang") -> dict[str, PageTool]:
        """The tools of a room, when it has this one; a page's list may grow in steps."""

        def found() -> dict[str, PageTool]:
            lists = [one.tools for one in self.all(extension.PageContextTools) if one.room == room.id]
            tools = {tool.name: tool for tool in lists[-1]} if lists else {}
            return tools if name in tools else {}

        return await self.until(found, f"the tool {name} of {room}")

    async def end(self, run: str) -> extension.RunResult:
        """How a run ended, when it has."""
        ends = await self.until(
            lambda: [one for one in self.all(extension.RunResult) if one.run == run], f"the end of run {run}"
        )
        return ends[0]

    async def tab(self, fits: Callable[[Tab], bool], what: str) -> Tab:
        """The tab that is so, when the newest list has one."""

        def found() -> list[Tab]:
            return [tab for tab in self.all(extension.TabList)[-1:] for tab in tab.tabs if fits(tab)]

        return (await self.until(found, what))[0]


@asynccontextmanager
async def listening(browser: Chromium, ear: Ear, mark: str = "test") -> AsyncIterator[CdpBrowser]:
    """A carrier to a browser, joined."""
    address = parse_address(await asyncio.to_thread(lambda: browser.endpoint))
    async with CdpBrowser(str(address), address.dial, ear, mark) as carrier:
        await asyncio.wait_for(carrier.joined.wait(), WAIT_S)
        yield carrier


async def opened(browser: Chromium, url: str) -> Page:
    """A new tab, without keeping the test's loop."""
    return await asyncio.to_thread(browser.open, url)
