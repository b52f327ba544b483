"""The console's live view in a real browser, on a real gateway: rows, trees, filters, and what moves (V1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.console_client import Console, at, attended, press, size

# The pointer stays where it is, however long the test takes.
STAY = "import('/console/lib/store.js').then(({ store }) => { store.pointerHeldUntil = Infinity; })"
TABBABLE = "[...document.querySelectorAll('.live-list, .live-list *')].filter((one) => one.tabIndex >= 0)"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests."""
    with attended(tmp_path_factory.mktemp("live"), plain_browser) as one:
        yield one


@pytest.fixture
def console(served: Console) -> Iterator[Console]:
    """The gateway with no tab and no call of another test, also none that has just ended."""
    served.browser.clear()
    yield served
    until(lambda: not cancelled(served), "the end of all calls")
    served.api.post("/api/purge", {"everything": True})


def cancelled(console: Console) -> int:
    """Cancel all calls that are live, and give their number."""
    live = console.api.get("/api/calls?state=live&limit=500").body["calls"]
    for call in live:
        console.api.post(f"/api/calls/{call['id']}/cancel", {})
    return len(live)


def text(call: str, part: str) -> str:
    """The text of a part of a call's row, as an expression."""
    return f"{at(call)}?.querySelector('{part}')?.innerText"


def is_shown(call: str, state: str) -> str:
    """Whether the row of a call shows this state by shape and word, as an expression."""
    return f"{at(call)}?.querySelector('.state-icon')?.ariaLabel === '{state}'"


def test_a_call_is_watched_from_its_first_report_to_its_end(console: Console, tmp_path: Path) -> None:
    """V1, V5: state, bar, message and both clocks; the bar moves by transform and has a text value."""
    page = console.open()
    call = console.api.start("export_half", gate=str(tmp_path / "gate"))
    page.until(f"/page [1-9]/.test({text(call, '.message')}) && {is_shown(call, 'running')}")
    shown = page.evaluate(f"{at(call)}.innerText")
    assert "export_half" in shown and "local" in shown
    bar = f"{at(call)}.querySelector('[role=progressbar]')"
    assert 0 < int(page.evaluate(f"{bar}.ariaValueNow")) < 100
    said = page.evaluate(f"{bar}.ariaValueText")
    assert " of 20, page " in said
    assert page.evaluate(f"{at(call)}.querySelector('.progress-fill').style.transform").startswith("transl")
    assert page.evaluate(f"{text(call, '.silent .figure')}.endsWith(' s')")
    assert page.evaluate(f"{at(call)}.querySelector('.ring').getAttribute('visibility')") is None
    assert page.evaluate(f"{at(call)}.querySelector('.ceiling').style.visibility") == ""
    (tmp_path / "gate").touch()
    page.until(is_shown(call, "done"))
    assert page.evaluate(text(call, ".percent")) == "100 %"
    assert page.evaluate(text(call, ".silent")) == "" and page.evaluate(text(call, ".elapsed")) != ""
    heads = page.evaluate("[...document.querySelectorAll('.live-group')].map((one) => one.innerText)")
    assert "Just ended" in heads[-1] and "kept here for 5:00" in heads[-1]
    assert page.evaluate("odd") == []


def test_a_page_that_is_opened_later_has_what_just_ended(console: Console) -> None:
    """V1: calls that ended in the last five minutes are listed, whoever watched."""
    call = console.api.start("export_pages", n=1, step_s=0)
    console.api.ended(call)
    page = console.open()
    page.until(is_shown(call, "done"))
    page.until("/^0\\.[0-9] s$/.test(document.querySelector('.overview').innerText.match(/0\\.\\d s/)?.[0])")


