"""Plugins over CDP: each in a world of its own, believed only for itself (B2, B7)."""

import asyncio

import msgspec
import pytest
from msgspec import Raw

from afoot.wire import extension
from afoot.wire.browser_data import PluginBundle
from tests.browser.cdp.cdp_listener import Ear, listening, opened
from tests.browser.chromium import Chromium
from tests.browser.site import Site
from tests.providers.fake_run import until

RUN = "0123456789abcdef" * 2
# A room as any code in a plugin's world could make it: it knows the two functions, and says what it likes.
ROOM = """
globalThis.heard = [];
globalThis.say = (method, params) => afootSend(JSON.stringify({method, params}));
globalThis.afootReceive = (text) => {
  const {method, params} = JSON.parse(text);
  heard.push(method);
  if (method === "tool.dispatch") say("tool.result", {run: params.run, seq: 1, value: params.input});
  if (method === "retire") say("bye", {persisted: false, why: "replaced"});
  if (method === "woken" || method === "valued") say("tool.log", {run: "r", text: JSON.stringify(params)});
};
say("open", {key: "%s", url: "https://elsewhere.example/", title: "plugin", running: []});
say("tab.tools", {tools: [{name: "%s"}]});
"""


def body(site: Site, name: str = "notes", code: str = "1", more: str = "", key: str = "k1") -> PluginBundle:
    """A plugin for the contract's page on 127.0.0.1; its tool has the code's name."""
    matches = [f"{site.origin()}/contract.html*", f"{site.origin()}/pushed"]
    return PluginBundle(name, code, "k1", matches, body=ROOM % (key, f"tool{code}"), files=more)


async def test_a_plugin_runs_beside_the_pages_it_matches(browser: Chromium, site: Site) -> None:
    """B2: in a room of its own, with the page's origin and the plugin's name; the page sees nothing of it."""
    ear = Ear(body(site))
    async with listening(browser, ear) as carrier:
        page = await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html", "plugin:")
        assert (room.source, room.origin, room.frame) == ("plugin:notes@1", site.origin(), "0")
        assert room.url == site.url("contract.html")
        assert (await ear.tools(room, "tool1")).keys() == {"tool1"}
        carrier.send(extension.RunDispatch(room.id, RUN, "tool1", Raw(b'{"a": 1}')))
        ended = await ear.end(RUN)
        assert (ended.room, msgspec.json.decode(ended.value)) == (room.id, {"a": 1})
        assert (
            await asyncio.to_thread(page.evaluate, "typeof heard + typeof afootSend") == "undefinedundefined"
        )
        assert "tool1" not in await ear.tools(await ear.room("contract.html"))


async def test_a_plugin_runs_nowhere_else(browser: Chromium, site: Site) -> None:
    """B2: not at other addresses, not in frames; but where a page goes to a matching address itself."""
    ear = Ear(body(site))
    site.pages["around.html"] = f"<iframe src='{site.url('contract.html')}#inner'></iframe>"
    async with listening(browser, ear):
        page = await opened(browser, site.url("around.html"))
        await ear.tools(await ear.room("#inner"))
        assert not [room for room in ear.rooms().values() if room.source != "page"]
        await asyncio.to_thread(page.evaluate, "history.pushState({}, '', '/pushed')")
        room = await ear.room("/pushed", "plugin:")
        assert room.frame == "0"


async def test_open_tabs_get_a_new_plugin_and_the_old_code_retires(browser: Chromium, site: Site) -> None:
    """B2: changes are picked up without a reload; the old code says when it is done."""
    ear = Ear()
    async with listening(browser, ear) as carrier:
        await opened(browser, site.url("contract.html"))
        await ear.tools(await ear.room("contract.html"))
        carrier.send(extension.PluginSync([body(site)]))
        first = await ear.room("contract.html", "plugin:notes@1")
        carrier.send(extension.PluginSync([body(site, code="2")]))
        second = await ear.room("contract.html", "plugin:notes@2")
        assert await ear.gone(first) == "replaced"
        assert (await ear.tools(second, "tool2")).keys() == {"tool2"}
        carrier.send(extension.PluginSync([]))
        assert await ear.gone(second) == "replaced"


async def test_a_world_with_the_wrong_key_gets_no_room(browser: Chromium, site: Site) -> None:
    """B7: key and world must both be the plugin's."""
    ear = Ear(body(site, "liar", key="wrong"), body(site, "honest"))
    async with listening(browser, ear) as carrier:
        await opened(browser, site.url("contract.html"))
        await ear.room("contract.html", "plugin:honest")
        await until(lambda: carrier.state.dropped.get("wrong key"))
        assert not [room for room in ear.rooms().values() if "liar" in room.source]


async def test_a_world_speaks_only_for_its_own_room(browser: Chromium, site: Site) -> None:
    """B7: whatever room it claims; what it may not say at all is dropped and counted."""
    more = """
    say("tool.result", {run: "stolen", room: "r1", seq: 1, value: 1, "room": "r2"});
    say("link.hello", {version: "9", profile: "me"});
    say("panel.answer", {question: "q"});
    say("tab.gone", {room: "r1", why: "closed"});
    say("tab.tools", [1, 2]);
    say("tool.progress", {run: 7});
    afootSend("{");
    afootSend('{"method": "wake", "params": {"id": 1, "ms": "soon"}}');
    say("tab.state", {url: "https://bank.example/", title: "x".repeat(5000)});
    """
    ear = Ear(body(site, more=more))
    async with listening(browser, ear) as carrier:
        await opened(browser, site.url("contract.html"))
        room = await ear.room("contract.html", "plugin:")
        stated = await ear.until(
            lambda: [one for one in ear.all(extension.PageContextState) if one.room == room.id],
            "its last word",
        )
        assert (stated[0].url, len(stated[0].title)) == (site.url("contract.html"), 300)
        assert [one.room for one in ear.all(extension.RunResult) if one.run == "stolen"] == [room.id]
        assert (
            not ear.all(extension.PageContextGone)
            and not ear.all(extension.LinkHello)
            and not ear.all(extension.PanelAnswer)
        )
        dropped = carrier.state.dropped
        assert (dropped["unknown method"], dropped["bad frame"]) == (3, 4)


async def test_a_plugin_is_woken_and_reads_values_of_the_page(browser: Chromium, site: Site) -> None:
    """B2, B5: timers that tick in hidden tabs, and the page's own values as JSON."""
    more = """
    say("wake", {id: "w", ms: 30});
    say("value", {id: "v", path: "document.title"});
    say("value", {id: "n", path: "no.such.thing"});
    """
    ear = Ear(body(site, more=more))
    async with listening(browser, ear):
        await opened(browser, site.url("contract.html"))
        said = await ear.until(
            lambda: ear.all(extension.RunLog) if len(ear.all(extension.RunLog)) == 3 else [], "answers"
        )
        answers = {one["id"]: one for one in (msgspec.json.decode(line.text) for line in said)}
        assert answers["w"] == {"id": "w"}
        assert answers["v"]["ok"] is True
        assert answers["n"] == {"id": "n", "ok": True}


@pytest.mark.parametrize("path", ["contract.html?x=1", "contract.html#y"])
async def test_a_reload_brings_a_plugin_back(browser: Chromium, site: Site, path: str) -> None:
    """B6: with the next document comes the next room."""
    ear = Ear(body(site))
    async with listening(browser, ear):
        page = await opened(browser, site.url(path))
        room = await ear.room("contract.html", "plugin:")
        await asyncio.to_thread(page.reload)
        assert await ear.gone(room) == "reloaded"
        assert (await ear.room("contract.html", "plugin:")).id != room.id
