"""One gateway per store, and how the second one learns it."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from afoot.errors import StoreError
from afoot.store.lock import StoreInUse, StoreLock

HOLDER = """
import sys, time
from afoot.store.lock import StoreLock
lock = StoreLock(sys.argv[1])
lock.acquire()
lock.announce("http://127.0.0.1:23668")
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_gateway_is_told_who_has_the_store(tmp_path: Path) -> None:
    """H1: the error names pid and address."""
    store = tmp_path / "history.db"
    with StoreLock(store) as lock:
        lock.announce("http://127.0.0.1:1")
        with pytest.raises(StoreInUse, match=rf"process {os.getpid()} at http://127\.0\.0\.1:1") as caught:
            StoreLock(store).acquire()
        assert (caught.value.pid, caught.value.url) == (os.getpid(), "http://127.0.0.1:1")


def test_a_link_to_a_store_is_that_store(tmp_path: Path) -> None:
    """H1: two names of one file are one lock."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "history.db")
    with StoreLock(tmp_path / "real" / "history.db"), pytest.raises(StoreInUse):
        StoreLock(tmp_path / "link.db").acquire()


def test_a_full_disk_is_no_reason_not_to_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: only who holds it is not told."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("afoot.store.lock.os.pwrite", full)
    with StoreLock(tmp_path / "history.db"), pytest.raises(StoreInUse, match="just starting"):
        StoreLock(tmp_path / "history.db").acquire()


def test_a_holder_without_an_address_is_named_by_its_pid(tmp_path: Path) -> None:
    """H1: the address is known only after the port is."""
    with StoreLock(tmp_path / "history.db"), pytest.raises(StoreInUse) as caught:
        StoreLock(tmp_path / "history.db").acquire()
    assert (caught.value.pid, caught.value.url) == (os.getpid(), None)


def test_a_holder_that_has_said_nothing_yet_is_just_starting(tmp_path: Path) -> None:
    """H1: the moment between taking the lock and writing into it."""
    with StoreLock(tmp_path / "history.db"):
        (tmp_path / "history.db.lock").write_text("")
        with pytest.raises(StoreInUse, match="just starting") as caught:
            StoreLock(tmp_path / "history.db").acquire()
    assert caught.value.pid is None


def test_a_shorter_address_leaves_nothing_of_the_longer(tmp_path: Path) -> None:
    """H1: what is in the lock is always whole."""
    with StoreLock(tmp_path / "history.db") as lock:
        lock.announce("http://127.0.0.1:23668/very/long")
        lock.announce("http://a")
        with pytest.raises(StoreInUse) as caught:
            StoreLock(tmp_path / "history.db").acquire()
    assert caught.value.url == "http://a"


def test_a_released_store_can_be_taken(tmp_path: Path) -> None:
    """H1: leaving gives it back; the file is the owner's alone."""
    store = tmp_path / "state" / "history.db"
    for _ in range(2):
        with StoreLock(store):
            assert stat.S_IMODE((tmp_path / "state" / "history.db.lock").stat().st_mode) == 0o600
            assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    lock = StoreLock(store)
    lock.release()
    with pytest.raises(StoreError, match="not held"):
        lock.announce("http://a")


def test_stores_side_by_side_are_apart(tmp_path: Path) -> None:
    """H1: a lock is for one file."""
    with StoreLock(tmp_path / "a.db"), StoreLock(tmp_path / "b.db"):
        pass


def test_kill_nine_gives_the_store_back(tmp_path: Path) -> None:
    """H1: a dead gateway holds nothing, and what it said of itself deceives nobody."""
    store = tmp_path / "history.db"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-c", HOLDER, str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreInUse, match="23668") as caught:
            StoreLock(store).acquire()
        assert caught.value.pid == holder.pid
        holder.send_signal(signal.SIGKILL)
    with StoreLock(store):
        pass


def test_what_came_to_nothing_leaves_nothing(tmp_path: Path) -> None:
    """H1: a store that was there before stays, with what is in it."""
    store = tmp_path / "history.db"
    for is_new in (True, False):
        with StoreLock(store) as lock:
            store.write_text("made")
            lock.should_remove = lambda: True
        assert list(tmp_path.iterdir()) == ([] if is_new else [store])
        store.write_text("there")


def test_a_lock_that_was_taken_away_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: who opened it just before another gave up makes it anew, so that a third finds it."""
    store, lock = tmp_path / "history.db", tmp_path / "history.db.lock"
    real = os.open

    def late(path: Path, *more: int) -> int:
        file = real(path, *more)
        monkeypatch.undo()
        lock.unlink()
        return file

    monkeypatch.setattr("afoot.store.lock.os.open", late)
    with StoreLock(store), pytest.raises(StoreInUse, match="--store"):
        StoreLock(store).acquire()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    """H1: nor is the root, which has no name; nothing is made beside it."""
    for folder in (tmp_path / "in", Path("/"), Path(".")):
        (tmp_path / "in").mkdir(exist_ok=True)
        with pytest.raises(StoreError, match="this is a folder; name a file with --store"):
            StoreLock(folder).acquire()
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """H1: what is wrong, and what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"its lock cannot be made .*AFOOT_HOME.*--store"):
        StoreLock(tmp_path / "file" / "history.db").acquire()


@pytest.mark.parametrize("kind", ["link", "hard link", "dangling"])
def test_a_lock_that_is_a_link_to_another_file_is_not_written(tmp_path: Path, kind: str) -> None:
    """S4: in a folder where others may write, the file of the gateway's user stays as it is."""
    other, lock = tmp_path / "precious", tmp_path / "h.db.lock"
    if kind != "dangling":
        other.write_text("precious")
    lock.hardlink_to(other) if kind == "hard link" else lock.symlink_to(other)
    with pytest.raises(StoreError, match="its lock cannot be made"):
        StoreLock(tmp_path / "h.db").acquire("http://127.0.0.1:1")
    assert other.exists() == (kind != "dangling")
    assert kind == "dangling" or other.read_text() == "precious"


def test_a_lock_that_was_deleted_as_it_was_opened_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4: a file without a name is no link to another one."""
    whole = os.fstat

    def fstat(file: int) -> os.stat_result:
        (tmp_path / "h.db.lock").unlink(missing_ok=True)
        monkeypatch.setattr("os.fstat", whole)
        return whole(file)

    monkeypatch.setattr("os.fstat", fstat)
    with StoreLock(tmp_path / "h.db"):
        assert (tmp_path / "h.db.lock").exists()
