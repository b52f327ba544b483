"""The console's history in a real browser, on a real gateway: time, lanes, rows, trees, export (V1)."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.console_client import Console, attended, press, size
from tests.browser.page import Page
from tests.e2e.gateway import until

ROWS = "[...document.querySelectorAll('.call-row-ended')]"
IDS = f"{ROWS}.map((row) => row.dataset.call)"
EMPTY = "document.querySelector('.empty:not([hidden])')"
TOTAL = "document.querySelector('.count-bar b')?.innerText"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests, with some history, and a tree in it."""
    with attended(tmp_path_factory.mktemp("history"), plain_browser) as one:
        one.api.ended(one.api.start("survey", width=2, depth=2, leaf_s=0.05))
        for number in range(120):
            one.api.start("export_pages", n=1, step_s=0.002 * (number % 7))
        for call in (one.api.start("break_off"), one.api.start("speak_oddly", sleep_s=0.01)):
            one.api.ended(call)
        yield one


@pytest.fixture
def console(served: Console) -> Iterator[Console]:
    """The gateway with no tab and no live call of another test."""
    served.browser.clear()
    until(lambda: not _live(served), "the end of the calls before")
    yield served
    for call in _live(served):
        served.api.post(f"/api/calls/{call['id']}/cancel", {})


def _live(console: Console) -> list[Any]:
    calls: list[Any] = console.api.get("/api/calls?state=live&limit=500").body["calls"]
    return calls


def roots(console: Console) -> list[str]:
    """The ended calls that no other call made, newest first."""
    page = console.api.get("/api/calls?state=finished&roots=true&limit=500").body
    return [one["id"] for one in page["calls"]]


def drag(page: Page, start: float, end: float) -> None:
    """Drag over the drawing, from one part of its width to another."""
    box = page.evaluate("document.querySelector('.lane-plot').getBoundingClientRect().toJSON()")
    places = [box["x"] + box["width"] * part for part in (start, (start + end) / 2, end)]
    steps = zip(("mousePressed", "mouseMoved", "mouseReleased"), places, strict=True)
    for kind, x in steps:
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=box["y"] + 4, button="left", clickCount=1)


