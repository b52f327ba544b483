"""One gateway per store: a lock beside the file, which tells who holds it and dies with its holder."""

import fcntl
import os
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
            " use that one, stop it, or name another file"
        )


class _Holder(Struct):
    pid: int
    url: str = ""


class StoreLock:
    """Held from `acquire` to `release`. The system takes it back when the process ends, however it ends.

    A child made by a bare fork keeps it held; one that starts another program does not.
    """

    def __init__(self, store: Path | str) -> None:
        self._store = Path(store)
        self._path = self._store.with_name(self._store.name + ".lock")
        self._file: int | None = None

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
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(
                f"history {self._store}: its lock cannot be made ({error.strerror});"
                " name another file, or change the permissions of its folder"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read(file)
            os.close(file)
            pid, where = (holder.pid, holder.url) if holder else (None, None)
            raise StoreTaken(self._store, pid, where or None) from error
        self._file = file
        self.announce(url)

    def announce(self, url: str) -> None:
        """Say where the gateway is found, once that is known."""
        if self._file is None:
            raise StoreError(f"history {self._store}: its lock is not held")
        text = json.encode(_Holder(os.getpid(), url))
        os.pwrite(self._file, text, 0)
        os.ftruncate(self._file, len(text))

    def release(self) -> None:
        """Let go. The file stays: removing it could take away a lock that somebody has just got."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _read(file: int) -> _Holder | None:
    try:
        return json.decode(os.pread(file, 4096, 0), type=_Holder)
    except DecodeError:
        return None
