"""The console's shell in a real browser: what is said, where focus goes, what elements are made of (V1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.console import FORGET
from tests.browser.chromium import Chromium
from tests.browser.console.asking_console import tap, write
from tests.browser.console.console_client import (
    CONNECTED,
    OFFLINE,
    Console,
    Rooted,
    attended,
    press,
    size,
)
from tests.browser.page import Page

NOTED = """
globalThis.noted = [];
globalThis.Notification = class extends Notification {
  constructor(title, how) { super(title, how); noted.push(`${title} ${how.tag}`); }
  close() { super.close(); noted.push(`gone ${this.tag}`); }
};
"""
ELEMENTS = """(async () => {
  const [{ each, h }, { scope, signal }] = await Promise.all(
    [import("/console/lib/dom.js"), import("/console/lib/signal.js")]);
  const list = signal(["a", "b", "c"]);
  const word = signal("<b>one</b>");
  const [node, end] = scope(() => h("div", { title: word, "data-gone": () => null },
    h("p", null, word), each(list, String, (key) => h("button", { id: `each-${key}` }, key)), "end"));
  document.body.append(node);
  const b = node.querySelector("#each-b");
  b.focus();
  list.set(["c", "b", "d"]);
  const order = [...node.querySelectorAll("button")].map((one) => one.textContent).join("");
  const kept = [node.querySelector("#each-b") === b, document.activeElement === b];
  list.set(["c", "d"]);
  const heir = document.activeElement.id;
  word.set("two");
  list.set([]);
  const last = document.activeElement.id;
  const texts = [node.querySelector("p").textContent, node.title, node.textContent];
  end();
  word.set("three");
  const hrefs = ["javascript:alert(1)", "data:text/html,x", "//evil.example", "/\\\\evil.example",
    "https://a.example/", "/live"].map((href) => h("a", { href }).hasAttribute("href"));
  const after = node.title;
  node.remove();
  return { order, kept, heir, last, texts, hrefs, after };
})()"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests."""
    with attended(tmp_path_factory.mktemp("shell"), plain_browser) as one:
        yield one


@pytest.fixture
def console(served: Console) -> Iterator[Console]:
    """The gateway with no tab and no call of another test."""
    served.browser.clear()
    yield served
    for call in served.api.get("/api/calls?state=live&limit=500").body["calls"]:
        served.api.post(f"/api/calls/{call['id']}/cancel", {})


def test_the_title_counts_what_waits_and_the_live_region_says_it(console: Console) -> None:
    """V1: waits for you is said politely; numbers never are."""
    page = console.open()
    page.until("document.title === 'Live · afoot'")
    page.evaluate(
        """globalThis.said = []; new MutationObserver(() => said.push(say.textContent))
        .observe(say, { childList: true, characterData: true, subtree: true })"""
    )
    console.api.start("export_pages", n=60, step_s=0.02)
    call = console.api.start("ask_which")
    page.until("document.title === '(1) Live · afoot'")
    page.until("said.includes('ask_which waits for you')")
    console.api.post(f"/api/calls/{call}/cancel", {})
    page.until("document.title === 'Live · afoot'")
    assert not [text for text in page.evaluate("said") if "page" in text]
    assert page.evaluate("document.querySelectorAll('[aria-live]').length") == 1


def test_a_question_is_told_by_the_system_only_while_nobody_looks(console: Console) -> None:
    """V1: one notice a question, while the page is hidden, withdrawn when it is answered elsewhere."""
    origin = console.api.url
    console.browser.call("Browser.grantPermissions", {"origin": origin, "permissions": ["notifications"]})
    page = console.open(first=NOTED)
    seen = console.api.start("ask_which")
    page.until("document.title.startsWith('(1)')")
    console.browser.open()  # in front of it
    page.until("document.hidden")
    call = console.api.start("delete_backups")
    page.until("noted.length === 1")
    console.api.post(f"/api/calls/{call}/cancel", {})
    page.until("noted.length === 2")
    told, gone = page.evaluate("noted")
    assert told.startswith("delete_backups waits for you") and told.endswith(f"{call}.1")
    assert gone == f"gone {call}.1"
    console.api.post(f"/api/calls/{seen}/cancel", {})


