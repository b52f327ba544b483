"""Tabs and plugins as people and models are shown them: closed, unavailable or ready, and why (B2)."""

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import Limits, Result
from afoot.core.ports import Tool
from afoot.providers.browser.choice import SWITCH
from afoot.providers.browser.plugin import Plugin
from afoot.providers.browser.rooms import OpenRoom, Profile
from afoot.providers.browser.sources import TOP_FRAME, is_plugin
from afoot.providers.content import text_content
from afoot.providers.hygiene import line
from afoot.tables import BROWSER
from afoot.wire.room import Tab

NAME = "afoot_tabs"
TEXT_LIMIT = 200
WHY = {
    "reload": "reload this tab: it was open before afoot was allowed here, or has crashed",
    "ungranted": "this site is not allowed yet: allow it in afoot's side panel",
    "closed to extensions": "the browser closes this page to extensions",
}
SCHEMA = b'{"type": "object", "properties": {}, "additionalProperties": false}'
_DEFINITION = {
    "name": NAME,
    "title": "Browser tabs",
    "description": "List the browser tabs that have tools: profile, tab (what their afoot_tab takes), "
    "title, origin, state (ready, unavailable) and why; and plugins with no tab open (closed). Titles are "
    "the pages' own words, which nobody has checked.",
    "inputSchema": Raw(SCHEMA),
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}  # fmt: skip


class TabView(Struct, frozen=True):
    """A tab. `key` is what people and models call it, `tab` what its browser calls it."""

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
    left_out: int  # tools over a limit, which are not offered
    active: bool
    frozen: bool
    visible: bool
    plugins: list[str]  # that run in it


class BrowserView(Struct, frozen=True):
    """A browser profile, and whether it is there."""

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


def tool(limits: Limits) -> Tool:
    """The tool that lists tabs."""
    raw = Raw(msgspec.json.encode(_DEFINITION))
    return Tool(NAME, BROWSER, raw, limits, read_only=True, idempotent=True, digest=NAME, approval="auto")


def views(profile: Profile, left_out: dict[str, int]) -> list[TabView]:
    """The tabs of a profile."""
    rooms: dict[str, list[OpenRoom]] = {}
    for room in profile.rooms.values():
        rooms.setdefault(room.room.tab, []).append(room)
    tabs = {**{one: room[0].tab for one, room in rooms.items()}, **profile.tabs}
    return [_view(profile, tab, rooms.get(tab.id, []), left_out) for tab in tabs.values()]


def _view(profile: Profile, tab: Tab, rooms: list[OpenRoom], left_out: dict[str, int]) -> TabView:
    top = next((room.room for room in rooms if room.room.frame == TOP_FRAME), None)
    drafts = {key: draft for room in rooms if room.can_run for key, draft in room.drafts.items()}
    sources = {draft.source.id for draft in drafts.values()}
    unlisted = sum(room.left_out for room in rooms) + sum(left_out.get(one, 0) for one in sources)
    is_ready = bool(drafts) and not tab.discarded
    url = (top.url if top is not None else "") or tab.url
    return TabView(
        profile.keys.get(tab.id, ""), profile.id, profile.name, tab.id, tab.window,
        line((top.title if top is not None else "") or tab.title, TEXT_LIMIT) or "",
        line(url, 10 * TEXT_LIMIT) or "",
        (top.origin if top is not None else "") or _origin(url),
        "ready" if is_ready else "unavailable",
        "" if is_ready else _why(profile, tab, rooms),
        max(0, len(drafts) - sum(left_out.get(one, 0) for one in sources)), unlisted,
        tab.active, tab.frozen or any(room.room.frozen for room in rooms),
        any(room.room.visible for room in rooms) if rooms else tab.active,
        sorted({room.room.source for room in rooms if is_plugin(room.room)}),
    )  # fmt: skip


def _why(profile: Profile, tab: Tab, rooms: list[OpenRoom]) -> str:
    """Why no tool can run in a tab."""
    if not profile.is_up:
        return "the link to its browser is lost"
    if tab.discarded:
        return "the browser discarded it: open it again"
    if tab.why:
        return WHY.get(tab.why, line(tab.why, TEXT_LIMIT) or "")
    waiting = next((room.why for room in rooms if not room.is_ready), None)
    if waiting is not None:
        return line(waiting, TEXT_LIMIT) or "a plugin is not ready here"
    return "this page offers no tools"


def plugin_view(plugin: Plugin, rooms: Iterable[OpenRoom], is_barred: bool = False) -> PluginView:
    """How a plugin is; `is_barred`: no browser that is there lets it run."""
    own = [room for room in rooms if room.room.source == plugin.source]
    keys = {key for room in own for key in room.drafts}
    count = max(len(plugin.tools), len(keys))
    state, why = ("unavailable", SWITCH) if is_barred else ("closed", f"open {plugin.start}")
    if own:
        is_ready = any(room.can_run and room.drafts for room in own)
        state = "ready" if is_ready else "unavailable"
        why = "" if is_ready else line(own[0].why, TEXT_LIMIT) or "it is not ready in its tab"
    return PluginView(plugin.name, plugin.version, plugin.hash, state, why, plugin.start, count)


def browser_view(profile: Profile) -> BrowserView:
    """How a browser is."""
    running = sum(len(room.runs) for room in profile.rooms.values())
    state, count = "connected" if profile.is_up else "lost", len(profile.keys)
    return BrowserView(profile.id, profile.name, state, profile.user_scripts, count, running)


def listed(tabs: list[TabView], plugins: list[PluginView]) -> Result:
    """The tabs that have tools, or could have them, as a text and as data; others are only counted."""
    shown = [one for one in tabs if one.tools or one.plugins or one.why != "this page offers no tools"]
    rows = [
        {"profile": one.browser, "tab": one.key, "title": one.title, "origin": one.origin,
         "state": one.state, "why": one.why, "tools": one.tools}
        for one in shown
    ]  # fmt: skip
    closed = [
        {"plugin": one.name, "state": one.state, "why": one.why}
        for one in plugins
        if one.state == "closed" or one.why == SWITCH
    ]
    text = [_words(one) for one in shown] + [
        f"plugin {one['plugin']}: {one['state']}, {one['why']}" for one in closed
    ]
    if len(tabs) > len(shown):
        text.append(f"and {len(tabs) - len(shown)} tabs whose pages offer no tools")
    found = {"tabs": rows, "plugins": closed, "without_tools": len(tabs) - len(shown)}
    return Result(text_content("\n".join(text) or "no browser is connected"), Raw(msgspec.json.encode(found)))


def _words(one: TabView) -> str:
    state = f"{one.state}, {one.tools} tools" if one.state == "ready" else f"{one.state}: {one.why}"
    return f'{one.key}  {state}  {one.origin}  "{one.title}"  ({one.browser})'


def _origin(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if mark else ""
