"""The relay beside a page: what it tells a carrier, what it keeps, and tools that only the browser knows."""

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.page_script.page_contexts import Room, Rooms, joined, offer, page
from tests.browser.site import Site

GATE = "window.gate = new Promise((open) => { window.go = open; });"
SLOW = GATE + offer("slow", "reportProgress('first'); await gate; reportProgress('last'); return 'done'")


@pytest.fixture
def rooms(browser: Chromium) -> Rooms:
    """A tab of either browser, with page and relay in it."""
    return Rooms(browser)


def opened(rooms: Rooms, site: Site, script: str, body: str = "") -> Room:
    """The room of a page that was made up."""
    site.pages["made.html"] = page(script) + body
    return rooms.go(site.url("made.html"))


def test_a_room_opens_first_then_tells_its_tools(rooms: Rooms, site: Site) -> None:
    """B1: `open` with address, title and what is seen of it."""
    room = opened(rooms, site, SLOW)
    room.tools("slow")
    assert [frame["method"] for frame in room.frames][:2] == ["open", "tab.tools"]
    told = room.all("open")[0]
    assert told == {
        "url": site.url("made.html"),
        "title": "",
        "visible": True,
        "frozen": False,
        "running": [],
    }
    until(lambda: room.all("tab.state") and room.all("tab.state")[-1]["title"] == "a page", "its title")


def test_who_listens_anew_gets_all_that_there_is(rooms: Rooms, site: Site) -> None:
    """B6: runs with their numbers, the tools, the newest progress and the result, until that is settled."""
    room = opened(rooms, site, SLOW)
    run = room.start("slow")
    room.wait("tool.progress", run)
    room.frames.clear()
    room.send("hello")
    assert room.wait("open")["running"] == [{"run": run, "seq": 1}]
    assert [tool["name"] for tool in room.wait("tab.tools")["tools"]] == ["slow"]
    assert room.wait("tool.progress", run)["reports"] == [{"message": "first"}]
    rooms.page.evaluate("go()")
    result = room.wait("tool.result", run)
    room.frames.clear()
    room.send("hello")
    assert room.wait("open")["running"] == [{"run": run, "seq": result["seq"]}]
    assert room.wait("tool.result", run) == result
    room.send("tool.settled", run=run)
    room.frames.clear()
    room.send("hello")
    assert room.wait("open")["running"] == []
    assert room.all("tool.result") == []


def test_a_run_that_is_sent_twice_runs_once(rooms: Rooms, site: Site) -> None:
    """B7: the same dispatch again changes nothing."""
    script = "window.count = 0;" + offer("once", "window.count += 1; await gate; return window.count")
    room = opened(rooms, site, GATE + script)
    run = room.start("once")
    rooms.page.until("count === 1")
    room.send("tool.dispatch", run=run, tool="once", input={})
    rooms.page.evaluate("go()")
    assert room.wait("tool.result", run)["value"] == 1
    room.send("tool.dispatch", run=run, tool="once", input={})
    assert room.run("once")["value"] == 2
    assert len(room.all("tool.result", run)) == 1


def test_an_unknown_tool_is_refused_at_once(rooms: Rooms, site: Site) -> None:
    """B6: no run waits for what is not there."""
    room = opened(rooms, site, SLOW)
    room.send("tool.dispatch", run="0" * 32, tool="nothing", input={})
    error = room.wait("tool.result", "0" * 32)["error"]
    assert (error["category"], error["code"]) == ("not_found", "no_tool")


def test_another_address_or_title_is_told_and_ends_nothing(rooms: Rooms, site: Site) -> None:
    """B6: pushState mid-run."""
    room = opened(rooms, site, SLOW)
    run = room.start("slow")
    room.wait("tool.progress", run)
    rooms.page.evaluate("history.pushState({}, '', '/elsewhere'), 0")
    until(lambda: room.all("tab.state")[-1]["url"] == site.url("elsewhere"), "the address")
    rooms.page.evaluate("document.title = 'another', 0")
    until(lambda: room.all("tab.state")[-1]["title"] == "another", "the title")
    rooms.page.evaluate("go()")
    assert room.wait("tool.result", run)["value"] == "done"
    assert room.is_open
    assert room.all("bye") == []


ABORTED = "signal.addEventListener('abort', () => { top.why = signal.reason.message; });"


