"""Browsers over the operator's API: the extension and its key, connected browsers, tabs and plugins."""

from msgspec import Struct

from afoot.config import state_folder
from afoot.errors import UnknownName
from afoot.providers.browser.extension_files import ExtensionCopies, link_url, shipped_manifest
from afoot.providers.browser.provider import BrowserProvider
from afoot.providers.browser.views import BrowserView, PluginView, TabView
from afoot.serve.api.request import ApiRequest

CLOSE_KEY_ROTATED = 4403


class FolderView(Struct, frozen=True):
    """A folder with a copy of the extension."""

    folder: str
    version: str


class LinkView(Struct, frozen=True):
    """A browser profile that the extension connects; `since` is when it connected."""

    profile: str
    name: str
    version: str
    connected: bool
    since: float
    user_scripts: bool  # whether plugins can run there


class ExtensionView(Struct, frozen=True):
    """The extension that belongs to this gateway, its copies, and the browsers that it connects."""

    id: str
    version: str
    url: str
    folders: list[FolderView]
    links: list[LinkView]
    problems: list[str] = []


class TabsView(Struct, frozen=True):
    """Every browser, tab and plugin; `counted`: messages of browsers that were dropped or repaired.

    `cdp`: the debugging port to attach to, if one is set; `browsers` says whether it is attached.
    """

    browsers: list[BrowserView]
    tabs: list[TabView]
    plugins: list[PluginView]
    counted: dict[str, int]
    cdp: str = ""


class ReloadView(Struct, frozen=True):
    """The tab that is being reloaded."""

    tab: str


async def show_extensions(request: ApiRequest) -> None:
    """The extension's folders, and the browsers it connects."""
    request.query()
    await request.answer(200, _extension_view(request, []))


async def rotate_key(request: ApiRequest) -> None:
    """Make a new key, write it into the folders, and close every link; extensions then read the new key."""
    request.query()
    gateway = request.gateway
    problems = ExtensionCopies().write_pairings(link_url(gateway.url), state_folder.rotate_link_key())
    if gateway.lines is not None:
        gateway.lines.close(CLOSE_KEY_ROTATED, "the key has been changed")
    await request.answer(200, _extension_view(request, problems))


async def show_tabs(request: ApiRequest) -> None:
    """Every browser, its tabs, and the plugins."""
    request.query()
    browser = request.gateway.browser
    if browser is None:
        await request.answer(200, TabsView([], [], [], {}))
        return
    views = browser.browser_views(), browser.tab_views(), browser.plugin_views()
    await request.answer(200, TabsView(*views, browser.counted, request.gateway.settings.browser.cdp))


async def reload_tab(request: ApiRequest) -> None:
    """Reload a tab."""
    key = request.names["id"]
    _browser(request).reload_tab(key)
    await request.answer(202, ReloadView(key))


def _extension_view(request: ApiRequest, problems: list[str]) -> ExtensionView:
    gateway, manifest = request.gateway, shipped_manifest()
    folders = [FolderView(copy.folder, copy.version) for copy in ExtensionCopies().all()]
    links = [
        LinkView(
            line.profile, line.name, line.hello.version, line.socket is not None, line.since,
            line.hello.user_scripts,
        )
        for line in gateway.lines or ()
    ]  # fmt: skip
    return ExtensionView(manifest.id, manifest.version, link_url(gateway.url), folders, links, problems)


def _browser(request: ApiRequest) -> BrowserProvider:
    if request.gateway.browser is None:
        raise UnknownName("tab", request.names["id"])
    return request.gateway.browser
