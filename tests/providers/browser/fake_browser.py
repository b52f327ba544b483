"""A browser that a test plays, at the real provider in the real engine: what it says, and what it is sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Raw, json
from msgspec.structs import replace

from afoot.config.tables import BrowserSettings, ToolSettings
from afoot.core.facts import NOTHING, Finished, Limits
from afoot.engine.catalog import Catalog, EffectiveSettings
from afoot.engine.engine import Engine, Submission
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall
from afoot.providers.browser.plugins.plugin import Plugin
from afoot.providers.browser.provider import BrowserProvider
from afoot.store.memory import MemoryJournal
from afoot.wire.browser_data import PageContext, PageReport, PageTool, RunPosition, Tab
from afoot.wire.extension import (
    LinkHello,
    LinkWelcome,
    PageContextOpened,
    PageContextTools,
    RunDispatch,
    RunProgress,
    RunResult,
    TabList,
    ToBrowser,
)

SHOP = "https://shop.example"
AUTO = EffectiveSettings({"browser/*": ToolSettings(approval="auto")})
T = TypeVar("T")


class Puppet:
    """A carrier whose strings a test pulls."""

    def __init__(self, name: str = "chrome (work)") -> None:
        self.name = name
        self.sent: list[ToBrowser] = []
        self.is_open = True

    def send(self, message: ToBrowser) -> bool:
        """Keep what is sent, if it is open."""
        if self.is_open:
            self.sent.append(message)
        return self.is_open

    def got(self, kind: type[T]) -> list[T]:
        """What was sent, of one kind."""
        return [one for one in self.sent if isinstance(one, kind)]


class Scene:
    """A provider in an engine, and a browser at it."""

    def __init__(self, engine: Engine, browser: BrowserProvider) -> None:
        self.engine, self.browser = engine, browser
        self.puppet = Puppet()

    def join(self, *rooms: PageContext, puppet: Puppet | None = None, **more: Any) -> LinkWelcome:
        """A browser says hello with these rooms."""
        hello = LinkHello("1", more.pop("profile", "p1"), list(rooms), **more)
        return self.browser.on_connect(puppet or self.puppet, hello)

    def open(self, *tools: PageTool, puppet: Puppet | None = None, **more: Any) -> PageContext:
        """A page is opened, and offers these tools."""
        opened = room(**more)
        self.browser.on_frame(puppet or self.puppet, PageContextOpened(opened))
        self.browser.on_frame(puppet or self.puppet, PageContextTools(opened.id, list(tools)))
        return opened

    def tell(self, message: Any, puppet: Puppet | None = None) -> None:
        """The browser says something."""
        self.browser.on_frame(puppet or self.puppet, message)

    def tabs(self, *tabs: Tab) -> None:
        """The browser lists its tabs."""
        self.tell(TabList(list(tabs)))

    def names(self) -> list[str]:
        """The tools that are listed, but for ours."""
        return [tool.name for tool in self.listed() if tool.name != "afoot_tabs"]

    def listed(self) -> list[Any]:
        """The tools of the catalog, after all that was told."""
        self.engine.catalog.put(self.browser)
        return list(self.engine.catalog)

    async def call(
        self, tool: str, arguments: object = None, puppet: Puppet | None = None
    ) -> tuple[LiveCall, RunDispatch]:
        """Call a tool, until the browser has it."""
        live = self.submit(tool, arguments)
        used = puppet or self.puppet
        before = len(used.got(RunDispatch))
        for _ in range(100):
            if len(used.got(RunDispatch)) > before:
                return live, used.got(RunDispatch)[-1]
            await asyncio.sleep(0)
        raise AssertionError(f"it was never sent: {live.call.end}")

    def submit(self, tool: str, arguments: object = None) -> LiveCall:
        """Call a tool."""
        self.engine.catalog.put(self.browser)
        return self.engine.submit(Submission(tool, Raw(json.encode(arguments or {}))))

    async def ended(self, live: LiveCall) -> Finished:
        """The end of a call; the fake clock brings it if anything does."""
        wakeup = Wakeup()
        with self.engine.follow(live, wakeup.wake, None):
            while live.call.end is None:
                await wakeup.wait()
        return live.call.end

    def progress(self, sent: RunDispatch, seq: int, *reports: PageReport) -> None:
        """The page reports."""
        self.tell(RunProgress(sent.room, sent.run, seq, list(reports)))

    def end(self, sent: RunDispatch, value: object = None, seq: int = 99, **more: Any) -> None:
        """The page ends a run."""
        raw = NOTHING if value is None else Raw(json.encode(value))
        self.tell(RunResult(sent.room, sent.run, seq, raw, **more))


def room(room_id: str = "r1", tab: str = "7", **more: Any) -> PageContext:
    """A page of the shop, in the top frame of a tab."""
    made = PageContext(room_id, tab, "0", f"doc-{room_id}", SHOP, SHOP, f"{SHOP}/cart", "Cart")
    return replace(made, **more)


def page_tool(name: str = "add", schema: object = None, **more: Any) -> PageTool:
    """A tool of a page."""
    raw = NOTHING if schema is None else Raw(json.encode(schema))
    return PageTool(name, description=f"Does {name}.", input_schema=raw, **more)


def plugin(digest: str = "h1", *tools: PageTool) -> Plugin:
    """A plugin for the shop."""
    return Plugin(
        "notes", "1.0", digest, [f"{SHOP}/*"], [], "Notes", "", "", list(tools), f"key-{digest}",
        "body", "files", Path("notes"), [],
    )  # fmt: skip


def running(*sent: RunDispatch, seq: int = 0) -> list[RunPosition]:
    """What a browser says that it still runs."""
    return [RunPosition(one.run, one.room, seq) for one in sent]


@asynccontextmanager
async def scene(
    terms: EffectiveSettings = AUTO, limits: Limits | None = None, **settings: Any
) -> AsyncIterator[Scene]:
    """A provider in an engine, with a browser that has just joined, and has nothing open."""
    catalog = Catalog(terms)
    browser = BrowserProvider(limits or Limits(), BrowserSettings(**settings))
    browser.on_change = lambda: catalog.put(browser)
    async with Engine(MemoryJournal(), catalog) as engine:
        found = Scene(engine, browser)
        found.join()
        yield found
        browser.close()


async def pause(times: int = 5) -> None:
    """Let everything run that is ready."""
    for _ in range(times):
        await asyncio.sleep(0)


def text(end: Finished) -> str:
    """All the text of a result."""
    assert end.result is not None, end.failure
    items = json.decode(bytes(end.result.content), type=list[dict[str, str]])
    return "".join(item["text"] for item in items)


def message(end: Finished) -> str:
    """What a failure says."""
    assert end.failure is not None, end.result
    return end.failure.message