def test_a_frame_that_is_taken_away_says_goodbye(rooms: Rooms, site: Site) -> None:
    """B6: the room ends with its document, whatever its tools do about it; the page around it lives on."""
    body = "reportProgress('first'); await new Promise((_, no) => signal.addEventListener('abort', no))"
    site.pages["in.html"] = page(offer("slow", body))
    opened(rooms, site, "", '<iframe src="in.html"></iframe>')
    room = rooms.room("in.html", "slow")
    room.wait("tool.progress", room.start("slow"))
    rooms.page.evaluate("document.querySelector('iframe').remove()")
    assert room.wait("bye") == {"persisted": False}
    until(lambda: rooms.hear() or not room.is_open, "its end")
    assert rooms.page.evaluate("document.title") == "a page"


def test_a_page_from_the_back_forward_cache_opens_again(rooms: Rooms, site: Site) -> None:
    """B6: put away it counts as gone, and its run is aborted; there again, it is a room again."""
    room = opened(rooms, site, GATE + offer("slow", ABORTED + "reportProgress('first'); await gate"))
    room.wait("tool.progress", room.start("slow"))
    rooms.page.evaluate("window.mark = 1")
    rooms.go(site.url("empty.html"))
    assert not room.is_open
    rooms.page.go(-1)
    again = rooms.room("made.html", "slow")
    assert again is not room
    assert again.wait("open")["running"] == []
    assert rooms.page.evaluate("[mark, why]") == [1, "the page was left"]
    assert again.all("tool.result") == []


def test_to_run_it_twice_does_nothing(rooms: Rooms, site: Site) -> None:
    """B1: one relay a document."""
    room = opened(rooms, site, SLOW)
    room.tools("slow")
    before = len(room.frames)
    given = {"expression": joined("relay"), "contextId": room.context}
    assert "exceptionDetails" not in rooms.browser.call("Runtime.evaluate", given, room.session)
    rooms.page.evaluate(joined("page"))
    run = room.start("slow")
    rooms.page.evaluate("go()")
    room.wait("tool.result", run)
    assert [report["message"] for report in room.reports(run)] == ["first", "last"]
    assert {frame["method"] for frame in room.frames[before:]} <= {
        "tool.progress",
        "tool.result",
        "tab.state",
    }


def test_a_site_that_is_no_longer_allowed_falls_silent(rooms: Rooms, site: Site) -> None:
    """B7: its runs are aborted, and nothing more is said."""
    body = (
        "await new Promise((go) => signal.addEventListener('abort', go)); window.why = signal.reason.message"
    )
    room = opened(rooms, site, offer("slow", "reportProgress('first');" + body))
    run = room.start("slow")
    room.wait("tool.progress", run)
    before = len(room.frames)
    room.send("leave")
    assert rooms.page.until("window.why") == "this site is no longer allowed"
    rooms.page.evaluate("history.pushState({}, '', '/elsewhere'), 0")
    room.send("hello")
    room.rooms.hear()
    assert room.frames[before:] == []


FORM = """
<form toolname="book" tooldescription="Books a table." %s action="made.html">
  <input name="guests" type="number" toolparamdescription="How many"><button>Book</button>
</form>
<script>
document.forms[0].addEventListener("submit", (event) => {
  event.preventDefault();
  event.respondWith(Promise.resolve({booked: document.forms[0].guests.value}));
});
</script>
"""


def test_a_form_waits_for_a_person(browser: Chromium, site: Site) -> None:
    """C6, B3: it is listed as one that cannot report, and its run says that it waits."""
    room = opened(Rooms(browser), site, "", FORM % "")
    tool = room.tools("book")["book"]
    assert (tool["progress"], tool["form"]) == (False, True)
    run = room.start("book", guests=4)
    assert "book" in room.wait("tool.asking", run)["message"]
    room.rooms.page.until("document.forms[0].guests.value === '4'")
    assert room.all("tool.result", run) == []
    room.rooms.page.evaluate("document.querySelector('button').click()")
    assert room.wait("tool.result", run)["value"] == {"booked": "4"}


def test_a_form_that_sends_itself_asks_nobody(browser: Chromium, site: Site) -> None:
    """B3: `toolautosubmit`."""
    room = opened(Rooms(browser), site, "", FORM % "toolautosubmit")
    assert room.tools("book")["book"].get("form", False) is False
    run = room.start("book", guests=2)
    assert room.wait("tool.result", run)["value"] == {"booked": "2"}
    assert room.all("tool.asking", run) == []


def test_a_form_can_be_called_off(browser: Chromium, site: Site) -> None:
    """X1: the person does not come, and the agent gives up."""
    room = opened(Rooms(browser), site, "", FORM % "")
    run = room.start("book", guests=4)
    room.wait("tool.asking", run)
    room.send("tool.cancel", run=run, reason="never mind")
    result = room.wait("tool.result", run)
    assert result["aborted"] is True
    assert result["error"]["message"] == "never mind"


