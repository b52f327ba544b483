"""The extension's worker by itself: the link it keeps, the rooms it knows, and why they end."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.browser.chromium import Chromium
from tests.browser.extension.extension_copy import SOURCE
from tests.browser.extension.fake_gateway import LOST, Joined, joined, tell
from tests.browser.page import Page
from tests.browser.site import Site

RUN: Final = "0123456789abcdef" * 2
AT_ONCE_S: Final = 12.0  # on a very busy machine; the extension looks after things every half minute
# A page with such a listener is not kept for a way back.
LEAVE: Final = "addEventListener('unload', () => 0); void (location.href = 'empty.html?other')"
# What a page does to end, and what is said of it.
ENDS: Final[dict[str, Callable[[Page], object]]] = {
    "closed": lambda page: page.close(),
    "reloaded": lambda page: page.evaluate("location.reload()"),
    "navigated": lambda page: page.evaluate(LEAVE),
    "crashed": lambda page: page.crash(),
}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Joined]:
    """The extension with its counterpart."""
    with joined(plain_browser, tmp_path_factory.mktemp("extension") / "afoot") as found:
        yield found


@pytest.fixture
def link(one: Joined) -> Joined:
    """The extension, with no tab of another test, and connected."""
    one.browser.clear()
    one.pair()
    return one


def open_tab(link: Joined, site: Site, path: str = "contract.html") -> tuple[Page, dict[str, Any]]:
    """A new tab, and its room with its tools."""
    mark, url = link.gateway.mark(), site.url(path)
    page = link.browser.open(url)
    room = link.opened(url, mark)
    link.gateway.wait("tab.tools", mark, lambda said: said["room"] == room["id"] and said["tools"])
    return page, room


def test_the_manifest_asks_for_what_is_needed_and_no_more() -> None:
    """B1, B7: narrow permissions, hosts only by a person's click, no script in any page before that."""
    manifest = json.loads((SOURCE / "manifest.json").read_text())
    assert manifest["permissions"] == [
        "scripting", "storage", "alarms", "sidePanel", "userScripts", "notifications",
    ]  # fmt: skip
    assert manifest["optional_host_permissions"] == ["http://*/*", "https://*/*"]
    unwanted = {"host_permissions", "content_scripts", "web_accessible_resources", "externally_connectable"}
    assert not unwanted & manifest.keys()
    policy = manifest["content_security_policy"]["extension_pages"]
    assert "'unsafe" not in policy
    assert "connect-src 'self' ws://127.0.0.1:* ws://localhost:*;" in policy


def test_a_browser_says_hello_once_both_sides_are_proved(one: Joined) -> None:
    """B7: the extension is known by its fixed id; its first word after the proofs is what it has."""
    der = base64.b64decode(json.loads((SOURCE / "manifest.json").read_text())["key"])
    digits = hashlib.sha256(der).hexdigest()[:32]
    assert one.id == "".join(chr(ord("a") + int(digit, 16)) for digit in digits)
    assert one.gateway.origin == f"chrome-extension://{one.id}"
    assert [heard.method for heard in one.gateway.heard[:2]] == ["link.proof", "link.hello"]
    hello = one.gateway.heard[1].params
    manifest = json.loads((SOURCE / "manifest.json").read_text())
    assert (hello["version"], hello["label"]) == (manifest["version"], "Chromium")
    assert len(hello["profile"]) == 36 and hello["tabs"]


def test_a_gateway_that_does_not_know_the_key_hears_nothing(link: Joined) -> None:
    """B7: a stranger on the gateway's port gets a proof it can do nothing with, and no other frame."""
    gateway, mark = link.gateway, link.gateway.mark()

    def stranger(socket: Any) -> bool:
        gateway.greets = gateway.proves
        gateway.note("(stranger)", {})
        tell(socket, "link.challenge", {"nonce": "5a" * 32})
        gateway.note("link.proof", json.loads(socket.recv(20))["params"])
        tell(socket, "link.proof", {"mac": "a5" * 32})
        return True

    gateway.greets = stranger
    gateway.close(1001)
    met = gateway.wait("(stranger)", mark)
    left = gateway.wait(LOST, met.number)
    heard = gateway.heard[met.number + 1 : left.number]
    assert [one.method for one in heard] == ["link.proof"]
    assert gateway.key.hex() not in str(heard)
    gateway.wait("link.hello", left.number)


