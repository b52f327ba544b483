"""`HOSTS` lists the hosts that afoot knows: their files, and how they write a server."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from afoot.errors import UnknownName

LONG_S = 3600.0  # the timeout of a call that is written where a host has one; the most that Cline accepts
START_S = 60.0  # a gateway that loads many tools is slow


class Host(Struct, frozen=True):
    """A program that starts MCP servers."""

    name: str
    title: str
    key: str  # the table of its servers
    restart: str  # how the person makes the host read its file again
    user: Callable[[], Path]
    project: str = ""  # path below the project's folder; empty: the host has no project file
    is_toml: bool = False
    type: str = ""  # the `type` that it requires for a server that it starts
    # How it writes variables: braces ${VAR}, shell also $VAR, editor ${env:VAR}; empty: it expands none.
    expands: str = ""
    timeout_in_s: float = 0.0  # the unit of its `timeout` in seconds; 0: it has none
    after_undo: str = ""  # the next step after an undo; empty: the same as `restart`
    # Keys of our entry besides the command: timeouts, whether the host waits for afoot and asks itself.
    options: dict[str, object] = {}
    timeout_key: str = "timeout"  # of a call, in our entry
    client: str = ""  # the name that it sends, as a pattern; empty: it has no timeout in its file
    notes: tuple[str, ...] = ()  # for the person who installs

    def file(self, scope: str, folder: Path) -> Path | None:
        """The file with the servers of a scope; None if the host has none."""
        if scope == "user":
            return self.user()
        return folder / self.project if self.project else None

    def call_limit_s(self, entry: object) -> float | None:
        """The seconds that the host waits for a call, by our entry; None if the entry has no such number."""
        value = entry.get(self.timeout_key) if self.client and isinstance(entry, dict) else None
        return value * (self.timeout_in_s or 1.0) if isinstance(value, int | float) and value > 0 else None


def find_host(name: str) -> Host:
    """The host of this name; raises UnknownName that lists the nearest hosts, or all."""
    if name not in HOSTS:
        unknown = UnknownName("host", name, HOSTS)
        if not unknown.nearest:
            unknown.args = (f"{unknown}; there are: {', '.join(HOSTS)}",)
        raise unknown
    return HOSTS[name]


def home() -> Path:
    """The home folder."""
    return Path.home()


def _config_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config")


def _app_settings_folder() -> Path:
    """The folder of the settings of desktop programs."""
    return home() / "Library" / "Application Support" if sys.platform == "darwin" else _config_folder()


def _claude_code() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home()) / ".claude.json"


def _codex() -> Path:
    return Path(os.environ.get("CODEX_HOME") or home() / ".codex") / "config.toml"


def _gemini() -> Path:
    return Path(os.environ.get("GEMINI_CLI_HOME") or home()) / ".gemini" / "settings.json"


def _cline() -> Path:
    named = os.environ.get("CLINE_MCP_SETTINGS_PATH")
    return Path(named) if named else home() / ".cline" / "data" / "settings" / "cline_mcp_settings.json"


def _zed() -> Path:
    folder = home() / ".config" if sys.platform == "darwin" else _config_folder()
    return folder / "zed" / "settings.json"


_HOSTS = (
    Host(
        "claude-code", "Claude Code", "mcpServers",
        "start a new session of Claude Code; /mcp lists its servers",
        user=_claude_code, project=".mcp.json", type="stdio", expands="braces", timeout_in_s=0.001,
    ),
    Host(
        "claude-desktop", "Claude Desktop", "mcpServers", "quit Claude Desktop and open it again",
        user=lambda: _app_settings_folder() / "Claude" / "claude_desktop_config.json",
    ),
    Host(
        "cursor", "Cursor", "mcpServers", "reload the window of Cursor; its settings list the MCP servers",
        user=lambda: home() / ".cursor" / "mcp.json", project=".cursor/mcp.json", expands="editor",
    ),
    Host(
        "vscode", "VS Code", "servers", "run `MCP: List Servers` in VS Code and start afoot",
        user=lambda: _app_settings_folder() / "Code" / "User" / "mcp.json", project=".vscode/mcp.json",
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
        client="codex-mcp-client", timeout_key="tool_timeout_sec",
        options={
            "startup_timeout_sec": round(START_S), "tool_timeout_sec": round(LONG_S),
            "required": True, "default_tools_approval_mode": "approve",
        },
        notes=(
            "Codex does not ask before it calls afoot's tools (default_tools_approval_mode); afoot asks about"
            " dangerous ones",
            "Codex does not start without afoot (required); remove that key if it should",
        ),
    ),
    Host(
        "gemini", "Gemini CLI", "mcpServers", "start Gemini CLI anew; /mcp lists its servers",
        user=_gemini, project=".gemini/settings.json", expands="shell", timeout_in_s=0.001,
        client="gemini-cli-mcp-client*", options={"timeout": round(LONG_S * 1000)},
        notes=(
            "Gemini CLI starts MCP servers only in trusted folders; `/permissions trust` in it trusts one",
        ),
    ),
    Host(
        "qwen", "Qwen Code", "mcpServers", "start Qwen Code anew; /mcp lists its servers",
        user=lambda: home() / ".qwen" / "settings.json", project=".qwen/settings.json", expands="shell",
        timeout_in_s=0.001, client="qwen-cli-mcp-client*", options={"timeout": round(LONG_S * 1000)},
    ),
    Host(
        "cline", "Cline", "mcpServers", "start a new session of Cline; `cline mcp` lists its servers",
        user=_cline, timeout_in_s=1.0, client="@cline/core", options={"timeout": round(LONG_S)},
    ),
)  # fmt: skip
HOSTS = {host.name: host for host in _HOSTS}
