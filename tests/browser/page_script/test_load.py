"""The page's script under load: long lists, floods of reports, busy loops, large results."""

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.page_script.page_contexts import Room, Rooms, offer, page
from tests.browser.site import Site


@pytest.fixture
def rooms(browser: Chromium) -> Rooms:
    """A tab of either browser, with page and relay in it."""
    return Rooms(browser)


def opened(rooms: Rooms, site: Site, script: str) -> Room:
    """The room of a page that was made up."""
    site.pages["made.html"] = page(script)
    return rooms.go(site.url("made.html"))


def test_a_list_that_is_too_long_is_cut_and_counted(rooms: Rooms, site: Site) -> None:
    """B3: 500 tools are told; a schema of a megabyte is not."""
    tool = "{name: `t${i}`, description: 'd', execute() {}}"
    each = f"for (let i = 0; i < 600; i++) document.modelContext.registerTool({tool});"
    huge = offer("huge", "", "inputSchema: {type: 'object', title: 'x'.repeat(1e6)},")
    room = opened(rooms, site, each + huge)
    until(lambda: room.all("tab.tools")[-1]["leftOut"] == 101, "the whole list")
    assert len(room.all("tab.tools")[-1]["tools"]) == 500
    assert len(room.all("tab.tools")) < 8


def test_a_flood_is_coalesced_and_ends_with_its_newest(rooms: Rooms, site: Site) -> None:
    """B6: 100,000 reports become some hundred frames; what was dropped is counted, the last one arrives."""
    body = "for (let i = 1; i <= 100000; i++) reportProgress({progress: i, total: 100000}); return 'done'"
    room = opened(rooms, site, offer("flood", body))
    run = room.start("flood")
    assert room.wait("tool.result", run)["value"] == "done"
    frames, reports = room.all("tool.progress", run), room.reports(run)
    assert reports[-1]["progress"] == 100000
    assert len(reports) + sum(frame.get("dropped", 0) for frame in frames) == 100000
    assert max(len(frame["reports"]) for frame in frames) <= 64
    steps = [report["progress"] for report in reports]
    assert steps == sorted(steps)


def test_a_busy_loop_is_seen_while_it_runs(rooms: Rooms, site: Site) -> None:
    """B4: the first report leaves at once, and so does one after a pause, though no timer can run."""
    body = (
        "const busy = (ms) => { const end = performance.now() + ms; while (performance.now() < end); };"
        "for (let i = 1; i <= 5; i++) { reportProgress(`${i}`); busy(20); } return 1"
    )
    room = opened(rooms, site, offer("busy", body))
    run = room.start("busy")
    room.wait("tool.result", run)
    frames = [frame["reports"] for frame in room.all("tool.progress", run)]
    assert [[report["message"] for report in reports] for reports in frames] == [
        [f"{i}"] for i in range(1, 6)
    ]


def test_a_result_of_20_mb_arrives(rooms: Rooms, site: Site) -> None:
    """B6: large is not lost."""
    room = opened(rooms, site, offer("large", "return 'x'.repeat(20e6)"))
    assert len(room.run("large")["value"]) == 20_000_000


def test_nothing_is_sent_after_the_end(rooms: Rooms, site: Site) -> None:
    """P4: a tool that goes on reporting is not heard."""
    body = "window.late = context; reportProgress('in time'); return 1"
    room = opened(rooms, site, offer("late", body))
    run = room.start("late")
    room.wait("tool.result", run)
    rooms.page.evaluate("late.reportProgress('too late'), late.alive(), 0")
    assert room.run("late")["value"] == 1  # whatever the first had sent would have come before
    assert [report["message"] for report in room.reports(run)] == ["in time"]
