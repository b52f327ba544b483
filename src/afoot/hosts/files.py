"""`replace` and `remove` change files of other programs, whole or not at all, and keep a dated backup."""

import os
import shutil
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from afoot.errors import CallerError


class FileError(CallerError):
    """A file cannot be read or written, or is not what it should be; nothing was written."""


def read(path: Path) -> str | None:
    """The text of a file with its own line endings; None if there is no file. Raises FileError."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FileError(f"{path}, line {line}: it is not UTF-8; left as it is") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None


def replace(
    path: Path, before: str | None, after: str, *, mode: int = 0o644, keeps_backup: bool = True
) -> Path | None:
    """Replace the text of a file, whole or not at all; returns the path of the backup.

    Links are followed; mode and owner stay. Raises FileError, also if the file is no longer `before`.
    """
    target = path.resolve()
    draft = target.with_name(f".{target.name}.afoot-{os.getpid()}")
    backup = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if read(target) != before:
            raise FileError(f"{path} was changed meanwhile; nothing was written, try again")
        backup = _make_backup(target) if before is not None and keeps_backup else None
        _write_draft(draft, after, mode)
        if before is not None:
            _copy_owner_and_mode(draft, target)
        draft.replace(target)
    except OSError as error:
        if backup is not None:
            backup.unlink()
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return backup


def remove(path: Path, before: str) -> Path:
    """Remove a file if its text is still `before`; returns the path of the backup. Raises FileError."""
    target = path.resolve()
    try:
        if read(target) != before:
            raise FileError(f"{path} was changed meanwhile; nothing was written, try again")
        backup = _make_backup(target)
        target.unlink()
    except OSError as error:
        raise FileError(f"{path} cannot be removed: {error.strerror or error}") from None
    return backup


def _make_backup(target: Path) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    names = [f"{target.name}.afoot-{stamp}{more}.bak" for more in ("", *(f"-{n}" for n in range(2, 100)))]
    backup = next(one for name in names if not (one := target.with_name(name)).exists())
    # Created with 0600: nobody else can read it, even before it gets the mode of the original.
    os.close(os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    shutil.copyfile(target, backup)
    _copy_owner_and_mode(backup, target)
    return backup


def _write_draft(draft: Path, text: str, mode: int) -> None:
    draft.unlink(missing_ok=True)
    # Created with 0600: nobody else can read it, even before it gets the mode of the original.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(text.encode("utf-8"))
        out.flush()
        os.fsync(out.fileno())
    os.umask(mask := os.umask(0o077))
    draft.chmod(mode & ~mask)


def _copy_owner_and_mode(path: Path, like: Path) -> None:
    """Give a file the owner and the mode of another."""
    wanted = like.stat()
    found = path.stat()
    if (found.st_uid, found.st_gid) != (wanted.st_uid, wanted.st_gid):
        os.chown(path, wanted.st_uid, wanted.st_gid)
    path.chmod(wanted.st_mode & 0o7777)
