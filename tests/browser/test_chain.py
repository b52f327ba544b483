"""The whole chain: a page's handler, its relay, the extension, the link, the gateway, an official client."""

import time
from typing import Final

from tests.browser.chain import Bench
from tests.browser.chain_fixtures import ONCE
from tests.browser.chromium import until
from tests.e2e.official_client import text

FIVE: Final = [(float(n), 5.0, f"count {n}") for n in range(1, 6)]


def test_five_reports_and_the_result_reach_an_mcp_client(bench: Bench) -> None:
    """B1, B3, B4, P6: all five, in order, before the result."""
    call = bench.call("count", n=5, pause=0.15)
    assert call.value() == {"counted": 5, "tag": "count"}
    assert call.seen == FIVE


def test_a_cancel_reaches_the_pages_signal_with_its_reason(bench: Bench) -> None:
    """B1, X1: from the client that gives up to the AbortSignal in the page."""
    call = bench.call("linger", tag="stop").until_said("lingering stop")
    call.cancel()
    heard = bench.page.until("typeof marks.stop === 'object' && marks.stop")
    assert heard["aborted"] and "client closed the stream" in heard["reason"]


@ONCE
def test_the_operators_reason_reaches_the_page(bench: Bench) -> None:
    """X1: the canceller's own words are the signal's reason, and the caller learns of the cancel."""
    call = bench.call("linger", tag="words").until_said("lingering words")
    [running] = bench.chain.running(bench.tool("linger").name)
    bench.chain.api.post(f"/api/calls/{running}/cancel", {"reason": "tea is ready"})
    heard = bench.page.until("typeof marks.words === 'object' && marks.words")
    assert "tea is ready" in heard["reason"]
    assert "tea is ready" in text(call.result())


def test_parallel_runs_of_one_tool_are_kept_apart(bench: Bench) -> None:
    """B4, C8: each caller hears its own run and gets its own result."""
    calls = {f"run{n}": bench.call("count", n=5, pause=0.03, tag=f"run{n}") for n in range(12)}
    for tag, call in calls.items():
        assert call.value() == {"counted": 5, "tag": tag}
        assert {message.split()[0] for message in call.messages} == {tag}
        assert call.seen[-1] == (5, 5, f"{tag} 5")


# What `paced` does (idle limit 2 s, ceiling 5 s), which clock ends it, and after how long. Where much else
# runs a page is late by more than a second, which is no silence.
TABLE: Final[dict[str, tuple[list[float], str | None, float]]] = {
    "silent": ([9.0], "idle", 2.0),
    "reporting": ([0.4] * 6, None, 2.4),
    "a gap": ([0.4, 0.4, 9.0], "idle", 2.8),
    "for ever": ([0.3] * 30, "ceiling", 5.0),
}


@ONCE
def test_the_timeout_table(bench: Bench) -> None:
    """C1, C2, C7: silent, reporting, a gap, for ever; all four at once in one page."""
    began = time.monotonic()
    ended: dict[str, float] = {}
    calls = {}
    for row, (pauses, _, _) in TABLE.items():
        calls[row] = call = bench.call("paced", {"idle_s": 2.0, "left_s": 5.0}, pauses=pauses)
        call.future.add_done_callback(lambda _, row=row: ended.setdefault(row, time.monotonic()))
    for row, (_, clock, after_s) in TABLE.items():
        if clock is None:
            assert calls[row].value() == "done", row
        else:
            told = calls[row].error()
            assert (told["category"], told["clock"]) == ("timeout", clock), row
        until(lambda row=row: row in ended, "its time")  # which is noted after the waiting is over
        assert after_s - 0.05 <= ended[row] - began < after_s + 4.0, row


def test_a_timeout_aborts_the_run_in_the_page(bench: Bench) -> None:
    """C7, C1: the work really ends, and the text names the clock and the setting."""
    told = bench.call("linger", {"idle_s": 0.4}, tag="slow").error()
    assert (told["clock"], told["last"]["message"]) == ("idle", "lingering slow")
    assert "idle_s" in told["text"]
    assert bench.page.until("typeof marks.slow === 'object' && marks.slow")["aborted"]


@ONCE
def test_a_heartbeat_keeps_a_page_tool_alive(bench: Bench) -> None:
    """C5: alive() re-arms the idle limit and is no report."""
    call = bench.call("beating", {"idle_s": 2.0}, times=8, pause=0.3)
    assert call.value() == "beaten"
    assert call.messages == []


@ONCE
def test_structured_progress_comes_through(bench: Bench) -> None:
    """P7: the data of a report travels beside its message; what is too long is cut, not lost."""
    call = bench.call("big_report", size=3000)
    assert call.value() == "reported"
    assert (call.seen[0][:2], len(call.messages[0])) == ((1, 2), 1000)
    assert call.seen[-1] == (2, 2, "small")


@ONCE
def test_arguments_are_checked_before_the_page_hears_of_them(bench: Bench) -> None:
    """E4: the field is named."""
    told = bench.call("count", n="many").error()
    assert told["category"] == "validation" and "arguments.n" in told["text"]
