"""`afoot servers`, and a gateway that follows its config: real servers come, go and are replaced under it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.commands.test_serve import read, serve
from tests.cli.conftest import program
from tests.e2e.gateway import until

TINY = Path(__file__).parents[1] / "small_server.py"


def table(name: str, *tools: str, more: str = "") -> str:
    """A server in the config."""
    words = json.dumps([str(TINY), name, *tools])
    return f"[servers.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {words}\n{more}\n"


class Shop:
    """A gateway with a config of its own, and the program beside it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.file = folder / "afoot.toml"
        self.folder, self.environment = folder, environment

    def write(self, *tables: str) -> None:
        """Change the config."""
        self.file.write_text("".join(tables))

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command."""
        return program(words, self.environment, self.folder)

    def show(self, name: str) -> dict[str, Any]:
        """A server as it is."""
        return self.get(f"/api/servers/{name}")

    def tools(self) -> set[str]:
        """The names of all tools."""
        return {one["name"] for one in self.get("/api/tools")["tools"]}

    def health(self) -> dict[str, Any]:
        """How the gateway is."""
        return self.get("/healthz")

    def get(self, path: str) -> Any:
        """Ask the gateway itself, which is quicker than a program."""
        address = json.loads((self.folder / "home" / "gateway.json").read_text())
        url = address["mcp"].removesuffix("/mcp") + path
        with urlopen(
            Request(url, headers={"Authorization": f"Bearer {address['token']}"}), timeout=10
        ) as told:
            return json.load(told)


@pytest.fixture
def shop(lone: dict[str, str], tmp_path: Path) -> Shop:
    """Not yet open."""
    return Shop(tmp_path, lone)


@pytest.fixture
def open_shop(shop: Shop) -> Iterator[Shop]:
    """With the server `first` in it."""
    shop.write(table("first", "one", "slow"))
    with serve(["--http", "127.0.0.1:0"], shop.environment, shop.folder) as serving:
        lines = read(serving, "Ctrl-C")
        assert lines[:2] == ["afoot serves 2 tools: one, slow", "  from 1 server: first"]
        yield shop


def test_the_log_shows_what_a_failed_tool_of_a_server_said(shop: Shop) -> None:
    """V2, E2: its own words, not only that there was an error."""
    shop.write(table("first", "broken"))
    with serve(["--http", "127.0.0.1:0"], shop.environment, shop.folder) as serving:
        read(serving, "Ctrl-C")
        assert shop.run("call", "broken").returncode == 1
        [line] = shop.run("calls", "--json").stdout.splitlines()
        [told] = [
            one for one in shop.run("log", json.loads(line)["id"]).stdout.splitlines() if "finished" in one
        ]
    assert "failed: tool broken reported an error: broken of first" in told


def test_a_server_is_listed_shown_and_called(open_shop: Shop) -> None:
    """U1, U3: by its tool's name, or by server and name; what it says is kept."""
    told = open_shop.show("first")
    assert (told["state"], told["tools"], told["era"]) == ("ready", 2, "2025-11-25")
    assert (told["transport"], told["version"], told["lasting"]) == ("stdio", "tiny 7", True)
    assert told["pid"] and str(TINY) not in json.dumps(told)
    assert json.loads(open_shop.run("servers", "first", "--json").stdout) == told
    assert "first" in open_shop.run("servers").stdout and "pid" in open_shop.run("servers", "first").stdout
    for name in ("one", "first/one"):
        assert "one of first" in open_shop.run("call", name).stdout
    assert "tiny offers one, slow" in open_shop.run("servers", "logs", "first").stdout
    assert "1 server, 1 of them running" in open_shop.run("status").stdout


def test_a_wrong_name_lists_the_nearest(open_shop: Shop) -> None:
    """E5: exit 2."""
    for words in (["frist"], ["reload", "frist"], ["remove", "frist"], ["logs", "frist"]):
        done = open_shop.run("servers", *words)
        assert done.returncode == 2 and "unknown server 'frist'; nearest: first" in done.stderr


def test_a_server_is_added_reloaded_and_removed(open_shop: Shop) -> None:
    """U1: at run time, and not written anywhere; names that collide get a prefix."""
    command = ["--", sys.executable, str(TINY), "second", "one", "two"]
    done = open_shop.run("servers", "add", "second", *command)
    assert done.returncode == 0 and "second: ready" in done.stdout and "[servers.second]" in done.stderr
    assert open_shop.tools() == {"first__one", "slow", "second__one", "two"}
    assert "one of second" in open_shop.run("call", "second/one").stdout
    before = open_shop.show("second")["pid"]
    assert open_shop.run("servers", "reload", "second").returncode == 0
    assert open_shop.show("second")["pid"] != before
    assert "second" not in open_shop.file.read_text()
    assert open_shop.run("servers", "add", "second", *command).returncode == 2
    assert open_shop.run("servers", "add", "third").returncode == 2
    assert open_shop.run("servers", "add", "third", "--url", "ftp://x").returncode == 2
    assert open_shop.run("servers", "remove", "second").stdout == "removed second\n"
    assert open_shop.tools() == {"one", "slow"}
    assert "still has it" in open_shop.run("servers", "remove", "first").stderr


def test_a_server_that_does_not_start_is_added_with_exit_1(open_shop: Shop) -> None:
    """U1, V4: a script sees it by the exit code; the server stays, with its error, and can be removed."""
    done = open_shop.run("servers", "add", "broken", "--", sys.executable, "-c", "raise SystemExit('no key')")
    assert done.returncode == 1 and "broken: failed" in done.stdout
    assert done.stderr == "it was added, but it cannot be used; `afoot servers remove broken` removes it\n"
    assert open_shop.run("servers", "remove", "broken").returncode == 0
    done = open_shop.run("servers", "add", "broken", "--json", "--", "no-such-program")
    assert done.returncode == 1 and json.loads(done.stdout)["error"]


