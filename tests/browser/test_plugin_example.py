"""The example plugin beside the example page: the files that a reader of the docs has, end to end."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chain import Chain, attaching
from tests.browser.chromium import Chromium, until
from tests.browser.site import Site

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def shop(attached: Chain) -> Chain:
    """The gateway, which knows of no tab with the plugin."""
    attached.clear()
    until(lambda: read(attached) == set(), "the tabs to be gone")
    return attached


@pytest.fixture(scope="module")
def attached(
    tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium, site: Site
) -> Iterator[Chain]:
    """A gateway with the example plugin, attached to a browser."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "examples" / "plugin", folder / "plugin")
    for file in (ROOT / "src/afoot/providers/browser/example").iterdir():
        site.pages[file.name] = file.read_text(encoding="utf-8")
    with attaching(folder / "chain", plain_browser, site, [folder / "plugin"]) as chain:
        yield chain


def test_the_example_plugin_exports_the_archive_of_the_example_page(shop: Chain) -> None:
    """B2, P6: listed before any tab is open; six reports in order, then the result, at a real client."""
    assert {"little-shop_read_orders", "little-shop_export_archive"} <= set(shop.caller.tools())
    told = shop.caller.call("little-shop_read_orders", {}).error()
    assert told["category"] == "unavailable" and "http://127.0.0.1/" in told["text"]
    shop.browser.open(shop.site.url("index.html"))
    until(lambda: read(shop) == {"orders"}, "the plugin to be there")
    call = shop.caller.call("little-shop_export_archive", {"customer": "Ada"})
    result = call.value()
    assert result["orders"] > 0 and result["csv"].startswith("number,customer,goods,price\n")
    assert call.seen == [(float(n), 6.0, f"page {n} of 6") for n in range(1, 7)]
    orders = shop.caller.call("little-shop_read_orders", {}).value()["orders"]
    assert orders[0] == {"number": 1001, "customer": "Ada", "goods": "a loom"}


def read(shop: Chain) -> set[str]:
    """The keys of what the plugin reads; none while no code is there to read it."""
    call = shop.caller.call("little-shop_read_orders", {})
    return set() if call.result().is_error else set(call.value())


def test_an_edit_of_the_plugin_is_there_without_a_restart(shop: Chain) -> None:
    """B2: hot reload by the gateway itself; a broken edit keeps the old code and is told."""
    shop.browser.open(shop.site.url("index.html"))
    file = shop.gateway.folder.parent / "plugin" / "tools.js"
    good = file.read_text(encoding="utf-8")
    until(lambda: read(shop) == {"orders"}, "the old code")
    file.write_text(good.replace("orders: rows.map", "seen: rows.map"))
    until(lambda: read(shop) == {"seen"}, "the new code")
    file.write_text("import nothing from 'nowhere';")
    until(lambda: "has an import" in str(shop.api.get("/healthz").body), "the problem to be told")
    assert read(shop) == {"seen"}
    file.write_text(good)
    until(lambda: "has an import" not in str(shop.api.get("/healthz").body), "the problem to be gone")
    until(lambda: read(shop) == {"orders"}, "the first code again")
