"""Pages that do what nobody expects, by accident or to harm: it costs them alone (B6, B7)."""

from typing import Any, Final

import pytest

from tests.browser.chain import Chain
from tests.browser.chromium import Chromium, until
from tests.browser.page_script.page_contexts import Room, Rooms, offer, page
from tests.browser.site import Site

FEW: Final = 5
GATE = "window.gate = new Promise((open) => { window.go = open; });"
SLOW = GATE + offer("slow", "reportProgress('first'); await gate; return 'done'")
WIDE = offer("wide", "return '語'.repeat(15_000_000)")  # 15 million characters, 45 MB
DEEP = offer("deep", "let value = 1; for (let i = 0; i < 3000; i += 1) value = [value]; return value")
LEAVINGS = "for (const type of ['pagehide', 'freeze', 'pagehide']) " + (
    "(type === 'freeze' ? document : window).dispatchEvent(new PageTransitionEvent(type, {persisted: true}))"
)

# Counts what is to happen in a second.
COUNT = """var looks = 0, own = setTimeout;
setTimeout = (then, ms) => { if (ms === 1000) looks += 1; return own(then, ms); };"""


@pytest.fixture
def rooms(browser: Chromium) -> Rooms:
    """A tab of either browser, with page and relay in it."""
    return Rooms(browser)


def opened(rooms: Rooms, site: Site, script: str) -> Room:
    """The room of a page that was made up."""
    site.pages["odd.html"] = page(script)
    return rooms.go(site.url("odd.html"))


def in_relay(room: Room, script: str) -> Any:
    """The value of a script in the relay's world."""
    given = {"expression": script, "contextId": room.context}
    return room.rooms.browser.call("Runtime.evaluate", given, room.session)["result"].get("value")


@pytest.mark.parametrize(
    ("script", "why"), [(WIDE, "45000002 bytes"), (DEEP, "nested")], ids=["wide", "deep"]
)
def test_a_result_that_no_gateway_can_take_is_an_error_of_that_call_alone(
    chain: Chain, script: str, why: str
) -> None:
    """B6, B7, G3: told at once; the link stays, and so does what runs in another tab."""
    chain.site.pages["odd.html"] = page(script)
    other, odd = chain.open(), chain.open("odd.html")
    call = other.call("count", n=3, tag="calm")
    (tool,) = until(odd.offered, "its tool")
    assert why in odd.call(tool, {"total_s": 20.0}).error()["text"]
    assert call.value()["tag"] == "calm"
    assert odd.page.evaluate("document.readyState") == "complete"


def test_tools_with_more_words_than_a_link_carries_are_counted(chain: Chain) -> None:
    """B2, B7: a page with 500 huge tools costs nobody the link."""
    one = offer("t", "", "inputSchema: {description: '語'.repeat(100_000)}, ").replace("'t'", "'t' + n")
    chain.site.pages["odd.html"] = page(f"for (let n = 0; n < 500; n += 1) {one}")
    other, odd = chain.open(), chain.open("odd.html")
    call = other.call("linger", tag="calm").until_said("lingering calm")
    until(lambda: [tab for tab in chain.api.get("/api/tabs").body["tabs"] if tab["left_out"]], "its tools")
    assert not call.future.done()
    assert odd.page.evaluate("document.readyState") == "complete"


def test_a_page_cannot_say_by_itself_that_it_has_left(rooms: Rooms, site: Site) -> None:
    """B7: events that a script made end no run, of the page or of a plugin beside it."""
    room = opened(rooms, site, SLOW)
    run = room.start("slow")
    room.wait("tool.progress", run)
    rooms.page.evaluate(f"{LEAVINGS}; go()")
    assert room.wait("tool.result", run)["value"] == "done"
    assert room.all("bye") == []
    assert not any(told["frozen"] for told in room.all("tab.state"))


def test_many_runs_beside_a_long_one_leave_nothing_behind(rooms: Rooms, site: Site) -> None:
    """C8: one look a second, however many runs there were."""
    room = opened(rooms, site, SLOW + offer("quick", "return 1"))
    in_relay(room, COUNT)
    room.start("slow")
    for _ in range(20):
        room.run("quick")
    assert in_relay(room, "looks") <= FEW


@pytest.mark.parametrize("meta", [None, "words", [1], 7, {"own": 1}], ids=str)
def test_an_argument_of_the_name_that_we_use_arrives_as_it_was(
    rooms: Rooms, site: Site, meta: object
) -> None:
    """B4: whatever a caller gives under `_meta`."""
    room = opened(rooms, site, offer("tell", "return input"))
    assert room.run("tell", _meta=meta, a=1)["value"] == {"_meta": meta, "a": 1}


def test_a_page_that_gives_all_objects_something_has_tools_that_report(rooms: Rooms, site: Site) -> None:
    """B3, B4: old libraries do."""
    odd = "Object.prototype.words = 'of all'; Object.prototype['a\"b'] = {c: 1}; Object.prototype.get = 1;"
    room = opened(rooms, site, odd + offer("tell", "reportProgress('first'); return 1"))
    assert room.tools("tell")["tell"].get("progress", True)
    run = room.start("tell")
    assert room.wait("tool.result", run)["value"] == 1
    assert room.reports(run) == [{"message": "first"}]


