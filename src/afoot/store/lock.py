"""`StoreLock` lets one gateway at a time use a history file.

The lock is a file beside the history. It names its holder, and the system releases it when the holder's
process ends, however it ends.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import DecodeError, Struct, json

from afoot.errors import StoreError


class StoreInUse(StoreError):
    """Another gateway uses this store. `pid` and `url` are None while it has not written them yet."""

    def __init__(self, store: Path, pid: int | None, url: str | None) -> None:
        self.pid = pid
        self.url = url
        who = f"process {pid}" if pid else "a process that is just starting"
        where = f" at {url}" if url else ""
        super().__init__(
            f"history {store} belongs to another gateway: {who}{where};"
            " use that one, stop it, or name another file with --store"
        )


class _LockHolder(Struct):
    pid: int
    url: str = ""


class StoreLock:
    """The lock of one store, held from `acquire` to `release`.

    A child made by a bare fork keeps it held; one that starts another program does not.
    """

    def __init__(self, store: Path | str) -> None:
        self._store = self._resolved = Path(store)
        self._file: int | None = None
        self._is_new = False  # whether the store did not exist when the lock was taken
        # Whether `release` is to delete the lock, and also the store if it is new.
        self.should_remove: Callable[[], bool] = lambda: False

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self, url: str = "") -> None:
        """Take the lock; raises StoreInUse, which names the holder, or StoreError."""
        try:
            self._resolved = self._store.resolve()  # a symbolic link to it is the same store
            if self._resolved.is_dir():
                raise StoreError(f"history {self._store}: this is a folder; name a file with --store")
            self._resolved.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = _open_lock(self._sibling(".lock"))
        except OSError as error:
            raise StoreError(
                f"history {self._store}: its lock cannot be made ({error.strerror});"
                " set AFOOT_HOME to a folder of yours, or name another file with --store"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read_holder(file)
            os.close(file)
            pid, where = (holder.pid, holder.url) if holder else (None, None)
            raise StoreInUse(self._store, pid, where or None) from error
        if not _is_same_file(file, self._sibling(".lock")):  # the last holder deleted it meanwhile
            os.close(file)
            return self.acquire(url)
        self._is_new = not self._resolved.exists()
        self._file = file
        self.announce(url)

    def announce(self, url: str) -> None:
        """Write the gateway's URL into the lock, once it is known."""
        if self._file is None:
            raise StoreError(f"history {self._store}: its lock is not held")
        text = json.encode(_LockHolder(os.getpid(), url))
        with suppress(OSError):  # a full disk: the lock is held all the same
            os.pwrite(self._file, text, 0)
            os.ftruncate(self._file, len(text))

    def release(self) -> None:
        """Release the lock.

        Its file stays for the next holder, unless `should_remove` says that no trace is to stay.
        """
        if self._file is None:
            return
        if self.should_remove():
            for end in ("", "-wal", "-shm") if self._is_new else ():
                self._sibling(end).unlink(missing_ok=True)
            self._sibling(".lock").unlink(missing_ok=True)
        os.ftruncate(self._file, 0)
        os.close(self._file)
        self._file = None

    def _sibling(self, end: str) -> Path:
        return self._resolved.with_name(self._resolved.name + end)


def _open_lock(path: Path) -> int:
    """Open the lock, and make it if there is none; raises OSError.

    Its holder writes into it. In a folder where others may write, it could be a link to another file.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return file
    os.close(file)
    raise OSError(errno.EMLINK, "it is another file, or a link to one")


def _is_same_file(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _read_holder(file: int) -> _LockHolder | None:
    try:
        return json.decode(os.pread(file, 4096, 0), type=_LockHolder)
    except DecodeError:
        return None
