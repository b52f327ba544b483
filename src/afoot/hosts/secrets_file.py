"""`read_all` and `update` keep the secrets of adopted servers in secrets.env, readable by its owner only.

A config names a secret as `${secret:NAME}`.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from afoot.config.settings import home
from afoot.hosts import files

REFERENCE_BEGINS = "${secret:"  # also of one with a default: `${secret:NAME:-default}`
REFERENCE = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")


def path() -> Path:
    """The file of secrets."""
    return home() / "secrets.env"


def environment() -> dict[str, str]:
    """All variables that a config may name: the environment, and each secret as `secret:NAME`."""
    return {**os.environ, **{f"secret:{name}": value for name, value in read_all().items()}}


def read_all() -> dict[str, str]:
    """All secrets by name; other lines are skipped."""
    return _parse(files.read(path()) or "")


def reference(name: str) -> str:
    """The reference to a secret in a config."""
    return f"${{secret:{name}}}"


def free_name(server: str, key: str, value: str, taken: Mapping[str, str]) -> str:
    """A name for a server's secret; with a number if the name has another value already."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", f"{server}_{key}").strip("_").upper()
    plain = plain if plain[:1].isalpha() else f"SECRET_{plain}"
    names = [plain, *(f"{plain}_{number}" for number in range(2, 1000))]
    return next(name for name in names if taken.get(name, value) == value)


def fill(text: str, known: Mapping[str, str]) -> str:
    """A text with its references replaced by the secrets."""
    return REFERENCE.sub(lambda found: known.get(found[1], found[0]), text)


def update(added: Mapping[str, str], removed: Iterable[str] = ()) -> None:
    """Add secrets and delete others; all other lines stay."""
    before = files.read(path())
    gone = {*added, *removed}
    lines = [line for line in (before or "").split("\n") if line and line.partition("=")[0] not in gone]
    lines += [f"{name}={_encode_value(value)}" for name, value in added.items()]
    after = "".join(f"{line}\n" for line in lines)
    if after == (before or ""):
        return
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if before is not None:
        path().chmod(0o600)
    files.replace(path(), before, after, mode=0o600, keeps_backup=False)


def _parse(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and re.fullmatch(r"\w+", name, re.ASCII):
            found[name] = _decode_value(value)
    return found


def _encode_value(value: str) -> str:
    """A value as it is, if it is one plain line without quotes; else as a JSON string."""
    return value if re.fullmatch(r"[!#-~]+(?: [!#-~]+)*", value) else json.dumps(value)


def _decode_value(value: str) -> str:
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except ValueError:
        return value