def test_each_proof_is_made_for_one_connection(link: Joined) -> None:
    """B7: a proof that was overheard is worth nothing later: both nonces are new, and so is the proof."""
    mark = link.gateway.mark()
    link.gateway.close(1001)
    link.gateway.wait("link.hello", mark)
    proofs = [heard.params for heard in link.gateway.heard if heard.method == "link.proof"]
    assert len({proof["nonce"] for proof in proofs}) == len({proof["mac"] for proof in proofs}) == len(proofs)


@pytest.mark.parametrize(
    "frame",
    ['{"method": "tool.dispatch", "params": {}}', '{"method": "link.welcome", "params": {}}', "not JSON"],
)
def test_nothing_counts_before_the_proof(link: Joined, frame: str) -> None:
    """B7: whoever says anything else first is left."""
    gateway, mark = link.gateway, link.gateway.mark()

    def impatient(socket: Any) -> bool:
        gateway.greets = gateway.proves
        socket.send(frame)
        return True

    gateway.greets = impatient
    gateway.close(1001)
    first = gateway.wait(LOST, mark)
    gateway.wait(LOST, first.number + 1)
    assert gateway.wait("link.hello", mark).number > first.number


def test_a_gateway_that_never_proves_itself_is_left(link: Joined) -> None:
    """B7: after five seconds."""
    gateway, mark = link.gateway, link.gateway.mark()

    def silent(socket: Any) -> bool:
        gateway.greets = gateway.proves
        gateway.note("(silent)", {})
        return True

    gateway.greets = silent
    gateway.close(1001)
    since = gateway.wait("(silent)", mark)
    left = gateway.wait(LOST, since.number)
    assert 2 < left.at - since.at < 5 + AT_ONCE_S
    gateway.wait("link.hello", left.number)


@pytest.mark.parametrize("why", ENDS)
def test_a_document_that_ends_is_told_of_at_once_with_the_reason(link: Joined, site: Site, why: str) -> None:
    """B6: not at a timeout."""
    page, room = open_tab(link, site)
    mark, began = link.gateway.mark(), time.monotonic()
    ENDS[why](page)
    gone = link.gateway.wait("tab.gone", mark, lambda said: said["room"] == room["id"])
    assert gone.params["why"] == why
    assert gone.at - began < AT_ONCE_S
    if why in ("reloaded", "navigated"):
        link.gateway.wait("tab.opened", mark, lambda said: said["room"]["tab"] == room["tab"])


def test_a_page_that_may_come_back_is_gone_until_it_does(link: Joined, site: Site) -> None:
    """B6: in the back/forward cache nothing runs; coming back, it is the room it was."""
    mark, url = link.gateway.mark(), site.url("contract.html")
    page = link.browser.open(url)
    room = link.opened(url, mark)
    page.navigate(site.url("empty.html"))
    gone = link.gateway.wait("tab.gone", mark, lambda said: said["room"] == room["id"])
    assert gone.params["why"] == "cached"
    page.go(-1)
    again = link.gateway.wait("tab.opened", gone.number, lambda said: said["room"]["url"] == url)
    assert again.params["room"]["id"] == room["id"]


def test_a_frame_that_is_taken_out_ends_alone(link: Joined, site: Site) -> None:
    """B6: the document above it is not touched."""
    site.pages["holder.html"] = "<iframe src='empty.html?inner'></iframe>"
    mark = link.gateway.mark()
    page = link.browser.open(site.url("holder.html"))
    inner = link.opened(site.url("empty.html?inner"), mark)
    assert inner["frame"] != "0" and inner["top"] == inner["origin"] == site.origin()
    page.evaluate("document.querySelector('iframe').remove()")
    gone = link.gateway.wait("tab.gone", mark, lambda said: said["room"] == inner["id"])
    assert gone.params["why"] == "removed"


