"""Secrets of sixty kinds are planted into a gateway; nothing that it writes or says has one of them."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest

from afoot.providers.upstream.oauth.tokens import LoginStore, StoredLogin
from tests.attack.secrets import planted
from tests.attack.secrets.planted import ANSWER, ARGUMENTS, HERE, PLAIN, kinds_in
from tests.cli.conftest import program
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front
from tests.serve.api_client import Api

# Files that are there to hold secrets, for their owner alone; and those that this test wrote.
OWN_FILES: Final = ("afoot.toml", "bad.toml", "secrets.env", "logins", "tools.py", "mcp.json")
PATHS: Final = (
    "/api/calls",
    "/api/snapshot",
    "/api/questions",
    "/api/callers",
    "/api/allow",
    "/api/tools",
    "/api/servers",
    "/api/tabs",
    "/api/session",
    "/api/export",
    "/api/openapi.json",
    "/healthz",
)


class Searched:
    """A gateway full of secrets, and all that was heard of it."""

    def __init__(self, front: Front, bodies: list[bytes]) -> None:
        self.front = front
        self.api = Api(front)
        self.bodies = bodies  # that arrived at the collector
        self.calls: dict[str, dict[str, Any]] = {}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside it."""
        return program(words, self.front.environment)

    def call(self, name: str, tool: str, arguments: object) -> None:
        """Make a call, and keep its end under a name."""
        answer = self.api.post("/api/calls", {"tool": tool, "arguments": arguments}, prefer="respond-async")
        assert answer.status == 202, answer
        self.calls[name] = self.api.ended(str(answer.body["id"]))


@contextmanager
def collecting(bodies: list[bytes]) -> Iterator[int]:
    """A server that keeps the bodies it gets, and answers a GET or a POST of /mcp with all of its head."""

    class Keeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            is_mcp = self.path.startswith("/mcp")
            said = f"{self.path} {self.headers}".encode() if is_mcp else b""
            if not is_mcp:
                bodies.append(body)
            self.send_response(500 if is_mcp else 200)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Keeper) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    """A gateway with secrets everywhere, after calls of every kind."""
    root = tmp_path_factory.mktemp("planted")
    folder, bodies = root / "gate", list[bytes]()
    (folder / "home").mkdir(parents=True)
    tools = folder / "tools.py"
    shutil.copy(HERE / "leaky_tools.py", tools)
    (folder / "home" / "secrets.env").write_text(f"LEAKY_WORD={planted.planted('declared')}\n")
    with collecting(bodies) as port:
        login = f"http://127.0.0.1:{port}/mcp/login"
        store = LoginStore(folder / "home" / "logins")
        access, refresh = planted.planted("oauthaccess"), planted.planted("oauthrefresh")
        store.write("signed", StoredLogin(login, access=access, refresh=refresh))
        servers = {
            "leaky": planted.leaky_server(),
            "web": planted.web_server(port),
            "signed": {"url": login, "auth": "oauth"},
            "typo": {"command": f"no-such-program --api-key {planted.planted('commandline')}"},
        }
        tables = planted.settings(f"http://127.0.0.1:{port}")
        plain = {
            "record_wire": "true",
            "mcp_token": planted.planted("mcptoken"),
            "notice_s": 1,
        }
        front = Front(folder, servers, {**tables, **plain}, (tools,))
        front.config.write_text(front.config.read_text() + "\n" + planted.hook())
        front._settings |= {"PLANTED_VARIABLE": planted.planted("variable")}
        front._settings |= {
            "OTEL_EXPORTER_OTLP_METRICS_HEADERS": f"x-other={planted.planted('otelvariable')}"
        }
        front.start()
        try:
            found = Searched(front, bodies)
            make_calls(found)
            yield found
        finally:
            if front.process.poll() is None:
                front.stop()


def make_calls(found: Searched) -> None:
    """Make calls that get secrets, answer questions with some, and add a server with one."""
    given = {name: one for name, one in ARGUMENTS.items() if name != "door"}
    for fails in ("", "crash", "error"):
        found.call(f"own {fails}", "leak_all", {"given": given, "door": ARGUMENTS["door"], "fails": fails})
    for tool in ("leak", "leak_fault", "leak_and_die"):
        found.call(tool, tool, ARGUMENTS)
    call = found.api.start("ask_and_leak")
    asked = found.api.asked(call)
    assert found.api.post(f"/api/questions/{asked['id']}/answer", {"content": ANSWER}).status == 200
    found.calls["asked"] = found.api.ended(call)
    found.api.post("/api/servers", {"name": "added", **planted.leaky_server()})
    wrong = {"name": "wrong", "url": f"ftp://me:{planted.planted('wrongurl')}@host.invalid/"}
    found.calls["wrong"] = {"answer": found.api.post("/api/servers", wrong).body}


