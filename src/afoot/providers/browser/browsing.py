"""Browsers as a gateway has them: the provider of their tools, the plugins in them, the carrier over CDP."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from afoot.config import Settings, home
from afoot.core.facts import Limits
from afoot.engine.catalog import Catalog
from afoot.errors import CallerError
from afoot.providers.browser.browser import Browser
from afoot.providers.browser.cdp.carrier import Cdp, reach
from afoot.providers.browser.folder import Folders
from afoot.providers.browser.plugin import MANIFEST
from afoot.providers.browser.plugins import Plugins


class Browsing:
    """Tabs as tools; open it with `async with`. It opens nothing where no browser is wanted."""

    cdp: Cdp | None = None

    def __init__(
        self, catalog: Catalog, limits: Limits, settings: Settings, targets: Sequence[object]
    ) -> None:
        names = None if settings.store == ":memory:" else home() / "names.json"
        self.browser = Browser(limits, settings.browser, names)
        self.plugins = Plugins()
        self.folders: list[Path] = []  # of plugins, to be looked at
        self._catalog, self._settings, self._targets = catalog, settings, targets
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.browser.open()
        self.folders = _folders(self._settings, self._targets)
        self.plugins.adopt(self.folders)
        self.browser.saw = self.plugins.saw
        self.browser.on_change = lambda: self._catalog.put(self.browser)
        self._stack.callback(self.browser.close)
        self._adopt()
        self._catalog.put(self.browser)
        if self._settings.browser.cdp:
            cdp = reach(self._settings.browser.cdp, self.browser, self._settings.store)
            self.cdp = await self._stack.enter_async_context(cdp)
            self.browser.trouble = lambda: cdp.state.error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def follow(self, limits: Limits, settings: Settings) -> None:
        """Take other settings; where CDP is reached stays as it is."""
        self.browser.configure(limits, settings.browser)
        self.folders = _folders(settings, self._targets)
        if self.plugins.adopt(self.folders):
            self._adopt()
        self._catalog.put(self.browser)

    def look(self) -> bool:
        """See whether a plugin's files have changed: its new code is run from then on."""
        has_changed = self.plugins.look()
        if has_changed:
            self._adopt()
        return has_changed

    def _adopt(self) -> None:
        self.browser.problems = self.plugins.problems
        self.browser.adopt(self.plugins.all)


def is_plugin(target: object) -> bool:
    """Whether a target is a plugin's folder."""
    return isinstance(target, str | Path) and (Path(target).expanduser() / MANIFEST).is_file()


def is_wanted(settings: Settings) -> bool:
    """Whether tabs are served, though none is open yet: by the settings, or by a copy of the extension."""
    if settings.browser.cdp or settings.browser.plugins:
        return True
    try:
        return bool(Folders().all())
    except CallerError:
        return False


def _folders(settings: Settings, targets: Sequence[object]) -> list[Path]:
    """The folders of all plugins, those of the settings first."""
    named = (*settings.browser.plugins, *(str(target) for target in targets if is_plugin(target)))
    return [Path(one).expanduser() for one in named]
