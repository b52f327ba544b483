"""The side panel in a real browser: what it shows, and what a person can do there (B1, A2, A5)."""

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.browser.chromium import Chromium
from tests.browser.extension.fake_gateway import Joined, joined
from tests.browser.page import Page
from tests.browser.site import Site

NOW: Final = time.time()
CALL: Final = {
    "id": "c1", "tool": "shop_export", "server": "browser", "caller": "local", "state": "running",
    "outcome": None, "progress": 37, "total": 120, "message": "order 37",
    "opened": NOW - 65, "started": NOW - 65, "finished": None, "elapsed_s": 65.0,
    "clocks": {
        "idle_s": 3000, "ceiling_s": 300, "answer_s": 600, "heard": NOW, "spent_s": 0, "since": NOW - 65,
    },
}  # fmt: skip
BAR: Final = "document.querySelector('.narrow-row [role=progressbar]')"
CANCEL: Final = "document.querySelector('.narrow-row button')"
QUESTION: Final = {
    "id": "c2.1", "call": "c2", "tool": "shop_cancel", "key": "approval", "kind": "approval",
    "message": "Run browser/cancel of page https://shop.example ({})?",
    "asked": NOW, "expires": NOW + 600, "caller": "an agent", "why": "a page's tool",
    "arguments": {"order": "A-1007", "note": "<b>bold</b>"},
}  # fmt: skip


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Joined]:
    """The extension with its counterpart."""
    with joined(plain_browser, tmp_path_factory.mktemp("panel") / "afoot") as found:
        yield found


@pytest.fixture
def link(one: Joined) -> Joined:
    """The extension with no tab of another test, and nothing to show."""
    one.browser.clear()
    one.gateway.send("panel.state", {})
    return one


@pytest.fixture
def panel(link: Joined) -> Page:
    """The panel, opened as a tab: what it shows is the same."""
    mark = link.gateway.mark()
    page = link.browser.open(f"chrome-extension://{link.id}/panel/panel.html")
    link.gateway.wait("panel.watch", mark, lambda said: said["on"])
    page.until("document.body.dataset.state === 'on'")
    return page


def show(link: Joined, **state: Any) -> None:
    """What the gateway says of calls and questions."""
    link.gateway.send("panel.state", {"now": NOW, **state})  # the calls of a long run stay as old as they are


def text(page: Page, selector: str) -> str:
    """What is read there."""
    found: str = page.until(f"document.querySelector({selector!r})?.innerText")
    return found


def press(page: Page, button: str, within: str = "body") -> None:
    """Press a button, as a keyboard does: focus it, then the enter key."""
    find = f"[...document.querySelectorAll({within + ' button'!r})]"
    is_it = f"(one) => one.innerText.split('\\n')[0] === {button!r} && one.checkVisibility() && !one.disabled"
    page.until(f"{find}.some({is_it})")
    page.evaluate(f"{find}.find({is_it}).focus()")
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            windowsVirtualKeyCode=13,
            text="\r",
        )


def test_the_panel_says_how_the_link_is(link: Joined, panel: Page) -> None:
    """B1: connected and to what; lost, with the reason; and it comes back by itself."""
    assert text(panel, "#link") == f"127.0.0.1:{link.gateway.port}"
    link.gateway.close(1001)
    panel.until("document.body.dataset.state === 'off'")
    said = text(panel, "#why")
    assert said.startswith("Not connected since ") and said.endswith(
        ", trying again. the gateway is stopping"
    )
    panel.until("document.body.dataset.state === 'on'")


def test_a_folder_that_was_never_paired_says_what_to_do(link: Joined, panel: Page) -> None:
    """B7: no secret, no link."""
    pairing = link.folder / "pairing.json"
    mark = link.gateway.mark()
    pairing.unlink()
    link.gateway.close(1001)
    try:
        panel.until("document.body.dataset.state === 'unpaired'")
        assert "afoot browser" in text(panel, "#why")
    finally:
        link.pair()
    press(panel, "Connect")
    link.gateway.wait("link.hello", mark)


