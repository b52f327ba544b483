"""The extension's files: those that are shipped, and the folders with copies that browsers load (B7).

A copy's folder is opened once and all is written below that one descriptor, never through a link.
"""

import os
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from afoot.errors import CallerError
from afoot.state import Kept

SHIPPED = Path(__file__).parents[2] / "extension"
USUAL = "afoot-extension"  # in the home folder, where a file dialog finds it
PAIRING = "pairing.json"
MANIFEST = "manifest.json"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Manifest(Struct, frozen=True):
    """What we need to know of an extension's manifest."""

    version: str
    key: str = ""

    @property
    def id(self) -> str:
        """The extension's id, as Chromium makes it of the key."""
        digest = sha256(b64decode(self.key)).hexdigest()[:32]
        return "".join(chr(ord("a") + int(digit, 16)) for digit in digest)

    @property
    def origin(self) -> str:
        """What its requests say they come from."""
        return f"chrome-extension://{self.id}"


class Copy(Struct, frozen=True):
    """A folder with a copy that we made, its version, and its files."""

    folder: str
    version: str
    files: list[str]


class Pairing(Struct, frozen=True):
    """What an extension reads before it connects: where to, and the key."""

    url: str
    key: str


class Folders:
    """The folders that we made, as the state folder remembers them."""

    def __init__(self) -> None:
        self._kept = Kept("browser.json", Copy)
        self._copies: list[Copy] = []

    def all(self) -> list[Copy]:
        """Every folder that still is what we made; raises CallerError."""
        found = self._kept.read()
        if found is not None:
            self._copies = found
        return [copy for copy in self._copies if is_copy(Path(copy.folder))]

    def make(self, folder: Path) -> Copy:
        """Copy the extension there, or bring a copy up to date; raises CallerError."""
        place = _place(folder)
        others = [copy for copy in self.all() if copy.folder != str(place)]
        before = next((copy for copy in self._copies if copy.folder == str(place)), None)
        copy = lay(place, before.files if before else ())
        self._kept.write([*others, copy])
        self._copies = [*others, copy]
        return copy

    def refresh(self) -> list[str]:
        """Bring every copy up to date that is not; gives all that are now. Raises CallerError."""
        wanted = shipped().version
        return [
            (copy if copy.version == wanted else self.make(Path(copy.folder))).folder for copy in self.all()
        ]

    def pair(self, url: str, key: bytes) -> list[str]:
        """Tell every copy where the gateway is, and the key; gives what went wrong."""
        problems = list[str]()
        for copy in self.all():
            try:
                pair(Path(copy.folder), url, key)
            except CallerError as error:
                problems.append(str(error))
        return problems


def shipped() -> Manifest:
    """The manifest of the extension that belongs to this gateway; raises CallerError."""
    try:
        return msgspec.json.decode((SHIPPED / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CallerError(f"the extension is not where it should be ({error}); install afoot again") from None


def is_older(version: str, than: str) -> bool:
    """Whether one version comes before another; what is no version comes before all."""
    return _numbers(version) < _numbers(than)


def is_copy(folder: Path) -> bool:
    """Whether this is a folder of ours with the extension in it."""
    with suppress(CallerError), _opened(folder) as top:
        return _is_ours(top)
    return False


def lay(folder: Path, before: "tuple[str, ...] | list[str]" = ()) -> Copy:
    """Copy the extension into a new or an empty folder, or over an older copy; raises CallerError."""
    names = sorted(
        file.relative_to(SHIPPED).as_posix()
        for file in SHIPPED.rglob("*")
        if file.is_file() and file.name != PAIRING and not file.name.startswith(".") and file.suffix != ".ts"
    )
    with suppress(FileExistsError), _told(folder):
        folder.mkdir(mode=0o700, parents=True)
    with _opened(folder) as top, _told(folder):
        if os.listdir(top) and not _is_ours(top):
            raise CallerError(
                f"{folder} is not empty, and not a copy of the extension; name another: --to DIR"
            )
        os.fchmod(top, 0o700)
        for name in sorted(
            names, key=lambda name: name == MANIFEST
        ):  # last: by it a copy is known to be whole
            data = (SHIPPED / name).read_bytes()
            if _read(top, name) != data:
                _write(top, name, data)
        for name in set(before) - set(names) - {PAIRING}:
            _remove(top, name)
    return Copy(str(folder), shipped().version, names)


def pair(folder: Path, url: str, key: bytes) -> None:
    """Tell the extension in this folder where the gateway is, and the key; raises CallerError."""
    with _opened(folder) as top, _told(folder):
        if not _is_ours(top):
            raise CallerError(f"{folder} has no copy of the extension any more; `afoot browser` makes one")
        _write(top, PAIRING, msgspec.json.encode(Pairing(url, key.hex())))


def link_url(url: str) -> str:
    """Where the extension connects to, by the gateway's address."""
    return f"ws{url.removeprefix('http').rstrip('/')}/link" if url else ""


def _place(folder: Path) -> Path:
    """The folder by its whole path; only its own name may not be a link."""
    whole = Path(os.path.abspath(folder.expanduser()))
    return whole.parent.resolve() / whole.name


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """The folder, if it is ours alone; raises CallerError."""
    with _told(folder):
        if folder.is_symlink():
            raise CallerError(f"{folder} is a link; name the folder itself")
        top = os.open(folder, _FOLDER)
    try:
        found = os.fstat(top)
        if found.st_uid != os.geteuid():
            raise CallerError(f"{folder} belongs to somebody else; name another: --to DIR")
        yield top
    finally:
        os.close(top)


def _is_ours(top: int) -> bool:
    """Whether the folder holds our extension, by the key in its manifest."""
    try:
        found = msgspec.json.decode(_read(top, MANIFEST) or b"", type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(found.key) and found.key == shipped().key


def _read(top: int, name: str) -> bytes | None:
    """What is in a file; None if it is not there, or a link."""
    *parents, last = name.split("/")
    try:
        with _below(top, parents) as folder, os.fdopen(os.open(last, _READ, dir_fd=folder), "rb") as file:
            return file.read()
    except OSError:
        return None


def _write(top: int, name: str, data: bytes) -> None:
    """Write a file whole or not at all."""
    *parents, last = name.split("/")
    draft = f".{last}.{os.getpid()}"
    with _below(top, parents) as folder:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        with os.fdopen(os.open(draft, _DRAFT, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
        os.replace(draft, last, src_dir_fd=folder, dst_dir_fd=folder)


def _remove(top: int, name: str) -> None:
    """Remove what an older version had."""
    *parents, last = name.split("/")
    with suppress(OSError), _below(top, parents) as folder:
        os.unlink(last, dir_fd=folder)


@contextmanager
def _below(top: int, parents: list[str]) -> Iterator[int]:
    """A folder below, made if it is missing, never reached through a link."""
    folder = os.dup(top)
    try:
        for part in parents:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=folder)
            deeper = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = deeper
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise CallerError(f"{folder}: {error.strerror or error}") from None


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    is_version = all(part.isdecimal() and len(part) < 10 for part in parts)
    return tuple(int(part) for part in parts) if is_version else ()