def test_a_tab_that_is_put_to_sleep_says_so(link: Joined, site: Site) -> None:
    """B6: discarded is not closed."""
    page, room = open_tab(link, site)
    page.detach()
    link.browser.open()
    mark = link.gateway.mark()
    worker = link.browser.worker(link.id)
    try:
        worker.evaluate(f"chrome.tabs.discard({room['tab']})")
    finally:
        worker.detach()
    gone = link.gateway.wait("tab.gone", mark, lambda said: said["room"] == room["id"])
    assert gone.params["why"] == "discarded"


def test_what_was_said_while_the_link_was_gone_is_said_again(link: Joined, site: Site) -> None:
    """B1: a new link is told of every room, its tools, its runs, and the ends nobody has acknowledged."""
    gateway = link.gateway
    page, room = open_tab(link, site)
    mark = gateway.mark()
    run = {"room": room["id"], "run": RUN}
    gateway.send("tool.dispatch", {**run, "tool": "echo", "input": {"text": "hi"}})
    ended = gateway.wait("tool.result", mark, lambda said: said["run"] == RUN)
    gateway.close(1001)
    hello = gateway.wait("link.hello", ended.number).params
    assert room["id"] in [known["id"] for known in hello["rooms"]]
    assert [(one["run"], one["room"]) for one in hello["running"]] == [(RUN, room["id"])]
    again = gateway.wait("tool.result", ended.number + 1, lambda said: said["run"] == RUN)
    assert again.params == ended.params
    gateway.send("tool.settled", run)
    mark = gateway.mark()
    gateway.close(1001)
    assert gateway.wait("link.hello", mark).params["running"] == []


# A tool that reports without a pause for half a second, and one that waits for the test before its end.
REPORTERS: Final = """<!doctype html><title>Reports</title><script>
const offer = (name, execute) => document.modelContext.registerTool({ name, description: name, execute });
offer("flood", async (input, { reportProgress }) => {
  const begin = performance.now();
  let step = 0;
  while (performance.now() < begin + 500) {
    for (let i = 0; i < 100; i += 1) reportProgress(step += 1);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return [step, performance.now() - begin];
});
offer("steps", async (input, { reportProgress }) => {
  reportProgress(1, 3);
  await new Promise((resolve) => (globalThis.goOn = resolve));
  reportProgress(2, 3);
  await new Promise((resolve) => setTimeout(resolve, 50));
  reportProgress(3, 3);
  return "done";
});
</script>"""


def test_a_flood_arrives_in_order_at_the_page_s_rate_with_its_first_and_last(
    link: Joined, site: Site
) -> None:
    """B6: the page alone limits the rate; the worker passes all of it on."""
    gateway = link.gateway
    site.pages["reports.html"] = REPORTERS
    _, room = open_tab(link, site, "reports.html")
    mark, run = gateway.mark(), {"room": room["id"], "run": RUN}
    gateway.send("tool.dispatch", {**run, "tool": "flood", "input": {}})
    ended = gateway.wait("tool.result", mark, lambda said: said["run"] == RUN)
    gateway.send("tool.settled", run)
    frames = [one.params for one in gateway.heard[mark : ended.number] if one.method == "tool.progress"]
    steps = [report["progress"] for frame in frames for report in frame["reports"]]
    last, took_ms = ended.params["value"]
    assert (steps[0], steps[-1]) == (1, last)
    assert steps == sorted(steps)
    assert len(steps) + sum(frame.get("dropped", 0) for frame in frames) == steps[-1]
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    assert 2 < len(frames) <= took_ms / 8 + 2  # the first at once, and the last before the result
    assert max(len(frame["reports"]) for frame in frames) <= 64