def test_a_call_has_its_bar_and_both_clocks(link: Joined, panel: Page) -> None:
    """B1, V5, V6: in the words and figures of the console; the bar moves with the next word."""
    show(link, calls=[CALL])
    assert text(panel, ".narrow-row h3") == "shop_export"
    assert panel.until(f"{BAR}?.ariaValueNow") == "31"
    assert (text(panel, ".figure"), text(panel, ".words").strip()) == ("30 %", "order 37")
    panel.until("document.querySelectorAll('.clock-figure')[1].innerText >= '1:06'")  # it goes on by itself
    assert panel.evaluate("document.querySelector('.ceiling i').style.getPropertyValue('--used')") > "0.2"
    show(link, calls=[{**CALL, "progress": 60}])
    panel.until(f"{BAR}.ariaValueNow === '50'")
    hindered = {"at": NOW, "by": "its tab is hidden", "hint": "bring it to the front"}
    show(link, calls=[{**CALL, "hindered": hindered}])
    panel.until("document.querySelector('.narrow-row').dataset.state === 'held_up'")
    assert text(panel, ".words").strip() == "held up: its tab is hidden · bring it to the front"
    failure = {"message": "order 3 is already shipped"}
    show(
        link,
        calls=[
            {**CALL, "state": "finished", "outcome": "failed", "finished": NOW - 64.4, "failure": failure}
        ],
    )
    assert text(panel, "#ended .words").strip() == "order 3 is already shipped"
    assert text(panel, "#ended .figure") == "0.6 s"
    show(link, calls=[])
    panel.until("!document.querySelector('.narrow-row')")


def test_a_cancel_can_be_undone_for_five_seconds(link: Joined, panel: Page) -> None:
    """X1, V6: then the call is stopped."""
    show(link, calls=[CALL])
    panel.until(f"{CANCEL}?.ariaLabel === 'Cancel shop_export'")
    mark = link.gateway.mark()
    panel.evaluate(f"{CANCEL}.click()")
    assert text(panel, ".words").strip().startswith("cancels in ")
    press(panel, "Undo", ".narrow-row")
    panel.until("document.querySelector('.narrow-row').dataset.state === 'running'")
    assert not [said for said in link.gateway.heard[mark:] if said.method == "panel.cancel"]
    panel.evaluate(f"{CANCEL}.click()")
    assert link.gateway.wait("panel.cancel", mark).params["call"] == "c1"


def test_calls_stand_in_their_tree(link: Joined, panel: Page) -> None:
    """P8, V6: each below the one that made it."""
    child = {**CALL, "id": "c5", "tool": "shop_page", "parent": "c1", "opened": NOW - 2}
    show(link, calls=[child, CALL])
    rows = "[...document.querySelectorAll('.narrow-row')]"
    depth = "row.style.getPropertyValue('--depth')"
    panel.until(f"{rows}.length === 2")
    found = panel.evaluate(f"{rows}.map((row) => row.querySelector('h3').innerText + {depth})")
    assert found == ["shop_export0", "shop_page1"]


def test_a_lost_gateway_freezes_what_is_shown(link: Joined, panel: Page) -> None:
    """V6: the clocks stand still, nothing can be pressed, and the rows stay as they were."""
    show(link, calls=[CALL], questions=[QUESTION])
    panel.until("document.querySelectorAll('.clock-figure')[1]?.innerText >= '1:05'")
    link.gateway.close(1001)
    panel.until("document.documentElement.hasAttribute('data-offline')")
    figures = "[...document.querySelectorAll('.clock-figure, .time-left')].map((one) => one.innerText).join()"
    stopped = panel.evaluate(figures)
    buttons = "[...document.querySelectorAll('.narrow-row button, .narrow-question button')]"
    assert panel.evaluate(f"{buttons}.every((one) => one.disabled)")
    # As long as three steps of the page's own clock.
    assert panel.evaluate(f"new Promise((then) => setTimeout(() => then({figures}), 300))") == stopped
    panel.until("document.body.dataset.state === 'on'")


def test_a_call_that_says_no_total_has_a_bar_without_an_end(link: Joined, panel: Page) -> None:
    """B1: nothing is made up."""
    show(link, calls=[{**CALL, "progress": None, "total": None}])
    panel.until(f"{BAR}?.hasAttribute('data-unknown') && {BAR}.ariaValueNow === null")


