"""`afoot install`: what it prints, what it writes, and what it leaves alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import program
from tests.hosts.sample_files import SAMPLES

CURSOR = next(sample for sample in SAMPLES if sample.host == "cursor")
HOSTS = "claude-code claude-desktop cursor vscode windsurf zed codex gemini qwen cline".split()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with Cursor's file in it."""
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(CURSOR.data)
    return tmp_path


@pytest.fixture
def environment(home: Path, lone: dict[str, str]) -> dict[str, str]:
    """An environment in which it is home."""
    unset = ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME")
    return {key: value for key, value in lone.items() if key not in unset} | {"HOME": str(home)}


def files(home: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    found = (path for path in home.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): path.read_bytes() for path in found}


def test_without_a_host_it_lists_them_all(home: Path, environment: dict[str, str]) -> None:
    """V2, V4: where their files are, and whether afoot is in them."""
    done = program(("install",), environment, home)
    assert [line.split()[0] for line in done.stdout.splitlines()[::2]] == HOSTS
    assert "without afoot; 5 other servers" in done.stdout and str(home / ".cursor/mcp.json") in done.stdout
    told = json.loads(program(("install", "--json"), environment, home).stdout)["hosts"]
    states = {one["host"]: one["state"] for one in told if one["scope"] == "user"}
    assert states == {**dict.fromkeys(HOSTS, "absent"), "cursor": "missing"}


def test_an_unknown_host_names_the_nearest(environment: dict[str, str]) -> None:
    """E5: exit 2, and one line."""
    done = program(("install", "cursro"), environment)
    assert done.returncode == 2 and "nearest: cursor" in done.stderr and len(done.stderr.splitlines()) == 1


def test_an_unknown_host_that_is_like_none_lists_them_all(environment: dict[str, str]) -> None:
    """E5: whoever typed it wants to know what there is."""
    done = program(("install", "notepad"), environment)
    assert done.returncode == 2 and f"unknown host 'notepad'; there are: {', '.join(HOSTS)}" in done.stderr


def test_after_an_undo_nobody_is_told_to_start_afoot(home: Path, environment: dict[str, str]) -> None:
    """V2: the entry is gone; there is nothing to start."""
    put_in = program(("install", "vscode"), environment, home)
    assert "and start afoot" in put_in.stderr
    taken_out = program(("install", "vscode", "--undo"), environment, home)
    assert taken_out.returncode == 0 and "next: reload the window of VS Code" in taken_out.stderr
    assert "start afoot" not in taken_out.stderr


def test_it_prints_the_difference_and_what_to_restart(home: Path, environment: dict[str, str]) -> None:
    """U2, V2: the difference on stdout, words on stderr; the entry starts this program."""
    done = program(("install", "cursor"), environment, home)
    assert done.returncode == 0 and '+      "afoot": {' in done.stdout and "next: reload" in done.stderr
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["afoot"]
    assert entry["args"] == ["-m", "afoot", "connect"] and entry["env"]["AFOOT_HOME"]
    started = subprocess.run(
        [entry["command"], *entry["args"], "--help"], env={**os.environ, **entry["env"]},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert started.returncode == 0 and "connect" in started.stdout
    again = program(("install", "cursor"), environment, home)
    assert again.stdout == "" and "nothing to do" in again.stderr


def test_a_dry_run_writes_nothing(home: Path, environment: dict[str, str]) -> None:
    """U2: neither here nor in the state folder."""
    before = files(home)
    done = program(("install", "cursor", "--adopt", "--dry-run"), environment, home)
    assert (
        done.returncode == 0
        and "[servers.playwright]" in done.stdout
        and "nothing was written" in done.stderr
    )
    assert files(home) == before
    undo = program(("install", "cursor", "--undo", "--dry-run"), environment, home)
    assert undo.returncode == 0 and files(home) == before


def test_servers_are_adopted_and_put_back(home: Path, environment: dict[str, str]) -> None:
    """U2, S4, V4: no secret is printed; what stays is named with the reason."""
    done = program(("install", "cursor", "--adopt", "--json"), environment, home)
    told = json.loads(done.stdout)
    assert [one["name"] for one in told["adopted"]] == list(CURSOR.adopted)
    assert set(told["left"]) == set(CURSOR.left) and "hush" not in done.stdout + done.stderr
    assert len(told["changed"]) == 2 and len(told["copies"]) == 1
    listed = program(("config", "--config", told["changed"][1], "--json"), environment, home)
    assert listed.returncode == 0, listed.stderr
    undo = program(("install", "cursor", "--undo"), environment, home)
    assert undo.returncode == 0 and "put playwright back" in undo.stderr and "hush" not in undo.stdout
    assert (home / ".cursor" / "mcp.json").read_bytes() == CURSOR.data


def test_adopted_servers_go_to_the_config_that_was_named(home: Path, environment: dict[str, str]) -> None:
    """U2: and the entry names it."""
    done = program(("install", "cursor", "--adopt", "--config", "my.toml"), environment, home)
    assert done.returncode == 0 and "[servers.playwright]" in (home / "my.toml").read_text()
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["afoot"]
    assert entry["env"]["AFOOT_CONFIG"] == str(home / "my.toml")


def test_a_projects_file_is_the_one_where_we_are(home: Path, environment: dict[str, str]) -> None:
    """U2: --scope project."""
    folder = home / "shop"
    folder.mkdir()
    done = program(("install", "claude-code", "--scope", "project"), environment, folder)
    assert done.returncode == 0 and "afoot" in json.loads((folder / ".mcp.json").read_text())["mcpServers"]
    assert not (home / ".claude.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        "cursor --undo --adopt",
        "--undo",
        "windsurf --scope project",
        "cursor --scope team",
    ],
)
def test_wrong_usage_is_one_line(environment: dict[str, str], words: str) -> None:
    """V2: exit 2."""
    done = program(("install", *words.split()), environment)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_a_file_that_is_no_json_is_left_alone(home: Path, environment: dict[str, str]) -> None:
    """U2, V4: line and column, also for programs."""
    (home / ".cursor" / "mcp.json").write_text('{\n  "mcpServers": oops\n}')
    done = program(("install", "cursor", "--json"), environment, home)
    assert done.returncode == 2 and "line 2, column 17" in json.loads(done.stdout)["error"]["message"]


def test_it_starts_at_once(environment: dict[str, str], home: Path) -> None:
    """V2: neither mcp nor pydantic nor uvicorn is imported."""
    code = (
        "import sys, afoot.cli\nsys.argv = ['afoot', 'install', 'cursor', '--dry-run', '--adopt']\n"
        "try:\n    afoot.cli.main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'mcp', 'pydantic', 'uvicorn', 'asyncio'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=home, capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