@pytest.mark.parametrize(
    "given",
    ["function () {}", "7", "'words'", "(() => { const own = {}; own.own = own; return own; })()"],
    ids=["function", "number", "text", "cycle"],
)
def test_what_a_page_gives_all_objects_is_no_part_of_its_tools(rooms: Rooms, site: Site, given: str) -> None:
    """B3: under names that tools and options have; its tools are listed and run all the same."""
    names = ["title", "progress", "form", "inputSchema", "outputSchema", "annotations", "toJSON"]
    odd = f"for (const name of {names}) Object.prototype[name] = {given};"
    room = opened(rooms, site, odd + offer("tell", "reportProgress('first'); return {a: 1}"))
    tool = room.tools("tell")["tell"]
    assert set(tool) <= {"name", "description", "inputSchema"}
    run = room.start("tell")
    assert room.wait("tool.result", run)["value"] == {"a": 1}
    assert room.reports(run) == [{"message": "first"}]


def test_a_tool_behind_a_proxy_is_a_tool(rooms: Rooms, site: Site) -> None:
    """B3: frameworks hand out such objects; one may name keys that it cannot describe."""
    tool = "{name: 'tell', description: 'x', execute: (_, {reportProgress}) => (reportProgress('p'), 1)}"
    odd = f"new Proxy({tool}, {{ownKeys: () => ['name', 'description', 'execute', 'ghost']}})"
    room = opened(rooms, site, f"document.modelContext.registerTool({odd})")
    run = room.start("tell")
    assert room.wait("tool.result", run)["value"] == 1
    assert room.reports(run) == [{"message": "p"}]


@pytest.mark.parametrize("how", ["return", "throw"])
def test_a_symbol_ends_a_call_and_not_the_tab(rooms: Rooms, site: Site, how: str) -> None:
    """B3, B6: Chromium 156 crashes over one that a tool returns."""
    room = opened(rooms, site, offer("odd", f"{how} Symbol('odd')"))
    assert ("error" in room.run("odd")) is (how == "throw")
    call = "document.modelContext.getTools().then(([tool]) => document.modelContext.executeTool(tool, {}))"
    told = rooms.page.evaluate(f"{call}.then(String, () => 'failed')")
    assert told == ("undefined" if how == "return" else "failed")


ODD_TOOLS = {
    "no name": "description: 'x', execute() {}",
    "no description": "name: 'x', execute() {}",
    "no execute": "name: 'x', description: 'x'",
    "text as schema": "name: 'x', description: 'x', inputSchema: 'text', execute() {}",
}


@pytest.mark.parametrize("tool", ODD_TOOLS.values(), ids=ODD_TOOLS)
def test_what_is_no_tool_is_refused_as_the_browser_does_it(rooms: Rooms, site: Site, tool: str) -> None:
    """B3: by the browser's WebMCP and by the one that is supplied."""
    opened(rooms, site, "")
    told = f"document.modelContext.registerTool({{{tool}}}).then(() => '', (error) => error.name)"
    assert rooms.page.evaluate(told) == "TypeError"
    assert rooms.page.evaluate("document.modelContext.getTools().then((tools) => tools.length)") == 0


def test_events_and_options_are_read_as_the_browser_does_it(rooms: Rooms, site: Site) -> None:
    """B3: what is missing or of the wrong kind is a TypeError, names are texts."""
    opened(rooms, site, "")
    told = """(async () => {
      const context = document.modelContext, tool = {name: "x", description: "x", execute() {}};
      const failed = (work) => work.then(() => "", (error) => error.name);
      let none = "";
      try { new ToolActivatedEvent(); } catch (error) { none = error.name; }
      return [new ToolActivatedEvent("a", {toolName: 5}).toolName, none, ModelContext.length,
        await failed(context.registerTool(tool, 5)), await failed(context.executeTool("x")),
        await failed(context.executeTool())];
    })()"""
    assert rooms.page.evaluate(told) == ["5", "TypeError", 0, "TypeError", "TypeError", "TypeError"]


def test_a_tool_nested_too_deeply_is_left_out_and_the_others_are_not(rooms: Rooms, site: Site) -> None:
    """B2, B6: no gateway could read the list with it; data of a report that is so is left out, too."""
    deep = "(() => { let value = {}; for (let i = 0; i < 900; i += 1) value = {value}; return value; })()"
    script = offer("odd", "", f"inputSchema: {deep}, ")
    good = offer("good", f"reportProgress({{message: 'm', data: {deep}}}); return 1")
    room = opened(rooms, site, script + good)
    assert list(room.tools("good")) == ["good"] and room.all("tab.tools")[-1]["leftOut"] == 1
    run = room.start("good")
    assert room.wait("tool.result", run)["value"] == 1
    assert room.reports(run) == [{"message": "m"}]


# Code of the page's that may run within our own: a tool with no browser between, what an abort calls at once.
WITHIN = {
    "tool": offer("odd", "window.seen = window.event; return 'ran'"),
    "abort": offer(
        "odd",
        """const sink = new WritableStream({abort() { window.seen = window.event; }});
        window.seen = 'nothing yet';
        const source = new ReadableStream({pull() {}, cancel() { window.seen = window.event; }});
        reportProgress('piping');
        await source.pipeTo(sink, {signal}).catch(() => 0);
        return 'ran'""",
    ),
}


@pytest.mark.parametrize("how", WITHIN)
def test_the_event_that_carries_a_frame_is_not_seen(rooms: Rooms, site: Site, how: str) -> None:
    """B7: `window.event` would hand a page the channel, and the name of a run."""
    site.pages["odd.html"] = page(WITHIN[how])
    room = rooms.go(site.url("odd.html", "Content-Security-Policy: sandbox allow-scripts"))
    run = room.start("odd")
    if how == "abort":
        room.wait("tool.progress", run)
        room.send("tool.cancel", run=run, reason="enough")
    assert room.wait("tool.result", run)["value"] == "ran"
    assert rooms.page.evaluate("String(window.seen?.type)") == "undefined"