def test_readings_make_no_element_and_move_none(console: Console) -> None:
    """V1: reports change text and bars in place; nothing is made, removed or moved for them."""
    page = console.open()
    call = console.api.start("export_pages", n=2000, step_s=0.01)
    page.until(f"/page [1-9]/.test({text(call, '.message')})")
    page.until("performance.now() > 3000")  # the first estimate of the time left came
    counted = page.evaluate(
        f"""(async () => {{
          let made = 0, changed = 0;
          const watch = new MutationObserver((all) => all.forEach((one) =>
            one.type === "childList" ? made++ : changed++));
          watch.observe({at(call)},
            {{ childList: true, subtree: true, characterData: true, attributes: true }});
          while (changed < 60) await new Promise(requestAnimationFrame);
          watch.disconnect();
          return {{ made, changed }};
        }})()"""
    )
    assert counted["made"] == 0 and counted["changed"] >= 60


def test_each_state_has_a_word_and_a_shape(console: Console) -> None:
    """V1: nothing is told by colour alone; a call of which nobody knows how far it is has no value."""
    page = console.open()
    start = console.api.start
    calls = {
        "running": start("wait_for_index"),
        "waiting": start("delete_backups"),
        "failed": start("break_off"),
    }
    shapes = set()
    for word, call in calls.items():
        page.until(is_shown(call, word))
        shapes.add(page.evaluate(f"{at(call)}.querySelector('.state-icon svg').outerHTML"))
    assert len(shapes) == 3
    bar = f"{at(calls['running'])}.querySelector('[role=progressbar]')"
    assert page.evaluate(f"{bar}.ariaValueNow === null && {bar}.hasAttribute('data-unknown')")
    page.until(f"{text(calls['failed'], '.message')}.includes('the database went away')")
    page.until(f"{text(calls['waiting'], '.progress')}.replace(/\\s+/g, ' ') === 'Reject… Run'")
    assert page.evaluate(text(calls["waiting"], ".tag:not([hidden])")) == "destructive"
    frozen = f"{at(calls['waiting'])}.querySelector('.ring').hasAttribute('data-frozen')"
    assert page.evaluate(frozen) and page.evaluate(text(calls["waiting"], ".silent .figure")) in (
        "10:00",
        "9:59",
    )


def test_a_pending_cancel_is_undone_in_its_row(console: Console) -> None:
    """X1, V1: the row stays with its clocks, and says how long the cancel can be withdrawn."""
    page = console.open()
    call = console.api.start("wait_for_index")
    page.until(is_shown(call, "running"))
    console.api.post(f"/api/calls/{call}/cancel", {"after_s": 60})
    page.until(f"{is_shown(call, 'cancelling')} && /cancels in 0:5/.test({text(call, '.message')})")
    page.evaluate(f"{at(call)}.querySelector('.undo-cancel button').click()")
    page.until(is_shown(call, "running"))
    assert console.api.call(call)["state"] == "running"


def test_what_a_tool_says_is_only_ever_text(console: Console) -> None:
    """V1: markup is shown, never made; what cannot be seen has a mark; the layout holds."""
    page = console.open()
    size(page, 360, 640)
    call = console.api.start("speak_oddly")
    page.until(f"{text(call, '.message')}?.includes('<img src=x onerror=alert(1)>')")
    assert page.evaluate("document.querySelector('main img')") is None
    assert "⟨U+200B⟩" in page.evaluate(f"{at(call)}.innerText")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.evaluate("odd") == []


def test_a_wide_tree_is_one_row_until_it_is_opened_and_then_only_what_is_seen_exists(
    console: Console,
) -> None:
    """V1, V6, P8: 500 calls below one are one row; opened, the address knows it, and few rows are made."""
    page = console.open()
    size(page, 1000, 700)
    call = console.api.start("survey", width=500, depth=1, leaf_s=600)
    page.until("document.querySelector('.chip[data-filter=all] b')?.innerText === '501'", 60)
    page.until(f"{at(call)}?.ariaExpanded === 'false'")
    assert page.evaluate("document.querySelectorAll('.live-row').length") == 1
    page.evaluate(f"{at(call)}.querySelector('.caret').click()")
    page.until("document.querySelector('.live-list')?.ariaRowCount === '503'")
    assert call in page.evaluate("location.search")
    assert page.evaluate("document.querySelectorAll('.live-row').length") < 60
    page.evaluate("document.querySelector('.live-main').scrollTo(0, 1e6)")
    last = "[...document.querySelectorAll('.live-row')].at(-1)"
    page.until(f"{last}.ariaRowIndex === '503' && {last}.getBoundingClientRect().bottom <= innerHeight")
    assert page.evaluate("document.querySelectorAll('.live-row').length") < 60


