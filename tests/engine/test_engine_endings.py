"""One attempt: how its end is told, what of its readings is kept, and which sizes it may have."""

import asyncio
import logging
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.facts import CancelRequested, Logged, Reported, Result, Sample
from afoot.core.ports import Report, Run
from afoot.engine.engine import Submission
from afoot.errors import ToolError
from tests.engine.fake_engine import called, content, engine_of, facts, over, partial_report, text, took


async def samples_of(*gaps_s: float, last_s: float = 0.0) -> list[Sample]:
    """What the history keeps of a tool that reports after each of these gaps."""

    async def body(run: Run) -> str:
        for n, gap_s in enumerate(gaps_s, 1):
            await asyncio.sleep(gap_s)
            run.report(n, None, f"reading {n}")
        await asyncio.sleep(last_s)
        return "done"

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
        return await engine.journal.samples(live.call.id)


async def test_the_first_and_the_last_reading_are_kept_and_one_a_second_between() -> None:
    """H1: readings are sampled into the history, messages included."""
    samples = await samples_of(*[0.1] * 35)
    assert [sample.number for sample in samples] == [1, 11, 21, 31, 35]
    assert samples[-1].reading.message == "reading 35"


async def test_a_sample_counts_the_readings_left_out_before_it() -> None:
    """H1: the number left out is stored, and all of them add up."""
    samples = await samples_of(*[0.1] * 35)
    assert [sample.left_out for sample in samples] == [0, 9, 9, 9, 3]
    assert sum(1 + sample.left_out for sample in samples) == 35


async def test_a_last_reading_that_was_sampled_already_keeps_its_count() -> None:
    """H1: the end does not write over it."""
    samples = await samples_of(0.1, 0.5, 0.5, last_s=3.0)
    assert [(sample.number, sample.left_out) for sample in samples] == [(1, 0), (3, 1)]


async def test_the_last_reading_before_a_timeout_is_kept() -> None:
    """H1, E2: a call that hangs is the one whose last word matters."""
    samples = await samples_of(0.1, 0.1, 0.1, last_s=99.0)
    assert [(sample.number, sample.left_out) for sample in samples] == [(1, 0), (3, 1)]


async def test_a_tool_that_never_reports_has_no_samples() -> None:
    """H1: nothing is invented."""
    assert await samples_of() == []


async def test_a_tools_error_keeps_its_category_and_says_how_far_it_got() -> None:
    """E1, E2: category, code, retry, progress, elapsed time and side effects."""

    async def body(run: Run) -> str:
        await asyncio.sleep(2)
        run.report(3, 10, "page 3")
        await asyncio.sleep(1)
        raise ToolError.rate_limited("slow down", retry_after=7.5, code="quota")

    live = await called(body)
    end = live.call.end
    assert end and end.failure and end.failure.last
    failure, last = end.failure, end.failure.last
    assert (end.outcome, failure.message) == ("failed", "slow down")
    assert (failure.category, failure.code, failure.retryable) == ("rate_limit", "quota", True)
    assert (failure.retry_after_s, failure.elapsed_s, failure.side_effects) == (7.5, 3.0, "possible")
    assert (last.progress, last.total, last.message) == (3, 10, "page 3")


async def test_a_failure_of_a_tool_that_only_reads_has_no_side_effects() -> None:
    """E2: whether something may have happened is said."""

    async def body(run: Run) -> str:
        raise ToolError.not_found("no such page")

    live = await called(body, read_only=True)
    assert live.call.end and live.call.end.failure and live.call.end.failure.side_effects == "none"


