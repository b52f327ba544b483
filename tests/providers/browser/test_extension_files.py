"""The extension's copied folder: what is written there, and what is never written through."""

import json
import os
from pathlib import Path

import pytest

from afoot.errors import CallerError
from afoot.providers.browser import extension_files as extension
from afoot.providers.browser.extension_files import (
    ExtensionCopies,
    ExtensionManifest,
    copy_extension,
    is_copy,
    is_older,
    link_url,
    shipped_manifest,
    write_pairing,
)

KEY = bytes(range(32))
URL = "ws://127.0.0.1:23668/link"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "state"))
    return tmp_path


def release(home: Path, monkeypatch: pytest.MonkeyPatch, version: str, **files: str) -> None:
    """Ship another version with these files only."""
    place = home / f"shipped-{version}"
    (place / "deep").mkdir(parents=True)
    manifest = {"version": version, "key": shipped_manifest().key}
    (place / "manifest.json").write_text(json.dumps(manifest))
    for name, text in files.items():
        (place / name.replace("__", "/")).with_suffix(".js").write_text(text)
    monkeypatch.setattr(extension, "SOURCE_FOLDER", place)
    monkeypatch.setattr(extension, "SHARED_FILES", ())


def names(folder: Path) -> set[str]:
    """The files in a folder."""
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_extension_is_copied_whole_and_for_its_owner_alone(home: Path) -> None:
    """B7: folder 0700; every file that is shipped, as it is."""
    copy = ExtensionCopies().make(home / "ext")
    assert names(home / "ext") == set(copy.files) and "manifest.json" in copy.files
    sources = extension.extension_sources()
    assert copy.files == sorted(sources) and "shared/styles/tokens.css" in sources
    for name, file in sources.items():
        assert (home / "ext" / name).read_bytes() == file.read_bytes()
    assert (home / "ext").stat().st_mode & 0o777 == 0o700
    assert copy.version == shipped_manifest().version
    assert [one.folder for one in ExtensionCopies().all()] == [str(home / "ext")]


def test_the_id_is_the_one_that_chromium_makes_of_the_key() -> None:
    """B7: the origin that may connect is known before any browser is."""
    assert shipped_manifest().origin == "chrome-extension://jdddlpfejkmcapjognhagmaadiigbkjk"
    assert ExtensionManifest("1", "").id == "odlameecjipmbmbejkplpemijjgpljce"


def test_the_pairing_is_for_its_owner_alone(home: Path) -> None:
    """B7: url and key, in a file 0600."""
    folders = ExtensionCopies()
    folders.make(home / "ext")
    assert folders.write_pairings(URL, KEY) == []
    file = home / "ext" / "pairing.json"
    assert json.loads(file.read_text()) == {"url": URL, "key": KEY.hex()}
    assert file.stat().st_mode & 0o777 == 0o600
    assert names(home / "ext") - set(folders.all()[0].files) == {"pairing.json"}


def test_every_folder_is_told_and_those_that_are_gone_are_forgotten(home: Path) -> None:
    """B7: several copies for several browsers."""
    folders = ExtensionCopies()
    for name in ("one", "two", "three"):
        folders.make(home / name)
    (home / "two").rename(home / "elsewhere")
    assert folders.write_pairings(URL, KEY) == []
    assert (home / "one" / "pairing.json").exists() and (home / "three" / "pairing.json").exists()
    assert not (home / "elsewhere" / "pairing.json").exists() and not (home / "two").exists()


def test_a_folder_with_other_things_in_it_is_refused(home: Path) -> None:
    """B7: nothing of somebody's is overwritten."""
    (home / "ext").mkdir()
    (home / "ext" / "thesis.txt").write_text("mine")
    with pytest.raises(CallerError, match="not empty, and not a copy of the extension"):
        ExtensionCopies().make(home / "ext")
    assert names(home / "ext") == {"thesis.txt"} and ExtensionCopies().all() == []


def test_another_extension_is_other_things(home: Path) -> None:
    """B7: a manifest alone makes no copy of ours."""
    (home / "ext").mkdir()
    (home / "ext" / "manifest.json").write_text('{"version": "1.0", "key": "other"}')
    with pytest.raises(CallerError, match="not empty"):
        ExtensionCopies().make(home / "ext")


def test_an_empty_folder_is_taken(home: Path) -> None:
    """B7: and closed to others."""
    (home / "ext").mkdir(mode=0o755)
    ExtensionCopies().make(home / "ext")
    assert (home / "ext").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_a_link_is_refused(home: Path) -> None:
    """B7: whoever put it there decides where it leads."""
    (home / "real").mkdir()
    (home / "ext").symlink_to(home / "real")
    with pytest.raises(CallerError, match="is a link"):
        ExtensionCopies().make(home / "ext")
    assert names(home / "real") == set()


