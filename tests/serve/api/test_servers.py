"""Servers over the operator's API: added, shown, removed, and what bad input is told."""

import sys
from pathlib import Path

import pytest
from msgspec import json

from tests.serve.api_client import Api

TINY = Path(__file__).parents[2] / "cli" / "small_server.py"
HOSTILE = Path(__file__).parents[2] / "attack" / "upstream" / "hostile_server.py"


def test_a_server_is_added_shown_reloaded_and_removed(api: Api) -> None:
    """U1: until the gateway ends; arguments and variables are not shown."""
    body = {
        "name": "a/b c", "command": sys.executable, "args": [str(TINY), "x", "tiny_tool"],
        "env": {"KEY": "hush"}, "ceiling_s": 9,
    }  # fmt: skip
    added = api.post("/api/servers", body)
    assert (added.status, added.body["state"], added.body["tools"]) == (201, "ready", 1), added
    assert "hush" not in str(added.body) and added.body["lasting"] is False
    assert added.body["restarts"] == 0 and added.body["up_since"] > 0
    assert api.get("/api/servers/a%2Fb%20c").body == added.body
    assert api.get("/api/servers").body["servers"] == [added.body]
    tool = api.get("/api/tools/tiny_tool").body
    assert (tool["server"], tool["limits"]["ceiling_s"]) == ("a/b c", 9)
    assert api.get("/api/servers/a%2Fb%20c/logs?limit=1").body["lines"][0]["text"] == "tiny offers tiny_tool"
    reloaded = api.post("/api/servers/a%2Fb%20c/reload", {})
    assert reloaded.status == 200 and reloaded.body["pid"] != added.body["pid"]
    assert api.post("/api/servers", body).status == 422
    removed = api.send("DELETE", "/api/servers/a%2Fb%20c", None, {})
    assert (removed.status, removed.body) == (200, {"removed": "a/b c", "note": ""})
    assert api.get("/api/servers").body == {"servers": [], "problems": []}


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({}, "name", "body.name: must be a text"),
        ([], "", "body"),
        ({"name": "x"}, "", "needs one of command, url, module"),
        ({"name": "x", "command": "a", "url": "https://x"}, "url", "exactly one of"),
        ({"name": "x", "url": "ftp://x"}, "url", "must begin with http"),
        ({"name": "x", "command": "a", "era": "never"}, "era", "must be one of"),
        ({"name": "x", "command": "a", "idle_s": -1}, "idle_s", "must not be negative"),
        ({"name": "x", "command": "a", "env": {"A": 1}}, "env", "str"),
        ({"name": "x", "comand": "a"}, "comand", "unknown; nearest: command"),
        ({"name": "local", "command": "a"}, "command", "your own functions"),
        ({"name": "", "command": "a"}, "", "no name for a server"),
    ],
)
def test_a_server_that_cannot_be_is_refused_with_the_field(
    api: Api, body: object, field: str, told: str
) -> None:
    """E4: nothing is started."""
    answer = api.post("/api/servers", body)
    assert answer.status == 422 and told in answer.error["message"], answer
    assert field in str(answer.error.get("fields", ""))
    assert api.get("/api/servers").body["servers"] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/servers/nobody"),
        ("GET", "/api/servers/nobody/logs"),
        ("DELETE", "/api/servers/nobody"),
        ("POST", "/api/servers/nobody/reload"),
    ],
)
def test_an_unknown_server_is_not_found(api: Api, method: str, path: str) -> None:
    """E5: 404."""
    answer = api.send(method, path, None, {})
    assert answer.status == 404 and "unknown server 'nobody'" in answer.error["message"]


def test_a_server_that_does_not_start_is_listed_with_the_reason(api: Api) -> None:
    """U1: it is there, and can be removed."""
    answer = api.post("/api/servers", {"name": "gone", "command": "/no/such/program"})
    assert (answer.status, answer.body["state"]) == (201, "failed")
    assert "/no/such/program" in answer.body["error"]
    assert api.send("DELETE", "/api/servers/gone", None, {}).status == 200


def test_a_server_says_which_of_its_tools_are_renamed_or_refused(api: Api, tmp_path: Path) -> None:
    """U12: and a tool says its own name there."""
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in ("afoot_wait", "x", "x")]
    (tmp_path / "tools.json").write_text(json.encode(listed).decode())
    body = {"name": "evil", "command": sys.executable, "args": [str(HOSTILE), str(tmp_path)]}
    added = api.post("/api/servers", body).body
    assert added["renamed"] == [
        "evil/afoot_wait is offered as evil__afoot_wait: names like that are the gateway's own"
    ]
    assert added["refused"] == ["x stands twice in its list; the first counts"]
    assert api.get("/api/tools/evil__afoot_wait").body["own"] == "afoot_wait"
    api.send("DELETE", "/api/servers/evil", None, {})
