"""The console's history, tools, servers and tabs in a real browser, on a real gateway (V1)."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chain import attaching
from tests.browser.chromium import Chromium
from tests.browser.console.console_client import Console, attended
from tests.browser.page import Page
from tests.browser.site import Site
from tests.e2e.gateway import until

TINY = Path(__file__).parents[2] / "cli" / "small_server.py"
ROWS = "[...document.querySelectorAll('.calls tbody tr')]"
IDS = f"{ROWS}.map((row) => row.querySelector('a').pathname.slice(7))"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests, with some history."""
    with attended(tmp_path_factory.mktemp("views"), plain_browser) as one:
        for number in range(120):
            one.api.start("export_pages", n=1, step_s=0.002 * (number % 7))
        for call in (one.api.start("break_off"), one.api.start("speak_oddly", sleep_s=0.01)):
            one.api.ended(call)
        yield one


@pytest.fixture
def console(served: Console) -> Iterator[Console]:
    """The gateway with no tab and no live call of another test."""
    served.browser.clear()
    until(lambda: not _live(served), "the end of the calls before")  # a cancelled call lives on for a moment
    yield served
    for call in _live(served):
        served.api.post(f"/api/calls/{call['id']}/cancel", {})


def _live(console: Console) -> list[Any]:
    calls: list[Any] = console.api.get("/api/calls?state=live&limit=500").body["calls"]
    return calls


def visit(console: Console, path: str) -> Page:
    """A view in a console that is connected already: it is fetched once, so what is shown will not move.

    A page that is opened at this address fetches it twice, the second time after the snapshot.
    """
    page = console.open("/tabs")
    page.evaluate(f"import('/console/lib/router.js').then((router) => router.navigate({json.dumps(path)}))")
    return page


def write(page: Page, field: str, text: str) -> None:
    """Write into a field as a person does."""
    page.evaluate(f"document.querySelector({json.dumps(field)}).select()")
    page.call("Input.insertText", text=text)


def press(page: Page, key: str) -> None:
    """Press and leave a key."""
    for kind in ("keyDown", "keyUp"):
        text = {"text": "\r"} if (kind, key) == ("keyDown", "Enter") else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=key, **text)


def choose(page: Page, label: str, value: str) -> None:
    """Choose from a list."""
    page.evaluate(
        f"""(() => {{
          const list = document.querySelector('select[aria-label="{label}"]');
          list.value = {json.dumps(value)};
          list.dispatchEvent(new Event('change', {{ bubbles: true }}));
        }})()"""
    )


def test_history_is_read_a_page_at_a_time(console: Console) -> None:
    """V1: a hundred calls, then those before them: none twice, none left out; the page is in the address."""
    known = [one["id"] for one in console.api.get("/api/calls?limit=500").body["calls"]]
    page = console.open("/history")
    page.until(f"{ROWS}.length >= 100")
    first = page.evaluate(IDS)
    page.evaluate(
        "[...document.querySelectorAll('.button')].find((one) => one.innerText === 'Older').click()"
    )
    page.until(
        f"location.search.startsWith('?before=') && ![undefined, {json.dumps(first[0])}].includes({IDS}[0])"
    )
    second = page.evaluate(IDS)
    assert first + second == known
    assert page.evaluate("document.activeElement.id") == "heading"
    page.reload()
    page.until(f"JSON.stringify({IDS}) === {json.dumps(json.dumps(second, separators=(',', ':')))}")
    page.evaluate(
        "[...document.querySelectorAll('.button')].find((one) => one.innerText === 'Newest').click()"
    )
    page.until(f"{IDS}[0] === {json.dumps(first[0])} && location.search === ''")
    assert page.evaluate("odd") == []


def test_history_is_searched_and_filtered_and_the_address_says_how(console: Console) -> None:
    """V1: the gateway searches; a filter survives a reload; nothing found says what to do."""
    page = console.open("/history")
    page.until(f"{ROWS}.length >= 100")
    write(page, "input[type=search]", "went away")
    page.until(f"location.search === '?q=went+away' && {ROWS}.length === 1")
    assert "break_off" in page.evaluate(f"{ROWS}[0].innerText")
    assert page.evaluate("document.activeElement.type") == "search"
    choose(page, "How it ended", "ok")
    page.until("location.search === '?q=went+away&outcome=ok'")
    page.until("document.querySelector('.empty').innerText.includes('No call fits')")
    page.reload()
    page.until("document.querySelector('.empty')?.innerText.includes('No call fits')")
    assert page.evaluate("document.querySelector('input[type=search]').value") == "went away"
    page.evaluate("document.querySelector('.empty a').click()")
    page.until(f"{ROWS}.length >= 100 && location.search === ''")
    page.until("document.querySelector('select option[value=speak_oddly]') !== null")
    choose(page, "Tool", "speak_oddly")
    page.until(f"location.search === '?tool=speak_oddly' && {ROWS}.length === 1")
    assert "<img src=x onerror" in page.evaluate(f"{ROWS}[0].innerText")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert page.evaluate("odd") == []


