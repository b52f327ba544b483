"""The page's script in all kinds of documents: frames, rewritten, polyfilled, restricted and hostile ones."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.page_script.page_contexts import Rooms, offer, page
from tests.browser.site import Site

MCP_B = Path(__file__).parents[3] / "node_modules" / "@mcp-b"
TOOL = offer("framed", "reportProgress('in a frame'); return location.href")


@pytest.fixture
def rooms(browser: Chromium) -> Rooms:
    """A tab of either browser, with page and relay in it."""
    return Rooms(browser)


def checked(rooms: Rooms, part: str, tool: str = "framed") -> Any:
    """The value of a tool that reports once, in the room at an address."""
    room = rooms.room(part, tool)
    run = room.start(tool)
    value = room.wait("tool.result", run)["value"]
    assert room.reports(run) == [{"message": "in a frame"}]
    return value


@pytest.mark.parametrize(
    ("frame", "part"),
    [
        ('<iframe src="in.html"></iframe>', "/in.html"),
        ('<iframe allow="tools" sandbox="allow-scripts" src="in.html?sandboxed"></iframe>', "?sandboxed"),
        ('<iframe allow="tools *" src="http://localhost:PORT/in.html?other"></iframe>', "localhost"),
        ('<iframe srcdoc="<!doctype html><script>SCRIPT</script>"></iframe>', "about:srcdoc"),
        ('<iframe src="javascript:`<script>SCRIPT</script>`"></iframe>', "about:blank"),
    ],
    ids=["same origin", "sandboxed", "cross-origin", "srcdoc", "written by its address"],
)
def test_a_tool_of_a_frame_is_its_frames_own(rooms: Rooms, site: Site, frame: str, part: str) -> None:
    """B4, B7: every frame has a room of its own."""
    site.pages["in.html"] = page(TOOL)
    written = frame.replace("PORT", str(site.port)).replace("SCRIPT", TOOL)
    site.pages["out.html"] = page("", written)
    rooms.go(site.url("out.html"))
    assert part in checked(rooms, part)


def test_an_empty_frame_has_tools_that_its_parent_puts_there(rooms: Rooms, site: Site) -> None:
    """B4: about:blank, filled by script in the moment it is made."""
    site.pages["out.html"] = page("")
    rooms.go(site.url("out.html"))
    inner = TOOL.replace("document.", "frame.contentDocument.", 1)
    rooms.page.evaluate(
        f"frame = document.createElement('iframe'), document.body.append(frame), {inner[:-1]}, 0"
    )
    assert checked(rooms, "about:blank") == site.url("out.html")


def test_a_window_that_gets_another_document_has_its_tools(rooms: Rooms, site: Site) -> None:
    """B4: a frame that is touched before it loads gives its window to the document that comes."""
    site.pages["in.html"] = page(TOOL)
    site.pages["out.html"] = page("")
    rooms.go(site.url("out.html"))
    touch = (
        "frame = document.createElement('iframe'), frame.src = 'in.html?reused', document.body.append(frame),"
        "frame.contentWindow.mark = 1,"
        "new Promise((go) => { frame.onload = () => go(frame.contentWindow.mark); })"
    )
    assert rooms.page.evaluate(touch) == 1
    assert "?reused" in checked(rooms, "?reused")


def test_a_document_that_is_written_anew_keeps_its_runs(rooms: Rooms, site: Site) -> None:
    """B4: document.open() mid-run."""
    script = "window.gate = new Promise((open) => { window.go = open; });"
    site.pages["in.html"] = page(
        script + offer("slow", "reportProgress('a'); await gate; reportProgress('b'); return 1")
    )
    room = rooms.go(site.url("in.html"))
    run = room.start("slow")
    room.wait("tool.progress", run)
    rooms.page.evaluate("document.open(), document.write('<title>anew</title><p>text'), document.close(), 0")
    rooms.page.evaluate(TOOL[:-1] + ", go(), 0")
    assert room.wait("tool.result", run)["value"] == 1
    assert [report["message"] for report in room.reports(run)] == ["a", "b"]
    assert checked(rooms, "in.html") == site.url("in.html")
    until(lambda: room.all("tab.state")[-1]["title"] == "anew", "the new title")


def test_a_strict_policy_hinders_nothing(rooms: Rooms, site: Site) -> None:
    """B4: a strict CSP with Trusted Types."""
    policy = (
        "default-src 'none'; script-src 'nonce-x'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    site.pages["strict.html"] = f"<!doctype html><script nonce=x>{TOOL}</script>"
    rooms.go(site.url("strict.html", f"Content-Security-Policy: {policy}"))
    assert "strict.html" in checked(rooms, "strict.html")


def test_an_http_page_has_tools(rooms: Rooms, site: Site) -> None:
    """B3: no secure context, so no browser has WebMCP there; we have."""
    site.pages["in.html"] = page(TOOL)
    rooms.go(site.url("in.html", host="shop.test"))
    assert rooms.page.evaluate("isSecureContext") is False
    assert "shop.test" in checked(rooms, "shop.test")


@pytest.mark.parametrize(
    ("header", "error"),
    [("Permissions-Policy: tools=()", "NotAllowedError"), ("Origin-Agent-Cluster: ?0", "SecurityError")],
)
def test_where_the_browser_forbids_tools_the_page_gets_its_error(
    native: Chromium, site: Site, header: str, error: str
) -> None:
    """B3: as without us, and nothing else breaks."""
    rooms = Rooms(native)
    site.pages["in.html"] = page(
        TOOL.replace(", {});", ").catch((error) => { window.failed = error.name; });")
    )
    room = rooms.go(site.url("in.html", header))
    assert rooms.page.until("window.failed") == error
    assert rooms.page.evaluate("document.title") == "a page"
    assert room.all("tab.tools")[-1]["tools"] == []


def bundle(package: str) -> str:
    """A package of MCP-B as pages load it; it starts by itself."""
    return (MCP_B / package / "dist" / "index.iife.js").read_text()


@pytest.mark.parametrize("package", ["webmcp-polyfill", "global"])
def test_a_polyfill_that_comes_after_us_finds_webmcp_there(rooms: Rooms, site: Site, package: str) -> None:
    """B3: MCP-B's steps aside; its server offers the page's tools through us, but hands them no context."""
    site.pages["bundle.js"] = bundle(package)
    tool = offer("framed", "context?.reportProgress?.('in a frame'); return location.href")
    tool = tool.replace("const {signal, reportProgress} = context; ", "")
    site.pages["in.html"] = page(tool, '<script src="bundle.js"></script>')
    room = rooms.go(site.url("in.html"))
    run = room.start("framed")
    assert "in.html" in room.wait("tool.result", run)["value"]
    assert len(room.reports(run)) == (1 if package == "webmcp-polyfill" else 0)


def test_a_polyfill_that_was_before_us_is_wrapped(plain: Chromium, site: Site) -> None:
    """B3: its tools report; its executeTool takes JSON text, as it says, and is called once."""
    rooms = Rooms(plain, first=bundle("webmcp-polyfill"))
    calls = "window.calls = (window.calls ?? 0) + 1; reportProgress('in a frame'); return Object.keys(input)"
    site.pages["in.html"] = page(offer("framed", calls))
    room = rooms.go(site.url("in.html"))
    assert rooms.page.evaluate("document.modelContext.__isWebMCPPolyfill") is True
    run = room.start("framed", a=1)
    assert room.wait("tool.result", run)["value"] == ["a"]
    assert room.reports(run) == [{"message": "in a frame"}]
    called = rooms.page.evaluate(
        """(async () => {
          const [tool] = await document.modelContext.getTools();
          const heard = [];
          const monitor = (m) => m.addEventListener("progress", (event) => heard.push(event.message));
          return [await document.modelContext.executeTool(tool, '{"b":2}', {monitor}), heard, calls];
        })()"""
    )
    assert called == ['["b"]', ["in a frame"], 2]


def test_a_page_that_replaces_the_built_ins_neither_sees_nor_breaks_anything(
    rooms: Rooms, site: Site
) -> None:
    """B7: the channel uses what there was at document start; only the page's own values pass its hands."""
    body = (
        "reportProgress({progress: 1, total: 2, message: 'in a frame', data: {a: [1]}});"
        "return {deep: [{value: 'own'}]}"
    )
    tools = offer("framed", body) + offer("broken", "throw new TypeError('no')")
    site.pages["in.html"] = page(tools, '<script src="patched.js"></script>')
    room = rooms.go(site.url("in.html"))
    run = room.start("framed", given="input of the agent")
    result = room.wait("tool.result", run)
    assert result["value"] == {"deep": [{"value": "own"}]}
    assert room.reports(run) == [{"progress": 1, "total": 2, "message": "in a frame", "data": {"a": [1]}}]
    assert room.run("broken")["error"] == {"name": "TypeError", "message": "no"}
    caught = " ".join(rooms.page.evaluate("Array.from({length: caught.length}, (_, i) => caught[i])"))
    assert run not in caught
    assert "tool." not in caught
    assert "input of the agent" not in caught
