"""Runs in pages: what is sent, what comes back, how they are stopped, and how they are kept apart."""

import pytest
from msgspec import Raw, json

from afoot.core.facts import Hindered, Limits, Logged, Reported
from afoot.testing import advance
from afoot.wire.browser_data import PageError, PageReport, Tab
from afoot.wire.extension import (
    PageContextReady,
    PageContextState,
    RunCancel,
    RunDispatch,
    RunLog,
    RunProgress,
    RunResultAck,
    RunWaiting,
)
from tests.engine.fake_engine import facts, over
from tests.providers.browser.fake_browser import SHOP, message, page_tool, pause, room, scene, text

HAS_FAKE_CLOCK = True
ADD = "shop_example_add"
COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_a_call_reaches_the_page_and_its_result_comes_back() -> None:
    """B1: reports on the way, in order, and the result as text and data."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD, {"n": 1})
        assert (sent.room, sent.tool, bytes(sent.input)) == ("r1", "add", b'{"n":1}')
        assert len(sent.run) == 32 and sent.run != live.call.id
        play.progress(sent, 1, PageReport(1, 3, "one"), PageReport(2, 3, "two"))
        assert live.call.latest is not None and (live.call.latest.progress, live.call.readings) == (2, 2)
        play.end(sent, {"total": 7}, 2)
        end = await play.ended(live)
        assert (end.outcome, text(end)) == ("ok", '{"total":7}')
        assert end.result is not None and bytes(end.result.structured) == b'{"total":7}'
        assert play.puppet.got(RunResultAck) == [RunResultAck("r1", sent.run)]


@pytest.mark.parametrize(
    ("value", "words", "structured"),
    [
        ("plain", "plain", b""),
        (7, "7", b""),
        ([1, 2], "[1,2]", b""),
        ({"a": None}, '{"a":null}', b'{"a":null}'),
        ({"content": [{"type": "text", "text": "said"}], "structuredContent": {"b": 1}}, "said", b'{"b":1}'),
        ({"content": [{"type": "odd"}]}, '{"content":[{"type":"odd"}]}', b'{"content":[{"type":"odd"}]}'),
        ({"content": [], "rows": 3}, '{"content":[],"rows":3}', b'{"content":[],"rows":3}'),
    ],
)
async def test_whatever_a_page_returns_is_a_result(value: object, words: str, structured: bytes) -> None:
    """B3: text as it is, JSON as text, objects as data too, and what is shaped like MCP's as that."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        play.end(sent, value)
        end = await play.ended(live)
        assert text(end) == words
        assert end.result is not None and bytes(end.result.structured) == structured


