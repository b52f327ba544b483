"""Browsers over the operator's API: tabs are listed, a tab is loaded anew, and what was dropped is shown."""

import json
from typing import Any

from afoot.config.settings import Settings
from afoot.engine.catalog import EffectiveSettings
from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.api.router import ApiApp
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import Scope
from afoot.wire.browser_data import Tab
from afoot.wire.extension import PageContextGone, TabReload
from tests.providers.browser.fake_browser import SHOP, Scene, page_tool, scene
from tests.serve.fake_gateway import TOKEN, faked
from tests.serve.raw_transports import HOST, Exchange, Web, modern


class Office:
    """The API of a site with a browser."""

    def __init__(self, play: Scene) -> None:
        self.play = play
        self.gateway = GatewayState(
            play.engine, Settings(store=":memory:"), "1", b"k" * 32, TOKEN, browser=play.browser
        )
        self._app = ApiApp(self.gateway, Guard(accepted_hosts(23668, []), frozenset(), "", TOKEN))

    async def ask(self, method: str, path: str, body: object = None, token: str = TOKEN) -> tuple[int, Any]:
        """Status and answer."""
        headers = {"host": HOST, "authorization": f"Bearer {token}", "content-type": "application/json"}
        encoded = [(key.encode(), value.encode()) for key, value in headers.items()]
        scope: Scope = {
            "type": "http", "method": method, "path": path, "headers": encoded, "query_string": b"",
        }  # fmt: skip
        done = await Exchange(self._app, scope, [json.dumps(body or {}).encode()], is_cut=False).done()
        return done.status, json.loads(done.body)


@faked
async def test_tabs_are_listed_with_their_state_and_why() -> None:
    """B2, V4: every browser, every tab, and what was dropped."""
    async with scene() as play:
        office = Office(play)
        play.open(page_tool())
        play.tabs(Tab("7", title="Cart", active=True), Tab("8", url="https://old.example/x", why="reload"))
        play.tell(PageContextGone("r9", "closed"))
        status, found = await office.ask("GET", "/api/tabs")
        assert status == 200
        assert [(one["key"], one["state"], one["tools"]) for one in found["tabs"]] == [
            ("t1", "ready", 1),
            ("t2", "unavailable", 0),
        ]
        assert found["tabs"][1]["why"].startswith("reload this tab")
        assert found["browsers"][0]["state"] == "connected" and found["plugins"] == []
        assert found["counted"] == {"frames about a room that is not open": 1}


@faked
async def test_what_browsers_sent_in_vain_is_seen_by_everybody_who_looks() -> None:
    """B7: in /healthz, with what is wrong with plugins."""
    async with scene() as play:
        play.tell(PageContextGone("r9", "closed"))
        play.browser.problems = ["plugin.json: name: missing"]
        _, health = await Office(play).ask("GET", "/healthz")
        assert health["counted"] == {"browser: frames about a room that is not open": 1}
        assert health["problems"] == ["plugin.json: name: missing"]


@faked
async def test_a_tab_is_loaded_anew_by_the_operator_alone() -> None:
    """B2, S1: by its key; an unknown one lists the nearest."""
    async with scene() as play:
        office = Office(play)
        play.tabs(Tab("7", why="reload"))
        assert await office.ask("POST", "/api/tabs/t1/reload") == (202, {"tab": "t1"})
        assert play.puppet.got(TabReload) == [TabReload("7")]
        assert (await office.ask("POST", "/api/tabs/t2/reload"))[0] == 404
        assert (await office.ask("POST", "/api/tabs/t1/reload", token="wrong"))[0] == 401
        assert (await office.ask("GET", "/api/tabs", token="wrong"))[0] == 401


@faked
async def test_a_gateway_without_browsers_has_no_tabs() -> None:
    """V4: the same answer, empty."""
    async with scene() as play:
        office = Office(play)
        office.gateway.browser = None
        empty: dict[str, object] = {"browsers": [], "tabs": [], "plugins": [], "counted": {}, "cdp": ""}
        assert await office.ask("GET", "/api/tabs") == (200, empty)
        assert (await office.ask("POST", "/api/tabs/t1/reload"))[0] == 404


@faked
async def test_the_allowlist_takes_pages_and_never_all_of_them_at_once() -> None:
    """A1, A4: a page or a plugin is named; the browser is no server of one owner."""
    async with scene(EffectiveSettings()) as play:
        office = Office(play)
        play.open(page_tool(), page_tool("pay"), room_id="r1")
        play.open(
            page_tool(), room_id="r2", tab="8", origin="https://evil.example", top="https://evil.example"
        )
        play.listed()
        status, told = await office.ask("POST", "/api/allow", {"server": "browser"})
        assert status == 422 and f"page:{SHOP}" in told["error"]["message"]
        status, made = await office.ask("POST", "/api/allow", {"server": SHOP})
        assert status == 201 and set(made["tools"]) == {"shop_example_add", "shop_example_pay"}
        assert made["words"] == f"every tool that page:{SHOP} had then (2), for ever"
        assert play.submit("evil_example_add").call.opened.approval == "ask"
        assert play.submit("shop_example_add").call.opened.approval == "allowlist"


@faked
async def test_a_list_with_tabs_in_it_is_kept_by_nobody() -> None:
    """B2, U5: tools of tabs come and go; a client that keeps its list would miss them."""
    async with scene() as play:
        gateway = Office(play).gateway
        listed = (await Web(gateway).ask(modern("tools/list"))).messages[0]["result"]
        assert listed["ttlMs"] == 0
        gateway.browser = None
        listed = (await Web(gateway).ask(modern("tools/list"))).messages[0]["result"]
        assert listed["ttlMs"] > 0