def test_a_copy_that_became_a_link_gets_no_key(home: Path) -> None:
    """B7: also where the link leads to a copy."""
    folders = ExtensionCopies()
    folders.make(home / "ext")
    (home / "ext").rename(home / "theirs")
    (home / "ext").symlink_to(home / "theirs")
    folders.write_pairings(URL, KEY)
    assert not (home / "theirs" / "pairing.json").exists()
    with pytest.raises(CallerError, match="is a link"):
        write_pairing(home / "ext", URL, KEY)


def test_a_link_in_the_folder_is_replaced_and_not_followed(home: Path) -> None:
    """B7: pairing.json and every other file, at any depth."""
    (home / "victim").mkdir()
    (home / "victim" / "file").write_text("before")
    folders = ExtensionCopies()
    copy = folders.make(home / "ext")
    (home / "ext" / "pairing.json").symlink_to(home / "victim" / "file")
    (home / "ext" / "background" / "messages.js").unlink()
    (home / "ext" / "background" / "messages.js").symlink_to(home / "victim" / "file")
    folders.write_pairings(URL, KEY)
    folders.make(home / "ext")
    assert (home / "victim" / "file").read_text() == "before"
    assert not any((home / "ext" / name).is_symlink() for name in [*copy.files, "pairing.json"])


def test_a_link_in_place_of_a_folder_below_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7: nothing is written where it leads."""
    release(home, monkeypatch, "1.0", deep__one="1")
    (home / "victim").mkdir()
    copy_extension(home / "ext")
    (home / "ext" / "deep" / "one.js").unlink()
    (home / "ext" / "deep").rmdir()
    (home / "ext" / "deep").symlink_to(home / "victim")
    with pytest.raises(CallerError, match="ext: "):
        copy_extension(home / "ext")
    assert names(home / "victim") == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_somebody_else_is_refused(home: Path) -> None:
    """B7: who owns it could change what is in it."""
    (home / "ext").mkdir()
    os.chown(home / "ext", 12345, 12345)
    with pytest.raises(CallerError, match="belongs to somebody else"):
        ExtensionCopies().make(home / "ext")


def test_a_folder_that_cannot_be_made_is_said(home: Path) -> None:
    """E4: with its name."""
    (home / "file").write_text("")
    with pytest.raises(CallerError, match="file"):
        ExtensionCopies().make(home / "file" / "ext")
    with pytest.raises(CallerError, match="file"):
        ExtensionCopies().make(home / "file")


def test_an_older_copy_is_brought_up_to_date(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7: what the old version had and the new one has not is gone; the pairing and other files stay."""
    release(home, monkeypatch, "1.0", one="1", deep__two="2")
    folders = ExtensionCopies()
    folders.make(home / "ext")
    folders.write_pairings(URL, KEY)
    (home / "ext" / "note.txt").write_text("mine")
    release(home, monkeypatch, "1.1", one="1.1", three="3")
    assert folders.refresh() == [str(home / "ext")]
    assert names(home / "ext") == {"manifest.json", "one.js", "three.js", "pairing.json", "note.txt"}
    assert (home / "ext" / "one.js").read_text() == "1.1"
    assert [copy.version for copy in ExtensionCopies().all()] == ["1.1"]


def test_a_copy_that_is_up_to_date_is_not_written_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7: a browser may be reading it."""
    release(home, monkeypatch, "1.0", one="1")
    folders = ExtensionCopies()
    folders.make(home / "ext")
    before = (home / "ext" / "one.js").stat().st_ino
    assert folders.refresh() == [str(home / "ext")]
    assert (home / "ext" / "one.js").stat().st_ino == before


def test_a_private_copy_is_remembered_nowhere(home: Path) -> None:
    """B5: as one that is tried gets."""
    copy_extension(home / "ext")
    assert is_copy(home / "ext") and ExtensionCopies().all() == []
    assert not is_copy(home / "nothing")


@pytest.mark.parametrize(
    ("old", "new", "is_so"),
    [
        ("0.1.0", "0.2.0", True), ("0.9", "0.10", True), ("0.1", "0.1.1", True), ("", "0.1", True),
        ("0.1.0", "0.1.0", False), ("1.0", "0.9.9", False), ("what", "0.1", True),
    ],
)  # fmt: skip
def test_versions_are_compared_by_their_numbers(old: str, new: str, is_so: bool) -> None:
    """B7: as Chromium does."""
    assert is_older(old, new) is is_so


def test_the_link_is_at_the_gateways_address() -> None:
    """B1: as a WebSocket."""
    assert link_url("http://127.0.0.1:23668/") == URL
    assert link_url("https://gateway.example") == "wss://gateway.example/link"
    assert link_url("") == ""
