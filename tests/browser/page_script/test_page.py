"""The script in the page's own world: WebMCP with progress, where the browser has it and where not."""

import json
import re
from typing import Any

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.page_script.page_contexts import Room, Rooms, offer, page
from tests.browser.site import Site


@pytest.fixture
def rooms(browser: Chromium) -> Rooms:
    """A tab of either browser, with page and relay in it."""
    return Rooms(browser)


def opened(rooms: Rooms, site: Site, script: str, *headers: str, host: str = "127.0.0.1") -> Room:
    """The room of a page that was made up."""
    site.pages["made.html"] = page(script)
    return rooms.go(site.url("made.html", *headers, host=host))


def test_a_tool_of_the_first_script_is_listed_with_its_words(rooms: Rooms, site: Site) -> None:
    """B3: nothing the page does comes before us."""
    words = (
        "title: 'T', inputSchema: {type: 'object', properties: {a: {type: 'string'}}},"
        "annotations: {readOnlyHint: true},"
    )
    room = opened(rooms, site, offer("early", "return input", words))
    tool = room.tools("early")["early"]
    assert (tool["title"], tool["description"], tool.get("progress", True)) == ("T", "for a test", True)
    assert tool["inputSchema"]["properties"] == {"a": {"type": "string"}}
    assert tool["annotations"]["readOnlyHint"] is True
    assert room.run("early", a="x")["value"] == {"a": "x"}


def test_reports_come_in_order_and_before_the_result(rooms: Rooms, site: Site) -> None:
    """B4: five reports, then the value as the callback returned it."""
    body = (
        "for (let i = 1; i <= 5; i++) reportProgress({progress: i, total: 5, message: `${i}`, data: {i}});"
        "return {n: [1, null, 'ü']}"
    )
    room = opened(rooms, site, offer("count", body))
    run = room.start("count")
    result = room.wait("tool.result", run)
    assert result["value"] == {"n": [1, None, "ü"]}
    assert [report["progress"] for report in room.reports(run)] == [1, 2, 3, 4, 5]
    assert room.reports(run)[0] == {"progress": 1, "total": 5, "message": "1", "data": {"i": 1}}
    assert result["seq"] == len(room.all("tool.progress", run)) + 1


RETRY = {"retryable": True, "retryAfterMs": 50}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return undefined", {}),
        ("return 'text'", {"value": "text"}),
        ("return '{}'", {"value": "{}"}),
        ("return null", {"value": None}),
        ("throw 'a string'", {"error": {"name": "Error", "message": "a string"}}),
        ("throw new RangeError('far')", {"error": {"name": "RangeError", "message": "far"}}),
        (
            "throw Object.assign(new Error('slow down'), {code: 'busy', retryable: true, retryAfterMs: 50})",
            {"error": {"name": "Error", "message": "slow down", "code": "busy", **RETRY}},
        ),
    ],
)
def test_how_a_tool_ends_is_told_as_it_was(
    rooms: Rooms, site: Site, body: str, wanted: dict[str, Any]
) -> None:
    """B4, E2: the value that was returned, the name, message and code of what was thrown."""
    room = opened(rooms, site, offer("ends", body))
    result = room.run("ends")
    assert {key: result[key] for key in result if key not in ("run", "seq")} == wanted


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("const a = {}; a.a = a; return a", "cannot be written as JSON: Converting circular structure"),
        ("return {n: 1n}", "cannot be written as JSON"),
        ("return (async function* () { yield 1 })()", "returned an async generator"),
    ],
)
def test_what_json_cannot_say_is_a_clear_error(rooms: Rooms, site: Site, body: str, words: str) -> None:
    """B4: cycles, big integers and async generators end the run, and say why."""
    room = opened(rooms, site, offer("odd", body))
    error = room.run("odd")["error"]
    assert error["name"] == "TypeError"
    assert words in error["message"]


CLASS = """
class Tool {
  #secret = 7;
  get name() { return this.#name(); }
  #name() { return "instance"; }
  get description() { return `knows ${this.#secret}`; }
  inputSchema = {type: "object"};
  execute({more}, {reportProgress}) { reportProgress("at work"); return this.#secret + more; }
}
document.modelContext.registerTool(new Tool()).catch((error) => { window.failed = String(error); });
"""


