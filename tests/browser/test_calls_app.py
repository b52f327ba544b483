"""Our own MCP App in a host page on the official AppBridge: a live call is seen and stopped, and answered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.browser.apps.host_page import host
from tests.browser.chromium import Chromium
from tests.browser.page import Frame, Page
from tests.e2e.access.test_tokens import token
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front, fronting
from tests.serve.api_client import Api

__all__ = ["host"]

TOOLS = Path(__file__).parent / "apps/tools.py"
ROWS = """[...document.querySelectorAll('.narrow-row')].map((row) => ({
  state: row.dataset.state, tool: row.querySelector('h3').innerText,
  figure: row.querySelector('.figure').innerText,
  words: row.querySelector('.words').innerText.trim(), depth: row.style.getPropertyValue('--depth'),
  clocks: row.querySelector('.clock-figures').innerText.trim(),
}))"""
CANCEL = "document.querySelector('.narrow-row button')"


class Shown:
    """A tool that the host has called, and our app in its frame."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.until("host.isOpen || host.error")
        assert page.evaluate("host.error") == ""
        self.frame: Page | Frame = page.frame("about:srcdoc")

    def rows(self, *states: str) -> list[dict[str, Any]]:
        """The rows, as soon as they have these states."""

        def found() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = self.frame.evaluate(ROWS)
            return rows if [row["state"] for row in rows] == list(states) else []

        return until(found, f"rows that are {states}")

    def result(self) -> dict[str, Any]:
        """The result that the host got."""
        found: dict[str, Any] = self.page.until("host.result")
        return found


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, host: str) -> Iterator[Front]:
    """A gateway with tools of its own; pages of the host may use it."""
    with fronting(tmp_path_factory.mktemp("gateway"), {}, {"allow_origins": host}, own=[TOOLS]) as front:
        yield front


@pytest.fixture(scope="module")
def alice(gateway: Front) -> str:
    """The token of a caller with a name."""
    return token(gateway, "alice", "--scope", "call")


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """The era that the host speaks."""
    return str(request.param)


def call(
    browser: Chromium, gateway: Front, host: str, era: str, tool: str, secret: str, **arguments: object
) -> Shown:
    """Have the host call a tool."""
    browser.clear()
    until(lambda: not browser.targets("iframe"), "the end of other frames")
    plan = {"mcp": gateway.url, "tool": tool, "era": era, "apps": "yes", "token": secret}
    asked = urlencode({**plan, "arguments": json.dumps(arguments)})
    return Shown(browser.open(f"{host}/index.html?{asked}"))


def test_a_running_call_is_shown_and_can_be_stopped(
    plain: Chromium, gateway: Front, host: str, alice: str
) -> None:
    """V7: while the host still waits for its result; a cancel can be withdrawn for five seconds."""
    shown = call(plain, gateway, host, "auto", "export_pages", alice, pages=30)
    [row] = shown.rows("running")
    assert (row["tool"], row["figure"], row["words"]) == ("export_pages", "25 %", "page 30")
    silent, used = row["clocks"].split("\n")
    assert silent.endswith(" s") and used.endswith(" s")
    until(lambda: shown.rows("running")[0]["clocks"] != row["clocks"], "clocks that go on")
    shown.frame.evaluate(f"{CANCEL}.click()")
    assert "cancels in" in shown.rows("cancelling")[0]["words"]
    shown.frame.evaluate(f"{CANCEL}.click()")
    shown.rows("running")
    shown.frame.evaluate(f"{CANCEL}.click()")
    assert shown.rows("cancelled")[0]["words"] == "cancelled: stopped in the conversation"
    assert shown.result()["isError"]
    assert shown.page.evaluate("host.size.height") > 50


def test_the_clocks_are_those_of_the_engine(plain: Chromium, gateway: Front, host: str, alice: str) -> None:
    """V7, V5: to 0.2 s, and the time in the frame is what is left of the engine's limits."""
    shown = call(plain, gateway, host, "auto", "export_pages", alice, pages=60)
    [row] = shown.rows("running")
    name = shown.frame.evaluate("document.querySelector('.narrow-row').dataset.call")
    api = Api(gateway)
    before = api.get(f"/api/calls/{name}").body["elapsed_s"]
    used = shown.frame.evaluate("document.querySelectorAll('.clock-figure')[1].innerText")
    after = api.get(f"/api/calls/{name}").body["elapsed_s"]
    assert before - 0.2 <= float(used.removesuffix(" s")) <= after + 0.2
    assert row["tool"] == "export_pages"


def test_a_question_is_answered_in_the_frame(
    plain: Chromium, gateway: Front, host: str, alice: str, era: str
) -> None:
    """V7, Q4: the host cannot be asked, and its person answers all the same."""
    shown = call(plain, gateway, host, era, "greet", alice)
    shown.rows("waiting")
    fill = "document.querySelector('.narrow-question input')"
    send = "document.querySelector('.narrow-question button.main')"
    assert (
        shown.frame.evaluate("document.querySelector('.narrow-question .about').innerText") == "Who is there?"
    )
    shown.frame.evaluate(f"{send}.click()")
    assert shown.frame.evaluate(f"document.activeElement === {fill}"), "the first field that lacks something"
    shown.frame.evaluate(f"{fill}.value = 'Ada'; {send}.click()")
    assert shown.result()["structuredContent"] == {"said": "accept", "name": "Ada"}
    shown.rows("done")


def test_a_tree_is_shown_as_a_tree(plain: Chromium, gateway: Front, host: str, alice: str) -> None:
    """V7, P8: the call below stands below, with its own figures."""
    shown = call(plain, gateway, host, "legacy", "nightly_report", alice)
    above, below = shown.rows("running", "running")
    assert (above["tool"], above["depth"]) == ("nightly_report", "0")
    assert (below["tool"], below["depth"], below["figure"]) == ("export_pages", "1", "25 %")


def test_a_host_without_a_name_is_told_why_it_sees_nothing_yet(
    plain: Chromium, gateway: Front, host: str
) -> None:
    """V7, S3: on 2026-07-28 its calls cannot be told from those of others."""
    shown = call(plain, gateway, host, "auto", "export_pages", "", pages=30)
    said = "document.querySelector('.empty-line').innerText"
    until(lambda: "as soon as its id is known" in shown.frame.evaluate(said), "the reason")


def test_a_lost_gateway_freezes_the_clocks(plain: Chromium, host: str, tmp_path: Path) -> None:
    """V7, V6: nothing counts on, and the page says since when."""
    with fronting(tmp_path, {}, {"allow_origins": host}, own=[TOOLS]) as front:
        shown = call(plain, front, host, "legacy", "export_pages", "", pages=30)
        shown.rows("running")
        front.kill()
        line = "document.querySelector('.offline-line').innerText"
        until(lambda: shown.frame.evaluate(line).startswith("Not connected since"), "the line")
        assert shown.frame.evaluate("document.documentElement.hasAttribute('data-offline')")
        stopped = shown.rows("running")[0]["clocks"]
        # Ten steps of the page's own clock, which is what would move them.
        shown.frame.evaluate("new Promise((then) => setTimeout(then, 300))")
        assert shown.rows("running")[0]["clocks"] == stopped
