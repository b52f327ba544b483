"""Where afoot stands with each host."""

import json
from pathlib import Path

from afoot.hosts.known_hosts import HOSTS
from afoot.hosts.survey import check_hosts, survey_hosts


def write(home: Path, host: str, servers: object) -> Path:
    """A host's file with these servers."""
    file = HOSTS[host].user()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({HOSTS[host].key: servers}))
    return file


def test_each_file_says_whether_afoot_is_in_it(home: Path, program: Path) -> None:
    """U2: missing, ours, gone, foreign, unreadable; what has no file is not checked."""
    write(home, "claude-code", {"a": {"command": "x"}})
    write(home, "cursor", {"afoot": {"command": str(program), "args": ["connect"]}})
    write(home, "windsurf", {"afoot": {"command": "/gone/afoot", "args": ["connect"]}})
    write(home, "gemini", {"afoot": {"command": "/bin/sh", "args": []}})
    write(home, "vscode", {}).write_text("{,}")
    found = {one.host: one for one in check_hosts(home / "elsewhere")}
    assert {host: one.state for host, one in found.items()} == {
        "claude-code": "missing",
        "cursor": "ours",
        "windsurf": "gone",
        "gemini": "foreign",
        "vscode": "unreadable",
    }
    assert found["claude-code"].servers == ["a"] and found["windsurf"].command == "/gone/afoot"
    assert "line 1, column 2" in found["vscode"].problem


def test_every_host_is_surveyed_and_a_projects_files_too(home: Path) -> None:
    """U2: the list has them all."""
    project = home / "project"
    (project / ".vscode").mkdir(parents=True)
    (project / ".vscode" / "mcp.json").write_text("{}")
    found = survey_hosts(project)
    assert [one.host for one in found if one.scope == "user"] == list(HOSTS)
    assert [(one.host, one.state) for one in found if one.scope == "project"] == [("vscode", "missing")]
    assert {one.state for one in found if one.scope == "user"} == {"absent"}
