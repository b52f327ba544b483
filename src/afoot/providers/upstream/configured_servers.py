"""`Roster` lists the configured servers: those of the config file, of hosts' files and of targets.

`gather_servers` makes it. `KnownServers` keeps what servers offered the last time in the state folder, so
that a known server is started only when it is used.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlsplit

from msgspec import DecodeError, Struct, json
from msgspec.structs import asdict, replace

from afoot.config import state_folder
from afoot.config.mcp_json import read_host_file
from afoot.config.settings import ConfigError, Settings
from afoot.config.tables import BUILT_IN_SERVERS, LIMITS, TRANSPORTS, Server, expand_home, nearest_hint
from afoot.errors import CallerError
from afoot.providers.upstream.server_lists import ServerLists

FILE_SUFFIXES = (".json", ".jsonc", ".toml")

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_DEFAULTS = Server()

log = logging.getLogger("afoot.servers")


class ServerEntry(Struct, frozen=True):
    """The settings of a server, who wants it, and why it cannot be used if so."""

    server: Server
    origin: str = ""  # "the config file", "the command line", "the program", or a path
    why: str = ""
    target: object = None  # the server itself, if it is an object of this program

    def reaches(self, other: "ServerEntry") -> bool:
        """Whether a connection for this entry can serve the other one, too: only limits differ."""
        plain = dict.fromkeys(LIMITS)
        servers = [replace(one.server, approval="", concurrency=0, **plain) for one in (self, other)]
        return servers[0] == servers[1] and self.why == other.why and self.target is other.target


class FoundServer(Struct, frozen=True, eq=False):
    """A server object that was found in a file or module when that was read for its tools.

    The first connection takes the object; a later one, after a reload of the server, reads the file again.
    """

    place: str  # the file or module
    attribute: str
    found: list[object]  # the object, until it is taken

    def take(self) -> object:
        """Return the object to the first who asks, and None to everybody else."""
        return self.found.pop() if self.found else None


class Roster(Struct, frozen=True):
    """All servers that should be there, the problems found, and the files that were read."""

    entries: dict[str, ServerEntry] = {}
    problems: list[str] = []
    files: list[Path] = []


def is_server_target(target: object) -> bool:
    """Whether a target names servers, and not functions."""
    if not isinstance(target, str | Path):
        return not callable(target)
    text = str(target)
    return text.startswith(("http://", "https://")) or text.endswith(FILE_SUFFIXES) or ":" in text


def gather_servers(settings: Settings, targets: Sequence[object] = (), *, own_address: str = "") -> Roster:
    """Return the servers of settings and targets; raises ConfigError for a target that cannot be read.

    `own_address` is the HOST:PORT on which the gateway itself listens; empty if it does not listen. A host's
    file that is named in the settings and cannot be read costs only its own servers.
    """
    roster = Roster({}, [], [])
    tables = {name: server for name, server in settings.servers.items() if name not in BUILT_IN_SERVERS}
    for name, server in tables.items():
        if server.way():
            roster.entries[name] = _checked(ServerEntry(server, "the config file"), own_address)
    for target in filter(is_server_target, targets):
        for name, entry in _target_entries(target, roster):
            _add_entry(roster, name, _checked(entry, own_address), tables)
    for named in settings.mcp_servers:
        try:
            found = list(_file_entries(Path(expand_home(named)), roster))
        except ConfigError as error:
            roster.problems.append(str(error))
            continue
        for name, entry in found:
            _add_entry(roster, name, _checked(entry, own_address), tables)
    for name, server in tables.items():
        if name not in roster.entries:
            why = f"needs one of {', '.join(TRANSPORTS)}{nearest_hint(name, roster.entries)}"
            roster.entries[name] = ServerEntry(server, "the config file", why)
    return roster


def _add_entry(roster: Roster, name: str, entry: ServerEntry, tables: dict[str, Server]) -> None:
    """Add an entry unless its name is taken. A table of the config file without a way adds to it."""
    if name in BUILT_IN_SERVERS:
        told = f"server {name} of {entry.origin} is called {_free_name(name, roster)} here"
        roster.problems.append(f"{told}: {name} means {BUILT_IN_SERVERS[name]}")
        name = _free_name(name, roster)
    before = roster.entries.get(name)
    if before is not None:
        told = f"server {name} of {entry.origin} is left out: {before.origin} has one of that name"
        roster.problems.append(told)
        return
    table = tables.get(name)
    if table is not None:
        given = {key: value for key, value in asdict(table).items() if value != getattr(_DEFAULTS, key)}
        entry = replace(entry, server=replace(entry.server, **given))
    roster.entries[name] = entry


def _checked(entry: ServerEntry, own_address: str) -> ServerEntry:
    """Mark an entry as unusable if its address is that of this gateway: its calls would never end."""
    address = urlsplit(entry.server.url).netloc.replace("localhost", "127.0.0.1")
    if not entry.why and address and address == own_address:
        return replace(entry, why="is this gateway itself")
    return entry


def _target_entries(given: object, roster: Roster) -> Iterator[tuple[str, ServerEntry]]:
    if isinstance(given, FoundServer):
        module = f"{given.place}:{given.attribute}"
        name = _free_name(_module_name(given.place), roster)
        yield name, ServerEntry(Server(module=module), "the command line", target=given)
        return
    if not isinstance(given, str | Path):
        kind = f"{type(given).__module__}:{type(given).__qualname__}"
        name = _NOT_IN_NAMES.sub("-", str(getattr(given, "name", "") or "server")).strip("-") or "server"
        yield _free_name(name, roster), ServerEntry(Server(module=kind), "the program", target=given)
        return
    target = str(given)
    if target.startswith(("http://", "https://")):
        yield _free_name(url_name(target), roster), ServerEntry(Server(url=target), "the command line")
    elif target.endswith(FILE_SUFFIXES):
        yield from _file_entries(Path(target), roster)
    else:
        name = _free_name(_module_name(target.rpartition(":")[0]), roster)
        yield name, ServerEntry(Server(module=target), "the command line")


def _file_entries(path: Path, roster: Roster) -> Iterator[tuple[str, ServerEntry]]:
    roster.files.append(path)
    found = read_host_file(path)
    roster.problems.extend(f"{path}: {note}" for note in found.notes)
    for name, server in found.servers.items():
        yield name, ServerEntry(server, str(path))
    for name, why in found.unusable.items():
        yield name, ServerEntry(Server(), str(path), why)


def _module_name(place: str) -> str:
    """Return the last part of the name of a file or module."""
    return Path(place.removesuffix(".py")).name.rpartition(".")[2]


def url_name(url: str) -> str:
    """Return a server's name from its address: host, port and path, without the `/mcp` that all have."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    path = parts.path.strip("/").removesuffix("mcp").strip("/")
    return _NOT_IN_NAMES.sub("-", f"{host}-{path}" if path else host).strip("-") or "server"


