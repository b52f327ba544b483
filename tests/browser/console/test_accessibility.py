"""The console for everybody: axe-core, the accessibility tree, keys alone, small screens, odd words (V1)."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.asking_console import press, tap
from tests.browser.console.console_client import CONNECTED, Console, attended, size
from tests.browser.console.console_tools import HOSTILE
from tests.browser.page import Page

AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"
LOOKS = {"light": (1280, 800, "light"), "dark": (1280, 800, "dark"), "phone": (360, 740, "light")}
PLAIN = ("inbox", "history", "tools", "servers", "tabs", "resources", "prompts")
VIEWS = ("live", *PLAIN, "tool", "call", "lost")
CHECK = """axe.run(document, { preload: false }).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(({ html, failureSummary }) =>
    `${html.slice(0, 200)} ${failureSummary}`)]))"""
SMALL = """[...document.querySelectorAll("button, input, select, textarea, summary, nav a")]
  .filter((one) => one.checkVisibility())
  .map((one) => [one.outerHTML.slice(0, 120), one.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 24 || height < 24).map(([text]) => text)"""
# All that is read by people: text, and what stands for it.
WORDS = """document.querySelector("main").textContent +
  ["alt", "aria-label", "aria-valuetext", "placeholder", "title"].flatMap((name) =>
    [...document.querySelectorAll(`[${name}]`)].map((one) => one.getAttribute(name))).join()"""
FOE = Path(__file__).parent / "hostile_server.py"
FOCUS = "document.activeElement?.innerText?.trim() ?? ''"
NAMED = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "progressbar", "table"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """A gateway with calls of every kind."""
    with attended(tmp_path_factory.mktemp("access"), plain_browser) as one:
        yield one


@pytest.fixture
def console(served: Console) -> Iterator[Console]:
    """The gateway with no tab and no call of another test."""
    served.browser.clear()
    yield served
    for call in served.api.get("/api/calls?state=live&limit=500").body["calls"]:
        served.api.post(f"/api/calls/{call['id']}/cancel", {})


def busy(console: Console) -> dict[str, str]:
    """Calls of every kind, and the address of every view."""
    start = console.api.start
    failed = start("break_off")
    console.api.ended(failed)
    console.api.post("/api/servers", {"name": "broken", "command": "/nowhere/at-all"})
    start("export_pages", n=100_000, first=37_000, step_s=0.5)
    start("wait_for_index")
    for call in (start("ask_which"), start("delete_backups")):
        console.api.asked(call)
    tree = start("survey", width=3, depth=1, leaf_s=60)
    until(lambda: len(console.api.get("/api/calls?tool=survey&state=running").body["calls"]) == 4, "the tree")
    plain = {view: f"/{view}" for view in PLAIN}
    more = {"tool": "/tools/export_pages", "call": f"/calls/{failed}", "lost": "/live/nowhere"}
    return {"live": f"/live?open={tree}", **plain, **more}


def shown(page: Page, url: str) -> None:
    """Go there, and wait until the view is whole."""
    page.navigate(url)
    page.until("document.title.endsWith(' · afoot')")
    page.until(CONNECTED)
    page.until("document.querySelector('main > :nth-child(2)') !== null")
    page.until("!/^(\\(\\d+\\) )?Call · /.test(document.title)")  # a call's page has the name of its tool


def look(page: Page, name: str) -> None:
    """A window of this kind, in this light."""
    width, height, scheme = LOOKS[name]
    size(page, width, height)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def axe(page: Page) -> Any:
    """What axe-core finds that is serious, from a world of its own: the page's policy lets nothing in."""
    frame = page.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
    world = page.call("Page.createIsolatedWorld", frameId=frame)["executionContextId"]
    params = {"contextId": world, "awaitPromise": True, "returnByValue": True}
    page.call("Runtime.evaluate", expression=AXE.read_text() + ";0", **params)
    found = page.browser.call("Runtime.evaluate", {"expression": CHECK, **params}, page.session, 30)
    assert "exceptionDetails" not in found, found
    return found["result"]["value"]


def tree(page: Page) -> list[dict[str, Any]]:
    """The accessibility tree: roles, names, values and properties of what is not ignored."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    return [
        {
            "role": node["role"]["value"],
            "name": node.get("name", {}).get("value", ""),
            "value": node.get("value", {}).get("value"),
            **{one["name"]: one["value"].get("value") for one in node.get("properties", [])},
        }
        for node in nodes
        if not node["ignored"]
    ]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(console: Console, view: str) -> None:
    """V1: in light, in dark and on a phone; and no view scrolls sideways at 320 px or has small targets."""
    address = busy(console)[view]
    page = console.open()
    shown(page, console.api.url + address)
    for name in LOOKS:
        look(page, name)
        assert axe(page) == [], name
    size(page, 320, 256)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.evaluate(SMALL) == []
    assert page.evaluate("odd") == []


OPENED = {
    "palette": (".go", "document.querySelector('dialog.palette').close()"),
    "keys": (".help", "document.querySelector('dialog.keys').close()"),
    "a refusal": (".question-line [data-act=refuse]", "document.querySelector('.floating').hidePopover()"),
    "a form in place": (
        ".question-line [data-act=fill]",
        "document.querySelector('.floating').hidePopover()",
    ),
}


def test_axe_finds_nothing_serious_in_what_opens(console: Console) -> None:
    """V1: palette, list of keys, a rejection, a form in place, and the page of a browser without a login."""
    busy(console)
    page = console.open("/inbox")
    page.until("document.querySelectorAll('.inbox .card').length === 2")
    rows = "[...document.querySelectorAll('.waiting a')]"  # the form becomes a line with buttons
    page.evaluate(f"{rows}.find((one) => one.innerText.includes('delete_backups')).click()")
    off = "[...document.querySelectorAll('[aria-disabled=true]')].some((one) => one.checkVisibility())"
    for opened, (button, close) in OPENED.items():
        visible = f"[...document.querySelectorAll({button!r})].filter((one) => one.checkVisibility()).at(-1)"
        page.until(f"Boolean({visible})")
        page.evaluate(f"{visible}.click()")
        for name in ("light", "dark"):
            look(page, name)
            page.until(f"!{off}")
            assert axe(page) == [], f"{opened}, {name}"
        page.evaluate(close)
    page.evaluate("import('/console/lib/api.js').then(({ logOut }) => logOut())")
    page.until("document.querySelector('.login') !== null")
    assert axe(page) == []
    assert page.evaluate("odd") == []


@pytest.mark.timeout(120)
def test_the_accessibility_tree_of_each_view_is_whole(console: Console) -> None:
    """V1: landmarks, one heading of the first level, a name for all that can be used."""
    addresses = busy(console)
    page = console.open()
    page.call("Accessibility.enable")
    for view, address in addresses.items():
        shown(page, console.api.url + address)
        nodes = tree(page)
        roles = [node["role"] for node in nodes]
        assert roles.count("main") == 1 and roles.count("banner") == 1 and "navigation" in roles, view
        heads = [node for node in nodes if node["role"] == "heading" and node["level"] == 1]
        assert len(heads) == 1 and page.evaluate("document.title").endswith(f"{heads[0]['name']} · afoot"), (
            view
        )
        assert [node for node in nodes if node["role"] in NAMED and not node["name"]] == [], view
        assert page.evaluate("document.querySelectorAll('[aria-live]').length") == 1


def test_a_bar_says_how_far_it_is_in_words(console: Console) -> None:
    """V1: 37 of 120, page 37; and a call of which nobody knows how far it is has no value."""
    start = console.api.start
    start("export_pages", n=120, first=37, step_s=600)
    start("wait_for_index")
    page = console.open("/live?state=running")
    page.call("Accessibility.enable")
    bars = "[...document.querySelectorAll('.live-row .progress-bar')]"
    page.until(f"{bars}.length === 2 && {bars}.every((one) => one.ariaValueText)")
    values = {node["name"]: node["value"] for node in tree(page) if node["role"] == "progressbar"}
    assert values["export_pages"] == 31 and values["wait_for_index"] is None
    # The protocol tells numbers only, so the words are read from the elements.
    said = page.evaluate(f"{bars}.map((one) => one.ariaValueText)")
    assert sorted(said) == ["37 of 120, page 37", "waiting for the index"]


def test_an_approval_needs_no_more_than_keys(console: Console) -> None:
    """V1: from loading the page: two keys lead to the inbox, one runs; Tab alone would do as well."""
    calls = [console.api.start("delete_backups") for _ in range(2)]
    page = console.open()
    page.until("document.querySelector('.badge')?.innerText.startsWith('2')")
    page.until("document.activeElement === document.body")
    press(page, "Tab")
    assert page.evaluate(FOCUS) == "Skip to the content"
    tap(page, "g")
    tap(page, "i")
    run = "document.querySelector('.card[data-selected] [data-act=run]')"
    page.until(f"document.activeElement.id === 'heading' && {run} && {run}.ariaDisabled !== 'true'")
    tap(page, "y")
    assert console.api.ended(calls[0])["outcome"] == "ok"
    page.until(f"document.querySelectorAll('.inbox .card').length === 1 && {run}?.ariaDisabled !== 'true'")
    page.evaluate("document.querySelector('#heading').focus()")
    for _ in range(40):
        press(page, "Tab")
        if page.evaluate(f"document.activeElement === {run}"):
            break
    press(page, "Enter")
    assert console.api.ended(calls[1])["outcome"] == "ok"
    page.until("document.activeElement !== document.body")


def harmless(page: Page, url: str, begin: str = "") -> None:
    """Go there: hostile words are seen, as words alone; `begin` is done first, as soon as it can be."""
    shown(page, url)
    if begin:
        page.until(begin)
    page.until("document.querySelector('main').textContent.includes('<img src=x onerror=alert(1)>')")
    still_harmless(page, url)


def still_harmless(page: Page, url: str) -> None:
    """Nothing of the page is markup, a script or an address that the words have made."""
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0, url
    assert not set(page.evaluate(WORDS)) & set("\x00\x1b\u202e\u200b"), url
    links = "[...document.querySelectorAll('main a')].map((one) => one.protocol + one.username)"
    assert set(page.evaluate(links)) <= {"http:", "blob:"}, url
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), url
    assert page.evaluate("odd") == [], url


def harmless_palette(page: Page) -> None:
    """The palette shows hostile names and titles as text, too."""
    page.evaluate("document.querySelector('.go').click()")
    dialog = "document.querySelector('dialog.palette')"
    page.until(f"{dialog}.textContent.includes('<img src=x onerror=alert(1)>')")
    assert page.evaluate(f"{dialog}.querySelectorAll('img, script').length") == 0
    assert not set(page.evaluate(f"{dialog}.textContent")) & set("\x00\x1b\u202e\u200b")
    page.evaluate(f"{dialog}.close()")


def unviolated(page: Page) -> None:
    """The browser itself has noticed nothing."""
    logged = [bytes(one.params) for one in page.browser.events if one.method == "Log.entryAdded"]
    assert not [entry for entry in logged if b"security" in entry or b"violation" in entry]


@pytest.mark.timeout(120)
def test_hostile_words_violate_no_policy_and_break_no_layout(console: Console) -> None:
    """V1, S1: markup, scripts, escapes, bidi, emoji, null bytes and 1 MB, in every view that shows them."""
    words = HOSTILE * 20
    call = console.api.start("speak_oddly", sleep_s=0.01, times=4000, words=HOSTILE)
    assert len(console.api.ended(call)["result"]["content"][0]["text"]) > 1_000_000
    console.api.start("speak_oddly", words=words)
    odd = {"name": "odd", "command": "/nowhere/" + HOSTILE.replace("\x00", "")}
    console.api.send("DELETE", "/api/servers/odd", None, {})  # of a run before
    assert console.api.post("/api/servers", odd).status == 201
    page = console.open()
    page.call("Log.enable")
    size(page, 360, 740)
    for path in ("/live", "/history", f"/calls/{call}", "/servers", "/history?q=%3Cimg%20src%3Dx"):
        harmless(page, console.api.url + path)
    unviolated(page)


@pytest.mark.timeout(120)
def test_a_hostile_servers_tool_and_questions_are_only_ever_text(console: Console) -> None:
    """V1, S1, Q3: its titles, schemas, forms, offers, addresses, version and log, wherever they are read."""
    server = {"name": "foe", "command": sys.executable, "args": [str(FOE), json.dumps(HOSTILE)]}
    console.api.send("DELETE", "/api/servers/foe", None, {})  # of a run before
    assert console.api.post("/api/servers", server).status == 201
    call = console.api.start("utter")
    page = console.open()
    page.call("Log.enable")
    size(page, 360, 740)
    box = "document.querySelector('main details')"
    details = f"{box}?.open || {box}?.querySelector('summary').click(), {box}?.open"
    for path, begin in (("/tools", ""), ("/tools/utter", details), ("/servers?logs=foe", "")):
        harmless(page, console.api.url + path, begin)
    for path, button in (("/resources?open=odd%3A%2F%2Fwords", "Read"), ("/prompts?open=speak", "Fill in")):
        harmless(page, console.api.url + path)
        page.evaluate(
            "[...document.querySelectorAll('.offer-pane button')]"
            f".find((one) => one.innerText.startsWith({button!r})).click()"
        )
        page.until("document.querySelector('.lookup')?.textContent.includes('<img src=x onerror=alert(1)>')")
        still_harmless(page, path)
    harmless_palette(page)
    for kind, action in (("form", "decline"), ("url", "accept")):
        question = console.api.asked(call)
        assert question["kind"] == kind
        for path in ("/inbox", "/live", f"/calls/{call}"):
            harmless(page, console.api.url + path)
        console.api.post(f"/api/questions/{question['id']}/answer", {"action": action})
        until(lambda key=question["id"]: key not in open_of(console, call), "the answer to be taken")
    assert console.api.ended(call)["outcome"] == "failed"
    harmless(page, f"{console.api.url}/calls/{call}")
    unviolated(page)


@pytest.mark.timeout(60)
def test_hostile_arguments_are_approved_as_text(console: Console) -> None:
    """V1, A6: what is to run is shown whole, with marks, and so is what changed since the last yes."""
    page = console.open()
    page.call("Log.enable")
    size(page, 360, 740)
    for name in ("a", "b"):
        call = console.api.start("wipe_words", words=[HOSTILE, {HOSTILE: name}])
        question = console.api.asked(call)
        harmless(page, f"{console.api.url}/inbox")
        console.api.post(
            f"/api/questions/{question['id']}/answer", {"action": "accept", "content": {"decision": "run"}}
        )
        console.api.ended(call)
    unviolated(page)


def open_of(console: Console, call: str) -> set[str]:
    """The questions of a call that are open."""
    return {one["id"] for one in console.api.call(call)["questions"]}
