"""`TabView`, `PluginView` and `BrowserView` describe browsers for people and models (B2).

Each has a state and a reason: a tab is ready or unavailable, a plugin can also be closed (no tab has its
page). The tool `afoot_tabs` returns the same list.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from afoot.config.tables import BROWSER_SERVER
from afoot.core.facts import Limits, Result
from afoot.core.ports import Tool
from afoot.providers.browser.plugins.plugin import Plugin
from afoot.providers.browser.profiles import OpenContext, Profile
from afoot.providers.browser.tools.page_tool_list import USER_SCRIPTS_HINT
from afoot.providers.browser.tools.source import TOP_FRAME, is_plugin_context
from afoot.providers.content import clean_line, text_content
from afoot.wire.browser_data import Tab

TABS_TOOL = "afoot_tabs"
TEXT_LIMIT = 200
WHY_UNAVAILABLE = {
    "reload": "reload this tab: it was open before afoot was allowed here, or has crashed",
    "ungranted": "this site is not allowed yet: allow it in afoot's side panel",
    "closed to extensions": "the browser closes this page to extensions",
}
TABS_SCHEMA = b'{"type": "object", "properties": {}, "additionalProperties": false}'
_DEFINITION = {
    "name": TABS_TOOL,
    "title": "Browser tabs",
    "description": "List the browser tabs that have tools: profile, tab (what their afoot_tab takes), "
    "title, origin, state (ready, unavailable) and why; and plugins with no tab open (closed). Titles are "
    "the pages' own words, which nobody has checked.",
    "inputSchema": Raw(TABS_SCHEMA),
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}  # fmt: skip


class TabView(Struct, frozen=True):
    """A tab. `key` is its name for people and models, `tab` the browser's own id."""

    key: str
    profile: str
    browser: str
    tab: str
    window: str
    title: str
    url: str
    origin: str
    state: str  # unavailable, ready
    why: str
    tools: int
    left_out: int  # number of tools over a limit, which are not offered
    active: bool
    frozen: bool
    visible: bool
    plugins: list[str]  # that run in it


class BrowserView(Struct, frozen=True):
    """A browser profile, and whether it is connected."""

    profile: str
    name: str
    state: str  # connected, lost
    user_scripts: bool  # whether plugins can run
    tabs: int
    running: int


class PluginView(Struct, frozen=True):
    """A plugin. Closed: no open tab is one of its pages; `start` is the page to open."""

    name: str
    version: str
    hash: str
    state: str  # closed, unavailable, ready
    why: str
    start: str
    tools: int


def tabs_tool(limits: Limits) -> Tool:
    """The tool that lists tabs."""
    raw = Raw(msgspec.json.encode(_DEFINITION))
    return Tool(
        TABS_TOOL,
        BROWSER_SERVER,
        raw,
        limits,
        read_only=True,
        idempotent=True,
        digest=TABS_TOOL,
        approval="auto",
    )


def tab_views(profile: Profile, left_out: dict[str, int]) -> list[TabView]:
    """Describe the tabs of a profile."""
    contexts: dict[str, list[OpenContext]] = {}
    for context in profile.contexts.values():
        contexts.setdefault(context.info.tab, []).append(context)
    tabs = {**{one: context[0].tab for one, context in contexts.items()}, **profile.tabs}
    return [_view(profile, tab, contexts.get(tab.id, []), left_out) for tab in tabs.values()]


def plugin_view(plugin: Plugin, contexts: Iterable[OpenContext], is_barred: bool = False) -> PluginView:
    """Describe a plugin. `is_barred`: no connected browser allows user scripts."""
    own = [context for context in contexts if context.info.source == plugin.source]
    keys = {key for context in own for key in context.drafts}
    count = max(len(plugin.tools), len(keys))
    state, why = ("unavailable", USER_SCRIPTS_HINT) if is_barred else ("closed", f"open {plugin.start}")
    if own:
        is_ready = any(context.can_run and context.drafts for context in own)
        state = "ready" if is_ready else "unavailable"
        why = "" if is_ready else clean_line(own[0].why, TEXT_LIMIT) or "it is not ready in its tab"
    return PluginView(plugin.name, plugin.version, plugin.hash, state, why, plugin.start, count)


