"""The state folder: secrets that only their owner reads, and where the running gateway is."""

import os
from pathlib import Path

import pytest

from afoot import state
from afoot.errors import CallerError
from afoot.state import Address, Kept


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A state folder of its own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def here(pid: int | None = None) -> Address:
    """An address of this process."""
    return Address("http://127.0.0.1:1/mcp", "http://127.0.0.1:1/", "t", pid or os.getpid())


def test_secrets_are_made_once_and_kept(folder: Path) -> None:
    """Q1 c, S1: the same after a restart."""
    key, token = state.key(), state.token()
    assert (state.key(), state.token()) == (key, token)
    assert len(key) == 32 and len(token) == 48 and key.hex() != token


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_secrets_are_readable_by_their_owner_only(folder: Path, mask: int) -> None:
    """S1: 0600, whatever the umask."""
    before = os.umask(mask)
    try:
        state.key()
        state.token()
        state.announce(here())
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
    assert len(state.token()) == 48


def test_a_running_gateway_is_found_and_a_dead_one_is_not(folder: Path) -> None:
    """Design 5: client commands look here."""
    assert state.running() is None
    state.announce(here())
    assert state.running() == here()
    state.announce(here(pid=2**22 + 1))  # more than any system gives out
    assert state.running() is None


def test_a_gateway_withdraws_only_its_own_address(folder: Path) -> None:
    """Design 5: one that started later stays announced."""
    state.announce(here())
    state.withdraw(here(pid=1))
    assert state.running() == here()
    state.withdraw(here())
    assert state.running() is None and not (folder / "gateway.json").exists()
    state.withdraw(here())


@pytest.mark.parametrize("text", ["", "nonsense", "{}", '{"mcp": 5}'])
def test_a_broken_address_is_none(folder: Path, text: str) -> None:
    """Bad input: as if nothing ran."""
    folder.mkdir()
    (folder / "gateway.json").write_text(text)
    assert state.running() is None


def test_a_list_is_kept_for_its_owner_and_read_only_when_it_changed(folder: Path) -> None:
    """A4: whole or not at all, 0600; what another process writes is seen."""
    ours, theirs = Kept("list.json", Address), Kept("list.json", Address)
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
    kept = Kept("list.json", Address)
    kept.write([here()])
    (folder / "list.json").write_text(text, errors="surrogateescape")
    with pytest.raises(CallerError, match=r"list\.json: cannot be read"):
        kept.read()
    with pytest.raises(CallerError, match=r"list\.json"):
        kept.write([])
    assert (folder / "list.json").read_text(errors="surrogateescape") == text