def _free_name(name: str, roster: Roster) -> str:
    name = f"{name}-server" if name in BUILT_IN_SERVERS else name
    number, free = 2, name
    while free in roster.entries:
        number, free = number + 1, f"{name}-{number}"
    return free


class KnownLists(Struct):
    """The lists of a server, as they are stored, and the digest of the settings that they belong to."""

    digest: str
    lists: ServerLists


class KnownServers:
    """The stored lists of all servers, one file each, readable by the owner only; none without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def read(self, name: str, digest: str) -> ServerLists | None:
        """Return what a server offered with the same settings; None if that is not known."""
        try:
            note = json.decode(self._file(name).read_bytes(), type=KnownLists)
        except (OSError, DecodeError, UnicodeDecodeError):
            return None
        return note.lists if note.digest == digest else None

    def write(self, name: str, digest: str, lists: ServerLists) -> None:
        """Store what a server offers. Nothing depends on it, so a full disk is only logged."""
        if self._folder is None:
            return
        try:
            state_folder.write_private(self._file(name), json.encode(KnownLists(digest, lists)))
        except CallerError as error:
            log.warning("server %s: what it offers is not kept: %s", name, error)

    def forget(self, name: str) -> None:
        """Delete what is stored of a server."""
        if self._folder is not None:
            with suppress(OSError):  # nothing depends on it
                self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        # A long name would be no file name; the digest keeps a shortened one unique.
        short = quote(name, safe="")[:80]
        return (self._folder or Path()) / f"{short}-{sha256(name.encode()).hexdigest()[:8]}.json"


def settings_digest(server: Server) -> str:
    """Return a digest that changes when a server is reached in another way; its limits do not count."""
    reached = (server.command, server.args, server.env, server.cwd, server.url, server.headers, server.module)
    return sha256(json.encode((*reached, server.auth, server.client_id, _file_stamp(server)))).hexdigest()


def _file_stamp(server: Server) -> list[int]:
    """Return what changes with the file of a server object: it may offer something else then."""
    path = re.sub(r"\.py:.*", ".py", server.module)
    with suppress(OSError):
        if path.endswith(".py"):
            found = Path(path).stat()
            return [found.st_mtime_ns, found.st_size]
    return []
