"""Plugins with the real SDK in a real tab: what they can do, when they are ready, how they are replaced."""

import secrets

import msgspec
import pytest
from msgspec import Raw

from afoot.wire import extension
from tests.browser.cdp.cdp_listener import Ear, listening
from tests.browser.chromium import Chromium
from tests.browser.page_script.plugin_pages import TOOLS, Make, entered, make, page
from tests.browser.site import Site

__all__ = ["make"]

# What a page may do against whoever runs beside it.
PATCHED = """<!doctype html><title>Shop</title><script>
  window.shop = { cart: ["tea", 2] };
  document.cookie = "login=ada";
  const broken = () => { throw new Error("patched by the page"); };
  const names = Object.getOwnPropertyNames(window);
  window.fetch = broken;
  JSON.stringify = JSON.parse = broken;
  Promise.resolve = Promise.prototype.then = broken;
  Array.prototype.map = Array.prototype.filter = broken;
  EventTarget.prototype.addEventListener = EventTarget.prototype.dispatchEvent = broken;
  Document.prototype.querySelector = broken;
  MutationObserver = AbortController = Headers = broken;
</script>"""
STRICT = (
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; connect-src 'self';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
THROWING = """
function isReady() {
  if (!document.querySelector("#login")) throw ToolError.auth("log in first");
  return true;
}
"""


async def test_tools_report_log_and_give_back(plain: Chromium, site: Site, make: Make) -> None:
    """B2, P1: parallel runs are kept apart, each with its own context."""
    ear = Ear(make())
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        assert (await tab.ready(lambda one: one.ready)).why == ""
        tools = await ear.tools(tab.room, "count")
        assert set(tools) == {"count", "look", "wait", "limited", "odd"}
        runs = [tab.start("count", n=n) for n in (3, 4, 5)]
        for n, run in zip((3, 4, 5), runs, strict=True):
            ended = await ear.end(run)
            assert msgspec.json.decode(ended.value) == {"n": n, "code": "one"}
            reports = tab.reports(run)
            assert [report.progress for report in reports] == list(range(1, n + 1))
            assert len({report.message.split()[0] for report in reports}) == 1
        said = {one.run: (one.text, one.level) for one in ear.all(extension.RunLog)}
        assert said == {run: (f'counted {{"n":{n}}}', "info") for n, run in zip((3, 4, 5), runs, strict=True)}


async def test_a_page_that_patched_everything_and_forbids_everything_changes_nothing(
    browser: Chromium, site: Site, make: Make
) -> None:
    """B2, B7: the plugin has built-ins of its own, the page's login, and is seen by nobody."""
    ear = Ear(make())
    async with listening(browser, ear) as carrier:
        tab = await entered(browser, ear, carrier, page(site, PATCHED, STRICT))
        found = await tab.run("look")
        assert found == {
            "stock": {"tea": 7}, "value": ["tea", 2], "title": "Shop", "json": "[1]", "promise": "own",
        }  # fmt: skip
        [asked] = [seen for seen in site.seen if seen.path == "/stock.json"][-1:]
        assert "login=ada" in asked.headers["Cookie"]
        assert (await tab.run("count", n=2))["n"] == 2
        strange = "names.length - Object.getOwnPropertyNames(window).length"
        assert await tab.do(strange) <= 0
        assert await tab.do("Object.getOwnPropertyNames(window).join().includes('afoot')") is False


async def test_a_request_that_the_pages_policy_forbids_says_so(
    plain: Chromium, site: Site, make: Make
) -> None:
    """E1, B5: over CDP the page's policy binds plugins, too; with the extension it does not."""
    ear = Ear(make())
    async with listening(plain, ear) as carrier:
        url = page(site, PATCHED, "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'")
        tab = await entered(plain, ear, carrier, url)
        error = (await ear.end(tab.start("look"))).error
        assert error is not None and (error.code, error.retryable) == ("csp", False)
        assert error.message == "GET /stock.json is forbidden by the page's Content-Security-Policy"


async def test_failures_keep_what_they_say(plain: Chromium, site: Site, make: Make) -> None:
    """E1: category, code and when to come back; a thrown string is words."""
    ear = Ear(make())
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        limited = (await ear.end(tab.start("limited"))).error
        assert limited is not None
        assert (limited.name, limited.message) == ("ToolError", "slow down")
        assert (limited.category, limited.retryable, limited.retry_after_ms) == ("rate_limit", True, 7000)
        odd = (await ear.end(tab.start("odd"))).error
        assert odd is not None and (odd.name, odd.message) == ("Error", "words")
        missing = (await ear.end(tab.start("nothing"))).error
        assert missing is not None and (missing.category, missing.code) == ("not_found", "no_tool")


async def test_a_wait_ends_with_what_it_waits_for_or_with_its_run(
    plain: Chromium, site: Site, make: Make
) -> None:
    """X1, B2: an element that comes, one that goes, a cancel with its reason."""
    ear = Ear(make())
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site, "<!doctype html><p id=busy>wait</p>"))
        waiting, stopped = tab.start("wait", selector=".late"), tab.start("wait", selector=".never")
        await tab.until_reported(waiting)
        await tab.until_reported(stopped)
        await tab.do("void (document.body.appendChild(document.createElement('b')).className = 'late')")
        await tab.do("void (document.querySelector('.late').textContent = 'come')")
        await tab.do("document.querySelector('#busy').remove()")
        assert msgspec.json.decode((await ear.end(waiting)).value) == "come"
        carrier.send(extension.RunCancel(tab.room.id, stopped, "tea is ready"))
        ended = await ear.end(stopped)
        assert ended.aborted and ended.error is not None and "tea is ready" in ended.error.message


