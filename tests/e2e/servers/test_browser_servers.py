"""Two servers that drive a real browser, behind a gateway: `@playwright/mcp` and `chrome-devtools-mcp`."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.e2e import npm
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import fronting
from tests.e2e.official_client import ERAS, Peer, Peers, accept, peers, text
from tests.e2e.processes import marked

pytestmark = pytest.mark.timeout(120)  # browsers are slow to start on a busy machine
PAGE: Final = """<!doctype html><title>Tin soldiers</title><link rel="icon" href="data:,">
<h1>Steadfast</h1><button onclick="document.title = 'Pressed'">Press</button>"""
MARK: Final = f"E2E_BROWSER={uuid4().hex}"
START_S: Final = 60.0


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page on this machine."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text(PAGE)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as site:
        thread = Thread(target=site.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{site.server_port}/"
        site.shutdown()
        thread.join()


def servers(folder: Path) -> dict[str, dict[str, Any]]:
    """Both servers; everything they start has the mark in its environment."""
    name, _, mark = MARK.partition("=")
    env = {name: mark, "HOME": str(folder)}
    playwright = ["--headless", "--isolated", "--browser", "chromium", "--executable-path", npm.browser()]
    # Root and many containers have no sandbox to offer, and the page is ours.
    playwright += ["--no-sandbox", "--output-dir", str(folder)]
    devtools = ["--headless", "--isolated", "--executablePath", npm.browser()]
    devtools += ["--chromeArg=--no-sandbox", "--no-usage-statistics", "--no-performance-crux"]
    return {
        "playwright": npm.server("@playwright/mcp", *playwright, **env),
        "devtools": npm.server("chrome-devtools-mcp", *devtools, **env),
    }


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    """Official clients of a gateway in front of both; their browsers end with it."""
    folder = tmp_path_factory.mktemp("browsers")
    with fronting(folder / "front", servers(folder), own=()) as front, peers({"http": front}) as found:
        yield found
    until(lambda: not marked(MARK), "the end of all browsers", START_S)


@pytest.fixture(params=ERAS)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """One of both; what the servers call destructive is approved."""
    peer = clients("http", request.param)
    peer.reply = lambda message: accept(decision="run")
    peer.wait_s = START_S
    return peer


def test_playwright_opens_a_page_and_presses_a_button(peer: Peer, page: str) -> None:
    """U5, A1: navigate, look, click; what it calls destructive was asked about, and recorded so."""
    opened = call(peer, "browser_navigate", url=page)
    assert "Page Title: Tin soldiers" in opened and "browser_navigate" in peer.asked[0]
    looked = call(peer, "browser_snapshot")
    assert 'heading "Steadfast"' in looked
    ref = looked.partition('button "Press" [ref=')[2].partition("]")[0]
    call(peer, "browser_click", element="the button", target=ref)
    assert "Pressed" in call(peer, "browser_snapshot")
    assert marked(MARK)


def test_devtools_opens_a_page_and_reads_it(peer: Peer, page: str) -> None:
    """U5: a page of its own, navigated and read."""
    assert "about:blank" in call(peer, "new_page", url="about:blank")
    listed = call(peer, "list_pages")
    number = max(int(line.partition(":")[0]) for line in listed.splitlines() if line[:1].isdecimal())
    assert "Tin soldiers" in call(peer, "navigate_page", url=page, pageId=number)
    read = call(peer, "take_snapshot", pageId=number)
    assert 'heading "Steadfast"' in read and 'button "Press"' in read


def call(peer: Peer, tool: str, **arguments: Any) -> str:
    """The text of a result."""
    result = peer.call(tool, **arguments)
    assert not result.is_error, text(result)
    return text(result)
