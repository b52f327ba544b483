"""`ToolNames` gives each tool of a page or plugin a name that no other source can take (B2).

A tool keeps its name after a restart.
"""

import logging
import re
from collections.abc import Container, Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import DecodeError, json

from afoot.config import state_folder
from afoot.errors import CallerError

log = logging.getLogger("afoot.browser")

PLUGIN_OWNER = "plugin:"  # how the owners of the names of plugins begin
NAME_CHARS = 64  # the longest name that every host accepts
HASH_CHARS = 8  # of these, for the hash that tells two tools apart
MAX_NAMES = 4096  # names that are remembered; beyond that, the oldest unused ones are forgotten
OWN_PREFIX = "afoot_"  # reserved for the gateway's own tools

_ODD = re.compile(r"[^A-Za-z0-9_-]+")


class ToolNames:
    """The names of tools and their owners. The first owner of a name keeps it, also over restarts.

    Only a plugin takes a name from a page that was there before: a person has installed the plugin (B2).
    """

    def __init__(self, owners: Mapping[str, str] | None = None) -> None:
        self.owners = dict(owners or {})  # by name
        self.has_changed = False

    def assign(self, wanted: str, owner: str, variant: str, used: Container[str]) -> str:
        """Give a tool the wanted name, or that name with a hash if it is another owner's.

        `variant` tells tools apart that have one name in one source; `used` are the names in use now.
        """
        if self._is_free(wanted, owner, used):
            return self._claim(wanted, owner)
        name, number = with_hash(wanted, owner), 1
        while not self._is_free(name, owner, used):
            name, number = with_hash(wanted, f"{owner} {variant} {number}"), number + 1
        return self._claim(name, owner)

    def forget_oldest(self, used: Container[str]) -> None:
        """Forget the oldest unused names, if there are over MAX_NAMES."""
        for name in [name for name in self.owners if name not in used][
            : max(0, len(self.owners) - MAX_NAMES)
        ]:
            del self.owners[name]
            self.has_changed = True

    def is_kept(self, name: str, wanted: str, owner: str) -> bool:
        """Whether a tool keeps its name: no plugin has taken it, and no page has the one that it wants."""
        return self.owners.get(name, owner) == owner and not self._is_displaced(wanted, owner)

    def _is_free(self, name: str, owner: str, used: Container[str]) -> bool:
        is_own = self.owners.get(name, owner) == owner
        return name not in used and (is_own or self._is_displaced(name, owner))

    def _is_displaced(self, name: str, owner: str) -> bool:
        """Whether a page has this name, which a plugin would have."""
        holder = self.owners.get(name, owner)
        return owner.startswith(PLUGIN_OWNER) and not holder.startswith(PLUGIN_OWNER)

    def _claim(self, name: str, owner: str) -> str:
        if self.owners.get(name) != owner:
            self.owners[name] = owner
            self.has_changed = True
        return name


def name_stem(origin: str) -> str:
    """The beginning of the names of an origin's tools: its host, and its port if that is not the default."""
    parts = urlsplit(origin)
    return parts.netloc.rpartition("@")[2] or "page"


def tool_name(name_stem: str, tool: str) -> str:
    """The name of a tool, in characters that every host accepts; a name that is cut gets a hash."""
    name = f"{_reduce(name_stem) or 'page'}_{_reduce(tool) or 'tool'}"
    name = f"page_{name}" if name.startswith(OWN_PREFIX) else name
    return name if len(name) <= NAME_CHARS else with_hash(name, f"{name_stem} {tool}")


def with_hash(name: str, what: str) -> str:
    """The name with a short hash of `what`, which is the same after a restart."""
    digest = sha256(what.encode(errors="replace")).hexdigest()[:HASH_CHARS]
    return f"{name[: NAME_CHARS - HASH_CHARS - 1]}_{digest}"


def _reduce(text: str) -> str:
    return _ODD.sub("_", text).strip("_")


def read_names(file: Path | None) -> dict[str, str]:
    """Read names and their owners; empty if there is no file, or it cannot be read."""
    if file is None:
        return {}
    try:
        return json.decode(file.read_bytes(), type=dict[str, str])
    except (OSError, DecodeError, UnicodeDecodeError):
        return {}


def write_names(file: Path | None, owners: dict[str, str]) -> None:
    """Write names and their owners. No call depends on them, so a full disk is only logged."""
    if file is None:
        return
    try:
        state_folder.write_private(file, json.encode(owners))
    except CallerError as error:
        log.warning("the names of pages' tools are not kept: %s", error)
