"""The console's live view in a real browser, on a real gateway: bubbles, trees, and what moves (V1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.console_client import Console, at, attended, press, size


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests."""
    with attended(tmp_path_factory.mktemp("live"), plain_browser) as one:
        yield one


@pytest.fixture
def console(served: Console) -> Iterator[Console]:
    """The gateway with no tab and no call of another test."""
    served.browser.clear()
    yield served
    for call in served.api.get("/api/calls?state=live&limit=500").body["calls"]:
        served.api.post(f"/api/calls/{call['id']}/cancel", {})


def test_a_call_is_watched_from_its_first_report_to_its_end(console: Console, tmp_path: Path) -> None:
    """V1: state, bar, message, numbers, caller, approval; the bar moves by transform and has a text value."""
    page = console.open()
    call = console.api.start("export_half", gate=str(tmp_path / "gate"))
    page.until(f"{at(call)}?.innerText.includes('running')")
    page.until(f"/page [1-9]/.test({at(call)}.querySelector('.message').innerText)")
    shown = page.evaluate(f"{at(call)}.innerText")
    assert "export_half" in shown and "for operator" in shown and "needs no approval" in shown
    assert 0 < page.evaluate(f"{at(call)}.querySelector('progress').position") < 1
    text = page.evaluate(f"{at(call)}.querySelector('progress').getAttribute('aria-valuetext')")
    assert " of 20, page " in text
    fill = page.evaluate(f"{at(call)}.querySelector('.fill').style.transform")
    assert fill.startswith("translateX(-")
    (tmp_path / "gate").touch()
    page.until(f"{at(call)}?.innerText.includes('done')")
    assert page.evaluate(f"{at(call)}.querySelector('.fill').style.transform") == "translateX(0%)"
    assert page.evaluate(f"{at(call)}.querySelector('button').hidden")
    assert page.evaluate("odd") == []


def test_readings_make_no_element_and_move_none(console: Console) -> None:
    """V1: reports change text and bars in place; nothing is made, removed or moved for them."""
    page = console.open()
    call = console.api.start("export_pages", n=2000, step_s=0.01)
    page.until(f"/page [1-9]/.test({at(call)}?.querySelector('.message').innerText)")
    counted = page.evaluate(
        """(async () => {
          let made = 0, changed = 0;
          const watch = new MutationObserver((all) => all.forEach((one) =>
            one.type === "childList" ? made++ : changed++));
          watch.observe(document.querySelector(".call-cards"),
            { childList: true, subtree: true, characterData: true, attributes: true });
          while (changed < 60) await new Promise(requestAnimationFrame);
          watch.disconnect();
          return { made, changed };
        })()"""
    )
    assert counted["made"] == 0 and counted["changed"] >= 60


def test_each_state_has_a_word_and_a_shape(console: Console) -> None:
    """V1: nothing is told by colour alone; a call of which nobody knows how far it is has no value."""
    page = console.open()
    start = console.api.start
    calls = {
        "running": start("wait_for_index"),
        "waits for you": start("delete_backups"),
        "failed": start("break_off"),
    }
    shapes = set()
    for word, call in calls.items():
        page.until(f"{at(call)}?.querySelector('.mark').innerText.trim() === {word!r}")
        shapes.add(page.evaluate(f"{at(call)}.querySelector('.mark path').getAttribute('d')"))
    assert len(shapes) == 3
    bar = f"{at(calls['running'])}.querySelector('progress')"
    assert page.evaluate(f"!{bar}.hasAttribute('value') && {bar}.position === -1")
    assert page.evaluate(f"{at(calls['running'])}.querySelector('.bar').hasAttribute('data-pulse')")
    page.until(f"{at(calls['failed'])}.innerText.includes('the database went away')")


def test_a_call_is_cancelled_by_keyboard_from_its_bubble(console: Console) -> None:
    """X1, V1: the button in the bubble stops the call."""
    page = console.open()
    call = console.api.start("wait_for_index")
    page.until(f"{at(call)}?.innerText.includes('running')")
    page.evaluate(f"{at(call)}.querySelector('button').focus()")
    press(page, "Enter", 13)
    page.until(f"{at(call)}.innerText.includes('cancelled')")
    assert console.api.ended(call)["outcome"] == "cancelled"


def test_what_a_tool_says_is_only_ever_text(console: Console) -> None:
    """V1: markup is shown, never made; what cannot be seen has a mark; the layout holds."""
    page = console.open()
    size(page, 360, 640)
    call = console.api.start("speak_oddly")
    page.until(f"{at(call)}?.innerText.includes('<img src=x onerror=alert(1)>')")
    assert page.evaluate("document.querySelector('main img')") is None
    assert "⟨U+200B⟩" in page.evaluate(f"{at(call)}.innerText")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.evaluate("odd") == []


def test_a_wide_tree_is_one_line_until_it_is_opened(console: Console) -> None:
    """V1, P8: 500 calls below one are a count; opened, they come by fifties, and the address knows it."""
    page = console.open()
    call = console.api.start("survey", width=500, depth=1, leaf_s=600)
    page.until(f"{at(call)}?.querySelector('.fold')?.innerText.startsWith('500 below')", 60)
    assert page.evaluate("document.querySelectorAll('.call-card').length") == 1
    page.evaluate(f"{at(call)}.querySelector('.fold').click()")
    page.until("document.querySelectorAll('.below .call-card').length === 50")
    assert call in page.evaluate("location.search")
    page.evaluate("document.querySelector('.below > button').click()")
    page.until("document.querySelectorAll('.below .call-card').length === 100")
    page.evaluate(f"{at(call)}.querySelector('.fold').click()")
    page.until("document.querySelectorAll('.call-card').length === 1")


