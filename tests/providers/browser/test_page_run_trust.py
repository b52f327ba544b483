"""Who may say something of a run: the room that it was sent to, while it is open, and nobody else (B7)."""

import pytest

from afoot.engine.live_call import LiveCall
from afoot.wire.browser_data import PageReport
from afoot.wire.extension import (
    FromBrowser,
    PageContextGone,
    PageContextTools,
    RunDispatch,
    RunLog,
    RunProgress,
    RunResult,
    RunResultAck,
    RunWaiting,
)
from tests.providers.browser.fake_browser import Puppet, Scene, page_tool, room, scene, text

HAS_FAKE_CLOCK = True
ADD = "shop_example_add"
WRONG = "frames of a room that the run was not sent to"


async def begun(play: Scene) -> tuple[LiveCall, RunDispatch]:
    """A call that runs in one of two tabs."""
    play.open(page_tool(), room_id="r2", tab="2")
    play.open(page_tool(), room_id="r1", tab="1")
    return await play.call(ADD)


def words(sent: RunDispatch, room_id: str) -> list[FromBrowser]:
    """All that can be said of a run, by this room."""
    return [
        RunProgress(room_id, sent.run, 50, [PageReport(50)]),
        RunWaiting(room_id, sent.run, "your password?"),
        RunLog(room_id, sent.run, "a lie"),
        RunResult(room_id, sent.run, 51),
    ]


@pytest.mark.parametrize("number", range(4))
async def test_another_room_can_neither_report_nor_ask_nor_log_nor_end(number: int) -> None:
    """B7: another tab, frame or plugin of the same browser is refused, and counted."""
    async with scene() as play:
        live, sent = await begun(play)
        play.tell(words(sent, "r2")[number])
        assert (live.call.readings, live.call.open, live.call.end) == (0, {}, None)
        assert play.browser.counted == {WRONG: 1}
        assert not play.puppet.got(RunResultAck)
        play.end(sent, "true")
        assert text(await play.ended(live)) == "true"


@pytest.mark.parametrize("number", range(4))
async def test_another_browser_cannot_either_though_its_rooms_have_the_same_ids(number: int) -> None:
    """B7: it counts over which link a frame comes."""
    async with scene() as play:
        live, sent = await begun(play)
        other = Puppet("another")
        play.join(room(), puppet=other, profile="p2")
        play.tell(words(sent, "r1")[number], other)
        assert (live.call.readings, live.call.open, live.call.end) == (0, {}, None)
        assert play.browser.counted == {WRONG: 1}


async def test_what_is_about_no_run_or_no_room_is_counted() -> None:
    """B7: by its kind, and nothing changes."""
    async with scene() as play:
        live, sent = await begun(play)
        play.tell(RunProgress("r1", "0" * 32, 1, [PageReport(1)]))
        play.tell(PageContextTools("r9", [page_tool("evil")]))
        play.tell(PageContextGone("r9", "closed"))
        play.tell(RunResult("r9", sent.run, 1))
        play.tell(RunResult("r1", sent.run, 1), Puppet("never joined"))
        assert play.browser.counted == {
            "frames about an unknown run": 1,
            "frames about a room that is not open": 2,
            WRONG: 1,
            "frames of a link that is not open": 1,
        }
        assert live.call.end is None and play.names() == [ADD]


async def test_nothing_counts_after_the_end_and_an_end_that_is_told_again_is_settled_again() -> None:
    """B7: the browser tells it until it hears that it was heard."""
    async with scene() as play:
        live, sent = await begun(play)
        play.end(sent, "first", 5)
        assert text(await play.ended(live)) == "first"
        play.end(sent, "second", 6)
        play.progress(sent, 7, PageReport(1))
        assert len(play.puppet.got(RunResultAck)) == 2
        assert play.browser.counted == {"frames after the end of a run": 1}
        play.tell(RunResult("r2", sent.run, 8))
        assert play.browser.counted[WRONG] == 1


async def test_frames_of_a_run_count_only_in_order() -> None:
    """B7: the numbers of a run rise."""
    async with scene() as play:
        live, sent = await begun(play)
        play.progress(sent, 3, PageReport(3))
        play.progress(sent, 3, PageReport(9))
        play.progress(sent, 2, PageReport(8))
        assert live.call.latest is not None and live.call.latest.progress == 3
        assert play.browser.counted == {"frames out of order": 2}


async def test_a_page_that_was_left_cannot_finish_a_run_in_the_next() -> None:
    """B6, B7: the old room is gone, and so is the run; the new one starts with none."""
    async with scene() as play:
        live, sent = await begun(play)
        play.tell(PageContextGone("r1", "navigated"))
        assert (await play.ended(live)).outcome == "uncertain"
        play.open(page_tool(), room_id="r3", tab="1")
        play.tell(RunResult("r3", sent.run, 9))
        assert play.browser.counted == {"frames about an unknown run": 1}


async def test_tools_that_cannot_be_offered_are_counted() -> None:
    """B7: a bad name, a schema of no object, one that is too large."""
    async with scene() as play:
        play.open(
            page_tool("good"),
            page_tool("bad\nname"),
            page_tool("text", {"type": "string"}),
            page_tool("large", {"type": "object", "title": "x" * 70_000}),
            page_tool("odd", {"type": "object", "properties": []}),
        )
        assert play.names() == ["shop_example_good"]
        assert play.browser.counted == {"tools that cannot be offered": 4}
