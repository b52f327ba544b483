"""The provider contract, kept by the tabs of a browser over CDP, with WebMCP of its own and without.

Left out: a page's tool has no way to ask a question, so the test of questions has nothing to test.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from afoot.config.settings import BrowserSettings
from afoot.core.facts import Limits
from afoot.core.ports import Provider
from afoot.providers.browser.cdp.browser import CdpBrowser
from afoot.providers.browser.cdp.connection import parse_address
from afoot.providers.browser.provider import BrowserProvider
from tests.browser.chromium import Chromium
from tests.browser.one_origin_provider import Inner
from tests.browser.site import Site
from tests.providers.fake_run import until
from tests.providers.provider_contract import *  # noqa: F403
from tests.providers.provider_contract import TOOLS

del test_a_question_is_asked_and_its_answer_comes_back  # noqa: F821


class Tabs(Inner):
    """A browser over CDP with the contract's page open."""

    def __init__(self, chromium: Chromium, site: Site) -> None:
        super().__init__(BrowserProvider(Limits(), BrowserSettings()), site.origin())
        self._chromium, self._site = chromium, site
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        """Open the page, and wait for its tools."""
        address = parse_address(await asyncio.to_thread(lambda: self._chromium.endpoint))
        cdp = CdpBrowser(str(address), address.dial, self.browser, "contract")
        self._stack.callback(self.browser.close)
        await self._stack.enter_async_context(cdp)
        await asyncio.wait_for(cdp.joined.wait(), 30)
        page = await asyncio.to_thread(self._chromium.open, self._site.url("contract.html"))
        self._stack.push_async_callback(asyncio.to_thread, page.close)
        await until(lambda: {tool.name for tool in self.tools()} >= TOOLS - {"confirm"})

    async def close(self) -> None:
        """Close the page, and leave the browser."""
        await self._stack.aclose()


@pytest.fixture
def provider(browser: Chromium, site: Site) -> Callable[[], Provider]:
    """Makes the provider for one test."""
    return lambda: Tabs(browser, site)
