"""What a login to a server left: its tokens and our registration, kept in the state folder (U7, S4)."""

import logging
import shlex
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from msgspec import DecodeError, Struct, json

from afoot import state
from afoot.config import home
from afoot.errors import ToolError

Stamp = tuple[int, ...]

log = logging.getLogger("afoot.servers")


class Client(Struct, frozen=True, omit_defaults=True):
    """Who we are to an authorization server: registered by us, or named in the configuration."""

    id: str
    secret: str = ""
    method: str = ""  # how it shows itself: none, client_secret_basic, client_secret_post
    redirect: str = ""  # the address that it was registered with
    issuer: str = ""  # the authorization server that knows it, and no other

    def __repr__(self) -> str:
        return f"Client({self.id!r})"


class Login(Struct, frozen=True, omit_defaults=True):
    """A login to the server at one address. Without an access token it is over, and has to be made again."""

    url: str
    access: str = ""
    refresh: str = ""
    until: float | None = None  # wall clock
    scope: str = ""
    token_url: str = ""
    resource: str = ""
    client: Client | None = None
    header: str = ""  # WWW-Authenticate of the refusal that it was the answer to

    def __repr__(self) -> str:
        return f"Login({self.url!r})"  # never its tokens: it may stand in a traceback


class Store:
    """One file a server and address, for its owner's eyes. Other processes may change it too."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or home() / "logins"

    def stamp(self, name: str, url: str) -> Stamp:
        """What changes with the file; nothing if there is none. It is never written in place."""
        try:
            found = self._file(name, url).stat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self, name: str, url: str) -> Login | None:
        """The login to a server at this address: what belongs to another one is not given away."""
        try:
            login = json.decode(self._file(name, url).read_bytes(), type=Login)
        except FileNotFoundError:
            return None
        except (OSError, DecodeError, UnicodeDecodeError):
            log.warning("server %s: its login cannot be read: %s", name, self._file(name, url))
            return None
        return login if login.url == url else None

    def write(self, name: str, login: Login) -> None:
        """Keep a login instead of the one before; raises CallerError."""
        state.keep(self._file(name, login.url), json.encode(login))

    def clear(self, name: str) -> bool:
        """Keep nothing of a server, whatever its address; True if there was something."""
        found = list(self._folder.glob(f"{_plain(name)}-*.json"))
        for file in found:
            file.unlink(missing_ok=True)
        return bool(found)

    def _file(self, name: str, url: str) -> Path:
        return self._folder / f"{_plain(name)}-{_digest(url)}.json"


def _plain(name: str) -> str:
    """A server's name in that of a file: a long one would be none; with its digest it stays its own."""
    return f"{quote(name, safe='')[:80]}-{_digest(name)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def login_needed(name: str, why: str = "wants a login") -> ToolError:
    """The error of a call that cannot be made before somebody has logged in."""
    return ToolError.auth(f"server {name} {why}: run `afoot servers login {shlex.quote(name)}`")
