"""Secrets that hosts kept in their files: in the state folder, for its owner's eyes, named in the config."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from afoot.config import home
from afoot.hosts import file

REFERENCE = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")


def place() -> Path:
    """The file of secrets."""
    return home() / "secrets.env"


def lookup(name: str) -> str | None:
    """The secret of that name, which stands in the config as `${secret:NAME}`."""
    return every().get(name)


def environment() -> dict[str, str]:
    """This process's variables, and each secret as `secret:NAME`: all that a config may refer to."""
    return {**os.environ, **{f"secret:{name}": value for name, value in every().items()}}


def every() -> dict[str, str]:
    """All secrets by name; a line that is none is passed over."""
    return _parsed(file.read(place()) or "")


def reference(name: str) -> str:
    """How a config names a secret."""
    return f"${{secret:{name}}}"


def name_for(server: str, key: str, value: str, taken: Mapping[str, str]) -> str:
    """The name of a server's secret; another one if that name means something else."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", f"{server}_{key}").strip("_").upper()
    plain = plain if plain[:1].isalpha() else f"SECRET_{plain}"
    names = [plain, *(f"{plain}_{number}" for number in range(2, 1000))]
    return next(name for name in names if taken.get(name, value) == value)


def filled(text: str, known: Mapping[str, str]) -> str:
    """A text with its secrets in it."""
    return REFERENCE.sub(lambda found: known.get(found[1], found[0]), text)


def change(added: Mapping[str, str], removed: Iterable[str] = ()) -> None:
    """Add secrets and forget others; other lines stay as they are."""
    before = file.read(place())
    gone = {*added, *removed}
    lines = [line for line in (before or "").split("\n") if line and line.partition("=")[0] not in gone]
    lines += [f"{name}={_written(value)}" for name, value in added.items()]
    after = "".join(f"{line}\n" for line in lines)
    if after == (before or ""):
        return
    place().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if before is not None:
        place().chmod(0o600)
    file.replace(place(), before, after, mode=0o600, is_copied=False)


def _parsed(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and re.fullmatch(r"\w+", name, re.ASCII):
            found[name] = _read(value)
    return found


def _written(value: str) -> str:
    """As it is, if that is one line without quotes; else as a JSON string."""
    return value if re.fullmatch(r"[!#-~]+(?: [!#-~]+)*", value) else json.dumps(value)


def _read(value: str) -> str:
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except ValueError:
        return value
