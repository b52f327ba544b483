"""The entry `afoot`: how this program is started, whose an entry is, and what may make its path go away."""

import sys
from pathlib import Path

import pytest

from afoot.hosts.document import HostDocument, afoot_entry, is_ours, own_command_words, path_warnings
from afoot.hosts.known_hosts import HOSTS


def test_this_program_is_started_by_its_absolute_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U2: the program if there is one, else this interpreter."""
    assert own_command_words() == [str(home / "bin" / "afoot")]
    monkeypatch.setattr(sys, "argv", ["bin/afoot"])
    assert own_command_words() == [str(home / "bin" / "afoot")]
    monkeypatch.setattr(sys, "argv", ["/somewhere/afoot/__main__.py"])
    assert own_command_words() == [sys.executable, "-m", "afoot"]
    monkeypatch.setattr(sys, "argv", ["afoot"])
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert own_command_words() == [str(home / "bin" / "afoot")]


def test_the_entry_names_the_state_folder_and_the_config_that_were_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U2: what a host starts finds what this command would."""
    assert afoot_entry(HOSTS["cursor"]) == {"command": str(home / "bin" / "afoot"), "args": ["connect"]}
    monkeypatch.setenv("AFOOT_HOME", "state")
    found = afoot_entry(HOSTS["vscode"], home / "my.toml")
    assert found["env"] == {"AFOOT_HOME": str(home / "state"), "AFOOT_CONFIG": str(home / "my.toml")}
    assert found["type"] == "stdio"


@pytest.mark.parametrize(
    ("value", "is_it"),
    [
        ({"command": "/x/afoot", "args": ["connect"]}, True),
        ({"command": "afoot", "args": ["connect"], "env": {"A": "1"}}, True),
        ({"command": "C:\\x\\afoot.exe", "args": ["connect"]}, True),
        ({"command": "/x/python", "args": ["-m", "afoot", "connect"]}, True),
        ({"command": "/x/afoot", "args": ["serve", "tools.py", "--stdio"]}, False),
        ({"command": "/x/other", "args": ["connect"]}, False),
        ({"command": "/x/afoot"}, False),
        ({"url": "http://127.0.0.1:23668/mcp"}, False),
        ("afoot connect", False),
        (None, False),
    ],
)
def test_an_entry_is_ours_if_it_starts_connect(value: object, is_it: bool) -> None:
    """U2: wherever it lies."""
    assert is_ours(value) == is_it


def test_a_path_in_a_clone_or_a_temporary_folder_is_doubtful(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U2: a warning, no refusal."""
    assert path_warnings("/usr/bin/afoot") == []
    clone = home / "clone"
    (clone / ".git").mkdir(parents=True)
    assert "lies in a clone" in path_warnings(str(clone / ".venv" / "bin" / "afoot"))[0]
    assert "temporary" in path_warnings("/tmp/afoot")[0]
    assert "temporary" in path_warnings(str(home / ".cache" / "uv" / "afoot"))[0]


def test_a_byte_order_mark_stays_in_a_file_that_has_nothing_else() -> None:
    """U2, S8: its host wrote it, and may look for it; found by the fuzzer."""
    added = HostDocument(HOSTS["cursor"], Path("mcp.json"), "\ufeff").insert("afoot", {"command": "x"})
    assert added.text.startswith("\ufeff{") and added.servers() == {"afoot": {"command": "x"}}
