"""Documents that go away, links that are lost, and browsers that come back, while tools run in them."""

import asyncio

import pytest

from afoot.config.tables import ToolSettings
from afoot.core.facts import Finished
from afoot.engine.catalog import EffectiveSettings
from afoot.engine.live_call import LiveCall
from afoot.testing import advance
from afoot.wire.browser_data import PageReport, RunPosition
from afoot.wire.extension import (
    PageContextGone,
    PageContextOpened,
    PageContextTools,
    RunCancel,
    RunDispatch,
    RunProgress,
    RunResult,
)
from tests.engine.fake_engine import took
from tests.providers.browser.fake_browser import (
    SHOP,
    Puppet,
    Scene,
    message,
    page_tool,
    pause,
    room,
    running,
    scene,
    text,
)

HAS_FAKE_CLOCK = True
ADD = "shop_example_add"
GONE = [
    ("closed", "tab_closed", "its tab was closed"),
    ("reloaded", "tab_reloaded", "its page was loaded anew"),
    ("navigated", "tab_navigated", "its tab went to another page"),
    ("cached", "tab_navigated", "its tab went to another page"),
    ("crashed", "tab_crashed", "its tab crashed"),
    ("discarded", "tab_discarded", "its tab was discarded"),
    ("removed", "frame_removed", "its frame was taken out"),
    ("replaced", "plugin_replaced", "its plugin's code was replaced"),
    ("lost", "link_lost", "its page cannot be reached any more"),
    ("some new word", "link_lost", "its page cannot be reached any more"),
]


def code(end: Finished) -> str:
    """The code of a failure."""
    assert end.failure is not None
    return end.failure.code


async def begun(play: Scene) -> tuple[LiveCall, RunDispatch]:
    """A call that runs in a page, and has reported once."""
    play.open(page_tool())
    live, sent = await play.call(ADD)
    play.progress(sent, 1, PageReport(1, 3, "one"))
    return live, sent


@pytest.mark.parametrize(("why", "expected", "words"), GONE)
async def test_a_document_that_goes_ends_its_runs_at_once(why: str, expected: str, words: str) -> None:
    """B6, E2: with its own code, how far it got, and what to do; never at the timeout."""
    async with scene() as play:
        live, _ = await begun(play)
        await advance(3)
        play.tell(PageContextGone("r1", why))
        end = await play.ended(live)
        assert (end.outcome, code(end), took(live)) == ("uncertain", expected, 3.0)
        assert words in message(end) and "call it again" in message(end)
        assert end.failure is not None and end.failure.last is not None and end.failure.last.progress == 1
        assert end.failure.category == "unavailable" and end.failure.side_effects == "possible"


async def test_a_tool_that_is_safe_by_our_settings_runs_again_in_another_tab() -> None:
    """U4: a new attempt has a run of its own; what a page says of its own safety does not count."""
    safe = EffectiveSettings({f"{SHOP}/*": ToolSettings(approval="auto", idempotent=True)})
    async with scene(safe) as play:
        play.open(page_tool(), room_id="r1", tab="1")
        play.open(page_tool(), room_id="r2", tab="2")
        live, sent = await play.call(ADD)
        play.tell(PageContextGone(sent.room, "closed"))
        await pause(20)
        again = play.puppet.got(RunDispatch)[-1]
        assert again.room != sent.room and again.run != sent.run
        play.end(again, "done")
        assert text(await play.ended(live)) == "done" and live.call.attempt == 2


async def test_a_call_after_the_last_tab_closed_is_told_where_the_tool_was() -> None:
    """B2: not listed any more, and known for a while."""
    async with scene() as play:
        play.open(page_tool(), url=f"{SHOP}/cart?token=secret#there")
        assert play.names() == [ADD]
        play.tell(PageContextGone("r1", "closed"))
        assert play.names() == []
        end = await play.ended(play.submit(ADD))
        assert code(end) == "no_tab" and f"last seen at {SHOP}/cart: open" in message(end)
        play.open(page_tool(), room_id="r2")
        assert play.names() == [ADD]


