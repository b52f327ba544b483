"""What the tests of hosts share: a home folder of their own, with sample files in it."""

import sys
from pathlib import Path

import pytest

from afoot.hosts.known_hosts import HOSTS
from afoot.hosts.plan import InstallRequest
from tests.hosts.sample_files import Sample


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, and a program at a path that lasts."""
    names = (
        "XDG_CONFIG_HOME CODEX_HOME CLAUDE_CONFIG_DIR GEMINI_CLI_HOME CLINE_MCP_SETTINGS_PATH AFOOT_CONFIG"
    )
    for name in names.split():
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    program = folder / "bin" / "afoot"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("AFOOT_HOME", raising=False)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def program(home: Path) -> Path:
    """This program, as a host is told to start it."""
    return home / "bin" / "afoot"


def placed(sample: Sample) -> InstallRequest:
    """A sample where its host would have it."""
    wish = InstallRequest(HOSTS[sample.host], sample.scope, Path.cwd())
    wish.file.parent.mkdir(parents=True, exist_ok=True)
    wish.file.write_bytes(sample.data)
    return wish
