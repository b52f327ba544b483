"""Where a tool is from: a page's origin or a plugin's code, and never what a page says of itself (B7)."""

from collections.abc import Iterable

from msgspec import Struct

from afoot.providers.browser.names import stem
from afoot.providers.browser.plugin import Plugin
from afoot.wire.room import Room

PAGE = "page"
TOP_FRAME = "0"
OPAQUE = ("", "null")  # origins that are equal to no other, not even to themselves


class Source(Struct, frozen=True):
    """Whose tools these are, for approvals, for names, for settings and for people."""

    id: str  # page:ORIGIN, page:ORIGIN in TOP, plugin:NAME@HASH
    owner: str  # whose their names are: the same for all versions of a plugin
    stem: str  # how their names begin
    address: str  # how settings name them: ORIGIN, plugin:NAME
    words: str
    usual: str = "ask"  # off in a frame whose origin is not the tab's (A1)


def of_page(room: Room) -> Source:
    """The source of a page's own tools: its frame's origin, and where that is framed, by whom."""
    origin = room.origin
    if origin not in OPAQUE and (room.top or (origin if room.frame == TOP_FRAME else "")) == origin:
        return Source(f"page:{origin}", f"page:{origin}", stem(origin), origin, f"the page {origin}")
    shown, above = origin or "null", room.top or "another page"
    known = f"page:{shown} in {above}"
    return Source(known, known, stem(origin), shown, f"a frame of {shown} in {above}", "off")


def of_plugin(plugin: Plugin) -> Source:
    """The source of a plugin's tools."""
    name = f"plugin:{plugin.name}"
    words = f"the plugin {plugin.name}, which runs in {' and '.join(plugin.matches[:3])}"
    return Source(plugin.source, name, plugin.name, name, words)


def is_plugin(room: Room) -> bool:
    """Whether this is a plugin's room."""
    return room.source != PAGE


def plugin_of(room: Room, plugins: Iterable[Plugin]) -> Plugin | None:
    """The plugin whose room this is, if its code is still the newest."""
    return next((one for one in plugins if one.source == room.source), None)
