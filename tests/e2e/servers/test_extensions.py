"""Extensions of a client are declared to servers for that client, and those of a server are declared back."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_with_servers import Front, fronting, python
from tests.e2e.raw_client import PREFIX, Http, Message, hello, last, modern, request

pytestmark = pytest.mark.timeout(60)
RAW = "tests.providers.upstream.raw_server"
APPS: Message = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
OTHER: Message = {"x.example/more": {"a": 1}}
TASKS: Message = {"io.modelcontextprotocol/tasks": {}}


class Host:
    """A client of one era that declares extensions."""

    def __init__(self, front: Front, era: str, extensions: Message) -> None:
        self._http = Http(front.url)
        self._is_modern = era == "2026"
        self._can: Message = {"extensions": extensions} if extensions else {}
        if self._is_modern:
            self.server = self.ask("server/discover")["capabilities"]
            return
        response = self._http.post(request("initialize", hello(self._can)), mcp_protocol_version=None)
        self.server = last(response)["result"]["capabilities"]
        self._http.session = response.getheader("mcp-session-id")
        self._http.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).read()

    def ask(self, method: str, **params: Any) -> Message:
        """The result of a request."""
        if self._is_modern:
            answer = self._http.ask(modern(method, params, capabilities=self._can))
        else:
            answer = self._http.ask(request(method, params))
        found: Message = answer["result"]
        return found

    def declared(self) -> Message:
        """The extensions that the server sees in a call of this client."""
        result = self.ask("tools/call", name="declared", arguments={})
        found: Message = json.loads(result["content"][0]["text"])
        return {name: value for name, value in found.items() if name not in TASKS}

    def close(self) -> None:
        """Leave."""
        self._http.close()


@pytest.mark.parametrize("per_caller", [False, True], ids=["shared", "per caller"])
@pytest.mark.parametrize("client", ["2025", "2026"])
@pytest.mark.parametrize("server", ["2025", "2026"])
def test_each_client_declares_its_own_extensions_to_the_server(
    tmp_path: Path, server: str, client: str, per_caller: bool
) -> None:
    """U8: also where clients share the server; tasks are not passed on, as each hop has its own."""
    behind = {"raw": {**python(RAW, server, "apps"), "per_caller": per_caller}}
    with fronting(tmp_path, behind, own=()) as front:
        every: list[Message] = [APPS, {}, {**OTHER, **APPS}, {**OTHER, **TASKS}]
        hosts = [Host(front, client, extensions) for extensions in every]
        for host in hosts:
            host.ask("tools/list")
        for _ in range(2):
            assert [host.declared() for host in hosts] == [APPS, {}, {**OTHER, **APPS}, OTHER]
        for host in hosts:
            host.close()


@pytest.mark.parametrize("client", ["2025", "2026"])
@pytest.mark.parametrize("server", ["2025", "2026"])
def test_the_servers_extensions_are_declared_back(tmp_path: Path, server: str, client: str) -> None:
    """U8: beside our own."""
    with fronting(tmp_path, {"raw": python(RAW, server, "apps")}, own=()) as front:
        first = Host(front, client, {})
        first.ask("tools/list")  # waits for the server
        host = Host(front, client, APPS)
        found = host.server["extensions"]
        assert found[f"{PREFIX}ui"] == {"of": "raw"}
        assert found["x.example/more"] == {}
        assert (f"{PREFIX}tasks" in found) == (client == "2026")
        first.close()
        host.close()


@pytest.mark.parametrize("client", ["2025", "2026"])
def test_tools_for_apps_alone_are_listed_to_hosts_that_show_apps(tmp_path: Path, client: str) -> None:
    """U8: no other model gets to see them."""
    with fronting(tmp_path, {"raw": python(RAW, "2025", "apps")}, own=()) as front:
        plain, apps = Host(front, client, {}), Host(front, client, APPS)
        names = [{tool["name"] for tool in host.ask("tools/list")["tools"]} for host in (plain, apps)]
        assert {name for name in names[1] - names[0] if not name.startswith("afoot_")} == {"echo"}
        plain.close()
        apps.close()


def test_a_server_that_knows_no_extensions_is_started_once(tmp_path: Path) -> None:
    """U8: clients with and without apps share its one process."""
    with fronting(tmp_path, {"raw": python(RAW, "2025")}, own=()) as front:
        plain, apps = Host(front, "2025", {}), Host(front, "2025", APPS)
        plain.ask("tools/list")
        assert plain.declared() == apps.declared() == APPS
        plain.close()
        apps.close()
