"""Our MCP App in the lists of both eras: for clients that show apps; for others not a byte is different."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_with_servers import Front, fronting
from tests.e2e.raw_client import Http, Message, hello, last, modern, request

pytestmark = pytest.mark.timeout(60)
APP = "ui://afoot/calls"
APPS: Message = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
OTHERS: list[Message] = [{}, {"x.example/more": {}}, {"io.modelcontextprotocol/ui": {}}]
LISTS = ("tools/list", "resources/list")


class RawClient:
    """A client of one era that keeps the bytes of its answers."""

    def __init__(self, front: Front, era: str, extensions: Message) -> None:
        self._http = Http(front.url)
        self._is_modern = era == "2026"
        self._can: Message = {"extensions": extensions} if extensions else {}
        if self._is_modern:
            self.hello = self.body("server/discover")
            return
        response = self._http.post(request("initialize", hello(self._can)), mcp_protocol_version=None)
        self._http.session = response.getheader("mcp-session-id")
        self.hello = response.read()
        self._http.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).read()

    def message(self, method: str, params: Message) -> Message:
        """The request as this era has it."""
        if self._is_modern:
            return modern(method, params, capabilities=self._can)
        return request(method, params)

    def body(self, method: str, **params: Any) -> bytes:
        """The bytes of an answer."""
        return self._http.post(self.message(method, params)).read()

    def ask(self, method: str, **params: Any) -> Message:
        """An answer."""
        return last(self._http.post(self.message(method, params)))

    def close(self) -> None:
        """Leave."""
        self._http.close()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A gateway with tools of its own."""
    with fronting(tmp_path_factory.mktemp("app"), {}) as gateway:
        yield gateway


def told(front: Front, era: str, extensions: Message) -> list[bytes]:
    """Everything that a client is told before it calls anything."""
    client = RawClient(front, era, extensions)
    try:
        return [client.hello, *(client.body(method) for method in LISTS)]
    finally:
        client.close()


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_nothing_changes_for_clients_that_show_no_apps(front: Front, era: str, tmp_path: Path) -> None:
    """V7: their lists are those of a gateway without the app, byte for byte, also after others saw it."""
    with fronting(tmp_path, {}, {"app": "off"}) as without:
        expected = told(without, era, {})
        assert told(without, era, APPS) == expected
    for extensions in OTHERS:
        assert told(front, era, extensions) == expected
    assert all(body != other for body, other in zip(told(front, era, APPS), expected, strict=True))
    assert told(front, era, {}) == expected
    assert b"ui://" not in b"".join(expected)


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_a_client_that_shows_apps_finds_the_page_by_its_tools(front: Front, era: str) -> None:
    """V7: functions, and the tools for calls that run on, name the resource; it is listed and read."""
    client = RawClient(front, era, APPS)
    tools = {
        one["name"]: one.get("_meta", {}).get("ui", {}) for one in client.ask("tools/list")["result"]["tools"]
    }
    assert tools["count_up"]["resourceUri"] == tools["afoot_wait"]["resourceUri"] == APP
    assert tools["afoot_calls"]["resourceUri"] == APP and tools["afoot_cancel"] == {}
    assert tools["afoot_view"] == tools["afoot_answer"] == {"visibility": ["app"]}
    [listed] = client.ask("resources/list")["result"]["resources"]
    assert (listed["uri"], listed["mimeType"]) == (APP, "text/html;profile=mcp-app")
    [read] = client.ask("resources/read", uri=APP)["result"]["contents"]
    assert read["_meta"] == {"ui": {"csp": {}, "prefersBorder": True}} and read["text"].startswith(
        "<!doctype html>"
    )
    client.close()


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_others_cannot_read_the_page(front: Front, era: str) -> None:
    """V7: to them the resource does not exist."""
    client = RawClient(front, era, {})
    assert client.ask("resources/read", uri=APP)["error"]["data"]["uri"] == APP
    client.close()
