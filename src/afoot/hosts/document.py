"""`HostDocument` is a host's file as a table of servers, in JSON or TOML.

`afoot_entry` is the server entry `afoot` that a host needs; `is_ours` recognizes it.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from afoot.hosts import edit_json, edit_toml
from afoot.hosts.edit_json import RemovedText
from afoot.hosts.files import FileError
from afoot.hosts.known_hosts import Host

ENTRY_NAME = "afoot"
EMPTY_JSON = "{}\n"
BYTE_ORDER_MARK = "\ufeff"


class HostDocument(Struct, frozen=True):
    """The text of a host's file. Nothing is written to disk here: each change returns a new document.

    Every method raises FileError, with line and column, for a text that cannot be read or changed.
    """

    host: Host
    file: Path
    text: str

    def servers(self) -> dict[str, object]:
        """The host's servers by name."""
        parsed = self._parse()
        found = parsed.get(self.host.key, {}) if isinstance(parsed, dict) else None
        if not isinstance(found, dict):
            what = self.host.key if isinstance(parsed, dict) else "the whole"
            raise FileError(f"{self.file}: {what} must be an object; left as it is")
        return {str(key): one for key, one in found.items()}

    def has_table(self) -> bool:
        """Whether the file has a table of servers; it may be empty."""
        parsed = self._parse()
        return isinstance(parsed, dict) and self.host.key in parsed

    def insert(self, name: str, value: dict[str, object]) -> "HostDocument":
        """The document with one more server."""
        path = (self.host.key,)
        if self.host.is_toml:
            return self._edited(lambda text: edit_toml.insert(text, path, name, value))
        return self._with_table()._edited(lambda text: edit_json.insert(text, path, name, value))

    def reinsert(self, name: str, taken: RemovedText) -> "HostDocument":
        """The document with a removed server at its old place."""
        path = (self.host.key,)
        if self.host.is_toml:
            return self._edited(lambda text: edit_toml.reinsert(text, path, name, taken))
        return self._with_table()._edited(lambda text: edit_json.reinsert(text, path, name, taken))

    def remove(self, name: str) -> "tuple[HostDocument, RemovedText]":
        """The document without a server, and the removed text."""
        module = edit_toml if self.host.is_toml else edit_json
        taken = list[RemovedText]()

        def change(text: str) -> str:
            taken.append(module.remove(text, (self.host.key,), name))
            return taken[0].text

        changed = self._edited(change)
        return changed, replace(taken[0], text="")

    def updated(self, name: str, values: dict[str, object]) -> "HostDocument":
        """The document with other values for some keys of a server; its other keys stay."""
        module = edit_toml if self.host.is_toml else edit_json
        path = (self.host.key, name)

        def change(text: str) -> str:
            for key, value in values.items():
                text = module.replace_value(text, path, key, value)
            return text

        try:
            return self._edited(change)
        except FileError:
            old = self.servers()[name]
            return self.remove(name)[0].insert(name, {**(old if isinstance(old, dict) else {}), **values})

    def without_table(self) -> "HostDocument":
        """The document without its table of servers, if that is empty. A TOML file has no empty table."""
        if self.host.is_toml or self.servers() or not self.has_table():
            return self
        return self._edited(lambda text: edit_json.remove(text, (), self.host.key).text)

    def can_move(self, name: str) -> bool:
        """Whether a server's text can be removed in one piece."""
        return not self.host.is_toml or edit_toml.is_separate_table(self.text, (self.host.key,), name)

    def _parse(self) -> object:
        try:
            return edit_toml.read(self.text) if self.host.is_toml else edit_json.read(self._json_text())
        except ValueError as error:
            raise FileError(f"{self.file}, {error}; left as it is") from None

    def _json_text(self) -> str:
        if self.text.removeprefix(BYTE_ORDER_MARK).strip():
            return self.text
        return BYTE_ORDER_MARK + EMPTY_JSON if self.text.startswith(BYTE_ORDER_MARK) else EMPTY_JSON

    def _with_table(self) -> "HostDocument":
        if self.has_table():
            return self
        start = replace(self, text=self._json_text())
        return start._edited(lambda text: edit_json.insert(text, (), self.host.key, {}))

    def _edited(self, change: Callable[[str], str]) -> "HostDocument":
        self.servers()
        try:
            return replace(self, text=change(self.text))
        except ValueError as error:
            raise FileError(f"{self.file}, {error}; left as it is") from None


def afoot_entry(host: Host, config: Path | None = None) -> dict[str, object]:
    """The entry with which a host starts `afoot connect`; it passes on AFOOT_HOME and AFOOT_CONFIG.

    A host with options of its own gets those too.
    """
    command, *args = own_command_words()
    found: dict[str, object] = {"type": host.type} if host.type else {}
    found |= {"command": command, "args": [*args, "connect"]}
    named = {
        "AFOOT_HOME": os.environ.get("AFOOT_HOME"),
        "AFOOT_CONFIG": str(config) if config else os.environ.get("AFOOT_CONFIG"),
    }
    variables = {key: str(Path(value).absolute()) for key, value in named.items() if value}
    return found | host.options | ({"env": variables} if variables else {})


def own_command_words() -> list[str]:
    """The command line of this program, with absolute paths."""
    program = Path(sys.argv[0])
    if program.name == "afoot":
        found = program if program.is_file() else Path(shutil.which("afoot") or "")
        if found.is_file():
            return [str(found.absolute())]
    return [str(Path(sys.executable).absolute()), "-m", "afoot"]


def is_ours(value: object) -> bool:
    """Whether an entry starts `afoot connect`, at any path."""
    args = value.get("args") if isinstance(value, dict) else None
    if not isinstance(args, list) or args[-1:] != ["connect"]:
        return False
    return args[:-1] == ["-m", "afoot"] or (len(args) == 1 and _is_afoot(entry_command(value)))


def entry_command(value: object) -> str:
    """The command of an entry, empty if it has none."""
    command = value.get("command") if isinstance(value, dict) else None
    return command if isinstance(command, str) else ""


def can_start(command: str) -> bool:
    """Whether the command exists and can be executed."""
    return shutil.which(command) is not None


def path_warnings(command: str) -> list[str]:
    """Reasons why this path may not exist later: it is in a clone or in a temporary folder."""
    path = Path(command)
    paths = {path, path.resolve()}
    for folder in (parent for one in paths for parent in one.parents):
        if (folder / ".git").exists():
            return [f"{command} lies in a clone ({folder}): it is gone when that is moved or removed"]
    places = {tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", str(_cache_folder())}
    if any(one.is_relative_to(place) for one in paths for place in places):
        return [f"{command} lies in a temporary folder: it is gone when that is cleaned"]
    return []


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_afoot(command: str) -> bool:
    return Path(command.replace("\\", "/")).name in (ENTRY_NAME, f"{ENTRY_NAME}.exe")