def test_the_tool_got_every_secret(searched: Searched) -> None:
    """S4: else the search below would prove nothing."""
    received = json.loads((searched.front.folder.parent / "received.json").read_text())
    assert received == ARGUMENTS
    ends = {name: call["outcome"] for name, call in searched.calls.items() if "outcome" in call}
    assert ends["own "] == ends["leak"] == "ok" and ends["leak_and_die"] in ("lost", "uncertain")
    assert {ends[name] for name in ("own crash", "own error", "leak_fault", "asked")} == {"failed"}


def test_no_answer_of_the_api_has_a_secret(searched: Searched) -> None:
    """S7: status, calls, events, wire log, servers and their logs, export, errors."""
    api, heard = searched.api, dict[str, object](searched.calls)
    for path in PATHS:
        heard[path] = api.get(path).body
    for name, call in searched.calls.items():
        if "id" in call:
            for path in ("", "/events?follow=no", "/wire"):
                heard[f"{name}{path}"] = api.get(f"/api/calls/{call['id']}{path}").body
            heard[f"{name} again"] = api.post(f"/api/calls/{call['id']}/rerun", {}).body
    for server in ("leaky", "web", "signed", "typo", "added"):
        heard[server] = api.get(f"/api/servers/{server}").body
        heard[f"{server} logs"] = api.get(f"/api/servers/{server}/logs").body
    leaks = {name: kinds for name, one in heard.items() if (kinds := kinds_in(json.dumps(one)))}
    assert leaks == {}
    assert api.token not in json.dumps(heard)


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "status --json",
        "config",
        "config --json",
        "calls",
        "calls --json",
        "log CALL",
        "log CALL --json",
        "export",
        "doctor",
        "doctor --json",
        "servers",
        "servers --json",
        "servers logs leaky",
        "servers logs web",
        "tools --json",
        "watch CALL --json",
        "config --config BAD",
        "doctor --config BAD",
        "call leak_all GIVEN",
    ],
)
def test_no_command_prints_a_secret(searched: Searched, words: str) -> None:
    """S7: what the terminal shows, as text and as JSON, also where it fails."""
    bad = searched.front.folder / "bad.toml"
    bad.write_text(f'[servers.x]\nurl = "ftp://me:{planted.planted("badconfig")}@host.invalid/"\n')
    given = {name: one for name, one in ARGUMENTS.items() if name != "door"}
    meant = {
        "CALL": searched.calls["own crash"]["id"],
        "BAD": str(bad),
        "GIVEN": f"given={json.dumps(given)}",
    }
    done = searched.run(*(meant.get(word, word) for word in words.split()))
    said = done.stdout + done.stderr
    assert said and kinds_in(said) == set() and searched.api.token not in said


def test_spans_and_metrics_have_no_secret(searched: Searched) -> None:
    """S7, V3: what a collector gets."""
    until(lambda: searched.bodies, "telemetry")
    assert [kinds for one in searched.bodies if (kinds := kinds_in(one))] == []


def test_a_name_that_only_sounds_like_a_secret_is_kept(searched: Searched) -> None:
    """S4: tokens, pin_count, passenger, author and key can be looked at."""
    searched.call("plain", "leak_all", {"given": PLAIN})
    assert searched.calls["plain"]["arguments"] == {"given": PLAIN}


def test_no_file_and_no_line_of_the_log_has_a_secret(searched: Searched) -> None:
    """S7: the history with its WAL, the log, the last lists of servers; while it runs, and after its end."""
    folder = searched.front.folder
    while_running = dict(planted.files_with_secrets(folder, *OWN_FILES))
    searched.front.stop()
    searched.front.start()
    searched.api = Api(searched.front)
    searched.call("leak again", "leak", ARGUMENTS)  # it writes to its log, which other tests look at
    after = dict(planted.files_with_secrets(folder, *OWN_FILES))
    assert while_running == {} and after == {}
    said = searched.front.said()
    assert (
        "Traceback" in said and "crashed" in said and "[redacted]" in said and searched.api.token not in said
    )