def test_a_call_that_lives_moves_on_in_the_history(console: Console, tmp_path: Path) -> None:
    """V1: its newest values, then its end, in the line it has; what came later waits behind a button."""
    call = console.api.start("export_half", gate=str(tmp_path / "gate"))
    page = visit(console, "/history?state=live")
    row = f"{ROWS}.find((row) => row.innerHTML.includes('{call}'))"
    page.until(f"/[1-9]\\d* of 20, page/.test({row}?.innerText)")
    later = console.api.start("wait_for_index")
    page.until("document.querySelector('.newer')?.innerText === '1 newer call: show'")
    assert page.evaluate(f"{ROWS}.length") == 1
    (tmp_path / "gate").touch()
    page.until(f"{row}.dataset.kind === 'ok' && {row}.innerText.includes('done')")
    page.evaluate("document.querySelector('.newer').click()")
    page.until(f"JSON.stringify({IDS}) === '[\"{later}\"]'")


def test_calls_that_came_since_are_counted_by_tool_and_server_too(console: Console) -> None:
    """V1: those that fit, also below others; nothing moves before somebody wants to see them."""
    server = console.api.get("/api/tools/survey").body["server"]
    page = visit(console, f"/history?tool=survey&server={server}")
    # The tools are fetched after the calls.
    page.until("document.querySelector('select option[value=export_pages]') !== null")
    before = page.evaluate(f"{ROWS}.length")
    console.api.start("wait_for_index")
    console.api.start("survey", width=2, depth=1)
    page.until("document.querySelector('.newer')?.innerText === '3 newer calls: show'")
    assert page.evaluate(f"{ROWS}.length") == before
    page.evaluate("document.querySelector('.newer').click()")
    page.until(f"{ROWS}.length === {before + 3} && document.querySelector('.newer').hidden")
    assert all("survey" in one for one in page.evaluate(f"{ROWS}.map((row) => row.innerText)"))


