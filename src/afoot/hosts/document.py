"""A host's file as a table of servers, whatever its format."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from afoot.hosts import json_text, toml_text
from afoot.hosts.file import FileError
from afoot.hosts.json_text import Taken
from afoot.hosts.known import Host

EMPTY = "{}\n"


class Document(Struct, frozen=True):
    """The text of a host's file. Nothing is written here: each change gives another document.

    Raises FileError with line and column for a text that cannot be read, or not be changed.
    """

    host: Host
    file: Path
    text: str

    def servers(self) -> dict[str, object]:
        """The host's servers by name."""
        whole = self._whole()
        found = whole.get(self.host.key, {}) if isinstance(whole, dict) else None
        if not isinstance(found, dict):
            what = self.host.key if isinstance(whole, dict) else "the whole"
            raise FileError(f"{self.file}: {what} must be an object; left as it is")
        return {str(key): one for key, one in found.items()}

    def has_table(self) -> bool:
        """Whether there is a table of servers, though it may be empty."""
        whole = self._whole()
        return isinstance(whole, dict) and self.host.key in whole

    def put(self, name: str, value: dict[str, object]) -> "Document":
        """With a server more."""
        path = (self.host.key,)
        if self.host.is_toml:
            return self._with(lambda text: toml_text.put(text, path, name, value))
        return self._tabled()._with(lambda text: json_text.put(text, path, name, value))

    def put_back(self, name: str, taken: Taken) -> "Document":
        """With a server that was taken out."""
        path = (self.host.key,)
        if self.host.is_toml:
            return self._with(lambda text: toml_text.put_back(text, path, name, taken))
        return self._tabled()._with(lambda text: json_text.put_back(text, path, name, taken))

    def take(self, name: str) -> "tuple[Document, Taken]":
        """Without a server, and what was taken out."""
        module, taken = (toml_text if self.host.is_toml else json_text), list[Taken]()

        def change(text: str) -> str:
            taken.append(module.take(text, (self.host.key,), name))
            return taken[0].text

        changed = self._with(change)
        return changed, replace(taken[0], text="")

    def updated(self, name: str, values: dict[str, object]) -> "Document":
        """With other values for some keys of a server; its other keys stay."""
        module, path = (toml_text if self.host.is_toml else json_text), (self.host.key, name)

        def change(text: str) -> str:
            for key, value in values.items():
                text = module.swap(text, path, key, value)
            return text

        try:
            return self._with(change)
        except FileError:
            old = self.servers()[name]
            return self.take(name)[0].put(name, {**(old if isinstance(old, dict) else {}), **values})

    def without_table(self) -> "Document":
        """Without the table of servers, if it is empty; TOML has none without a server in it."""
        if self.host.is_toml or self.servers() or not self.has_table():
            return self
        return self._with(lambda text: json_text.take(text, (), self.host.key).text)

    def can_move(self, name: str) -> bool:
        """Whether a server's text can be taken out in one piece."""
        return not self.host.is_toml or toml_text.stands_alone(self.text, (self.host.key,), name)

    def _whole(self) -> object:
        try:
            return toml_text.read(self.text) if self.host.is_toml else json_text.read(self._json())
        except ValueError as error:
            raise FileError(f"{self.file}, {error}; left as it is") from None

    def _json(self) -> str:
        return self.text if self.text.removeprefix("\ufeff").strip() else EMPTY

    def _tabled(self) -> "Document":
        if self.has_table():
            return self
        start = replace(self, text=self._json())
        return start._with(lambda text: json_text.put(text, (), self.host.key, {}))

    def _with(self, change: Callable[[str], str]) -> "Document":
        self.servers()
        try:
            return replace(self, text=change(self.text))
        except ValueError as error:
            raise FileError(f"{self.file}, {error}; left as it is") from None
