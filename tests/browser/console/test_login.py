"""Logging in with a real browser: by a link, once, from our own page, and never from anybody else's (S1)."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.console_client import CONNECTED, Console, attended
from tests.browser.page import Page
from tests.browser.site import Site

STORED = "localStorage.getItem('afoot.session')"
PLACES = ("/live", "/inbox", "/history", "/tools", "/servers", "/tabs")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests."""
    with attended(tmp_path_factory.mktemp("login"), plain_browser) as one:
        yield one


@pytest.fixture
def console(served: Console) -> Iterator[Console]:
    """The gateway, and a browser that nobody is logged in with."""
    served.browser.clear()
    yield served
    for one in served.api.get("/api/session").body["sessions"]:
        served.api.send("DELETE", f"/api/session/{one['id']}", None, {})


def link(console: Console) -> str:
    """A fresh login link."""
    return str(console.api.post("/api/session/code", {}).body["url"])


def until_outside(page: Page) -> str:
    """What is said to somebody who is not logged in."""
    said: str = page.until(
        "document.body.innerText.includes('afoot console') && document.querySelector('main').innerText"
    )
    return said


def foreign(site: Site, console: Console, script: str) -> Page:
    """A page of another port that has run this."""
    site.pages["foreign.html"] = "<!doctype html><title>elsewhere</title>"
    page = console.browser.open(site.url("foreign.html"))
    page.evaluate(script)
    return page


def test_a_link_logs_in_and_leaves_no_trace_of_its_code(console: Console) -> None:
    """S1: the code is out of address and history; no cookie; the token is not the operator's."""
    console.browser.call("Storage.clearCookies")  # those of other ports are of this host, too
    page = console.open("/inbox")
    assert page.evaluate("location.href") == f"{console.api.url}/inbox"
    visited = page.call("Page.getNavigationHistory")["entries"]
    assert not any("login" in entry["url"] for entry in visited)
    stored = page.evaluate(STORED)
    assert console.api.token not in stored and page.evaluate("document.cookie") == ""
    assert len(console.api.get("/api/session").body["sessions"]) == 1


def test_a_browser_stays_logged_in(console: Console) -> None:
    """S1: over a reload, and in its other tabs."""
    page = console.open()
    page.reload()
    page.until(CONNECTED)
    other = console.browser.open(f"{console.api.url}/history")
    other.until(CONNECTED)
    assert len(console.api.get("/api/session").body["sessions"]) == 1


def test_a_link_that_was_used_says_so(console: Console) -> None:
    """S1: a second browser gets nothing but the reason."""
    used = link(console)
    code = used.partition("#login=")[2]
    assert console.api.post("/api/session", {"code": code}, authorization="").status == 201
    page = console.browser.open()
    page.navigate(used)
    assert "used already" in until_outside(page)
    assert page.evaluate(STORED) is None and page.evaluate("location.hash") == ""


def test_a_link_works_in_a_page_that_is_open_already(console: Console) -> None:
    """S1: pasted over the address of the page that asks for one, which loads nothing anew."""
    page = console.browser.open(f"{console.api.url}/#login=wrong")
    assert "not known" in until_outside(page)
    page.evaluate(f"void (globalThis.same = true, location.href = {link(console)!r})")
    page.until(STORED)
    page.until("document.querySelector('#heading').innerText === 'Live'")
    assert page.evaluate("same") and page.evaluate("location.href") == f"{console.api.url}/"


def test_whoever_is_not_logged_in_sees_no_data(console: Console) -> None:
    """S1: the public page, and how to get in."""
    call = console.api.start("wait_for_index", sleep_s=30)
    page = console.browser.open(f"{console.api.url}/calls/{call}")
    said = until_outside(page)
    assert "wait_for_index" not in said
    console.api.post(f"/api/calls/{call}/cancel", {})


def test_a_session_that_is_revoked_is_over_in_every_tab_at_once(console: Console) -> None:
    """S1: without a click."""
    pages = [console.open()]
    pages.append(console.browser.open(f"{console.api.url}/live"))
    pages[1].until(CONNECTED)
    [mine] = console.api.get("/api/session").body["sessions"]
    console.api.send("DELETE", f"/api/session/{mine['id']}", None, {})
    for page in pages:
        until_outside(page)
        assert page.evaluate(STORED) is None


def test_a_second_link_replaces_the_session_in_every_tab(console: Console) -> None:
    """S1: one session a browser, however often its owner uses a link."""
    first = console.open()
    before = first.evaluate(STORED)
    second = console.open()
    assert second.evaluate(STORED) != before
    first.until(CONNECTED)
    until(lambda: len(console.api.get("/api/session").body["sessions"]) == 1, "the old session's end")
    assert first.evaluate(STORED) == second.evaluate(STORED)