async def test_a_lost_link_has_its_grace_and_then_its_runs_end() -> None:
    """B6: at the grace, not at the timeout."""
    async with scene() as play:
        live, _ = await begun(play)
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        assert live.call.hindered is not None and "link" in live.call.hindered.by
        end = await play.ended(live)
        assert (end.outcome, code(end), took(live)) == ("uncertain", "link_lost", 5.0)
        assert "lost for over 5 s (link_grace_s)" in message(end)
        assert play.names() == []


async def test_without_a_grace_runs_end_with_the_link() -> None:
    """B5: a browser over CDP that is gone is gone."""
    async with scene() as play:
        live, _ = await begun(play)
        play.browser.on_disconnect(play.puppet, "closed", 0.0)
        assert (code(await play.ended(live)), took(live)) == ("link_lost", 0.0)


async def test_a_browser_that_comes_back_keeps_its_runs_and_says_again_what_was_missed() -> None:
    """B6: what is known by its number is not told twice, and is no oddity."""
    async with scene() as play:
        live, sent = await begun(play)
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        await advance(3)
        again = Puppet()
        welcome = play.join(room(), puppet=again, running=running(sent, seq=2))
        assert (welcome.keep, welcome.abort) == ([sent.run], [])
        assert live.call.hindered is None
        play.tell(RunProgress("r1", sent.run, 1, [PageReport(1, 3)]), again)
        play.tell(RunProgress("r1", sent.run, 2, [PageReport(2, 3)]), again)
        assert live.call.readings == 2
        play.tell(RunResult("r1", sent.run, 3), again)
        assert (await play.ended(live)).outcome == "ok"
        assert play.browser.counted == {}


async def test_a_run_that_a_room_does_not_know_any_more_ended_there() -> None:
    """B6: at once, when the browser is back."""
    async with scene() as play:
        live, sent = await begun(play)
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        await advance(1)
        assert play.join(room()).abort == [sent.run]
        assert (code(await play.ended(live)), took(live)) == ("link_lost", 1.0)


async def test_a_room_that_is_not_back_yet_has_the_rest_of_the_grace() -> None:
    """B6: other relays reconnect a moment later than their browser."""
    async with scene() as play:
        live, sent = await begun(play)
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        await advance(2)
        play.join()
        await advance(2.5)
        assert live.call.end is None
        play.tell(PageContextOpened(room(), running(sent)))
        play.tell(PageContextTools("r1", [page_tool()]))
        await advance(5)
        play.end(sent, "done")
        assert text(await play.ended(live)) == "done"


async def test_a_room_that_does_not_come_back_ends_its_runs_at_the_grace() -> None:
    """B6: its browser is there, it is not."""
    async with scene() as play:
        live, _ = await begun(play)
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        await advance(2)
        play.join()
        assert (code(await play.ended(live)), took(live)) == ("link_lost", 5.0)


async def test_a_second_link_of_a_profile_takes_the_place_of_the_first() -> None:
    """B6: what the old one says does not count any more."""
    async with scene() as play:
        live, sent = await begun(play)
        newer = Puppet()
        play.join(room(), puppet=newer, running=running(sent))
        play.end(sent, "old")
        assert live.call.end is None
        assert play.browser.counted == {"frames of a link that is not open": 1}
        play.browser.on_disconnect(play.puppet, "closed", 0.0)
        assert live.call.end is None
        play.tell(RunResult("r1", sent.run, 9), newer)
        assert (await play.ended(live)).outcome == "ok"


async def test_runs_that_nobody_waits_for_are_aborted_in_the_page() -> None:
    """B6: the gateway was started again, and knows nothing of them."""
    async with scene() as play:
        strange = [RunPosition("f" * 32, "r1")]
        assert play.join(room(), running=strange).abort == ["f" * 32]
        play.tell(PageContextOpened(room("r2"), [RunPosition("e" * 32, "r2")]))
        assert play.puppet.got(RunCancel)[-1].run == "e" * 32