# What is pressed and chosen, and what is decided by that.
DECISIONS: Final[list[tuple[list[str], str, dict[str, Any]]]] = [
    (["Run"], "", {"decision": "run"}),
    (["Skip"], "", {"decision": "skip"}),
    (["Reject…", "Reject"], "document.querySelector('textarea').value = 'ask first'",
     {"decision": "reject", "instead": "ask first"}),
    (["Always…", "Run, and always allow"], "", {"decision": "always", "scope": "tool", "for": "connection"}),
    (["Always…", "Run, and always allow"],
     "document.querySelectorAll('select')[0].value = 'arguments'; "
     "document.querySelectorAll('select')[1].value = '3600'",
     {"decision": "always", "scope": "arguments", "for": 3600}),
]  # fmt: skip


@pytest.mark.parametrize(("presses", "choose", "content"), DECISIONS, ids=lambda one: str(one)[:20])
def test_an_approval_is_decided_by_keyboard(
    link: Joined, panel: Page, presses: list[str], choose: str, content: dict[str, Any]
) -> None:
    """A2, A5: run, skip, reject with words, always with a scope and a time."""
    show(link, questions=[QUESTION])
    mark = link.gateway.mark()
    for number, button in enumerate(presses):
        if number:
            panel.evaluate(choose or "0")
        press(panel, button, ".narrow-question")
    said = link.gateway.wait("panel.answer", mark).params
    assert said == {"question": "c2.1", "action": "accept", "content": content}


def test_all_arguments_are_shown_and_markup_is_only_text(link: Joined, panel: Page) -> None:
    """A2, B7: what a page or a model wrote is never part of the panel."""
    wrong = {"tool": "<img src=x onerror=alert(1)>", "why": "\u202eevil"}
    show(link, questions=[{**QUESTION, **wrong}], calls=[{**CALL, "message": "<i>x</i>"}])
    panel.until("!!document.querySelector('.narrow-question')")
    pairs = "[...document.querySelectorAll('.argument-list > *')].map((one) => one.innerText)"
    assert panel.evaluate(pairs) == ["order", '"A-1007"', "note", '"<b>bold</b>"']
    assert text(panel, ".narrow-question h3") == "<img src=x onerror=alert(1)>"
    about = "[...document.querySelectorAll('.narrow-question .about')].map((one) => one.innerText)"
    assert panel.evaluate(about) == ["asked by an agent", "It asks because ⟨U+202E⟩evil."]
    markup = "main img, main h3 *, .words i, .words b, .argument-list b"
    assert panel.evaluate(f"document.querySelectorAll({markup!r}).length") == 0


def test_what_is_half_written_stays_while_things_move(link: Joined, panel: Page) -> None:
    """B1: text and focus outlive what the gateway says meanwhile."""
    show(link, questions=[QUESTION])
    press(panel, "Reject…", ".narrow-question")
    panel.evaluate("document.querySelector('textarea').value = 'not toda'")
    show(link, questions=[{**QUESTION, "id": "c3.1"}, QUESTION], calls=[CALL])
    panel.until("document.querySelectorAll('.narrow-question').length === 2")
    kept = "document.activeElement.tagName + document.activeElement.value"
    assert panel.evaluate(kept) == "TEXTAREAnot toda"


def test_an_answer_that_does_not_count_says_why(link: Joined, panel: Page) -> None:
    """A5: somebody else was first."""
    show(link, questions=[QUESTION])
    press(panel, "Run", ".narrow-question")
    panel.until("document.querySelector('.narrow-question button').disabled")
    link.gateway.send("panel.said", {"about": "c2.1", "error": "it was answered already"})
    assert text(panel, ".narrow-question [role=alert]") == "it was answered already"
    assert not panel.evaluate("document.querySelector('.narrow-question button').disabled")


