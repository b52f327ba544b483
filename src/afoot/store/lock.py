"""One gateway per store: a lock beside the file, which tells who holds it and dies with its holder."""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import DecodeError, Struct, json

from afoot.errors import StoreError


class StoreTaken(StoreError):
    """Another gateway has this store. `pid` and `url` are None while it has not yet said them."""

    def __init__(self, store: Path, pid: int | None, url: str | None) -> None:
        self.pid, self.url = pid, url
        who = f"process {pid}" if pid else "a process that is just starting"
        where = f" at {url}" if url else ""
        super().__init__(
            f"history {store} belongs to another gateway: {who}{where};"
            " use that one, stop it, or name another file with --store"
        )


class _Holder(Struct):
    pid: int
    url: str = ""


class StoreLock:
    """Held from `acquire` to `release`. The system takes it back when the process ends, however it ends.

    A child made by a bare fork keeps it held; one that starts another program does not.
    """

    def __init__(self, store: Path | str) -> None:
        self._store = self._real = Path(store)
        self._file: int | None = None
        self._is_new = False  # whether there was no store yet when it was taken
        # Whether on release nothing is to stay that was not there before.
        self.undo: Callable[[], bool] = lambda: False

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self, url: str = "") -> None:
        """Take the store; raises StoreTaken, naming who has it, or StoreError."""
        try:
            self._real = self._store.resolve()  # a link to it is the same store
            if self._real.is_dir():
                raise StoreError(f"history {self._store}: this is a folder; name a file with --store")
            self._real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._beside(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(
                f"history {self._store}: its lock cannot be made ({error.strerror});"
                " set AFOOT_HOME to a folder of yours, or name another file with --store"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read(file)
            os.close(file)
            pid, where = (holder.pid, holder.url) if holder else (None, None)
            raise StoreTaken(self._store, pid, where or None) from error
        if not _is_at(file, self._beside(".lock")):  # who had it before took it away
            os.close(file)
            return self.acquire(url)
        self._file, self._is_new = file, not self._real.exists()
        self.announce(url)

    def announce(self, url: str) -> None:
        """Say where the gateway is found, once that is known."""
        if self._file is None:
            raise StoreError(f"history {self._store}: its lock is not held")
        text = json.encode(_Holder(os.getpid(), url))
        with suppress(OSError):  # the disk is full; it is held all the same
            os.pwrite(self._file, text, 0)
            os.ftruncate(self._file, len(text))

    def release(self) -> None:
        """Let go. The lock stays for the next, unless all is to be as it was."""
        if self._file is None:
            return
        if self.undo():
            for end in ("", "-wal", "-shm") if self._is_new else ():
                self._beside(end).unlink(missing_ok=True)
            self._beside(".lock").unlink(missing_ok=True)
        os.ftruncate(self._file, 0)
        os.close(self._file)
        self._file = None

    def _beside(self, end: str) -> Path:
        return self._real.with_name(self._real.name + end)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _read(file: int) -> _Holder | None:
    try:
        return json.decode(os.pread(file, 4096, 0), type=_Holder)
    except DecodeError:
        return None