async def test_a_cancel_during_a_lost_link_is_told_when_it_is_back() -> None:
    """X1: after the welcome, and with its reason."""
    async with scene() as play:
        live, sent = await begun(play)
        play.puppet.is_open = False
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        play.engine.cancel(live, "caller", "enough")
        await pause()
        play.puppet.is_open = True
        play.join(room(), running=running(sent))
        assert not play.puppet.got(RunCancel)
        await pause()
        assert play.puppet.got(RunCancel) == [RunCancel("r1", sent.run, "enough")]
        play.end(sent, "partly")
        assert text(await play.ended(live)) == "partly"


async def test_a_call_while_the_link_is_lost_waits_for_the_browser() -> None:
    """B6, C1: it is queued, says so, and runs when the browser is back."""
    async with scene() as play:
        play.open(page_tool())
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        live = play.submit(ADD)
        await advance(1)
        assert live.call.admitted is not None and live.call.admitted.what == "waiting for the browser"
        assert not play.puppet.got(RunDispatch)
        play.join(room())
        play.tell(PageContextTools("r1", [page_tool()]))
        await pause(20)
        play.end(play.puppet.got(RunDispatch)[-1], "done")
        assert text(await play.ended(live)) == "done"


async def test_a_call_for_a_tab_whose_link_is_lost_waits_for_that_tab() -> None:
    """B2, B6: also where another browser has the tool ready."""
    async with scene() as play:
        play.open(page_tool())
        other = Puppet("another")
        play.join(room(), puppet=other, profile="p2")
        play.tell(PageContextTools("r1", [page_tool()]), other)
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        live = play.submit(ADD, {"afoot_tab": "t1"})
        await advance(1)
        play.join(room())
        await pause(20)
        play.end(play.puppet.got(RunDispatch)[-1], "done")
        assert text(await play.ended(live)) == "done" and not other.got(RunDispatch)
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        end = await play.ended(play.submit(ADD, {"afoot_tab": "t1"}))
        assert message(end) == "arguments.afoot_tab: this tool is not in tab 't1'; it is in t2 (Cart)"


async def test_a_call_that_waits_for_a_browser_that_stays_away_is_told_so() -> None:
    """B6: at the end of the grace, retryable, and nothing has happened."""
    async with scene() as play:
        play.open(page_tool())
        play.browser.on_disconnect(play.puppet, "closed", 5.0)
        live = play.submit(ADD)
        end = await play.ended(live)
        assert (end.outcome, code(end), took(live)) == ("failed", "no_tab", 5.0)
        assert end.failure is not None and end.failure.side_effects == "none" and end.failure.retryable


async def test_a_browser_that_cannot_be_reached_gets_nothing_and_nothing_has_happened() -> None:
    """U4: not started, so lost and retryable."""
    async with scene() as play:
        play.open(page_tool())
        play.puppet.is_open = False
        end = await play.ended(play.submit(ADD))
        assert (end.outcome, code(end)) == ("lost", "link_lost")
        assert end.failure is not None and end.failure.side_effects == "none"


async def test_two_profiles_live_and_die_apart() -> None:
    """B1: several at once; rooms of the same id are not the same."""
    async with scene() as play:
        live, sent = await begun(play)
        other = Puppet("chrome (home)")
        play.join(room(), puppet=other, profile="p2")
        play.tell(PageContextTools("r1", [page_tool()]), other)
        play.browser.on_disconnect(other, "closed", 0.0)
        await asyncio.sleep(1)
        assert live.call.end is None
        play.end(sent, "done")
        assert text(await play.ended(live)) == "done"


async def test_a_reload_that_keeps_the_room_is_still_another_document() -> None:
    """B7: an earlier document of the same tab has nothing to say."""
    async with scene() as play:
        live, sent = await begun(play)
        play.tell(PageContextOpened(room(document="another"), running(sent)))
        assert code(await play.ended(live)) == "tab_reloaded"
