"""The file of secrets: for its owner's eyes, and read as it was written."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.hosts import secrets


@pytest.fixture(autouse=True)
def folder(home: Path) -> Path:
    """The state folder."""
    return secrets.place().parent


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_secret_is_read_as_it_was_written(value: str) -> None:
    """S4: quotes, line breaks, blanks at the ends."""
    secrets.change({"X": value, "OTHER": "1"})
    assert secrets.lookup("X") == value and secrets.lookup("OTHER") == "1"
    secrets.change({}, ["X"])
    assert secrets.every() == {"OTHER": "1"}


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_only_the_owner_reads_them(mask: int) -> None:
    """S4: 0600, whatever the umask, and also where somebody changed it; no copy is kept."""
    before = os.umask(mask)
    try:
        secrets.change({"A": "1"})
        secrets.place().chmod(0o644)
        secrets.change({"B": "2"})
    finally:
        os.umask(before)
    assert secrets.place().stat().st_mode & 0o777 == 0o600
    assert secrets.place().parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in secrets.place().parent.iterdir()] == ["secrets.env"]
    assert secrets.place().read_text() == "A=1\nB=2\n"


def test_lines_that_a_person_wrote_stay() -> None:
    """S4: comments too."""
    secrets.place().parent.mkdir(parents=True)
    secrets.place().write_text("# mine\nMINE=a=b\nbroken line\n")
    secrets.change({"A": "1"})
    assert secrets.place().read_text() == "# mine\nMINE=a=b\nbroken line\nA=1\n"
    assert secrets.every() == {"MINE": "a=b", "A": "1"}


def test_a_name_that_means_something_else_is_not_taken() -> None:
    """S4: server a_b with key c is not server a with key b_c."""
    known = {"A_B_C": "1"}
    assert secrets.name_for("a", "b c", "1", known) == "A_B_C"
    assert secrets.name_for("a", "b_c", "2", known) == "A_B_C_2"
    assert secrets.name_for("1st", "key", "x", {}) == "SECRET_1ST_KEY"


def test_a_config_may_refer_to_variables_and_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """S4: secrets have names of their own kind."""
    monkeypatch.setenv("PLAIN", "p")
    secrets.change({"A": "1"})
    found = secrets.environment()
    assert (found["PLAIN"], found["secret:A"]) == ("p", "1") and "A" not in found
    assert secrets.reference("A") == "${secret:A}"
    assert secrets.filled("x ${secret:A} ${secret:B}", {"A": "1"}) == "x 1 ${secret:B}"
