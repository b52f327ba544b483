"""Variables as a host writes them, where afoot would read them otherwise or not at all."""

import re
from collections.abc import Callable
from pathlib import Path

_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_FOLDER = re.compile(r"\$\{workspaceFolder(Basename)?\}")


def translate(text: str, style: str, folder: Path | None) -> str:
    """A text of a host's file with `${VAR}` for `$VAR`, and the project's folder where it is named."""
    if style == "shell":
        return _BARE.sub(r"${\1}", text)
    if style == "editor" and folder is not None:
        return _FOLDER.sub(lambda found: folder.name if found[1] else str(folder), text)
    return text


def deep(value: object, change: Callable[[str, str], str], key: str = "") -> object:
    """A value with every text in it changed; the change is told the nearest key above the text."""
    if isinstance(value, dict):
        return {name: deep(one, change, str(name)) for name, one in value.items()}
    if isinstance(value, list):
        return [deep(one, change, f"{key}_{number}") for number, one in enumerate(value, 1)]
    return change(key, value) if isinstance(value, str) else value