@pytest.mark.parametrize(
    ("ask", "status", "category", "fields"),
    [
        ("get('/api/calls/none')", 404, "not_found", []),
        ("get('/api/calls?limit=x')", 422, "validation", ["limit"]),
        ("post('/api/calls', {tool: 1})", 422, "validation", ["tool"]),
        ("del('/api/calls')", 405, "validation", []),
    ],
)
def test_what_goes_wrong_is_told_to_the_page(
    console: Console, ask: str, status: int, category: str, fields: list[str]
) -> None:
    """V4, E4: status, category, words and fields; the session goes on."""
    page = console.open()
    told = page.evaluate(
        f"import('/console/lib/api.js').then((api) => api.{ask}).then(() => [],"
        " ({status, category, fields, message}) => [status, category, fields, message])"
    )
    assert told[:3] == [status, category, fields] and told[3]
    assert page.evaluate(STORED)


def test_a_browser_logs_out(console: Console) -> None:
    """S1: the session is over at the gateway, and forgotten here."""
    page = console.open()
    page.evaluate("import('/console/lib/api.js').then((api) => api.logOut())")
    until_outside(page)
    assert page.evaluate(STORED) is None and console.api.get("/api/session").body["sessions"] == []


def test_nothing_in_the_console_violates_its_policy(console: Console) -> None:
    """S1: every view; and the policy is in force, or nothing could violate it."""
    call = console.api.start("break_off")
    page = console.open()
    for path in (*PLACES, f"/calls/{console.api.ended(call)['id']}", "/tools/break_off"):
        page.navigate(f"{console.api.url}{path}")
        page.until("document.querySelector('#heading')?.innerText")
        page.until(CONNECTED)
        page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 100)))")
        assert page.evaluate("odd") == [], path
    page.evaluate(
        "void document.head.append(Object.assign(document.createElement('style'), {textContent: 'p{}'}))"
    )
    assert page.until("odd")[0].startswith("style-src")
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>no</b>'")


@pytest.mark.parametrize(
    "how",
    [
        "{method: 'POST', mode: 'no-cors', body: JSON.stringify({code: CODE})}",
        "{method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({code: CODE})}",
        "{method: 'POST', mode: 'no-cors', body: new URLSearchParams({code: CODE})}",
    ],
    ids=["no-cors", "cors", "form data"],
)  # fmt: skip
def test_another_ports_page_cannot_use_a_code(console: Console, site: Site, how: str) -> None:
    """S1: not even one that it knows; the code is still good for our own page."""
    wanted = link(console)
    code, url = wanted.partition("#login=")[2], f"{console.api.url}/api/session"
    script = f"fetch({url!r}, {how.replace('CODE', repr(code))}).then((r) => r.type, () => 'refused')"
    page = foreign(site, console, "0")
    assert page.evaluate(script) in ("refused", "opaque")
    assert console.api.get("/api/session").body["sessions"] == []
    assert console.api.post("/api/session", {"code": code}, authorization="").status == 201


def test_another_sites_form_starts_nothing(console: Console, site: Site) -> None:
    """S1: it is refused, and says so; no call was started."""
    before = len(console.api.get("/api/calls").body["calls"])
    url = f"{console.api.url}/api/calls"
    page = foreign(
        site, console,
        "{const form = Object.assign(document.createElement('form'),"
        f" {{method: 'post', action: {url!r}, enctype: 'text/plain'}});"
        """form.append(Object.assign(document.createElement('input'),
             {name: '{"tool":"break_off","x":"', value: '"}'}));
           document.body.append(form); form.submit();}""",
    )  # fmt: skip
    page.until("document.body.innerText.includes('is not allowed')")
    assert len(console.api.get("/api/calls").body["calls"]) == before


def test_another_ports_page_gets_no_token_and_no_frame(console: Console, site: Site) -> None:
    """S1: what a session may read, it may not; the console is in nobody's frame or hand."""
    mine = console.open()
    token = mine.evaluate(f"JSON.parse({STORED}).token")
    page = foreign(site, console, "0")
    assert page.evaluate(STORED) is None
    read = (
        f"fetch('{console.api.url}/api/calls', {{headers: {{authorization: 'Bearer {token}'}}}})"
        ".then(() => 'read', () => 'refused')"
    )
    assert page.evaluate(read) == "refused"
    framed = (
        "new Promise((done) => { const frame = document.createElement('iframe');"
        f" frame.src = '{console.api.url}/live'; frame.onload = () => done(frame.contentDocument === null);"
        " document.body.append(frame); })"
    )
    assert page.evaluate(framed)
    assert page.evaluate("frames[0].length === 0")