def test_a_tool_may_be_an_instance_of_a_class(rooms: Rooms, site: Site) -> None:
    """B3: getters and methods with private fields work as without us."""
    room = opened(rooms, site, CLASS)
    assert room.tools("instance")["instance"]["description"] == "knows 7"
    run = room.start("instance", more=1)
    assert room.wait("tool.result", run)["value"] == 8
    assert room.reports(run) == [{"message": "at work"}]


AGAIN = """
let first = new AbortController();
const offer = (words, wait, signal) => document.modelContext.registerTool({
  name: "twice", description: words,
  async execute(input, {reportProgress}) {
    reportProgress(words);
    await wait;
    reportProgress(words);
    return words;
  },
}, {signal});
offer("old", new Promise((go) => { window.go = go; }), first.signal);
window.swap = async () => { first.abort(); await offer("new", null); };
"""


def test_a_run_goes_on_with_the_old_code_when_its_tool_is_registered_again(rooms: Rooms, site: Site) -> None:
    """B3: withdrawn and registered under the same name mid-run."""
    room = opened(rooms, site, AGAIN)
    old = room.start("twice")
    room.wait("tool.progress", old)
    rooms.page.evaluate("swap()")
    new = room.start("twice")
    assert room.wait("tool.result", new)["value"] == "new"
    rooms.page.evaluate("go()")
    assert room.wait("tool.result", old)["value"] == "old"
    assert [report["message"] for report in room.reports(old)] == ["old", "old"]


def test_a_withdrawn_tool_is_told_and_refused(rooms: Rooms, site: Site) -> None:
    """B3: the registration's signal takes it off the list."""
    script = "const stop = new AbortController();" + offer(
        "gone", "return 1", options="{signal: stop.signal}"
    )
    room = opened(rooms, site, script + offer("stays", "return 2"))
    room.tools("gone", "stays")
    rooms.page.evaluate("stop.abort()")
    until(lambda: set(room.tools("stays")) == {"stays"}, "the list without it")
    room.send("tool.dispatch", run="0" * 32, tool="gone", input={})
    assert room.wait("tool.result", "0" * 32)["error"]["code"] == "no_tool"


WATCHING = """
window.seen = {monitor: [], event: [], handler: [], ids: []};
const context = document.modelContext;
context.addEventListener("toolprogress", (e) => seen.event.push([e.toolExecutionId, e.message]));
context.ontoolprogress = (e) => seen.handler.push(e instanceof ToolProgressEvent && e.toolName);
window.call = async (input, options) => {
  const [tool] = await document.modelContext.getTools();
  return document.modelContext.executeTool(tool, input, options);
};
window.watch = (m) => {
  seen.ids.push(m.toolExecutionId, m.toolName);
  const note = (e) => seen.monitor.push([e.toolExecutionId, e.progress, e.total, e.message, e.data]);
  m.addEventListener("progress", note);
};
"""
STEPS = "reportProgress({progress: 1, total: 2, message: input.who, data: [1]}); await gate; return input.who"


def test_a_page_watches_its_own_run_while_an_agent_runs_the_same_tool(rooms: Rooms, site: Site) -> None:
    """B4: `monitor` hears one run, `ontoolprogress` all of them, the gateway only its own."""
    gate = "window.gate = new Promise((open) => { window.open_ = open; });"
    room = opened(rooms, site, WATCHING + gate + offer("both", STEPS))
    run = room.start("both", who="agent")
    room.wait("tool.progress", run)
    rooms.page.evaluate("window.mine = call({who: 'page'}, {monitor: watch}), null")
    seen = rooms.page.until("seen.monitor.length && seen")
    rooms.page.evaluate("open_()")
    assert rooms.page.evaluate("mine") == "page"
    assert room.wait("tool.result", run)["value"] == "agent"
    [mine, name] = seen["ids"]
    assert re.fullmatch("[0-9a-f]{32}", mine)
    assert name == "both"
    assert seen["monitor"] == [[mine, 1, 2, "page", [1]]]
    assert [message for _, message in seen["event"]] == ["agent", "page"]
    assert seen["event"][1][0] == mine != seen["event"][0][0]
    assert seen["handler"] == ["both", "both"]
    assert [report["message"] for report in room.reports(run)] == ["agent"]


def test_a_monitor_beside_the_input_is_understood(rooms: Rooms, site: Site) -> None:
    """B4: the form of issue 196; the tool does not see it."""
    opened(rooms, site, WATCHING + offer("one", "reportProgress('here'); return Object.keys(input)"))
    assert rooms.page.until("(async () => (await document.modelContext.getTools()).length)()") == 1
    assert rooms.page.evaluate("call({a: 1, monitor: watch})") == '["a"]'
    assert rooms.page.evaluate("seen.monitor.map((each) => each[3])") == ["here"]


