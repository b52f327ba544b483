"""`ExtensionCopies` makes the folders with copies of the extension that browsers load, and updates them (B7).

The folder of a copy is opened once. All files are written below that descriptor, never through a link.
"""

import os
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from afoot.config.state_folder import StoredList
from afoot.errors import CallerError

SOURCE_FOLDER = Path(__file__).parents[2] / "extension"
# The side panel is made of parts of the console, which a copy has in this folder. They stand in one place,
# so that surfaces which show the same call have the same words, figures and colours.
SHARED_FOLDER = "shared"
SHARED_SOURCE = SOURCE_FOLDER.parent / "web"
SHARED_FILES = (
    *(f"styles/{name}.css" for name in ("tokens", "base", "narrow")),
    *(
        f"components/marks/{name}.js"
        for name in ("brand_mark", "clocks", "icon", "progress_bar", "state_icon")
    ),
    *(
        f"components/narrow/{name}.js"
        for name in ("flat_form", "narrow_cancel", "narrow_question", "narrow_row")
    ),
    *(f"lib/{name}.js" for name in ("dom", "fold", "format", "signal", "state", "time")),
    *(f"lib/call/{name}.js" for name in ("call_tree", "call_words", "clock_reading")),
)  # fmt: skip
DEFAULT_FOLDER = "afoot-extension"  # in the home folder, where a file dialog shows it
PAIRING_FILE = "pairing.json"
MANIFEST = "manifest.json"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ExtensionManifest(Struct, frozen=True):
    """The parts of the extension's manifest.json that the gateway needs."""

    version: str
    key: str = ""

    @property
    def id(self) -> str:
        """The extension's id, as Chromium derives it from the key."""
        digest = sha256(b64decode(self.key)).hexdigest()[:32]
        return "".join(chr(ord("a") + int(digit, 16)) for digit in digest)

    @property
    def origin(self) -> str:
        """The `Origin` of its requests."""
        return f"chrome-extension://{self.id}"


class ExtensionCopy(Struct, frozen=True):
    """A folder with a copy of the extension, its version, and its files."""

    folder: str
    version: str
    files: list[str]


class Pairing(Struct, frozen=True):
    """The contents of pairing.json: the address and the key with which the extension connects."""

    url: str
    key: str


class ExtensionCopies:
    """The copies that this user has made, as the state folder lists them."""

    def __init__(self) -> None:
        self._file = StoredList("browser.json", ExtensionCopy)
        self._copies: list[ExtensionCopy] = []

    def all(self) -> list[ExtensionCopy]:
        """Every copy whose folder still holds the extension; raises CallerError."""
        found = self._file.read()
        if found is not None:
            self._copies = found
        return [copy for copy in self._copies if is_copy(Path(copy.folder))]

    def make(self, folder: Path) -> ExtensionCopy:
        """Copy the extension into a folder, or update the copy in it; raises CallerError."""
        path = _absolute(folder)
        others = [copy for copy in self.all() if copy.folder != str(path)]
        before = next((copy for copy in self._copies if copy.folder == str(path)), None)
        copy = copy_extension(path, before.files if before else ())
        self._file.write([*others, copy])
        self._copies = [*others, copy]
        return copy

    def refresh(self) -> list[str]:
        """Update every copy that has another version; returns all folders. Raises CallerError."""
        newest = shipped_manifest().version
        return [
            (copy if copy.version == newest else self.make(Path(copy.folder))).folder for copy in self.all()
        ]

    def write_pairings(self, url: str, key: bytes) -> list[str]:
        """Write the gateway's address and key into every copy; returns what went wrong."""
        problems = list[str]()
        for copy in self.all():
            try:
                write_pairing(Path(copy.folder), url, key)
            except CallerError as error:
                problems.append(str(error))
        return problems