def test_history_is_read_on_as_it_is_scrolled_and_stays_where_it_was(console: Console) -> None:
    """V1: pages join without a gap; a row is wholly a link, and the way back leads to the same place."""
    known = roots(console)
    page = console.open("/history")
    size(page, 1280, 800)
    page.until(f"{ROWS}.length === 100")
    total = console.api.get("/api/calls?state=finished&count=true&limit=1").body["total"]
    assert page.evaluate(TOTAL) == f"{total} calls"
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.until(f"{ROWS}.length === {len(known)}")
    assert page.evaluate(IDS) == known
    page.evaluate("scrollTo(0, 2000)")
    page.until("scrollY === 2000")
    box = page.evaluate(f"(({{ right, top }}) => [right - 300, top + 8])({ROWS}[60].getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
    page.until(f"location.pathname === '/calls/{known[60]}'")
    page.evaluate("performance.clearResourceTimings()")
    page.evaluate("history.back()")
    page.until(f"location.pathname === '/history' && scrollY === 2000 && {ROWS}.length === {len(known)}")
    fetched = (
        "performance.getEntriesByType('resource').filter(({ name }) => name.includes('roots=true')).length"
    )
    assert page.evaluate(fetched) == 0, "the list was kept"
    assert page.evaluate("odd") == []


def test_history_is_searched_filtered_and_sorted_and_the_address_says_how(console: Console) -> None:
    """V1: the gateway searches; chips count all calls; nothing found says what to do."""
    page = console.open("/history")
    page.until(f"{ROWS}.length === 100")
    page.evaluate("document.querySelector('input[type=search]').focus()")
    page.call("Input.insertText", text="went away")
    page.until(f"location.search === '?q=went+away' && {ROWS}.length === 1")
    assert "the database went away" in page.evaluate(f"{ROWS}[0].innerText")
    page.evaluate("document.querySelectorAll('.toolbar .chip')[1].click()")
    page.until(f"{EMPTY}?.innerText.includes('fits Text “went away”, only asked')")
    page.evaluate("document.querySelector('.empty a').click()")
    page.until(f"{ROWS}.length === 100 && location.search === ''")
    chips = page.evaluate("[...document.querySelectorAll('.toolbar .chip b')].map((one) => one.innerText)")
    assert chips[:2] == ["1", "0"]
    page.until("!!document.querySelector('select[aria-label=Tool] option[value=speak_oddly]')")
    page.evaluate(
        "(() => { const list = document.querySelector('select[aria-label=Tool]'); list.value = 'speak_oddly';"
        " list.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )
    page.until(f"location.search === '?tool=speak_oddly' && {ROWS}.length === 1")
    assert "<img src=x onerror" in page.evaluate(f"{ROWS}[0].innerText")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    page.evaluate("document.querySelectorAll('.segments a')[2].click()")
    page.until("location.search === '?tool=speak_oddly&range=24h'")
    page.evaluate("[...document.querySelectorAll('[role=columnheader] a')].at(-1).click()")
    page.until("new URLSearchParams(location.search).get('sort') === '-duration'")
    page.reload()
    page.until(f"{ROWS}.length === 1")
    assert page.evaluate("document.querySelector('[aria-sort=descending]').innerText") == "Duration"
    assert page.evaluate("odd") == []


def test_a_time_is_selected_in_the_drawing_and_exported(console: Console) -> None:
    """V1, H6: dragging filters the list and nothing else; the export has what is listed."""
    page = console.open("/history?range=15m")
    page.until(f"{ROWS}.length === 100 && performance.getEntriesByName('lanes drawn').length > 0")
    lanes = page.evaluate("document.querySelector('.lane-names').innerText")
    drag(page, 0.05, 0.5)
    page.until("new URLSearchParams(location.search).has('from')")
    page.until(f"{EMPTY}?.innerText.includes('selected time')")
    assert page.evaluate("document.querySelector('.lane-names').innerText") == lanes
    drag(page, 0.5, 1.0)
    page.until(f"{ROWS}.length === 100")
    page.evaluate("document.querySelector('.lane-field').focus()")
    press(page, "Escape")
    page.until("!new URLSearchParams(location.search).has('from')")
    page.evaluate("document.querySelector('.toolbar .chip').click()")
    page.until(f"location.search.includes('show=failed') && {ROWS}.length === 1")
    page.evaluate(
        "globalThis.saved = null; URL.createObjectURL = (blob) => (globalThis.saved = blob, 'blob:none')"
    )
    page.evaluate(
        "[...document.querySelectorAll('button')].find((one) => one.innerText === 'Export 1 call').click()"
    )
    text = page.until("globalThis.saved?.text()")
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["fact"]["tool"] for line in lines if line.get("seq") == 1} == {"break_off"}
    assert page.evaluate("odd") == []


def test_trees_are_unfolded_and_walked_by_keyboard(console: Console) -> None:
    """V1: arrows go from row to row, unfold and fold; Enter opens the call."""
    page = console.open("/history?sort=opened")
    page.until(f"{ROWS}.length === 100")
    survey = page.evaluate(IDS)[0]
    assert "survey" in page.evaluate(f"{ROWS}[0].innerText")
    assert page.evaluate(f"{ROWS}.map((row) => row.ariaExpanded).slice(0, 2)") == ["false", None]
    page.evaluate(f"{ROWS}[0].querySelector('a').focus()")
    press(page, "ArrowRight")
    page.until(f"{ROWS}.length === 102")
    assert page.evaluate(f"{ROWS}.slice(0, 4).map((row) => row.ariaLevel)") == ["1", "2", "2", "1"]
    press(page, "ArrowDown")
    press(page, "ArrowRight")
    page.until(f"{ROWS}.length === 104")
    press(page, "ArrowLeft")
    page.until(f"{ROWS}.length === 102")
    press(page, "ArrowLeft")
    assert page.evaluate("document.activeElement.pathname") == f"/calls/{survey}"
    press(page, "ArrowLeft")
    page.until(f"{ROWS}.length === 100")
    press(page, "Enter")
    page.until(f"location.pathname === '/calls/{survey}'")
    assert page.evaluate("odd") == []


def test_a_search_shows_its_calls_below_those_that_made_them(console: Console) -> None:
    """V1: calls above that do not match are there in grey; the tree can be folded, and matches count."""
    console.api.ended(console.api.start("survey", width=2, depth=2, leaf_s=0.0123))
    page = console.open("/history?q=" + quote('"depth":0,"leaf_s":0.0123'))
    page.until(f"{ROWS}.length === 7")
    told = f"{ROWS}.map((row) => [row.ariaLevel, row.hasAttribute('data-context'), row.ariaExpanded])"
    branch = [["2", True, "true"], ["3", False, None], ["3", False, None]]
    assert page.evaluate(told) == [["1", True, "true"], *branch, *branch]
    assert page.evaluate(TOTAL) == "4 calls"
    shade = f"{ROWS}.slice(1, 3).map((row) => getComputedStyle(row.querySelector('a.row-link')).color)"
    grey, ink = page.evaluate(shade)
    assert grey != ink
    assert "does not match the filter" in page.evaluate(f"{ROWS}[0].querySelector('.row-tool').innerText")
    page.evaluate(f"{ROWS}[1].querySelector('a').focus()")
    press(page, "ArrowLeft")
    page.until(f"{ROWS}.length === 5")
    press(page, "ArrowRight")
    page.until(f"{ROWS}.length === 7")
    page.evaluate("document.querySelector('input[type=search]').select()")
    page.call("Input.insertText", text='"leaf_s":0.0123')
    page.until(f"{ROWS}.length === 7 && {ROWS}.every((row) => !row.hasAttribute('data-context'))")
    assert page.evaluate("odd") == []


def test_calls_that_ended_since_wait_behind_a_button(console: Console) -> None:
    """V1: nothing moves before somebody wants to see them; only calls that fit are counted."""
    before = console.api.get("/api/calls?state=finished&tool=survey&count=true").body["total"]
    page = console.open("/history?tool=survey")
    page.until(f"{ROWS}.length === {before}")
    console.api.ended(console.api.start("export_pages", n=1, step_s=0))
    console.api.ended(console.api.start("survey", width=2, depth=1, leaf_s=0.01))
    page.until("document.querySelector('.newer')?.innerText === '3 newer calls: show'")
    assert page.evaluate(f"{ROWS}.length") == before
    page.evaluate("document.querySelector('.newer').click()")
    page.until(f"{ROWS}.length === {before + 3} && document.querySelector('.newer').hidden")


def test_a_call_that_runs_is_drawn_but_not_listed(console: Console) -> None:
    """V1: up to now, in the lane of its tool, also where no call has ended."""
    console.api.start("wait_for_index")
    page = console.open("/history?tool=wait_for_index&range=15m")
    lane = "document.querySelector('.lane-names li')?.innerText.startsWith('wait_for_index')"
    page.until(f"{lane} && performance.getEntriesByName('lanes drawn').length > 0")
    page.until(
        f"{EMPTY}?.innerText.includes('No call') || {ROWS}.every((row) => row.dataset.state === 'cancelled')"
    )
    assert page.evaluate("odd") == []
