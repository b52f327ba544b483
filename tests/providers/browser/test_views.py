"""Tabs as people and models see them: their keys, their state and why; what is told of them, and kept."""

from pathlib import Path

import pytest
from msgspec import Raw, json

from afoot.config.tables import BrowserSettings
from afoot.core.facts import Limits
from afoot.engine.catalog import EffectiveSettings
from afoot.errors import ToolError, UnknownName
from afoot.providers.browser.provider import BrowserProvider
from afoot.wire.browser_data import Tab
from afoot.wire.extension import PageContextTools, TabList, TabReload
from tests.providers.browser.fake_browser import SHOP, Puppet, Scene, page_tool, pause, plugin, scene, text

HAS_FAKE_CLOCK = True
ADD = "shop_example_add"


async def test_tabs_are_listed_for_models_with_their_state_and_why() -> None:
    """B2: profile, tab, title, origin, state; read only, asked about by nobody."""
    async with scene(EffectiveSettings()) as play:
        play.open(page_tool())
        tabs = [
            Tab("7", title="Cart", url=f"{SHOP}/cart", active=True),
            Tab("8", title="Old", url="https://old.example/", why="reload"),
            Tab("9", title="Blank", url="https://blank.example/"),
        ]
        play.tell(TabList(tabs))
        play.browser.set_plugins([plugin("h1", page_tool("save"))])
        end = await play.ended(play.submit("afoot_tabs"))
        assert text(end).splitlines() == [
            f't1  ready, 1 tools  {SHOP}  "Cart"  (chrome (work))',
            "t2  unavailable: reload this tab: it was open before afoot was allowed here, or has crashed  https://old.example"
            '  "Old"  (chrome (work))',
            f"plugin notes: closed, open {SHOP}/*",
            "and 1 tabs whose pages offer no tools",
        ]
        assert end.result is not None
        found = json.decode(end.result.structured)
        assert found["tabs"][0] == {
            "profile": "chrome (work)", "tab": "t1", "title": "Cart", "origin": SHOP, "state": "ready",
            "why": "", "tools": 1,
        }  # fmt: skip


async def test_keys_of_tabs_stay_while_the_tabs_live_and_are_never_given_twice() -> None:
    """B2: t1 means one tab."""
    async with scene() as play:
        play.tabs(Tab("7"), Tab("8"))
        play.tabs(Tab("8"), Tab("9"))
        assert [(one.tab, one.key) for one in play.browser.tab_views()] == [("8", "t2"), ("9", "t3")]
        other = Puppet()
        play.join(puppet=other, profile="p2", tabs=[Tab("8")])
        assert [one.key for one in play.browser.tab_views(other)] == ["t4"]


async def test_nothing_is_offered_before_a_browser_is_there() -> None:
    """B2: the tool that lists tabs comes with the first browser, or where one is configured."""
    none = BrowserProvider(Limits(), BrowserSettings())
    assert list(none.tools()) == [] and not none.is_used
    with pytest.raises(UnknownName):
        none.prepare("shop_example_add", Raw(b"{}"))
    configured = BrowserProvider(Limits(), BrowserSettings(cdp="http://127.0.0.1:9222"))
    assert [tool.name for tool in configured.tools()] == ["afoot_tabs"]


async def test_a_tab_is_loaded_anew_by_its_key() -> None:
    """B2: tabs that were open before are unavailable until then."""
    async with scene() as play:
        play.tabs(Tab("7", why="reload"))
        play.browser.reload_tab("t1")
        assert play.puppet.got(TabReload) == [TabReload("7")]
        with pytest.raises(UnknownName):
            play.browser.reload_tab("t7")
        play.puppet.is_open = False
        with pytest.raises(ToolError, match="cannot be reached"):
            play.browser.reload_tab("t1")


async def test_who_listens_is_told_of_other_tools_once_and_not_of_other_titles() -> None:
    """B2: list changes are gathered."""
    async with scene() as play:
        told: list[int] = []
        await pause()
        play.browser.on_change = lambda: told.append(1)
        play.open(page_tool(), page_tool("pay"))
        await pause()
        assert told == [1]
        play.tell(PageContextTools("r1", [page_tool(), page_tool("pay")]))
        play.tabs(Tab("7", title="Another"))
        await pause()
        assert told == [1]


async def test_names_are_kept_for_the_next_start(tmp_path: Path) -> None:
    """B2: stable across restarts."""
    for order in (("https", "http"), ("http", "https")):
        browser = BrowserProvider(Limits(), BrowserSettings(), tmp_path / "names.json")
        browser.open()
        puppet = Puppet()
        play = Scene(None, browser)  # pyrefly: ignore[bad-argument-type]
        play.puppet = puppet
        play.join()
        for number, scheme in enumerate(order):
            origin = f"{scheme}://shop.example"
            play.open(page_tool(), room_id=f"r{number}", origin=origin, top=origin)
            await pause()
        named = {tool.source: tool.name for tool in browser.tools() if tool.source}
        browser.close()
        assert named["page:https://shop.example"] == ADD
        assert named["page:http://shop.example"].startswith(f"{ADD}_")


async def test_calls_and_browsers_are_found_for_the_panel() -> None:
    """B1: whose runs are open, and in which tab."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        assert play.browser.is_busy(play.puppet) and play.browser.running_tabs() == {live.call.id: "7"}
        assert play.browser.running_tabs(Puppet()) == {} and not play.browser.is_busy(Puppet())
        [view] = play.browser.browser_views()
        assert (view.name, view.state, view.running) == ("chrome (work)", "connected", 1)
        play.end(sent, "done")
        await play.ended(live)
        assert not play.browser.is_busy(play.puppet)
