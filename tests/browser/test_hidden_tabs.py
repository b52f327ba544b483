"""A hidden tab of a browser with windows: its timers run once a minute, and its tools as ever (B6)."""

import os
import subprocess
from collections.abc import Iterator
from selectors import EVENT_READ, DefaultSelector
from typing import Final

import pytest

from tests.browser.chain import SWITCH_S, Bench, Chain, linking
from tests.browser.chromium import running, until
from tests.browser.extension.shop_plugin import HOST, PAGE, ready, write
from tests.browser.site import Site

# Pages that are hidden for five minutes have timers once a minute; here a second is enough.
THROTTLED: Final = "--enable-features=WebMCP,IntensiveWakeUpThrottling:grace_period_seconds/1"
START_S: Final = 40.0
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """A screen that nobody sees."""
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as screen:
        assert screen.stdout is not None
        try:
            with DefaultSelector() as selector:
                selector.register(screen.stdout, EVENT_READ)
                assert selector.select(START_S), "no screen"
            yield f":{screen.stdout.readline().decode().strip()}"
        finally:
            screen.terminate()


@pytest.fixture(scope="module")
def headed(tmp_path_factory: pytest.TempPathFactory, display: str, site: Site) -> Iterator[Chain]:
    """A chain over the extension of a browser that has windows, with the plugin of other tests."""
    folder = tmp_path_factory.mktemp("headed")
    site.pages |= {"shop.html": PAGE}
    settings = {"browser": {"plugins": [str(write(folder / "plug"))]}}
    before = os.environ.get("DISPLAY")
    os.environ["DISPLAY"] = display
    try:
        with (
            running("--ozone-platform=x11", THROTTLED) as browser,
            linking(folder / "chain", browser, site, settings) as one,
        ):
            browser.allow_user_scripts(one.extension)
            until(
                lambda: any(known["user_scripts"] for known in one.browsers()),
                "the switch to be seen",
                SWITCH_S,
            )
            yield one
    finally:
        os.environ.pop("DISPLAY")
        if before is not None:
            os.environ["DISPLAY"] = before


def hidden(chain: Chain, path: str, host: str = "") -> Bench:
    """A tab behind another, whose timers are held back by now."""
    bench = chain.open(path, host=host)
    chain.open("silent.html").page.activate()
    bench.page.until("document.visibilityState === 'hidden'")
    until(lambda: is_held_back(bench), "its timers to be held back")
    return bench


def is_held_back(bench: Bench) -> bool:
    """Whether a timer of 10 ms takes long: a second at first, then a minute."""
    try:
        bench.page.evaluate("new Promise((done) => setTimeout(done, 10))", limit_s=0.5)
    except TimeoutError:
        return True
    return False


def test_reports_of_a_hidden_tab_are_not_held_back(headed: Chain) -> None:
    """B6, P1: those that wait for others are sent in time, though the page's timers are not."""
    bench = hidden(headed, "workshop.html")
    bench.page.evaluate(
        "offer('tea', 'reports thrice', (_, {reportProgress, signal}) => new Promise((_, no) => {"
        " for (const word of ['boil', 'brew', 'pour']) reportProgress(word);"
        " signal.addEventListener('abort', () => no(1)); }))"
    )
    call = bench.call("tea")
    call.until_said("pour")  # which waits for half a minute, and the page's timers for a whole one
    assert call.messages == ["boil", "brew", "pour"]
    call.cancel()


def test_a_plugin_sleeps_no_longer_in_a_hidden_tab(headed: Chain) -> None:
    """B2: the SDK's sleep is ticked by the extension."""
    bench = hidden(headed, "shop.html", HOST)
    until(lambda: ready(headed, bench), "the plugin to be ready")
    call = headed.caller.call("plug_count", {"n": 20})
    assert call.value()["counted"] == 20  # within half a minute; with the page's timers it would take twenty


def test_an_idle_timeout_says_that_the_tab_is_hidden(headed: Chain) -> None:
    """B6: and what to do about it."""
    bench = hidden(headed, "bench.html")
    told = bench.call("paced", {"idle_s": 1.0}, pauses=[20]).error()
    assert told["clock"] == "idle" and "hidden" in told["text"], told["text"]
