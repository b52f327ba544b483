"""Where afoot stands with each host: whether its file has our entry, and whether what it starts is there."""

from pathlib import Path

from msgspec import Struct

from afoot.hosts import file
from afoot.hosts.document import Document
from afoot.hosts.entry import NAME, is_ours, is_there, program
from afoot.hosts.file import FileError
from afoot.hosts.known import HOSTS


class Check(Struct, frozen=True):
    """One file of one host.

    `state`: absent (no file), missing (no entry), ours, gone (ours, but its program is not there), foreign
    (an entry `afoot` that starts something else), unreadable.
    """

    host: str
    title: str
    scope: str
    file: Path
    state: str
    command: str = ""  # what the entry starts
    problem: str = ""  # why it is unreadable
    servers: list[str] = []  # the host's other servers


def check(folder: Path | None = None) -> list[Check]:
    """Every host's file that exists; a project's files are looked for in `folder`, or where we are."""
    return [one for one in survey(folder) if one.state != "absent"]


def survey(folder: Path | None = None) -> list[Check]:
    """Every host with its user's file, there or not, and a project's files that are there."""
    found = list[Check]()
    for host in HOSTS.values():
        found.append(_checked(host.name, "user", host.user()))
        own = host.file("project", folder or Path.cwd())
        # At home a project's file may be the user's own.
        if own is not None and own.is_file() and own != host.user():
            found.append(_checked(host.name, "project", own))
    return found


def _checked(name: str, scope: str, path: Path) -> Check:
    host = HOSTS[name]
    try:
        text = file.read(path)
        servers = Document(host, path, text or "").servers()
    except FileError as error:
        return Check(name, host.title, scope, path, "unreadable", problem=str(error))
    entry = servers.get(NAME)
    others = [one for one in servers if one != NAME]
    if text is None or entry is None:
        state = "absent" if text is None else "missing"
    elif is_ours(entry):
        state = "ours" if is_there(program(entry)) else "gone"
    else:
        state = "foreign"
    return Check(name, host.title, scope, path, state, program(entry), servers=others)
