"""`survey_hosts` says which hosts of this machine have afoot already."""

from pathlib import Path

from msgspec import Struct

from afoot.hosts import files
from afoot.hosts.document import (
    ENTRY_NAME,
    HostDocument,
    can_start,
    entry_command,
    is_ours,
)
from afoot.hosts.files import FileError
from afoot.hosts.known_hosts import HOSTS


class HostCheck(Struct, frozen=True):
    """The state of one file of one host.

    `state`: absent (no file), missing (no entry), ours, gone (ours, but its program does not exist), foreign
    (an entry `afoot` that starts something else), unreadable.
    """

    host: str
    title: str
    scope: str
    file: Path
    state: str
    command: str = ""  # of the entry
    problem: str = ""  # of an unreadable file
    servers: list[str] = []  # the host's other servers


def check_hosts(folder: Path | None = None) -> list[HostCheck]:
    """The host files that exist; project files are looked for in `folder`, by default the current one."""
    return [one for one in survey_hosts(folder) if one.state != "absent"]


def survey_hosts(folder: Path | None = None) -> list[HostCheck]:
    """Every host with its user's file, whether it exists or not, and the project files that exist."""
    found = list[HostCheck]()
    for host in HOSTS.values():
        found.append(_check_file(host.name, "user", host.user()))
        own = host.file("project", folder or Path.cwd())
        # In the home folder, a project's file may be the user's file.
        if own is not None and own.is_file() and own != host.user():
            found.append(_check_file(host.name, "project", own))
    return found


def _check_file(name: str, scope: str, path: Path) -> HostCheck:
    host = HOSTS[name]
    try:
        text = files.read(path)
        servers = HostDocument(host, path, text or "").servers()
    except FileError as error:
        return HostCheck(name, host.title, scope, path, "unreadable", problem=str(error))
    entry = servers.get(ENTRY_NAME)
    others = [one for one in servers if one != ENTRY_NAME]
    if text is None or entry is None:
        state = "absent" if text is None else "missing"
    elif is_ours(entry):
        state = "ours" if can_start(entry_command(entry)) else "gone"
    else:
        state = "foreign"
    return HostCheck(name, host.title, scope, path, state, entry_command(entry), servers=others)