def test_many_calls_of_one_tool_are_one_line(console: Console) -> None:
    """V6: above fifty they fold by themselves, with their number and the slowest; the chips count all."""
    page = console.open("/live?state=running")
    for _ in range(60):
        console.api.start("survey", width=0, depth=0, leaf_s=600)
    page.until(
        "/^survey\\s*60 running, slowest /.test(document.querySelector('.live-run')?.innerText.trim())"
    )
    assert page.evaluate("document.querySelector('.live-row')") is None
    page.evaluate("document.querySelector('.live-run button').click()")
    page.until("document.querySelector('.live-list')?.ariaRowCount === '63'")


def test_a_deep_tree_is_shown_whole_at_phone_width(console: Console) -> None:
    """V1, P8: ten deep, nothing is cut off sideways."""
    page = console.open()
    size(page, 360, 1600)
    call = console.api.start("survey", width=1, depth=10, leaf_s=600)
    page.until("document.querySelectorAll('.live-row').length === 11")
    assert page.evaluate(f"{at(call)}.ariaLevel") == "1"
    assert page.evaluate("[...document.querySelectorAll('.live-row')].at(-1).ariaLevel") == "11"
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_what_arrives_moves_nothing_under_the_pointer(console: Console, tmp_path: Path) -> None:
    """V1: while somebody points at the list, new calls wait and ended ones stay where they are."""
    page = console.open()
    size(page, 900, 700)
    first = console.api.start("export_half", gate=str(tmp_path / "gate"))
    tree = console.api.start("branch_out", step_s=0.1)
    page.until(f"{is_shown(first, 'running')} && {at(tree)}?.ariaExpanded === 'true'")
    order = "[...document.querySelectorAll('.live-list [data-key]')].map((one) => one.dataset.key).join()"
    place = page.evaluate(f"{at(tree)}.getBoundingClientRect().y")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=300, y=place + 18)
    page.evaluate(STAY)
    before = page.evaluate(order)
    asking = console.api.start("ask_which")
    (tmp_path / "gate").touch()
    page.until(is_shown(first, "done"))
    page.until("document.querySelector('.chip[data-filter=waiting] b')?.innerText === '1'")
    until(lambda: console.api.call(tree)["children"]["total"] == 20, "all calls of the tree")
    assert page.evaluate(order) == before
    assert page.evaluate(f"{at(tree)}.getBoundingClientRect().y") == place
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=300, y=1)
    page.until(f"!!{at(asking)} && {order} !== '{before}'")
    assert page.evaluate(order).startswith(f"group waiting,{asking},group running,")
    assert first not in page.evaluate(order).split("group ended")[0]


def test_filters_and_grouping_are_in_the_address(console: Console) -> None:
    """V1: every filter is an address, with a count that lives; one without a match can be cleared."""
    page = console.open("/live?state=waiting")
    asking = console.api.start("ask_which")
    running = console.api.start("wait_for_index")
    page.until(f"!!{at(asking)}")
    page.until("document.querySelector('.chip[data-filter=running] b')?.innerText === '1'")
    assert not page.evaluate(f"!!{at(running)}")
    page.evaluate("document.querySelector('.chip[data-filter=running]').click()")
    page.until(f"!!{at(running)} && !{at(asking)}")
    assert page.evaluate("location.search") == "?state=running"
    page.go(-1)
    page.until(f"!!{at(asking)} && !{at(running)}")
    page.navigate(f"{console.api.url}/live?q=wait_for&group=caller")
    page.until(f"!!{at(running)} && !{at(asking)}")
    assert "operator" in page.evaluate("document.querySelector('.live-group').innerText")
    page.navigate(f"{console.api.url}/live?q=nothing+like+it")
    page.until("document.querySelector('.live-main .empty')?.innerText.includes('nothing like it')")
    page.evaluate("document.querySelector('.live-main .empty a').click()")
    page.until(f"!!{at(running)} && location.search === ''")


