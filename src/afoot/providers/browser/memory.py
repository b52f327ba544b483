"""The names that tools of pages were given, kept in the state folder: they are the same after a restart."""

import logging
from pathlib import Path

from msgspec import DecodeError, json

from afoot import state
from afoot.errors import CallerError

log = logging.getLogger("afoot.browser")


def read(file: Path | None) -> dict[str, str]:
    """The names, and whose they are; nothing where nothing is kept, or where it cannot be read."""
    if file is None:
        return {}
    try:
        return json.decode(file.read_bytes(), type=dict[str, str])
    except (OSError, DecodeError, UnicodeDecodeError):
        return {}


def write(file: Path | None, held: dict[str, str]) -> None:
    """Keep the names; no call depends on it, so a full disk is only told."""
    if file is None:
        return
    try:
        state.keep(file, json.encode(held))
    except CallerError as error:
        log.warning("the names of pages' tools are not kept: %s", error)
