"""Where the files of the hosts are."""

import sys
from pathlib import Path

import pytest

from afoot.errors import UnknownName
from afoot.hosts.known_hosts import HOSTS, find_host

FILES = {
    "claude-code": (".claude.json", ".mcp.json"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", None),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json"),
    "windsurf": (".codeium/windsurf/mcp_config.json", None),
    "zed": (".config/zed/settings.json", ".zed/settings.json"),
    "codex": (".codex/config.toml", ".codex/config.toml"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "qwen": (".qwen/settings.json", ".qwen/settings.json"),
    "cline": (".cline/data/settings/cline_mcp_settings.json", None),
}


def test_every_host_has_its_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U2: the user's and the project's."""
    monkeypatch.setattr(sys, "platform", "linux")
    assert set(HOSTS) == set(FILES)
    for name, (user, project) in FILES.items():
        assert HOSTS[name].file("user", home) == home / user
        assert HOSTS[name].file("project", home / "p") == (home / "p" / project if project else None)


def test_variables_that_hosts_honour_are_honoured(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U2: else another file would be changed than the one that is read."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x")
    monkeypatch.setenv("CODEX_HOME", "/c")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/d")
    monkeypatch.setenv("GEMINI_CLI_HOME", "/g")
    monkeypatch.setenv("CLINE_MCP_SETTINGS_PATH", "/l/mcp.json")
    found = {name: str(host.user()) for name, host in HOSTS.items()}
    assert found["claude-desktop"] == "/x/Claude/claude_desktop_config.json"
    assert found["vscode"] == "/x/Code/User/mcp.json" and found["zed"] == "/x/zed/settings.json"
    assert found["codex"] == "/c/config.toml" and found["claude-code"] == "/d/.claude.json"
    assert found["gemini"] == "/g/.gemini/settings.json" and found["cline"] == "/l/mcp.json"
    assert found["cursor"] == str(home / ".cursor/mcp.json")


def test_on_a_mac_applications_have_their_own_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U2: but not Zed."""
    monkeypatch.setattr(sys, "platform", "darwin")
    support = home / "Library" / "Application Support"
    assert HOSTS["claude-desktop"].user() == support / "Claude" / "claude_desktop_config.json"
    assert HOSTS["vscode"].user() == support / "Code" / "User" / "mcp.json"
    assert HOSTS["zed"].user() == home / ".config" / "zed" / "settings.json"


def test_an_unknown_host_lists_the_nearest() -> None:
    """E5: one letter wrong."""
    assert find_host("zed") is HOSTS["zed"]
    with pytest.raises(UnknownName, match=r"nearest: .*claude-code"):
        find_host("claude-cod")
