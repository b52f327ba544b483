"""Browsers over the operator's API: their tabs, why nothing can run in some, the plugins, a tab's reload."""

from msgspec import Struct

from afoot.errors import UnknownName
from afoot.providers.browser.browser import Browser
from afoot.providers.browser.tabs import BrowserView, PluginView, TabView
from afoot.serve.request import Request


class Tabs(Struct, frozen=True):
    """Every browser, tab and plugin; `counted`: what browsers sent that was dropped or repaired.

    `cdp`: the debugging port that is to be attached to, if one is; whether it is, `browsers` tells.
    """

    browsers: list[BrowserView]
    tabs: list[TabView]
    plugins: list[PluginView]
    counted: dict[str, int]
    cdp: str = ""


class Reloading(Struct, frozen=True):
    """The tab that is loaded anew."""

    tab: str


async def index(request: Request) -> None:
    """Every browser, its tabs, and the plugins."""
    request.query()
    browser = request.site.browser
    if browser is None:
        await request.answer(200, Tabs([], [], [], {}))
        return
    views = browser.browser_views(), browser.tab_views(), browser.plugin_views()
    await request.answer(200, Tabs(*views, browser.counted, request.site.settings.browser.cdp))


async def reload(request: Request) -> None:
    """Have a tab loaded anew."""
    key = request.names["id"]
    _browser(request).reload_tab(key)
    await request.answer(202, Reloading(key))


def _browser(request: Request) -> Browser:
    if request.site.browser is None:
        raise UnknownName("tab", request.names["id"])
    return request.site.browser
