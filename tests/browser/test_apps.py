"""An MCP App of a server that nobody here wrote, through afoot, in a host page on the official AppBridge."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from tests.browser.apps.host_page import host
from tests.browser.chromium import Chromium
from tests.e2e import npm
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front, fronting

__all__ = ["host"]

SERVER = "@modelcontextprotocol/server-basic-vanillajs"
TOOL = "get-time"
CLOCK = "document.getElementById('server-time').textContent"


@pytest.fixture(scope="module", params=["auto", "2025-11-25"])
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, host: str
) -> Iterator[Front]:
    """A gateway in front of the server, spoken to in either era; pages of the host may use it."""
    server = {**npm.server(SERVER, "--stdio"), "era": request.param}
    with fronting(
        tmp_path_factory.mktemp("gateway"), {"apps": server}, {"allow_origins": host}, own=()
    ) as front:
        yield front


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_an_app_works_in_a_host_of_the_official_packages(
    plain: Chromium, gateway: Front, host: str, era: str
) -> None:
    """U8: its page is read, gets the result, calls its tool again and speaks to the host."""
    asked = urlencode({"mcp": gateway.url, "tool": TOOL, "era": era, "apps": "yes"})
    page = plain.open(f"{host}/index.html?{asked}")
    page.until("host.isShown || host.error")
    assert page.evaluate("host.error") == ""
    assert page.evaluate("host.resource.mimeType") == "text/html;profile=mcp-app"
    frame = page.frame("about:srcdoc")
    first = page.evaluate("host.result.structuredContent.time")
    until(lambda: frame.evaluate(CLOCK) == first, "the result in the app's page")
    frame.evaluate("document.getElementById('get-time-btn').click()")
    assert until(lambda: (now := frame.evaluate(CLOCK)) != first and now, "another result") > first
    frame.evaluate("document.getElementById('send-message-btn').click()")
    page.until("host.messages.length")
    assert page.evaluate("host.messages[0].content[0].text") == "This is message text."