def test_the_history_is_walked_by_keyboard(console: Console) -> None:
    """V1: arrows go from line to line, Enter opens the call."""
    page = console.open("/history")
    page.until(f"{ROWS}.length >= 100")
    page.evaluate(f"{ROWS}[0].querySelector('a').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        press(page, key)
    second = page.evaluate(IDS)[1]
    assert page.evaluate("document.activeElement.pathname") == f"/calls/{second}"
    press(page, "Enter")
    page.until(f"location.pathname === '/calls/{second}'")


def test_a_tool_is_run_from_a_form_of_its_schema(console: Console) -> None:
    """V1: what does not fit is said at its field and starts nothing; what fits is a call, and is shown."""
    page = console.open("/tools")
    page.until("document.querySelector('a[href=\"/tools/export_pages\"]') !== null")
    page.evaluate("document.querySelector('a[href=\"/tools/export_pages\"]').click()")
    page.until("document.querySelectorAll('form input').length >= 3")
    before = len(console.api.get("/api/calls?tool=export_pages&limit=500").body["calls"])
    fill = "form .field input"
    write(page, fill, "many")
    page.evaluate("document.querySelector('form button.main').click()")
    page.until("document.querySelector('form [aria-invalid=true]') !== null")
    assert len(console.api.get("/api/calls?tool=export_pages&limit=500").body["calls"]) == before
    write(page, fill, "2")
    page.evaluate("document.querySelector('form button.main').click()")
    call = page.until("location.pathname.startsWith('/calls/') && location.pathname.slice(7)")
    assert console.api.ended(call)["arguments"] == {"n": 2, "first": 0, "step_s": 0.05}
    assert page.evaluate("odd") == []


def test_a_tool_tells_how_long_it_takes_and_what_a_model_sees(console: Console) -> None:
    """V1, P9: p50 and p95 with a plot that says itself in words; a draft stays while runs are counted."""
    page = console.open("/tools/export_pages")
    page.until("document.querySelector('.figures')?.innerText.includes('p95')")
    label = page.evaluate("document.querySelector('.chart svg').getAttribute('aria-label')")
    assert label.startswith("How long the runs took: ") and " took " in label
    page.evaluate("document.querySelector('main summary').click()")
    page.until("document.querySelector('main details').innerText.includes('inputSchema')")
    write(page, "form .field input", "77")
    last = f"{IDS}[0]"
    call = console.api.start("export_pages", n=1, step_s=0.01)
    page.until(f"{last} === '{call}'")
    assert page.evaluate("document.querySelector('form .field input').value") == "77"
    assert page.evaluate("document.activeElement.value") == "77"


def test_callers_are_shown_with_what_they_have_running(console: Console) -> None:
    """G2, V1: below the servers, as long as they have calls."""
    call = console.api.start("wait_for_index")
    page = console.open("/servers")
    line = (
        "[...document.querySelectorAll('.status-item')].find((one) => one.innerText.startsWith('operator'))"
    )
    assert "1 call" in page.until(f"{line}?.innerText")
    assert console.api.post(f"/api/calls/{call}/cancel", {}).status == 202
    page.until(f"!{line}")


def test_servers_show_how_they_are_and_are_reloaded(console: Console) -> None:
    """V1, U1: state, error, era and logs; a reload is a new connection."""
    good = {"name": "a/b c", "command": sys.executable, "args": [str(TINY), "x", "tiny_tool"]}
    assert console.api.post("/api/servers", good).status == 201
    console.api.post("/api/servers", {"name": "broken", "command": "/nowhere/at-all"})
    page = console.open("/servers")
    card = "[...document.querySelectorAll('.status-item')].find((one) => one.innerText.includes('a/b c'))"
    told = page.until(f"{card}?.innerText.includes('ready') && {card}.innerText")
    assert "1 tool" in told and "speaks 20" in told
    bad = "[...document.querySelectorAll('.status-item')].find((one) => one.innerText.includes('broken'))"
    assert "was not found" in page.until(f"{bad}.innerText.includes('failed') && {bad}.innerText")
    page.evaluate(f"{card}.querySelectorAll('button')[0].click()")
    page.until(f"{card}.querySelector('pre')?.innerText.includes('tiny offers tiny_tool')")
    assert page.evaluate("new URLSearchParams(location.search).get('logs')") == "a/b c"
    pid = console.api.get("/api/servers/a%2Fb%20c").body["pid"]
    page.evaluate(f"{card}.querySelectorAll('button')[1].click()")
    until(lambda: console.api.get("/api/servers/a%2Fb%20c").body["pid"] not in (pid, None), "a new process")
    again = console.api.get("/api/servers/a%2Fb%20c").body["pid"]
    page.until(f"{card}.innerText.includes('pid {again}')")
    assert page.evaluate("odd") == []


def test_without_a_browser_the_tabs_say_what_to_do(console: Console) -> None:
    """V1: an empty view is a hint."""
    page = console.open("/tabs")
    page.until("document.querySelector('.empty')?.innerText.includes('afoot browser')")


def test_tabs_are_shown_with_why_they_cannot_run_and_are_reloaded(
    tmp_path: Path, native: Chromium, site: Site
) -> None:
    """V1, B2: browsers, tabs, states and reasons; the button loads the tab anew."""
    with attaching(tmp_path, native, site) as chain:
        bench = chain.open()
        bench.tool("greet")
        page = Console(chain.gateway, native).open("/tabs")
        rows = "[...document.querySelectorAll('.status-item')]"
        row = f"{rows}.find((one) => one.innerText.includes('bench.html'))"
        assert " tools" in page.until(f"{row}?.innerText.includes('ready') && {row}.innerText")
        whole = page.evaluate("document.querySelector('main').innerText")
        assert "connected" in whole and "(cdp)" in whole
        bench.page.evaluate("globalThis.isOld = true")
        page.evaluate(f"{row}.querySelector('button').focus()")
        press(page, "Enter")
        bench.page.until("globalThis.isOld === undefined")
        bench.page.evaluate("document.title = 'Another'")
        page.until(f"{row}.innerText.includes('Another')")
        assert page.evaluate(f"document.activeElement === {row}.querySelector('button')")
        assert page.evaluate("odd") == []