def browser_view(profile: Profile) -> BrowserView:
    """Describe a browser profile."""
    running = sum(len(context.runs) for context in profile.contexts.values())
    state, count = "connected" if profile.is_up else "lost", len(profile.keys)
    return BrowserView(profile.id, profile.name, state, profile.user_scripts, count, running)


def tab_list_result(tabs: list[TabView], plugins: list[PluginView]) -> Result:
    """List the tabs that have tools, or could have them, as text and as data; others are only counted."""
    shown = [one for one in tabs if one.tools or one.plugins or one.why != "this page offers no tools"]
    rows = [
        {"profile": one.browser, "tab": one.key, "title": one.title, "origin": one.origin,
         "state": one.state, "why": one.why, "tools": one.tools}
        for one in shown
    ]  # fmt: skip
    closed = [
        {"plugin": one.name, "state": one.state, "why": one.why}
        for one in plugins
        if one.state == "closed" or one.why == USER_SCRIPTS_HINT
    ]
    text = [_tab_line(one) for one in shown] + [
        f"plugin {one['plugin']}: {one['state']}, {one['why']}" for one in closed
    ]
    if len(tabs) > len(shown):
        text.append(f"and {len(tabs) - len(shown)} tabs whose pages offer no tools")
    found = {"tabs": rows, "plugins": closed, "without_tools": len(tabs) - len(shown)}
    return Result(text_content("\n".join(text) or "no browser is connected"), Raw(msgspec.json.encode(found)))


def _view(profile: Profile, tab: Tab, contexts: list[OpenContext], left_out: dict[str, int]) -> TabView:
    top = next((context.info for context in contexts if context.info.frame == TOP_FRAME), None)
    drafts = {key: draft for context in contexts if context.can_run for key, draft in context.drafts.items()}
    sources = {draft.source.id for draft in drafts.values()}
    unlisted = sum(context.left_out for context in contexts) + sum(left_out.get(one, 0) for one in sources)
    is_ready = bool(drafts) and not tab.discarded
    url = (top.url if top is not None else "") or tab.url
    return TabView(
        key=profile.keys.get(tab.id, ""),
        profile=profile.id,
        browser=profile.name,
        tab=tab.id,
        window=tab.window,
        title=clean_line((top.title if top is not None else "") or tab.title, TEXT_LIMIT) or "",
        url=clean_line(url, 10 * TEXT_LIMIT) or "",
        origin=(top.origin if top is not None else "") or _origin(url),
        state="ready" if is_ready else "unavailable",
        why="" if is_ready else _why(profile, tab, contexts),
        tools=max(0, len(drafts) - sum(left_out.get(one, 0) for one in sources)),
        left_out=unlisted,
        active=tab.active,
        frozen=tab.frozen or any(context.info.frozen for context in contexts),
        visible=any(context.info.visible for context in contexts) if contexts else tab.active,
        plugins=sorted({context.info.source for context in contexts if is_plugin_context(context.info)}),
    )


def _why(profile: Profile, tab: Tab, contexts: list[OpenContext]) -> str:
    """Why no tool can run in a tab."""
    if not profile.is_up:
        return "the link to its browser is lost"
    if tab.discarded:
        return "the browser discarded it: open it again"
    if tab.why:
        return WHY_UNAVAILABLE.get(tab.why, clean_line(tab.why, TEXT_LIMIT) or "")
    waiting = next((context.why for context in contexts if not context.is_ready), None)
    if waiting is not None:
        return clean_line(waiting, TEXT_LIMIT) or "a plugin is not ready here"
    return "this page offers no tools"


def _tab_line(one: TabView) -> str:
    state = f"{one.state}, {one.tools} tools" if one.state == "ready" else f"{one.state}: {one.why}"
    return f'{one.key}  {state}  {one.origin}  "{one.title}"  ({one.browser})'


def _origin(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if mark else ""