def test_the_config_is_followed_while_calls_go_on(open_shop: Shop) -> None:
    """U1, C3: servers come, change and go; a call in flight finishes on the old connection."""
    calling = subprocess.Popen(
        [sys.executable, "-m", "afoot", "call", "slow"],
        env=open_shop.environment, cwd=open_shop.folder, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: open_shop.show("first")["in_use"] == 1, "the call runs")
    open_shop.write(table("first", "one", "new", more="ceiling_s = 7"), table("extra", "other"))
    until(lambda: open_shop.tools() == {"one", "new", "other"}, "the new tools")
    assert "slow of first" in calling.communicate(timeout=10)[0]
    assert open_shop.get("/api/tools/one")["limits"]["ceiling_s"] == 7
    before = open_shop.show("first")["pid"]
    open_shop.write(table("first", "one", "new", more="ceiling_s = 8"))
    until(lambda: open_shop.tools() == {"one", "new"}, "one server less")
    assert open_shop.get("/api/tools/one")["limits"]["ceiling_s"] == 8
    assert open_shop.show("first")["pid"] == before  # other limits need no other connection


def test_a_config_with_an_error_keeps_the_old_one_running(open_shop: Shop) -> None:
    """U2: line and key are named in the log and in /healthz; what needs a new start is said."""
    open_shop.write(table("first", "one"), "[servers.bad]\ncomand = 5\n")
    problems = until(lambda: open_shop.health()["problems"], "the problem")
    assert "afoot.toml, line 6" in problems[0] and "servers.bad.comand" in problems[0]
    assert open_shop.tools() == {"one", "slow"} and "line 6" in open_shop.run("status").stdout
    open_shop.write('durable = "full"\n', table("first", "one"))
    until(lambda: open_shop.tools() == {"one"}, "the tools of the good one")
    assert open_shop.health()["problems"] == ["durable takes effect when the gateway is started again"]
    open_shop.write(table("first", "one"))
    until(lambda: not open_shop.health()["problems"], "no problem")


def test_a_hosts_file_is_a_target(shop: Shop) -> None:
    """U2: read as it is; servers with a problem are told at the start, and hurt no other."""
    entry = {"command": sys.executable, "args": [str(TINY), "files", "look"]}
    servers = {"files": entry, "old": {"type": "sse", "url": "http://x/sse"}, "none": {"command": "/no/such"}}
    (shop.folder / "mcp.json").write_text(f"// mine\n{json.dumps({'mcpServers': servers})[:-1]},}}")
    with serve(["mcp.json", "--http", "127.0.0.1:0"], shop.environment, shop.folder) as serving:
        told = "\n".join(read(serving, "Ctrl-C"))
        assert "1 tool: look" in told and "from 3 servers: files, none, old" in told
        assert "old: speaks the old HTTP+SSE" in told
        until(lambda: shop.show("none")["state"] == "failed", "the failure")
        assert shop.run("servers", "none").stdout.count("/no/such") >= 1
        assert "look of files" in shop.run("call", "look").stdout
        (shop.folder / "mcp.json").write_text("{")
        until(lambda: shop.health()["problems"], "the problem")
        assert shop.tools() == {"look"}


def test_a_known_server_starts_with_its_first_call(shop: Shop) -> None:
    """U1: after the first time it is started only when a tool of it is called."""
    shop.write(table("first", "one"))
    for expected in ("ready", "idle"):
        with serve(["--http", "127.0.0.1:0"], shop.environment, shop.folder) as serving:
            assert "1 tool: one" in read(serving, "Ctrl-C")[0]
            assert shop.show("first")["state"] == expected
            assert "one of first" in shop.run("call", "one").stdout
            assert shop.show("first")["state"] == "ready"


def test_a_variable_that_is_missing_is_named(shop: Shop) -> None:
    """U2: for that server alone."""
    shop.write(table("first", "one"), table("lacks", "two", more='env = { KEY = "${NOT_SET_HERE}" }'))
    with serve(["--http", "127.0.0.1:0"], shop.environment, shop.folder) as serving:
        assert any("lacks: NOT_SET_HERE is not set" in line for line in read(serving, "Ctrl-C"))
        assert shop.tools() == {"one"}


def test_approval_is_a_flag(shop: Shop) -> None:
    """A1: `afoot serve --approval ask` sets the default for all; a wrong word is told."""
    shop.write(table("first", "one"), table("second", "two", more='approval = "auto"'))
    with serve(["--http", "127.0.0.1:0", "--approval", "ask"], shop.environment, shop.folder) as serving:
        read(serving, "Ctrl-C")
        found = {one["name"]: one["approval"] for one in shop.get("/api/tools")["tools"]}
        assert found == {"one": "ask", "two": "auto"}
        assert "approval: ask" in shop.run("tools", "one").stdout
    wrong = shop.run("serve", "--approval", "aks")
    assert wrong.returncode == 2 and "nearest: ask" in wrong.stderr


def test_a_target_can_be_called_without_a_gateway(shop: Shop) -> None:
    """U1: `afoot call --target mcp.json` waits for its servers, and starts no others."""
    entry = {"command": sys.executable, "args": [str(TINY), "files", "look"]}
    (shop.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"files": entry}}))
    shop.write("[servers.other]\ncommand = '/no/such/program'\n")
    done = shop.run("call", "look", "--target", "mcp.json")
    assert "look of files" in done.stdout and "/no/such" not in done.stderr, done
