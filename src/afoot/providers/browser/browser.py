"""Browser tabs as a provider of tools: it hears what browsers say, and sends them what is to run (B2, B5)."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from msgspec import Raw

from afoot.core.facts import Limits, Result
from afoot.core.ports import Run, Start, Tool, Work
from afoot.errors import ToolError, UnknownName
from afoot.providers.arguments import check
from afoot.providers.browser import memory, tabs
from afoot.providers.browser.carrier import Carrier
from afoot.providers.browser.choice import NO_TAB, Choice
from afoot.providers.browser.deaths import unsent
from afoot.providers.browser.hearing import Hearing
from afoot.providers.browser.names import Names
from afoot.providers.browser.offering import Offering
from afoot.providers.browser.offers import Draft, draft
from afoot.providers.browser.plugin import Plugin
from afoot.providers.browser.rooms import OpenRoom, Profiles
from afoot.providers.browser.runs import Errand
from afoot.providers.browser.sources import Source, is_plugin, of_page, of_plugin, plugin_of
from afoot.tables import BROWSER, BrowserSettings
from afoot.wire.link import FromBrowser, Hello, Plugins, TabReload, Welcome
from afoot.wire.room import PageTool

KEEP_S = 1.0  # so long names may wait to be written down
WAITING = "waiting for the browser"

log = logging.getLogger("afoot.browser")


class Browser:
    """All browsers, and their tools. `on_change` is called when other tools are offered."""

    name = BROWSER

    def __init__(self, limits: Limits, settings: BrowserSettings, names: Path | None = None) -> None:
        self.on_change: Callable[[], object] = lambda: None
        self.problems: list[str] = []  # with plugins
        self.trouble: Callable[[], str] = str  # why no browser is attached where one should be
        self.saw: Callable[[str, list[PageTool]], object] = lambda source, tools: None  # a plugin's tools
        self._names = names
        self._settings = settings
        self._plugins: list[Plugin] = []
        self._standing: dict[str, list[Draft]] = {}  # by plugin: offered whether a tab has them or not
        self._profiles = Profiles()
        self._hearing = Hearing(self._profiles, self._changed, self._take)
        self._choice = Choice(self._profiles)
        self._offering = Offering(Names(), limits, settings.tools_per_origin)
        self._is_stale = self._is_settling = self._is_untold = self._lists_tabs = False
        self._keeping: asyncio.TimerHandle | None = None
        self.configure(limits, settings)

    @property
    def counted(self) -> dict[str, int]:
        """What was dropped or repaired, by kind (B7)."""
        return dict(self._hearing.counted)

    @property
    def is_used(self) -> bool:
        """Whether tools may come and go: a browser is there, or is meant to be."""
        return bool(len(self._profiles) or self._settings.cdp or self._settings.plugins or self._plugins)

    def open(self) -> None:
        """Read which names were given before."""
        self._offering.names = Names(memory.read(self._names))

    def configure(self, limits: Limits, settings: BrowserSettings) -> None:
        """Take other settings for calls to come."""
        self._settings = settings
        self._hearing.grace_s = settings.link_grace_s
        self._offering.limits, self._offering.most = limits, settings.tools_per_origin
        self._is_stale = True

    def close(self) -> None:
        """The gateway ends."""
        self._hearing.close()
        if self._keeping is not None:
            self._keeping.cancel()
            self._keep()

    # What carriers tell (carrier.Audience)

    def joined(self, carrier: Carrier, hello: Hello) -> Welcome:
        """A browser is there, for the first time or again."""
        return self._hearing.joined(carrier, hello)

    def told(self, carrier: Carrier, message: FromBrowser) -> None:
        """A browser says something."""
        self._hearing.told(carrier, message)

    def left(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """A browser is gone; it has so long to come back before its runs end."""
        log.info("%s: %s", carrier.name, why)
        self._hearing.left(carrier, why, grace_s)

    # What the engine asks (core.ports.Provider)

    def tools(self) -> Sequence[Tool]:
        """What can be called now."""
        self._renew()
        own = [tabs.tool(self._offering.limits)] if self._lists_tabs else []
        return [*own, *self._offering.tools]

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one call; raises UnknownName, ToolError: before anybody is asked whether it may run."""
        self._renew()
        if tool == tabs.NAME:
            check(tabs.SCHEMA, arguments)
            return self._list
        found = self._offering.drafts.get(tool)
        if found is None:
            raise self._missing(tool)
        tab, given = found.split(arguments)
        if self._choice.awaited(found, tab) is None:
            self._choice.room(found, tab)
        return partial(self._work, found, tab, given)

    def start(self, tool: str, caller: str) -> Start | None:
        """A browser that was lost a moment ago is waited for."""
        found = self._offering.drafts.get(tool)
        if found is None or self._choice.awaited(found) is None:
            return None
        return Start(WAITING, partial(self._back, found))

    # What surfaces ask

    def adopt(self, plugins: Sequence[Plugin]) -> None:
        """Run these plugins and no others; rooms of older code are offered no more, and finish their runs."""
        self._plugins = self._choice.plugins = list(plugins)
        known = self._standing
        self._standing = {
            one.source: known.get(one.source) or list(self._drafts(one.tools, of_plugin(one)))
            for one in plugins
        }
        self._hearing.bodies = [one.wire() for one in plugins]
        for room in self._profiles.rooms():
            if is_plugin(room.room):
                self._take(room)
        for profile in self._profiles:
            if profile.is_up:
                profile.carrier.send(Plugins(self._hearing.bodies))
        self._changed()

    def tab_views(self, carrier: Carrier | None = None) -> list[tabs.TabView]:
        """Every tab of every browser, or of one."""
        self._renew()
        meant = [one for one in self._profiles if carrier is None or one.carrier is carrier]
        return [view for one in meant for view in tabs.views(one, self._offering.left_out)]

    def plugin_views(self) -> list[tabs.PluginView]:
        """Every plugin, and whether a tab has it."""
        up = [one for one in self._profiles if one.is_up]
        is_barred = bool(up) and not any(one.user_scripts for one in up)
        return [tabs.plugin_view(one, self._profiles.rooms(), is_barred) for one in self._plugins]

    def browser_views(self) -> list[tabs.BrowserView]:
        """Every browser that is there, or may be back in a moment."""
        return [tabs.browser_view(one) for one in self._profiles]

    def is_busy(self, carrier: Carrier) -> bool:
        """Whether a run is open in this browser."""
        rooms = [room for room in self._profiles.rooms() if room.profile.carrier is carrier]
        return any(room.runs for room in rooms)

    def places(self, carrier: Carrier | None = None) -> dict[str, str]:
        """In which tab of a browser calls run: their ids, and what the browser calls the tab."""
        known = self._profiles.rooms()
        rooms = [room for room in known if carrier is None or room.profile.carrier is carrier]
        return {run.run.id: room.room.tab for room in rooms for run in room.runs.values()}

    def reload_tab(self, key: str) -> None:
        """Have a tab loaded anew; raises UnknownName, ToolError."""
        for profile in self._profiles:
            for tab, known in profile.keys.items():
                if known == key:
                    if not (profile.is_up and profile.carrier.send(TabReload(tab))):
                        raise ToolError.unavailable(f"{profile.name} cannot be reached now")
                    return
        raise UnknownName("tab", key, [known for one in self._profiles for known in one.keys.values()])

    async def _work(self, found: Draft, tab: str, given: Raw, run: Run) -> Result:
        awaited = self._choice.awaited(found, tab)
        if awaited is not None:  # the tab that is named, where others were ready to start in
            try:
                await self._back(found, tab)
            except ToolError:
                raise unsent(awaited) from None
        room = self._choice.room(found, tab)
        return await Errand(run, room, found, self._hearing.count).work(given)

    async def _back(self, found: Draft, tab: str = "") -> None:
        """Wait for a browser that was lost; raises ToolError if it does not come back in its grace."""
        while (awaited := self._choice.awaited(found, tab)) is not None:
            await awaited.profile.news.wait()
        self._choice.room(found, tab)

    async def _list(self, run: Run) -> Result:
        return tabs.listed(self.tab_views(), self.plugin_views())

    def _missing(self, tool: str) -> Exception:
        gone = self._offering.gone.get(tool)
        if gone is None:
            return UnknownName("tool", tool, self._offering.drafts)
        text = (
            f"{tool} is unavailable: no open tab has it any more; it was last seen at {gone.url}: open that"
        )
        return ToolError.unavailable(f"{text}, then call it again", code=NO_TAB)

    def _take(self, room: OpenRoom) -> None:
        """What of a room's tools can be offered; a plugin's only if its code is the newest."""
        if not is_plugin(room.room):
            room.drafts = {one.key: one for one in self._drafts(room.tools, of_page(room.room))}
            return
        plugin = plugin_of(room.room, self._plugins)
        room.drafts = {}
        if plugin is not None and room.tools:
            self.saw(plugin.source, room.tools)
            made = self._standing[plugin.source] = list(self._drafts(room.tools, of_plugin(plugin)))
            room.drafts = {one.key: one for one in made}

    def _drafts(self, told: list[PageTool], source: Source) -> Iterator[Draft]:
        """Those tools that can be offered; any other is counted."""
        for tool in told:
            try:
                yield draft(tool, source)
            except ValueError as error:
                self._hearing.count("tools that cannot be offered")
                log.info("%s: %s", source.words, error)

    def _changed(self) -> None:
        self._is_stale = True
        if not self._is_settling:
            self._is_settling = True
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        """What changed in one moment is told once."""
        self._is_settling = False
        self._renew()
        if self._is_untold:
            self._is_untold = False
            self.on_change()

    def _renew(self) -> None:
        """Take in what browsers have now."""
        if not self._is_stale:
            return
        self._is_stale = False
        now = asyncio.get_running_loop().time()
        is_other = self._offering.renew(chain(*self._standing.values()), self._profiles.rooms(), now)
        self._is_untold = self._is_untold or is_other or self._lists_tabs != self.is_used
        self._lists_tabs = self.is_used
        if self._offering.names.has_changed and self._names is not None and self._keeping is None:
            self._keeping = asyncio.get_running_loop().call_later(KEEP_S, self._keep)

    def _keep(self) -> None:
        self._keeping = None
        self._offering.names.has_changed = False
        memory.write(self._names, self._offering.names.held)