@pytest.mark.parametrize(
    "probe",
    [
        ({"selector": "#login"}, "", "there is no element #login in the page"),
        ({"value": "shop.user"}, "", "the page's shop.user is not set"),
        ("isReady", "const isReady = () => window.name;", "isReady() says that the page is not ready"),
        ("isReady", THROWING, "log in first"),
        ("isReady", "", "its code has no function isReady"),
    ],
    ids=["selector", "value", "function", "throws", "missing"],
)  # fmt: skip
async def test_a_page_that_is_not_ready_says_why_and_is_asked_again(
    plain: Chromium, site: Site, make: Make, probe: tuple[object, str, str]
) -> None:
    """B2: unavailable with the reason; the next call asks again."""
    readiness, code, why = probe
    ear = Ear(make(TOOLS + code, readiness=readiness))
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        assert (await tab.ready(lambda one: one.why == why)).ready is False
        refused = (await ear.end(tab.start("count"))).error
        assert refused is not None and (refused.category, refused.code) == ("unavailable", "tab_not_ready")
        assert refused.message == f"shop is not ready here: {why}"
        if why.startswith("its code"):
            return
        await tab.do("window.shop = {user: 'ada'}; document.body.id = 'login'; void (window.name = 'here')")
        assert (await tab.run("count"))["n"] == 3
        await tab.ready(lambda one: one.ready)


async def test_a_page_that_becomes_ready_is_noticed(plain: Chromium, site: Site, make: Make) -> None:
    """B2: nobody has to call it for that, and nothing else of the page need change."""
    ear = Ear(make(readiness={"selector": "#late"}))
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        await tab.ready(lambda one: "#late" in one.why)
        await tab.do("void (document.body.id = 'late')")
        await tab.ready(lambda one: one.ready)


