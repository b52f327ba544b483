"""Plugins through the extension: in their own world, with the page's login, with the switch on and off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chain import SWITCH_S, Bench, Chain, linking
from tests.browser.chromium import Chromium, until
from tests.browser.extension.shop_plugin import HOST, PAGE, STRICT, ready, write
from tests.browser.mcp_calls import Call
from tests.browser.site import Site


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, native_browser: Chromium, site: Site) -> Iterator[Chain]:
    """A gateway with the plugin, and a browser whose switch is on."""
    folder = tmp_path_factory.mktemp("shop")
    plugin = write(folder / "plug")
    site.pages |= {"shop.html": PAGE, "stock.json": '{"tea": 7}'}
    settings = {"browser": {"plugins": [str(plugin)]}}
    with linking(folder / "chain", native_browser, site, settings) as chain:
        yield chain


@pytest.fixture
def plugged(shop: Chain) -> Chain:
    """The chain with the switch on."""
    shop.clear()
    if not any(one["user_scripts"] for one in shop.browsers()):
        switch(shop)
    return shop


def switch(chain: Chain) -> None:
    """Turn on what a person turns on, and wait for the gateway to know."""
    chain.browser.allow_user_scripts(chain.extension)
    until(lambda: any(one["user_scripts"] for one in chain.browsers()), "the switch to be seen", SWITCH_S)


def call(chain: Chain, tool: str, **arguments: object) -> Call:
    """Call one of the plugin's tools once it can be."""
    name = f"plug_{tool}"
    until(lambda: name in chain.caller.tools(), f"{name} to be offered")
    return chain.caller.call(name, arguments)


def opened(chain: Chain) -> Bench:
    """A tab of the shop in which the plugin is ready."""
    bench = chain.open("shop.html", STRICT, host=HOST)
    until(lambda: ready(chain, bench), "the plugin to be ready")
    return bench


def test_a_plugins_reports_and_result_reach_the_client(plugged: Chain) -> None:
    """B2: under the plugin's name, in order."""
    opened(plugged)
    run = call(plugged, "count", n=5)
    assert run.value()["counted"] == 5
    assert run.messages == [f"plugin {n}" for n in range(1, 6)]


def test_a_cancel_reaches_a_plugins_signal(plugged: Chain) -> None:
    """X1: with its reason."""
    bench = opened(plugged)
    run = call(plugged, "linger").until_said("lingering")
    run.cancel()
    assert "closed the stream" in bench.page.until("document.documentElement.dataset.stopped")


def test_a_plugin_has_the_pages_login_and_values_whatever_the_page_patched(plugged: Chain) -> None:
    """B2: its own fetch and JSON, the page's cookies, and a value of the page."""
    opened(plugged)
    found = call(plugged, "look").value()
    assert found == {"value": ["tea", 2], "title": "Shop", "fetched": {"tea": 7}, "json": '{"a":1}'}
    [asked] = [seen for seen in plugged.site.seen if seen.path == "/stock.json"][-1:]
    assert "login=ada" in asked.headers["Cookie"]


def test_a_plugins_error_keeps_its_category(plugged: Chain) -> None:
    """E1: by the SDK's factories."""
    opened(plugged)
    told = call(plugged, "missing").error()
    assert (told["category"], "no tea" in told["text"]) == ("not_found", True)


def test_a_page_cannot_take_the_place_of_a_plugin(plugged: Chain) -> None:
    """B2, B7: the page's tool of the same name has another name, and the plugin's is the plugin's."""
    bench = opened(plugged)
    assert call(plugged, "count", n=1).value()["by"] in ("one", "two")
    assert bench.call("count").value() == "the page"


def test_with_no_tab_open_a_plugins_tools_are_listed_and_say_what_to_open(plugged: Chain) -> None:
    """B2: unavailable, with the address."""
    opened(plugged)
    plugged.clear()
    told = call(plugged, "count", n=1).error()
    assert told["category"] == "unavailable" and f"http://{HOST}/" in told["text"]


def test_a_tab_that_was_open_before_the_plugin_gets_it(plugged: Chain) -> None:
    """B2: no reload is needed; and what changed is there without a restart, for runs to come."""
    opened(plugged)
    running = call(plugged, "count", n=60).until_said("plugin 1")
    write(plugged.gateway.folder.parent / "plug", "two")
    until(lambda: "two" in str(call(plugged, "count", n=1).result().content), "the new code")
    assert running.value() == {"counted": 60, "by": "one"}


def test_without_the_switch_page_tools_work_and_plugins_say_which_switch(
    tmp_path: Path, plain_browser: Chromium, site: Site
) -> None:
    """B2: nothing else is lost, and a person is told what to do."""
    site.pages |= {"shop.html": PAGE, "stock.json": '{"tea": 7}'}
    settings = {"browser": {"plugins": [str(write(tmp_path / "plug"))]}}
    with linking(tmp_path / "chain", plain_browser, site, settings) as chain:
        chain.browser.allow_user_scripts(chain.extension, on=False)  # another test may have turned it on
        until(
            lambda: not any(one["user_scripts"] for one in chain.browsers()),
            "the switch to be seen",
            SWITCH_S,
        )
        bench = chain.open("shop.html", host=HOST)
        assert bench.call("count").value() == "the page"
        told = call(chain, "count", n=1).error()
        assert told["category"] == "unavailable" and "Allow User Scripts" in told["text"]
        switch(chain)
        until(lambda: ready(chain, bench), "the plugin to be ready")
        assert call(chain, "count", n=2).value()["counted"] == 2


def test_a_tab_opened_while_the_switch_was_off_gets_the_plugin_when_it_is_on_again(plugged: Chain) -> None:
    """B2: a worker keeps the API of user scripts, and registered scripts, when the switch is turned off."""
    plugged.browser.allow_user_scripts(plugged.extension, on=False)
    until(
        lambda: not any(one["user_scripts"] for one in plugged.browsers()), "the switch to be seen", SWITCH_S
    )
    bench = plugged.open("shop.html", STRICT, host=HOST)
    switch(plugged)
    until(lambda: ready(plugged, bench), "the plugin to be ready")


def test_a_page_that_is_loaded_right_after_the_switch_has_its_plugin(plugged: Chain) -> None:
    """B2: no event tells the extension of the switch; the page is often what a person opens next."""
    plugged.browser.allow_user_scripts(plugged.extension, on=False)
    until(lambda: not any(one["user_scripts"] for one in plugged.browsers()), "the switch", SWITCH_S)
    plugged.browser.allow_user_scripts(plugged.extension)
    bench = plugged.open("shop.html", host=HOST)
    until(lambda: ready(plugged, bench), "the plugin to be ready", SWITCH_S)
    assert call(plugged, "count", n=2).value()["counted"] == 2
