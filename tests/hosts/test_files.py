"""Files of other programs: replaced whole, with a copy, their mode and links as they were."""

import errno
import os
import re
from pathlib import Path

import pytest

from afoot.hosts import files
from afoot.hosts.files import FileError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the files are."""
    made = tmp_path / "files"
    made.mkdir()
    return made


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660])
def test_mode_and_content_are_kept_in_file_and_copy(folder: Path, mode: int) -> None:
    """U2: the copy has a date in its name and stands beside the file."""
    path = folder / "mcp.json"
    path.write_bytes(b"old\r\n")
    path.chmod(mode)
    backup = files.replace(path, "old\r\n", "new\r\n")
    assert backup is not None and re.fullmatch(r"mcp\.json\.afoot-\d{8}-\d{6}\.bak", backup.name)
    assert (path.read_bytes(), backup.read_bytes()) == (b"new\r\n", b"old\r\n")
    assert {one.stat().st_mode & 0o777 for one in (path, backup)} == {mode}
    assert sorted(folder.iterdir()) == sorted([path, backup])


def test_two_copies_in_one_second_are_two(folder: Path) -> None:
    """U2: no copy is written over."""
    path = folder / "x"
    path.write_text("1")
    first, second = files.replace(path, "1", "2"), files.replace(path, "2", "3")
    assert first is not None and second is not None and first != second
    assert (first.read_text(), second.read_text()) == ("1", "2")


def test_a_link_stays_a_link(folder: Path) -> None:
    """U2: dotfiles are often kept elsewhere."""
    real = folder / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("old")
    link = folder / "settings.json"
    link.symlink_to(real)
    files.replace(link, "old", "new")
    assert link.is_symlink() and real.read_text() == "new"


def test_what_somebody_wrote_meanwhile_is_not_lost(folder: Path) -> None:
    """U2: a host may write its file at any time."""
    path = folder / "x"
    path.write_text("theirs")
    for change in (lambda: files.replace(path, "old", "new"), lambda: files.remove(path, "old")):
        with pytest.raises(FileError, match="changed meanwhile"):
            change()
    with pytest.raises(FileError, match="changed meanwhile"):
        files.replace(path, None, "new")
    assert [one.name for one in folder.iterdir()] == ["x"] and path.read_text() == "theirs"


def test_a_missing_file_is_made_with_its_folders(folder: Path) -> None:
    """U2: nothing to copy."""
    path = folder / "a" / "b" / "c"
    assert files.read(path) is None
    assert files.replace(path, None, "new", mode=0o600) is None
    assert files.read(path) == "new" and path.stat().st_mode & 0o777 == 0o600


def test_bytes_that_are_no_text_are_left_alone(folder: Path) -> None:
    """U2: the error names the line."""
    path = folder / "x"
    path.write_bytes(b"{\n\xff}")
    with pytest.raises(FileError, match="line 2: it is not UTF-8"):
        files.read(path)


def test_a_disk_that_is_full_is_an_error_of_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U2: the file is as it was, and no half of another beside it."""
    path = folder / "x"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="cannot be written: No space"):
        files.replace(path, "old", "new")
    assert path.read_text() == "old" and list(folder.iterdir()) == [path]


def test_a_folder_in_place_of_a_file_is_an_error_of_one_line(folder: Path) -> None:
    """U2: so is a file in place of a folder."""
    (folder / "x").mkdir()
    with pytest.raises(FileError, match="cannot be read"):
        files.read(folder / "x")
    (folder / "y").write_text("")
    with pytest.raises(FileError, match="cannot be"):
        files.replace(folder / "y" / "z", None, "new")


@pytest.mark.parametrize(("mode", "written"), [(0o600, 0o600), (0o644, 0o644)])
def test_a_draft_is_readable_by_its_owner_only_while_it_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mode: int, written: int
) -> None:
    """S6: the tokens in a host's file are nobody else's, also for a moment."""
    path, seen, sync = folder / "x.json", list[int](), os.fsync

    def look(descriptor: int) -> None:
        seen.append(os.fstat(descriptor).st_mode & 0o777)
        sync(descriptor)

    path.write_text("{}")
    path.chmod(mode)
    monkeypatch.setattr(os, "fsync", look)
    files.replace(path, "{}", '{"token": "tulip"}')
    assert seen == [0o600] and path.stat().st_mode & 0o777 == written