def test_nothing_is_told_by_the_system_while_another_tab_is_seen(console: Console) -> None:
    """V1: whoever looks at one tab knows what waits, whichever tab holds the stream."""
    origin = console.api.url
    console.browser.call("Browser.grantPermissions", {"origin": origin, "permissions": ["notifications"]})
    pages = [console.open(first=NOTED), console.open(first=NOTED)]
    pages[0].until("document.hidden")
    console.api.start("ask_which")
    for page in pages:
        page.until("document.title.startsWith('(1)')")
        page.evaluate("navigator.locks.query().then(() => 0)")  # as the page does before it tells
        assert page.evaluate("noted") == []


BOTTOM = "document.querySelector('#bottom nav')"
HERE = f"{BOTTOM}.querySelector('[aria-current], [data-here]')?.innerText.split('\\n').at(-1).trim()"


@pytest.mark.parametrize("has_waited", [True, False])
def test_a_phone_has_its_views_at_the_bottom(console: Console, has_waited: bool) -> None:
    """V1: also with a count, at 280 px, nothing is cut off; what has no room there is behind More."""
    if has_waited:
        console.api.asked(console.api.start("ask_which"))
    page = console.open()
    size(page, 280, 640)
    assert page.evaluate(HERE) == "Live"
    page.evaluate(f"{BOTTOM}.querySelector('button').click()")
    page.until("document.querySelector('.floating')?.innerText.includes('Servers')")
    page.evaluate("document.querySelector('.floating a[href=\"/servers\"]').click()")
    page.until("location.pathname === '/servers' && document.querySelector('.floating') === null")
    page.until(f"{HERE} === 'More'")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    small = f"[...{BOTTOM}.children].filter((one) => one.getBoundingClientRect().width < 44).length"
    assert page.evaluate(small) == 0
    page.until(f"{BOTTOM}.querySelector('.badge').checkVisibility() === {str(has_waited).lower()}")


@pytest.mark.parametrize("width", [700, 860, 1160, 1440])
def test_the_top_bar_fits_its_window(console: Console, width: int) -> None:
    """V1: at the widths where it drops words, it has one line and nothing lies over anything."""
    console.api.asked(console.api.start("ask_which"))
    page = console.open()
    size(page, width, 800)
    page.until("document.querySelector('#top .badge').checkVisibility()")
    check_top_bar(page)


def check_top_bar(page: Page) -> None:
    """The bar has one line, and nothing in it lies over anything."""
    assert page.evaluate("document.querySelector('#top').getBoundingClientRect().height") == 44
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    parts = "[...document.querySelectorAll('#top nav a, #top .right > *')]"
    rects = f"{parts}.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect())"
    overlaps = f"{rects}.some(({{ left }}, at, all) => at && left < all[at - 1].right)"
    assert not page.evaluate(overlaps)


def test_a_slash_leads_to_the_search(console: Console) -> None:
    """V1: where there is a list; what is written there is no shortcut."""
    page = console.open("/history")
    page.until("document.querySelector('input[type=search]') !== null")
    press(page, "/", 191)
    page.until("document.activeElement.type === 'search'")
    press(page, "l", 76)
    page.until("document.activeElement.value === 'l'")
    assert page.evaluate("location.pathname") == "/history"


def test_going_elsewhere_moves_focus_to_the_heading(console: Console) -> None:
    """V1: a route change sets title and focus; an address without a view says so; keys lead back."""
    page = console.open()
    assert page.evaluate("document.activeElement.id") != "heading"
    page.evaluate("import('/console/lib/router.js').then(({ navigate }) => navigate('/nowhere'))")
    page.until("document.title === 'Nothing here · afoot' && document.activeElement.id === 'heading'")
    press(page, "g", 71)
    press(page, "l", 76)
    page.until("location.pathname === '/live' && document.activeElement.innerText === 'Live'")


