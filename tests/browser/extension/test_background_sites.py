"""Where the extension's worker lets things run: allowed sites, tabs and their reasons, plugins (B2, B7)."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.extension.fake_gateway import Counterpart, Joined, joined
from tests.browser.site import Site

HOSTS: Final = ["http://127.0.0.1/*", "http://127.0.0.2/*"]
# A plugin as small as can be: it opens its room, and says which code it is.
PLUGIN: Final = """(() => {
  if (globalThis.plugged === HASH) return;
  globalThis.plugged = HASH;
  const port = chrome.runtime.connect({ name: "afoot.room" });
  const send = (method, params) => port.postMessage({ method, params });
  port.onMessage.addListener(({ method, params }) => {
    if (method === "tool.dispatch") send("tool.result", { run: params.run, seq: 1, value: HASH });
    if (method === "retire") send("bye", { persisted: false, why: "replaced" });
    if (method === "retire") port.disconnect();
  });
  send("open", { key: KEY, url: location.href, title: "", visible: true, frozen: false, running: [] });
  send("tab.tools", { tools: [{ name: "tell" }] });
})();"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Joined]:
    """The extension with its counterpart; which sites it may see is a person's to say."""
    with joined(plain_browser, tmp_path_factory.mktemp("sites") / "afoot", HOSTS) as found:
        found.browser.allow_user_scripts(found.id)
        found.gateway.wait("link.hello", fits=lambda said: said["userScripts"])  # it is noticed, and told
        yield found


@pytest.fixture
def link(one: Joined) -> Joined:
    """The extension with no tab and no plugin of another test; only 127.0.0.1 is allowed."""
    one.browser.clear()
    one.gateway.plugins = []
    one.gateway.send("plugin.sync", {"plugins": []})
    worker = one.browser.worker(one.id)
    worker.until("chrome.userScripts.getScripts().then((all) => all.length === 0)")
    worker.detach()
    one.manage(f"updateExtensionConfiguration({{extensionId: {one.id!r}, hostAccess: 'ON_CLICK'}})")
    allow(one, HOSTS[0])
    return one


def allow(link: Joined, site: str) -> None:
    """What a person does with a click; the worker has taken it in when this returns."""
    link.manage(f"addHostPermission({link.id!r}, {site!r})")
    _until_registered(link, site, True)


def forbid(link: Joined, site: str) -> None:
    """The opposite."""
    link.manage(f"removeHostPermission({link.id!r}, {site!r})")
    _until_registered(link, site, False)


def _until_registered(link: Joined, site: str, wanted: bool) -> None:
    worker = link.browser.worker(link.id)
    try:
        known = "chrome.scripting.getRegisteredContentScripts()"
        fits = f"all.some((one) => one.matches.includes({site!r})) === {str(wanted).lower()}"
        worker.until(f"{known}.then((all) => {fits})")
    finally:
        worker.detach()


def plugin(hash_: str) -> dict[str, Any]:
    """A plugin for every page of this machine."""
    key = f"key of {hash_}"
    body = PLUGIN.replace("HASH", repr(hash_)).replace("KEY", repr(key))
    return {"name": "teller", "hash": hash_, "key": key, "matches": HOSTS, "body": body}


def why(gateway: Counterpart, tab: str, reason: str, after: int) -> None:
    """Wait until the gateway is told why nothing can run in a tab."""

    def fits(said: dict[str, Any]) -> bool:
        return any(one["id"] == tab and one["why"] == reason for one in said["tabs"])

    gateway.wait("tab.list", after, fits)


def test_a_site_is_unseen_until_it_is_allowed_and_again_when_it_is_not(link: Joined, site: Site) -> None:
    """B6, B7: ungranted, then open before the grant, then ready, then refused."""
    gateway, url = link.gateway, site.url("contract.html", host="127.0.0.2")
    mark = gateway.mark()
    page = link.browser.open(url)
    tab = str(until(lambda: _unseen(gateway, mark), "a tab whose address is not seen"))
    assert not any(heard.method == "tab.opened" for heard in gateway.heard[mark:])
    allow(link, HOSTS[1])
    why(gateway, tab, "reload", mark)
    before = gateway.mark()
    gateway.send("tab.reload", {"tab": tab})
    room = link.opened(url, mark)
    why(gateway, tab, "", before)
    mark = gateway.mark()
    forbid(link, HOSTS[1])
    gone = gateway.wait("tab.gone", mark, lambda said: said["room"] == room["id"])
    assert gone.params["why"] == "lost"
    why(gateway, tab, "ungranted", mark)
    page.close()


def test_frames_without_an_origin_go_with_their_site(link: Joined, site: Site) -> None:
    """B7: a sandboxed frame of a site that a person has removed may not stay."""
    site.pages["sandbox.html"] = "<!doctype html><iframe sandbox=allow-scripts srcdoc='<p>inner'></iframe>"
    allow(link, HOSTS[1])
    mark = link.gateway.mark()
    page = link.browser.open(site.url("sandbox.html", host="127.0.0.2"))
    inner = link.opened("about:srcdoc", mark)
    assert inner["origin"] == "null"
    mark = link.gateway.mark()
    forbid(link, HOSTS[1])
    link.gateway.wait("tab.gone", mark, lambda said: said == {"room": inner["id"], "why": "lost"})
    page.close()


