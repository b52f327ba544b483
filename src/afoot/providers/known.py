"""What servers offered the last time, kept in the state folder: a known one is started only when used."""

import logging
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from msgspec import DecodeError, Struct, json

from afoot import state
from afoot.errors import CallerError
from afoot.providers.upstream.lists import Lists
from afoot.tables import Server

log = logging.getLogger("afoot.servers")


class Note(Struct):
    """What a server offered, and for which settings."""

    digest: str
    lists: Lists


class Known:
    """One file a server, for its owner's eyes; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def read(self, name: str, wanted: str) -> Lists | None:
        """What a server offered with the same settings; None if that is not known."""
        try:
            note = json.decode(self._file(name).read_bytes(), type=Note)
        except (OSError, DecodeError, UnicodeDecodeError):
            return None
        return note.lists if note.digest == wanted else None

    def write(self, name: str, wanted: str, lists: Lists) -> None:
        """Keep what a server offers; nothing depends on it, so a full disk is only told."""
        if self._folder is None:
            return
        try:
            state.keep(self._file(name), json.encode(Note(wanted, lists)))
        except CallerError as error:
            log.warning("server %s: what it offers is not kept: %s", name, error)

    def forget(self, name: str) -> None:
        """Keep nothing of a server."""
        if self._folder is not None:
            with suppress(OSError):  # nothing depends on it
                self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        # A long name would be no file name; with its digest it stays its own.
        short = quote(name, safe="")[:80]
        return (self._folder or Path()) / f"{short}-{sha256(name.encode()).hexdigest()[:8]}.json"


def digest(server: Server) -> str:
    """Changes when a server is reached otherwise; its limits do not count."""
    reached = (server.command, server.args, server.env, server.cwd, server.url, server.headers, server.module)
    return sha256(json.encode((*reached, server.auth, server.client_id))).hexdigest()