async def test_undefined_is_an_empty_result_and_is_error_is_a_failure() -> None:
    """B3: nothing is no text; a page that says isError has failed."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        play.end(sent)
        assert text(await play.ended(live)) == ""
        live, sent = await play.call(ADD)
        play.end(sent, {"content": [{"type": "text", "text": "no"}], "isError": True})
        end = await play.ended(live)
        assert (end.outcome, text(end)) == ("failed", "no")


async def test_an_error_of_a_page_keeps_what_may_be_believed() -> None:
    """E1, B7: our categories count, any other word does not; the code is a code."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        error = PageError("ToolError", "slow\x1b[31m down", "RATE", "rate_limit", True, 1500.0)
        play.end(sent, error=error)
        failure = (await play.ended(live)).failure
        assert failure is not None
        assert (failure.message, failure.category, failure.code) == ("slow down", "rate_limit", "RATE")
        assert (failure.retryable, failure.retry_after_s) == (True, 1.5)
        live, sent = await play.call(ADD)
        play.end(sent, error=PageError("TypeError", "x is undefined", "no code <b>", "root", False, -1.0))
        failure = (await play.ended(live)).failure
        assert failure is not None
        assert (failure.message, failure.category, failure.code) == (
            "TypeError: x is undefined",
            "internal",
            "internal",
        )
        assert failure.retry_after_s is None


async def test_wrong_arguments_are_named_before_anything_is_sent() -> None:
    """E4: the page's schema is enforced, which no browser does."""
    async with scene() as play:
        play.open(page_tool(schema=COUNT))
        end = await play.ended(play.submit(ADD, {"n": "many"}))
        assert end.outcome == "failed" and "arguments.n" in message(end)
        end = await play.ended(play.submit(ADD, {"n": 1, "afoot_tab": 3}))
        assert message(end) == "arguments.afoot_tab: must be a text such as t1"
        end = await play.ended(play.submit(ADD, {"n": 1, "afoot_tab": "t9"}))
        assert message(end) == "arguments.afoot_tab: this tool is not in tab 't9'; it is in t1 (Cart)"
        assert not play.puppet.got(RunDispatch)


async def test_the_tab_argument_is_ours_and_never_reaches_the_page() -> None:
    """B2: targeting by tab; a page with such an argument of its own keeps it."""
    async with scene() as play:
        play.open(page_tool(schema=COUNT), room_id="r1", tab="1")
        play.open(page_tool(schema=COUNT), room_id="r2", tab="2")
        _, sent = await play.call(ADD, {"n": 1, "afoot_tab": "t1"})
        assert (sent.room, bytes(sent.input)) == ("r1", b'{"n":1}')
        _, sent = await play.call(ADD, {"n": 1, "afoot_tab": "t2"})
        assert sent.room == "r2"
        own = {"type": "object", "properties": {"afoot_tab": {"type": "integer"}}}
        play.open(page_tool("pick", own), room_id="r3", tab="3")
        _, sent = await play.call("shop_example_pick", {"afoot_tab": 5})
        assert bytes(sent.input) == b'{"afoot_tab":5}'


async def test_without_a_tab_the_one_is_used_that_somebody_looks_at() -> None:
    """B2: in front of the window in front, in front, used last, newest."""
    async with scene() as play:
        for number in ("1", "2", "3"):
            play.open(page_tool(), room_id=f"r{number}", tab=number)
        assert (await play.call(ADD))[1].room == "r3"
        play.tabs(Tab("1", active=True), Tab("2"), Tab("3"))
        assert (await play.call(ADD))[1].room == "r1"
        play.tabs(Tab("1"), Tab("2", active=True), Tab("3"))
        play.tabs(Tab("1"), Tab("2"), Tab("3"))
        assert (await play.call(ADD))[1].room == "r2"
        play.tabs(Tab("1", active=True), Tab("2"), Tab("3", active=True, focused=True))
        assert (await play.call(ADD))[1].room == "r3"
        play.tabs(Tab("1", active=True, frozen=True), Tab("2"), Tab("3", discarded=True))
        assert (await play.call(ADD))[1].room == "r2"


async def test_runs_of_one_tool_in_parallel_are_kept_apart() -> None:
    """B4, C8: each hears its own, whatever the order."""
    async with scene() as play:
        play.open(page_tool())
        calls = [await play.call(ADD, {"n": n}) for n in range(5)]
        assert len({sent.run for _, sent in calls}) == 5
        for seq in (1, 2):
            for number, (_, sent) in enumerate(calls):
                play.progress(sent, seq, PageReport(seq * 10 + number))
        assert [live.call.latest and live.call.latest.progress for live, _ in calls] == [20, 21, 22, 23, 24]
        for number, (_, sent) in reversed(list(enumerate(calls))):
            play.end(sent, str(number))
        assert [text(await play.ended(live)) for live, _ in calls] == ["0", "1", "2", "3", "4"]


async def test_a_cancel_reaches_the_page_with_its_reason_and_what_it_gives_back_counts() -> None:
    """X1, X2: the partial result is kept with the cancelled call."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        play.engine.cancel(live, "caller", "enough")
        await pause()
        assert play.puppet.got(RunCancel) == [RunCancel("r1", sent.run, "enough")]
        play.end(sent, {"applied": 12}, aborted=True)
        end = await play.ended(live)
        assert (end.outcome, text(end)) == ("cancelled", '{"applied":12}')


async def test_a_page_that_does_not_stop_is_waited_for_no_longer_than_the_grace() -> None:
    """C7: the slot is free after it; what comes then is late."""
    async with scene(limits=Limits(grace_s=2.0)) as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        play.engine.cancel(live, "caller", "enough")
        await over(play.engine, live)
        assert live.call.end is not None and round(live.call.end.at - live.call.opened.at, 3) == 2.0
        play.end(sent, "too late")
        await pause()
        last = (await play.engine.journal.facts(live.call.id))[-1].fact
        assert play.engine.ran_past_grace == 1
        assert isinstance(last, Reported) and last.late and b"too late" in bytes(last.partial)


async def test_the_timeout_table_holds_for_pages() -> None:
    """C2: silence ends at 30 s, reports re-arm it, heartbeats too, and nothing extends the ceiling."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        await advance(29)
        play.progress(sent, 1, PageReport(1))
        await advance(29)
        play.progress(sent, 2, PageReport(alive=True))
        await advance(29)
        assert live.call.end is None and live.call.readings == 1
        end = await play.ended(live)
        assert (end.outcome, round(end.at - live.call.opened.at)) == ("timed_out", 88)
        assert play.puppet.got(RunCancel)[0].reason.startswith("timed out: no report for 30 s")


async def test_somebody_who_is_asked_in_the_tab_stops_the_clocks() -> None:
    """C6: a form waits for a person; human time is off the clock."""
    async with scene() as play:
        play.open(page_tool(form=True))
        live, sent = await play.call(ADD)
        play.tell(RunWaiting("r1", sent.run, "send the form"))
        await advance(120)
        assert live.call.end is None and [one.message for one in live.call.open.values()] == ["send the form"]
        play.tell(RunWaiting("r1", sent.run))
        assert not live.call.open
        assert round((await play.ended(live)).at - live.call.opened.at) == 150


async def test_a_hidden_tab_is_shown_and_said_in_the_timeout() -> None:
    """B6, C1: its idle timeout says so and what to do; shown again, it says nothing."""
    async with scene() as play:
        play.open(page_tool(), visible=False)
        live, sent = await play.call(ADD)
        assert live.call.hindered is not None and "hidden" in live.call.hindered.by
        play.tell(PageContextState("r1", visible=True))
        assert live.call.hindered is None
        play.tell(PageContextState("r1", visible=False, frozen=True))
        end = await play.ended(live)
        assert message(end).endswith("its tab is frozen: bring tab t1 to the front")
        told = [fact.by for fact in facts(live, Hindered)]
        assert told == ["its tab is hidden, so its timers run slowly", "", "its tab is frozen"]


async def test_lines_that_a_tool_logs_are_kept_with_their_level() -> None:
    """H1: and are no report."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        play.tell(RunLog("r1", sent.run, "careful\x00", "warn"))
        play.end(sent, "done")
        await over(play.engine, live)
        logged = [(fact.text, fact.level, fact.logger) for fact in facts(live, Logged)]
        assert logged == [("careful", "warning", SHOP)]


async def test_what_pages_report_is_made_fit() -> None:
    """P4: finite, not negative, cut; what was repaired is counted."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        play.progress(sent, 1, PageReport(-1.0, float("inf"), "x" * 2000))
        latest = live.call.latest
        assert latest is not None and (latest.progress, latest.total) == (None, None)
        assert latest.message is not None and len(latest.message) == 1000
        big = Raw(json.encode({"x": "y" * 70_000}))
        play.progress(sent, 2, PageReport(1, data=big), PageReport(2, data=Raw(b'{"phase":1}')))
        await pause()
        assert [bytes(fact.data) for fact in facts(live, Reported)] == [b'{"phase":1}']
        assert play.browser.counted == {"numbers repaired": 1, "data over the limit": 1}


async def test_a_flood_is_sampled_by_the_engine_and_its_newest_report_counts() -> None:
    """P4, B6: the page limits the rate; the history keeps one report a second, and the last counts."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        for seq in range(1, 1001):
            play.tell(RunProgress("r1", sent.run, seq, [PageReport(seq * 100 + n) for n in range(100)], 3))
        assert live.call.readings == 100_000
        assert live.call.latest is not None and live.call.latest.progress == 100_099
        play.end(sent, "done", 1001)
        assert (await play.ended(live)).outcome == "ok"
        assert len(live.points) <= 3
        assert play.browser.counted == {"reports left out by pages": 3000}


async def test_a_plugin_is_run_only_where_it_is_ready() -> None:
    """B2: its tab says why it is not."""
    async with scene() as play:
        opened = play.open(page_tool())
        play.tell(PageContextReady(opened.id, False, "log in first"))
        end = await play.ended(play.submit(ADD))
        assert (message(end), end.failure and end.failure.code) == (
            "tab t1 is not ready: log in first",
            "tab_not_ready",
        )
        assert room().id == opened.id
