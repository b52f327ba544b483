"""`BrowserProvider` offers the tools of pages and plugins, and runs them in browser tabs (B2, B5).

Carriers call it as their `profiles.BrowserListener`, the engine as a `core.ports.Provider`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from msgspec import Raw

from afoot.config.tables import BROWSER_SERVER, BrowserSettings
from afoot.core.facts import Limits, Result
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import ToolError, UnknownName
from afoot.providers.arguments import check_arguments
from afoot.providers.browser import views
from afoot.providers.browser.events import BrowserEvents
from afoot.providers.browser.page_run import PageRun, unsent_error
from afoot.providers.browser.plugins.plugin import Plugin
from afoot.providers.browser.profiles import Carrier, OpenContext, Profiles
from afoot.providers.browser.tools.draft import ToolDraft, draft_tool
from afoot.providers.browser.tools.names import ToolNames, read_names, write_names
from afoot.providers.browser.tools.page_tool_list import NO_TAB, ContextChooser, PageToolList
from afoot.providers.browser.tools.source import (
    BrowserSource,
    find_plugin,
    is_plugin_context,
    page_source,
    plugin_source,
)
from afoot.wire.browser_data import PageTool
from afoot.wire.extension import COMING_BACK, FromBrowser, LinkHello, LinkWelcome, PluginSync, TabReload

NAMES_DELAY_S = 1.0  # changes of names are collected for this time before they are written
WAITING = "waiting for the browser"

log = logging.getLogger("afoot.browser")


class BrowserProvider:
    """Provides the tools of all browsers. `on_change` is called when the list of tools changes."""

    name = BROWSER_SERVER

    def __init__(self, limits: Limits, settings: BrowserSettings, names: Path | None = None) -> None:
        self.on_change: Callable[[], object] = lambda: None
        self.problems: list[str] = []  # of plugins, in words for people
        self.connection_error: Callable[[], str] = str  # why CDP is not connected, or ""
        # Called with a plugin's source and the tools that its code has in a page.
        self.on_plugin_tools: Callable[[str, list[PageTool]], object] = lambda source, tools: None
        self._names = names
        self._settings = settings
        self._plugins: list[Plugin] = []
        self._plugin_drafts: dict[str, list[ToolDraft]] = {}  # by plugin; offered with or without a tab
        self._profiles = Profiles()
        self._events = BrowserEvents(self._profiles, self._changed, self._draft_context_tools)
        self._chooser = ContextChooser(self._profiles)
        self._tool_list = PageToolList(ToolNames(), limits, settings.tools_per_origin)
        self._is_stale = False  # the list of tools must be made again
        self._is_announcing = False  # `_announce` is scheduled
        self._is_unannounced = False  # the list has changed since `on_change` was called
        self._lists_tabs = False
        self._names_timer: asyncio.TimerHandle | None = None
        self.configure(limits, settings)

    @property
    def counted(self) -> dict[str, int]:
        """The counts of dropped and repaired messages, by kind (B7)."""
        return dict(self._events.counted)

    @property
    def is_used(self) -> bool:
        """Whether tools may come and go: a browser is connected, or the settings expect one."""
        return bool(len(self._profiles) or self._settings.cdp or self._settings.plugins or self._plugins)

    def open(self) -> None:
        """Read the names that tools had before a restart."""
        self._tool_list.names = ToolNames(read_names(self._names))

    def configure(self, limits: Limits, settings: BrowserSettings) -> None:
        """Apply other settings to future calls."""
        self._settings = settings
        self._events.grace_s = settings.link_grace_s
        self._tool_list.limits = limits
        self._tool_list.per_origin = settings.tools_per_origin
        self._is_stale = True

    def close(self) -> None:
        """Cancel all timers, and write names that are not yet written."""
        self._events.close()
        if self._names_timer is not None:
            self._names_timer.cancel()
            self._write_names()

    # Called by carriers (contexts.BrowserListener)

    def on_connect(self, carrier: Carrier, hello: LinkHello) -> LinkWelcome:
        """Take in a browser that has connected, for the first time or again; returns its welcome."""
        return self._events.on_connect(carrier, hello)

    def on_frame(self, carrier: Carrier, message: FromBrowser) -> None:
        """Handle one frame of a browser."""
        self._events.on_frame(carrier, message)

    def on_disconnect(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """Note that a browser is gone; its runs end if it is not back within `grace_s`."""
        log.log(logging.DEBUG if why == COMING_BACK else logging.INFO, "%s: %s", carrier.name, why)
        self._events.on_disconnect(carrier, why, grace_s)

    # Called by the engine (core.ports.Provider)

    def tools(self) -> Sequence[Tool]:
        """The tools that can be called now."""
        self._refresh()
        own = [views.tabs_tool(self._tool_list.limits)] if self._lists_tabs else []
        return [*own, *self._tool_list.tools]

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """Prepare one call; raises UnknownName, ToolError before anybody is asked for an approval."""
        self._refresh()
        if tool == views.TABS_TOOL:
            check_arguments(views.TABS_SCHEMA, arguments)
            return self._list_tabs
        found = self._tool_list.drafts.get(tool)
        if found is None:
            raise self._missing_tool(tool)
        tab, page_arguments = found.split_arguments(arguments)
        if self._chooser.missing_context(found, tab) is None:
            self._chooser.choose(found, tab)
        return partial(self._run, found, tab, page_arguments)

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        """Wait for a browser whose link was lost a moment ago, if the tool runs only there."""
        found = self._tool_list.drafts.get(tool)
        if found is None or self._chooser.missing_context(found) is None:
            return None
        return RunnerStart(WAITING, partial(self._wait_until_back, found))

    # Called by the console, the command line and the side panel

    def set_plugins(self, plugins: Sequence[Plugin]) -> None:
        """Run these plugins and no others. Contexts with older code finish their runs, and offer no tools."""
        self._plugins = self._chooser.plugins = list(plugins)
        known = self._plugin_drafts
        self._plugin_drafts = {
            one.source: known.get(one.source) or list(self._drafts(one.tools, plugin_source(one)))
            for one in plugins
        }
        self._events.bundles = [one.bundle() for one in plugins]
        for context in self._profiles.contexts():
            if is_plugin_context(context.info):
                self._draft_context_tools(context)
        for profile in self._profiles:
            if profile.is_up:
                profile.carrier.send(PluginSync(self._events.bundles))
        self._changed()

    def tab_views(self, carrier: Carrier | None = None) -> list[views.TabView]:
        """Describe the tabs of all browsers, or of one."""
        self._refresh()
        profiles = [one for one in self._profiles if carrier is None or one.carrier is carrier]
        return [view for one in profiles for view in views.tab_views(one, self._tool_list.left_out)]

    def plugin_views(self) -> list[views.PluginView]:
        """Describe every plugin, and whether a tab has it."""
        up = [one for one in self._profiles if one.is_up]
        is_barred = bool(up) and not any(one.user_scripts for one in up)
        return [views.plugin_view(one, self._profiles.contexts(), is_barred) for one in self._plugins]

    def browser_views(self) -> list[views.BrowserView]:
        """Describe every browser that is connected, or may be back in a moment."""
        return [views.browser_view(one) for one in self._profiles]

    def is_busy(self, carrier: Carrier) -> bool:
        """Whether a tool runs in this browser."""
        contexts = [context for context in self._profiles.contexts() if context.profile.carrier is carrier]
        return any(context.runs for context in contexts)

    def running_tabs(self, carrier: Carrier | None = None) -> dict[str, str]:
        """The calls that run in tabs: the browser's own tab id, by call id."""
        known = self._profiles.contexts()
        contexts = [context for context in known if carrier is None or context.profile.carrier is carrier]
        return {run.call_id: context.info.tab for context in contexts for run in context.runs.values()}

    def reload_tab(self, key: str) -> None:
        """Reload a tab; raises UnknownName, ToolError."""
        for profile in self._profiles:
            for tab, known in profile.keys.items():
                if known == key:
                    if not (profile.is_up and profile.carrier.send(TabReload(tab))):
                        raise ToolError.unavailable(f"{profile.name} cannot be reached now")
                    return
        raise UnknownName("tab", key, [known for one in self._profiles for known in one.keys.values()])

    async def _run(self, found: ToolDraft, tab: str, page_arguments: Raw, run: Run) -> Result:
        awaited = self._chooser.missing_context(found, tab)
        if awaited is not None:  # the caller named this tab, though others are ready
            try:
                await self._wait_until_back(found, tab)
            except ToolError:
                raise unsent_error(awaited) from None
        context = self._chooser.choose(found, tab)
        return await PageRun(run, context, found, self._events.count).execute(page_arguments)

    async def _wait_until_back(self, found: ToolDraft, tab: str = "") -> None:
        """Wait for a browser whose link was lost; raises ToolError if it is not back within its grace."""
        while (awaited := self._chooser.missing_context(found, tab)) is not None:
            await awaited.profile.changed.wait()
        self._chooser.choose(found, tab)

    async def _list_tabs(self, run: Run) -> Result:
        return views.tab_list_result(self.tab_views(), self.plugin_views())

    def _missing_tool(self, tool: str) -> Exception:
        gone = self._tool_list.gone.get(tool)
        if gone is None:
            return UnknownName("tool", tool, self._tool_list.drafts)
        text = (
            f"{tool} is unavailable: no open tab has it any more; it was last seen at {gone.url}: open that"
        )
        return ToolError.unavailable(f"{text}, then call it again", code=NO_TAB)

    def _draft_context_tools(self, context: OpenContext) -> None:
        """Draft the tools that a context listed; a plugin's only if its code is the newest."""
        if not is_plugin_context(context.info):
            context.drafts = {one.key: one for one in self._drafts(context.tools, page_source(context.info))}
            return
        plugin = find_plugin(context.info, self._plugins)
        context.drafts = {}
        if plugin is not None and context.tools:
            self.on_plugin_tools(plugin.source, context.tools)
            drafts = self._plugin_drafts[plugin.source] = list(
                self._drafts(context.tools, plugin_source(plugin))
            )
            context.drafts = {one.key: one for one in drafts}

    def _drafts(self, page_tools: list[PageTool], source: BrowserSource) -> Iterator[ToolDraft]:
        """Draft each tool that can be offered; any other is counted."""
        for tool in page_tools:
            try:
                yield draft_tool(tool, source)
            except ValueError as error:
                self._events.count("tools that cannot be offered")
                log.info("%s: %s", source.description, error)

    def _changed(self) -> None:
        self._is_stale = True
        if not self._is_announcing:
            self._is_announcing = True
            asyncio.get_running_loop().call_soon(self._announce)

    def _announce(self) -> None:
        """Call `on_change` once for all changes of one turn of the loop."""
        self._is_announcing = False
        self._refresh()
        if self._is_unannounced:
            self._is_unannounced = False
            self.on_change()

    def _refresh(self) -> None:
        """Bring the list of tools up to date, if browsers have changed."""
        if not self._is_stale:
            return
        self._is_stale = False
        now = asyncio.get_running_loop().time()
        is_other = self._tool_list.refresh(
            chain(*self._plugin_drafts.values()), self._profiles.contexts(), now
        )
        self._is_unannounced = self._is_unannounced or is_other or self._lists_tabs != self.is_used
        self._lists_tabs = self.is_used
        if self._tool_list.names.has_changed and self._names is not None and self._names_timer is None:
            self._names_timer = asyncio.get_running_loop().call_later(NAMES_DELAY_S, self._write_names)

    def _write_names(self) -> None:
        self._names_timer = None
        self._tool_list.names.has_changed = False
        write_names(self._names, self._tool_list.names.owners)
