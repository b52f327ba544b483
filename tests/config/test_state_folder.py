"""The state folder: secrets that only their owner reads, and where the running gateway is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from afoot.config import state_folder
from afoot.config.state_folder import GatewayAddress, StoredList
from afoot.errors import CallerError


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A state folder of its own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def here(pid: int | None = None, born: str = "") -> GatewayAddress:
    """An address of this process."""
    return GatewayAddress("http://127.0.0.1:1/mcp", "http://127.0.0.1:1/", "t", pid or os.getpid(), born)


def test_secrets_are_made_once_and_kept(folder: Path) -> None:
    """Q1 c, S1: the same after a restart."""
    key, token = state_folder.sealing_key(), state_folder.operator_token()
    assert (state_folder.sealing_key(), state_folder.operator_token()) == (key, token)
    assert len(key) == 32 and len(token) == 48 and key.hex() != token


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_secrets_are_readable_by_their_owner_only(folder: Path, mask: int) -> None:
    """S1: 0600, whatever the umask."""
    before = os.umask(mask)
    try:
        state_folder.sealing_key()
        state_folder.operator_token()
        state_folder.announce_gateway(here())
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()} == {
        "key": 0o600,
        "token": 0o600,
        "gateway.json": 0o600,
    }


def test_an_empty_secret_is_made_anew(folder: Path) -> None:
    """S1: a crash while it was written leaves no gateway without a token."""
    folder.mkdir()
    (folder / "token").write_text("\n")
    assert len(state_folder.operator_token()) == 48


def test_a_running_gateway_is_found_and_a_dead_one_is_not(folder: Path) -> None:
    """Design 5: client commands look here."""
    assert state_folder.running_gateway() is None
    state_folder.announce_gateway(here())
    assert state_folder.running_gateway() == here()
    state_folder.announce_gateway(here(pid=2**22 + 1))  # more than any system gives out
    assert state_folder.running_gateway() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
def test_a_gateway_that_has_ended_and_was_not_waited_for_does_not_run(folder: Path) -> None:
    """S6: such a process has its pid still, and serves nobody."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        ended = here(pid=process.pid, born=state_folder.process_birth(process.pid))
        state_folder.announce_gateway(ended)
        assert state_folder.running_gateway() == ended
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert state_folder.running_gateway() is None


def test_a_gateway_withdraws_only_its_own_address(folder: Path) -> None:
    """Design 5: one that started later stays announced."""
    state_folder.announce_gateway(here())
    state_folder.withdraw_gateway(here(pid=1))
    assert state_folder.running_gateway() == here()
    state_folder.withdraw_gateway(here())
    assert state_folder.running_gateway() is None and not (folder / "gateway.json").exists()
    state_folder.withdraw_gateway(here())


@pytest.mark.parametrize("text", ["", "nonsense", "{}", '{"mcp": 5}'])
def test_a_broken_address_is_none(folder: Path, text: str) -> None:
    """Bad input: as if nothing ran."""
    folder.mkdir()
    (folder / "gateway.json").write_text(text)
    assert state_folder.running_gateway() is None


def test_a_list_is_kept_for_its_owner_and_read_only_when_it_changed(folder: Path) -> None:
    """A4: whole or not at all, 0600; what another process writes is seen."""
    ours, theirs = StoredList("list.json", GatewayAddress), StoredList("list.json", GatewayAddress)
    assert ours.read() == [] and ours.read() is None
    ours.write([here()])
    assert (folder / "list.json").stat().st_mode & 0o777 == 0o600
    assert ours.read() is None and theirs.read() == [here()]
    theirs.write([])
    assert ours.read() == [] and ours.read() is None
    (folder / "list.json").unlink()
    assert ours.read() == []


@pytest.mark.parametrize("text", ["", "[{", "{}", '[{"mcp": 1}]', "\udcff"])
def test_a_list_that_cannot_be_read_is_named_and_not_overwritten(folder: Path, text: str) -> None:
    """A4: nobody's words are lost to a slip of a hand."""
    kept = StoredList("list.json", GatewayAddress)
    kept.write([here()])
    (folder / "list.json").write_text(text, errors="surrogateescape")
    with pytest.raises(CallerError, match=r"list\.json: cannot be read"):
        kept.read()
    with pytest.raises(CallerError, match=r"list\.json"):
        kept.write([])
    assert (folder / "list.json").read_text(errors="surrogateescape") == text


@pytest.mark.parametrize("text", ["zz", "ab" * 31, "\u00e4" * 64, "ab" * 33])
@pytest.mark.parametrize("name", ["key", "link.key"])
def test_a_broken_key_says_which_file_and_what_to_do(folder: Path, name: str, text: str) -> None:
    """S6: one line, also for a file that was restored in part."""
    folder.mkdir()
    (folder / name).write_text(text)
    read = state_folder.sealing_key if name == "key" else state_folder.link_key
    with pytest.raises(CallerError, match=f"{name} is no key; .*new one"):
        read()


def test_a_secret_that_cannot_be_read_says_why(folder: Path) -> None:
    """S6: a folder, or bytes that are no text."""
    (folder / "key").mkdir(parents=True)
    (folder / "token").write_bytes(b"\xff\xfe" * 40)
    for read in (state_folder.sealing_key, state_folder.operator_token):
        with pytest.raises(CallerError, match="move it away"):
            read()


@pytest.mark.parametrize("token", ["secret", "x" * 31, "x" * 40 + "\n" + "y"])
def test_a_token_that_can_be_guessed_is_refused(folder: Path, token: str) -> None:
    """S6: the operator's token has 32 characters at least."""
    folder.mkdir()
    (folder / "token").write_text(token)
    with pytest.raises(CallerError, match="at least 32 characters"):
        state_folder.operator_token()


def test_modes_that_a_backup_has_lost_are_restored(folder: Path) -> None:
    """S6, S1: the folder, its files and the folders in it; a link leads to what is not ours to change."""
    state_folder.operator_token()
    (folder / "inner").mkdir()
    outside = folder.parent / "outside"
    outside.write_text("x")
    outside.chmod(0o644)
    (folder / "link").symlink_to(outside)
    for one, mode in ((folder, 0o755), (folder / "token", 0o644), (folder / "inner", 0o775)):
        one.chmod(mode)
    assert state_folder.exposed_files() == [folder, folder / "inner", folder / "token"]
    assert state_folder.restore_modes() == [folder, folder / "inner", folder / "token"]
    assert state_folder.exposed_files() == [] and outside.stat().st_mode & 0o777 == 0o644
    assert (folder / "token").stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