def test_a_form_is_filled_in_and_sent(link: Joined, panel: Page) -> None:
    """Q2, Q4: with the types that its schema wants; what is empty and optional is left out."""
    properties = {
        "name": {"type": "string", "title": "Your name"}, "count": {"type": "integer", "default": 3},
        "sure": {"type": "boolean"}, "size": {"type": "string", "enum": ["s", "m"]},
        "note": {"type": "string"},
    }  # fmt: skip
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    show(link, questions=[{**QUESTION, "kind": "form", "message": "Who are you?", "schema": schema}])
    assert text(panel, ".narrow-question .about") == "Who are you?"
    panel.evaluate(
        "const [name, count, sure, size] = document.querySelectorAll('.flat-field :is(input, select)');"
        "name.value = 'Ada'; sure.checked = true; size.value = 'm';"
    )
    mark = link.gateway.mark()
    press(panel, "Send", ".narrow-question")
    said = link.gateway.wait("panel.answer", mark).params
    assert said["content"] == {"name": "Ada", "count": 3, "sure": True, "size": "m"}


@pytest.mark.parametrize("address", ["https://pay.example/x", "javascript:alert(1)"])
def test_an_address_is_offered_only_if_it_is_safe_to_open(link: Joined, panel: Page, address: str) -> None:
    """Q2, B7: anything else is not made a link."""
    show(link, questions=[{**QUESTION, "kind": "url", "message": "Pay here", "params": address}])
    assert text(panel, ".narrow-question .about") == "Pay here"
    links = panel.evaluate("[...document.querySelectorAll('.narrow-question a')].map((one) => one.href)")
    assert links == ([address] if address.startswith("https") else [])
    mark = link.gateway.mark()
    press(panel, "Decline", ".narrow-question")
    assert link.gateway.wait("panel.answer", mark).params == {"question": "c2.1", "action": "decline"}


def test_tabs_say_what_they_are_and_can_be_loaded_anew(link: Joined, panel: Page, site: Site) -> None:
    """B6: ready with its tools, or why not and what to do."""
    mark, url = link.gateway.mark(), site.url("contract.html")
    link.browser.open(url)
    room = link.opened(url, mark)
    show(link, tabs=[{"key": "t1", "tab": room["tab"], "state": "ready", "tools": 5}])
    panel.until("document.querySelector('.tab-row .tools')?.innerText === '5 tools'")
    assert (text(panel, ".tab-row .key"), text(panel, ".tab-row h3")) == ("t1", "Contract")
    why = "its probe says no"
    show(link, tabs=[{"key": "t1", "tab": room["tab"], "state": "unavailable", "why": why, "tools": 5}])
    panel.until(f"document.querySelector('.tab-row .about').innerText.endsWith({'unavailable: ' + why!r})")


def test_the_panel_names_the_switch_that_plugins_need(link: Joined, panel: Page) -> None:
    """B2: it is off in a new browser."""
    assert "Allow User Scripts" in text(panel, "#switch")


def test_without_a_panel_a_question_is_announced_once_and_withdrawn(link: Joined) -> None:
    """A5: a badge counts, a notification tells; both go when it is answered."""
    worker = link.browser.worker(link.id)
    known = "chrome.notifications.getAll().then((all) => Object.keys(all).join())"
    badge = "chrome.action.getBadgeText({})"
    try:
        show(link, questions=[QUESTION])
        worker.until(f"{known}.then((all) => all === 'afoot.question.c2.1')")
        assert worker.evaluate(badge) == "1"
        worker.evaluate("chrome.notifications.clear('afoot.question.c2.1')")
        show(link, questions=[QUESTION, {**QUESTION, "id": "c3.1"}])
        worker.until(f"{known}.then((all) => all === 'afoot.question.c3.1')")
        assert worker.evaluate(badge) == "2"
        show(link, questions=[])
        worker.until(f"{known}.then((all) => all === '')")
        assert worker.evaluate(badge) == ""
    finally:
        worker.detach()


def test_with_a_panel_nothing_is_announced(link: Joined, panel: Page) -> None:
    """A5: whoever looks at it need not be called."""
    show(link, questions=[{**QUESTION, "id": "c9.1"}])
    panel.until("document.querySelector('.narrow-question') !== null")
    worker = link.browser.worker(link.id)
    try:
        worker.until("chrome.action.getBadgeText({}).then((text) => text === '1')")
        assert worker.evaluate("chrome.notifications.getAll()") == {}
    finally:
        worker.detach()
