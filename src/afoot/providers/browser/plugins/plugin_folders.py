"""`Plugins` reads all plugins of a gateway from their folders, and reads them again when files change (B2).

It also stores the tools that a plugin's code had in a page, so that they are offered before a tab is open.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from afoot.config.state_folder import StoredList
from afoot.errors import AfootError
from afoot.providers.browser.plugins.plugin import MANIFEST, Plugin, load_plugin
from afoot.wire.browser_data import PageTool

TOOLS_FILE = "plugins.json"

log = logging.getLogger("afoot")

Stamp = tuple[int, int, int]


class StoredTools(Struct, frozen=True, omit_defaults=True):
    """The tools that a plugin's code last had in a page."""

    name: str
    hash: str
    tools: list[PageTool] = []


class Plugins:
    """The plugins in a list of folders. If a folder becomes wrong, its last good plugin stays in use."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._folders: list[Path] = []
        self._by_folder: dict[Path, Plugin] = {}
        self._errors: dict[Path, str] = {}
        self._mismatches: dict[Path, str] = {}  # differences between plugin.json and the code
        self._stamps: dict[Path, tuple[Stamp, ...]] = {}
        self._changed_once: dict[Path, tuple[Stamp, ...]] = {}  # changes that only the last check has seen
        self._file = StoredList(TOOLS_FILE, StoredTools)
        self._stored: dict[str, StoredTools] = {}
        self.set_folders(folders)

    @property
    def all(self) -> list[Plugin]:
        """The plugins that can run, each with the tools that its code last had."""
        return [
            self._with_stored_tools(self._by_folder[folder])
            for folder in self._folders
            if folder in self._by_folder
        ]

    @property
    def problems(self) -> list[str]:
        """The problems of all plugins, in words for people."""
        return [*self._errors.values(), *filter(None, self._mismatches.values())]

    def set_folders(self, folders: Iterable[Path]) -> bool:
        """Use these folders and no others; returns whether anything changed."""
        unique = list(dict.fromkeys(folder.absolute() for folder in folders))
        before = self._state()
        self._folders = unique
        for kept in (self._by_folder, self._errors, self._mismatches, self._stamps):
            for folder in kept.keys() - set(unique):
                del kept[folder]
        self._load_all([folder for folder in unique if folder not in self._stamps])
        return self._has_changed(before)

    def check_files(self) -> bool:
        """Read folders again whose files have changed; returns whether a plugin or a problem has changed.

        A change counts when two checks in a row see it: by then, a file that is written in steps is complete.
        """
        before = self._state()
        now = {folder: self._stamp(folder) for folder in self._folders}
        changed = {folder: stamp for folder, stamp in now.items() if stamp != self._stamps.get(folder)}
        self._load_all(
            [folder for folder, stamp in changed.items() if stamp == self._changed_once.get(folder)]
        )
        self._changed_once = changed
        return self._has_changed(before)

    def store_tools(self, source: str, tools: Sequence[PageTool]) -> None:
        """Store the tools that a plugin's code has in a page; if plugin.json lists others, note a problem."""
        plugin = next((one for one in self._by_folder.values() if one.source == source), None)
        if plugin is None:
            return  # older code of a plugin
        seen = StoredTools(plugin.name, plugin.hash, list(tools))
        self._read()
        if self._stored.get(plugin.name) != seen:
            self._stored[plugin.name] = seen
            self._write()
        differing = _mismatch(plugin, tools)
        if differing and self._mismatches.get(plugin.folder) != differing:
            log.warning("%s", differing)
        self._mismatches[plugin.folder] = differing

    def _has_changed(self, before: object) -> bool:
        """Whether anything has changed; if so, wrong folders are read again: a name may be free now."""
        has_changed = self._state() != before
        if has_changed:
            self._load_all(list(self._errors))
        return has_changed

    def _load_all(self, folders: Iterable[Path]) -> None:
        for folder in folders:
            # Taken before the folder is read: a file that is written meanwhile is read again.
            self._stamps[folder] = self._stamp(folder)
            try:
                self._add(folder, load_plugin(folder))
            except AfootError as error:
                self._note_error(folder, str(error))

    def _add(self, folder: Path, plugin: Plugin) -> None:
        twin = next(
            (one for other, one in self._by_folder.items() if one.name == plugin.name and other != folder),
            None,
        )
        if twin is not None:
            self._note_error(
                folder, f"{folder / MANIFEST}: name: {plugin.name!r} is that of {twin.folder}, too"
            )
            return
        self._errors.pop(folder, None)
        before = self._by_folder.get(folder)
        self._by_folder[folder] = plugin
        self._mismatches.pop(folder, None)
        if before is not None and before.hash != plugin.hash:
            log.warning("plugin %s is new code now: %s", plugin.name, plugin.hash)

    def _note_error(self, folder: Path, what: str) -> None:
        old = self._by_folder.get(folder)
        text = what if old is None else f"{what}; the old code ({old.hash}) is kept"
        if self._errors.get(folder) != text:
            self._errors[folder] = text
            log.error("%s", text)

    def _stamp(self, folder: Path) -> tuple[Stamp, ...]:
        """Stamps of a plugin's files, and of other scripts in its folder: one may be a missing file."""
        plugin = self._by_folder.get(folder)
        files = {folder / MANIFEST, *([] if plugin is None else plugin.files), *folder.glob("*.js")}
        return tuple(map(_stamp, sorted(files)))

    def _with_stored_tools(self, plugin: Plugin) -> Plugin:
        self._read()
        seen = self._stored.get(plugin.name)
        if seen is None or seen.hash != plugin.hash:
            return plugin
        return replace(plugin, tools=seen.tools)

    def _read(self) -> None:
        try:
            found = self._file.read()
        except AfootError as error:
            log.error("%s", error)
            found = list[StoredTools]()
        if found is not None:
            self._stored = {one.name: one for one in found}

    def _write(self) -> None:
        try:
            self._file.write(list(self._stored.values()))
        except AfootError as error:  # no call depends on it
            log.error("%s", error)

    def _state(self) -> object:
        return [self._by_folder[one].hash for one in self._folders if one in self._by_folder], self.problems


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_ino, found.st_mtime_ns, found.st_size


def _mismatch(plugin: Plugin, tools: Sequence[PageTool]) -> str:
    """The difference between the tools in plugin.json and those of the code, in words, or ""."""
    if not plugin.tools:
        return ""
    declared, defined = {tool.name for tool in plugin.tools}, {tool.name for tool in tools}
    lacking, more = sorted(declared - defined), sorted(defined - declared)
    parts = [
        f"lists {', '.join(lacking)}, which the code does not define" if lacking else "",
        f"does not list {', '.join(more)}" if more else "",
    ]
    what = " and ".join(filter(None, parts))
    return f"{plugin.folder / MANIFEST}: tools: {what}" if what else ""