async def test_a_long_wait_gives_signs_of_life(plain: Chromium, site: Site, make: Make) -> None:
    """C5: by itself, every 5 s, and they are no progress."""
    ear = Ear(make())
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        run = tab.start("wait", selector=".never")
        await ear.until(lambda: len(tab.reports(run)) > 1, "a sign of life")
        said, beat = tab.reports(run)[:2]
        assert (said.message, said.alive, beat.message, beat.alive) == ("waiting", False, None, True)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("defineTool({", "its code could not be read: the browser's console says where"),
        ("undefined.x;", "its code failed: Cannot read properties of undefined"),
        ("defineTool({name: 'a b'});", "its code failed: a tool's name is 1 to 64 letters, digits, _ and -"),
    ],
    ids=["no script", "throws", "no tool"],
)  # fmt: skip
async def test_code_that_does_not_run_says_so(
    plain: Chromium, site: Site, make: Make, code: str, why: str
) -> None:
    """B2, E3: the tab is unavailable, with the reason; the page goes on."""
    ear = Ear(make(code))
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        assert (await tab.ready(lambda one: one.why.startswith(why))).ready is False
        assert await tab.do("document.title") == "Shop"


async def test_new_code_takes_over_and_runs_in_flight_finish_on_the_old(
    plain: Chromium, site: Site, make: Make
) -> None:
    """B2: hot reload, there and back again."""
    one, two = make(), make(mark="two")
    ear = Ear(one)
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        running = tab.start("wait", selector=".late")
        await tab.until_reported(running)
        carrier.send(extension.PluginSync([two]))
        old, new = tab.room, await ear.room(tab.room.url, f"plugin:shop@{two.hash}")
        await ear.until(
            lambda: (
                [told for told in ear.all(extension.PageContextTools) if told.room == old.id][-1].tools == []
            ),
            "nothing to be offered by the old code",
        )
        await ear.tools(new, "count")
        refused = (await ear.end(tab.start("count"))).error
        assert refused is not None and refused.code == "plugin_replaced"
        tab.room = new
        assert (await tab.run("count"))["code"] == "two"
        await tab.do("void (document.body.className = 'late')")
        assert (await ear.end(running)).room == old.id
        for run in {told.run for told in ear.all(extension.RunResult) if told.room == old.id}:
            carrier.send(extension.RunResultAck(old.id, run))
        assert await ear.gone(old) == "replaced"
        carrier.send(extension.PluginSync([one]))
        tab.room = await ear.room(tab.room.url, f"plugin:shop@{one.hash}")
        assert tab.room.id != old.id
        assert (await tab.run("count"))["code"] == "one"


async def test_a_page_that_moves_on_by_itself_is_no_longer_ready(
    plain: Chromium, site: Site, make: Make
) -> None:
    """B2: at an excluded address nothing runs, though the document is the same; back again, it does."""
    ear = Ear(make(excludes=["*://*/private/*"]))
    async with listening(plain, ear) as carrier:
        tab = await entered(plain, ear, carrier, page(site))
        await tab.ready(lambda one: one.ready)
        await tab.do("history.pushState({}, '', '/private/x')")
        assert (await tab.ready(lambda one: not one.ready)).why == "/private/x is none of its pages"
        await tab.do("history.back()")
        await tab.ready(lambda one: one.ready)
        assert (await tab.run("count"))["n"] == 3


async def test_a_plugins_tools_are_not_among_the_pages_own(native: Chromium, site: Site, make: Make) -> None:
    """B2, B7: two registries; a page that registers the plugin's names first gets nothing of it."""
    text = """<!doctype html><title>Shop</title><script>
      const own = {name: "count", description: "the page's", execute: () => "the page"};
      document.modelContext.registerTool(own);
    </script>"""
    ear = Ear(make())
    async with listening(native, ear) as carrier:
        tab = await entered(native, ear, carrier, page(site, text))
        assert (await tab.run("count"))["code"] == "one"
        names = "document.modelContext.getTools().then((all) => all.map((one) => one.name))"
        assert await tab.do(names) == ["count"]
        own = await ear.room(tab.room.url)
        assert set(await ear.tools(own, "count")) == {"count"}
        run = secrets.token_hex(16)
        carrier.send(extension.RunDispatch(own.id, run, "count", Raw(b"{}")))
        assert msgspec.json.decode((await ear.end(run)).value) == "the page"
        carrier.send(extension.RunDispatch(own.id, other := secrets.token_hex(16), "look", Raw(b"{}")))
        missing = (await ear.end(other)).error
        assert missing is not None and missing.code == "no_tool"
