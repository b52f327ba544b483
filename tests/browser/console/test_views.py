"""The console's tools, servers, tabs, resources and prompts in a real browser, on a real gateway (V1)."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chain import attaching
from tests.browser.chromium import Chromium
from tests.browser.console.console_client import Console, attended, size
from tests.browser.page import Page
from tests.browser.site import Site
from tests.e2e.gateway import until

TINY = Path(__file__).parents[2] / "cli" / "small_server.py"
FIRST_RUN = "document.querySelector('.call-row-ended')?.dataset.call"


def place(name: str) -> str:
    """The row of a server, tab or caller with this text in it, as an expression."""
    rows = "[...document.querySelectorAll('[data-place]')]"
    return f"{rows}.find((one) => one.innerText.includes({json.dumps(name)}))"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests, with some history."""
    with attended(tmp_path_factory.mktemp("views"), plain_browser) as one:
        for number in range(8):
            one.api.ended(one.api.start("export_pages", n=1, step_s=0.01 * number))
        one.api.ended(one.api.start("break_off"))
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


def write(page: Page, field: str, text: str) -> None:
    """Write into a field as a person does."""
    page.evaluate(f"document.querySelector({json.dumps(field)}).select()")
    page.call("Input.insertText", text=text)


def press(page: Page, key: str) -> None:
    """Press and leave a key."""
    for kind in ("keyDown", "keyUp"):
        text = {"text": "\r"} if (kind, key) == ("keyDown", "Enter") else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=key, **text)


def fill(page: Page, label: str, text: str) -> None:
    """Write into the field with this label."""
    labels = "[...document.querySelectorAll('label')]"
    page.evaluate(f"{labels}.find((one) => one.innerText.startsWith('{label}')).control.focus()")
    page.call("Input.insertText", text=text)


def click(page: Page, words: str, inside: str = "main") -> None:
    """Press the button with these words."""
    page.evaluate(
        f"[...document.querySelector('{inside}').querySelectorAll('button, a')]"
        f".find((one) => one.innerText.trim() === {json.dumps(words)}).click()"
    )


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


def test_the_list_of_tools_says_how_their_runs_went(console: Console) -> None:
    """V1, P9, A1: runs, failures that lead to their calls, durations, and which ask first."""
    page = console.open("/tools")
    size(page, 1280, 800)
    row = "[...document.querySelectorAll('.tool-columns')].find((one) => one.innerText.startsWith('%s'))"
    page.until(f"/\\d/.test({row % 'export_pages'}?.innerText)")
    assert page.evaluate(f"{row % 'export_pages'}.innerText").count(" s") >= 2, "p50 and p95"
    assert "asks first" in page.evaluate(f"{row % 'delete_backups'}.innerText")
    page.evaluate(f"{row % 'break_off'}.querySelector('.t-bad').click()")
    page.until(
        "location.pathname === '/history' && document.querySelectorAll('.call-row-ended').length === 1"
    )
    page.evaluate("history.back()")
    page.until("location.pathname === '/tools' && document.querySelectorAll('.tool-columns').length > 3")
    page.evaluate("document.querySelectorAll('.toolbar .chip')[1].click()")
    asking = (
        "[...document.querySelectorAll('li.tool-columns')].map((one) => one.innerText.includes('asks first'))"
    )
    page.until(f"location.search === '?show=asks' && {asking}.length && {asking}.every(Boolean)")
    assert page.evaluate("odd") == []


def test_a_tool_tells_how_long_it_takes_and_what_a_model_sees(console: Console) -> None:
    """V1, P9: p50 and p95 with a plot that says itself in words; a draft stays while runs are counted."""
    page = console.open("/tools/export_pages")
    page.until("document.querySelector('.figure-row')?.innerText.includes('p95')")
    label = page.evaluate("document.querySelector('svg.histogram').getAttribute('aria-label')")
    assert label.startswith("How long the runs took: ") and " took " in label
    assert "of silence or" in page.evaluate("document.querySelector('.page-facts').innerText")
    page.evaluate("document.querySelector('main summary').click()")
    page.until("document.querySelector('main details').innerText.includes('inputSchema')")
    write(page, "form .field input", "77")
    page.until(FIRST_RUN)
    call = console.api.start("export_pages", n=1, step_s=0.01)
    page.until(f"{FIRST_RUN} === '{call}'")
    assert page.evaluate("document.querySelector('form .field input').value") == "77"
    assert page.evaluate("document.activeElement.value") == "77"


