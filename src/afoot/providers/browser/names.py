"""The names of tools of pages and plugins: they say whose they are, and nobody can take another's (B2)."""

import re
from collections.abc import Container, Mapping
from hashlib import sha256
from urllib.parse import urlsplit

LONGEST = 64  # characters of a name that every host takes
MARK = 8  # of them for what tells two tools apart
MOST = 4096  # names that are remembered; of more, the oldest that nobody uses go
OURS = "afoot_"  # how names begin that only we give

_ODD = re.compile(r"[^A-Za-z0-9_-]+")


class Names:
    """Who has which name. The first to have one keeps it, also over restarts: nobody else is called so."""

    def __init__(self, held: Mapping[str, str] | None = None) -> None:
        self.held = dict(held or {})  # by name: whose it is
        self.has_changed = False

    def give(self, wanted: str, whose: str, variant: str, used: Container[str]) -> str:
        """A name for a tool: the wanted one, or one that is marked where that is another's.

        `variant` tells tools apart that one source calls the same; `used` are names in use now.
        """
        if self._is_free(wanted, whose, used):
            return self._hold(wanted, whose)
        name, number = marked(wanted, whose), 1
        while not self._is_free(name, whose, used):
            name, number = marked(wanted, f"{whose} {variant} {number}"), number + 1
        return self._hold(name, whose)

    def shrink(self, used: Container[str]) -> None:
        """Forget the oldest names that nobody has now, if there are many."""
        for name in [name for name in self.held if name not in used][: max(0, len(self.held) - MOST)]:
            del self.held[name]
            self.has_changed = True

    def _is_free(self, name: str, whose: str, used: Container[str]) -> bool:
        return name not in used and self.held.get(name, whose) == whose

    def _hold(self, name: str, whose: str) -> str:
        if name not in self.held:
            self.held[name] = whose
            self.has_changed = True
        return name


def stem(origin: str) -> str:
    """How the names of an origin's tools begin: its host, and its port where that is not the usual one."""
    parts = urlsplit(origin)
    return parts.netloc.rpartition("@")[2] or "page"


def offered(stem: str, tool: str) -> str:
    """The name of a tool, reduced to what every host takes; one that is cut is marked."""
    name = f"{_reduced(stem) or 'page'}_{_reduced(tool) or 'tool'}"
    name = f"page_{name}" if name.startswith(OURS) else name
    return name if len(name) <= LONGEST else marked(name, f"{stem} {tool}")


def marked(name: str, what: str) -> str:
    """The name with a short mark that is always the same for the same thing."""
    return f"{name[: LONGEST - MARK - 1]}_{sha256(what.encode(errors='replace')).hexdigest()[:MARK]}"


def _reduced(text: str) -> str:
    return _ODD.sub("_", text).strip("_")