def test_a_deep_tree_is_opened_step_by_step(console: Console) -> None:
    """V1, P8: ten deep, at phone width, nothing is cut off sideways."""
    page = console.open()
    size(page, 360, 800)
    call = console.api.start("survey", width=1, depth=10, leaf_s=600)
    page.until(f"!!{at(call)}?.querySelector('.fold')")
    for deep in range(1, 11):
        page.until(f"document.querySelectorAll('.fold').length >= {deep}")
        page.evaluate(f"document.querySelectorAll('.fold')[{deep - 1}].click()")
    page.until("document.querySelectorAll('.call-card').length === 11")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_tree_that_grew_before_we_came_is_found_whole(console: Console) -> None:
    """V1, P8: a snapshot says which call is below which."""
    call = console.api.start("survey", width=3, depth=1, leaf_s=600)
    until(lambda: len(console.api.get("/api/calls?state=running").body["calls"]) == 4, "the calls below it")
    page = console.open(f"/live?open={call}")
    page.until("document.querySelectorAll('.below .call-card').length === 3")
    assert page.evaluate("document.querySelectorAll('.call-cards > .call-card').length") == 1


def test_what_arrives_moves_nothing_under_the_pointer(console: Console) -> None:
    """V1: new calls come last, and ended ones stay as long as somebody points there."""
    page = console.open()
    size(page, 900, 700)
    first = console.api.start("export_pages", n=3, step_s=0.01)
    second = console.api.start("wait_for_index")
    page.until(f"!!{at(second)} && {at(first)}.innerText.includes('done')")
    place = page.evaluate(f"(({{ x, y }}) => ({{ x, y }}))({at(second)}.getBoundingClientRect())")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=place["x"] + 40, y=place["y"] + 20)
    more = [console.api.start("export_pages", n=3, step_s=0.01) for _ in range(6)]
    page.until(f"{at(more[-1])}?.innerText.includes('done')")
    after = page.evaluate(f"(({{ x, y }}) => ({{ x, y }}))({at(second)}.getBoundingClientRect())")
    assert after == place
    held = "import('/console/lib/store.js').then(({ store }) => store.pointerHeldUntil > Date.now() / 1000)"
    assert page.evaluate(held)


def test_what_arrives_in_an_open_tree_moves_nothing_under_the_pointer(console: Console) -> None:
    """V1: calls below another wait, counted, until nobody points at what they would move."""
    page = console.open()
    size(page, 900, 700)
    tree = console.api.start("branch_out", step_s=0.3)
    last = console.api.start("wait_for_index")
    page.until(f"!!{at(last)} && {at(tree)}.querySelector('.fold').checkVisibility()")
    page.evaluate(f"{at(tree)}.querySelector('.fold').click()")
    page.until("document.querySelector('.below .call-card') !== null")
    place = page.evaluate(f"({at(last)}.scrollIntoView(), {at(last)}.getBoundingClientRect().y)")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=100, y=place + 20)
    known = page.evaluate("document.querySelectorAll('.below .call-card').length")
    page.until(f"parseInt({at(tree)}.querySelector('.fold').innerText) > {known + 2}")
    assert page.evaluate("document.querySelectorAll('.below .call-card').length") == known
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=100, y=1)
    page.until(f"document.querySelectorAll('.below .call-card').length > {known + 2}")


def test_a_state_is_chosen_by_the_address(console: Console) -> None:
    """V1: every filter is an address, with a count that lives."""
    page = console.open("/live?state=waiting")
    asking = console.api.start("ask_which")
    running = console.api.start("wait_for_index")
    page.until(f"!!{at(asking)}")
    page.until("document.querySelector('.chip[data-kind=running] b')?.innerText === '1'")
    assert not page.evaluate(f"!!{at(running)}")
    page.evaluate("document.querySelector('.chip[data-kind=running]').click()")
    page.until(f"!!{at(running)}")
    assert page.evaluate("location.search") == "?state=running"
    page.go(-1)
    page.until(f"!!{at(asking)}")


def test_it_fits_a_phone_four_hundred_percent_and_reduced_motion(console: Console) -> None:
    """V1: no sideways scrolling at 320 px; targets of 24 px; nothing moves for who does not want it."""
    page = console.open()
    size(page, 320, 256)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    call = console.api.start("wait_for_index")
    page.until(f"{at(call)}?.querySelector('.bar').hasAttribute('data-pulse')")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    small = page.evaluate(
        """[...document.querySelectorAll("a:not(.skip), button")].filter((one) => one.checkVisibility())
        .map((one) => [one.innerText, one.getBoundingClientRect()])
        .filter(([, { width, height }]) => width < 24 || height < 24).map(([text]) => text)"""
    )
    assert small == []
    assert page.evaluate(f"getComputedStyle({at(call)}.querySelector('.fill')).animationName") == "none"