def test_a_tool_is_allowed_without_asking_until_that_is_revoked(console: Console) -> None:
    """V1, A4: for a time that is chosen; the entry stands with the tool."""
    page = console.open("/tools/delete_backups")
    page.until("document.querySelector('.page-facts')?.innerText.includes('Asks before it runs')")
    click(page, "Allow without asking…")
    page.until("document.querySelector('.page-facts select') !== null")
    click(page, "Allow")
    entry = "document.querySelector('[aria-label=\"Allowed without asking\"]').innerText"
    page.until(f"{entry}.includes('Allowed always')")
    [allowed] = console.api.get("/api/allow").body["allowed"]
    assert allowed["until"] is not None and allowed["scope"] == "tool"
    click(page, "Revoke")
    page.until(f"{entry} === ''")
    assert console.api.get("/api/allow").body["allowed"] == []


def test_callers_are_shown_with_what_they_have_running(console: Console) -> None:
    """G2, V1: below the servers, as long as they have calls."""
    call = console.api.start("wait_for_index")
    page = console.open("/servers")
    assert "1 call" in page.until(f"{place('operator')}?.innerText")
    assert console.api.post(f"/api/calls/{call}/cancel", {}).status == 202
    page.until(f"!{place('operator')}")


def test_servers_show_how_they_are_and_are_reloaded_and_removed(console: Console) -> None:
    """V1, U1: added by a command; state, error, era and logs; a reload is a new connection."""
    page = console.open("/servers?add=1")
    page.until("document.querySelector('form [name=target]') !== null")
    fill(page, "Name", "a/b c")
    fill(page, "Address or command", f"{sys.executable} {TINY} x tiny_tool")
    press(page, "Enter")
    console.api.post("/api/servers", {"name": "broken", "command": "/nowhere/at-all"})
    row, bad = place("a/b c"), place("broken")
    told = page.until(f"{row}?.innerText.includes('ready') && {row}.innerText")
    assert "1 tool" in told and "speaks 20" in told and "up " in told
    assert "was not found" in page.until(f"{bad}?.innerText.includes('failed') && {bad}.innerText")
    page.evaluate(f"[...{row}.querySelectorAll('button')].find((one) => one.innerText === 'Logs').click()")
    page.until(f"{row}.querySelector('pre')?.innerText.includes('tiny offers tiny_tool')")
    assert page.evaluate("new URLSearchParams(location.search).get('logs')") == "a/b c"
    pid = console.api.get("/api/servers/a%2Fb%20c").body["pid"]
    page.evaluate(f"[...{row}.querySelectorAll('button')].find((one) => one.innerText === 'Reload').click()")
    until(lambda: console.api.get("/api/servers/a%2Fb%20c").body["pid"] not in (pid, None), "a new process")
    again = console.api.get("/api/servers/a%2Fb%20c").body["pid"]
    page.until(f"{row}.innerText.includes('pid {again}')")
    page.evaluate(f"[...{bad}.querySelectorAll('button')].find((one) => one.innerText === 'Remove').click()")
    page.until(f"!{bad}")
    assert page.evaluate("odd") == []


def test_a_resource_is_read_with_its_progress(console: Console) -> None:
    """V1, F3: the variables of a template are a form; the read is a call that is followed to its contents."""
    page = console.open("/resources")
    page.until("document.querySelector('li.offer-columns a') !== null")
    page.evaluate("document.querySelector('li.offer-columns a').click()")
    page.until(
        "location.search.startsWith('?open=note') && document.querySelector('.offer-pane form') !== null"
    )
    fill(page, "number", "7")
    click(page, "Read")
    page.until("/running[^]*[1-9]0 %[^]*line [1-9]/.test(document.querySelector('.lookup').innerText)")
    page.until("document.querySelector('.lookup').innerText.includes('note 7')")
    call = page.evaluate("document.querySelector('.lookup a').pathname.slice(7)")
    assert console.api.call(call)["arguments"] == {"uri": "note://7"}
    assert page.evaluate("odd") == []


def test_a_prompt_is_filled_in(console: Console) -> None:
    """V1, F3: what is needed is said at its field; the answer has the messages."""
    page = console.open("/prompts?open=greet")
    page.until("document.querySelector('.offer-pane form') !== null")
    click(page, "Fill in")
    page.until("document.querySelector('.offer-pane [aria-invalid=true]') !== null")
    fill(page, "name", "Ann")
    click(page, "Fill in")
    page.until("document.querySelector('.messages')?.innerText.includes('Greet Ann kindly.')")
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
        row = place("bench.html")
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
