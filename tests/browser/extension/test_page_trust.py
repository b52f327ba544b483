"""What a page, or a relay that was taken over, can do to the chain: nothing but lie about its own tools."""

import json
from typing import Any

import msgspec

from tests.browser.chain import Bench, Chain, counted
from tests.browser.chain_fixtures import ONCE
from tests.browser.chromium import until
from tests.browser.mcp_calls import Call


def posting(port: str, frames: list[dict[str, Any]]) -> str:
    """A script for the extension's world that opens a port of its own and sends all this."""
    opened = f"globalThis.kept = chrome.runtime.connect({{name: {port!r}}})"
    return f"{opened}; for (const one of {json.dumps(frames)}) kept.postMessage(one); 1"


@ONCE
def test_a_relay_of_another_tab_cannot_touch_a_run(bench: Bench) -> None:
    """B7: the extension says itself who speaks; a relay that lies about it is another room."""
    other = bench.chain.open()
    other.tool("echo")
    call, run = overheard(bench, "linger")
    before = counted(bench.chain)
    lie = {"run": run, "room": bench.page.target, "seq": 50}
    frames = [
        {"method": "tool.progress", "params": {**lie, "reports": [{"progress": 4, "message": "forged"}]}},
        {"method": "tool.result", "params": {**lie, "seq": 51, "value": "forged"}},
    ]
    opening = {"url": bench.origin, "title": "", "visible": True, "frozen": False, "running": [lie]}
    other.in_relay(posting("afoot.room", [{"method": "open", "params": opening}, *frames]))
    until(lambda: counted(bench.chain) > before, "the lies to be counted")
    assert call.messages == ["lingering mine"] and not call.future.done()
    call.cancel()


def overheard(bench: Bench, tool: str) -> tuple[Call, str]:
    """A run, and its id as the gateway sent it to the extension."""
    browser = bench.chain.browser
    worker = browser.worker(bench.chain.extension)
    worker.call("Network.enable")
    before = len(browser.events)
    call = bench.call(tool, tag="mine").until_said("lingering mine")

    def dispatched() -> str:
        for event in browser.events[before:]:
            if event.method == "Network.webSocketFrameReceived" and event.session == worker.session:
                frame = msgspec.json.decode(msgspec.json.decode(event.params)["response"]["payloadData"])
                if frame["method"] == "tool.dispatch":
                    return str(frame["params"]["run"])
        return ""

    run: str = until(dispatched, "the dispatch")  # the browser tells of it when it has the time
    worker.detach()
    return call, run


@ONCE
def test_a_relay_cannot_give_the_extension_commands(bench: Bench) -> None:
    """B7: answers, stops and pairing come from the extension's own pages only."""
    call = bench.call("linger", tag="held").until_said("lingering held")
    [call_id] = bench.chain.running(bench.tool("linger").name)
    tries = [
        {"method": "panel.cancel", "params": {"call": call_id, "reason": "forged"}},
        {"method": "panel.answer", "params": {"question": "1", "action": "accept"}},
        {"method": "link.hello", "params": {"version": "9", "profile": "forged"}},
        {"method": "tab.gone", "params": {"room": "0", "why": "closed"}},
    ]
    for name in ("afoot.room", "afoot.panel", "panel"):
        bench.in_relay(posting(name, tries))
    bench.in_relay(
        f"for (const one of {json.dumps(tries)}) chrome.runtime.sendMessage(one).catch(() => 0); 1"
    )
    assert bench.call("echo", text="meanwhile").value() == "meanwhile"
    assert not call.future.done()
    call.cancel()


@ONCE
def test_a_page_cannot_reach_the_extension(bench: Bench) -> None:
    """B7: no port, no message, no file of it, nothing of it in the page's world."""
    extension = bench.chain.extension
    assert bench.page.evaluate("typeof chrome === 'undefined' || !chrome.runtime?.connect") is True
    for file in ("pairing.json", "manifest.json", "background/service_worker.js"):
        fetched = f"fetch('chrome-extension://{extension}/{file}').then(() => 'got', () => 'refused')"
        assert bench.page.evaluate(fetched) == "refused"
    names = bench.page.evaluate(
        "Object.getOwnPropertyNames(window).filter((name) => /afoot|relay/i.test(name))"
    )
    assert names == []


def test_a_page_that_replaces_everything_hears_nothing_and_is_served_right(chain: Chain) -> None:
    """B7: the chain uses what it took at document start; the page's own patches see no frame of it."""
    bench = chain.open("hostile.html")
    call = bench.call("count", n=5)
    assert call.value() == {"counted": 5}
    assert call.messages == [f"count {n}" for n in range(1, 6)]
    stopped = bench.call("linger", tag="x").until_said("lingering x")
    stopped.cancel()
    assert "closed the stream" in bench.page.until("window.stopped")
    caught = " ".join(bench.page.evaluate("caught"))
    for word in ("tool.dispatch", "tool.progress", "tool.cancel", "dev.afoot/run"):
        assert word not in caught


def test_a_page_that_forges_events_reaches_nobody(bench: Bench) -> None:
    """B7: neither on window, document, an element, nor by messages."""
    forge = """(() => {
      const frames = [
        {method: "tab.tools", params: {tools: [{name: "forged", description: "not registered"}]}},
        {method: "tool.result", params: {run: "0".repeat(32), seq: 1, value: "forged"}},
      ];
      const targets = [window, document, document.documentElement, document.body, document.head,
                       document.modelContext, document.createElement("div")];
      const types = ["afoot", "afoot.room", "message", "relay", "tool.result", "down", "up", "join"];
      for (const target of targets) for (const type of types) for (const frame of frames) {
        target.dispatchEvent(new CustomEvent(type, {detail: JSON.stringify(frame)}));
        target.dispatchEvent(new MouseEvent(type, {relatedTarget: document.createElement("div")}));
      }
      for (const frame of frames) window.postMessage(frame, "*");
      return 1;
    })()"""
    bench.page.evaluate(forge)
    assert bench.call("echo", text="after").value() == "after"
    assert "forged" not in bench.offered()


@ONCE
def test_a_page_cannot_open_the_link(bench: Bench) -> None:
    """S1: its origin is not the extension's."""
    url = bench.chain.gateway.url.replace("http", "ws").replace("/mcp", "/link")
    opened = (
        f"new Promise((done) => {{ const socket = new WebSocket('{url}', 'afoot.link.1'); "
        "socket.onopen = () => done('open'); socket.onerror = () => done('refused'); })"
    )
    assert bench.page.evaluate(opened) == "refused"