def test_the_list_of_keys_says_which_would_act(console: Console) -> None:
    """V1: ? opens it; in the inbox without a question, j and y are pale."""
    page = console.open("/inbox")
    press(page, "?", 191)
    page.until("document.querySelector('dialog.keys').open")
    acting = "[...document.querySelectorAll('dialog.keys [data-acts] dt')].map((one) => one.innerText)"
    found = page.evaluate(acting)
    assert "?" in found and "y" not in found and "j" not in found
    assert page.evaluate("document.activeElement.innerText") == "Close"
    press(page, "Escape", 27)
    page.until("!document.querySelector('dialog.keys').open")
    assert page.evaluate("location.pathname") == "/inbox"


def chosen(page: Page, text: str) -> str:
    """Open the palette, write this, and give the name that Enter would choose, once it begins with it."""
    press_ctrl_k(page)
    page.until("document.querySelector('dialog.palette').open")
    write(page, text)
    selected = "(document.querySelector('dialog.palette [aria-selected=true]')?.innerText ?? '')"
    return str(page.until(f"{selected}.includes({text!r}) && {selected}"))


def press_ctrl_k(page: Page) -> None:
    """Ctrl and K."""
    for kind in ("rawKeyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="k", modifiers=2, windowsVirtualKeyCode=75)


def test_the_palette_goes_to_views_calls_tools_and_servers(console: Console) -> None:
    """V1: a few letters and Enter; also while a field has the focus, and with arrow keys."""
    call = console.api.start("wait_for_index")
    page = console.open("/history")
    page.until("import('/console/lib/store.js').then(({ store }) => store.roots().length > 0)")
    page.evaluate("document.querySelector('input[type=search]').focus()")
    for text, path in (
        ("export_pages", "/tools/export_pages"),
        ("Servers", "/servers"),
        (call, f"/calls/{call}"),
    ):
        chosen(page, text)
        press(page, "Enter", 13)
        page.until(f"location.pathname === {path!r} && !document.querySelector('dialog.palette').open")
    press_ctrl_k(page)
    page.until("document.activeElement.role === 'combobox'")
    press(page, "ArrowDown", 40)
    press(page, "Enter", 13)
    page.until("location.pathname === '/inbox'")
    press_ctrl_k(page)
    page.until("document.querySelector('dialog.palette').open")
    write(page, "qqqq")
    page.until("document.querySelector('dialog.palette').innerText.includes('Nothing here has this name')")
    press(page, "Escape", 27)
    page.until("!document.querySelector('dialog.palette').open")


def test_the_theme_is_kept_and_shared(console: Console) -> None:
    """V6: as the system, light, dark; in every tab, and before the page is drawn anew."""
    page, other = console.open(), console.open()
    shown = "document.documentElement.dataset.theme ?? 'system'"
    assert page.evaluate(shown) == "system"
    for wanted in ("light", "dark"):
        page.evaluate("document.querySelector('.theme').click()")
        assert page.evaluate(shown) == wanted
        other.until(f"({shown}) === {wanted!r}")
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
    first = "new MutationObserver((_, one) => document.body && (one.disconnect(), globalThis.first = "
    first += f"{shown})).observe(document, {{ childList: true, subtree: true }})"
    page.call("Page.addScriptToEvaluateOnNewDocument", source=first)
    page.reload()
    assert page.until("globalThis.first") == "dark"
    page.evaluate("document.querySelector('.theme').click()")
    assert page.evaluate(shown) == "system"


def test_the_address_is_copied(console: Console) -> None:
    """V1: what an MCP client needs, in one press."""
    permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    console.browser.call("Browser.grantPermissions", {"origin": console.api.url, "permissions": permissions})
    page = console.open()
    size(page, 1280, 800)
    page.call("Emulation.setFocusEmulationEnabled", enabled=True)  # else there is no clipboard
    page.until(CONNECTED)
    page.evaluate("document.querySelector('.address').click()")
    page.until("document.querySelector('.address').innerText.includes('copied')")
    assert page.evaluate("navigator.clipboard.readText()") == f"{console.api.url}/mcp"


def test_offline_freezes_everything_until_the_gateway_is_back(tmp_path: Path, plain: Chromium) -> None:
    """V1, V6: a line says since when, clocks stand still, buttons are off; then it goes on."""
    gateway = Rooted(tmp_path, {"drain_s": 0.2})
    gateway.start()
    try:
        console = Console(gateway, plain)
        call, asking = console.api.start("wait_for_index"), console.api.start("delete_backups")
        page = console.open("/inbox")
        run = "document.querySelector('.card [data-act=run]')"
        page.until(f"{run} && {run}.ariaDisabled !== 'true'")
        gateway.kill()
        page.until(OFFLINE)
        line = page.evaluate("document.querySelector('.status-line').innerText")
        assert line.startswith("Not connected since ") and line.endswith(", trying again")
        frozen = "import('/console/lib/time.js').then(({ now }) => now.peek())"
        before = page.evaluate(f"[document.body.innerText, {run}.ariaDisabled]"), page.evaluate(frozen)
        assert before[0][1] == "true"
        page.evaluate(f"{run}.click()")
        tap(page, "y")
        page.evaluate("new Promise((done) => setTimeout(done, 1200))")  # more than a tick of its clock
        assert (
            page.evaluate(f"[document.body.innerText, {run}.ariaDisabled]"),
            page.evaluate(frozen),
        ) == before
        for width in (390, 1280):
            size(page, width, 800)
            assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), width
        press(page, "g", 71)
        press(page, "b", 66)
        page.until("document.title.endsWith('Not loaded · afoot')")
        gateway.start()
        page.until(CONNECTED)
        assert not page.evaluate(OFFLINE)
        page.until("document.querySelector('.status-line').hidden")
        assert console.api.call(call)["state"] != "queued"
        assert console.api.call(asking)["outcome"] != "ok", "nothing was answered while it was away"
    finally:
        gateway.stop()