def test_the_last_progress_and_the_result_outlive_a_lost_link(link: Joined, site: Site) -> None:
    """B6: the page keeps what it said while nobody listened, and sends it on the next link."""
    gateway = link.gateway
    site.pages["reports.html"] = REPORTERS
    page, room = open_tab(link, site, "reports.html")
    mark, run = gateway.mark(), {"room": room["id"], "run": RUN}
    gateway.send("tool.dispatch", {**run, "tool": "steps", "input": {}})
    gateway.wait("tool.progress", mark, lambda said: said["run"] == RUN)
    gateway.close(1001)  # a second passes before the extension comes back
    lost = gateway.wait(LOST, mark)
    page.evaluate("goOn()")
    hello = gateway.wait("link.hello", lost.number)
    assert [one["run"] for one in hello.params["running"]] == [RUN]
    ended = gateway.wait("tool.result", hello.number, lambda said: said["run"] == RUN)
    assert ended.params["value"] == "done"
    before = [
        one.params for one in gateway.heard[hello.number : ended.number] if one.method == "tool.progress"
    ]
    assert before[-1]["reports"][-1] == {"progress": 3, "total": 3}
    assert before[-1]["seq"] < ended.params["seq"]
    gateway.send("tool.settled", run)


def test_a_worker_that_is_killed_comes_back_with_the_same_rooms_and_runs(link: Joined, site: Site) -> None:
    """B6, B7: ids are derived from what the browser says, so a run in a page outlives the worker."""
    gateway = link.gateway
    page, room = open_tab(link, site)
    mark, run = gateway.mark(), {"room": room["id"], "run": RUN}
    gateway.send("tool.dispatch", {**run, "tool": "hang", "input": {}})
    gateway.wait("tool.progress", mark, lambda said: said["run"] == RUN)
    mark, began = gateway.mark(), time.monotonic()
    link.browser.kill_worker(link.id)
    hello = gateway.wait("link.hello", mark)
    assert hello.at - began < AT_ONCE_S
    runs = hello.params["running"]
    if not runs:  # its relay came a moment later
        runs = gateway.wait("tab.opened", hello.number, lambda said: said.get("running")).params["running"]
    assert [(one["run"], one["room"]) for one in runs] == [(RUN, room["id"])]
    gateway.send("tool.cancel", {**run, "reason": "enough"})
    assert gateway.wait("tool.result", mark, lambda said: said["run"] == RUN).params["aborted"]


def test_runs_that_the_gateway_does_not_know_are_stopped(link: Joined, site: Site) -> None:
    """B1: the welcome names them."""
    gateway = link.gateway
    page, room = open_tab(link, site)
    mark = gateway.mark()
    gateway.send("tool.dispatch", {"room": room["id"], "run": RUN, "tool": "hang", "input": {}})
    gateway.wait("tool.progress", mark, lambda said: said["run"] == RUN)
    try:
        gateway.abort = [RUN]
        gateway.close(1001)
        page.until("window.aborted?.length > 0")
    finally:
        gateway.abort = []


def test_a_run_for_a_room_that_is_not_there_is_answered(link: Joined) -> None:
    """B6: never silence."""
    mark = link.gateway.mark()
    link.gateway.send("tool.dispatch", {"room": "1.0.NONE", "run": RUN, "tool": "echo", "input": {}})
    gone = link.gateway.wait("tab.gone", mark, lambda said: said["room"] == "1.0.NONE")
    assert gone.params["why"] == "lost"


def test_link_reload_loads_the_extension_anew(link: Joined, site: Site) -> None:
    """B1: newer files are taken; tabs that were open say what to do, and do it when told."""
    gateway = link.gateway
    page, room = open_tab(link, site)
    mark = gateway.mark()
    gateway.send("link.reload")
    hello = gateway.wait("link.hello", gateway.wait(LOST, mark).number)
    # An old relay may find the new worker before it learns that its own time is over: it is sent away.
    is_stale = {"id": room["tab"], "why": "reload"}.items()
    if not any(is_stale <= tab.items() for tab in hello.params["tabs"]):
        gateway.wait(
            "tab.list", hello.number, lambda said: any(is_stale <= tab.items() for tab in said["tabs"])
        )
    mark = gateway.mark()
    gateway.send("tab.reload", {"tab": room["tab"]})
    opened = gateway.wait("tab.opened", mark, lambda said: said["room"]["tab"] == room["tab"])
    assert opened.params["room"]["document"] != room["document"]