def test_the_list_has_one_tab_stop_and_arrow_keys_go_through_it(console: Console) -> None:
    """V1: from row to row, into the buttons of a row, and to rows that did not exist yet."""
    page = console.open()
    size(page, 1000, 700)
    asking = console.api.start("delete_backups")
    tree = console.api.start("survey", width=45, depth=1, leaf_s=600)
    page.until("document.querySelector('.live-list')?.ariaRowCount === '50'")
    page.until(f"{text(asking, '.progress')}.includes('Run')")
    assert page.evaluate(f"{TABBABLE}.map((one) => one.className)") == ["live-group"]
    page.evaluate("document.querySelector('.live-group').focus()")
    press(page, "ArrowDown")
    assert page.evaluate("document.activeElement.dataset.call") == asking
    press(page, "ArrowRight")
    press(page, "ArrowRight")
    assert page.evaluate("document.activeElement.innerText") == "Reject…"
    press(page, "ArrowDown")
    press(page, "ArrowDown")
    assert page.evaluate("document.activeElement.dataset.call") == tree
    press(page, "End")
    page.until("document.activeElement.ariaRowIndex === '50'")
    assert page.evaluate("document.activeElement.getBoundingClientRect().bottom <= innerHeight")
    press(page, "ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.call") == tree
    press(page, "ArrowLeft")
    page.until(f"{at(tree)}.ariaExpanded === 'false' && document.activeElement === {at(tree)}")
    assert page.evaluate(f"{TABBABLE}.length") == 1
    press(page, "k")
    assert page.evaluate("document.activeElement.dataset.call") == asking, "past the head between them"
    press(page, "j")
    assert page.evaluate("document.activeElement.dataset.call") == tree


def test_the_chosen_call_stands_beside_the_list_on_a_wide_window(console: Console) -> None:
    """V1: from 1440 px a click chooses a call and the address knows it; below that it opens its page."""
    page = console.open()
    size(page, 1440, 900)
    first = console.api.start("wait_for_index")
    second = console.api.start("wait_for_index")
    page.until(f"{at(first)}?.ariaSelected === 'true' && !!document.querySelector('.call-pane')")
    page.until(f"!!{at(second)}")
    page.evaluate(f"{at(second)}.querySelector('a').click()")
    page.until(f"{at(second)}.ariaSelected === 'true' && {at(first)}.ariaSelected === 'false'")
    assert page.evaluate("location.pathname + location.search") == f"/live?call={second}"
    size(page, 1200, 900)
    page.until("document.querySelector('.call-pane') === null")
    page.evaluate(f"{at(first)}.querySelector('a').click()")
    page.until(f"location.pathname === '/calls/{first}'")


def test_it_fits_a_phone_four_hundred_percent_and_reduced_motion(console: Console) -> None:
    """V1: no sideways scrolling at 320 px; targets of 24 px; nothing moves for who does not want it."""
    page = console.open()
    size(page, 320, 256)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    call = console.api.start("wait_for_index")
    asking = console.api.start("delete_backups")
    page.evaluate("scrollTo(0, 200)")
    page.until(f"{at(call)}?.querySelector('.progress-bar').hasAttribute('data-unknown') && !!{at(asking)}")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.evaluate(f"{at(call)}.getBoundingClientRect().height") == 56
    small = page.evaluate(
        """[...document.querySelectorAll("a:not(.skip, .name), button")]
        .filter((one) => one.checkVisibility())
        .map((one) => [one.innerText, one.getBoundingClientRect()])
        .filter(([, { width, height }]) => width < 24 || height < 24).map(([text]) => text)"""
    )
    assert small == []
    fill = f"getComputedStyle({at(call)}.querySelector('.progress-fill')).animationName"
    assert page.evaluate(fill) == "none"
