"""The hosts that afoot knows: their files, how they write a server, and what to do for it to be seen."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from afoot.errors import UnknownName


class Host(Struct, frozen=True):
    """A program that starts MCP servers."""

    name: str
    title: str
    key: str  # the table of its servers
    restart: str
    user: Callable[[], Path]
    project: str = ""  # below the project's folder; empty: it has no such file
    is_toml: bool = False
    type: str = ""  # what it wants as the type of a server that it starts
    expands: str = (
        ""  # how it writes variables: braces ${VAR}, shell also $VAR, editor ${env:VAR}; empty: not
    )
    timeout_in_s: float = 0.0  # what its `timeout` counts, in seconds; 0: it has none
    after_undo: str = ""  # what to do when our entry was taken out; empty: as when it was put in

    def file(self, scope: str, folder: Path) -> Path | None:
        """Where the servers of a scope are written."""
        if scope == "user":
            return self.user()
        return folder / self.project if self.project else None


def find(name: str) -> Host:
    """The host of that name; raises UnknownName with the nearest, or all of them."""
    if name not in HOSTS:
        unknown = UnknownName("host", name, HOSTS)
        if not unknown.nearest:
            unknown.args = (f"{unknown}; there are: {', '.join(HOSTS)}",)
        raise unknown
    return HOSTS[name]


def home() -> Path:
    """The home folder."""
    return Path.home()


def _config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config")


def _applications() -> Path:
    """Where desktop programs keep their settings."""
    return home() / "Library" / "Application Support" if sys.platform == "darwin" else _config()


def _claude_code() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home()) / ".claude.json"


def _codex() -> Path:
    return Path(os.environ.get("CODEX_HOME") or home() / ".codex") / "config.toml"


def _gemini() -> Path:
    return Path(os.environ.get("GEMINI_CLI_HOME") or home()) / ".gemini" / "settings.json"


def _zed() -> Path:
    folder = home() / ".config" if sys.platform == "darwin" else _config()
    return folder / "zed" / "settings.json"


_ALL = (
    Host(
        "claude-code", "Claude Code", "mcpServers",
        "start a new session of Claude Code; /mcp lists its servers",
        user=_claude_code, project=".mcp.json", type="stdio", expands="braces", timeout_in_s=0.001,
    ),
    Host(
        "claude-desktop", "Claude Desktop", "mcpServers", "quit Claude Desktop and open it again",
        user=lambda: _applications() / "Claude" / "claude_desktop_config.json",
    ),
    Host(
        "cursor", "Cursor", "mcpServers", "reload the window of Cursor; its settings list the MCP servers",
        user=lambda: home() / ".cursor" / "mcp.json", project=".cursor/mcp.json", expands="editor",
    ),
    Host(
        "vscode", "VS Code", "servers", "run `MCP: List Servers` in VS Code and start afoot",
        user=lambda: _applications() / "Code" / "User" / "mcp.json", project=".vscode/mcp.json",
        type="stdio", expands="editor", after_undo="reload the window of VS Code",
    ),
    Host(
        "windsurf", "Windsurf", "mcpServers", "refresh the MCP servers in Windsurf's Cascade panel",
        user=lambda: home() / ".codeium" / "windsurf" / "mcp_config.json", expands="editor",
    ),
    Host(
        "zed", "Zed", "context_servers", "nothing: Zed reads its settings when they change",
        user=_zed, project=".zed/settings.json",
    ),
    Host(
        "codex", "Codex", "mcp_servers", "start a new session of Codex; /mcp lists its servers",
        user=_codex, project=".codex/config.toml", is_toml=True,
    ),
    Host(
        "gemini", "Gemini CLI", "mcpServers", "start Gemini CLI anew; /mcp lists its servers",
        user=_gemini, project=".gemini/settings.json", expands="shell", timeout_in_s=0.001,
    ),
)  # fmt: skip
HOSTS = {host.name: host for host in _ALL}
