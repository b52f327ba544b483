"""What tests of plugins share: a plugin with the real SDK, pages for it, and a tab that it has a room in."""

import asyncio
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from afoot.providers.browser.cdp.browser import CdpBrowser
from afoot.providers.browser.plugins.plugin import load_plugin
from afoot.wire import extension
from afoot.wire.browser_data import PageContext, PluginBundle
from tests.browser.cdp.cdp_listener import Ear, opened
from tests.browser.chromium import Chromium
from tests.browser.page import Page
from tests.browser.site import Site

TOOLS = """
defineTool({
  name: "count", description: "Counts.",
  async handle({ n = 3 }, context) {
    for (let i = 1; i <= n; i += 1) {
      await sleep(5, { context });
      context.reportProgress({ progress: i, total: n, message: `${context.toolExecutionId} ${i}` });
    }
    context.log.info("counted", { n });
    return { n, code: "CODE" };
  },
});
defineTool({
  name: "look", description: "Sees what a page has.",
  handle: async (_, context) => ({
    stock: await fetchJSON("stock.json", { context }), value: await pageValue("shop.cart"),
    title: document.title, json: JSON.stringify([1]), promise: await Promise.resolve("own"),
  }),
});
defineTool({
  name: "wait", description: "Waits for an element, or to be stopped.",
  async handle({ selector }, context) {
    context.reportProgress("waiting");
    const found = await waitForSelector(selector, { context, timeoutMs: 60_000 });
    await waitForSelectorRemoval("#busy", { context });
    return found.textContent;
  },
});
defineTool({
  name: "limited", description: "Fails.",
  handle() { throw ToolError.rateLimited("slow down", 7000); },
});
defineTool({ name: "odd", description: "Fails otherwise.", handle() { throw "words"; } });
"""
Make = Callable[..., PluginBundle]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> Make:
    """Makes plugins for the site's own address."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))

    def make(code: str = TOOLS, **changes: Any) -> PluginBundle:
        folder = tmp_path / secrets.token_hex(4)
        folder.mkdir()
        (folder / "tools.js").write_text(code.replace("CODE", changes.pop("mark", "one")))
        manifest = {"name": "shop", "version": "1", "matches": [f"{site.origin()}/*"], "files": ["tools.js"]}
        (folder / "plugin.json").write_text(json.dumps({**manifest, **changes}))
        return load_plugin(folder).bundle()

    return make


def page(site: Site, text: str = "<!doctype html><title>Shop</title><p id=there>here", *headers: str) -> str:
    """The address of a page that a test made up."""
    name = f"{secrets.token_hex(4)}.html"
    site.pages |= {name: text, "stock.json": '{"tea": 7}'}
    return site.url(name, *headers)


class Tab:
    """A tab that a plugin has a room in."""

    def __init__(self, ear: Ear, carrier: CdpBrowser, page: Page, room: PageContext) -> None:
        self.ear, self.carrier, self.page, self.room = ear, carrier, page, room

    def start(self, tool: str, **given: Any) -> str:
        """Run a tool; gives the run."""
        run = secrets.token_hex(16)
        assert self.carrier.send(
            extension.RunDispatch(self.room.id, run, tool, Raw(msgspec.json.encode(given)))
        )
        return run

    async def run(self, tool: str, **given: Any) -> Any:
        """What a tool gives back."""
        ended = await self.ear.end(self.start(tool, **given))
        assert ended.error is None, ended.error
        return msgspec.json.decode(ended.value)

    def reports(self, run: str) -> list[Any]:
        """What a run has reported."""
        frames = [one for one in self.ear.all(extension.RunProgress) if one.run == run]
        return [report for frame in frames for report in frame.reports]

    async def until_reported(self, run: str) -> None:
        """Wait for a run's first report."""
        await self.ear.until(lambda: self.reports(run), "a report")

    async def ready(self, fits: Callable[[extension.PageContextReady], bool]) -> extension.PageContextReady:
        """What the readiness probe said last, when it says so."""

        def found() -> list[extension.PageContextReady]:
            told = [one for one in self.ear.all(extension.PageContextReady) if one.room == self.room.id][-1:]
            return [one for one in told if fits(one)]

        return (await self.ear.until(found, "the plugin's readiness"))[0]

    async def do(self, script: str) -> Any:
        """Something in the page's own world."""
        return await asyncio.to_thread(self.page.evaluate, script)


async def entered(browser: Chromium, ear: Ear, carrier: CdpBrowser, url: str) -> Tab:
    """A new tab, with the plugin's room in it."""
    tab = await opened(browser, url)
    room = await ear.room(url.partition("?")[0], "plugin:")
    return Tab(ear, carrier, tab, room)
