"""Which servers there should be: tables, files and targets put together, the nearest first."""

import json
from pathlib import Path

import pytest

from afoot.config.settings import ConfigError, Settings
from afoot.config.tables import Server
from afoot.providers.upstream.configured_servers import gather_servers, is_server_target, url_name


def hosts_file(folder: Path, name: str = "mcp.json", **servers: object) -> str:
    """A file with mcpServers in it."""
    (folder / name).write_text(json.dumps({"mcpServers": servers}))
    return str(folder / name)


@pytest.mark.parametrize(
    ("target", "known"),
    [
        ("tools.py", False),
        ("package.module", False),
        (len, False),
        (Path("mcp.json"), True),
        ("config.toml", True),
        ("package.module:server", True),
        ("server.py:mcp", True),
        ("https://mcp.example/mcp", True),
    ],
)
def test_a_target_means_functions_or_servers(target: object, known: bool) -> None:
    """U1: design 5, a file or module of tools, module:server, a URL, an mcp.json."""
    assert is_server_target(target) == known


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.example.com/mcp", "mcp-example-com"),
        ("https://mcp.example.com/", "mcp-example-com"),
        ("https://u:p@example.com/v1/files/mcp?key=1", "example-com-v1-files"),
        ("http://127.0.0.1:9000/mcp", "127-0-0-1-9000"),
        ("http://[::1]:9000/mcp", "1-9000"),
    ],
)
def test_a_url_names_its_server(url: str, name: str) -> None:
    """U1: from host and path, without secrets."""
    assert url_name(url) == name


def test_targets_become_servers(tmp_path: Path) -> None:
    """U1: each under a name of its own."""
    file = hosts_file(tmp_path, files={"command": "fs"})
    found = gather_servers(
        Settings(), ["tools.py", file, "a.b.weather:mcp", "weather.py:mcp", "https://e.example/mcp"]
    ).entries
    assert {name: one.server for name, one in found.items()} == {
        "files": Server(command="fs"),
        "weather": Server(module="a.b.weather:mcp"),
        "weather-2": Server(module="weather.py:mcp"),
        "e-example": Server(url="https://e.example/mcp"),
    }
    assert found["files"].origin == file and found["weather"].origin == "the command line"


def test_the_config_file_wins_over_the_files_of_hosts(tmp_path: Path) -> None:
    """U2: and it is told what was left out."""
    first = hosts_file(tmp_path, "a.json", files={"command": "a"}, mail={"command": "a"})
    second = hosts_file(tmp_path, "b.json", mail={"command": "b"}, sse={"type": "sse", "url": "http://x"})
    settings = Settings(servers={"files": Server(command="mine")}, mcp_servers=[first, second])
    roster = gather_servers(settings)
    assert {name: one.server.command for name, one in roster.entries.items() if not one.why} == {
        "files": "mine",
        "mail": "a",
    }
    assert roster.problems == [
        f"server files of {first} is left out: the config file has one of that name",
        f"server mail of {second} is left out: {first} has one of that name",
    ]
    assert "old HTTP+SSE" in roster.entries["sse"].why
    assert roster.files == [Path(first), Path(second)]


def test_a_table_without_a_way_adds_to_a_server_from_elsewhere(tmp_path: Path) -> None:
    """U2: limits and approval for a server of a host's file."""
    file = hosts_file(tmp_path, files={"command": "fs", "args": ["x"]})
    tables = {
        "files": Server(approval="ask", idle_s=9.0),
        "fils": Server(idle_s=1.0),
        "local": Server(idle_s=2.0),
    }
    found = gather_servers(Settings(servers=tables, mcp_servers=[file])).entries
    assert found["files"].server == Server(command="fs", args=["x"], approval="ask", idle_s=9.0)
    assert found["fils"].why == "needs one of command, url, module; nearest: files"
    assert "local" not in found


def test_a_gateway_is_no_server_of_its_own(tmp_path: Path) -> None:
    """U2: a call would go round and never end."""
    file = hosts_file(
        tmp_path, me={"url": "http://localhost:23668/mcp"}, other={"url": "http://localhost:1/mcp"}
    )
    settings = Settings(mcp_servers=[file])
    found = gather_servers(settings, own_address=settings.http).entries
    assert (found["me"].why, found["other"].why) == ("is this gateway itself", "")


def test_a_gateway_that_listens_nowhere_may_use_any_address(tmp_path: Path) -> None:
    """U2: over stdio and in a program, the address of the settings belongs to another gateway."""
    file = hosts_file(tmp_path, other={"url": "http://localhost:23668/mcp"})
    assert gather_servers(Settings(mcp_servers=[file])).entries["other"].why == ""


def test_a_broken_host_file_spoils_only_its_own_servers(tmp_path: Path) -> None:
    """U2: in the settings it is a problem that is told; as a target it is an error."""
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    good = hosts_file(tmp_path, files={"command": "fs"})
    roster = gather_servers(Settings(mcp_servers=[str(broken), str(tmp_path / "none.json"), good]))
    assert set(roster.entries) == {"files"} and len(roster.problems) == 2
    assert "broken.json, line 1" in roster.problems[0]
    with pytest.raises(ConfigError, match="line 1"):
        gather_servers(Settings(), [str(broken)])
