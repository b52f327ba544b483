"""Which servers there should be: those of the config file, of hosts' files and of targets, by name."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import asdict, replace

from afoot.config import ConfigError, Settings
from afoot.mcp_json import look
from afoot.tables import BUILT_IN, LIMITS, WAYS, Server, nearest

FILES = (".json", ".jsonc", ".toml")
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


class Wanted(Struct, frozen=True):
    """A server that should be there, or why it cannot be; `origin` says who wants it."""

    server: Server
    origin: str = ""
    why: str = ""
    target: object = None  # the server itself, if it is an object of this program

    def reaches(self, other: "Wanted") -> bool:
        """Whether both mean the same connection."""
        plain = dict.fromkeys(LIMITS)
        servers = [replace(one.server, approval="", concurrency=0, **plain) for one in (self, other)]
        return servers[0] == servers[1] and self.why == other.why and self.target is other.target


class Roster(Struct, frozen=True):
    """All servers that should be there, what is wrong, and the files that were read."""

    wanted: dict[str, Wanted] = {}
    problems: list[str] = []
    files: list[Path] = []


def is_server(target: object) -> bool:
    """Whether a target means servers, and not functions."""
    if not isinstance(target, str | Path):
        return not callable(target)
    text = str(target)
    return text.startswith(("http://", "https://")) or text.endswith(FILES) or ":" in text


def gather(settings: Settings, targets: Sequence[object] = ()) -> Roster:
    """The servers of settings and targets; raises ConfigError for a target that cannot be read.

    A host's file that is only named in the settings spoils nothing but its own servers.
    """
    roster = Roster({}, [], [])
    tables = {name: server for name, server in settings.servers.items() if name not in BUILT_IN}
    for name, server in tables.items():
        if server.way():
            roster.wanted[name] = Wanted(server, "the config file", _loop(server, settings))
    for target in filter(is_server, targets):
        for name, wanted in _of_target(target, roster):
            _put(roster, name, replace(wanted, why=wanted.why or _loop(wanted.server, settings)), tables)
    for path in map(Path, settings.mcp_servers):
        try:
            found = list(_of_file(path.expanduser(), roster))
        except ConfigError as error:
            roster.problems.append(str(error))
            continue
        for name, wanted in found:
            _put(roster, name, replace(wanted, why=wanted.why or _loop(wanted.server, settings)), tables)
    for name, server in tables.items():
        if name not in roster.wanted:
            why = f"needs one of {', '.join(WAYS)}{nearest(name, roster.wanted)}"
            roster.wanted[name] = Wanted(server, "the config file", why)
    return roster


def _put(roster: Roster, name: str, wanted: Wanted, tables: dict[str, Server]) -> None:
    """The first of a name counts; a table without a way adds to it."""
    if name in BUILT_IN:
        told = f"server {name} of {wanted.origin} is called {_free(name, roster)} here"
        roster.problems.append(f"{told}: {name} means {BUILT_IN[name]}")
        name = _free(name, roster)
    before = roster.wanted.get(name)
    if before is not None:
        told = f"server {name} of {wanted.origin} is left out: {before.origin} has one of that name"
        roster.problems.append(told)
        return
    table = tables.get(name)
    if table is not None:
        given = {key: value for key, value in asdict(table).items() if value != getattr(_PLAIN, key)}
        wanted = replace(wanted, server=replace(wanted.server, **given))
    roster.wanted[name] = wanted


_PLAIN = Server()


def _loop(server: Server, settings: Settings) -> str:
    """A gateway that is its own server would never come to an end."""
    address = urlsplit(server.url).netloc.replace("localhost", "127.0.0.1")
    return "is this gateway itself" if address and address == settings.http else ""


def _of_target(given: object, roster: Roster) -> Iterator[tuple[str, Wanted]]:
    if not isinstance(given, str | Path):
        kind = f"{type(given).__module__}:{type(given).__qualname__}"
        name = _ODD.sub("-", str(getattr(given, "name", "") or "server")).strip("-") or "server"
        yield _free(name, roster), Wanted(Server(module=kind), "the program", target=given)
        return
    target = str(given)
    if target.startswith(("http://", "https://")):
        yield _free(url_name(target), roster), Wanted(Server(url=target), "the command line")
    elif target.endswith(FILES):
        yield from _of_file(Path(target), roster)
    else:
        module = Path(target.rpartition(":")[0].removesuffix(".py")).name.rpartition(".")[2]
        yield _free(module, roster), Wanted(Server(module=target), "the command line")


def _of_file(path: Path, roster: Roster) -> Iterator[tuple[str, Wanted]]:
    roster.files.append(path)
    found = look(path)
    roster.problems.extend(f"{path}: {note}" for note in found.notes)
    for name, server in found.servers.items():
        yield name, Wanted(server, str(path))
    for name, why in found.unusable.items():
        yield name, Wanted(Server(), str(path), why)


def url_name(url: str) -> str:
    """A server's name from its address: host, port and path, without what all have."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    path = parts.path.strip("/").removesuffix("mcp").strip("/")
    return _ODD.sub("-", f"{host}-{path}" if path else host).strip("-") or "server"


def _free(name: str, roster: Roster) -> str:
    name = f"{name}-server" if name in BUILT_IN else name
    number, free = 2, name
    while free in roster.wanted:
        number, free = number + 1, f"{name}-{number}"
    return free