def _unseen(gateway: Counterpart, after: int) -> str | None:
    """The tab in front, if nothing is known of it."""
    for heard in gateway.heard[after:]:
        for tab in heard.params.get("tabs", []):
            if tab["active"] and tab["why"] == "ungranted" and not tab["url"] and not tab["title"]:
                found: str = tab["id"]
                return found
    return None


def test_a_click_on_the_action_opens_the_panel(link: Joined, site: Site) -> None:
    """B1: and the gateway hears that somebody looks."""
    page = link.browser.open(site.url("empty.html"))
    tabs = [one for one in link.browser.targets("tab") if one["url"].endswith("empty.html")]
    mark = link.gateway.mark()
    link.browser.call("Extensions.triggerAction", {"id": link.id, "targetId": tabs[0]["targetId"]})
    assert link.gateway.wait("panel.watch", mark).params == {"on": True}
    panels = [one for one in link.browser.targets() if one["url"].endswith("panel.html")]
    link.browser.call("Target.closeTarget", {"targetId": panels[0]["targetId"]})
    link.gateway.wait("panel.watch", mark, lambda said: not said["on"])
    page.close()


def test_a_page_cannot_speak_as_the_panel(link: Joined, site: Site) -> None:
    """B7: commands count only from the extension's own pages; a content script is sent away."""
    link.browser.open(site.url("empty.html"))
    worker = link.browser.worker(link.id)
    mark = link.gateway.mark()
    script = """async () => {
      const port = chrome.runtime.connect({ name: "afoot.panel" });
      const over = new Promise((resolve) => port.onDisconnect.addListener(() => resolve("sent away")));
      try {
        port.postMessage({ method: "stop", params: { call: "1", reason: "a page says so" } });
      } catch { return "sent away"; }
      return over;
    }"""
    find = "(await chrome.tabs.query({url: 'http://127.0.0.1/*'}))[0].id"
    run = f"chrome.scripting.executeScript({{target: {{tabId: {find}}}, func: {script}}})"
    found = worker.evaluate(f"(async () => (await {run})[0].result)()")
    worker.detach()
    assert found == "sent away"
    assert not [heard for heard in link.gateway.heard[mark:] if heard.method == "panel.cancel"]


def test_a_plugin_runs_in_open_and_in_future_pages_of_allowed_sites(link: Joined, site: Site) -> None:
    """B2: its room is known by its key alone; it has an id of its own beside the page's."""
    gateway, first, second = link.gateway, site.url("empty.html"), site.url("empty.html?2")
    link.browser.open(first)
    link.browser.open(site.url("empty.html", host="127.0.0.2"))  # matches, but is not allowed
    mark = gateway.mark()
    gateway.plugins = [plugin("a1")]
    gateway.send("plugin.sync", {"plugins": gateway.plugins})
    room = link.opened(first, mark, "plugin:teller@a1")
    link.browser.open(second)
    other = link.opened(second, mark, "plugin:teller@a1")
    assert room["id"] != other["id"] and room["id"].endswith("plugin:teller@a1")
    gateway.send("tool.dispatch", {"room": other["id"], "run": "1" * 32, "tool": "tell", "input": {}})
    ended = gateway.wait("tool.result", mark)
    assert (ended.params["room"], ended.params["value"]) == (other["id"], "a1")
    assert not [heard for heard in gateway.heard[mark:] if "127.0.0.2" in str(heard.params.get("room"))]


def test_a_plugin_is_replaced_without_loading_the_page_anew(link: Joined, site: Site) -> None:
    """B2: the new code comes, the old room says why it goes."""
    gateway, url = link.gateway, site.url("empty.html")
    link.browser.open(url)
    mark = gateway.mark()
    gateway.plugins = [plugin("b1")]
    gateway.send("plugin.sync", {"plugins": gateway.plugins})
    old = link.opened(url, mark, "plugin:teller@b1")
    gateway.plugins = [plugin("b2")]
    gateway.send("plugin.sync", {"plugins": gateway.plugins})
    assert link.opened(url, mark, "plugin:teller@b2")["document"] == old["document"]
    gone = gateway.wait("tab.gone", mark, lambda said: said["room"] == old["id"])
    assert gone.params["why"] == "replaced"


def test_plugins_survive_a_worker_that_is_killed(link: Joined, site: Site) -> None:
    """B2, B7: its key is known again, though nobody has said it anew."""
    gateway, url = link.gateway, site.url("empty.html")
    mark = gateway.mark()
    gateway.plugins = [plugin("c1")]
    gateway.send("plugin.sync", {"plugins": gateway.plugins})
    link.browser.open(url)
    room = link.opened(url, mark, "plugin:teller@c1")
    mark = gateway.mark()
    link.browser.kill_worker(link.id)
    hello = gateway.wait("link.hello", mark)
    assert hello.params["userScripts"] is True
    page = next(one for one in link.browser.targets() if one["url"] == url)
    link.browser.attach(page["targetId"]).reload()
    again = link.opened(url, hello.number, "plugin:teller@c1")
    assert again["tab"] == room["tab"]