def test_the_signal_has_the_reason_of_whoever_cancelled(rooms: Rooms, site: Site) -> None:
    """X1, B1: an agent's words, and a page's own reason."""
    body = (
        "return new Promise((_, reject) => { window.ready = true; signal.addEventListener('abort', () =>"
        " { window.why = `${signal.reason.name}: ${signal.reason.message}`; reject(signal.reason); }); })"
    )
    room = opened(rooms, site, WATCHING + offer("hang", body))
    run = room.start("hang")
    rooms.page.until("window.ready")
    room.send("tool.cancel", run=run, reason="the user said stop")
    result = room.wait("tool.result", run)
    assert result["aborted"] is True
    assert result["error"] == {"name": "AbortError", "message": "the user said stop"}
    assert rooms.page.evaluate("why") == "AbortError: the user said stop"
    rooms.page.evaluate(
        "ready = false, stop = new AbortController(), call({}, {signal: stop.signal}).catch(() => 0), 0"
    )
    rooms.page.until("window.ready")
    rooms.page.evaluate("stop.abort(new TypeError('mine'))")
    assert rooms.page.until("why.startsWith('TypeError') && why") == "TypeError: mine"


@pytest.mark.parametrize("meta", [{}, {"own": 1}, {"dev.afoot/run": "forged", "own": 2}])
def test_the_pages_own_meta_survives(rooms: Rooms, site: Site, meta: dict[str, Any]) -> None:
    """B4: what we put into the input is taken out again, and nothing else."""
    room = opened(rooms, site, WATCHING + offer("meta", "return JSON.stringify(input)"))
    given = json.dumps({"a": 1, "_meta": meta})
    assert room.run("meta", a=1)["value"] == '{"a":1}'
    assert rooms.page.evaluate(f"call({given}).then(JSON.parse)") == {"a": 1, "_meta": meta}
    assert json.loads(room.run("meta", a=1, _meta=meta)["value"]) == {"a": 1, "_meta": meta}


SHAPE = """(() => {
  const shape = (holder, name) => {
    const found = Object.getOwnPropertyDescriptor(holder, name);
    const own = found.value ?? found.get;
    const attributes = [found.writable ?? null, found.enumerable, found.configurable];
    return [own.name, own.length, "prototype" in own, ...attributes];
  };
  const kind = ModelContext.prototype;
  const names = ["registerTool", "executeTool", "getTools", "ontoolchange"];
  return [...names.map((name) => shape(kind, name)), shape(Document.prototype, "modelContext"),
    String(document.modelContext), shape(window, "ModelContext")[3]];
})()"""
WRONG = """(async () => {
  const {registerTool, executeTool, getTools} = ModelContext.prototype;
  const context = document.modelContext;
  const tool = {name: "ok", description: "d", execute() {}};
  const calls = [
    () => registerTool.call({}, tool), () => executeTool.call({}, tool), () => getTools.call({}),
    () => context.registerTool(), () => context.registerTool({...tool, execute: 1}),
    () => context.registerTool({...tool, name: "a b"}),
    () => context.registerTool({...tool, description: ""}),
    () => context.registerTool(tool), () => context.registerTool(tool),
    () => context.registerTool({...tool, name: "x"}, {signal: AbortSignal.abort(new RangeError())}),
    () => context.executeTool({name: "none", window, origin, description: "d"}, {}),
    () => context.executeTool({name: "ok", window, origin, description: "d"}, "text"),
    () => context.executeTool({name: "ok", window, origin, description: "d"}, {a: 1n}),
    () => new ModelContext(),
  ];
  const told = [];
  for (const call of calls) try { told.push(String(await call())); } catch (error) { told.push(error.name); }
  return told;
})()"""


def test_what_pages_see_is_what_the_browser_would_show(native: Chromium, plain: Chromium, site: Site) -> None:
    """B3: names, attributes and errors of native WebMCP, wrapped or supplied."""
    site.pages["made.html"] = page("")
    untouched = native.open(site.url("made.html"))
    shape, wrong = untouched.evaluate(SHAPE), untouched.evaluate(WRONG)
    for browser in (native, plain):
        rooms = Rooms(browser)
        rooms.go(site.url("made.html"))
        assert rooms.page.evaluate(SHAPE) == shape
        assert rooms.page.evaluate(WRONG) == wrong
