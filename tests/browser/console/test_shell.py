"""The console's shell in a real browser: what is said, where focus goes, what elements are made of (V1)."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.console_client import Console, at, attended, press, size

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


IN_SIGHT = """(() => {
  const link = document.querySelector('#top nav [aria-current]');
  const [row, own] = [link?.parentElement, link].map((one) => one?.getBoundingClientRect());
  return link?.pathname === PATH && own.left >= row.left - 1 && own.right <= row.right + 1;
})()"""


@pytest.mark.parametrize("view", ["servers", "tabs"])
def test_the_link_to_where_we_are_is_in_sight_on_a_phone(console: Console, view: str) -> None:
    """V1: the views are a row that scrolls, when loaded there and when gone there."""
    page = console.open()
    size(page, 320, 640)
    page.navigate(f"{console.api.url}/{view}")
    for key, name in ((None, view), ("l", "live"), (view[0].replace("t", "b"), view)):
        if key:
            press(page, key, ord(key.upper()))
        page.until(IN_SIGHT.replace("PATH", repr(f"/{name}")))


@pytest.mark.parametrize("has_waited", [True, False])
def test_what_is_counted_pushes_no_link_out_of_sight(console: Console, has_waited: bool) -> None:
    """V1: a question makes the row of views longer, whether it is there from the first or comes later."""
    if has_waited:
        console.api.asked(console.api.start("ask_which"))
    page = console.open()
    size(page, 320, 640)
    page.navigate(f"{console.api.url}/tabs")
    page.until("document.title === 'Tabs · afoot' || document.title === '(1) Tabs · afoot'")
    if not has_waited:
        page.until(IN_SIGHT.replace("PATH", "'/tabs'"))
        console.api.start("ask_which")
    page.until("document.title === '(1) Tabs · afoot' && document.querySelector('.badge').checkVisibility()")
    assert page.evaluate(IN_SIGHT.replace("PATH", "'/tabs'"))
    size(page, 280, 640)
    page.until(IN_SIGHT.replace("PATH", "'/tabs'"))


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
    press(page, "?", 191)
    page.until("document.querySelector('#keys').open")
    assert "Go to Inbox" in page.evaluate("document.querySelector('#keys').innerText")
    press(page, "Escape", 27)
    page.until("!document.querySelector('#keys').open")
    press(page, "l", 76)
    page.until("location.pathname === '/live' && document.activeElement.innerText === 'Live'")


def test_it_says_when_the_gateway_is_gone(tmp_path_factory: pytest.TempPathFactory, plain: Chromium) -> None:
    """V1: offline is said in words, and what was seen stays."""
    with attended(tmp_path_factory.mktemp("gone"), plain) as console:
        page = console.open()
        call = console.api.start("wait_for_index")
        page.until(f"{at(call)}?.innerText.includes('running')")
        assert page.evaluate("document.querySelector('.banner').hidden")
        console.gateway.process.kill()
        page.until("document.querySelector('.line').innerText === 'offline'")
        assert "Offline" in page.evaluate("document.querySelector('.banner').innerText")
        shown = page.evaluate(f"{at(call)}.innerText")
        page.evaluate("new Promise((done) => setTimeout(done, 2200))")
        assert page.evaluate(f"{at(call)}.innerText") == shown, "its clock stands still"
        press(page, "t", 84)
        page.until("document.title === 'Not loaded · afoot'")


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
