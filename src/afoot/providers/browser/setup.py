"""`BrowserSetup` opens the browser part of a gateway: provider, plugins, and the connection over CDP."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from afoot.config.settings import Settings, home
from afoot.config.tables import expand_home
from afoot.core.facts import Limits
from afoot.engine.catalog import Catalog
from afoot.errors import CallerError
from afoot.providers.browser.cdp.browser import CdpBrowser, make_cdp_browser
from afoot.providers.browser.extension_files import ExtensionCopies
from afoot.providers.browser.plugins.plugin import MANIFEST
from afoot.providers.browser.plugins.plugin_folders import Plugins
from afoot.providers.browser.provider import BrowserProvider


class BrowserSetup:
    """The browser provider with its plugins and, if it is configured, CDP; open it with `async with`."""

    cdp: CdpBrowser | None = None

    def __init__(
        self, catalog: Catalog, limits: Limits, settings: Settings, targets: Sequence[object]
    ) -> None:
        names = None if settings.store == ":memory:" else home() / "names.json"
        self.browser = BrowserProvider(limits, settings.browser, names)
        self.plugins = Plugins()
        self.folders: list[Path] = []  # of plugins, which are checked for changes
        self._catalog = catalog
        self._settings = settings
        self._targets = targets
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.browser.open()
        self.folders = _folders(self._settings, self._targets)
        self.plugins.set_folders(self.folders)
        self.browser.on_plugin_tools = self.plugins.store_tools
        self.browser.on_change = lambda: self._catalog.put(self.browser)
        self._stack.callback(self.browser.close)
        self._apply_plugins()
        self._catalog.put(self.browser)
        if self._settings.browser.cdp:
            cdp = make_cdp_browser(self._settings.browser.cdp, self.browser, self._settings.store)
            self.cdp = await self._stack.enter_async_context(cdp)
            self.browser.connection_error = lambda: cdp.state.error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def configure(self, limits: Limits, settings: Settings) -> None:
        """Apply other settings; the address for CDP stays as it is."""
        self.browser.configure(limits, settings.browser)
        self.folders = _folders(settings, self._targets)
        if self.plugins.set_folders(self.folders):
            self._apply_plugins()
        self._catalog.put(self.browser)

    def check_files(self) -> bool:
        """Read plugins again whose files have changed, and run the new code; returns whether any has."""
        has_changed = self.plugins.check_files()
        if has_changed:
            self._apply_plugins()
        return has_changed

    def _apply_plugins(self) -> None:
        self.browser.problems = self.plugins.problems
        self.browser.set_plugins(self.plugins.all)


def is_plugin_folder(target: object) -> bool:
    """Whether a target is a plugin's folder."""
    return isinstance(target, str | Path) and (Path(expand_home(str(target))) / MANIFEST).is_file()


def is_browser_configured(settings: Settings) -> bool:
    """Whether the settings name a browser or a plugin, or the extension has been copied for one."""
    if settings.browser.cdp or settings.browser.plugins:
        return True
    try:
        return bool(ExtensionCopies().all())
    except CallerError:
        return False


def _folders(settings: Settings, targets: Sequence[object]) -> list[Path]:
    """The folders of all plugins, first those in the settings."""
    named = (*settings.browser.plugins, *(str(target) for target in targets if is_plugin_folder(target)))
    return [Path(expand_home(one)) for one in named]
