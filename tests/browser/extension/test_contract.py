"""The provider contract, kept by tabs over the extension, in browsers with WebMCP of their own and without.

Left out: a page's tool has no way to ask a question, so the test of questions has nothing to test.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from afoot.config import state_folder
from afoot.config.settings import Settings
from afoot.core.ports import Provider
from afoot.gateway import MEMORY, Gateway
from afoot.providers.browser.extension import ExtensionLinks
from afoot.providers.browser.extension_files import copy_extension, link_url, write_pairing
from afoot.providers.browser.provider import BrowserProvider
from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.extension.socket import LinkApp
from afoot.serve.gateway_state import GatewayState as Surface
from afoot.serve.http_server.uvicorn_server import make_server
from tests.browser.chromium import Chromium
from tests.browser.extension import extension_copy
from tests.browser.one_origin_provider import Inner
from tests.browser.site import Site
from tests.providers.fake_run import until
from tests.providers.provider_contract import *  # noqa: F403
from tests.providers.provider_contract import TOOLS

del test_a_question_is_asked_and_its_answer_comes_back  # noqa: F821
GRACE_S = 5.0


class Tabs(Inner):
    """A browser over the extension, with the contract's page open; its gateway is in this process."""

    def __init__(self, chromium: Chromium, site: Site, folder: Path) -> None:
        settings = Settings(store=MEMORY)
        self._gateway = Gateway(settings=settings)
        self._gateway.bare = True
        self._chromium, self._site, self._folder = chromium, site, folder
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        """Serve `/link`, load the extension, open the page, and wait for its tools."""
        gateway = await self._stack.enter_async_context(self._gateway)
        super().__init__(gateway.browser, self._site.origin())
        url = await self._serve(gateway.browser)
        write_pairing(self._folder, link_url(url), state_folder.link_key())
        loaded = await asyncio.to_thread(self._chromium.load_extension, self._folder)
        self._stack.push_async_callback(
            asyncio.to_thread, self._chromium.call, "Extensions.uninstall", {"id": loaded}
        )
        await until(lambda: self.browser.browser_views())
        page = await asyncio.to_thread(self._chromium.open, self._site.url("contract.html"))
        self._stack.push_async_callback(asyncio.to_thread, page.close)
        await until(lambda: {tool.name for tool in self.tools()} >= TOOLS - {"confirm"})

    async def close(self) -> None:
        """Take all of it down."""
        await self._stack.aclose()

    async def _serve(self, browser: BrowserProvider) -> str:
        """The link's own application on a port; gives its address."""
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        surface = Surface(
            self._gateway.engine,
            self._gateway.settings,
            "0",
            state_folder.sealing_key(),
            state_folder.operator_token(),
        )
        guard = Guard(accepted_hosts(port, []), frozenset())
        lines = surface.lines = ExtensionLinks(browser, lambda: GRACE_S)
        http = make_server(LinkApp(surface, guard, lines))
        serving = asyncio.create_task(http.serve(sockets=[listener]))

        async def stop() -> None:
            lines.close(1001, "the gateway is stopping")
            http.should_exit = True
            await serving

        self._stack.push_async_callback(stop)
        return f"http://127.0.0.1:{port}"


@pytest.fixture
def provider(
    browser: Chromium, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Provider]]:
    """Makes the provider for one test."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))
    copy_extension(tmp_path / "extension")
    extension_copy.permit(tmp_path / "extension")
    yield lambda: Tabs(browser, site, tmp_path / "extension")