FIELDS = """
<form toolname="order" tooldescription="Orders tea." toolautosubmit>
  <input name="tea" required toolparamdescription="Which tea">
  <label>Cups <input name="cups" type="number" min="1" max="9" value="1"></label>
  <input name="milk" type="checkbox">
  <input name="extra" type="checkbox" value="lemon"><input name="extra" type="checkbox" value="honey">
  <input name="size" type="radio" value="small"><input name="size" type="radio" value="large">
  <select name="when"><option>now</option><option>later</option></select>
  <textarea name="elements" maxlength="50"></textarea>
  <input name="token" type="hidden" value="t"><input type="file" name="file"><button name="go">Go</button>
</form>
<script>
window.heard = [];
document.forms[0].addEventListener("change", (event) => heard.push(event.target.name));
document.forms[0].addEventListener("submit", (event) => {
  event.preventDefault();
  const data = new FormData(event.target);
  event.respondWith({invoked: event.agentInvoked, sent: [...data].filter(([, v]) => typeof v === "string")});
});
</script>
"""


def test_a_form_is_a_tool_without_webmcp_too(plain: Chromium, site: Site) -> None:
    """B3: its fields are the schema; it is filled in as a person would, and comes and goes with the page."""
    room = opened(Rooms(plain), site, "", FIELDS)
    tool = room.tools("order")["order"]
    fields = tool["inputSchema"]["properties"]
    assert list(fields) == ["tea", "cups", "milk", "extra", "size", "when", "elements"]
    assert tool["inputSchema"]["required"] == ["tea"]
    assert fields["tea"] == {"description": "Which tea", "type": "string"}
    assert fields["cups"] == {"description": "Cups", "type": "number", "minimum": 1, "maximum": 9}
    assert fields["milk"] == {"type": "boolean"}
    assert fields["extra"] == {"type": "array", "items": {"type": "string", "enum": ["lemon", "honey"]}}
    assert fields["size"] == {"type": "string", "enum": ["small", "large"]}
    assert fields["when"] == {"type": "string", "enum": ["now", "later"]}
    assert fields["elements"] == {"type": "string", "maxLength": 50}
    given = {"tea": "mint", "cups": 2, "milk": True, "extra": ["honey"], "size": "large", "when": "later"}
    result = room.run("order", **given, elements="hot")
    assert result["value"] == {
        "invoked": True,
        "sent": [
            ["tea", "mint"], ["cups", "2"], ["milk", "on"], ["extra", "honey"], ["size", "large"],
            ["when", "later"], ["elements", "hot"], ["token", "t"],
        ],
    }  # fmt: skip
    heard = room.rooms.page.evaluate("heard")
    assert {"tea", "cups", "when"} <= set(heard)
    assert "does not accept" in room.run("order", tea="", cups=2)["error"]["message"]
    room.rooms.page.evaluate("document.forms[0].setAttribute('toolname', 'buy'), 0")
    room.tools("buy")
    room.rooms.page.evaluate("document.forms[0].remove(), 0")
    until(lambda: room.all("tab.tools")[-1]["tools"] == [], "no tool any more")


def test_a_page_that_was_open_before_has_its_native_tools_without_progress(
    native: Chromium, site: Site
) -> None:
    """B5: no channel is offered to a page that has run script; the browser's own list is."""
    site.pages["made.html"] = page(
        "window.caught = []; for (const side of ['page', 'relay'])"
        " addEventListener(`afoot-${side}`, (event) => caught.push(side));"
        + "document.modelContext.registerTool({name: 'early', description: 'd', execute: (input) => input});"
    )
    rooms = Rooms(native, late=True)
    rooms.page.navigate(site.url("made.html"))
    rooms.begin()
    room = rooms.room("made.html", "early")
    assert room.tools("early")["early"]["progress"] is False
    assert room.run("early", a=[1])["value"] == {"a": [1]}
    assert rooms.page.evaluate("caught") == []


def test_a_hidden_page_is_ticked_by_its_carrier(rooms: Rooms, site: Site) -> None:
    """B6: its own timers run once a second or a minute, so it asks to be woken."""
    room = opened(rooms, site, offer("first", "return 1"))
    room.tools("first")
    assert room.all("wake") == []
    rooms.browser.open(site.url("empty.html")).activate()
    until(lambda: room.all("tab.state") and not room.all("tab.state")[-1]["visible"], "the page to be hidden")
    rooms.page.evaluate(offer("second", "return 2")[:-1] + ", 0")
    asked = room.wait("wake")
    assert asked["ms"] == 100
    room.send("woken", id=asked["id"])
    assert list(room.tools("first", "second")) == ["first", "second"]
    assert room.run("second")["value"] == 2
