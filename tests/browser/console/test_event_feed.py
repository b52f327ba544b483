"""One stream for all tabs of a real browser, with no gap or repeat whatever happens (V1, H2)."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.console_client import CONNECTED, OFFLINE, Console, Rooted, attended
from tests.browser.page import Page

TABS = 10
# A view without calls. The live view also fetches those that have just ended, so a tab may know the end of
# a call before the stream has told it, and then does not count its facts.
VIEW = "/tools"
# Whether a tab has the present state. Before, it is said to be connected, too, and never hears of a call that
# ends meanwhile.
READY = "import('/console/lib/store.js').then(({ store }) => store.about.peek().ready)"
LEADS = "import('/console/lib/event_feed.js').then((feed) => feed.isLeading.peek())"
# Every frame that the leader shares, in whichever tab this runs.
LISTEN = """
globalThis.frames_ = [];
new BroadcastChannel("afoot.feed").onmessage = ({ data }) => data.kind === "frame" && frames_.push(data);
"""
# A clock that can jump, and how many streams this tab has begun.
SLEEPY = """
globalThis.asleep = globalThis.begun = 0;
const [now_, fetch_] = [Date.now, fetch];
Date.now = () => now_() + asleep;
globalThis.fetch = (path, how) => ((begun += path === "/api/events"), fetch_(path, how));
"""


@pytest.fixture
def console(tmp_path: Path, plain: Chromium) -> Iterator[Console]:
    """A gateway of its own for each test."""
    gateway = Rooted(tmp_path, {"drain_s": 0.2, "cancel_grace_s": 0.2, "keepalive_s": 1})
    gateway.start()
    try:
        yield Console(gateway, plain)
    finally:
        gateway.stop()


def streams(console: Console) -> int:
    """How many streams the gateway has open for browsers."""
    return sum(one["streams"] for one in console.api.get("/api/session").body["sessions"])


def tabs(console: Console, count: int) -> list[Page]:
    """So many tabs of one browser."""
    pages = [console.open(VIEW)]
    for _ in range(count - 1):
        pages.append(console.browser.open(f"{console.api.url}{VIEW}"))
        pages[-1].until(f"{CONNECTED} && {READY}")
    return pages


def seen(page: Page, call: str) -> list[object]:
    """What a tab knows of a call: its last fact and how it ended."""
    script = (
        f"import('/console/lib/store.js').then(({{ store }}) => store.get({call!r})?.call.peek())"
        ".then((call) => (call ? [call.seq, call.outcome ?? null] : []))"
    )
    found: list[object] = page.evaluate(script)
    return found


def until_same(console: Console, pages: list[Page], call: str) -> None:
    """Wait until every tab knows the end of a call as the gateway does."""
    ended = console.api.ended(call)
    for page in pages:
        until(lambda page=page: seen(page, call)[1:] == [ended["outcome"]], f"the end of {call} in every tab")
    assert len({json.dumps(seen(page, call)) for page in pages}) == 1


def leader(pages: list[Page]) -> Page:
    """The tab that holds the stream; there is one."""
    [one] = [page for page in pages if page.evaluate(LEADS)]
    return one


def facts(page: Page) -> dict[str, list[int]]:
    """The numbers of the facts that were shared, by call, in order."""
    found: dict[str, list[int]] = {}
    for frame in page.evaluate("frames_"):
        if frame["event"] == "changes":
            for one in json.loads(frame["data"])["facts"]:
                found.setdefault(one["call"], []).append(one["seq"])
    return found


@pytest.mark.timeout(120)
def test_ten_tabs_hold_one_stream_and_another_takes_over_when_the_leader_closes(console: Console) -> None:
    """V1: more than six tabs work, and nothing is lost between two leaders."""
    pages = tabs(console, TABS)
    assert streams(console) == 1
    call = console.api.start("export_pages", n=60, step_s=0.05)
    first = leader(pages)
    pages.remove(first)
    pages[0].evaluate(LISTEN)
    first.close()
    until(lambda: [page for page in pages if page.evaluate(LEADS)], "another leader")
    until(lambda: streams(console) == 1, "one stream")
    until_same(console, pages, call)
    after = console.api.start("export_pages", n=3, step_s=0.01)
    until_same(console, pages, after)
    assert facts(pages[0])[after] == list(range(1, int(str(seen(pages[0], after)[0])) + 1))
    assert streams(console) == 1


@pytest.mark.timeout(120)
def test_a_restart_of_the_gateway_leaves_no_gap_and_no_repeat(console: Console) -> None:
    """H2, V1: both tabs say that they are offline, come back by themselves, and know every fact once."""
    pages = tabs(console, 2)
    for page in pages:
        page.evaluate(LISTEN)
    whole = console.api.start("export_pages", n=3, step_s=0.01)
    until_same(console, pages, whole)
    killed = console.api.start("wait_for_index", sleep_s=60)
    until(lambda: all(seen(page, killed) for page in pages), "a call that runs")
    console.gateway.kill()
    unheard = (
        "import('/console/lib/api.js').then((api) => api.get('/api/calls')).catch(({ status }) => [status])"
    )
    assert pages[0].evaluate(unheard) == [0]
    for page in pages:
        page.until(OFFLINE)
    console.gateway.start()
    for page in pages:
        page.until(CONNECTED)
    until_same(console, pages, killed)
    after = console.api.start("export_pages", n=3, step_s=0.01)
    until_same(console, pages, after)
    for page in pages:
        shared = facts(page)
        assert "reset" not in [frame["event"] for frame in page.evaluate("frames_")]
        for call in (whole, killed, after):
            assert shared[call] == list(range(1, len(shared[call]) + 1))
            assert shared[call][-1] == seen(page, call)[0]
    assert streams(console) == 1


def test_a_history_that_is_gone_gives_every_tab_a_new_beginning(console: Console) -> None:
    """H2: another store behind the same address."""
    pages = tabs(console, 2)
    for page in pages:
        page.evaluate(LISTEN)
    call = console.api.start("wait_for_index", sleep_s=60)
    until(lambda: all(seen(page, call) for page in pages), "a call that runs")
    console.gateway.stop()
    for file in console.gateway.folder.glob("calls.db*"):
        file.unlink()
    console.gateway.start()
    for page in pages:
        page.until(CONNECTED)
        until(lambda page=page: not seen(page, call), "the old call to be forgotten")
    after = console.api.start("export_pages", n=3, step_s=0.01)
    until_same(console, pages, after)


def test_a_stream_that_dies_without_a_word_is_noticed(console: Console) -> None:
    """V1: a gateway that hangs is offline, and when it goes on so does the page."""
    page = console.open()
    page.until(READY)
    os.kill(console.gateway.process.pid, signal.SIGSTOP)
    try:
        page.until(OFFLINE)
    finally:
        os.kill(console.gateway.process.pid, signal.SIGCONT)
    page.until(CONNECTED)
    call = console.api.start("export_pages", n=3, step_s=0.01)
    until_same(console, [page], call)
    until(lambda: streams(console) == 1, "one stream")


def test_a_sleep_of_the_machine_is_noticed_as_soon_as_it_wakes(tmp_path: Path, plain: Chromium) -> None:
    """V1: shorter than a stream may be silent; another is begun at once, with no gap and no repeat."""
    with attended(tmp_path, plain) as console:
        page = console.open(first=SLEEPY)
        page.until(f"{CONNECTED} && begun === 1")
        before = console.api.start("export_pages", n=2, step_s=0.01)
        until_same(console, [page], before)
        page.evaluate("asleep = 12_000")  # the page's clock is all that it knows of it
        page.until(f"begun === 2 && {CONNECTED}")
        after = console.api.start("export_pages", n=2, step_s=0.01)
        until_same(console, [page], after)
        until(lambda: streams(console) == 1, "one stream")


def test_a_late_tab_sees_what_began_before_it(console: Console) -> None:
    """H2: the past, then the present, from another tab's stream."""
    pages = tabs(console, 1)
    call = console.api.start("wait_for_index", sleep_s=60)
    until(lambda: seen(pages[0], call), "a call that runs")
    pages += [console.browser.open(f"{console.api.url}{VIEW}")]
    pages[1].until(CONNECTED)
    until(lambda: seen(pages[1], call), "the call in the late tab")
    console.api.post(f"/api/calls/{call}/cancel", {})
    until_same(console, pages, call)
    assert streams(console) == 1