def shipped_manifest() -> ExtensionManifest:
    """The manifest of the extension that is shipped with this gateway; raises CallerError."""
    try:
        return msgspec.json.decode((SOURCE_FOLDER / MANIFEST).read_bytes(), type=ExtensionManifest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CallerError(f"the extension is not where it should be ({error}); install afoot again") from None


def is_older(version: str, than: str) -> bool:
    """Whether a version is lower than another; a text that is no version is lower than all."""
    return _version_numbers(version) < _version_numbers(than)


def is_copy(folder: Path) -> bool:
    """Whether this folder belongs to this user and holds the extension."""
    with suppress(CallerError), _open_folder(folder) as top:
        return _is_ours(top)
    return False


def copy_extension(folder: Path, before: "tuple[str, ...] | list[str]" = ()) -> ExtensionCopy:
    """Copy the extension into a new or an empty folder, or over an older copy; raises CallerError."""
    sources = extension_sources()
    with suppress(FileExistsError), _os_errors(folder):
        folder.mkdir(mode=0o700, parents=True)
    with _open_folder(folder) as top, _os_errors(folder):
        if os.listdir(top) and not _is_ours(top):
            raise CallerError(
                f"{folder} is not empty, and not a copy of the extension; name another: --to DIR"
            )
        os.fchmod(top, 0o700)
        # The manifest is written last: a folder that has it holds a complete copy.
        for name in sorted(sources, key=lambda name: (name == MANIFEST, name)):
            data = sources[name].read_bytes()
            if _read(top, name) != data:
                _write(top, name, data)
        for name in set(before) - sources.keys() - {PAIRING_FILE}:
            _remove(top, name)
    return ExtensionCopy(str(folder), shipped_manifest().version, sorted(sources))


def extension_sources() -> dict[str, Path]:
    """The files that a copy has, by their names in it."""
    own = {
        file.relative_to(SOURCE_FOLDER).as_posix(): file
        for file in SOURCE_FOLDER.rglob("*")
        if file.is_file()
        and file.name != PAIRING_FILE
        and not file.name.startswith(".")
        and file.suffix != ".ts"
    }
    return {**own, **{f"{SHARED_FOLDER}/{name}": SHARED_SOURCE / name for name in SHARED_FILES}}


def write_pairing(folder: Path, url: str, key: bytes) -> None:
    """Write the gateway's address and key into the copy in this folder; raises CallerError."""
    with _open_folder(folder) as top, _os_errors(folder):
        if not _is_ours(top):
            raise CallerError(f"{folder} has no copy of the extension any more; `afoot browser` makes one")
        _write(top, PAIRING_FILE, msgspec.json.encode(Pairing(url, key.hex())))


def link_url(url: str) -> str:
    """The WebSocket address for the extension, from the gateway's address."""
    return f"ws{url.removeprefix('http').rstrip('/')}/link" if url else ""


def _absolute(folder: Path) -> Path:
    """The absolute path of a folder. Links in it are resolved, except the folder's own name."""
    whole = Path(os.path.abspath(os.path.expanduser(folder)))
    return whole.parent.resolve() / whole.name


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    """Open a folder that belongs to this user and is no link; raises CallerError."""
    with _os_errors(folder):
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
        found = msgspec.json.decode(_read(top, MANIFEST) or b"", type=ExtensionManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(found.key) and found.key == shipped_manifest().key


def _read(top: int, name: str) -> bytes | None:
    """The contents of a file; None if there is none, or it is a link."""
    *parents, last = name.split("/")
    try:
        with _below(top, parents) as folder, os.fdopen(os.open(last, _READ, dir_fd=folder), "rb") as file:
            return file.read()
    except OSError:
        return None


def _write(top: int, name: str, data: bytes) -> None:
    """Write a file atomically."""
    *parents, last = name.split("/")
    draft = f".{last}.{os.getpid()}"
    with _below(top, parents) as folder:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        with os.fdopen(os.open(draft, _CREATE, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
        os.replace(draft, last, src_dir_fd=folder, dst_dir_fd=folder)


def _remove(top: int, name: str) -> None:
    """Remove a file of an older version."""
    *parents, last = name.split("/")
    with suppress(OSError), _below(top, parents) as folder:
        os.unlink(last, dir_fd=folder)


@contextmanager
def _below(top: int, parents: list[str]) -> Iterator[int]:
    """Open a folder below, made if it is missing, never reached through a link."""
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
def _os_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise CallerError(f"{folder}: {error.strerror or error}") from None


def _version_numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    is_version = all(part.isdecimal() and len(part) < 10 for part in parts)
    return tuple(int(part) for part in parts) if is_version else ()
