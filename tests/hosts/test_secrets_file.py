"""The file of secrets: for its owner's eyes, and read as it was written."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.hosts import secrets_file


@pytest.fixture(autouse=True)
def folder(home: Path) -> Path:
    """The state folder."""
    return secrets_file.path().parent


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_secret_is_read_as_it_was_written(value: str) -> None:
    """S4: quotes, line breaks, blanks at the ends."""
    secrets_file.update({"X": value, "OTHER": "1"})
    assert secrets_file.read_all() == {"X": value, "OTHER": "1"}
    secrets_file.update({}, ["X"])
    assert secrets_file.read_all() == {"OTHER": "1"}


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_only_the_owner_reads_them(mask: int) -> None:
    """S4: 0600, whatever the umask, and also where somebody changed it; no copy is kept."""
    before = os.umask(mask)
    try:
        secrets_file.update({"A": "1"})
        secrets_file.path().chmod(0o644)
        secrets_file.update({"B": "2"})
    finally:
        os.umask(before)
    assert secrets_file.path().stat().st_mode & 0o777 == 0o600
    assert secrets_file.path().parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in secrets_file.path().parent.iterdir()] == ["secrets.env"]
    assert secrets_file.path().read_text() == "A=1\nB=2\n"


def test_lines_that_a_person_wrote_stay() -> None:
    """S4: comments too."""
    secrets_file.path().parent.mkdir(parents=True)
    secrets_file.path().write_text("# mine\nMINE=a=b\nbroken line\n")
    secrets_file.update({"A": "1"})
    assert secrets_file.path().read_text() == "# mine\nMINE=a=b\nbroken line\nA=1\n"
    assert secrets_file.read_all() == {"MINE": "a=b", "A": "1"}


def test_a_name_that_means_something_else_is_not_taken() -> None:
    """S4: server a_b with key c is not server a with key b_c."""
    known = {"A_B_C": "1"}
    assert secrets_file.free_name("a", "b c", "1", known) == "A_B_C"
    assert secrets_file.free_name("a", "b_c", "2", known) == "A_B_C_2"
    assert secrets_file.free_name("1st", "key", "x", {}) == "SECRET_1ST_KEY"


def test_a_config_may_refer_to_variables_and_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """S4: secrets have names of their own kind."""
    monkeypatch.setenv("PLAIN", "p")
    secrets_file.update({"A": "1"})
    found = secrets_file.environment()
    assert (found["PLAIN"], found["secret:A"]) == ("p", "1") and "A" not in found
    assert secrets_file.reference("A") == "${secret:A}"
    assert secrets_file.fill("x ${secret:A} ${secret:B}", {"A": "1"}) == "x 1 ${secret:B}"