def test_elements_are_made_of_data_and_kept_by_key(console: Console) -> None:
    """V1: `each` keeps nodes and focus; links lead nowhere odd; what is bound is set when it changes."""
    page = console.open()
    found = page.evaluate(ELEMENTS)
    assert found == {
        "order": "cbd",
        "kept": [True, True],
        "heir": "each-d",
        "last": "heading",
        "texts": ["two", "two", "twoend"],
        "hrefs": [False, False, False, False, True, True],
        "after": "two",
    }


def test_a_page_whose_scripts_did_not_arrive_loads_itself_again(console: Console) -> None:
    """V1, V6: one module is enough for none to run; the link that logs in is not lost by that."""
    page = console.browser.open()
    page.call("Network.enable")
    page.call("Network.setBlockedURLs", urls=["*/console/lib/dom.js"])
    page.navigate(console.api.post("/api/session/code", {}).body["url"])
    assert page.evaluate("location.hash").startswith("#login=")
    assert page.evaluate("document.querySelector('#top').childElementCount") == 0
    page.call("Network.setBlockedURLs", urls=[])
    page.until("!location.hash && document.title.endsWith(' · afoot')")


def test_the_first_view_does_not_come_back_once_a_call_has_ended(tmp_path: Path, plain: Chromium) -> None:
    """V1: five minutes later nothing runs, but something has."""
    with attended(tmp_path, plain) as console:
        page = console.open()
        page.until("document.querySelector('main').innerText.includes('Nothing has run yet')")
        call = console.api.start("export_pages", n=1, step_s=0)
        console.api.ended(call)
        page.until("document.querySelector('.chip[data-filter=ended] b')?.innerText === '1'")
        page.evaluate(FORGET)
        page.until("document.querySelector('.chip[data-filter=ended] b')?.innerText === '0'")
        assert "Nothing has run yet" not in page.evaluate("document.querySelector('main').innerText")
