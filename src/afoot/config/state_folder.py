"""The files of the state folder: the gateway's secrets, lists, and the address of the one that runs.

Only the owner may read them. `StoredList` is a list in such a file that several processes may change.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import DecodeError, Struct, json

from afoot.config.settings import home
from afoot.errors import CallerError

KEY_BYTES = 32
TOKEN_MIN_CHARS = 32
OTHERS = 0o077  # the bits of a mode for everybody but the owner
DEMO = "demo"  # the folder in it for the state of `afoot demo`, which mixes with nothing else
T = TypeVar("T", bound=Struct)


class GatewayAddress(Struct, omit_defaults=True):
    """The address of a running gateway, and the operator's token for it."""

    mcp: str
    console: str
    token: str
    pid: int
    born: str = ""  # `process_birth` of that process; the system gives its pid to another one later


def sealing_key() -> bytes:
    """The key that seals the state in requests; made at first use. Raises CallerError."""
    return _key("key", "move it away, and a new one is made")


def operator_token() -> str:
    """The operator's token; made at first use. Raises CallerError."""
    found = _secret("token", 24)
    if len(found) < TOKEN_MIN_CHARS or not (found.isascii() and found.isprintable()):
        raise CallerError(
            f"{home() / 'token'}: the operator's token must have at least {TOKEN_MIN_CHARS} characters, all"
            " printable ASCII; move it away, and a new one is made"
        )
    return found


def link_key() -> bytes:
    """The key by which extension and gateway know each other; made at first use. Raises CallerError."""
    return _key("link.key", "`afoot browser --rotate` makes a new one")


def rotate_link_key() -> bytes:
    """Make another key for the extension; the old one opens nothing any more."""
    write_private(home() / "link.key", secrets.token_hex(KEY_BYTES).encode())
    return link_key()


def exposed_files() -> list[Path]:
    """The state folder and what is in it, as far as others than the owner have rights there.

    A copy or a restored backup may have lost its modes. Links, and files of others, are not ours to change.
    """
    folder = home()
    try:
        names = [folder, *sorted(folder.iterdir())]
    except OSError:
        return []
    return [one for one in names if _is_exposed(one)]


def restore_modes() -> list[Path]:
    """Take the rights of others away from the state folder and its files; gives those that had some."""
    changed = list[Path]()
    for one in exposed_files():
        with suppress(OSError):
            one.chmod(one.stat().st_mode & 0o7777 & ~OTHERS)
            changed.append(one)
    return changed


def refuse_folder_of_others() -> None:
    """Raise CallerError if another user owns the state folder: they could replace every secret in it.

    Root is trusted, and root itself may use any folder, as processes in containers do.
    """
    folder = home()
    with suppress(OSError):  # a folder that cannot be looked at is explained where it is used
        owner = folder.stat().st_uid
        if owner not in (0, os.geteuid()) and os.geteuid() != 0:
            raise CallerError(
                f"state folder {folder}: it belongs to another user (uid {owner}), who could replace the keys"
                " and tokens in it; set AFOOT_HOME to a folder of your own"
            )


def _is_exposed(file: Path) -> bool:
    try:
        found = file.lstat()
    except OSError:
        return False
    is_ours = found.st_uid == os.geteuid() and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    return is_ours and bool(found.st_mode & OTHERS)


def announce_gateway(address: GatewayAddress) -> GatewayAddress | None:
    """Leave the address where client commands find it; gives the one that stood there, if it still runs."""
    before = running_gateway()
    write_private(home() / "gateway.json", json.encode(address))
    return before


def withdraw_gateway(address: GatewayAddress, before: GatewayAddress | None = None) -> None:
    """Take the address away, if it is still ours; a gateway that was there before is found again."""
    known = running_gateway()
    if known is None or known.pid != address.pid:
        return
    if before is not None and _lives(before):
        write_private(home() / "gateway.json", json.encode(before))
    else:
        (home() / "gateway.json").unlink(missing_ok=True)


def running_gateway() -> GatewayAddress | None:
    """The gateway that was announced, if its process lives."""
    return _announced(home())


def running_demo() -> GatewayAddress | None:
    """The demo that runs, if one does; commands that only look may go there, and no host does."""
    return _announced(home() / DEMO)


def _announced(folder: Path) -> GatewayAddress | None:
    try:
        address = json.decode((folder / "gateway.json").read_bytes(), type=GatewayAddress)
    except (OSError, DecodeError, UnicodeDecodeError):
        return None
    return address if _lives(address) else None


def process_birth(pid: int) -> str:
    """The boot id and the start time of a process, which identify it; empty if they are unknown.

    Also empty for a process that has ended, and whose parent has not asked for its end yet (a zombie).
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # the name before may have spaces
    return "" if fields[0] in "ZX" else f"{boot}:{fields[19]}"  # state, and `starttime`


def write_private(file: Path, data: bytes) -> None:
    """Write a file whole or not at all, and never readable by others; raises CallerError."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        draft.replace(file)
    except OSError as error:
        why = error.strerror or error
        raise CallerError(f"state folder {file.parent}: cannot be written ({why}); set AFOOT_HOME") from None


class StoredList(Generic[T]):
    """A list in a file of the state folder, which other processes may change too."""

    def __init__(self, name: str, kind: type[T]) -> None:
        self._file = home() / name
        self._kind = kind
        self._known: tuple[int, ...] = (-1,)

    def read(self) -> list[T] | None:
        """The list, or None if it has not changed since the last read or write. Raises CallerError."""
        now = self._stamp()
        if now == self._known:
            return None
        try:
            found = json.decode(self._file.read_bytes(), type=list[self._kind]) if now else list[T]()
        except (OSError, DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CallerError(f"{self._file}: cannot be read ({error}); mend it, or move it away") from None
        self._known = now
        return found

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep out other processes that lock the list too, as long as the block lasts; raises CallerError."""
        file = self._file.with_name(f".{self._file.name}.lock")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CallerError(f"{file}: cannot be written ({error.strerror})") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def write(self, things: list[T]) -> None:
        """Write the list; raises CallerError, even if the file became unreadable only after it was read."""
        if self._stamp() != self._known:
            self.read()  # a file that cannot be read is not overwritten
        write_private(self._file, json.format(json.encode(things)))
        self._known = self._stamp()

    def _stamp(self) -> tuple[int, ...]:
        """Numbers that change with the file, which is never written in place; empty if there is none."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise CallerError(f"{self._file}: cannot be read ({error.strerror})") from None
        return found.st_ino, found.st_mtime_ns, found.st_size


def _lives(address: GatewayAddress) -> bool:
    """Whether the process of a gateway lives; another one with the same pid is not it."""
    try:
        os.kill(address.pid, 0)
    except (OSError, OverflowError):
        return False
    return not address.born or process_birth(address.pid) == address.born


def _key(name: str, fix: str) -> bytes:
    try:
        found = bytes.fromhex(_secret(name, KEY_BYTES))
    except ValueError:
        found = b""
    if len(found) != KEY_BYTES:
        raise CallerError(f"{home() / name} is no key; {fix}")
    return found


def _secret(name: str, size: int) -> str:
    refuse_folder_of_others()
    file = home() / name
    try:
        found = file.read_text().strip()
    except FileNotFoundError:
        found = ""
    except UnicodeDecodeError:
        raise CallerError(f"{file}: is no text; move it away, and a new one is made") from None
    except OSError as error:
        raise CallerError(f"{file}: cannot be read ({error.strerror}); mend it, or move it away") from None
    if not found:
        found = secrets.token_hex(size)
        write_private(file, found.encode())
    return found
