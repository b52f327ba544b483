"""All plugins of a gateway: read from their folders, followed while it runs, their tools remembered (B2)."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from afoot.errors import AfootError
from afoot.providers.browser.plugin import MANIFEST, Plugin, load
from afoot.state import Kept
from afoot.wire.room import PageTool

__all__ = ["Plugin", "Plugins", "load"]

SEEN = "plugins.json"

log = logging.getLogger("afoot")

Stamp = tuple[int, int, int]


class Seen(Struct, frozen=True, omit_defaults=True):
    """The tools that a plugin's code was last seen to have."""

    name: str
    hash: str
    tools: list[PageTool] = []


class Plugins:
    """What is in the folders. A folder that becomes wrong keeps the plugin it had, and is a problem."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._folders: list[Path] = []
        self._found: dict[Path, Plugin] = {}
        self._wrong: dict[Path, str] = {}
        self._odd: dict[Path, str] = {}  # where plugin.json and the code differ
        self._stamps: dict[Path, tuple[Stamp, ...]] = {}
        self._fresh: dict[Path, tuple[Stamp, ...]] = {}  # what the last look found changed
        self._kept = Kept(SEEN, Seen)
        self._seen: dict[str, Seen] = {}
        self.adopt(folders)

    @property
    def all(self) -> list[Plugin]:
        """The plugins that can be run, each with the tools its code is known to have."""
        return [self._known(self._found[folder]) for folder in self._folders if folder in self._found]

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words."""
        return [*self._wrong.values(), *filter(None, self._odd.values())]

    def adopt(self, folders: Iterable[Path]) -> bool:
        """Take these folders and no others; gives whether anything changed."""
        wanted = list(dict.fromkeys(folder.absolute() for folder in folders))
        before = self._state()
        self._folders = wanted
        for kept in (self._found, self._wrong, self._odd, self._stamps):
            for folder in kept.keys() - set(wanted):
                del kept[folder]
        self._take_all([folder for folder in wanted if folder not in self._stamps])
        return self._has_changed(before)

    def look(self) -> bool:
        """Read again what has changed on the disk; gives whether a plugin or a problem is other than it was.

        A change counts when two looks find it: whoever writes a file in two steps has it whole by then.
        """
        before = self._state()
        now = {folder: self._stamp(folder) for folder in self._folders}
        changed = {folder: stamp for folder, stamp in now.items() if stamp != self._stamps.get(folder)}
        self._take_all([folder for folder, stamp in changed.items() if stamp == self._fresh.get(folder)])
        self._fresh = changed
        return self._has_changed(before)

    def saw(self, source: str, tools: Sequence[PageTool]) -> None:
        """A browser says which tools a plugin's code has; if plugin.json says otherwise, it is a problem."""
        plugin = next((one for one in self._found.values() if one.source == source), None)
        if plugin is None:
            return  # code that is no longer ours
        seen = Seen(plugin.name, plugin.hash, list(tools))
        self._read()
        if self._seen.get(plugin.name) != seen:
            self._seen[plugin.name] = seen
            self._write()
        differing = _differing(plugin, tools)
        if differing and self._odd.get(plugin.folder) != differing:
            log.warning("%s", differing)
        self._odd[plugin.folder] = differing

    def _has_changed(self, before: object) -> bool:
        """Whether anything is other than before; what was wrong may be right then, its name free."""
        has_changed = self._state() != before
        if has_changed:
            self._take_all(list(self._wrong))
        return has_changed

    def _take_all(self, folders: Iterable[Path]) -> None:
        for folder in folders:
            # Looked at before the reading, so that what is written meanwhile is read again.
            self._stamps[folder] = self._stamp(folder)
            try:
                self._take(folder, load(folder))
            except AfootError as error:
                self._complain(folder, str(error))

    def _take(self, folder: Path, plugin: Plugin) -> None:
        twin = next(
            (one for other, one in self._found.items() if one.name == plugin.name and other != folder), None
        )
        if twin is not None:
            self._complain(
                folder, f"{folder / MANIFEST}: name: {plugin.name!r} is that of {twin.folder}, too"
            )
            return
        self._wrong.pop(folder, None)
        before = self._found.get(folder)
        self._found[folder] = plugin
        self._odd.pop(folder, None)
        if before is not None and before.hash != plugin.hash:
            log.warning("plugin %s is new code now: %s", plugin.name, plugin.hash)

    def _complain(self, folder: Path, what: str) -> None:
        old = self._found.get(folder)
        text = what if old is None else f"{what}; the old code ({old.hash}) is kept"
        if self._wrong.get(folder) != text:
            self._wrong[folder] = text
            log.error("%s", text)

    def _stamp(self, folder: Path) -> tuple[Stamp, ...]:
        """What changes with a plugin's files: those it has, and those that may be the ones it lacks."""
        plugin = self._found.get(folder)
        files = {folder / MANIFEST, *([] if plugin is None else plugin.files), *folder.glob("*.js")}
        return tuple(map(_stamp, sorted(files)))

    def _known(self, plugin: Plugin) -> Plugin:
        self._read()
        seen = self._seen.get(plugin.name)
        if seen is None or seen.hash != plugin.hash:
            return plugin
        return replace(plugin, tools=seen.tools)

    def _read(self) -> None:
        try:
            found = self._kept.read()
        except AfootError as error:
            log.error("%s", error)
            found = list[Seen]()
        if found is not None:
            self._seen = {one.name: one for one in found}

    def _write(self) -> None:
        try:
            self._kept.write(list(self._seen.values()))
        except AfootError as error:  # no call depends on it
            log.error("%s", error)

    def _state(self) -> object:
        return [self._found[one].hash for one in self._folders if one in self._found], self.problems


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_ino, found.st_mtime_ns, found.st_size


def _differing(plugin: Plugin, tools: Sequence[PageTool]) -> str:
    """How the tools that the code has differ from those that plugin.json lists, where it lists any."""
    if not plugin.tools:
        return ""
    listed, defined = {tool.name for tool in plugin.tools}, {tool.name for tool in tools}
    lacking, more = sorted(listed - defined), sorted(defined - listed)
    told = [
        f"lists {', '.join(lacking)}, which the code does not define" if lacking else "",
        f"does not list {', '.join(more)}" if more else "",
    ]
    what = " and ".join(filter(None, told))
    return f"{plugin.folder / MANIFEST}: tools: {what}" if what else ""
