"""`BrowserSource` says where a tool is from: the origin of a page or the code of a plugin (B7).

The browser says that, never the page.
"""

from collections.abc import Iterable

from msgspec import Struct

from afoot.providers.browser.plugins.plugin import Plugin
from afoot.providers.browser.tools.names import PLUGIN_OWNER, name_stem
from afoot.wire.browser_data import PageContext

PAGE_SOURCE = "page"
TOP_FRAME = "0"
OPAQUE_ORIGINS = ("", "null")  # such an origin equals no other, not even itself


class BrowserSource(Struct, frozen=True):
    """The source of tools, as approvals, names, settings and people need it."""

    id: str  # page:ORIGIN, page:ORIGIN in TOP, plugin:NAME@HASH
    owner: str  # owner of their names: the same for all versions of a plugin
    name_stem: str  # the beginning of their names
    address: str  # their name in settings: ORIGIN, plugin:NAME
    description: str
    usual: str = "ask"  # off in a frame whose origin is not the tab's (A1)


def page_source(context: PageContext) -> BrowserSource:
    """The source of a page's own tools: its origin, and for a framed page also the origin of the tab."""
    origin = context.origin
    if (
        origin not in OPAQUE_ORIGINS
        and (context.top or (origin if context.frame == TOP_FRAME else "")) == origin
    ):
        return BrowserSource(
            f"page:{origin}", f"page:{origin}", name_stem(origin), origin, f"the page {origin}"
        )
    shown, above = origin or "null", context.top or "another page"
    known = f"page:{shown} in {above}"
    return BrowserSource(known, known, name_stem(origin), shown, f"a frame of {shown} in {above}", "off")


def plugin_source(plugin: Plugin) -> BrowserSource:
    """The source of a plugin's tools."""
    name = f"{PLUGIN_OWNER}{plugin.name}"
    description = f"the plugin {plugin.name}, which runs in {' and '.join(plugin.matches[:3])}"
    return BrowserSource(plugin.source, name, plugin.name, name, description)


def is_plugin_context(context: PageContext) -> bool:
    """Whether this page context belongs to a plugin."""
    return context.source != PAGE_SOURCE


def find_plugin(context: PageContext, plugins: Iterable[Plugin]) -> Plugin | None:
    """The plugin of this page context; None if it runs older code."""
    return next((one for one in plugins if one.source == context.source), None)