@pytest.mark.parametrize(
    "error", [ValueError("boom"), SystemExit(3), RecursionError("deep"), StopAsyncIteration()]
)
async def test_a_crash_is_one_clean_line_and_the_trace_stays_home(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """E3: the caller gets a message, log and history get the trace, the gateway lives on."""

    async def body(run: Run) -> str:
        raise error

    with caplog.at_level(logging.ERROR):
        live = await called(body)
    end = live.call.end
    assert end and end.failure and (end.outcome, end.failure.category) == ("failed", "internal")
    assert "\n" not in end.failure.message and type(error).__name__ in end.failure.message
    assert "Traceback" in end.failure.trace and "in body" in end.failure.trace
    assert live.call.id in caplog.text


@pytest.mark.parametrize("error", [ValueError, ToolError])
async def test_a_long_error_is_told_whole_and_one_without_end_is_cut_with_a_mark(
    error: type[Exception],
) -> None:
    """E3, G3: the end of an error often has its reason."""

    async def told(text: str) -> str:
        async def body(run: Run) -> str:
            raise error(text)

        end = (await called(body)).call.end
        assert end and end.failure
        return end.failure.message

    assert (await told("x" * 5000 + " because")).endswith("x because")
    cut = await told("x" * 50_000)
    assert len(cut) == 10_000 and cut.endswith("x… (cut at 10,000 characters)")


async def test_bad_input_is_told_before_anything_runs() -> None:
    """E4: the field is named, the call was never started, the history has it."""

    async def body(run: Run) -> str:
        raise AssertionError("it ran")

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool", Raw(b'{"broken":1}')))
        end = live.call.end
        assert end and end.failure and end.failure.message.startswith("arguments.broken:")
        assert (end.failure.category, end.failure.side_effects) == ("validation", "none")
        assert live.call.started is None
        await asyncio.sleep(0.1)
        assert len(await engine.journal.facts(live.call.id)) == 3


async def test_a_crash_of_the_check_of_arguments_is_a_failed_call() -> None:
    """E3, E4: an author's validator may raise anything; no call is left open."""

    async def body(run: Run) -> str:
        raise AssertionError("it ran")

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool", Raw(b'{"crash":1}')))
        assert live.call.end and live.call.end.failure and live.call.started is None
        assert "KeyError" in live.call.end.failure.message and "Traceback" in live.call.end.failure.trace
        await asyncio.sleep(0.1)
        assert engine.calls() == []


async def test_partial_results_are_there_at_a_timeout_and_at_a_cancel() -> None:
    """P11, E2: they are stored with the call that did not end well."""

    async def body(run: Run) -> str:
        run.content(partial_report("one"))
        run.content(partial_report("two"))
        await asyncio.sleep(99)
        return "all"

    late = await called(body)
    async with engine_of(body) as engine:
        cancelled = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(cancelled, "caller", "enough")
        await over(engine, cancelled)
    for live in (late, cancelled):
        assert live.call.partials == [content("one"), content("two")]
    assert late.call.end and late.call.end.outcome == "timed_out"


async def test_content_rearms_the_clock_and_counts_as_the_newest_progress() -> None:
    """C1, P7: data and partial results are reports."""

    async def body(run: Run) -> str:
        for n in range(4):
            await asyncio.sleep(20)
            run.content(Report(n, 4, "page", data=Raw(b'{"phase":1}')))
        return "done"

    live = await called(body)
    assert took(live) == 80.0 and live.call.latest and live.call.latest.progress == 3
    assert [bytes(fact.data) for fact in facts(live, Reported)] == [b'{"phase":1}'] * 4


async def test_a_result_over_the_limit_is_a_failure_that_names_the_setting() -> None:
    """G3: result sizes."""

    async def body(run: Run) -> Result:
        return text("x" * 2000)

    async with engine_of(body) as engine:
        engine.max_result_bytes = 1000
        live = await over(engine, engine.submit(Submission("tool")))
    end = live.call.end
    assert end and end.failure and (end.outcome, end.failure.code) == ("failed", "result_too_large")
    assert "1000" in end.failure.message and "max_result_bytes" in end.failure.message


async def test_data_over_the_limit_is_dropped_and_the_report_stays() -> None:
    """G3, P3: it costs an update, never the call."""

    async def body(run: Run) -> str:
        run.content(Report(1, 2, "page", data=Raw(b'"' + b"x" * 2000 + b'"')))
        return "done"

    async with engine_of(body) as engine:
        engine.max_data_bytes = 1000
        live = await over(engine, engine.submit(Submission("tool")))
    [report] = facts(live, Reported)
    assert not report.data and (report.progress, report.message) == (1, "page")
    assert live.call.end and live.call.end.outcome == "ok"


class Mute(Exception):
    """One that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


ODD: tuple[Any, ...] = "odd", ("f", 1, 2, 5)  # of a line that is no text
Unread = type("Unread", (Exception,), {"__notes__": property(Mute.__str__)})


@pytest.mark.parametrize("error", [Mute(), Unread("odd"), SyntaxError(*ODD)])
async def test_a_crash_that_cannot_be_put_in_words_ends_its_call_too(error: Exception) -> None:
    """E3: whatever the author's type raises when it is asked what happened."""

    async def body(run: Run) -> str:
        raise error

    live = await called(body)
    assert live.call.end and live.call.end.outcome == "failed" and live.call.end.failure
    assert f"tool tool crashed: {type(error).__name__}: " in live.call.end.failure.message


async def test_a_result_that_says_it_is_an_error_is_a_failed_call() -> None:
    """E3: the tool's own words go out."""

    async def body(run: Run) -> Result:
        return Result(content("no"), is_error=True)

    live = await called(body)
    assert live.call.end and live.call.end.outcome == "failed" and live.call.end.result


async def test_a_run_knows_its_call_and_its_logs_are_facts() -> None:
    """H1: lines are kept with level and logger."""

    async def body(run: Run) -> str:
        run.log("hello", "warning", "mine")
        return f"{run.id} {run.attempt} {run.cancelled} {bytes(run.resumed_from)!r}"

    live = await called(body)
    [line] = facts(live, Logged)
    assert (line.text, line.level, line.logger) == ("hello", "warning", "mine")
    assert live.call.end and live.call.end.result
    assert f"{live.call.id} 1 None b''".encode() in bytes(live.call.end.result.content)


async def test_a_checkpoint_is_kept_for_the_next_attempt() -> None:
    """H1: the newest wins."""

    async def body(run: Run) -> str:
        run.content(Report(checkpoint=Raw(b"1")))
        run.content(Report(checkpoint=Raw(b"2")))
        return bytes(run.resumed_from).decode()

    live = await called(body)
    assert bytes(live.call.checkpoint) == b"2"


async def test_the_reason_of_a_cancel_is_bounded() -> None:
    """X1, H8: a client may give any text as its reason, and it is told to everybody who watches."""

    async def body(run: Run) -> str:
        await asyncio.sleep(1000)
        return "done"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        engine.cancel(live, "caller", "x" * 1_000_000)
        await over(engine, live)
        [cancelled] = facts(live, CancelRequested)
        assert cancelled.reason == "x" * 1000 + "…"
        assert live.call.end and live.call.end.failure and len(live.call.end.failure.message) < 1100
