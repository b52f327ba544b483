"""The entry `afoot` in a host's file: how this program is started, and whether an entry is ours."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from afoot.hosts.known import Host

NAME = "afoot"


def entry(host: Host, config: Path | None = None) -> dict[str, object]:
    """What a host needs to start `afoot connect`, with the state folder and the config if they are named."""
    command, *args = words()
    found: dict[str, object] = {"type": host.type} if host.type else {}
    found |= {"command": command, "args": [*args, "connect"]}
    named = {
        "AFOOT_HOME": os.environ.get("AFOOT_HOME"),
        "AFOOT_CONFIG": str(config) if config else os.environ.get("AFOOT_CONFIG"),
    }
    variables = {key: str(Path(value).absolute()) for key, value in named.items() if value}
    return found | ({"env": variables} if variables else {})


def words() -> list[str]:
    """How this program is started, from anywhere."""
    program = Path(sys.argv[0])
    if program.name == "afoot":
        found = program if program.is_file() else Path(shutil.which("afoot") or "")
        if found.is_file():
            return [str(found.absolute())]
    return [str(Path(sys.executable).absolute()), "-m", "afoot"]


def is_ours(value: object) -> bool:
    """Whether an entry starts `afoot connect`, wherever that is."""
    args = value.get("args") if isinstance(value, dict) else None
    if not isinstance(args, list) or args[-1:] != ["connect"]:
        return False
    return args[:-1] == ["-m", "afoot"] or (len(args) == 1 and _is_afoot(program(value)))


def program(value: object) -> str:
    """The command of an entry, empty if it has none."""
    command = value.get("command") if isinstance(value, dict) else None
    return command if isinstance(command, str) else ""


def is_there(command: str) -> bool:
    """Whether a command can be started today."""
    return shutil.which(command) is not None


def doubts(command: str) -> list[str]:
    """What may make this path go away."""
    path = Path(command)
    ways = {path, path.resolve()}
    for folder in (parent for way in ways for parent in way.parents):
        if (folder / ".git").exists():
            return [f"{command} lies in a clone ({folder}): it is gone when that is moved or removed"]
    places = {tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", str(_cache())}
    if any(way.is_relative_to(place) for way in ways for place in places):
        return [f"{command} lies in a temporary folder: it is gone when that is cleaned"]
    return []


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_afoot(command: str) -> bool:
    return Path(command.replace("\\", "/")).name in (NAME, f"{NAME}.exe")
